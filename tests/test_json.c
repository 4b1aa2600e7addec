/* The JSON writer of the tool: layouts, numbers, strings, and what it refuses; what it writes by
 * chance is read back by the tool's reader. */
#define _POSIX_C_SOURCE 200809L

#include "epctx.h"
#include "test.h"

#include <float.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* printf of a locale whose decimal point is U+066B, in two bytes; `foreign` switches it on. */
static bool foreign;

TEST_PRINTF(3, 4) static int print_number(char *out, size_t size, const char *format, ...) {
    char plain[512];
    size_t used = 0, i;
    va_list args;
    va_start(args, format);
    vsnprintf(plain, sizeof plain, format, args);
    va_end(args);
    for (i = 0; plain[i] != '\0' && used + 3 < size; i++) {
        if (plain[i] != '.' || !foreign) {
            out[used++] = plain[i];
            continue;
        }
        out[used++] = '\xd9';
        out[used++] = '\xab';
    }
    out[used] = '\0';
    return (int)used;
}

#undef snprintf
#define snprintf print_number
#include "examples/epctx/core/json_writer.c"
#undef snprintf
#include "examples/epctx/core/json.c"

static epctx_buffer text;
static json_writer w;

static void start(void) {
    epctx_buffer_free(&text);
    epctx_buffer_init(&text, NULL);
    json_to_buffer(&w, &text);
}

/* What was written, terminated. */
static const char *written(void) {
    if (epctx_buffer_append(&text, "", 1) != EPCTX_OK) return "out of memory";
    return (const char *)text.data;
}

/* ---------------------------------------------------------------- layouts */

/* An object with two members, one of them an array of two, in a layout. */
static const char *laid_out(json_layout layout, bool filled) {
    start();
    json_object(&w, NULL, layout);
    if (filled) {
        json_int(&w, "a", -1);
        json_array(&w, "b", layout);
        json_null(&w, NULL);
        json_bool(&w, NULL, true);
        json_end(&w);
    }
    json_end(&w);
    return written();
}

TEST(layouts) {
    CHECK_STR(laid_out(JSON_TIGHT, true), "{\"a\":-1,\"b\":[null,true]}");
    CHECK_STR(laid_out(JSON_INLINE, true), "{\"a\": -1, \"b\": [null, true]}");
    CHECK_STR(laid_out(JSON_COLUMN, true), "{\"a\": -1,\n\"b\": [null,\n true]}");
    CHECK_STR(laid_out(JSON_HANGING, true), "{\n\"a\": -1,\n\"b\": [\n  null,\n  true]}");
    CHECK_STR(laid_out(JSON_LINES, true), "{\n\"a\": -1,\n\"b\": [\n  null,\n  true\n]\n}");
    CHECK_STR(laid_out(JSON_ROWS, true), "{\n\"a\": -1,\n\"b\": [\n  null,\n  true\n]\n}");
    CHECK_TRUE(json_is_whole(&w));
}

TEST(empty) {
    CHECK_STR(laid_out(JSON_TIGHT, false), "{}");
    CHECK_STR(laid_out(JSON_INLINE, false), "{}");
    CHECK_STR(laid_out(JSON_COLUMN, false), "{}");
    CHECK_STR(laid_out(JSON_HANGING, false), "{}");
    CHECK_STR(laid_out(JSON_LINES, false), "{\n}");
    CHECK_STR(laid_out(JSON_ROWS, false), "{}");
}

TEST(indentation) {
    start();
    json_indent(&w, 2, 4);
    json_object(&w, NULL, JSON_LINES);
    json_object(&w, "a", JSON_INLINE); /* adds none, and passes on that around it */
    json_array(&w, "b", JSON_LINES);
    json_array(&w, NULL, JSON_COLUMN);
    json_uint(&w, NULL, 1);
    json_uint(&w, NULL, 2);
    json_end(&w);
    json_end(&w);
    json_end(&w);
    json_indent(&w, 2, 0); /* of what begins later */
    json_array(&w, "c", JSON_LINES);
    json_uint(&w, NULL, 3);
    json_end(&w);
    json_end(&w);
    CHECK_STR(written(), "{\n  \"a\": {\"b\": [\n      [1,\n       2]\n  ]},\n"
                         "  \"c\": [\n  3\n  ]\n}");
}

/* ---------------------------------------------------------------- values */

TEST(integers) {
    start();
    json_array(&w, NULL, JSON_TIGHT);
    json_int(&w, NULL, INT64_MIN);
    json_int(&w, NULL, INT64_MAX);
    json_uint(&w, NULL, 0);
    json_uint(&w, NULL, UINT64_MAX);
    json_end(&w);
    CHECK_STR(written(), "[-9223372036854775808,9223372036854775807,0,18446744073709551615]");
}

static const char *reals(void) {
    start();
    json_array(&w, NULL, JSON_TIGHT);
    json_real(&w, NULL, 0.5);
    json_real(&w, NULL, -0.0);
    json_real(&w, NULL, 1e300);
    json_real(&w, NULL, 16777216);
    json_real(&w, NULL, 1.0 / 3);
    json_real(&w, NULL, 1.25e-7);
    json_fixed(&w, NULL, 2.0 / 3, 3);
    json_fixed(&w, NULL, 12345.6789, 1);
    json_fixed(&w, NULL, 7.9, 0);
    json_end(&w);
    return written();
}

TEST(reals) {
    static const char wanted[] = "[0.5,-0,1e+300,16777216,0.333333333,1.25e-07,0.667,12345.7,8]";
    foreign = false;
    CHECK_STR(reals(), wanted);
    foreign = true; /* a point is a point in every locale */
    CHECK_STR(reals(), wanted);
    foreign = false;
    start();
    json_fixed(&w, NULL, -DBL_MAX, 3); /* all of its 309 digits */
    CHECK_UINT(text.size, 1 + 309 + 4);
}

TEST(no_numbers) {
    start();
    json_array(&w, NULL, JSON_TIGHT);
    json_real(&w, NULL, (double)NAN);
    json_real(&w, NULL, -(double)NAN);
    json_real(&w, NULL, (double)INFINITY);
    json_fixed(&w, NULL, -(double)INFINITY, 3);
    json_fixed(&w, NULL, (double)NAN, 3);
    json_end(&w);
    CHECK_STR(written(), "[\"nan\",\"nan\",\"inf\",\"-inf\",\"nan\"]");
}

static const char *string(const char *bytes, size_t size) {
    const epctx_str value = {bytes, size};
    start();
    json_str(&w, NULL, value);
    return written();
}

TEST(strings) {
    CHECK_STR(string("", 0), "\"\"");
    CHECK_STR(string(NULL, 0), "\"\"");
    CHECK_STR(string("a\"b\\c/", 6), "\"a\\\"b\\\\c/\"");
    CHECK_STR(string("\0\n\t\x1b\x7f", 5), "\"\\u0000\\u000a\\u0009\\u001b\\u007f\"");
    CHECK_STR(string("\xc3\xa4\xf0\x9f\x98\x80", 6), "\"\xc3\xa4\xf0\x9f\x98\x80\"");
    CHECK_STR(string("\xe2\x80\xae", 3), "\"\\u202e\""); /* turns the direction of text */
    CHECK_STR(string("\xf3\xa0\x80\x81", 4), "\"\\udb40\\udc01\""); /* not shown, beyond 0xffff */
    CHECK_STR(string("a\xff\xc3(\xe2\x82", 6), "\"a\\ufffd\\ufffd(\\ufffd\\ufffd\"");
    start();
    json_text(&w, NULL, NULL);
    CHECK_STR(written(), "null");
}

TEST(keys_are_strings) {
    const epctx_str key = {"\"\xff\n", 3};
    start();
    json_object(&w, NULL, JSON_INLINE);
    json_key(&w, key);
    json_text(&w, NULL, "v");
    json_key(&w, key);
    json_object(&w, NULL, JSON_TIGHT);
    json_uint(&w, "", 1);
    json_end(&w);
    json_end(&w);
    CHECK_STR(written(), "{\"\\\"\\ufffd\\u000a\": \"v\", \"\\\"\\ufffd\\u000a\": {\"\":1}}");
}

TEST(strings_in_parts) {
    start();
    json_object(&w, NULL, JSON_INLINE);
    json_begin_text(&w, "a");
    json_add_text(&w, epctx_str_of("x\""));
    json_add_text(&w, epctx_str_of(""));
    json_add_text(&w, epctx_str_of("\xc3\xa4"));
    json_end_text(&w);
    json_begin_text(&w, "b");
    json_end_text(&w);
    json_end(&w);
    CHECK_STR(written(), "{\"a\": \"x\\\"\xc3\xa4\", \"b\": \"\"}");
}

/* What a character is shown as may depend on the one before: in parts as in one. */
TEST(parts_remember) {
    static const char joined[] = "\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb";
    char whole[100];
    size_t i, size;
    snprintf(whole, sizeof whole, "%s", string(joined, sizeof joined - 1));
    start();
    json_begin_text(&w, NULL);
    for (i = 0; i < sizeof joined - 1; i += size) {
        epctx_str part = {joined + i, 0};
        epctx_str_char(epctx_str_of(joined), i, &size);
        part.size = size;
        json_add_text(&w, part);
    }
    json_end_text(&w);
    CHECK_STR(written(), whole);
}

/* ---------------------------------------------------------------- places */

TEST(file) {
    char *data = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&data, &size);
    CHECK_TRUE(out != NULL);
    json_to_file(&w, out);
    json_array(&w, NULL, JSON_INLINE);
    json_text(&w, NULL, "x");
    json_end(&w);
    fclose(out);
    CHECK_STR(data, "[\"x\"]");
    free(data);
}

static void *refuse_memory(void *user, size_t size) {
    (void)user, (void)size;
    return NULL;
}

static void free_nothing(void *user, void *data) {
    (void)user, (void)data;
}

TEST(no_memory) {
    epctx_allocator none;
    epctx_buffer buffer;
    memset(&none, 0, sizeof none);
    none.alloc_fn = refuse_memory;
    none.free_fn = free_nothing;
    epctx_buffer_init(&buffer, &none);
    json_to_buffer(&w, &buffer);
    json_array(&w, NULL, JSON_INLINE);
    json_end(&w);
    CHECK_TRUE(!json_is_whole(&w));
}

TEST(whole) {
    start();
    json_object(&w, NULL, JSON_INLINE);
    CHECK_TRUE(!json_is_whole(&w));
    json_end(&w);
    CHECK_TRUE(json_is_whole(&w));
    start();
    json_begin_text(&w, NULL);
    CHECK_TRUE(!json_is_whole(&w));
}

/* ---------------------------------------------------------------- mistakes */

static void two_values(void) {
    json_null(&w, NULL);
    json_null(&w, NULL);
}
static void no_key(void) {
    json_object(&w, NULL, JSON_TIGHT);
    json_null(&w, NULL);
}
static void key_in_array(void) {
    json_array(&w, NULL, JSON_TIGHT);
    json_null(&w, "a");
}
static void key_at_top(void) {
    json_null(&w, "a");
}
static void two_keys(void) {
    json_object(&w, NULL, JSON_TIGHT);
    json_key(&w, epctx_str_of("a"));
    json_null(&w, "b");
}
static void end_behind_key(void) {
    json_object(&w, NULL, JSON_TIGHT);
    json_key(&w, epctx_str_of("a"));
    json_end(&w);
}
static void end_too_many(void) {
    json_object(&w, NULL, JSON_TIGHT);
    json_end(&w);
    json_end(&w);
}
static void value_in_text(void) {
    json_array(&w, NULL, JSON_TIGHT);
    json_begin_text(&w, NULL);
    json_null(&w, NULL);
}
static void end_in_text(void) {
    json_array(&w, NULL, JSON_TIGHT);
    json_begin_text(&w, NULL);
    json_end(&w);
}
static void part_of_no_text(void) {
    json_add_text(&w, epctx_str_of("a"));
}
static void end_of_no_text(void) {
    json_end_text(&w);
}
static void nest(int depth) {
    for (; depth > 0; depth--) json_array(&w, NULL, JSON_TIGHT);
}
static void too_deep(void) {
    nest(JSON_DEEPEST + 1);
}
static void deepest(void) {
    nest(JSON_DEEPEST);
}

/* The signal that ends a process which does this; 0: none, and it wrote nothing to standard error.
 * `said`: it tells what is wrong. */
static int signal_of(void (*mistake)(void), bool *said) {
    char message[200] = "";
    int ends[2], status = 0;
    pid_t child;
    start();
    fflush(NULL);
    if (pipe(ends) != 0) return -1;
    child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        mistake();
        _exit(0);
    }
    close(ends[1]);
    if (read(ends[0], message, sizeof message - 1) < 0) message[0] = '\0';
    close(ends[0]);
    *said = strstr(message, "epctx: mistake in the program: JSON: ") == message;
    if (child < 0 || waitpid(child, &status, 0) != child) return -1;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(mistakes) {
    static void (*const mistakes[])(void) = {
        two_values,   no_key,        key_in_array, key_at_top,      two_keys,       end_behind_key,
        end_too_many, value_in_text, end_in_text,  part_of_no_text, end_of_no_text, too_deep};
    size_t i;
    bool said;
    for (i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        const int number = signal_of(mistakes[i], &said);
        CHECK(number == SIGABRT && said, "mistake %zu: signal %d, told: %d", i, number, said);
    }
    CHECK_INT(signal_of(deepest, &said), 0);
    CHECK_TRUE(!said);
}

/* ---------------------------------------------------------------- by chance, read back */

static uint32_t state;

static uint32_t chance(uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)state * below >> 32);
}

static epctx_str chance_text(char out[12]) {
    static const char bytes[] = "ab\"\\\n\x1b\xc3\xa4\xe2\x80\xae\xf0\x9f\x98\x80\xff\0";
    epctx_str made = {out, chance(12)};
    size_t i;
    for (i = 0; i < made.size; i++) out[i] = bytes[chance(sizeof bytes - 1)];
    return made;
}

/* What a reader gets of bytes. */
static bool is_same(epctx_str got, epctx_str bytes) {
    size_t at = 0, i, size;
    for (i = 0; i < bytes.size; i += size) {
        const bool good = epctx_str_char(bytes, i, &size) != EPCTX_NO_CHAR;
        const char *want = good ? bytes.data + i : "\xef\xbf\xbd";
        const size_t length = good ? size : 3;
        if (at + length > got.size || memcmp(got.data + at, want, length) != 0) return false;
        at += length;
    }
    return at == got.size;
}

/* One walk by chance: writes a value or, with `read`, compares it with what was read. The same
 * seed walks the same way. */
static bool walk(const json *read, bool reading, const char *key, int depth) {
    char room[12];
    const uint32_t kind = chance(depth > 0 ? 8 : 6);
    const json_layout layout = (json_layout)chance(JSON_ROWS + 1);
    const int64_t number = (int64_t)chance(1000000) - 500000;
    const epctx_str bytes = chance_text(room);
    uint32_t count = kind >= 6 ? chance(5) : 0;
    if (reading && read == NULL) return false;
    switch (kind) {
    case 0:
        if (!reading) json_null(&w, key);
        return !reading || read->kind == JSON_NULL;
    case 1:
        if (!reading) json_bool(&w, key, number > 0);
        return !reading || (read->kind == JSON_BOOL && read->truth == (number > 0));
    case 2:
        if (!reading) json_int(&w, key, number);
        return !reading || (read->kind == JSON_NUMBER && read->number == (double)number);
    case 3:
        if (!reading) json_real(&w, key, (double)number / 64);
        return !reading ||
               (read->kind == JSON_NUMBER && fabs(read->number - (double)number / 64) < 1e-4);
    case 4:
    case 5:
        if (!reading) json_str(&w, key, bytes);
        return !reading || (read->kind == JSON_STRING && is_same(read->text, bytes));
    default: break;
    }
    if (!reading && kind == 6) json_array(&w, key, layout);
    if (!reading && kind == 7) json_object(&w, key, layout);
    if (reading && read->kind != (kind == 6 ? JSON_LIST : JSON_OBJECT)) return false;
    if (reading) read = read->first;
    for (; count > 0; count--) {
        char name[12];
        const epctx_str chosen = chance_text(name);
        if (!reading && kind == 7) json_key(&w, chosen);
        if (reading && kind == 7 && (read == NULL || !is_same(read->key, chosen))) return false;
        if (!walk(read, reading, NULL, depth - 1)) return false;
        if (reading) read = read->next;
    }
    if (!reading) json_end(&w);
    return !reading || read == NULL;
}

TEST(read_back) {
    uint32_t seed;
    for (seed = 1; seed <= 3000; seed++) {
        epctx_arena arena;
        epctx_str made;
        const json *root;
        size_t at;
        bool same;
        start();
        state = seed;
        (void)walk(NULL, false, NULL, 6);
        CHECK(json_is_whole(&w), "seed %u: not whole", (unsigned)seed);
        made.data = (const char *)text.data;
        made.size = text.size;
        epctx_arena_init(&arena, NULL);
        root = json_read(made, &arena, &at);
        state = seed;
        same = root != NULL && walk(root, true, NULL, 6);
        epctx_arena_free(&arena);
        CHECK(same, "seed %u: '%s' is read as something else, or not", (unsigned)seed, written());
    }
}

/* ---------------------------------------------------------------- the grammar */

static bool is_read(const char *json_text) {
    epctx_arena arena;
    size_t at;
    bool good;
    epctx_arena_init(&arena, NULL);
    good = json_read(epctx_str_of(json_text), &arena, &at) != NULL;
    epctx_arena_free(&arena);
    return good;
}

/* Escapes become the bytes of UTF-8, at the ends of each length. */
TEST(escapes) {
    static const char *const cases[][2] = {
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
        {"\"\\u0001\\u007f\"", "\001\x7f"},
        {"\"\\u0080\\u07FF|\"", "\xc2\x80\xdf\xbf|"},
        {"\"\\u0800\\uffff|\"", "\xe0\xa0\x80\xef\xbf\xbf|"},
        {"\"\\ud7ff\\ue000|\"", "\xed\x9f\xbf\xee\x80\x80|"},
        {"\"\\ud800\\udc00\\udbff\\udfff|\"", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf|"},
        {"\"\\ud83d\\ude00\\u2026|\"", "\xf0\x9f\x98\x80\xe2\x80\xa6|"}};
    epctx_arena arena;
    size_t i, at;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const json *value;
        epctx_arena_init(&arena, NULL);
        value = json_read(epctx_str_of(cases[i][0]), &arena, &at);
        CHECK(value != NULL && epctx_str_is(value->text, cases[i][1]), "%s is read as '%.*s'",
              cases[i][0], value != NULL ? (int)value->text.size : 0,
              value != NULL ? value->text.data : "");
        epctx_arena_free(&arena);
    }
}

TEST(grammar) {
    static const char *const right[] = {"0",
                                        "-0",
                                        "100",
                                        "-1.5",
                                        "0.5",
                                        "1e5",
                                        "1E+05",
                                        "2e-07",
                                        "[0,1]",
                                        "[-0.0]",
                                        "1.0",
                                        "{\"a\":0}",
                                        "\"\\ud83d\\ude00\""};
    static const char *const wrong[] = {
        "+100", "010",   "-010",       "00",          "01.5",        ".5",  "1.",  "1.e5",
        "-",    "1e",    "1e+",        "--1",         "0x10",        "1+1", "-.5", "+0",
        "[1,]", "[010]", "{\"a\":+1}", "\"\\ude00\"", "\"\\ud83d\"", "1 2"};
    size_t i;
    for (i = 0; i < sizeof right / sizeof *right; i++)
        CHECK(is_read(right[i]), "'%s' is JSON", right[i]);
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(!is_read(wrong[i]), "'%s' is no JSON", wrong[i]);
}

int main(int argc, char **argv) {
    epctx_buffer_init(&text, NULL);
    RUN(layouts);
    RUN(empty);
    RUN(indentation);
    RUN(integers);
    RUN(reals);
    RUN(no_numbers);
    RUN(strings);
    RUN(keys_are_strings);
    RUN(strings_in_parts);
    RUN(parts_remember);
    RUN(file);
    RUN(no_memory);
    RUN(whole);
    RUN(mistakes);
    RUN(read_back);
    RUN(escapes);
    RUN(grammar);
    epctx_buffer_free(&text);
    return test_end();
}
