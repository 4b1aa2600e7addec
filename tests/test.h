/*
 * A test framework in one file. A test program is
 *
 *     #include "test.h"
 *
 *     TEST(adds)
 *     {
 *         CHECK(ready(), "not ready, state %d", state());
 *         CHECK_INT(add(1, 2), 3);
 *     }
 *
 *     int main(int argc, char **argv)
 *     {
 *         RUN(adds);
 *         return test_end();
 *     }
 *
 * and prints what tests/run reads: "ok adds", or one "FAIL adds: ..." with
 * file, line, what was expected and what was found. The first check that fails
 * ends its case (by return, so checks stand in the TEST function itself; a
 * helper function reports to its caller). A case that comes to no check fails:
 * its loop went over nothing. Checks evaluate their arguments once.
 * `program CASE...` runs only the cases named.
 */
#ifndef EPCTX_TEST_H
#define EPCTX_TEST_H

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *test_name; /* the running case; NULL once it has reported */
static int test_failures;
static bool test_checked; /* the running case has come to a check, in whichever of its threads */

#if defined(__GNUC__)
#define TEST_UNUSED __attribute__((unused))
#else
#define TEST_UNUSED
#endif
#if defined(__MINGW_PRINTF_FORMAT) /* Windows has two printf */
#define TEST_PRINTF(f, a) __attribute__((format(__MINGW_PRINTF_FORMAT, f, a)))
#elif defined(__GNUC__)
#define TEST_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define TEST_PRINTF(f, a)
#endif

TEST_UNUSED TEST_PRINTF(3, 4) static void test_fail(const char *file, int line, const char *format,
                                                    ...) {
    va_list args;
    printf("FAIL %s: %s:%d: ", test_name, file, line);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
    test_failures++;
    test_name = NULL;
}

TEST_UNUSED TEST_PRINTF(1, 2) static void test_skip(const char *format, ...) {
    va_list args;
    printf("skip %s: ", test_name);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    test_name = NULL;
}

TEST_UNUSED static void test_run(const char *name, void (*body)(void)) {
    test_name = name;
    test_checked = false;
    /* Told apart from a crash: what runs is known even when it never ends. */
    fprintf(stderr, "case %s\n", name);
    body();
    if (test_name && !test_checked) test_fail(__FILE__, __LINE__, "expected checks, found none");
    if (test_name) printf("ok %s\n", name);
    fflush(stdout);
    test_name = NULL;
}

/* The command line's wish, for RUN. */
TEST_UNUSED static bool test_wanted(int argc, char **argv, const char *name) {
    int i;
    for (i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0) return true;
    return argc < 2;
}

/* The folder of further models, or NULL. */
TEST_UNUSED static const char *test_models(void) {
    const char *folder = getenv("EPCTX_TEST_MODELS");
    return folder && folder[0] ? folder : NULL;
}

TEST_UNUSED static int test_end(void) {
    return test_failures ? 1 : 0;
}

/* Compares bytes; on a difference describes the first one in `text`. */
TEST_UNUSED static bool test_same_bytes(const void *got, size_t got_size, const void *want,
                                        size_t want_size, char *text, size_t text_size) {
    const unsigned char *g = (const unsigned char *)got, *w = (const unsigned char *)want;
    size_t n = got_size < want_size ? got_size : want_size, i;
    for (i = 0; i < n && g[i] == w[i]; i++) {
    }
    if (i < n)
        snprintf(text, text_size, "byte %zu is 0x%02x, expected 0x%02x (sizes %zu, expected %zu)",
                 i, g[i], w[i], got_size, want_size);
    else if (got_size != want_size)
        snprintf(text, text_size, "size is %zu, expected %zu", got_size, want_size);
    else
        return true;
    return false;
}

#define TEST(name) static void test_case_##name(void)

/* Needs argc and argv of main in scope. */
#define RUN(name) \
    do { \
        if (test_wanted(argc, argv, #name)) test_run(#name, test_case_##name); \
    } while (0)

#define SKIP(...) \
    do { \
        test_skip(__VA_ARGS__); \
        return; \
    } while (0)

#define FAIL(...) \
    do { \
        test_fail(__FILE__, __LINE__, __VA_ARGS__); \
        return; \
    } while (0)

#define CHECK(condition, ...) \
    do { \
        __atomic_store_n(&test_checked, true, __ATOMIC_RELAXED); \
        if (!(condition)) FAIL(__VA_ARGS__); \
    } while (0)

#define CHECK_TRUE(condition) CHECK(condition, "%s does not hold", #condition)

/* The call succeeds; `error` has the reason when it does not. */
#define CHECK_OK(call, error) CHECK((call) == 0, "%s", (error).message)

#define CHECK_INT(got, want) \
    do { \
        const int64_t test_g_ = (int64_t)(got), test_w_ = (int64_t)(want); \
        CHECK(test_g_ == test_w_, "%s is %" PRId64 ", expected %" PRId64, #got, test_g_, test_w_); \
    } while (0)

#define CHECK_UINT(got, want) \
    do { \
        const uint64_t test_g_ = (uint64_t)(got), test_w_ = (uint64_t)(want); \
        CHECK(test_g_ == test_w_, "%s is %" PRIu64 ", expected %" PRIu64, #got, test_g_, test_w_); \
    } while (0)

/* NULL equals only NULL. */
#define CHECK_STR(got, want) \
    do { \
        const char *test_g_ = (got), *test_w_ = (want); \
        CHECK(test_g_ == test_w_ || (test_g_ && test_w_ && strcmp(test_g_, test_w_) == 0), \
              "%s is \"%s\", expected \"%s\"", #got, test_g_ ? test_g_ : "(null)", \
              test_w_ ? test_w_ : "(null)"); \
    } while (0)

/* `needle` occurs in the string `got`: for error messages. */
#define CHECK_HAS(got, needle) \
    do { \
        const char *test_g_ = (got), *test_n_ = (needle); \
        CHECK(test_g_ &&strstr(test_g_, test_n_), "%s is \"%s\", expected it to contain \"%s\"", \
              #got, test_g_ ? test_g_ : "(null)", test_n_); \
    } while (0)

#define CHECK_MEM(got, got_size, want, want_size) \
    do { \
        char test_text_[160]; \
        CHECK(test_same_bytes((got), (got_size), (want), (want_size), test_text_, \
                              sizeof test_text_), \
              "%s: %s", #got, test_text_); \
    } while (0)

#define CHECK_NEAR(got, want, tolerance) \
    do { \
        const double test_g_ = (double)(got), test_w_ = (double)(want); \
        CHECK(fabs(test_g_ - test_w_) <= (double)(tolerance), \
              "%s is %.9g, expected %.9g within %g", #got, test_g_, test_w_, (double)(tolerance)); \
    } while (0)

#endif
