# Values of facts that C must not have once more: sources, libraries, chips, names of error numbers
# and options, and how sentences begin, of the files of facts given. A line each.
function trim(text) {
    sub(/^[ \t]+/, "", text)
    return text
}
function put(list,    words, n, i) {
    n = split(list, words, /, */)
    for (i = 1; i <= n; i++)
        if (length(words[i]) > 3) print words[i]
}
# Whole words, so that a line of C can have all of it.
function start(text) {
    text = substr(text, 1, 36)
    sub(/ [^ ]*$/, "", text)
    return text
}
/^#/ || /^[ \t]*$/ { next }
/^[ \t]/ {
    if (wanted) put(trim($0))
    next
}
{
    n = split($0, pairs, /; */)
    wanted = 0
    for (i = 1; i <= n; i++) {
        key = pairs[i]
        sub(/:.*/, "", key)
        value = trim(substr(pairs[i], length(key) + 2))
        wanted = key ~ /^(sources|library|dll|registers|names|chip|plain|datatype|constant)$/
        if (wanted) put(value)
        sentence = key ~ /^(cause|cure|meaning|packages|needs|offline|mind|instead|text|fields)$/
        if (sentence && length(start(value)) >= 30) print start(value)
    }
}
