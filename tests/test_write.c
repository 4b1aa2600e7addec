/* >>edit and >>commit: writing an edited model: streams that end, backups while every call of the
 * io fails, paths. */
#define _XOPEN_SOURCE 700
#include "edit.h"
#include "flaky.h"

static bool limited_sink(pb_ostream_t *stream, const pb_byte_t *data, size_t size)
{
    size_t *left = (size_t *)stream->state;
    (void)data;
    if (size > *left) return false;
    *left -= size;
    return true;
}

/* The stream ends after any number of bytes. */
TEST(streams_that_end)
{
    desk d;
    bytes all;
    CHECK_TRUE(desk_open(&d, sample()));
    CHECK_INT(
        epctx_message_set_str(&d.model, node_at(&d.model, 1).view, 6, epctx_str_of("doc"), NULL),
        EPCTX_OK);
    CHECK_INT(epctx_message_set_int(&d.model, tensor_at(&d.model), 14, 0, NULL), EPCTX_OK);
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
 * is the old file or the new one. */
TEST(backups)
{
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
            epctx_span span = {(const uint8_t *)large, sizeof large};
            bytes found;
            f.no_links = links == 0;
            io = flaky_io(&f);
            open.io = &io;
            clear_root();
            make_file(at("m.onnx"), old.data, old.size);
            CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), &open, &error), EPCTX_OK);
            for (int i = 0; i < 3; i++) { /* small fields and large ones in turn */
                span.size = i == 1 ? sizeof large : 9000;
                CHECK_INT(epctx_message_set_data(&model,
                                                 i == 0 ? epctx_model_read(&model).view
                                                        : node_at(&model, i - 1).view,
                                                 6, span, &error),
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
TEST(paths_of_outputs)
{
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

int main(int argc, char **argv)
{
    RUN(streams_that_end);
    RUN(backups);
    RUN(paths_of_outputs);
    return test_end();
}
