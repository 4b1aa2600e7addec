/*
 * The plugin EP inside the unmodified ONNX Runtime: context binaries damaged at random, in a file
 * and embedded. No damage ends the process; a session that ORT makes all the same (the damage hit
 * padding) computes what the whole one does. Damage that the checksums do not show is the fuzzers'.
 */
#define _GNU_SOURCE 1
#include "ort/ort_test.h"

static uint64_t state;

/* xorshift64*: the same damage in every run. */
static size_t any(size_t limit) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (size_t)(state * UINT64_C(0x2545F4914F6CDD1D) >> 33) % limit;
}

static unsigned rounds(void) {
    const char *quick = getenv("EPCTX_TEST_QUICK");
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    (void)quick;
    return 2000;
#else
    return quick && strcmp(quick, "1") == 0 ? 500 : 10000;
#endif
}

/* Damages `data`, which has room for `size` further bytes; returns the new size. A payload inside a
 * model keeps its size. */
static size_t damage(uint8_t *data, size_t size, bool keep_size) {
    const size_t from = any(size), count = 1 + any(size - from < 64 ? size - from : 64);
    size_t i;
    switch (any(keep_size ? 4 : 6)) {
    case 0: /* some bits */
        for (i = 0; i < 1 + count / 16; i++) data[any(size)] ^= (uint8_t)(1u << any(8));
        break;
    case 1: /* nonsense */
        for (i = 0; i < count; i++) data[from + i] = (uint8_t)any(256);
        break;
    case 2: /* a hole, as after a crash */ memset(data + from, 0, count); break;
    case 3: /* a large or negative number */
        data[from] = 0xff;
        memset(data + from, 0xff, count < 8 ? count : 8);
        break;
    case 4: /* an end too early */ return from;
    default: /* one too late */ memmove(data + size, data, count); return size + count;
    }
    return size;
}

/* Sessions of m_ctx.onnx after damage to the `size` bytes at `at` of the file `name`. */
static void survive(const char *name, size_t at, size_t size) {
    const bool embedded = strstr(name, ".onnx") != NULL;
    char path[PATH_MAX];
    ort_spec spec;
    size_t whole, damaged, i, refused = 0, silent = 0;
    uint8_t *good = (uint8_t *)slurp(name, &whole), *bad = (uint8_t *)malloc(2 * whole);
    ort_values want = {0};
    snprintf(path, sizeof path, "%s", in_folder("m_ctx.onnx")); /* in_folder's is not for long */
    spec = spec_of(path);
    spec.allow_cpu = true;
    CHECK_TRUE(good && bad && cpu_outputs(in_folder("m.onnx"), &want));
    for (i = 0; i < rounds(); i++) {
        OrtSession *session = NULL;
        state = UINT64_C(0x9E3779B97F4A7C15) * (i + 1);
        memcpy(bad, good, whole);
        damaged = whole - size + damage(bad + at, size, embedded);
        CHECK_TRUE(save(name, bad, damaged));
        if (ort_session(&spec, &session)) {
            ort_values got = {0};
            const bool same = ort_run(session, 7, &got) && ort_same(&got, &want);
            ort_values_free(&got);
            CHECK(same, "round %zu, %zu bytes: other results without a word: %s", i, damaged,
                  ort_text);
            silent++;
        } else {
            CHECK(ort_code == ORT_INVALID_GRAPH, "round %zu: expected INVALID_GRAPH, found %d: %s",
                  i, ort_code, ort_text);
            CHECK(strstr(ort_text, "node '"), "round %zu: %s", i, ort_text);
            refused++;
        }
        if (session) ort->ReleaseSession(session);
    }
    printf("note %s: %zu damaged binaries refused, %zu computed what the whole one does\n", name,
           refused, silent);
    CHECK(refused > silent, "%zu of %u are refused only", refused, rounds());
    ort_values_free(&want);
    free(good);
    free(bad);
}

TEST(binary_in_a_file) {
    struct stat info;
    CHECK_TRUE(make_three("m.onnx"));
    CHECK_ORT(generate_one(generate));
    CHECK_INT(stat(in_folder(binary_name("m")), &info), 0);
    survive(binary_name("m"), 0, (size_t)info.st_size);
}

/* Where the payload is: the binary of the same model in a file. */
TEST(binary_embedded) {
    uint8_t *binary, *model, *at;
    size_t binary_size, model_size;
    CHECK_TRUE(make_three("m.onnx"));
    CHECK_ORT(generate_one(generate));
    binary = (uint8_t *)slurp(binary_name("m"), &binary_size);
    remove(in_folder("m_ctx.onnx"));
    CHECK_ORT(generate_one(generate_embed));
    model = (uint8_t *)slurp("m_ctx.onnx", &model_size);
    CHECK_TRUE(binary && model);
    at = (uint8_t *)memmem(model, model_size, binary, binary_size);
    CHECK(at, "the model does not contain the binary that embed mode 0 writes");
    if (at) survive("m_ctx.onnx", (size_t)(at - model), binary_size);
    free(binary);
    free(model);
}

static const ort_case cases[] = {
    ORT_CASE(binary_in_a_file),
    ORT_CASE(binary_embedded),
};

int main(int argc, char **given) {
    char **argv = ort_words(argc, given);
    if (!ort_test_begin(argv[0])) return ort_test_end();
    ort_test_cases(argc, argv, cases, sizeof cases / sizeof cases[0]);
    return ort_test_end();
}
