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

void cli_put_json(FILE *out, epctx_str text) {
    uint32_t code, before = 0;
    size_t i, size;
    fputc('"', out);
    for (i = 0; i < text.size; i += size, before = code) {
        code = epctx_str_char(text, i, &size);
        if (code == EPCTX_NO_CHAR) {
            fputs("\\ufffd", out);
        } else if (epctx_char_is_shown(code, before)) {
            if (code == '"' || code == '\\') fputc('\\', out);
            fwrite(text.data + i, 1, size, out);
        } else if (code < 0x10000) {
            fprintf(out, "\\u%04x", (unsigned)code);
        } else { /* a surrogate pair */
            fprintf(out, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (code >> 10)),
                    (unsigned)(0xdc00 + (code & 0x3ff)));
        }
    }
    fputc('"', out);
}

void cli_put_member(FILE *out, const char *key, epctx_str text, const char *after) {
    fprintf(out, "\"%s\": ", key);
    cli_put_json(out, text);
    fputs(after, out);
}

void cli_json_str(const char *key, epctx_str text, const char *after) {
    cli_put_member(stdout, key, text, after);
}

bool cli_colour(FILE *out) {
    const char *no = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    return isatty(fileno(out)) && (no == NULL || no[0] == '\0') &&
           (term == NULL || strcmp(term, "dumb") != 0);
}
