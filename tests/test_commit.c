/* >>commit, and what >>edit hands to it: streams that end, backups while every call of the io
 * fails, paths, locks. */
#define _XOPEN_SOURCE 700
#include "edit.h"
#include "flaky.h"

static bool limited_sink(pb_ostream_t *stream, const pb_byte_t *data, size_t size) {
    size_t *left = (size_t *)stream->state;
    (void)data;
    if (size > *left) return false;
    *left -= size;
    return true;
}

/* The stream ends after any number of bytes. */
TEST(streams_that_end) {
    desk d;
    bytes all;
    CHECK_TRUE(desk_open(&d, sample()));
    CHECK_INT(
        epctx_edit_set_field_str(&d.model, node_at(&d.model, 1).view, 6, epctx_str_of("doc"), NULL),
        EPCTX_OK);
    CHECK_INT(epctx_edit_set_field_int(&d.model, tensor_at(&d.model), 14, 0, NULL), EPCTX_OK);
    all = written(&d.model);
    for (size_t room = 0; room <= all.size; room++) {
        pb_ostream_t stream = {0};
        size_t left = room;
        epctx_status status;
        stream.callback = limited_sink;
        stream.state = &left;
        stream.max_size = SIZE_MAX;
        status = epctx_model_write_stream(&d.model, &stream, &d.error);
        CHECK((status == EPCTX_OK) == (room == all.size), "%zu bytes of %zu: %s", room, all.size,
              epctx_status_name(status));
        CHECK(status == EPCTX_OK || d.error.message[0] != '\0', "%zu bytes: no message", room);
    }
    bytes_free(&all);
    desk_close(&d);
}

/* Every call of the io fails while a model with small and large fields gets a backup; what is there
 * is the old file or the new one, and a call that does not matter leaves a model to write again. */
TEST(backups) {
    static char large[40000];
    bytes old = sample(), now;
    desk d;
    CHECK_TRUE(make_root());
    CHECK_TRUE(desk_open(&d, sample()));
    desk_close(&d);
    for (int links = 0; links < 2; links++) {
        for (int at_call = 1;; at_call++) {
            flaky f = {0};
            epctx_io io;
            epctx_open_opts open = {0};
            epctx_write_opts opts = {0};
            epctx_model model;
            epctx_error error;
            epctx_status status;
            epctx_view doc = {NULL, (const uint8_t *)large, sizeof large};
            bytes found;
            f.no_links = links == 0;
            io = flaky_io(&f);
            open.io = &io;
            clear_root();
            make_file(at("m.onnx"), old.data, old.size);
            CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), &open, &error), EPCTX_OK);
            for (int i = 0; i < 3; i++) { /* small fields and large ones in turn */
                doc.size = i == 1 ? sizeof large : 9000;
                CHECK_INT(epctx_edit_put_copy(&model,
                                              i == 0 ? epctx_model_read(&model).view
                                                     : node_at(&model, i - 1).view,
                                              6, doc, epctx_view_none(), NULL, &error),
                          EPCTX_OK);
            }
            now = written(&model);
            f.calls = 0;
            f.fail_at = at_call;
            opts.overwrite = EPCTX_OVERWRITE_BACKUP;
            status = epctx_model_write_file(&model, at("m.onnx"), &opts, &error);
            f.fail_at = 0;
            found = read_file(at("m.onnx"));
            CHECK(bytes_equal(&found, old.data, old.size) ||
                      bytes_equal(&found, now.data, now.size),
                  "call %d: the file is torn", at_call);
            CHECK(status != EPCTX_OK || bytes_equal(&found, now.data, now.size),
                  "call %d: a success writes nothing", at_call);
            CHECK(status == EPCTX_OK || strstr(error.message, "injected") != NULL, "call %d: %s",
                  at_call, error.message);
            /* A file that could not be looked at afterwards may be written again. */
            if (status == EPCTX_OK && f.calls >= at_call)
                CHECK_OK(epctx_model_write_file(&model, at("m.onnx"), &opts, &error), error);
            bytes_free(&found);
            bytes_free(&now);
            epctx_model_close(&model);
            CHECK(f.maps == 0 && f.opens == 0, "call %d: %d maps, %d outputs leak", at_call, f.maps,
                  f.opens);
            if (f.calls < at_call) break;
        }
    }
    bytes_free(&old);
    remove_root();
}

/* A path that is too long, and a backup whose name nobody wants to know. */
TEST(paths_of_outputs) {
    static char path[2 * EPCTX_PATH_MAX];
    epctx_write_opts opts = {0};
    char none[1] = {'x'};
    epctx_error error;
    desk d;
    memset(path, 'd', sizeof path - 1);
    path[sizeof path - 10] = '/';
    CHECK_INT(epctx_output_check(epctx_io_files(), path, EPCTX_OVERWRITE_REPLACE, &error),
              EPCTX_ERR_LIMIT);
    CHECK_HAS(error.message, "a path is longer");
    CHECK_TRUE(make_root() && desk_open(&d, sample()));
    opts.overwrite = EPCTX_OVERWRITE_BACKUP;
    opts.backup = none;
    make_file(at("m.onnx"), "old", 3);
    CHECK_INT(epctx_model_write_file(&d.model, at("m.onnx"), &opts, &error), EPCTX_OK);
    CHECK_STR(listing(), "m.onnx m.onnx~ ");
    CHECK_INT(none[0], 'x');
    desk_close(&d);
    remove_root();
}

static epctx_output_file file_of(const char *path, const char *name, const epctx_span *part) {
    epctx_output_file file;
    memset(&file, 0, sizeof file);
    file.path = path;
    file.name = name;
    file.parts = part;
    file.part_count = 1;
    file.size = part->size;
    return file;
}

/* -- entries of a commit -- */

typedef struct bench {
    epctx_arena arena;
    epctx_commit commit;
    epctx_error error;
} bench;

static bool bench_open(bench *b, bool keep) {
    bool good;
    epctx_arena_init(&b->arena, NULL);
    good = epctx_commit_begin(&b->commit, NULL, &b->arena, &b->error) == EPCTX_OK;
    b->commit.keep = keep;
    return good;
}

/* Runs the commit, and ends it. */
static epctx_status bench_run(bench *b) {
    epctx_status status = epctx_commit_run(&b->commit, &b->error);
    epctx_commit_close(&b->commit);
    epctx_arena_free(&b->arena);
    return status;
}

TEST(names_in_a_commit) {
    const epctx_span part = {(const uint8_t *)"data", 4};
    epctx_output_file file;
    bench b;
    CHECK_TRUE(make_root() && bench_open(&b, false));
    file = file_of(at("f.bin"), "f.bin", &part);
    CHECK_INT(epctx_commit_put_file(&b.commit, &file, EPCTX_OVERWRITE_FAIL, &b.error),
              EPCTX_ERR_ARG);
    CHECK_HAS(b.error.message, "no folder for this name");
    file.name = ""; /* the caller's path */
    CHECK_OK(epctx_commit_put_file(&b.commit, &file, EPCTX_OVERWRITE_FAIL, &b.error), b.error);
    CHECK_OK(bench_run(&b), b.error);
    CHECK_STR(listing(), "f.bin ");
    remove_root();
}

/* Equal files stay, models too; they have to stay as they are until the commit runs. */
TEST(kept_files) {
    const epctx_span part = {(const uint8_t *)"data", 4}, other = {(const uint8_t *)"other", 5};
    const epctx_span padding = {NULL, 4};
    epctx_output_file files[2];
    epctx_span whole;
    bytes model = sample();
    bench b;
    desk d;
    whole.data = model.data;
    whole.size = model.size;
    CHECK_TRUE(make_root() && desk_open(&d, sample()));
    make_file(at("f.bin"), part.data, part.size);
    make_file(at("m.onnx"), model.data, model.size);
    CHECK_TRUE(bench_open(&b, true));
    files[0] = file_of(at("f.bin"), NULL, &part);
    CHECK_OK(epctx_commit_put_model(&b.commit, &d.model, at("n.onnx"), NULL, &b.error), b.error);
    CHECK_OK(epctx_commit_put_file(&b.commit, &files[0], EPCTX_OVERWRITE_FAIL, &b.error), b.error);
    CHECK_OK(bench_run(&b), b.error);
    CHECK_TRUE(files[0].kept);
    CHECK_STR(listing(), "f.bin m.onnx n.onnx ");
    CHECK_TRUE(bench_open(&b, true));
    files[0] = file_of(at("m.onnx"), NULL, &whole);
    files[0].is_model = true;
    files[1] = file_of(at("g.bin"), NULL, &other);
    for (int i = 0; i < 2; i++)
        CHECK_OK(epctx_commit_put_file(&b.commit, &files[i], EPCTX_OVERWRITE_FAIL, &b.error),
                 b.error);
    CHECK_OK(bench_run(&b), b.error);
    CHECK_TRUE(files[0].kept && !files[1].kept);
    CHECK_STR(listing(), "f.bin g.bin m.onnx n.onnx ");
    CHECK_TRUE(bench_open(&b, true));
    files[0] = file_of(at("f.bin"), NULL, &part);
    CHECK_OK(epctx_commit_put_file(&b.commit, &files[0], EPCTX_OVERWRITE_FAIL, &b.error), b.error);
    CHECK_INT(unlink(at("f.bin")), 0);
    CHECK_INT(bench_run(&b), EPCTX_ERR_CHANGED);
    /* Padding is zeros, not any byte four times. */
    make_file(at("f.bin"), "\1\1\1\1", 4);
    CHECK_TRUE(bench_open(&b, true));
    files[0] = file_of(at("f.bin"), NULL, &padding);
    CHECK_INT(epctx_commit_put_file(&b.commit, &files[0], EPCTX_OVERWRITE_FAIL, &b.error),
              EPCTX_ERR_EXISTS);
    CHECK_INT(bench_run(&b), EPCTX_OK);
    desk_close(&d);
    bytes_free(&model);
    remove_root();
}

/* A model's file that is gone loses nothing; one that changed is not replaced by another name. */
TEST(model_is_gone_or_changed) {
    bytes b = sample();
    epctx_write_opts opts = {0};
    epctx_model model;
    epctx_error error;
    CHECK_TRUE(make_root());
    opts.overwrite = EPCTX_OVERWRITE_REPLACE;
    make_file(at("m.onnx"), b.data, b.size);
    CHECK_OK(epctx_model_open_file(&model, at("m.onnx"), NULL, &error), error);
    CHECK_INT(unlink(at("m.onnx")), 0);
    CHECK_OK(epctx_model_write_file(&model, at("m.onnx"), NULL, &error), error);
    CHECK_OK(epctx_model_write_file(&model, at("./m.onnx"), &opts, &error), error);
    make_file(at("m.onnx"), "somebody's", 10);
    CHECK_INT(epctx_model_write_file(&model, at("./m.onnx"), &opts, &error), EPCTX_ERR_CHANGED);
    epctx_model_close(&model);
    bytes_free(&b);
    remove_root();
}

/* Who holds a lock waits for those behind it; those before it are only tried. */
TEST(locks_of_callers) {
    epctx_write_opts opts = {0};
    epctx_file_lock held, other;
    epctx_error error;
    desk d;
    CHECK_TRUE(make_root() && desk_open(&d, sample()));
    CHECK_OK(epctx_file_lock_take(&held, NULL, at("b.onnx"), &error), error);
    opts.lock = &held;
    opts.overwrite = EPCTX_OVERWRITE_REPLACE;
    for (const char *name = "abc"; *name != '\0'; name++) {
        char file[] = "x.onnx";
        file[0] = *name;
        CHECK_OK(epctx_model_write_file(&d.model, at(file), &opts, &error), error);
    }
    CHECK_OK(epctx_file_lock_take(&other, NULL, at("a.onnx"), &error), error);
    CHECK_INT(epctx_model_write_file(&d.model, at("a.onnx"), &opts, &error), EPCTX_ERR_CHANGED);
    CHECK_HAS(error.message, "another writer holds the lock");
    epctx_file_lock_drop(&other);
    CHECK_OK(epctx_model_write_file(&d.model, at("a.onnx"), &opts, &error), error);
    epctx_file_lock_drop(&held);
    desk_close(&d);
    remove_root();
}

/* Who does not want to wait for a lock asks for it. */
TEST(locks_tried) {
    epctx_file_lock held, other;
    epctx_error error;
    CHECK_TRUE(make_root());
    CHECK_OK(epctx_file_lock_try(&held, NULL, at("a.onnx"), &error), error);
    CHECK_INT(epctx_file_lock_try(&other, NULL, at("a.onnx"), &error), EPCTX_ERR_CHANGED);
    CHECK_HAS(error.message, "a.onnx.lock' is held by another process or thread");
    epctx_file_lock_drop(&other); /* it holds none */
    CHECK_OK(epctx_file_lock_try(&other, NULL, at("b.onnx"), &error), error);
    epctx_file_lock_drop(&other);
    epctx_file_lock_drop(&held);
    CHECK_OK(epctx_file_lock_try(&other, NULL, at("a.onnx"), &error), error);
    epctx_file_lock_drop(&other);
    remove_root();
}

static char taken[200]; /* names of locks, in the order in which they were taken */

static epctx_status take_lock(void *user, const char *folder, const char *name, epctx_io_file *lock,
                              epctx_error *error) {
    const epctx_io *files = epctx_io_files();
    const char *base = strrchr(name, '/');
    (void)user;
    strncat(taken, base != NULL ? base + 1 : name, sizeof taken - strlen(taken) - 1);
    strncat(taken, " ", sizeof taken - strlen(taken) - 1);
    return files->lock_fn(files->user, folder, name, lock, error);
}

/* All writers take locks in one order, or two of them could wait for each other: those of models
 * first, since who holds one waits for its files. */
TEST(order_of_locks) {
    static const char *const paths[] = {"c.bin", "b.onnx", "a.bin", "d.onnx"};
    const epctx_span part = {(const uint8_t *)"data", 4};
    epctx_io io = *epctx_io_files();
    epctx_output_file files[4];
    char names[4][400];
    bench b;
    io.lock_fn = take_lock;
    taken[0] = '\0';
    CHECK_TRUE(make_root());
    epctx_arena_init(&b.arena, NULL);
    CHECK_OK(epctx_commit_begin(&b.commit, &io, &b.arena, &b.error), b.error);
    for (int i = 0; i < 4; i++) {
        snprintf(names[i], sizeof names[i], "%s", at(paths[i]));
        files[i] = file_of(names[i], NULL, &part);
        CHECK_OK(epctx_commit_put_file(&b.commit, &files[i], EPCTX_OVERWRITE_FAIL, &b.error),
                 b.error);
    }
    CHECK_OK(bench_run(&b), b.error);
    CHECK_STR(taken, "b.onnx.lock d.onnx.lock a.bin.lock c.bin.lock ");
    CHECK_STR(listing(), "a.bin b.onnx c.bin d.onnx ");
    remove_root();
}

int main(int argc, char **argv) {
    RUN(streams_that_end);
    RUN(backups);
    RUN(paths_of_outputs);
    RUN(names_in_a_commit);
    RUN(kept_files);
    RUN(model_is_gone_or_changed);
    RUN(locks_of_callers);
    RUN(locks_tried);
    RUN(order_of_locks);
    return test_end();
}
