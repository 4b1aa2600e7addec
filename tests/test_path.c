/* >>path: names from a model, and names of outputs. */
#define _XOPEN_SOURCE 700
#include "build.h"
#include "temp.h"
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

static epctx_status check(const char *name) {
    epctx_error error;
    epctx_status status = epctx_path_check(epctx_str_of(name), &error);
    /* An error without words, or words without an error, are faults of their own. */
    if ((status == EPCTX_OK) != (error.message[0] == '\0')) return EPCTX_ERR_BACKEND;
    return status;
}

TEST(check_good) {
    static const char *const good[] = {
        "a.bin",   "sub/a.bin", "a..b.bin", "..a", "a..",     "sub/.../x",
        ".hidden", "./a.bin",   "a b.bin",  "...", "sub/./a", "\xc3\xa4.bin",
#ifndef _WIN32
        "1:a.bin",
#endif
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        CHECK(check(good[i]) == EPCTX_OK, "'%s' is refused", good[i]);
}

TEST(check_bad) {
    static const char *const bad[] = {"",
                                      "/a.bin",
                                      "/",
                                      "..",
                                      "../a.bin",
                                      "sub/../a.bin",
                                      "sub/..",
                                      "sub/../../a",
                                      "../",
                                      "C:\\a.bin",
                                      "C:a.bin",
                                      "c:/a.bin",
                                      "\\a.bin",
                                      "\\\\server\\share\\a.bin",
                                      "//server/share/a.bin",
                                      "..\\a.bin",
                                      "sub\\..\\a.bin",
                                      "sub\\..",
                                      "sub/..\\a",
                                      "*/_ORT_MEM_ADDR_/*"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(check(bad[i]) == EPCTX_ERR_PATH, "'%s' is accepted", bad[i]);
    {
        epctx_str with_nul = {"a.bin\0.png", 10};
        CHECK_INT(epctx_path_check(with_nul, NULL), EPCTX_ERR_PATH);
    }
    for (char c = 1; c > 0; c++) {
        const char name[] = {'a', c, 'b', '\0'};
        const bool control = c < 0x20 || c == 0x7f;
        if (c == ':') continue; /* not on Windows */
        CHECK((check(name) != EPCTX_OK) == control, "the character %d", c);
        if (c == 0x7f) break;
    }
    {
        epctx_error error;
        CHECK_INT(epctx_path_check(epctx_str_of("a\tb"), &error), EPCTX_ERR_PATH);
        CHECK_HAS(error.message, "'a\\x09b' contains a control character, expected the name");
        CHECK_INT(epctx_path_check(epctx_str_of("sub/../a"), &error), EPCTX_ERR_PATH);
        CHECK_HAS(error.message, "'sub/../a' contains '..'");
    }
}

TEST(folder_and_file) {
    static const struct {
        const char *path, *folder, *file;
    } cases[] = {{"a/b/c.onnx", "a/b/", "c.onnx"},
                 {"c.onnx", "", "c.onnx"},
                 {"/c.onnx", "/", "c.onnx"},
                 {"a/", "a/", ""},
                 {"", "", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK(epctx_str_is(epctx_path_folder(epctx_str_of(cases[i].path)), cases[i].folder),
              "folder of '%s'", cases[i].path);
        CHECK(epctx_str_is(epctx_path_file(epctx_str_of(cases[i].path)), cases[i].file),
              "file of '%s'", cases[i].path);
    }
}

TEST(base) {
    static const char *const folders[] = {".", "..", "a/..", "a/."};
    epctx_str folder;
    epctx_error error;
    size_t i;
    CHECK_INT(epctx_path_base(epctx_str_of("m/a.onnx"), epctx_str_of(NULL), &folder, &error),
              EPCTX_OK);
    CHECK_TRUE(epctx_str_is(folder, "m/"));
    CHECK_INT(epctx_path_base(epctx_str_of("m/a.onnx"), epctx_str_of("c/b.onnx"), &folder, &error),
              EPCTX_OK);
    CHECK_TRUE(epctx_str_is(folder, "c/"));
    CHECK_INT(epctx_path_base(epctx_str_of(NULL), epctx_str_of("c/b.onnx"), &folder, &error),
              EPCTX_OK);
    CHECK_TRUE(epctx_str_is(folder, "c/"));
    CHECK_INT(epctx_path_base(epctx_str_of(""), epctx_str_of(""), &folder, &error), EPCTX_ERR_PATH);
    CHECK_HAS(error.message, "ep.context_file_path");
    /* A folder has a separator at its end. */
    CHECK_INT(epctx_path_base(epctx_str_of("m/a.onnx"), epctx_str_of("c/"), &folder, &error),
              EPCTX_OK);
    CHECK_TRUE(epctx_str_is(folder, "c/"));
    for (i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        CHECK_INT(
            epctx_path_base(epctx_str_of("m/a.onnx"), epctx_str_of(folders[i]), &folder, &error),
            EPCTX_ERR_PATH);
        CHECK_HAS(error.message, folders[i]);
        CHECK_HAS(error.message, "should not point to a folder");
    }
}

TEST(relative) {
    static const struct {
        const char *folder, *path, *name; /* NULL: outside */
    } cases[] = {{"a", "a/b", "b"}, {"a/", "a//b", "b"}, {"", "/x", "x"},   {"a", "a//", ""},
                 {"a", "ab", NULL}, {"a", "a", NULL},    {"b", "a/b", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        epctx_str name;
        epctx_error error;
        epctx_status status;
        epctx_error_clear(&error);
        status = epctx_path_relative(epctx_str_of(cases[i].folder), epctx_str_of(cases[i].path),
                                     &name, &error);
        CHECK(status == (cases[i].name != NULL ? EPCTX_OK : EPCTX_ERR_PATH), "case %zu: %s", i,
              epctx_status_name(status));
        CHECK(status != EPCTX_OK || epctx_str_is(name, cases[i].name), "case %zu: '%.*s'", i,
              (int)name.size, name.data);
        if (status != EPCTX_OK) CHECK_HAS(error.message, "is outside of the folder");
    }
}

TEST(output_names) {
    static const struct {
        const char *model, *context;
    } models[] = {{"dir/model.onnx", "dir/model_ctx.onnx"},
                  {"model.onnx", "model_ctx.onnx"},
                  {"a.b/model", "a.b/model_ctx.onnx"},
                  {"my.model.onnx", "my.model_ctx.onnx"},
                  {"dir/.onnx", "dir/.onnx_ctx.onnx"}}; /* a leading dot belongs to the name */
    static const struct {
        const char *context, *binary;
    } contexts[] = {{"dir/model_ctx.onnx", "model_npu.bin"},
                    {"model_ctx.onnx", "model_npu.bin"},
                    {"x.onnx", "x_npu.bin"},
                    {"_ctx.onnx", "_ctx_npu.bin"},
                    {"a_model.onnx", "a_model_npu.bin"},
                    {"a.b/my.x.onnx", "my.x_npu.bin"}};
    char out[64];
    epctx_error error;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        CHECK_INT(epctx_path_context_model(epctx_str_of(models[i].model), out, sizeof out, &error),
                  EPCTX_OK);
        CHECK_STR(out, models[i].context);
    }
    for (size_t i = 0; i < sizeof contexts / sizeof contexts[0]; i++) {
        CHECK_INT(epctx_path_binary(epctx_str_of(contexts[i].context), epctx_str_of("npu"), out,
                                    sizeof out, &error),
                  EPCTX_OK);
        CHECK_STR(out, contexts[i].binary);
    }
    CHECK_INT(epctx_path_binary(epctx_str_of("m/"), epctx_str_of("npu"), out, sizeof out, &error),
              EPCTX_ERR_PATH);
    CHECK_INT(epctx_path_binary(epctx_str_of("m"), epctx_str_of(""), out, sizeof out, &error),
              EPCTX_ERR_PATH);
    CHECK_INT(epctx_path_binary(epctx_str_of("m.onnx"), epctx_str_of("npu"), out, 5, &error),
              EPCTX_ERR_LIMIT);
    /* A reader would refuse these. */
    CHECK_INT(epctx_path_binary(epctx_str_of("m/C:m_ctx.onnx"), epctx_str_of("npu"), out,
                                sizeof out, &error),
              EPCTX_ERR_PATH);
    CHECK_INT(epctx_path_binary(epctx_str_of("m/\\m_ctx.onnx"), epctx_str_of("npu"), out,
                                sizeof out, &error),
              EPCTX_ERR_PATH);
    /* Exactly fits; one byte less does not, and nothing is written behind the end. */
    for (size_t capacity = 0; capacity <= 15; capacity++) {
        epctx_status want = capacity >= 15 ? EPCTX_OK : EPCTX_ERR_LIMIT;
        memset(out, 'x', sizeof out);
        CHECK(epctx_path_context_model(epctx_str_of("model.onnx"), out, capacity, &error) == want,
              "capacity %zu: %s", capacity, error.message);
        CHECK(out[capacity] == 'x', "capacity %zu", capacity);
    }
    CHECK_TRUE(epctx_path_context_model(epctx_str_of(""), out, sizeof out, &error) != EPCTX_OK);
}

/* -- on disk -- */

static char root[TEST_TEMP];

static char *at(const char *name) {
    static char path[2][400];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", root, name);
    return path[turn];
}

static void make_file(const char *name, const char *text) {
    FILE *file = fopen(at(name), "wb");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) abort();
}

/* root/model is the model's folder; root/secret.bin lies outside. */
static void make_tree(void) {
    if (!test_temp(root)) abort();
    if (mkdir(at("model"), 0777) != 0 || mkdir(at("model/sub"), 0777) != 0) abort();
    if (mkdir(at("model2"), 0777) != 0) abort();
    make_file("secret.bin", "secret");
    make_file("model2/near.bin", "near");
    make_file("model/a.bin", "a");
    make_file("model/a..b.bin", "ab");
    make_file("model/sub/c.bin", "c");
    make_file("model/empty.bin", "");
    if (mkfifo(at("model/fifo"), 0666) != 0) abort();
    if (symlink("a.bin", at("model/inside")) != 0 ||
        symlink("../secret.bin", at("model/outside")) != 0 || symlink("..", at("model/up")) != 0 ||
        symlink("../model2/near.bin", at("model/near")) != 0 ||
        symlink("nowhere", at("model/dangling")) != 0 || symlink("loop", at("model/loop")) != 0)
        abort();
}

static void remove_tree(void) {
    static const char *const names[] = {
        "model/a.bin", "model/a..b.bin",  "model/sub/c.bin", "model/empty.bin",
        "model/fifo",  "model/inside",    "model/outside",   "model/up",
        "model/near",  "model/dangling",  "model/loop",      "model/sub",
        "model",       "model2/near.bin", "model2",          "secret.bin"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) remove(at(names[i]));
    remove(root);
}

static epctx_status resolve(const char *name, char *out, epctx_error *error) {
    char folder[200];
    snprintf(folder, sizeof folder, "%s/model/", root);
    return epctx_path_find(epctx_io_files(), epctx_str_of(folder), epctx_str_of(name), 0, out,
                           EPCTX_PATH_MAX, error);
}

TEST(resolve_good) {
    static const struct {
        const char *name, *end;
    } cases[] = {{"a.bin", "/model/a.bin"},         {"./a.bin", "/model/a.bin"},
                 {"sub/c.bin", "/model/sub/c.bin"}, {"sub//c.bin", "/model/sub/c.bin"},
                 {"a..b.bin", "/model/a..b.bin"},   {"inside", "/model/a.bin"}};
    char out[EPCTX_PATH_MAX];
    epctx_error error;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t size, end = strlen(cases[i].end);
        CHECK(resolve(cases[i].name, out, &error) == EPCTX_OK, "%s: %s", cases[i].name,
              error.message);
        size = strlen(out);
        CHECK(size > end && strcmp(out + size - end, cases[i].end) == 0, "%s gives %s",
              cases[i].name, out);
    }
}

TEST(resolve_bad) {
    static const struct {
        const char *name;
        epctx_status want;
    } cases[] = {{"", EPCTX_ERR_PATH},
                 {"../secret.bin", EPCTX_ERR_PATH},
                 {"sub/../a.bin", EPCTX_ERR_PATH},
                 {"/etc/passwd", EPCTX_ERR_PATH},
                 {"outside", EPCTX_ERR_PATH},
                 {"near", EPCTX_ERR_PATH}, /* a folder whose name begins like the model's */
                 {"up/secret.bin", EPCTX_ERR_PATH},
                 {"none.bin", EPCTX_ERR_NOT_FOUND},
                 {"sub/none.bin", EPCTX_ERR_NOT_FOUND},
                 {"dangling", EPCTX_ERR_NOT_FOUND}};
    /* Things that are no file with bytes in it; the status is the library's choice. */
    static const char *const other[] = {"sub", "empty.bin", "fifo", "loop", "up", ".", "sub/"};
    char out[EPCTX_PATH_MAX];
    epctx_error error;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        epctx_status got = resolve(cases[i].name, out, &error);
        CHECK(got == cases[i].want, "'%s' gives %s: %s", cases[i].name, epctx_status_name(got),
              error.message);
        CHECK_HAS(error.message, cases[i].name);
    }
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        CHECK(resolve(other[i], out, &error) != EPCTX_OK, "'%s' gives %s", other[i], out);
        CHECK_HAS(error.message, other[i]);
    }
}

/* The model's folder may itself be reached through a link, or be the current one. */
TEST(resolve_folders) {
    char out[EPCTX_PATH_MAX], here[EPCTX_PATH_MAX];
    epctx_error error;
    char through[200];
    CHECK_TRUE(symlink("model", at("link")) == 0);
    snprintf(through, sizeof through, "%s/link/", root);
    CHECK_OK(epctx_path_find(epctx_io_files(), epctx_str_of(through), epctx_str_of("a.bin"), 0, out,
                             sizeof out, &error),
             error);
    CHECK_INT(epctx_path_find(epctx_io_files(), epctx_str_of(through), epctx_str_of("outside"), 0,
                              out, sizeof out, &error),
              EPCTX_ERR_PATH);
    remove(at("link"));
    CHECK_TRUE(getcwd(here, sizeof here) != NULL && chdir(at("model")) == 0);
    CHECK_OK(epctx_path_find(epctx_io_files(), epctx_str_of(""), epctx_str_of("a.bin"), 0, out,
                             sizeof out, &error),
             error);
    CHECK_INT(epctx_path_find(epctx_io_files(), epctx_str_of(""), epctx_str_of("outside"), 0, out,
                              sizeof out, &error),
              EPCTX_ERR_PATH);
    CHECK_TRUE(chdir(here) == 0);
}

TEST(resolve_capacity) {
    char whole[EPCTX_PATH_MAX], folder[200];
    epctx_error error;
    CHECK_INT(resolve("a.bin", whole, &error), EPCTX_OK);
    snprintf(folder, sizeof folder, "%s/model/", root);
    for (size_t capacity = 0; capacity < strlen(whole) + 4; capacity++) {
        char *out = (char *)malloc(capacity + 1);
        epctx_status got;
        CHECK_TRUE(out != NULL);
        out[capacity] = 'x';
        got = epctx_path_find(epctx_io_files(), epctx_str_of(folder), epctx_str_of("a.bin"), 0, out,
                              capacity, &error);
        CHECK(out[capacity] == 'x', "written behind the end of %zu bytes", capacity);
        CHECK((got == EPCTX_OK) == (capacity > strlen(whole)), "capacity %zu: %s", capacity,
              epctx_status_name(got));
        if (got == EPCTX_OK) CHECK_STR(out, whole);
        free(out);
    }
}

/* A file that is emptied between the look at it and the mapping. */
static epctx_status map_empty(void *user, const char *folder, const char *name, bool copy,
                              epctx_mapping *out, epctx_error *error) {
    (void)user, (void)folder, (void)name, (void)copy, (void)error;
    memset(out, 0, sizeof *out);
    return EPCTX_OK;
}

/* Every public function empties the error first, and no room at all is too little. */
TEST(stale_errors) {
    const epctx_str name = epctx_str_of("a.bin"), none = {NULL, 0};
    epctx_arena arena = {0};
    epctx_error error;
    char out[8] = "x";
#define STALE(call, wanted, word) \
    do { \
        epctx_error_clear(&error); \
        epctx_fail(&error, EPCTX_ERR_CHANGED, "stale"); \
        CHECK_INT(call, wanted); \
        CHECK_INT(error.status, wanted); \
        CHECK_HAS(error.message, word); \
        CHECK_TRUE(strstr(error.message, "stale") == NULL); \
    } while (0)
    STALE(epctx_path_join(name, name, out, sizeof out, &error), EPCTX_ERR_LIMIT, "a path");
    STALE(epctx_path_join(name, name, out, 0, &error), EPCTX_ERR_LIMIT, "a path");
    STALE(epctx_path_join(none, none, out, sizeof out, &error), EPCTX_OK, "");
    STALE(epctx_path_numbered(name, 1, out, 3, &error), EPCTX_ERR_LIMIT, "a path");
    STALE(epctx_path_numbered(none, 1, out, sizeof out, &error), EPCTX_OK, "");
    CHECK_STR(out, "_1");
    {
        epctx_str inside;
        STALE(epctx_path_relative(name, none, &inside, &error), EPCTX_ERR_PATH, "outside");
    }
    STALE(epctx_output_name_check(epctx_str_of(".."), name, NULL, &error), EPCTX_ERR_PATH, "..");
    STALE(epctx_output_check(NULL, "m.onnx", EPCTX_OVERWRITE_FAIL, &error), EPCTX_ERR_ARG, "pass");
    STALE(epctx_profile_fill_name("ab", NULL, NULL, name, out, 0, &error), EPCTX_ERR_LIMIT, "long");
    {
        epctx_commit commit;
        epctx_arena_init(&arena, NULL);
        CHECK_INT(epctx_commit_begin(&commit, NULL, &arena, NULL), EPCTX_OK);
        STALE(epctx_commit_fill(&commit, &error), EPCTX_OK, "");
        epctx_commit_close(&commit);
        epctx_arena_free(&arena);
    }
#undef STALE
}

TEST(emptied) {
    epctx_io io = *epctx_io_files();
    epctx_mapping mapping;
    epctx_error error;
    char folder[200];
    make_tree();
    snprintf(folder, sizeof folder, "%s/model", root);
    io.map_fn = map_empty;
    CHECK_INT(
        epctx_path_map(&io, epctx_str_of(folder), epctx_str_of("a.bin"), 0, &mapping, NULL, &error),
        EPCTX_ERR_PATH);
    CHECK_HAS(error.message, "is empty");
    CHECK_INT(epctx_path_map(NULL, epctx_str_of(folder), epctx_str_of("a.bin"), 0, &mapping, NULL,
                             &error),
              EPCTX_ERR_ARG);
    remove_tree();
}

TEST(long_names) {
    static char name[2 * EPCTX_PATH_MAX];
    char out[EPCTX_PATH_MAX];
    epctx_error error;
    for (size_t size = 200; size < sizeof name; size += 97) {
        memset(name, 'n', size);
        name[size] = '\0';
        CHECK_TRUE(resolve(name, out, &error) != EPCTX_OK);
    }
    /* A folder that is as long leaves no room for a name. */
    memset(name, 'n', EPCTX_PATH_MAX);
    name[EPCTX_PATH_MAX] = '\0';
    epctx_error_clear(&error);
    CHECK_INT(epctx_path_find(epctx_io_files(), epctx_str_of(name), epctx_str_of("a.bin"), 0, out,
                              sizeof out, &error),
              EPCTX_ERR_LIMIT);
    CHECK_HAS(error.message, "path");
}

int main(int argc, char **argv) {
    RUN(check_good);
    RUN(check_bad);
    RUN(folder_and_file);
    RUN(base);
    RUN(relative);
    RUN(output_names);
    make_tree();
    RUN(resolve_good);
    RUN(resolve_bad);
    RUN(resolve_folders);
    RUN(resolve_capacity);
    RUN(stale_errors);
    RUN(emptied);
    RUN(long_names);
    remove_tree();
    return test_end();
}
