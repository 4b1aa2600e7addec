/* >>io: files that are buffers of the application, whole, each through one callback. */
#define _XOPEN_SOURCE 700
#include "fake.h"
#include "files.h"
#include "test.h"

typedef struct buffer {
    char name[100];
    bytes data;
    bool there;
} buffer;

/* The application: its buffers, and what was asked of it. */
typedef struct app {
    buffer buffers[8];
    char log[2000]; /* "write NAME;" and so on */
    int alive;      /* buffers handed out and not taken back */
    int reads;
    const char *fails; /* the name whose callbacks fail, with `status` */
    epctx_status status;
    bool silent; /* and without a message */
} app;

static buffer *app_find(app *a, const char *name, bool make) {
    for (size_t i = 0; i < 8; i++)
        if (a->buffers[i].there && strcmp(a->buffers[i].name, name) == 0) return &a->buffers[i];
    for (size_t i = 0; make && i < 8; i++) {
        if (a->buffers[i].there) continue;
        snprintf(a->buffers[i].name, sizeof a->buffers[i].name, "%s", name);
        a->buffers[i].there = true;
        return &a->buffers[i];
    }
    return NULL;
}

static epctx_status app_asked(app *a, const char *what, const char *name, epctx_error *error) {
    size_t used = strlen(a->log);
    snprintf(a->log + used, sizeof a->log - used, "%s %s;", what, name);
    if (a->fails == NULL || strcmp(a->fails, name) != 0) return EPCTX_OK;
    return a->silent ? a->status : epctx_fail(error, a->status, "the application says no");
}

static epctx_status app_read(void *user, const char *name, void **data, size_t *size,
                             epctx_error *error) {
    app *a = (app *)user;
    buffer *b = app_find(a, name, false);
    a->reads++;
    if (a->fails != NULL && strcmp(a->fails, name) == 0)
        return a->silent ? a->status : epctx_fail(error, a->status, "the application says no");
    if (b == NULL) return EPCTX_ERR_NOT_FOUND;
    *size = b->data.size;
    *data = b->data.size > 0 ? malloc(b->data.size) : NULL;
    if (*data != NULL) {
        memcpy(*data, b->data.data, b->data.size);
        a->alive++;
    }
    return EPCTX_OK;
}

static void app_free(void *user, void *data, size_t size) {
    memset(data, 0xee, size); /* who reads on reads this */
    free(data);
    ((app *)user)->alive--;
}

static epctx_status app_size(void *user, const char *name, uint64_t *size, epctx_error *error) {
    buffer *b = app_find((app *)user, name, false);
    (void)error;
    if (b == NULL) return EPCTX_ERR_NOT_FOUND;
    *size = b->data.size;
    return EPCTX_OK;
}

static epctx_status app_write(void *user, const char *name, const void *data, size_t size,
                              epctx_error *error) {
    app *a = (app *)user;
    epctx_status status = app_asked(a, "write", name, error);
    buffer *b;
    if (status != EPCTX_OK) return status;
    b = app_find(a, name, true);
    if (b == NULL || data == NULL) return EPCTX_ERR_IO;
    bytes_free(&b->data);
    memset(&b->data, 0, sizeof b->data);
    bytes_add(&b->data, data, size);
    return EPCTX_OK;
}

static epctx_status app_remove(void *user, const char *name, epctx_error *error) {
    app *a = (app *)user;
    epctx_status status = app_asked(a, "remove", name, error);
    buffer *b = app_find(a, name, false);
    if (status != EPCTX_OK) return status;
    if (b == NULL) return EPCTX_ERR_NOT_FOUND;
    bytes_free(&b->data);
    memset(b, 0, sizeof *b);
    return EPCTX_OK;
}

static epctx_buffer_io app_callbacks(app *a) {
    epctx_buffer_io b = {0};
    b.user = a;
    b.read_fn = app_read;
    b.free_fn = app_free;
    b.write_fn = app_write;
    b.remove_fn = app_remove;
    return b;
}

static void app_source(app *a, const char *name, float first) {
    buffer *b = app_find(a, name, true);
    bytes_free(&b->data);
    b->data = source(first);
    a->log[0] = '\0';
    a->reads = 0;
}

static void app_end(app *a) {
    for (size_t i = 0; i < 8; i++) bytes_free(&a->buffers[i].data);
    memset(a, 0, sizeof *a);
}

static epctx_status generate(epctx_buffer_io *callbacks, const char *path,
                             const epctx_gen_opts *opts, epctx_error *error) {
    fake f = {0};
    epctx_backend backend;
    epctx_open_opts open = {0};
    epctx_io io = epctx_io_buffers(callbacks);
    epctx_model model;
    epctx_status status;
    backend = fake_backend(&f);
    open.io = &io;
    status = epctx_model_open_file(&model, path, &open, error);
    if (status != EPCTX_OK) return status;
    status = epctx_generate(&model, &backend, opts, NULL, error);
    epctx_model_close(&model);
    return f.alive == 0 ? status : EPCTX_ERR_BACKEND;
}

static epctx_status load(epctx_buffer_io *callbacks, const char *path, size_t *bound,
                         epctx_error *error) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_open_opts open = {0};
    epctx_io io = epctx_io_buffers(callbacks);
    epctx_model model;
    epctx_loaded loaded;
    epctx_status status;
    open.io = &io;
    status = epctx_model_open_file(&model, path, &open, error);
    if (status != EPCTX_OK) return status;
    status = epctx_load(&loaded, &model, &backend, NULL, error);
    *bound = loaded.bound_count;
    epctx_unload(&loaded);
    epctx_model_close(&model);
    return status;
}

/* The same bytes as through files, with nothing in the file system: the current folder is empty. */
TEST(generate_and_load) {
    app a = {0};
    epctx_buffer_io callbacks = app_callbacks(&a);
    epctx_error error;
    epctx_model model;
    fake f = {0};
    epctx_backend backend;
    size_t bound = 0;
    bytes file;
    backend = fake_backend(&f);
    clear_root();
    CHECK_INT(chdir(root), 0);
    app_source(&a, "m.onnx", 0);
    CHECK_OK(generate(&callbacks, "m.onnx", NULL, &error), error);
    CHECK_STR(a.log, "write m_fake.bin;write m_ctx.onnx;");
    CHECK_STR(listing(), "");
    CHECK_OK(load(&callbacks, "m_ctx.onnx", &bound, &error), error);
    CHECK_UINT(bound, 2);
    CHECK_INT(a.alive, 0);
    CHECK_STR(listing(), "");
    /* A plain file has the same bytes. */
    make_source(0);
    CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_generate(&model, &backend, NULL, NULL, &error), EPCTX_OK);
    epctx_model_close(&model);
    file = read_file(at("m_ctx.onnx"));
    CHECK_MEM(app_find(&a, "m_ctx.onnx", false)->data.data,
              app_find(&a, "m_ctx.onnx", false)->data.size, file.data, file.size);
    bytes_free(&file);
    app_end(&a);
}

/* Folders are part of the name; one that leaves them is refused before the application hears it. */
TEST(names) {
    static const struct {
        const char *path, *name;
    } cases[] = {
        {"a", "a"},       {"./a", "a"},          {"a//b/./c", "a/b/c"},
        {"x/../a", "a"},  {"../a", "../a"},      {"/a/b", "/a/b"},
        {"/../a", "/a"},  {"a/../../b", "../b"}, {"../../a", "../../a"},
        {"...", "..."},   {"a/b/../c", "a/c"},   {".x/a", ".x/a"},
        {"x...", "x..."},
    };
    app a = {0};
    epctx_buffer_io callbacks = app_callbacks(&a);
    epctx_io io = epctx_io_buffers(&callbacks);
    epctx_io_file file;
    epctx_file_info info;
    static char longest[EPCTX_PATH_MAX + 1];
    size_t bound;
    epctx_error error;
    epctx_gen_opts opts = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char want[200];
        a.log[0] = '\0';
        snprintf(want, sizeof want, "write %s;", cases[i].name);
        CHECK_INT(io.create_fn(io.user, NULL, cases[i].path, &file, NULL), EPCTX_OK);
        file.alone = true;
        CHECK_INT(io.commit_fn(io.user, &file, EPCTX_OVERWRITE_REPLACE, NULL), EPCTX_OK);
        io.close_fn(io.user, &file);
        CHECK_STR(a.log, want);
        CHECK_INT(io.stat_fn(io.user, cases[i].path, &info, NULL), EPCTX_OK);
        CHECK(info.kind == EPCTX_FILE_REGULAR, "%s: not found again", cases[i].path);
        app_end(&a);
    }
    CHECK_INT(io.stat_fn(io.user, "nothing", &info, NULL), EPCTX_OK);
    CHECK_INT(info.kind, EPCTX_FILE_NONE);
    CHECK_INT(io.stat_fn(io.user, "folder/", &info, NULL), EPCTX_OK);
    CHECK_INT(info.kind, EPCTX_FILE_FOLDER);
    CHECK_INT(io.stat_fn(io.user, "a/..", &info, NULL), EPCTX_OK);
    CHECK_INT(info.kind, EPCTX_FILE_FOLDER);
    CHECK_INT(io.stat_fn(io.user, ".", &info, NULL), EPCTX_OK);
    CHECK_INT(info.kind, EPCTX_FILE_FOLDER);
    memset(longest, 'a', EPCTX_PATH_MAX);
    epctx_error_clear(&error);
    CHECK_INT(io.create_fn(io.user, NULL, longest, &file, &error), EPCTX_ERR_LIMIT);

    app_source(&a, "in/m.onnx", 0);
    opts.context_file_path = "out/m_ctx.onnx";
    opts.binary = "bin/m.bin";
    CHECK_OK(generate(&callbacks, "in/m.onnx", &opts, &error), error);
    CHECK_STR(a.log, "write out/bin/m.bin;write out/m_ctx.onnx;");
    CHECK_OK(load(&callbacks, "out/m_ctx.onnx", &bound, &error), error);
    app_end(&a);
    {
        bytes graph = {0};
        buffer *b = app_find(&a, "evil.onnx", true);
        add_epnode(&graph, "n", "x", "y", 1, 0, "FakeEP", "part", "../secret", 9);
        b->data = new_model(&graph);
        a.reads = 0;
        CHECK_INT(epctx_status_to_ort(load(&callbacks, "evil.onnx", &bound, &error)), 10);
        CHECK_INT(a.reads, 1);
    }
    app_end(&a);
}

/* What fails is heard of, with its reason, and what was not complete was never handed over. */
TEST(failures) {
    static const epctx_status statuses[] = {EPCTX_ERR_IO, EPCTX_ERR_BACKEND, EPCTX_ERR_CANCELLED};
    app a = {0};
    epctx_buffer_io callbacks = app_callbacks(&a);
    epctx_error error;
    size_t bound;
    for (size_t i = 0; i < 3; i++) {
        app_source(&a, "m.onnx", 0);
        a.status = statuses[i];
        a.silent = i == 0;
        a.fails = "m_fake.bin";
        callbacks.size_fn = app_size; /* so that looking for it does not fail already */
        CHECK_INT(generate(&callbacks, "m.onnx", NULL, &error), statuses[i]);
        CHECK_HAS(error.message, "m_fake.bin");
        CHECK_HAS(error.message, i == 0 ? "did not write" : "the application says no");
        CHECK_STR(a.log, "write m_fake.bin;"); /* and no model for it */
        a.log[0] = '\0';
        a.fails = "m_ctx.onnx";
        CHECK_INT(generate(&callbacks, "m.onnx", NULL, &error), statuses[i]);
        CHECK_HAS(error.message, "m_ctx.onnx");
        CHECK_TRUE(app_find(&a, "m_ctx.onnx", false) == NULL);
        a.fails = NULL;
        app_end(&a);
    }
    app_source(&a, "m.onnx", 0);
    callbacks.size_fn = NULL;
    CHECK_OK(generate(&callbacks, "m.onnx", NULL, &error), error);
    a.fails = "m_fake.bin";
    a.status = EPCTX_ERR_IO;
    CHECK_INT(epctx_status_to_ort(load(&callbacks, "m_ctx.onnx", &bound, &error)), 10);
    CHECK_HAS(error.message, "the application says no");
    CHECK_INT(a.alive, 0);
    a.fails = NULL;
    CHECK_INT(load(&callbacks, "missing.onnx", &bound, &error), EPCTX_ERR_NOT_FOUND);
    app_end(&a);
}

/* Existing buffers: not replaced unless allowed, the old model goes before its binary changes. */
TEST(overwriting) {
    app a = {0};
    epctx_buffer_io callbacks = app_callbacks(&a);
    epctx_gen_opts opts = {0};
    epctx_error error;
    size_t bound;
    app_source(&a, "m.onnx", 0);
    CHECK_INT(generate(&callbacks, "m.onnx", NULL, &error), EPCTX_OK);
    app_source(&a, "m.onnx", 1);
    CHECK_INT(generate(&callbacks, "m.onnx", NULL, &error), EPCTX_ERR_EXISTS);
    CHECK_STR(a.log, "");
    opts.overwrite = true;
    CHECK_INT(generate(&callbacks, "m.onnx", &opts, &error), EPCTX_OK);
    CHECK_STR(a.log, "remove m_ctx.onnx;write m_fake.bin;write m_ctx.onnx;");
    CHECK_INT(load(&callbacks, "m_ctx.onnx", &bound, &error), EPCTX_OK);
    a.log[0] = '\0';
    callbacks.remove_fn = NULL;
    CHECK_INT(generate(&callbacks, "m.onnx", &opts, &error), EPCTX_ERR_UNSUPPORTED);
    CHECK_HAS(error.message, "removes a buffer");
    CHECK_STR(a.log, "");
    CHECK_INT(load(&callbacks, "m_ctx.onnx", &bound, &error), EPCTX_OK);
    opts.embed = true; /* one buffer is replaced in one call */
    CHECK_INT(generate(&callbacks, "m.onnx", &opts, &error), EPCTX_OK);
    CHECK_STR(a.log, "write m_ctx.onnx;");
    app_end(&a);
}

/* With ORT's two callbacks alone, or one of them. */
TEST(few_callbacks) {
    app a = {0};
    epctx_buffer_io callbacks = app_callbacks(&a);
    epctx_error error;
    size_t bound;
    app_source(&a, "m.onnx", 0);
    callbacks.remove_fn = NULL;
    CHECK_INT(generate(&callbacks, "m.onnx", NULL, &error), EPCTX_OK);
    callbacks.write_fn = NULL;
    CHECK_INT(load(&callbacks, "m_ctx.onnx", &bound, &error), EPCTX_OK);
    app_end(&a);
    app_source(&a, "m.onnx", 0);
    CHECK_INT(generate(&callbacks, "m.onnx", NULL, &error), EPCTX_ERR_UNSUPPORTED);
    CHECK_HAS(error.message, "writes no buffers");
    callbacks.read_fn = NULL;
    CHECK_INT(load(&callbacks, "m.onnx", &bound, &error), EPCTX_ERR_NOT_FOUND);
    app_end(&a);
}

/* Sizes and paths that the callbacks never hear of, or that they get wrong. */
static epctx_status odd_read(void *user, const char *name, void **data, size_t *size,
                             epctx_error *error) {
    static char text[] = "text"; /* without a free_fn: it stays */
    (void)user, (void)error;
    *size = strcmp(name, "empty") == 0 ? 0 : 4;
    *data = strcmp(name, "text") == 0 ? text : NULL;
    return EPCTX_OK;
}

TEST(odd_buffers) {
    static char longest[EPCTX_PATH_MAX + 1];
    epctx_buffer_io callbacks = {0};
    epctx_io io = epctx_io_buffers(&callbacks);
    epctx_mapping m;
    epctx_file_info info;
    epctx_error error;
    char small[4];
    callbacks.read_fn = odd_read;
    memset(longest, 'a', EPCTX_PATH_MAX);
    /* Without data, but with a size: an error, not a mapping of what is not there. */
    epctx_error_clear(&error);
    CHECK_INT(io.map_fn(io.user, NULL, "none", false, &m, &error), EPCTX_ERR_IO);
    CHECK_HAS(error.message, "none: the application returned a size but no data");
    CHECK_TRUE(m.data == NULL && m.handle == NULL && m.size == 0);
    epctx_error_clear(&error);
    CHECK_INT(io.stat_fn(io.user, "none", &info, &error), EPCTX_ERR_IO);
    CHECK_HAS(error.message, "a size but no data");
    CHECK_INT(io.stat_fn(io.user, "none", &info, NULL), EPCTX_ERR_IO);
    /* An empty one is mapped like any other. */
    CHECK_INT(io.map_fn(io.user, NULL, "empty", false, &m, NULL), EPCTX_OK);
    CHECK_UINT(m.size, 0);
    CHECK_TRUE(m.handle != NULL);
    io.unmap_fn(io.user, &m);
    CHECK_TRUE(m.handle == NULL);
    /* Without a free_fn the buffers stay the application's. */
    CHECK_INT(io.map_fn(io.user, NULL, "text", false, &m, NULL), EPCTX_OK);
    CHECK_MEM(m.data, m.size, "text", 4);
    io.unmap_fn(io.user, &m);
    CHECK_INT(io.stat_fn(io.user, "text", &info, NULL), EPCTX_OK);
    CHECK_INT(info.kind, EPCTX_FILE_REGULAR);
    CHECK_UINT(info.size, 4);
    /* Paths without room. */
    epctx_error_clear(&error);
    CHECK_INT(io.stat_fn(io.user, longest, &info, &error), EPCTX_ERR_LIMIT);
    CHECK_HAS(error.message, "a path is longer");
    CHECK_INT(info.kind, EPCTX_FILE_NONE);
    CHECK_INT(io.map_fn(io.user, NULL, longest, false, &m, NULL), EPCTX_ERR_LIMIT);
    CHECK_INT(io.remove_fn(io.user, NULL, longest, NULL), EPCTX_ERR_LIMIT);
    longest[EPCTX_PATH_MAX - 1] = '\0'; /* fits, but not behind "./" */
    epctx_error_clear(&error);
    CHECK_INT(io.map_fn(io.user, NULL, longest, false, &m, &error), EPCTX_ERR_LIMIT);
    CHECK_HAS(error.message, "the path is too long");
    epctx_error_clear(&error);
    CHECK_INT(io.canonical_fn(io.user, "a", small, 3, &error), EPCTX_ERR_LIMIT);
    CHECK_HAS(error.message, "the path is too long");
    CHECK_INT(io.canonical_fn(io.user, "/", small, sizeof small, NULL), EPCTX_OK);
    CHECK_STR(small, "/");
    CHECK_INT(io.canonical_fn(io.user, "", small, sizeof small, NULL), EPCTX_OK);
    CHECK_STR(small, "./");
}

/* No memory for what is written: nothing is handed over, nothing is left. */
TEST(no_memory) {
    app a = {0};
    counting memory = {0};
    epctx_allocator allocator = counting_allocator(&memory);
    epctx_buffer_io callbacks = app_callbacks(&a);
    epctx_io io = epctx_io_buffers(&callbacks);
    epctx_io_file file;
    epctx_error error;
    callbacks.allocator = &allocator;
    memory.fail_at = 1;
    epctx_error_clear(&error);
    CHECK_INT(io.create_fn(io.user, NULL, "b", &file, &error), EPCTX_ERR_NOMEM);
    CHECK_HAS(error.message, "no memory for a buffer to write");
    memory.calls = 0;
    memory.fail_at = 2;
    epctx_error_clear(&error);
    CHECK_INT(io.create_fn(io.user, NULL, "b", &file, &error), EPCTX_OK);
    CHECK_INT(io.write_fn(io.user, &file, "text", 4, &error), EPCTX_ERR_NOMEM);
    CHECK_HAS(error.message, "b: no memory for a buffer to write");
    io.close_fn(io.user, &file);
    CHECK_STR(a.log, "");
    CHECK_UINT(memory.alive, 0);
    app_end(&a);
}

/* What a backup would keep is the application's: asked for one, nothing is replaced. */
TEST(no_backups) {
    app a = {0};
    epctx_buffer_io callbacks = app_callbacks(&a);
    epctx_io io = epctx_io_buffers(&callbacks);
    epctx_io_file file;
    epctx_error error;
    app_source(&a, "m.onnx", 0);
    epctx_error_clear(&error);
    memset(&file, 0xff, sizeof file); /* the caller's memory may hold anything */
    CHECK_INT(io.create_fn(io.user, NULL, "m.onnx", &file, NULL), EPCTX_OK);
    CHECK_TRUE(file.temp[0] == '\0' && file.kept[0] == '\0' && file.written == 0);
    CHECK_INT(io.commit_fn(io.user, &file, EPCTX_OVERWRITE_BACKUP, &error), EPCTX_ERR_UNSUPPORTED);
    CHECK_HAS(error.message, "m.onnx: a buffer cannot have a backup");
    CHECK_TRUE(io.back_fn(io.user, &file));
    io.close_fn(io.user, &file);
    CHECK_STR(a.log, "");
    CHECK_INT(io.create_fn(io.user, NULL, "new", &file, NULL), EPCTX_OK);
    CHECK_INT(io.commit_fn(io.user, &file, EPCTX_OVERWRITE_BACKUP, NULL), EPCTX_OK);
    io.close_fn(io.user, &file);
    CHECK_STR(a.log, "write new;");
    CHECK_INT(a.alive, 0);
    app_end(&a);
}

static epctx_status take_any(void *user, const char *name, const void *data, size_t size,
                             epctx_error *error) {
    (void)user, (void)name, (void)data, (void)size, (void)error;
    return EPCTX_OK;
}

static epctx_status same_path(void *user, const char *path, char *out, size_t capacity,
                              epctx_error *error) {
    (void)user;
    if (strlen(path) >= capacity) return epctx_fail(error, EPCTX_ERR_LIMIT, "too long");
    strcpy(out, path);
    return EPCTX_OK;
}

/* A name that is too long, alone or with what is put behind it, is refused. */
TEST(long_names) {
    static char path[EPCTX_PATH_MAX + 1];
    static const char *const calls[] = {"write", "lock", "folder"};
    epctx_buffer_io callbacks = {0};
    epctx_io io = epctx_io_buffers(&callbacks);
    callbacks.write_fn = take_any;
    io.canonical_fn = same_path;
    for (int call = 0; call < 3; call++) {
        const size_t least = EPCTX_PATH_MAX - 20;
        size_t good = 0;
        for (size_t size = least; size <= EPCTX_PATH_MAX; size++) {
            epctx_arena arena;
            epctx_commit commit;
            epctx_file_lock lock;
            epctx_error error;
            epctx_status status;
            memset(path, 'd', size);
            path[size] = '\0';
            path[0] = path[size - 2] = '/';
            for (size_t i = 100; i < size - 3; i += 100) path[i] = '/';
            epctx_arena_init(&arena, NULL);
            CHECK_OK(epctx_commit_begin(&commit, &io, &arena, &error), error);
            status = call == 0   ? epctx_write_bytes(&io, path, "x", 1, NULL, &error)
                     : call == 1 ? epctx_file_lock_take(&lock, &io, path, &error)
                                 : epctx_commit_set_folder(&commit, path, &error);
            epctx_commit_close(&commit);
            epctx_arena_free(&arena);
            CHECK(status == EPCTX_OK ? good == size - least : status == EPCTX_ERR_LIMIT,
                  "%s, %zu bytes: %s", calls[call], size, epctx_status_name(status));
            good += status == EPCTX_OK;
        }
        CHECK(good > 5 && good < 20, "%s: %zu lengths are accepted", calls[call], good);
    }
}

/* Begins to write `name`, with `text`, and clears or commits it. */
static epctx_io_file fresh;

static epctx_status write_one(const epctx_io *io, const char *name, bool alone, bool clear,
                              epctx_overwrite overwrite, epctx_error *error) {
    epctx_status status;
    epctx_error_clear(error);
    status = io->create_fn(io->user, NULL, name, &fresh, error);
    if (status != EPCTX_OK) return status;
    fresh.alone = alone;
    status = io->write_fn(io->user, &fresh, "new", 3, error);
    if (status != EPCTX_OK) return status;
    return (clear ? io->clear_fn : io->commit_fn)(io->user, &fresh, overwrite, error);
}

/* The way back after a failure elsewhere: the old buffer, or none. */
TEST(restoring) {
    static const struct {
        bool there, clear, fails;
        const char *log;
    } cases[] = {
        {true, false, false, "write b;write b;"}, {false, false, false, "write b;remove b;"},
        {true, true, false, "remove b;write b;"}, {false, true, false, ""},
        {true, false, true, "write b;write b;"},  {false, false, true, "write b;remove b;"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        app a = {0};
        epctx_buffer_io callbacks = app_callbacks(&a);
        epctx_io io = epctx_io_buffers(&callbacks);
        epctx_error error;
        bool back;
        if (cases[i].there) bytes_add(&app_find(&a, "b", true)->data, "old", 3);
        CHECK_OK(write_one(&io, "b", false, cases[i].clear, EPCTX_OVERWRITE_REPLACE, &error),
                 error);
        a.fails = cases[i].fails ? "b" : NULL;
        a.status = EPCTX_ERR_IO;
        back = io.back_fn(io.user, &fresh);
        CHECK(back == !cases[i].fails, "case %zu: restored: %d", i, back);
        CHECK_TRUE(io.back_fn(io.user, &fresh)); /* nothing is left to do */
        io.close_fn(io.user, &fresh);
        CHECK(strcmp(a.log, cases[i].log) == 0, "case %zu: %s", i, a.log);
        if (back) {
            const buffer *b = app_find(&a, "b", false);
            CHECK((b != NULL) == cases[i].there, "case %zu: the buffer is there: %d", i, b != NULL);
            CHECK(b == NULL || bytes_equal(&b->data, "old", 3), "case %zu: not the old one", i);
        }
        CHECK_INT(a.alive, 0);
        app_end(&a);
    }
}

/* A buffer that must not be replaced, or that cannot be looked at, stays. */
TEST(not_replaced) {
    app a = {0};
    epctx_buffer_io callbacks = app_callbacks(&a);
    epctx_io io = epctx_io_buffers(&callbacks);
    epctx_error error;
    bytes_add(&app_find(&a, "b", true)->data, "old", 3);
    CHECK_INT(write_one(&io, "b", true, false, EPCTX_OVERWRITE_FAIL, &error), EPCTX_ERR_EXISTS);
    CHECK_HAS(error.message, "b: exists already");
    io.close_fn(io.user, &fresh);
    a.fails = "b";
    a.status = EPCTX_ERR_IO;
    for (int clear = 0; clear < 2; clear++) {
        CHECK_INT(write_one(&io, "b", false, clear != 0, EPCTX_OVERWRITE_REPLACE, &error),
                  EPCTX_ERR_IO);
        CHECK_HAS(error.message, "the application says no");
        CHECK_TRUE(io.back_fn(io.user, &fresh));
        io.close_fn(io.user, &fresh);
    }
    CHECK_STR(a.log, "");
    CHECK_INT(a.alive, 0);
    app_end(&a);
}

TEST(removing) {
    app a = {0};
    epctx_buffer_io callbacks = app_callbacks(&a);
    epctx_io io = epctx_io_buffers(&callbacks);
    epctx_error error;
    app_source(&a, "m.onnx", 0);
    a.fails = "m.onnx";
    a.status = EPCTX_ERR_IO;
    a.silent = true;
    epctx_error_clear(&error);
    CHECK_INT(io.remove_fn(io.user, NULL, "x/../m.onnx", &error), EPCTX_ERR_IO);
    CHECK_HAS(error.message, "m.onnx: the application did not remove the buffer");
    a.fails = NULL;
    CHECK_INT(io.remove_fn(io.user, NULL, "x/../m.onnx", NULL), EPCTX_OK);
    CHECK_INT(io.remove_fn(io.user, NULL, "m.onnx", NULL), EPCTX_ERR_NOT_FOUND);
    app_end(&a);
}

int main(int argc, char **argv) {
    if (!make_root()) {
        printf("FAIL test_io_buffers: no folder to work in\n");
        return 1;
    }
    RUN(generate_and_load);
    RUN(names);
    RUN(failures);
    RUN(overwriting);
    RUN(few_callbacks);
    RUN(odd_buffers);
    RUN(no_memory);
    RUN(no_backups);
    RUN(long_names);
    RUN(restoring);
    RUN(not_replaced);
    RUN(removing);
    if (chdir("/") == 0) remove_root();
    return test_end();
}
