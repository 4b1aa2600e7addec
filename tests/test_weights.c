/* >>weights: what is equal in every byte is stored once, and nothing else is. */
#define _XOPEN_SOURCE 700
#include "epctx.h"
#include "forged.h"
#include "test.h"

/* A table over a binary of its own. */
typedef struct fixture {
    epctx_buffer binary;
    epctx_weights weights;
    epctx_weight got;
    epctx_error error;
} fixture;

static bool begin_seeded(fixture *f, uint64_t seed) {
    epctx_weights_opts opts = {0};
    memset(f, 0, sizeof *f);
    epctx_buffer_init(&f->binary, NULL);
    opts.binary = &f->binary;
    opts.seed = seed;
    return epctx_weights_init(&f->weights, &opts, &f->error) == EPCTX_OK;
}

static bool begin(fixture *f) {
    return begin_seeded(f, 0);
}

static epctx_status add(fixture *f, const void *data, size_t size) {
    return epctx_weights_add(&f->weights, data, size, 64, 0, &f->got, &f->error);
}

static void end(fixture *f) {
    epctx_weights_free(&f->weights);
    epctx_buffer_free(&f->binary);
}

/* Bytes that depend on `seed` alone. */
static void fill(uint8_t *data, size_t size, uint32_t seed) {
    size_t i;
    for (i = 0; i < size; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (uint8_t)(seed >> 24);
    }
}

TEST(stored_once) {
    uint8_t a[100], b[100];
    epctx_weights_stats stats;
    fixture f;
    CHECK_TRUE(begin(&f));
    fill(a, sizeof a, 1);
    fill(b, sizeof b, 2);
    CHECK_INT(add(&f, a, sizeof a), EPCTX_OK);
    CHECK_TRUE(f.got.fresh);
    CHECK_UINT(f.got.offset, 0);
    CHECK_INT(add(&f, b, sizeof b), EPCTX_OK);
    CHECK_TRUE(f.got.fresh);
    CHECK_UINT(f.got.offset, 128);
    CHECK_UINT(f.got.index, 1);
    CHECK_INT(add(&f, a, sizeof a), EPCTX_OK); /* no name is asked for: content decides */
    CHECK_TRUE(!f.got.fresh);
    CHECK_UINT(f.got.offset, 0);
    CHECK_UINT(f.got.index, 0);
    CHECK_UINT(f.binary.size, 228);
    CHECK_MEM(f.binary.data, 100, a, 100);
    CHECK_MEM(f.binary.data + 128, 100, b, 100);
    stats = f.weights.stats;
    CHECK_UINT(stats.added, 3);
    CHECK_UINT(stats.added_bytes, 300);
    CHECK_UINT(stats.stored, 2);
    CHECK_UINT(stats.stored_bytes, 200);
    CHECK_UINT(stats.shared, 1);
    CHECK_UINT(stats.shared_bytes, 100);
    CHECK_UINT(stats.padding, 28);
    CHECK_TRUE(epctx_weights_at(&f.weights, 1, &f.got));
    CHECK_UINT(f.got.offset, 128);
    CHECK_UINT(f.got.size, 100);
    CHECK_TRUE(!epctx_weights_at(&f.weights, 2, &f.got));
    end(&f);
}

/* Sizes alone, sizes again, and weights that agree in the sample: each is found, also after the
 * table has grown, whether its size was seen once or often. */
TEST(found_again) {
    enum { COUNT = 300, ALIKE = 3, SIZE = 70000 }; /* more than is read at once */
    static uint8_t data[SIZE];
    fixture f;
    int round;
    size_t i;
    CHECK_TRUE(begin(&f));
    for (round = 0; round < 3; round++) {
        fill(data, sizeof data, 11);
        for (i = 0; i < COUNT; i++) {
            CHECK_INT(add(&f, data, 1 + i), EPCTX_OK);
            CHECK(f.got.fresh == (round == 0) && f.got.index == i, "size %zu, round %d: %s", 1 + i,
                  round, f.got.fresh ? "stored twice" : "another weight");
        }
        for (i = 0; i < ALIKE; i++) {
            data[17] = (uint8_t)i; /* between the first two blocks of the sample */
            CHECK_INT(add(&f, data, SIZE), EPCTX_OK);
            CHECK(f.got.fresh == (round == 0) && f.got.index == COUNT + i,
                  "weight %zu of one sample, round %d: %s", i, round,
                  f.got.fresh ? "stored twice" : "another weight");
        }
    }
    end(&f);
}

/* Bytes that stay with the caller: an offset is a place in `user`. */
static epctx_status fetch_in_place(void *user, uint64_t offset, size_t size, const uint8_t **data,
                                   epctx_error *error) {
    (void)size, (void)error;
    *data = (const uint8_t *)user + offset;
    return EPCTX_OK;
}

/* Is `other`, of `size` bytes as `data`, another weight? */
static bool told_apart(uint8_t *data, const uint8_t *other, size_t size) {
    epctx_weights_opts opts = {0};
    epctx_weights weights;
    epctx_weight got;
    epctx_error error;
    bool fresh;
    opts.fetch_fn = fetch_in_place;
    opts.user = data;
    fresh = epctx_weights_init(&weights, &opts, &error) == EPCTX_OK &&
            epctx_weights_add(&weights, data, size, 64, 0, &got, &error) == EPCTX_OK && got.fresh &&
            epctx_weights_add(&weights, other, size, 64, 0, &got, &error) == EPCTX_OK && got.fresh;
    epctx_weights_free(&weights);
    return fresh;
}

/* One byte anywhere is enough to be another weight, in the sample or not: every byte of each size
 * in turn. Of large ones, which are read in pieces (the first has 4096 bytes), those around
 * the ends of pieces and of the blocks of the sample, and every 97th. */
TEST(every_byte_counts) {
    static const size_t sizes[] = {1, 5, 64, 256, 257, 1025, 5000, 65537, 200000};
    static uint8_t data[200000], other[200000];
    size_t i, at;
    fill(data, sizeof data, 7);
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const size_t size = sizes[i], step = (size - 16) / 15; /* of the sample's blocks */
        memcpy(other, data, size);
        CHECK(!told_apart(data, other, size), "size %zu: equal bytes are stored twice", size);
        for (at = 0; at < size; at++) {
            const bool edge = (at + 2 - 4096) % 65536 < 4 || at + 2 >= size || (at + 1) % step < 18;
            if (size > 10000 && !edge && at % 97 != 0) continue;
            other[at] ^= (uint8_t)(1u << at % 8);
            CHECK(told_apart(data, other, size), "size %zu: a change of byte %zu is not seen", size,
                  at);
            other[at] = data[at];
        }
    }
}

static void put_le64(uint8_t *at, uint64_t value) {
    for (int i = 0; i < 8; i++) at[i] = (uint8_t)(value >> 8 * i);
}

/* `other` becomes `data` with two numbers changed, in one lane of two neighbouring stripes of 32
 * bytes from `at` on: what the first does to the hash of a sample the second takes back.
 * Nobody should meet such weights by accident, but anybody can make them. */
static void collide(const uint8_t *data, uint8_t *other, size_t size, size_t at) {
    const uint64_t p1 = UINT64_C(0x9e3779b185ebca87), p2 = UINT64_C(0xc2b2ae3d27d4eb4f);
    uint64_t inverse = 1, first = 0, second = 0;
    for (int i = 0; i < 6; i++) inverse *= 2 - p2 * inverse; /* of p2, modulo 2^64 */
    memcpy(other, data, size);
    for (int i = 0; i < 8; i++) {
        first |= (uint64_t)data[at + (size_t)i] << 8 * i;
        second |= (uint64_t)data[at + 32 + (size_t)i] << 8 * i;
    }
    put_le64(other + at, first + (UINT64_C(1) << 63) * inverse);
    for (int sign = 0; sign < 2; sign++) {
        const uint64_t step = (UINT64_C(1) << 30) * p1 * inverse;
        put_le64(other + at + 32, sign ? second + step : second - step);
        if (epctx_hash(other, size, size * p1) == epctx_hash(data, size, size * p1)) break;
    }
}

/* Hashes only find candidates: weights whose hashes agree are compared. Of small ones the sample is
 * everything; of large ones several have the same sample here. */
TEST(equal_hashes) {
    static const size_t sizes[] = {64, 100, 256, 6400};
    static uint8_t data[6400], other[6400];
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const size_t size = sizes[i];
        fixture f;
        size_t count = 0;
        CHECK_TRUE(begin(&f));
        fill(data, size, 5);
        for (; size > 256 && count < 8; count++) {
            data[20] = (uint8_t)count;
            CHECK_INT(add(&f, data, size), EPCTX_OK);
        }
        data[20] = 99;
        collide(data, other, size, size > 256 ? 32 : 0);
        CHECK_INT(add(&f, data, size), EPCTX_OK);
        CHECK_TRUE(f.got.fresh && f.got.index == count);
        CHECK_INT(add(&f, other, size), EPCTX_OK);
        CHECK(f.got.fresh && f.got.index == count + 1,
              "size %zu: another weight of the same hash is taken for this one", size);
        CHECK_MEM(f.binary.data + f.got.offset, size, other, size);
        CHECK_INT(add(&f, data, size), EPCTX_OK);
        CHECK_TRUE(!f.got.fresh && f.got.index == count);
        CHECK_INT(add(&f, other, size), EPCTX_OK);
        CHECK_TRUE(!f.got.fresh && f.got.index == count + 1);
        end(&f);
    }
}

/* The hash of all bytes of a weight is another one's hash of the sample. */
TEST(one_key) {
    enum { SIZE = 255, REST = SIZE / 64 * 64 };
    static const uint64_t p1 = UINT64_C(0x9e3779b185ebca87), p2 = UINT64_C(0xc2b2ae3d27d4eb4f),
                          p3 = UINT64_C(0x165667b19e3779f9), p4 = UINT64_C(0x85ebca77c2b2ae63),
                          p5 = UINT64_C(0x27d4eb2f165667c5);
    for (int last = 0; last < 2; last++) { /* in the order of bytes, before the others or behind */
        uint8_t data[3][SIZE + 1] = {{0}};
        fixture f;
        CHECK_TRUE(begin(&f));
        memset(data[0], last ? 0xff : 0, SIZE);
        /* Factors 0 empty the four lanes, then factors 1 fill them. */
        /* clang-format off */
        const uint64_t words[] = {p1, 0, p2, 0, p3, 0, p5, 0,
                                  p1 ^ 1, p4 ^ 1, p2 ^ 1, p1 ^ 1, p3 ^ 1,
                                  epctx_hash(data[0], SIZE, SIZE * p1) ^ p2 ^ p5, p5 ^ 1, 1};
        /* clang-format on */
        for (size_t i = 0; i < 16; i++) put_le64(data[2] + REST - 64 + 8 * i, words[i]);
        data[2][16] = 0x80; /* neither the first nor the last */
        collide(data[2], data[1], SIZE, 0);
        for (int round = 0; round < 2; round++)
            for (size_t i = 0; i < 3; i++) {
                CHECK_INT(add(&f, data[i], SIZE), EPCTX_OK);
                CHECK(f.got.fresh == (round == 0) && f.got.index == i, "weight %zu, round %d: %s",
                      i, round, f.got.fresh ? "stored twice" : "another weight");
            }
        end(&f);
    }
}

/* Weights that differ in size or sample are read no further. */
TEST(samples_tell_most_apart) {
    uint8_t data[3000];
    epctx_weights_stats stats;
    fixture f;
    size_t size;
    CHECK_TRUE(begin(&f));
    fill(data, sizeof data, 3);
    for (size = 1; size <= sizeof data; size++) CHECK_INT(add(&f, data, size), EPCTX_OK);
    stats = f.weights.stats;
    CHECK_UINT(stats.stored, sizeof data);
    CHECK_UINT(stats.sampled, sizeof data);
    CHECK_TRUE(stats.hashed_bytes <= sizeof data * EPCTX_WEIGHTS_SAMPLE);
    CHECK_UINT(stats.compared_bytes, 0);
    /* The second of a size. */
    data[0] ^= 1;
    CHECK_INT(add(&f, data, 2000), EPCTX_OK);
    stats = f.weights.stats;
    CHECK_UINT(stats.sampled, sizeof data + 1);
    CHECK_TRUE(stats.hashed_bytes <= (sizeof data + 1) * EPCTX_WEIGHTS_SAMPLE);
    CHECK_UINT(stats.compared_bytes, 0);
    end(&f);
}

TEST(alignment) {
    uint8_t data[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    fixture f;
    CHECK_TRUE(begin(&f));
    CHECK_INT(epctx_weights_add(&f.weights, data, 3, 0, 0, &f.got, &f.error), EPCTX_OK);
    CHECK_INT(epctx_weights_add(&f.weights, data, 10, 1, 0, &f.got, &f.error), EPCTX_OK);
    CHECK_UINT(f.got.offset, 3);
    /* The bytes are there, but not where they are wanted. */
    CHECK_INT(epctx_weights_add(&f.weights, data, 10, 16, 0, &f.got, &f.error), EPCTX_OK);
    CHECK_TRUE(f.got.fresh);
    CHECK_UINT(f.got.offset, 16);
    CHECK_INT(epctx_weights_add(&f.weights, data, 10, 8, 0, &f.got, &f.error), EPCTX_OK);
    CHECK_TRUE(!f.got.fresh);
    CHECK_UINT(f.got.offset, 16);
    CHECK_UINT(f.binary.size, 26);
    CHECK_INT(epctx_weights_add(&f.weights, data, 10, 3, 0, &f.got, &f.error), EPCTX_ERR_ARG);
    CHECK_HAS(f.error.message, "a power of two");
    CHECK_INT(epctx_weights_add(&f.weights, NULL, 10, 4, 0, &f.got, &f.error), EPCTX_ERR_ARG);
    CHECK_UINT(f.binary.size, 26);
    end(&f);
}

TEST(kinds_share_nothing) {
    static uint8_t data[5000];
    fixture f;
    CHECK_TRUE(begin(&f));
    /* More kinds than places in a table of hashes, twice: they must not be told apart by luck. */
    for (int round = 0; round < 2; round++) {
        for (uint32_t kind = 0; kind < 300; kind++) {
            CHECK_INT(epctx_weights_add(&f.weights, data, 10, 1, kind, &f.got, &f.error), EPCTX_OK);
            CHECK(f.got.fresh == (round == 0) && f.got.offset == 10 * kind && f.got.kind == kind,
                  "kind %" PRIu32 ", round %d: %s, of kind %" PRIu32, kind, round,
                  f.got.fresh ? "fresh" : "shared", f.got.kind);
        }
    }
    /* The same weights of one sample, in each kind. */
    for (uint32_t i = 0; i < 12; i++) {
        const uint32_t kind = i * 2 % 3;
        data[17] = (uint8_t)(i / 3);
        CHECK_INT(epctx_weights_add(&f.weights, data, sizeof data, 1, kind, &f.got, &f.error),
                  EPCTX_OK);
        CHECK(f.got.fresh && f.got.kind == kind,
              "weight %" PRIu32 " of kind %" PRIu32 ": one of kind %" PRIu32, i / 3, kind,
              f.got.kind);
    }
    end(&f);
}

TEST(nothing_at_all) {
    fixture f;
    CHECK_TRUE(begin(&f));
    CHECK_INT(add(&f, NULL, 0), EPCTX_OK);
    CHECK_TRUE(f.got.fresh);
    CHECK_INT(add(&f, "", 0), EPCTX_OK);
    CHECK_TRUE(!f.got.fresh);
    CHECK_UINT(f.binary.size, 0);
    end(&f);
}

/* A prefix is already in the binary: the section starts behind it. */
TEST(section_in_a_binary) {
    epctx_weights_opts opts = {0};
    fixture f = {0};
    uint8_t data[64];
    epctx_buffer_init(&f.binary, NULL);
    CHECK_INT(epctx_buffer_append(&f.binary, "header..", 8), EPCTX_OK);
    opts.binary = &f.binary;
    CHECK_INT(epctx_weights_init(&f.weights, &opts, &f.error), EPCTX_OK);
    fill(data, sizeof data, 5);
    CHECK_INT(add(&f, data, 64), EPCTX_OK);
    CHECK_UINT(f.got.offset, 0);
    CHECK_MEM(f.binary.data + 8, 64, data, 64);
    CHECK_INT(epctx_buffer_append(&f.binary, "other", 5), EPCTX_OK); /* of the caller's */
    data[0] ^= 1;
    CHECK_INT(add(&f, data, 64), EPCTX_OK);
    CHECK_UINT(f.got.offset, 128);
    CHECK_MEM(f.binary.data + 8 + 128, 64, data, 64);
    data[0] ^= 1;
    CHECK_INT(add(&f, data, 64), EPCTX_OK);
    CHECK_TRUE(!f.got.fresh);
    end(&f);
}

/* 3000 weights, many equal: the same places with every seed, and those of the obvious method. */
TEST(places_do_not_depend_on_the_seed) {
    static uint8_t data[3000][1500];
    static uint64_t first[3000];
    uint64_t seed;
    size_t i, k, size;
    for (i = 0; i < 3000; i++) {
        memset(data[i], 0, sizeof data[i]);
        /* What differs lies now and then between the blocks of the sample. */
        data[i][(i % 7) * 200] = (uint8_t)(i % 11);
    }
    for (seed = 0; seed < 3; seed++) {
        fixture f;
        CHECK_TRUE(begin_seeded(&f, seed * UINT64_C(0x123456789abcdef1)));
        for (i = 0; i < 3000; i++) {
            size = 1400 + i % 3;
            CHECK_INT(add(&f, data[i], size), EPCTX_OK);
            if (seed == 0) {
                for (k = 0; k < i; k++)
                    if (k % 3 == i % 3 && memcmp(data[k], data[i], size) == 0) break;
                CHECK(f.got.fresh == (k == i), "weight %zu is %s", i,
                      f.got.fresh ? "stored twice" : "taken for another one");
                if (k < i) CHECK_UINT(f.got.offset, first[k]);
                first[i] = f.got.offset;
            }
            CHECK(f.got.offset == first[i], "seed %" PRIu64 ": weight %zu lies elsewhere", seed, i);
            CHECK_MEM(f.binary.data + f.got.offset, size, data[i], size);
        }
        end(&f);
    }
}

/* Weights that agree in the whole sample: each is read a bounded number of times. */
TEST(hostile_samples) {
    enum { SIZE = 20000, COUNT = 3000 };
    static uint8_t data[SIZE];
    /* Between the first two blocks of the sample, and in the last 32 bytes, before the last block:
     * a hash of strides of 64 bytes takes these apart. */
    static uint8_t *const low = data + 100, *const high = data + SIZE - 20;
    epctx_weights_stats stats;
    fixture f;
    size_t i;
    CHECK_TRUE(begin(&f));
    for (i = 0; i < COUNT; i++) {
        *low = (uint8_t)(i >> 8);
        *high = (uint8_t)i;
        CHECK_INT(add(&f, data, SIZE), EPCTX_OK);
        CHECK(f.got.fresh, "weight %zu is taken for another one", i);
    }
    stats = f.weights.stats;
    CHECK(stats.hashed_bytes + stats.compared_bytes <=
              (uint64_t)COUNT * (SIZE + EPCTX_WEIGHTS_SAMPLE) + (uint64_t)20 * SIZE,
          "%" PRIu64 " bytes were read for %d weights of %d bytes",
          stats.hashed_bytes + stats.compared_bytes, COUNT, SIZE);
    for (i = 0; i < COUNT; i++) {
        *low = (uint8_t)(i >> 8);
        *high = (uint8_t)i;
        CHECK_INT(add(&f, data, SIZE), EPCTX_OK);
        CHECK(!f.got.fresh && f.got.index == i, "weight %zu is not found again", i);
    }
    end(&f);
}

/* Sample and fast hash agree: a factor of the hash that is 0 hides the other one. Then a tree tells
 * the weights apart. */
TEST(hostile_hashes) {
    enum { SIZE = 20000, COUNT = 3000, AT = 128 };
    static uint8_t data[SIZE];
    epctx_weights_stats stats;
    fixture f;
    CHECK_TRUE(begin(&f));
    put_le64(data + AT, UINT64_C(0x9E3779B185EBCA87));
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < COUNT; i++) {
            put_le64(data + AT + 8, i * 7919 % COUNT);
            CHECK_INT(add(&f, data, SIZE), EPCTX_OK);
            CHECK(f.got.fresh == (round == 0) && f.got.index == i, "weight %zu is taken for %u", i,
                  (unsigned)f.got.index);
        }
    stats = f.weights.stats;
    CHECK(stats.compared_bytes > (uint64_t)COUNT * 8 * AT,
          "the fast hash tells them apart: %" PRIu64 " bytes compared", stats.compared_bytes);
    CHECK(stats.compared_bytes <= (uint64_t)COUNT * (2 * 32 * (AT + 16) + SIZE),
          "%" PRIu64 " bytes were compared", stats.compared_bytes);
    end(&f);
}

/* -- bytes that the caller keeps -- */

typedef struct store {
    uint8_t *data;
    uint8_t piece[65536]; /* what fetch gives: valid until the next call */
    int fails_after;      /* -1: never */
    size_t most;
} store;

static epctx_status fetch(void *user, uint64_t offset, size_t size, const uint8_t **data,
                          epctx_error *error) {
    store *s = (store *)user;
    if (s->fails_after == 0) return epctx_fail(error, EPCTX_ERR_IO, "the disk is gone");
    if (s->fails_after > 0) s->fails_after--;
    memset(s->piece, 0xdd, sizeof s->piece);
    memcpy(s->piece, s->data + offset, size);
    if (size > s->most) s->most = size;
    *data = s->piece;
    return EPCTX_OK;
}

TEST(fetched_bytes) {
    enum { SIZE = 150000 };
    static uint8_t section[20 * SIZE], data[SIZE];
    static store s;
    epctx_weights_opts opts = {0};
    epctx_weights weights;
    epctx_weight got;
    epctx_error error;
    int round, i;
    s.data = section;
    s.fails_after = -1;
    opts.fetch_fn = fetch;
    opts.user = &s;
    CHECK_INT(epctx_weights_init(&weights, &opts, &error), EPCTX_OK);
    for (round = 0; round < 2; round++)
        for (i = 0; i < 12; i++) {
            data[SIZE - 70] = (uint8_t)i; /* outside of the sample */
            CHECK_INT(epctx_weights_add(&weights, data, SIZE, 4096, 0, &got, &error), EPCTX_OK);
            CHECK_INT(got.fresh, round == 0);
            CHECK_UINT(got.index, i);
            CHECK_UINT(got.offset % 4096, 0);
            if (got.fresh) memcpy(section + got.offset, data, SIZE);
        }
    CHECK_UINT(s.most, 65536);
    /* A fetch that fails: the message goes on, and the table stays usable. */
    for (i = 0; i < 100; i++) {
        size_t count = weights.count;
        epctx_status status;
        data[SIZE - 70] = 5;
        s.fails_after = i;
        status = epctx_weights_add(&weights, data, SIZE, 4096, 0, &got, &error);
        if (status == EPCTX_OK) break;
        CHECK_INT(status, EPCTX_ERR_IO);
        CHECK_HAS(error.message, "the disk is gone");
        CHECK_UINT(weights.count, count);
    }
    CHECK(i > 2, "fetch was asked %d times only", i);
    CHECK_TRUE(!got.fresh && got.index == 5);
    epctx_weights_free(&weights);
    epctx_weights_free(&weights);
}

/* -- an allocator that counts, and fails on demand -- */

typedef struct counter {
    int alive, calls, fails_at;
} counter;

static void *count_alloc(void *user, size_t size) {
    counter *c = (counter *)user;
    if (c->calls++ == c->fails_at) return NULL;
    c->alive++;
    return malloc(size);
}

static void count_free(void *user, void *memory) {
    ((counter *)user)->alive--;
    free(memory);
}

/* A full table that cannot grow still finds what is there. */
TEST(full_table) {
    counter c = {0, 0, 2};
    epctx_allocator allocator = {&c, count_alloc, count_free};
    epctx_weights_opts opts = {0};
    fixture f = {0};
    uint8_t data[4];
    size_t i;
    epctx_buffer_init(&f.binary, NULL);
    opts.binary = &f.binary;
    opts.allocator = &allocator;
    CHECK_INT(epctx_weights_init(&f.weights, &opts, &f.error), EPCTX_OK);
    for (i = 0; i < 1000; i++) {
        memset(data, 0, sizeof data);
        data[0] = (uint8_t)i;
        data[1] = (uint8_t)(i >> 8);
        if (add(&f, data, 4) != EPCTX_OK) break;
    }
    CHECK(i >= 100 && i < 1000, "%zu weights fit", i);
    CHECK_INT(f.error.status, EPCTX_ERR_NOMEM);
    CHECK_HAS(f.error.message, "the weight table needs");
    c.calls = 2;
    memset(data, 0, sizeof data);
    CHECK_INT(add(&f, data, 4), EPCTX_OK);
    CHECK_TRUE(!f.got.fresh && f.got.index == 0 && f.error.message[0] == '\0');
    end(&f);
    memset(&opts, 0, sizeof opts);
    CHECK_INT(epctx_weights_init(&f.weights, &opts, &f.error), EPCTX_ERR_ARG);
}

/* Every fetch of a run fails once: nothing changes, and the same call again goes well. */
TEST(every_fetch_fails) {
    enum { SIZE = 100000, COUNT = 14 };
    static uint8_t section[COUNT * SIZE + COUNT * 4096], data[SIZE];
    static store s;
    int fails, i;
    bool failed = true;
    s.data = section;
    for (fails = 0; failed; fails++) {
        epctx_weights_opts opts = {0};
        epctx_weights weights;
        epctx_weight got;
        epctx_error error;
        memset(data, 0, sizeof data);
        opts.fetch_fn = fetch;
        opts.user = &s;
        failed = false;
        s.fails_after = fails;
        CHECK_INT(epctx_weights_init(&weights, &opts, &error), EPCTX_OK);
        for (i = 0; i < COUNT; i++) {
            epctx_status status;
            size_t count = weights.count;
            data[SIZE - 70] = (uint8_t)(i / 2); /* outside of the sample; each occurs twice */
            status = epctx_weights_add(&weights, data, SIZE, 4096, 0, &got, &error);
            if (status != EPCTX_OK) {
                failed = true;
                CHECK_INT(status, EPCTX_ERR_IO);
                CHECK_HAS(error.message, "the disk is gone");
                CHECK_UINT(weights.count, count);
                s.fails_after = -1;
                CHECK_INT(epctx_weights_add(&weights, data, SIZE, 4096, 0, &got, &error), EPCTX_OK);
            }
            CHECK_UINT(got.index, i / 2);
            if (got.fresh) memcpy(section + got.offset, data, SIZE);
        }
        epctx_weights_free(&weights);
    }
    CHECK(fails > 20, "only %d fetches were made", fails);
}

/* The end of the address space, tables that cannot be, and weights that share slots. */
TEST(limits) {
    static uint8_t data[400];
    epctx_allocator nothing = {NULL, NULL, NULL};
    epctx_weights_opts opts = {0};
    epctx_weights weights;
    epctx_weight got;
    epctx_error error;
    fixture f;
    size_t i;
    CHECK_INT(epctx_weights_init(&weights, NULL, &error), EPCTX_ERR_ARG);
    opts.fetch_fn = fetch;
    opts.allocator = &nothing;
    CHECK_INT(epctx_weights_init(&weights, &opts, &error), EPCTX_OK);
    CHECK_INT(epctx_weights_add(&weights, data, 8, 8, 0, &got, &error), EPCTX_ERR_NOMEM);
    opts.allocator = NULL;
    CHECK_INT(epctx_weights_init(&weights, &opts, &error), EPCTX_OK);
    weights.end = UINT64_MAX - 3;
    CHECK_INT(epctx_weights_add(&weights, data, 8, 1, 0, &got, &error), EPCTX_ERR_LIMIT);
    weights.end = UINT64_MAX - 9;
    CHECK_INT(epctx_weights_add(&weights, data, 8, 16, 0, &got, &error), EPCTX_ERR_LIMIT);
    CHECK_HAS(error.message, "2^64");
    CHECK_INT(epctx_weights_add(&weights, data, 4, 2, 0, &got, &error), EPCTX_OK);
    epctx_weights_free(&weights);
    CHECK_TRUE(begin(&f));
    for (i = 0; i < 800; i++) { /* two of each size, all different */
        fill(data, sizeof data, (uint32_t)i);
        CHECK_INT(add(&f, data, 1 + i / 2), EPCTX_OK);
        CHECK(f.got.fresh || i / 2 < 2, "weight %zu of %zu bytes is shared", i, 1 + i / 2);
    }
    end(&f);
}

TEST(allocator_fails) {
    static uint8_t data[300][100];
    int fails_at, i;
    bool failed = true;
    for (i = 0; i < 300; i++) fill(data[i], 100, (uint32_t)i / 2);
    for (fails_at = 0; failed; fails_at++) {
        counter c = {0, 0, fails_at};
        epctx_allocator allocator = {&c, count_alloc, count_free};
        epctx_weights_opts opts = {0};
        fixture f = {0};
        epctx_buffer_init(&f.binary, &allocator);
        opts.allocator = &allocator;
        opts.binary = &f.binary;
        CHECK_INT(epctx_weights_init(&f.weights, &opts, &f.error), EPCTX_OK);
        failed = false;
        for (i = 0; i < 300; i++) {
            size_t before = f.binary.size;
            epctx_status status =
                epctx_weights_add(&f.weights, data[i], 100, 1024, 0, &f.got, &f.error);
            if (status != EPCTX_OK) {
                CHECK_INT(status, EPCTX_ERR_NOMEM);
                CHECK_UINT(f.binary.size, before);
                failed = true;
                status = epctx_weights_add(&f.weights, data[i], 100, 1024, 0, &f.got, &f.error);
                CHECK(status == EPCTX_OK, "after a failure: %s", f.error.message);
            }
            CHECK_UINT(f.got.index, i / 2);
        }
        end(&f);
        CHECK_INT(c.alive, 0);
    }
    CHECK(fails_at > 5, "only %d allocations were seen", fails_at);
}

/* Weights whose hashes agree, for whatever seed: each is read a few times, not once for each
 * other. */
TEST(one_hash) {
    enum { COUNT = 20000 };
    epctx_weights_stats stats;
    char data[FORGED_SIZE];
    fixture f;
    uint32_t i;
    CHECK_TRUE(begin_seeded(&f, UINT64_C(0x7f1234567890)));
    for (i = 0; i < COUNT; i++) {
        forge(data, i);
        CHECK_INT(add(&f, data, sizeof data), EPCTX_OK);
        CHECK(f.got.fresh, "weight %" PRIu32 " is taken for another one", i);
    }
    for (i = 0; i < COUNT; i++) {
        forge(data, i);
        CHECK_INT(add(&f, data, sizeof data), EPCTX_OK);
        CHECK(!f.got.fresh && f.got.index == i, "weight %" PRIu32 " is not found again", i);
    }
    stats = f.weights.stats;
    CHECK(stats.compared_bytes <= (uint64_t)2 * COUNT * 32 * FORGED_SIZE,
          "%" PRIu64 " bytes were compared for %d weights of %d bytes", stats.compared_bytes, COUNT,
          FORGED_SIZE);
    end(&f);
}

int main(int argc, char **argv) {
    RUN(stored_once);
    RUN(found_again);
    RUN(every_byte_counts);
    RUN(equal_hashes);
    RUN(one_key);
    RUN(samples_tell_most_apart);
    RUN(alignment);
    RUN(kinds_share_nothing);
    RUN(nothing_at_all);
    RUN(section_in_a_binary);
    RUN(places_do_not_depend_on_the_seed);
    RUN(one_hash);
    RUN(hostile_samples);
    RUN(hostile_hashes);
    RUN(fetched_bytes);
    RUN(full_table);
    RUN(every_fetch_fails);
    RUN(limits);
    RUN(allocator_fails);
    return test_end();
}
