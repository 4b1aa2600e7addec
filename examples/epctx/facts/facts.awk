# Reads *.facts (README.md here tells the format) and prints
#   MODE=table    the table of facts.c
#   MODE=header   epctx.h, the last file given, with the lines between its marks made anew
#   MODE=names    the names of EPs, products, brands and vendors, but for those of Microsoft and ours
# with any awk. What breaks the format, or has no origin, ends it with FILE:LINE and what is wrong.

function fail(what) {
    printf "%s:%d: %s\n", here, first_line, what >"/dev/stderr"
    failed = 1
    exit 1
}

function trim(text) {
    sub(/^[ \t\r]+/, "", text)
    sub(/[ \t\r]+$/, "", text)
    return text
}

# Takes "key: value" into the open block.
function take(text,    colon, key, i) {
    colon = index(text, ":")
    key = substr(text, 1, colon - 1)
    if (colon == 0 || key !~ /^[a-z_]+$/) fail("expected 'key: value', found '" text "'")
    text = trim(substr(text, colon + 1))
    if (text == "") fail("'" key "' has no value")
    for (i = 1; i <= size; i++)
        if (keys[i] == key) fail("'" key "' stands twice in a block")
    keys[++size] = key
    values[size] = text
}

# The value of a key of fact `f`, its own or of the default block above it.
function get(f, key) {
    if ((f, key) in given) return given[f, key]
    return (of[f], key) in given ? given[of[f], key] : ""
}

function need(f, key) {
    if (get(f, key) == "") fail("'" kind[f] ": " name[f] "' has no '" key "'")
}

function end_block(    i) {
    if (size == 0) return
    kind[++count] = keys[1]
    name[count] = values[1]
    file[count] = here
    sub(/.*\//, "", file[count])
    line[count] = first_line
    pairs[count] = size - 1
    of[count] = defaults
    for (i = 2; i <= size; i++) {
        key_of[count, i - 1] = keys[i]
        given[count, keys[i]] = values[i]
    }
    size = 0
    if (kind[count] == "default") {
        of[count] = 0
        defaults = count
        return
    }
    if (kind[count] == "facts") {
        if (name[count] != 1) fail("format " name[count] ", expected 1")
        return
    }
    if ((kind[count], name[count]) in seen)
        fail("'" kind[count] ": " name[count] "' is in line " seen[kind[count], name[count]] ", too")
    seen[kind[count], name[count]] = first_line
    need(count, "who")
    need(count, "seen")
    need(count, "from")
    need(count, "date")
    if (get(count, "from") ~ /\*\//) fail("'from' would end a comment of C")
}

# A new file.
FNR == 1 {
    if (inside) end_block()
    inside = FILENAME ~ /\.facts$/
    here = FILENAME
    defaults = 0
}

!inside {
    text[++lines] = $0
    next
}

/^#/ { next }

/^[ \t\r]*$/ {
    end_block()
    next
}

/^[ \t]/ {
    if (size == 0) fail("this line goes on, but nothing is there to go on")
    values[size] = values[size] " " trim($0)
    next
}

size == 0 { first_line = FNR }

# A block of one line.
size == 0 && /;([ \t\r]|$)/ {
    sub(/;[ \t\r]*$/, "")
    n = split($0, wide, "; ")
    for (i = 1; i <= n; i++) take(wide[i])
    end_block()
    next
}

{ take($0) }

# ---------------------------------------------------------------- the table of facts.c

function quoted(text) {
    gsub(/\\/, "\\\\", text)
    gsub(/"/, "\\\"", text)
    return "\"" text "\""
}

# A row for fact `f`; its pairs begin at `at`.
function row(f, at, origin) {
    printf "    {%s, %s, built_in_pairs + %d, %d, %s, %s, %d},\n", quoted(kind[f]), quoted(name[f]),
        at, pairs[f], origin, quoted(file[f]), line[f]
}

function print_table(    f, i, k, n, at, kinds, known, order, first) {
    print "/* Made of the files of facts by facts.awk. */"
    print "static const fact_pair built_in_pairs[] = {"
    for (f = 1; f <= count; f++) {
        at[f] = n + 0
        n += pairs[f]
        for (i = 1; i <= pairs[f]; i++)
            printf "    {%s, %s},\n", quoted(key_of[f, i]), quoted(given[f, key_of[f, i]])
    }
    print "};\n\nstatic const fact built_in_defaults[] = {"
    for (f = 1; f <= count; f++) {
        if (kind[f] != "default") continue
        place[f] = k++
        row(f, at[f], "NULL")
    }
    print "};\n\n/* Those of a kind side by side. */\nstatic const fact built_in_facts[] = {"
    for (f = 1; f <= count; f++)
        if (kind[f] != "default" && kind[f] != "facts" && !(kind[f] in known)) {
            known[kind[f]] = 1
            order[++kinds] = kind[f]
        }
    n = 0
    for (k = 1; k <= kinds; k++) {
        first[k] = n
        for (f = 1; f <= count; f++) {
            if (kind[f] != order[k]) continue
            row(f, at[f], of[f] > 0 ? "&built_in_defaults[" place[of[f]] "]" : "NULL")
            n++
        }
    }
    print "};\n\nstatic const fact_kind built_in_kinds[] = {"
    for (k = 1; k <= kinds; k++)
        printf "    {%s, %d, %d},\n", quoted(order[k]), first[k],
            (k < kinds ? first[k + 1] : n) - first[k]
    print "};"
}

# ---------------------------------------------------------------- the blocks of epctx.h

function blanks(n) { return substr("                    ", 1, n) }

# Prints words, `separator` between them, from column `column` on, where `indent` blanks stand for
# the lines that follow; `end` is what a line ends with that is not the last one.
function fill(words, n, separator, column, indent, end,    i, part, room) {
    room = 100 - length(end)
    for (i = 1; i <= n; i++) {
        part = words[i] (i < n ? separator : "")
        if (i > 1 && column + 1 + length(part) > room) {
            printf "%s\n%s", end, blanks(indent)
            column = indent
        } else if (i > 1) {
            printf " "
            column++
        }
        printf "%s", part
        column += length(part)
    }
}

function comment(text, indent,    words, n, i, column) {
    n = split(text, words, " ")
    words[n] = words[n] " */"
    printf "%s/*", blanks(indent)
    column = indent + 2
    for (i = 1; i <= n; i++) {
        if (column + 1 + length(words[i]) > 100) {
            printf "\n%s *", blanks(indent)
            column = indent + 2
        }
        printf " %s", words[i]
        column += 1 + length(words[i])
    }
    print ""
}

# "a, b" as "{a, b}" of C texts.
function put_texts(f, key, last,    words, n, i) {
    n = split(get(f, key), words, ", ")
    for (i = 1; i <= n; i++) words[i] = quoted(words[i])
    if (n == 0) words[n = 1] = "NULL"
    words[1] = "{" words[1]
    words[n] = words[n] "}" last
    put_column(key, words, n, ",")
}

# "a, b" as BEFORE_A AFTER | BEFORE_B AFTER
function put_bits(f, key, before, after,    words, n, i) {
    n = split(toupper(get(f, key)), words, ", ")
    for (i = 1; i <= n; i++) words[i] = before words[i] after
    if (n == 0) words[n = 1] = "0"
    words[n] = words[n] ","
    put_column(key, words, n, " |")
}

function put_column(key, words, n, separator) {
    printf "     /* %-8s */ ", key
    fill(words, n, separator, 20, 20, "")
    print ""
}

function print_profiles(    f, i, origins, words, rule) {
    for (f = 1; f <= count; f++)
        if (kind[f] == "origin") origins = origins " " name[f] ": " given[f, "is"] "."
    comment("Made of examples/epctx/facts/profiles.facts by `make facts`." origins, 0)
    print "/* clang-format off */\nstatic const epctx_profile epctx__profiles[] = {"
    for (f = 1; f <= count; f++) {
        if (kind[f] != "profile") continue
        comment(get(f, "from"), 4)
        printf "    {/* name     */ \"%s\",\n", name[f]
        put_texts(f, "sources", ",")
        put_bits(f, "traits", "EPCTX_TRAIT_", "")
        printf "     /* key      */ EPCTX_KEY_%s,\n", key_id[get(f, "key")]
        put_bits(f, "required", "EPCTX__BIT(", ")")
        printf "     /* binary   */ %s,\n", quoted(get(f, "binary"))
        put_texts(f, "sidecars", ",")
        printf "     /* attribute */ %s,\n", get(f, "attribute") != "" ? quoted(get(f, "attribute")) : "NULL"
        rule = get(f, "compat_rule")
        printf "     /* compat_fn */ %s},\n", rule != "" ? "epctx__compare_" rule : "NULL"
    }
    print "};\n/* clang-format on */"
}

# A text of C in pieces of at most `most` columns.
function pieces(text, words, n, most,    at) {
    while (length(text) > most) {
        for (at = most; at > 1 && substr(text, at, 1) != " "; at--)
            ;
        words[++n] = "\"" substr(text, 1, at) "\""
        text = substr(text, at + 1)
    }
    words[++n] = "\"" text "\""
    return n
}

function print_options(    f, words, n, last, head, i) {
    print "/* Made of examples/epctx/facts/options.facts by `make facts`. */"
    print "/* clang-format off */\n#define EPCTX_OPTION_LIST(X) \\"
    for (f = 1; f <= count; f++)
        if (kind[f] == "option" && get(f, "id") != "") last = f
    for (f = 1; f <= last; f++) {
        if (kind[f] != "option" || get(f, "id") == "") continue
        words[1] = get(f, "id") ","
        words[2] = quoted(name[f]) ","
        words[3] = quoted(get(f, "constant")) ","
        words[4] = toupper(get(f, "type")) ","
        words[5] = quoted(get(f, "default")) ","
        words[6] = toupper(get(f, "phase")) ","
        printf "    X("
        n = pieces(get(f, "text"), words, 6, 88)
        words[n] = words[n] ")"
        fill(words, n, "", 6, 6, " \\")
        print f < last ? " \\" : ""
    }
    print "/* clang-format on */"
}

function print_aliases(    f, words, n, i) {
    print "/* Made of examples/epctx/facts/options.facts by `make facts`. */"
    print "/* clang-format off */"
    print "static const epctx__option_alias epctx__option_aliases[] = {"
    for (f = 1; f <= count; f++) {
        if (kind[f] != "option" || get(f, "id") == "") continue
        n = split(get(f, "also"), words, ", ")
        for (i = 1; i <= n; i++)
            printf "    {%s, EPCTX_OPTION_%s},\n", quoted(words[i]), get(f, "id")
    }
    print "};\n/* clang-format on */"
}

# "1, 3" as bits.
function bits(list,    words, n, i, sum) {
    n = split(list, words, ", ")
    for (i = 1; i <= n; i++) sum += 2 ^ words[i]
    return sprintf("0x%x", sum)
}

function print_shapes(    f, words) {
    print "/* Made of examples/epctx/facts/shapes.facts by `make facts`. */"
    print "/* clang-format off */"
    print "static const epctx_shape_reader epctx__shape_readers[] = {"
    for (f = 1; f <= count; f++) {
        if (kind[f] != "shape") continue
        split(name[f], words, " ")
        printf "    {%s, %s, %s, %s, %s},\n", quoted(words[1] == "ai.onnx" ? "" : words[1]),
            quoted(words[2]), bits(get(f, "reads")),
            bits(get(f, "sure") != "" ? get(f, "sure") : get(f, "reads")),
            get(f, "always") != "" ? "true" : "false"
    }
    print "};\n/* clang-format on */"
}

# The lines between a mark and its end are made anew.
function print_header(    i, skip, marks) {
    key_id["none"] = "NONE"
    key_id["node_name"] = "NODE_NAME"
    key_id["partition_name"] = "PARTITION"
    for (i = 1; i <= lines; i++) {
        if (text[i] == "/* -- end of facts -- */") skip = 0
        if (!skip) print text[i]
        if (text[i] == "/* -- facts: profiles -- */") {
            print_profiles()
        } else if (text[i] == "/* -- facts: options -- */") {
            print_options()
        } else if (text[i] == "/* -- facts: aliases -- */") {
            print_aliases()
        } else if (text[i] == "/* -- facts: shapes -- */") {
            print_shapes()
        } else {
            continue
        }
        skip = 1
        marks++
    }
    if (skip || marks != 4) fail("expected four marks '-- facts: ... --', each with an end")
}

function print_list(list,    words, n, i) {
    n = split(list, words, ", ")
    for (i = 1; i <= n; i++) {
        sub(/ExecutionProvider$/, "", words[i])
        if (words[i] != "") print words[i]
    }
}

function print_names(    f) {
    for (f = 1; f <= count; f++) {
        if (kind[f] == "provider") print_list(name[f])
        if (get(f, "who") ~ /^(Microsoft|epctx)$/) continue
        print_list(get(f, "who"))
        if (kind[f] ~ /^(profile|ep|plain|other|product|brand)$/)
            print_list(name[f] ", " get(f, "sources") ", " get(f, "also"))
    }
}

END {
    if (failed) exit 1
    if (inside) end_block()
    if (failed) exit 1
    if (MODE == "table") print_table()
    if (MODE == "header") print_header()
    if (MODE == "names") print_names()
    if (failed) exit 1
}
