/* >>basics: status, errors, strings, hash, arena, buffer, map. */
#include "build.h"
#include "forged.h"
#include "test.h"

#include <time.h>

TEST(status_names) {
    CHECK_STR(epctx_status_name(EPCTX_OK), "EPCTX_OK");
    CHECK_STR(epctx_status_name(EPCTX_ERR_PATH), "EPCTX_ERR_PATH");
    CHECK_STR(epctx_status_name((epctx_status)999), "unknown status");
    CHECK_STR(epctx_status_text((epctx_status)999), "unknown status");
    for (int i = 0; i < EPCTX_STATUS_COUNT; i++) {
        CHECK(strncmp(epctx_status_name((epctx_status)i), "EPCTX_", 6) == 0, "status %d", i);
        CHECK(strlen(epctx_status_text((epctx_status)i)) > 0, "status %d has no text", i);
    }
}

/* The EP-context design: whatever fails while a context is loaded is INVALID_GRAPH (10). */
TEST(status_to_ort) {
    CHECK_INT(epctx_status_to_ort(EPCTX_OK), 0);
    CHECK_INT(epctx_status_to_ort(EPCTX_ERR_ARG), 2);
    CHECK_INT(epctx_status_to_ort(EPCTX_ERR_PATH), 10);
    CHECK_INT(epctx_status_to_ort(EPCTX_ERR_GRAPH), 10);
    CHECK_INT(epctx_status_to_ort(EPCTX_ERR_CONTEXT), 10);
    CHECK_INT(epctx_status_to_ort(EPCTX_ERR_VERSION), 10);
    CHECK_INT(epctx_status_to_ort((epctx_status)999), 1);
#define CHECK_CODE(name, ort, text) CHECK_INT(epctx_status_to_ort(EPCTX_##name), ort);
    EPCTX_STATUS_LIST(CHECK_CODE)
#undef CHECK_CODE
}

TEST(strings) {
    epctx_str none = epctx_str_of(NULL);
    epctx_str a = {"a\0b", 3}, b = {"a\0c", 3};
    CHECK_UINT(none.size, 0);
    CHECK_TRUE(epctx_str_is(none, ""));
    CHECK_TRUE(epctx_str_is(none, NULL));
    CHECK_TRUE(epctx_str_is(epctx_str_of("x"), "x"));
    CHECK_TRUE(!epctx_str_is(epctx_str_of("x"), "xy"));
    CHECK_TRUE(!epctx_str_is(a, "a"));
    CHECK_TRUE(!epctx_str_eq(a, b));
    CHECK_TRUE(epctx_str_eq(a, a));
}

TEST(strings_apart) {
    epctx_str rest = epctx_str_of("12:ab:"), before;
    uint64_t n;
    CHECK_TRUE(epctx_str_starts(rest, "12:"));
    CHECK_TRUE(epctx_str_starts(epctx_str_of(NULL), ""));
    CHECK_TRUE(!epctx_str_starts(epctx_str_of("1"), "12"));
    CHECK_TRUE(epctx_str_eq_nocase(epctx_str_of("[az]"), epctx_str_of("[AZ]")));
    CHECK_TRUE(!epctx_str_eq_nocase(epctx_str_of("[az]"), epctx_str_of("{AZ}")));
    CHECK_TRUE(!epctx_str_eq_nocase(epctx_str_of("ab"), epctx_str_of("a")));
    CHECK_TRUE(!epctx_str_number(rest, &n));
    CHECK_TRUE(epctx_str_take_number(&rest, &n));
    CHECK_UINT(n, 12);
    CHECK_TRUE(epctx_str_is(rest, ":ab:"));
    CHECK_TRUE(!epctx_str_take_number(&rest, &n));
    CHECK_UINT(epctx_str_cut(&rest, ':').size, 0);
    CHECK_TRUE(epctx_str_is(epctx_str_cut(&rest, ':'), "ab"));
    CHECK_TRUE(rest.data != NULL && rest.size == 0); /* behind the separator is an empty part, */
    CHECK_UINT(epctx_str_cut(&rest, ':').size, 0);
    CHECK_TRUE(rest.data == NULL); /* and nothing behind that */
    CHECK_TRUE(epctx_str_number(epctx_str_of("18446744073709551615"), &n));
    CHECK_UINT(n, UINT64_MAX);
    CHECK_TRUE(epctx_str_number(epctx_str_of("007"), &n));
    CHECK_UINT(n, 7);
    static const char *const none[] = {
        "", "-1", "+1", " 1", "1 ", "0x1", "18446744073709551616", "99999999999999999999", "1\xb2"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        CHECK(!epctx_str_number(epctx_str_of(none[i]), &n), "'%s' is taken for a number", none[i]);
    before = rest = epctx_str_of("184467440737095516160");
    CHECK_TRUE(!epctx_str_take_number(&rest, &n));
    CHECK_TRUE(epctx_str_eq(rest, before));
}

/* The values that XXH64's own self test publishes, over its input: byte i is the top byte of
 * 2654435761 * 11400714785074694797^i. */
TEST(utf8) {
    static const struct {
        const char *text;
        bool good;
    } cases[] = {{"", true},
                 {"ascii \x7f", true},
                 {"\xc3\xa4", true},
                 {"\xc2\x80", true},
                 {"\xdf\xbf", true},
                 {"\xe0\xa0\x80", true},
                 {"\xe2\x82\xac", true},
                 {"\xed\x9f\xbf", true},
                 {"\xef\xbf\xbf", true},
                 {"\xf0\x90\x80\x80", true},
                 {"\xf3\xa0\x80\x80", true},
                 {"\xf4\x8f\xbf\xbf", true},
                 {"\x80", false},
                 {"\xc0\xaf", false},
                 {"\xc1\xbf", false},
                 {"\xc3", false},
                 {"\xc3\x28", false},
                 {"\xc3\xc0", false},
                 {"\xe0\x9f\xbf", false}, /* longer than needed */
                 {"\xe2\x82", false},     /* cut off */
                 {"\xe2\x82\x28", false},
                 {"\xed\xa0\x80", false},     /* a surrogate */
                 {"\xf0\x8f\xbf\xbf", false}, /* longer than needed */
                 {"\xf4\x90\x80\x80", false}, /* above U+10FFFF */
                 {"\xf5\x80\x80\x80", false},
                 {"good\xff", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK(epctx_str_is_utf8(epctx_str_of(cases[i].text)) == cases[i].good,
              "case %zu is not taken for %s", i, cases[i].good ? "UTF-8" : "something else");
}

TEST(hash_published) {
    static const struct {
        size_t size;
        uint64_t seed, want;
    } cases[] = {
        {0, 0, UINT64_C(0xEF46DB3751D8E999)},
        {0, 2654435761u, UINT64_C(0xAC75FDA2929B17EF)},
        {1, 0, UINT64_C(0xE934A84ADB052768)},
        {1, 2654435761u, UINT64_C(0x5014607643A9B4C3)},
        {4, 0, UINT64_C(0x9136A0DCA57457EE)},
        {14, 0, UINT64_C(0x8282DCC4994E35C8)},
        {14, 2654435761u, UINT64_C(0xC3BD6BF63DEB6DF0)},
        {222, 0, UINT64_C(0xB641AE8CB691C174)},
        {222, 2654435761u, UINT64_C(0x20CB8AB7AE10C14A)},
    };
    uint8_t data[222];
    uint64_t state = 2654435761u;
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (uint8_t)(state >> 56);
        state *= UINT64_C(11400714785074694797);
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK(epctx_hash(data, cases[i].size, cases[i].seed) == cases[i].want,
              "size %zu seed %" PRIu64 ": %016" PRIx64 ", expected %016" PRIx64, cases[i].size,
              cases[i].seed, epctx_hash(data, cases[i].size, cases[i].seed), cases[i].want);
    CHECK_UINT(epctx_hash("abc", 3, 0), UINT64_C(0x44BC2CF5AD770999));
    CHECK_UINT(epctx_hash(NULL, 0, 0), UINT64_C(0xEF46DB3751D8E999));
}

/* The same bytes at every alignment. */
TEST(hash_unaligned) {
    uint8_t space[16 + 100];
    uint64_t first = 0;
    for (size_t at = 0; at < 16; at++) {
        uint64_t got;
        for (size_t i = 0; i < 100; i++) space[at + i] = (uint8_t)(i * 7);
        got = epctx_hash(space + at, 100, 5);
        if (at == 0) first = got;
        CHECK_UINT(got, first);
    }
}

TEST(arena_grows) {
    counting c = {0};
    epctx_allocator allocator = counting_allocator(&c);
    epctx_arena arena = {0};
    uint8_t *last = NULL;
    epctx_arena_free(&arena);
    epctx_arena_init(&arena, &allocator);
    for (size_t size = 0; size < 3000; size++) {
        uint8_t *memory = (uint8_t *)epctx_arena_alloc(&arena, size);
        CHECK_TRUE(memory != NULL && memory != last);
        CHECK((uintptr_t)memory % 16 == 0, "size %zu is not aligned", size);
        for (size_t i = 0; i < size; i++) CHECK(memory[i] == 0, "size %zu is not zeroed", size);
        if (size > 0) memset(memory, 0xff, size);
        last = memory;
    }
    CHECK_TRUE(arena.used >= 3000 * 2999 / 2);
#ifndef EPCTX_ARENA_BLOCK
    CHECK(c.calls < 40, "%zu blocks", c.calls);
#endif
    epctx_arena_free(&arena);
    epctx_arena_free(&arena);
    CHECK_UINT(c.alive, 0);
}

static void *sized_alloc(void *user, size_t size) {
    *(size_t *)user += size;
    return malloc(size);
}

static void sized_free(void *user, void *memory) {
    (void)user;
    free(memory);
}

/* The blocks behind a large request are as small as without it. */
TEST(arena_after_a_large_request) {
    size_t all = 0;
    epctx_allocator allocator = {&all, sized_alloc, sized_free};
    epctx_arena arena;
    epctx_arena_init(&arena, &allocator);
    CHECK_TRUE(epctx_arena_alloc(&arena, 8 << 20) != NULL);
    for (size_t i = 0; i < 100; i++) CHECK_TRUE(epctx_arena_alloc(&arena, 16) != NULL);
    CHECK(all < (8 << 20) + 20000, "%zu bytes were asked for", all);
    epctx_arena_free(&arena);
}

TEST(arena_limits) {
    epctx_arena arena;
    epctx_arena_init(&arena, NULL);
    CHECK_TRUE(epctx_arena_alloc(&arena, SIZE_MAX) == NULL);
    CHECK_TRUE(arena.missing > 0);
    CHECK_TRUE(epctx_arena_alloc(&arena, SIZE_MAX - 15) == NULL);
    CHECK_TRUE(epctx_arena_copy(&arena, (epctx_str){"", SIZE_MAX}) == NULL);
    CHECK_TRUE(epctx_arena_array(&arena, SIZE_MAX / 2, 3) == NULL);
    CHECK_TRUE(epctx_arena_array(&arena, 3, SIZE_MAX / 2) == NULL);
    CHECK_TRUE(epctx_arena_array(&arena, 0, 8) != NULL);
    CHECK_TRUE(epctx_arena_array(&arena, 8, 0) != NULL);
    CHECK_STR(epctx_arena_copy(&arena, epctx_str_of("text")), "text");
    CHECK_STR(epctx_arena_copy(&arena, epctx_str_of(NULL)), "");
    epctx_arena_free(&arena);
}

/* Every size of buffer and every misalignment: inside the buffer or NULL. */
TEST(arena_fixed) {
    uint8_t space[512 + 16];
    for (size_t skip = 0; skip < 16; skip++) {
        for (size_t size = 0; size <= 512; size++) {
            epctx_arena arena;
            uint8_t *memory;
            uint8_t *buffer = space + skip;
            epctx_arena_init_fixed(&arena, buffer, size);
            for (size_t want = 0; (memory = (uint8_t *)epctx_arena_alloc(&arena, want)); want++) {
                CHECK_TRUE(memory >= buffer && memory + want <= buffer + size);
                CHECK_TRUE((uintptr_t)memory % 16 == 0);
                if (want > 0) memset(memory, 0xa5, want);
            }
            CHECK_TRUE(arena.missing > 0);
            CHECK_TRUE(arena.used <= size);
            epctx_arena_free(&arena);
        }
    }
}

TEST(arena_fixed_missing) {
    static uint8_t space[1024] __attribute__((aligned(16)));
    epctx_arena arena;
    epctx_arena_init_fixed(&arena, space, 512);
    CHECK_TRUE(epctx_arena_alloc(&arena, 1000) == NULL);
    CHECK_TRUE(arena.missing >= 1000 - 512);
    /* That much more is enough. */
    {
        size_t enough = 512 + arena.missing;
        CHECK_TRUE(enough <= sizeof space);
        epctx_arena_init_fixed(&arena, space, enough);
        CHECK_TRUE(epctx_arena_alloc(&arena, 1000) != NULL);
    }
    epctx_arena_init_fixed(&arena, NULL, 0);
    CHECK_TRUE(epctx_arena_alloc(&arena, 1) == NULL);
}

TEST(arena_allocator_fails) {
    for (size_t n = 1; n < 20; n++) {
        counting c = {0};
        epctx_allocator allocator = counting_allocator(&c);
        epctx_arena arena;
        size_t got = 0;
        c.fail_at = n;
        epctx_arena_init(&arena, &allocator);
        while (got < 1000 && epctx_arena_alloc(&arena, 100000) != NULL) got++;
        CHECK(got < 1000 && c.calls == n, "%zu blocks of %zu: %zu served", c.calls, n, got);
        epctx_arena_free(&arena);
        CHECK_UINT(c.alive, 0);
    }
}

TEST(buffer) {
    counting c = {0};
    epctx_allocator allocator = counting_allocator(&c);
    epctx_buffer b;
    epctx_buffer_init(&b, &allocator);
    for (int i = 0; i < 5000; i++) {
        uint8_t byte = (uint8_t)i;
        CHECK_INT(epctx_buffer_append(&b, &byte, 1), EPCTX_OK);
    }
    CHECK_INT(epctx_buffer_append(&b, NULL, 3), EPCTX_OK);
    CHECK_INT(epctx_buffer_append(&b, NULL, 0), EPCTX_OK);
    CHECK_UINT(b.size, 5003);
    for (size_t i = 0; i < 5000; i++) CHECK_TRUE(b.data[i] == (uint8_t)i);
    CHECK_TRUE(b.data[5000] == 0 && b.data[5002] == 0);
    c.fail_at = 1;
    CHECK_INT(epctx_buffer_append(&b, NULL, 100000), EPCTX_ERR_NOMEM);
    CHECK_INT(epctx_buffer_append(&b, NULL, SIZE_MAX), EPCTX_ERR_NOMEM);
    CHECK_INT(epctx_buffer_append(&b, NULL, SIZE_MAX - 5003), EPCTX_ERR_NOMEM);
    CHECK_UINT(b.size, 5003);
    CHECK_TRUE(b.data[4999] == (uint8_t)4999);
    epctx_buffer_free(&b);
    epctx_buffer_free(&b);
    CHECK_UINT(c.alive, 0);
}

TEST(map) {
    enum { COUNT = 5000 };
    static char names[COUNT][12];
    epctx_arena arena;
    epctx_map map;
    epctx_arena_init(&arena, NULL);
    epctx_map_init(&map, &arena);
    CHECK_UINT(epctx_map_get(&map, epctx_str_of("x")), EPCTX_MAP_NONE);
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "key%u", i);
        CHECK_INT(epctx_map_put(&map, epctx_str_of(names[i]), i), EPCTX_OK);
    }
    for (uint32_t i = 0; i < COUNT; i++) CHECK_UINT(epctx_map_get(&map, epctx_str_of(names[i])), i);
    CHECK_UINT(epctx_map_get(&map, epctx_str_of("key5000")), EPCTX_MAP_NONE);
    CHECK_INT(epctx_map_put(&map, epctx_str_of("key7"), 70), EPCTX_OK);
    CHECK_UINT(epctx_map_get(&map, epctx_str_of("key7")), 70);
    CHECK_UINT(map.count, COUNT);
    /* The empty key and keys with a NUL are keys like any other. */
    CHECK_UINT(epctx_map_get(&map, epctx_str_of("")), EPCTX_MAP_NONE);
    CHECK_INT(epctx_map_put(&map, epctx_str_of(""), 1), EPCTX_OK);
    CHECK_UINT(epctx_map_get(&map, epctx_str_of(NULL)), 1);
    {
        epctx_str a = {"k\0a", 3}, b = {"k\0b", 3};
        CHECK_INT(epctx_map_put(&map, a, 2), EPCTX_OK);
        CHECK_UINT(epctx_map_get(&map, a), 2);
        CHECK_UINT(epctx_map_get(&map, b), EPCTX_MAP_NONE);
    }
    epctx_arena_free(&arena);
}

/* A full arena: what went in before stays. */
TEST(map_full) {
    static uint8_t space[2000];
    static char names[200][8];
    epctx_arena arena;
    epctx_map map;
    uint32_t count = 0;
    epctx_arena_init_fixed(&arena, space, sizeof space);
    epctx_map_init(&map, &arena);
    for (uint32_t i = 0; i < 200; i++) {
        snprintf(names[i], sizeof names[i], "k%u", i);
        if (epctx_map_put(&map, epctx_str_of(names[i]), i) != EPCTX_OK) break;
        count++;
    }
    CHECK_TRUE(count > 0 && count < 200);
    for (uint32_t i = 0; i < count; i++) CHECK_UINT(epctx_map_get(&map, epctx_str_of(names[i])), i);
    CHECK_UINT(epctx_map_get(&map, epctx_str_of(names[count])), EPCTX_MAP_NONE);
}

TEST(fail_formats) {
    epctx_error e;
    epctx_str s = {"a\0b\n", 4};
    epctx_error_clear(&e);
    CHECK_INT(epctx_fail(&e, EPCTX_ERR_IO, "%s|%S|%d|%u|%x|%%|%d", "text", &s, INT64_MIN,
                         UINT64_MAX, (uint64_t)0xbeef, (int64_t)0),
              EPCTX_ERR_IO);
    CHECK_STR(e.message, "text|a\\x00b\\x0a|-9223372036854775808|18446744073709551615|beef|%|0");
    CHECK_INT(e.status, EPCTX_ERR_IO);
    CHECK_UINT(e.offset, EPCTX_NO_OFFSET);
    CHECK_INT(epctx_fail(NULL, EPCTX_ERR_IO, "%d", (int64_t)1), EPCTX_ERR_IO);
    /* No text, DEL, and a format that ends early. */
    epctx_error_clear(&e);
    CHECK_INT(epctx_fail(&e, EPCTX_ERR_IO, "%s\x7f%", (const char *)NULL), EPCTX_ERR_IO);
    CHECK_STR(e.message, "\x7f");
    epctx_error_clear(NULL);
}

TEST(text) {
    char memory[32];
    epctx_text text = epctx_text_of(memory, sizeof memory);
    CHECK_STR(memory, "");
    epctx_text_put_char(&text, 'a');
    epctx_text_put(&text, epctx_str_of("\xff\n"));
    epctx_text_put_shown(&text, epctx_str_of("\n"));
    epctx_text_put_number(&text, 0);
    epctx_text_put_format(&text, "%x%x", (uint64_t)0xb, (uint64_t)0xbeef);
    epctx_text_put_format(&text, " %u%%", (uint64_t)5);
    CHECK_STR(memory, "a\xff\n\\x0a0bbeef 5%");
    CHECK_TRUE(epctx_str_is(epctx_text_str(&text), memory));
    CHECK_TRUE(!text.cut);
    epctx_text_put(&text, epctx_str_of("00000000000000000000"));
    CHECK_TRUE(text.cut);
    CHECK_UINT(text.size, sizeof memory - 1);
    CHECK_STR(memory + 16, "000000000000000");
    epctx_text_put_char(&text, 'x');
    CHECK_UINT(strlen(memory), sizeof memory - 1);
    /* What does not fit at all, and no buffer. */
    text = epctx_text_of(memory, 1);
    epctx_text_put_shown(&text, epctx_str_of("x"));
    CHECK_STR(memory, "");
    CHECK_TRUE(text.cut);
    text = epctx_text_of(NULL, 100);
    epctx_text_put_number(&text, UINT64_MAX);
    CHECK_UINT(text.size, 0);
    CHECK_TRUE(text.cut);
    CHECK_TRUE(epctx_text_str(&text).data == NULL);
    memory[0] = 'x';
    text = epctx_text_of(memory, 0);
    epctx_text_put_shown(&text, epctx_str_of("ab"));
    CHECK_TRUE(text.cut && memory[0] == 'x');
}

TEST(first_error_wins) {
    epctx_error e;
    epctx_str node = epctx_str_of("n1");
    epctx_str other = epctx_str_of("n2");
    epctx_error_clear(&e);
    epctx_blame(&e, "early.onnx", &node, "early"); /* there is no error yet */
    CHECK_STR(e.message, "");
    CHECK_STR(e.file, "");
    epctx_fail(&e, EPCTX_ERR_PATH, "first");
    CHECK_INT(epctx_fail(&e, EPCTX_ERR_IO, "second"), EPCTX_ERR_IO);
    CHECK_INT(e.status, EPCTX_ERR_PATH);
    CHECK_STR(e.message, "first");
    epctx_blame(&e, NULL, NULL, "attr");
    epctx_blame(&e, "m.onnx", &node, NULL);
    epctx_blame(&e, "other.onnx", &other, "other");
    CHECK_STR(e.message, "m.onnx: node 'n1': attribute 'attr': first");
    CHECK_STR(e.file, "m.onnx");
    CHECK_STR(e.node, "n1");
    CHECK_STR(e.attribute, "attr");
    epctx_error_clear(&e);
    CHECK_STR(e.message, "");
    CHECK_INT(e.status, EPCTX_OK);
}

/* What a terminal, a log or an editor would obey or hide, and what is no UTF-8, is written as \xHH;
 * what is printable stays, in whatever script. */
TEST(hostile_text) {
    static const struct {
        const char *text, *want; /* NULL: as it is */
    } cases[] = {
        /* clang-format off */
        {"\x1b[2J", "\\x1b[2J"},
        {"a\x7f\r\n\tb", "a\\x7f\\x0d\\x0a\\x09" "b"},
        {"a\xc2\x9b" "2J", "a\\xc2\\x9b" "2J"}, /* CSI as one character */
        {"a\xc2\x80\xc2\x85\xc2\x9f" "b", "a\\xc2\\x80\\xc2\\x85\\xc2\\x9f" "b"},
        {"a\x9b" "2J", "a\\x9b" "2J"},              /* CSI as one byte */
        {"\xd8\x9c" "a", "\\xd8\\x9c" "a"},        /* U+061C */
        {"\xe2\x80\x8e\xe2\x80\x8f", "\\xe2\\x80\\x8e\\xe2\\x80\\x8f"},
        {"a\xe2\x80\xaa\xe2\x80\xae" "b", "a\\xe2\\x80\\xaa\\xe2\\x80\\xae" "b"},
        {"\xe2\x81\xa6\xe2\x81\xa9", "\\xe2\\x81\\xa6\\xe2\\x81\\xa9"},
        {"\xe2\x80\xa8\xe2\x80\xa9", "\\xe2\\x80\\xa8\\xe2\\x80\\xa9"},
        {"a\xe2\x80\x8b" "b\xe2\x81\xa0", "a\\xe2\\x80\\x8b" "b\\xe2\\x81\\xa0"}, /* zero width */
        {"\xef\xbb\xbf" "a", "\\xef\\xbb\\xbf" "a"},
        {"a\xf3\xa0\x81\xa1", "a\\xf3\\xa0\\x81\\xa1"}, /* a tag */
        {"a\xc2\xad" "b", "a\\xc2\\xad" "b"},
        {"a\xe2\x80\x8d" "b\xe2\x80\x8c", "a\\xe2\\x80\\x8d" "b\\xe2\\x80\\x8c"},
        /* clang-format on */
        {"\xe2\x80\x94\xe2\x80\x8d", "\xe2\x80\x94\\xe2\\x80\\x8d"}, /* a dash joins nothing */
        {"\xef\xbb\xbf\xe2\x80\x8d", "\\xef\\xbb\\xbf\\xe2\\x80\\x8d"},
        {"\xc3", "\\xc3"},
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
        {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
        {"caf\xe9", "caf\\xe9"},
        {"C:\\builds\\x9b.onnx", NULL},
        {"caf\xc3\xa9 \xc2\xa0\xce\xb1 \xd0\x96 \xd7\xa9 \xd8\xb9 \xe6\xbc\xa2 \xed\x95\x9c", NULL},
        {"\xd9\x85\xdb\x8c\xe2\x80\x8c\xd8\xae", NULL},         /* Persian, with its joiner */
        {"\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9", NULL}, /* an emoji of two */
        {"\xe2\x9d\xa4\xef\xb8\x8f\xe2\x80\x8d\xf0\x9f\x94\xa5", NULL},
        {"\xe0\xa4\x95\xe0\xa5\x8d\xe2\x80\x8d\xe0\xa4\xb7", NULL}, /* Devanagari */
        {"\xe2\x82\xac\xe2\x80\x9c\xe2\x80\xa6\xe2\x84\xa2", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        epctx_str text = epctx_str_of(cases[i].text);
        const char *want = cases[i].want != NULL ? cases[i].want : cases[i].text;
        epctx_error e;
        epctx_error_clear(&e);
        epctx_fail(&e, EPCTX_ERR_IO, "%S", &text);
        CHECK(strcmp(e.message, want) == 0, "case %zu: '%s', expected '%s'", i, e.message, want);
        epctx_error_clear(&e);
        epctx_fail(&e, EPCTX_ERR_IO, "m");
        epctx_blame(&e, cases[i].text, &text, cases[i].text);
        CHECK(strcmp(e.file, want) == 0 && strcmp(e.node, want) == 0 &&
                  strcmp(e.attribute, want) == 0,
              "case %zu: '%s' in the members of an error", i, e.node);
        CHECK_HAS(e.message, want);
    }
}

/* However many bytes a character has and wherever a buffer ends, none is cut. */
TEST(long_names_of_wide_characters) {
    static const char *const letters[] = {"\xc3\xa9", "\xe6\xbc\xa2", "\xf0\x9f\x91\xa8", "\x9b"};
    for (size_t i = 0; i < 4; i++) {
        for (size_t lead = 0; lead < 8; lead++) {
            char name[1001] = "";
            epctx_error e;
            epctx_str node;
            memset(name, 'n', lead);
            while (strlen(name) + strlen(letters[i]) < sizeof name) strcat(name, letters[i]);
            node = epctx_str_of(name);
            epctx_error_clear(&e);
            epctx_fail(&e, EPCTX_ERR_GRAPH, "%S%S %S%S the reason", &node, &node, &node, &node);
            CHECK_TRUE(epctx_str_is_utf8(epctx_str_of(e.message)));
            epctx_blame(&e, name, &node, name); /* cuts the message */
            CHECK_TRUE(epctx_str_is_utf8(epctx_str_of(e.message)));
            epctx_error_clear(&e);
            epctx_fail(&e, EPCTX_ERR_GRAPH, "%S the reason", &node);
            CHECK_HAS(e.message, "the reason");
            epctx_blame(&e, name, &node, name);
            CHECK_TRUE(epctx_str_is_utf8(epctx_str_of(e.message)));
            CHECK_TRUE(epctx_str_is_utf8(epctx_str_of(e.file)));
            CHECK_TRUE(epctx_str_is_utf8(epctx_str_of(e.node)));
            CHECK_TRUE(epctx_str_is_utf8(epctx_str_of(e.attribute)));
        }
    }
}

/* A message that is cut and has no whole character, from a callback of the application. */
TEST(message_without_characters) {
    epctx_error e;
    epctx_error_clear(&e);
    memset(e.message, 0x80, sizeof e.message - 1);
    e.message[sizeof e.message - 1] = '\0';
    e.status = EPCTX_ERR_IO;
    epctx_blame(&e, "m.onnx", NULL, NULL);
    CHECK_STR(e.message, "m.onnx: ");
}

/* Names of any length end up terminated, and never push the reason out of the message. */
TEST(long_names) {
    static char name[5000];
    for (size_t size = 0; size + 1 < sizeof name; size += size < 700 ? 1 : 100) {
        epctx_error e;
        epctx_str node = {name, size};
        memset(name, 'n', size);
        name[size] = '\0';
        memset(&e, 0xee, sizeof e);
        epctx_error_clear(&e);
        epctx_fail(&e, EPCTX_ERR_GRAPH, "name %S is bad: the reason", &node);
        CHECK_HAS(e.message, "the reason");
        epctx_blame(&e, name, &node, name);
        CHECK_TRUE(memchr(e.message, '\0', sizeof e.message) != NULL);
        CHECK_TRUE(memchr(e.file, '\0', sizeof e.file) != NULL);
        CHECK_TRUE(memchr(e.node, '\0', sizeof e.node) != NULL);
        CHECK_TRUE(memchr(e.attribute, '\0', sizeof e.attribute) != NULL);
    }
}

/* The inverse of x ^= x >> bits. */
static uint64_t unshift(uint64_t x, unsigned bits) {
    uint64_t y = x;
    for (unsigned i = 0; i < 64; i += bits) y = x ^ y >> bits;
    return y;
}

static uint64_t rotate(uint64_t x, unsigned bits) {
    return x << bits | x >> (64 - bits);
}

/* XXH64 of eight bytes can be run backwards: the bytes whose hash (seed 0) is `h`. */
static void bytes_with_hash(uint64_t h, uint8_t out[8]) {
    const uint64_t p1 = UINT64_C(0x9E3779B185EBCA87), p2 = UINT64_C(0xC2B2AE3D27D4EB4F);
    const uint64_t p3 = UINT64_C(0x165667B19E3779F9), p4 = UINT64_C(0x85EBCA77C2B2AE63);
    const uint64_t p5 = UINT64_C(0x27D4EB2F165667C5);
    h = unshift(h, 32) * forged_inverse(p3);
    h = unshift(h, 29) * forged_inverse(p2);
    h = rotate((unshift(h, 33) - p4) * forged_inverse(p1), 64 - 27) ^ (p5 + 8);
    h = rotate(h * forged_inverse(p1), 64 - 31) * forged_inverse(p2);
    for (int i = 0; i < 8; i++) out[i] = (uint8_t)(h >> 8 * i);
}

/* The product of count and size wraps round to what there is room for. */
TEST(arena_array_wraps) {
    epctx_arena arena;
    epctx_arena_init(&arena, NULL);
    CHECK_TRUE(epctx_arena_array(&arena, SIZE_MAX / 4 + 1, 4) == NULL);
    CHECK_TRUE(epctx_arena_array(&arena, SIZE_MAX / 8 + 2, 8) == NULL);
    CHECK_TRUE(arena.missing == SIZE_MAX);
    epctx_arena_free(&arena);
}

/* Puts `count` keys, looks each up, and one that is not there: 5 s are hundreds of times as much as
 * that takes, and a fraction of what a list of all keys would. */
static void check_keys(const char *what, const char *keys, size_t size, uint32_t count) {
    epctx_arena arena;
    epctx_map map;
    clock_t begin = clock();
    uint32_t i;
    epctx_arena_init(&arena, NULL);
    epctx_map_init(&map, &arena);
    for (i = 0; i < count; i++) {
        epctx_str key = {keys + i * size, size};
        CHECK(epctx_map_get(&map, key) == EPCTX_MAP_NONE,
              "%s: key %" PRIu32 " is there before it is put", what, i);
        CHECK_INT(epctx_map_put(&map, key, i), EPCTX_OK);
        CHECK((clock() - begin) / CLOCKS_PER_SEC < 5, "%s: key %" PRIu32 " after 5 s", what, i);
    }
    for (i = 0; i < count; i++) {
        epctx_str key = {keys + i * size, size};
        CHECK_UINT(epctx_map_get(&map, key), i);
        key.size--;
        CHECK_UINT(epctx_map_get(&map, key), EPCTX_MAP_NONE);
    }
    epctx_arena_free(&arena);
}

/* Names made so that they all fall on one place of a table whose hash is known. */
TEST(map_crafted_keys) {
    enum { COUNT = 100000 };
    uint8_t(*keys)[8] = (uint8_t(*)[8])malloc(COUNT * sizeof *keys);
    CHECK_TRUE(keys != NULL);
    for (uint32_t i = 0; i < COUNT; i++) bytes_with_hash((uint64_t)i << 32, keys[i]);
    CHECK_TRUE(epctx_hash(keys[7], 8, 0) == UINT64_C(7) << 32);
    check_keys("one slot", (const char *)keys, sizeof *keys, COUNT);
    free(keys);
}

/* A table that hashes with XXH64 and a secret seed is a list all the same. */
TEST(map_one_hash) {
    char(*keys)[FORGED_SIZE] = (char(*)[FORGED_SIZE])malloc(FORGED_COUNT * sizeof *keys);
    uint32_t i;
    CHECK_TRUE(keys != NULL);
    for (i = 0; i < FORGED_COUNT; i++) forge(keys[i], i);
    for (i = 1; i < FORGED_COUNT; i++)
        CHECK_TRUE(epctx_hash(keys[i], FORGED_SIZE, 0) == epctx_hash(keys[0], FORGED_SIZE, 0));
    CHECK_TRUE(epctx_hash(keys[1], FORGED_SIZE, UINT64_C(0x7f1234567890)) ==
               epctx_hash(keys[FORGED_COUNT - 1], FORGED_SIZE, UINT64_C(0x7f1234567890)));
    check_keys("one hash", keys[0], FORGED_SIZE, FORGED_COUNT);
    free(keys);
}

int main(int argc, char **argv) {
    RUN(status_names);
    RUN(status_to_ort);
    RUN(strings);
    RUN(strings_apart);
    RUN(utf8);
    RUN(hash_published);
    RUN(hash_unaligned);
    RUN(arena_grows);
    RUN(arena_after_a_large_request);
    RUN(arena_limits);
    RUN(arena_fixed);
    RUN(arena_fixed_missing);
    RUN(arena_allocator_fails);
    RUN(buffer);
    RUN(map);
    RUN(map_full);
    RUN(fail_formats);
    RUN(text);
    RUN(first_error_wins);
    RUN(hostile_text);
    RUN(long_names_of_wide_characters);
    RUN(message_without_characters);
    RUN(long_names);
    RUN(arena_array_wraps);
    RUN(map_crafted_keys);
    RUN(map_one_hash);
    return test_end();
}
