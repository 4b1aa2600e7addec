/* The file back-end on Windows: names that are not ASCII, drives, separators, long paths, devices.
 * `windows compile MODEL` compiles a model, to be compared with other systems. Started by
 * tests/windows.sh. */
#include "epctx_npu.h"
#include "test.h"

#include <windows.h>

static char root[256]; /* "C:/.../epctx_xxxxxx", with letters of three alphabets */

static char *at(const char *name) {
    static char path[4][2048];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", root, name);
    return path[turn];
}

static void wide_of(const char *path, WCHAR out[2048]) {
    if (MultiByteToWideChar(CP_UTF8, 0, path, -1, out, 2048) == 0) abort();
}

static bool make_folder(const char *path) {
    WCHAR wide[2048];
    wide_of(path, wide);
    return CreateDirectoryW(wide, NULL) != 0;
}

static epctx_status write_file(const char *path, const char *text, epctx_error *error) {
    return epctx_write_bytes(NULL, path, text, strlen(text), NULL, error);
}

static bool holds(const char *path, const char *text) {
    const epctx_io *io = epctx_io_files();
    epctx_mapping map;
    bool same;
    if (io->map_fn(io->user, NULL, path, false, &map, NULL) != EPCTX_OK) return false;
    same = map.size == strlen(text) && memcmp(map.data, text, map.size) == 0;
    io->unmap_fn(io->user, &map);
    return same;
}

static int files_in_root(void) {
    WCHAR pattern[2048];
    WIN32_FIND_DATAW found;
    int count = 0;
    HANDLE search;
    wide_of(at("*"), pattern);
    search = FindFirstFileW(pattern, &found);
    if (search == INVALID_HANDLE_VALUE) return -1;
    do {
        count += (found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) == 0;
    } while (FindNextFileW(search, &found));
    FindClose(search);
    return count;
}

TEST(names_of_any_alphabet) {
    static const char *const names[] = {"plain.bin", "mod\xc3\xa8le.bin",
                                        "\xe6\xa8\xa1\xe5\x9e\x8b.bin", "with blank.bin"};
    const epctx_io *io = epctx_io_files();
    char real[EPCTX_PATH_MAX];
    epctx_file_info info;
    epctx_error error;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        CHECK_OK(write_file(at(names[i]), names[i], &error), error);
        CHECK(holds(at(names[i]), names[i]), "%s", names[i]);
        CHECK_INT(io->stat_fn(io->user, at(names[i]), &info, &error), EPCTX_OK);
        CHECK_INT(info.kind, EPCTX_FILE_REGULAR);
        CHECK_UINT(info.size, strlen(names[i]));
        CHECK_INT(io->canonical_fn(io->user, at(names[i]), real, sizeof real, &error), EPCTX_OK);
        CHECK(strcmp(real, at(names[i])) == 0, "expected %s, found %s", at(names[i]), real);
        CHECK_INT(io->remove_fn(io->user, NULL, at(names[i]), &error), EPCTX_OK);
    }
    epctx_error_clear(&error);
    CHECK_INT(io->remove_fn(io->user, NULL, at("none.bin"), &error), EPCTX_ERR_NOT_FOUND);
    CHECK_HAS(error.message, "none.bin");
    CHECK_INT(write_file(at("bad\xff.bin"), "x", &error), EPCTX_ERR_PATH);
    CHECK_HAS(error.message, "UTF-8");
    CHECK_INT(files_in_root(), 0);
}

TEST(replaced_or_left_alone) {
    static epctx_io_file file;
    const epctx_io *io = epctx_io_files();
    epctx_error error;
    CHECK_INT(write_file(at("a.bin"), "old", &error), EPCTX_OK);
    CHECK_INT(io->create_fn(io->user, NULL, at("a.bin"), &file, &error), EPCTX_OK);
    CHECK_INT(io->write_fn(io->user, &file, "new", 3, &error), EPCTX_OK);
    CHECK(holds(at("a.bin"), "old"), "changed before it was committed");
    io->close_fn(io->user, &file);
    CHECK_TRUE(holds(at("a.bin"), "old"));
    CHECK_INT(files_in_root(), 1);
    CHECK_INT(write_file(at("a.bin"), "newer", &error), EPCTX_OK);
    CHECK_TRUE(holds(at("a.bin"), "newer"));
    CHECK_INT(files_in_root(), 1);
    CHECK_INT(write_file(at("no/folder.bin"), "x", &error), EPCTX_ERR_NOT_FOUND);
    CHECK_INT(write_file(root, "x", &error), EPCTX_ERR_PATH);
    CHECK_HAS(error.message, "folder");
    CHECK_INT(io->remove_fn(io->user, NULL, at("a.bin"), &error), EPCTX_OK);
}

static epctx_status write_group(const char *text, epctx_overwrite overwrite, epctx_error *error) {
    static const char model_bytes[] = {0x08, 0x08, 0x3a, 0x03, 0x12, 0x01, 'g'};
    static char path[2048], binary[2048];
    epctx_span part;
    epctx_output_file file;
    epctx_write_opts opts;
    epctx_model model;
    epctx_status status;
    strcpy(path, at("m.onnx"));
    strcpy(binary, at("m_x.bin"));
    memset(&opts, 0, sizeof opts);
    memset(&file, 0, sizeof file);
    part.data = (const uint8_t *)text;
    part.size = strlen(text);
    file.path = binary;
    file.name = "m_x.bin";
    file.parts = &part;
    file.part_count = 1;
    file.size = part.size;
    opts.overwrite = overwrite;
    status = epctx_model_open_memory(&model, model_bytes, sizeof model_bytes, NULL, error);
    if (status == EPCTX_OK)
        status = epctx_model_write_group(&model, path, &opts, &file, 1, overwrite, error);
    epctx_model_close(&model);
    return status;
}

/* A file of a group is replaced, kept, and comes back. */
TEST(groups) {
    const epctx_io *io = epctx_io_files();
    epctx_mapping map;
    epctx_error error;
    CHECK_OK(write_group("old", EPCTX_OVERWRITE_REPLACE, &error), error);
    CHECK_OK(write_group("newer", EPCTX_OVERWRITE_REPLACE, &error), error);
    CHECK_TRUE(holds(at("m_x.bin"), "newer"));
    CHECK_INT(files_in_root(), 2);
    CHECK_INT(write_group("other", EPCTX_OVERWRITE_FAIL, &error), EPCTX_ERR_EXISTS);
    CHECK_OK(write_group("third", EPCTX_OVERWRITE_BACKUP, &error), error);
    CHECK_TRUE(holds(at("m_x.bin"), "third") && holds(at("m_x.bin~"), "newer"));
    CHECK_INT(files_in_root(), 4);
    /* Who has the model mapped keeps it from being replaced: all stays as it was. */
    CHECK_INT(io->map_fn(io->user, NULL, at("m.onnx"), false, &map, &error), EPCTX_OK);
    if (write_group("fourth", EPCTX_OVERWRITE_REPLACE, &error) != EPCTX_OK)
        CHECK_TRUE(holds(at("m_x.bin"), "third"));
    io->unmap_fn(io->user, &map);
    CHECK_INT(files_in_root(), 4);
    CHECK_INT(io->remove_fn(io->user, root, "m_x.bin~", &error), EPCTX_OK);
    CHECK_INT(io->remove_fn(io->user, NULL, at("m_x.bin"), &error), EPCTX_OK);
    CHECK_INT(io->remove_fn(io->user, NULL, at("m.onnx"), &error), EPCTX_OK);
    CHECK_INT(io->remove_fn(io->user, NULL, at("m.onnx~"), &error), EPCTX_OK);
}

static epctx_status find(const char *name, char *out, epctx_error *error) {
    return epctx_path_find(epctx_io_files(), epctx_str_of(at("")), epctx_str_of(name), 0, out,
                           EPCTX_PATH_MAX, error);
}

TEST(paths_in_models) {
    static const char *const bad[] = {"C:\\a.bin",
                                      "c:a.bin",
                                      "\\a.bin",
                                      "\\\\server\\share\\a.bin",
                                      "..\\a.bin",
                                      "sub\\..\\..\\a.bin",
                                      "sub/../a.bin",
                                      "/a.bin",
                                      "\\\\?\\C:\\a.bin",
                                      "a.bin:stream",
                                      "",
                                      "NUL"};
    static const char *const good[] = {"sub\\a.bin", "sub/a.bin", ".\\sub\\a.bin", "SUB/A.BIN"};
    char out[EPCTX_PATH_MAX];
    epctx_error error;
    CHECK_TRUE(make_folder(at("sub")));
    CHECK_INT(write_file(at("sub/a.bin"), "a", &error), EPCTX_OK);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        epctx_mapping map;
        CHECK(find(good[i], out, &error) == EPCTX_OK, "%s: %s", good[i], error.message);
        CHECK(strcmp(out, at("sub/a.bin")) == 0, "%s gives %s", good[i], out);
        CHECK(epctx_path_map(epctx_io_files(), epctx_str_of(at("")), epctx_str_of(good[i]), 0, &map,
                             NULL, &error) == EPCTX_OK,
              "%s: %s", good[i], error.message);
        epctx_io_files()->unmap_fn(NULL, &map);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(find(bad[i], out, &error) != EPCTX_OK, "'%s' gives %s", bad[i], out);
    CHECK_INT(find("none.bin", out, &error), EPCTX_ERR_NOT_FOUND);
    CHECK_INT(epctx_io_files()->remove_fn(NULL, NULL, at("sub/a.bin"), &error), EPCTX_OK);
}

/* The model's path as users write it. */
TEST(paths_of_models) {
    static const struct {
        const char *path, *folder, *context;
    } cases[] = {
        {"C:\\m\\a.onnx", "C:\\m\\", "C:\\m\\a_ctx.onnx"},
        {"C:a.onnx", "C:", "C:a_ctx.onnx"},
        {"\\\\server\\share\\a.onnx", "\\\\server\\share\\", "\\\\server\\share\\a_ctx.onnx"},
        {"m/n\\a.onnx", "m/n\\", "m/n\\a_ctx.onnx"},
        {"a.onnx", "", "a_ctx.onnx"}};
    char out[EPCTX_PATH_MAX];
    epctx_error error;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK(epctx_str_is(epctx_path_folder(epctx_str_of(cases[i].path)), cases[i].folder), "%s",
              cases[i].path);
        CHECK_INT(epctx_path_context_model(epctx_str_of(cases[i].path), out, sizeof out, &error),
                  EPCTX_OK);
        CHECK(strcmp(out, cases[i].context) == 0, "%s gives %s", cases[i].path, out);
    }
}

/* "C:a.bin" is in the current folder of the drive, not in its root. */
TEST(current_folder_of_a_drive) {
    char drive[3] = {root[0], ':', '\0'};
    char before[EPCTX_PATH_MAX], found[EPCTX_PATH_MAX], expected[EPCTX_PATH_MAX];
    WCHAR wide[2048];
    epctx_mapping map;
    epctx_error error;
    const epctx_io *io = epctx_io_files();
    CHECK_TRUE(GetCurrentDirectoryA(sizeof before, before) > 0);
    CHECK_INT(write_file(at("drive.bin"), "here", &error), EPCTX_OK);
    CHECK_INT(io->canonical_fn(NULL, at("drive.bin"), expected, sizeof expected, &error), EPCTX_OK);
    wide_of(root, wide);
    CHECK_TRUE(SetCurrentDirectoryW(wide) != 0);
    CHECK_OK(epctx_path_find(io, epctx_str_of(drive), epctx_str_of("drive.bin"), 0, found,
                             sizeof found, &error),
             error);
    CHECK_STR(found, expected);
    CHECK_OK(
        epctx_path_map(io, epctx_str_of(drive), epctx_str_of("drive.bin"), 0, &map, NULL, &error),
        error);
    CHECK_UINT(map.size, 4);
    io->unmap_fn(NULL, &map);
    CHECK_TRUE(SetCurrentDirectoryA(before) != 0);
    CHECK_INT(io->remove_fn(NULL, NULL, at("drive.bin"), &error), EPCTX_OK);
}

TEST(long_paths) {
    char path[1200];
    size_t used = (size_t)snprintf(path, sizeof path, "%s", at("long"));
    epctx_error error;
    WCHAR wide[2048];
    for (int i = 0; i < 5; i++) {
        char prefixed[1300];
        memset(path + used, 'a' + i, 120);
        path[used] = i == 0 ? 'l' : '/';
        used += 120;
        path[used] = '\0';
        snprintf(prefixed, sizeof prefixed, "\\\\?\\%s", path);
        for (char *c = prefixed; *c != '\0'; c++)
            if (*c == '/') *c = '\\';
        wide_of(prefixed, wide);
        CHECK(CreateDirectoryW(wide, NULL), "folder of %u bytes", (unsigned)used);
    }
    snprintf(path + used, sizeof path - used, "/a.bin");
    CHECK_OK(write_file(path, "deep", &error), error);
    CHECK_TRUE(holds(path, "deep"));
    CHECK_INT(epctx_io_files()->remove_fn(NULL, NULL, path, &error), EPCTX_OK);
}

static epctx_status compile(const char *path, bool overwrite, epctx_error *error) {
    epctx_gen_opts opts = {0};
    epctx_backend backend;
    epctx_npu npu;
    epctx_model model;
    epctx_status status = epctx_npu_init(&npu, NULL, &backend, error);
    opts.overwrite = overwrite;
    if (status == EPCTX_OK) status = epctx_model_open_file(&model, path, NULL, error);
    if (status != EPCTX_OK) return status;
    status = epctx_generate(&model, &backend, &opts, NULL, error);
    epctx_model_close(&model);
    return status;
}

int main(int argc, char **argv) {
    epctx_error error;
    if (argc == 3 && strcmp(argv[1], "compile") == 0) {
        if (compile(argv[2], true, &error) == EPCTX_OK) return 0;
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    {
        WCHAR folder[128];
        char name[200];
        int n = 0;
        GetTempPathW(128, folder);
        if (GetLongPathNameW(folder, folder, 128) == 0) return 1;
        WideCharToMultiByte(CP_UTF8, 0, folder, -1, name, sizeof name, NULL, NULL);
        for (char *c = name; *c != '\0'; c++)
            if (*c == '\\') *c = '/';
        do { /* of a run that failed one may be there: process numbers come again */
            snprintf(root, sizeof root, "%sepctx_%lu_%d_\xc3\xa9\xce\xb1\xe6\xa8\xa1", name,
                     (unsigned long)GetCurrentProcessId(), n);
        } while (!make_folder(root) && ++n < 100);
        if (n == 100) {
            printf("FAIL folder: %s cannot be made\n", root);
            return 1;
        }
    }
    RUN(names_of_any_alphabet);
    RUN(replaced_or_left_alone);
    RUN(groups);
    RUN(paths_in_models);
    RUN(paths_of_models);
    RUN(current_folder_of_a_drive);
    RUN(long_paths);
    return test_end();
}
