/* Context binaries of Qualcomm's QNN: only what stands in them as plain text, as QAIRT 2.22 and
 * 2.51 wrote it (2024, 2026): the build "v2.51.0.260929181845", and a list of settings
 * "...;min_arch=79;...;soc_type=CHIP;...;vtcm_size=8388608;..." for each graph. The format is
 * Qualcomm's own; nothing of it is decoded here: graphs are told by Qualcomm's library, if it can
 * be asked. */
#include "reader.h"

/* The texts stand behind the tables, before the weights. */
enum { MOST_SEARCHED = 4 << 20, MOST_VALUE = 64, MOST_SETTINGS = 4096 };

static bool is_digit(uint8_t c) {
    return c >= '0' && c <= '9';
}

static bool is_word(uint8_t c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '.';
}

/* The text of a setting whose value begins at `at`, up to its semicolon; empty: it is none. */
static epctx_str value_at(epctx_span file, size_t at) {
    epctx_str value = {(const char *)file.data + at, 0};
    while (at + value.size < file.size && value.size < MOST_VALUE &&
           is_word(file.data[at + value.size]))
        value.size++;
    if (at + value.size >= file.size || file.data[at + value.size] != ';') value.size = 0;
    return value;
}

/* Calls `found` with each value of a setting. */
static void each_setting(binary_reading *r, epctx_span file, const char *key,
                         void (*found)(binary_reading *r, epctx_str value)) {
    size_t at = 0, count;
    for (count = 0; count < MOST_SETTINGS; count++) {
        epctx_str value;
        at = binary_find(file, at, key);
        if (at == SIZE_MAX) return;
        at += strlen(key);
        value = value_at(file, at);
        if (value.size > 0) found(r, value);
    }
}

/* A binary for no chip that QAIRT knows says UNKNOWN_SDM. */
static void found_chip(binary_reading *r, epctx_str value) {
    if (!epctx_str_starts(value, "UNKNOWN")) binary_add_chip(r, value);
}

/* "79" becomes "v79"; of several, a list. */
static void found_architecture(binary_reading *r, epctx_str value) {
    char buffer[256];
    epctx_text text = epctx_text_of(buffer, sizeof buffer);
    epctx_str rest = r->facts->architecture;
    uint64_t number;
    if (!epctx_str_number(value, &number) || number == 0 || number > 9999) return;
    while (rest.size > 0) {
        const epctx_str known = epctx_str_cut(&rest, ',');
        if (known.size == value.size + 1 && memcmp(known.data + 1, value.data, value.size) == 0)
            return;
    }
    epctx_text_put(&text, r->facts->architecture);
    if (text.size > 0) epctx_text_put_char(&text, ',');
    epctx_text_put_char(&text, 'v');
    epctx_text_put_number(&text, number);
    if (!text.cut) r->facts->architecture = binary_copy(r, epctx_text_str(&text));
}

/* The largest of all graphs. */
static void found_vtcm(binary_reading *r, epctx_str value) {
    uint64_t number;
    if (epctx_str_number(value, &number) && number > r->facts->vtcm_size)
        r->facts->vtcm_size = number;
}

/* "v2.51.0.260929181845" or, before 2025, "v2.22.0.240425235059_92863": a v, four numbers. */
static epctx_str build_at(epctx_span file, size_t at) {
    epctx_str build = {(const char *)file.data + at, 1};
    size_t dots = 0, digits = 0;
    while (at + build.size < file.size && build.size < MOST_VALUE) {
        const uint8_t c = file.data[at + build.size];
        if (!is_digit(c) && c != '.' && c != '_') break;
        if (c == '.' && (digits == 0 || dots == 3)) break;
        if (c == '_' && (dots < 3 || digits < 6)) break;
        dots += c == '.';
        digits = is_digit(c) ? digits + 1 : 0;
        build.size++;
    }
    if (dots != 3 || build.size < 14) build.size = 0;
    return build;
}

static void find_build(binary_reading *r, epctx_span file) {
    size_t at = 0, count;
    for (count = 0; r->facts->sdk.size == 0 && count < MOST_SETTINGS * 16; count++) {
        at = binary_find(file, at, "v");
        if (at == SIZE_MAX) return;
        if (at == 0 || !is_word(file.data[at - 1])) r->facts->sdk = build_at(file, at);
        at++;
    }
}

void binary_qnn_text(binary_reading *r, epctx_span file) {
    if (file.size > MOST_SEARCHED) file.size = MOST_SEARCHED;
    find_build(r, file);
    each_setting(r, file, ";soc_type=", found_chip);
    each_setting(r, file, ";min_arch=", found_architecture);
    each_setting(r, file, ";vtcm_size=", found_vtcm);
}

void binary_read_qnn(binary_reading *r) {
    binary_qnn_text(r, r->file);
}
