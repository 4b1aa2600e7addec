# Texts in C by which code can tell one vendor's EP from another: those of one word with the name of
# an EP, a product or a vendor in it, and all with one where a text is compared. The first file has
# the names, a line each; the others are C. Prints FILE and the text. Messages and comments may name
# whom they like, and the domain of EPContext has Microsoft's name.
BEGIN {
    compares = "(str(case|n|ncase)?cmp|strn?casecmp|strstr|memcmp|epctx_str_[a-z_]*|is_one_of|" \
        "facts_find|[a-z_]*(_is|_has|_ends|_starts|_fits))\\("
}

FNR == NR {
    name = tolower($0)
    if (length(name) > 2 && name != "cpu" && name != "microsoft") names[name] = 1
    next
}

FNR == 1 { inside = 0 }

/^#include/ { next }

function named(text,    name) {
    text = tolower(text)
    for (name in names)
        if (index(text, name)) return 1
    return 0
}

{
    line = $0
    compared = line ~ compares
    while (line != "") {
        if (inside) {
            at = index(line, "*/")
            if (!at) next
            line = substr(line, at + 2)
            inside = 0
        } else if (match(line, /\/\*|"([^"\\]|\\.)*"/) == 0) {
            next
        } else if (substr(line, RSTART, 1) == "/") {
            line = substr(line, RSTART + 2)
            inside = 1
        } else {
            text = substr(line, RSTART + 1, RLENGTH - 2)
            line = substr(line, RSTART + RLENGTH)
            word = text
            gsub(/%[a-z]+/, "", word)
            gsub(/^ +| +$/, "", word)
            if (named(word) && (compared || word !~ / /)) print FILENAME, text
        }
    }
}
