/* How fast the weight table tells distinct weights of equal size apart, beside XXH3 and beside
 * reading the memory once.
 *
 * XXH3 is Debian's libxxhash at run time, when it is there: what a table with one hash over all
 * bytes would use. Its column is the hash alone, without a table and without the comparison that
 * finds out whether equal hashes are equal bytes. Rates count the weights that go in, 512 MiB. */
#define _XOPEN_SOURCE 700
#include "epctx.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TOTAL ((size_t)512 << 20)

static uint8_t *all;       /* TOTAL bytes of weights */
static size_t size;        /* of one of them */
static size_t fresh_bytes; /* behind these everything comes a second time */
static volatile uint64_t sink;

typedef uint64_t (*xxh3_fn)(const void *, size_t);
static xxh3_fn xxh3;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void run_read(void) {
    uint64_t sum[8] = {0};
    size_t i, k;
    for (i = 0; i < TOTAL; i += 64)
        for (k = 0; k < 8; k++) {
            uint64_t v;
            memcpy(&v, all + i + 8 * k, 8);
            sum[k] += v;
        }
    for (k = 0; k < 8; k++) sink += sum[k];
}

static void run_xxh3(void) {
    size_t i;
    for (i = 0; i + size <= TOTAL; i += size) sink += xxh3(all + i, size);
}

static void run_hash(void) {
    size_t i;
    for (i = 0; i + size <= TOTAL; i += size) sink += epctx_hash(all + i, size, 0);
}

/* The binary is where the weights are: nothing is copied, so that only the table is measured. */
static epctx_status fetch(void *user, uint64_t offset, size_t bytes, const uint8_t **data,
                          epctx_error *error) {
    (void)user;
    (void)bytes;
    (void)error;
    *data = all + offset;
    return EPCTX_OK;
}

static void run_table(void) {
    epctx_weights_opts opts = {0};
    epctx_weights table;
    epctx_weight place;
    size_t i;
    opts.fetch_fn = fetch;
    if (epctx_weights_init(&table, &opts, NULL) != EPCTX_OK) abort();
    for (i = 0; i + size <= TOTAL; i += size) {
        if (epctx_weights_add(&table, all + i, size, 1, 0, &place, NULL) != EPCTX_OK) abort();
        if (place.fresh != (i < fresh_bytes) || place.offset != i % fresh_bytes) abort();
    }
    sink += table.stats.hashed_bytes;
    epctx_weights_free(&table);
}

/* The best of five, in bytes per second. */
static double rate(void (*run)(void)) {
    double best = 1e9;
    int i;
    for (i = 0; i < 5; i++) {
        double start = seconds(), time;
        run();
        time = seconds() - start;
        best = time < best ? time : best;
    }
    return (double)TOTAL / best;
}

static void compare(const char *what, double read) {
    double table = rate(run_table), hash = rate(run_hash), peer = xxh3 ? rate(run_xxh3) : 0;
    printf("%-30s %9.1f %9.1f %9.1f %9.1f GB/s", what, table / 1e9, hash / 1e9, peer / 1e9,
           read / 1e9);
    printf("   table/XXH3 %.2f, table/read %.2f\n", peer > 0 ? table / peer : 0.0, table / read);
}

int main(void) {
    static const size_t sizes[] = {256, 4096, 65536, 1 << 20, 16 << 20};
    void *library = dlopen("libxxhash.so.0", RTLD_NOW);
    uint64_t state = 1;
    double read;
    char what[64];
    size_t i, k;
    if (library != NULL) {
        void *symbol = dlsym(library, "XXH3_64bits");
        memcpy(&xxh3, &symbol, sizeof xxh3);
    } else {
        printf("no libxxhash.so.0: its column is 0\n");
    }
    all = (uint8_t *)malloc(TOTAL);
    if (all == NULL) return 1;
    for (i = 0; i < TOTAL; i += 8) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        memcpy(all + i, &state, 8);
    }
    read = rate(run_read);
    fresh_bytes = TOTAL;
    printf("%-30s %9s %9s %9s %9s\n", "weights", "table", "epctx_hash", "XXH3", "read");
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size = sizes[i];
        snprintf(what, sizeof what, "distinct, %zu bytes each", size);
        compare(what, read);
    }
    memcpy(all + TOTAL / 2, all, TOTAL / 2);
    fresh_bytes = TOTAL / 2;
    for (i = 1; i < sizeof sizes / sizeof sizes[0]; i++) {
        size = sizes[i];
        snprintf(what, sizeof what, "half of them twice, %zu", size);
        compare(what, read);
    }
    fresh_bytes = TOTAL;
    /* The worst case: equal but for a few bytes that no sample sees. */
    for (i = 1; i < sizeof sizes / sizeof sizes[0]; i++) {
        size = sizes[i];
        for (k = 0; k < TOTAL / size; k++) {
            if (k > 0) memcpy(all + k * size, all, size);
            memcpy(all + k * size + size - 100, &k, sizeof k);
        }
        snprintf(what, sizeof what, "alike but for 8 bytes, %zu", size);
        compare(what, read);
    }
    free(all);
    return 0;
}
