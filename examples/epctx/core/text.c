/* Text that the tool prints, whoever wrote it. */
#define _POSIX_C_SOURCE 200809L

#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *cli_plural(uint64_t count) {
    return count == 1 ? "" : "s";
}

void cli_put_wrapped(FILE *out, const char *text, int indent) {
    int column = indent;
    while (*text != '\0') {
        const int size = (int)strcspn(text, " ");
        if (column > indent && column + 1 + size > 80) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        }
        column += fprintf(out, "%s%.*s", column > indent ? " " : "", size, text);
        text += (size_t)size + strspn(text + size, " ");
    }
    putc('\n', out);
}

void cli_put(FILE *out, epctx_str text) {
    uint32_t code, before = 0;
    size_t i, k, size;
    for (i = 0; i < text.size; i += size, before = code) {
        code = epctx_str_char(text, i, &size);
        if (epctx_char_is_shown(code, before))
            fwrite(text.data + i, 1, size, out);
        else
            for (k = i; k < i + size; k++) fprintf(out, "\\x%02x", (unsigned char)text.data[k]);
    }
}

bool cli_colour(FILE *out) {
    const char *no = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    return isatty(fileno(out)) && (no == NULL || no[0] == '\0') &&
           (term == NULL || strcmp(term, "dumb") != 0);
}
