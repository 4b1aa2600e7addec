/* >>config: without files of the system and without malloc, what needs one asks for it. */
#undef EPCTX_ARENA_BLOCK /* as users have it */
#define EPCTX_NO_STDIO
#define EPCTX_NO_MALLOC
#define EPCTX_STATIC
#define EPCTX_IMPLEMENTATION
#include "examples/epctx/ops/lint.h"
#include "fake.h"
#include "test.h"

static uint8_t space[1 << 16];

TEST(files_need_an_io) {
    epctx_open_opts opts = {0};
    epctx_write_opts write = {0};
    epctx_output_file file;
    epctx_model model;
    epctx_file_lock lock;
    epctx_error error;
    char path[EPCTX_PATH_MAX];
    opts.buffer = space;
    opts.buffer_size = sizeof space;
    CHECK_TRUE(epctx_io_files() == NULL);
    CHECK_TRUE(epctx_io_private() == NULL);
    CHECK_INT(epctx_model_open_file(&model, "m.onnx", &opts, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "pass an epctx_io");
    CHECK_INT(epctx_model_new(&model, 8, &opts, &error), EPCTX_OK);
    CHECK_INT(epctx_model_write_file(&model, "m.onnx", NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "pass an epctx_io");
    /* Names of new files need none. */
    CHECK_OK(
        epctx_model_output_file(&model, "d/m.onnx", epctx_str_of("a.bin"), NULL, 0, &file, &error),
        error);
    CHECK_STR(file.path, "d/a.bin");
    epctx_model_close(&model);
    CHECK_INT(epctx_write_bytes(NULL, "m", "x", 1, &write, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "pass an epctx_io");
    CHECK_INT(epctx_file_lock_take(&lock, NULL, "m", &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "pass an epctx_io");
    CHECK_INT(epctx_path_find(NULL, epctx_str_of("m"), epctx_str_of("a.bin"), 0, path, sizeof path,
                              &error),
              EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "pass an epctx_io");
}

/* So does whoever compiles and loads. */
TEST(sessions_need_an_io) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    counting c = {0};
    epctx_allocator allocator = counting_allocator(&c);
    epctx_workspace_opts opts = {0};
    epctx_open_opts open = {0};
    epctx_share_opts share = {0};
    epctx_load_opts load = {0};
    epctx_preflight_in in = {0};
    const epctx_graph *piece = NULL;
    const epctx_node *nodes;
    epctx_options options;
    epctx_outputs out;
    epctx_loaded loaded;
    epctx_workspace *w;
    epctx_model model;
    epctx_arena arena;
    epctx_error error;
    bytes graph = {0}, b;
    epctx_arena_init(&arena, &allocator);
    epctx_options_init(&options, &arena);
    in.model_path = "m.onnx";
    CHECK_INT(epctx_preflight(&options, &in, &arena, &out, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "pass an epctx_io");
    CHECK_INT(epctx_workspace_open(&w, NULL, &error), EPCTX_ERR_NOMEM);
    opts.allocator = open.allocator = load.allocator = &allocator;
    CHECK_INT(epctx_workspace_open(&w, &opts, &error), EPCTX_OK);
    share.context_path = "m_ctx.onnx";
    share.pieces = &piece;
    share.piece_count = 1;
    CHECK_INT(epctx_share_compile(w, &backend, &share, &arena, &nodes, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "pass a workspace, an io");
    epctx_workspace_close(w);
    add_epnode(&graph, "node", "x", "y", 1, 0, "FakeEP", "part", "p.bin", 5);
    b = new_model(&graph);
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, &open, &error), EPCTX_OK);
    CHECK_INT(epctx_generate(&model, &backend, NULL, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "an open model with an io");
    load.context_file_path = "m_ctx.onnx";
    CHECK_TRUE(epctx_load(&loaded, &model, &backend, &load, &error) != EPCTX_OK);
    CHECK_HAS(error.message, "EPCTX_NO_STDIO: pass an epctx_io");
    epctx_model_close(&model);
    epctx_arena_free(&arena);
    bytes_free(&b);
    CHECK_UINT(c.alive, 0);
}

TEST(memory_needs_an_allocator) {
    epctx_model model;
    epctx_buffer buffer;
    epctx_error error;
    CHECK_INT(epctx_model_new(&model, 8, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "pass a buffer or an epctx_allocator");
    epctx_buffer_init(&buffer, NULL);
    CHECK_INT(epctx_buffer_append(&buffer, "x", 1), EPCTX_ERR_NOMEM);
    epctx_buffer_free(&buffer);
}

/* A list that grows frees its former memory only if nothing else is in that block. */
TEST(shared_block_stays) {
    enum { LEAST = 65536 }; /* of a list whose memory is freed */
    typedef struct item {
        uint8_t bytes[LEAST / 8];
    } item;
    counting c = {0};
    epctx_allocator allocator = counting_allocator(&c);
    epctx_arena arena;
    epctx_list list = {0};
    uint8_t *beside;
    size_t blocks;
    epctx_arena_init(&arena, &allocator);
    while (arena.left >= LEAST || arena.blocks == NULL || arena.blocks->after < 2 * LEAST)
        CHECK_TRUE(epctx_arena_alloc(&arena, 4096) != NULL);
    for (size_t i = 0; i < 8; i++) CHECK_TRUE(epctx_list_add(&list, &arena, sizeof(item)) != NULL);
    beside = (uint8_t *)epctx_arena_alloc(&arena, 100);
    CHECK(beside == (uint8_t *)list.items + LEAST, "the list and what follows share no block");
    memset(beside, 7, 100);
    blocks = c.alive;
    CHECK_TRUE(epctx_list_add(&list, &arena, sizeof(item)) != NULL);
    CHECK(c.alive >= blocks, "the block of another allocation is freed");
    CHECK_TRUE(beside[0] == 7 && beside[99] == 7);
    epctx_arena_free(&arena);
    CHECK_UINT(c.alive, 0);
}

/* What cannot be collected is not written. */
static epctx_status take_buffer(void *user, const char *name, const void *data, size_t size,
                                epctx_error *error) {
    (void)user, (void)name, (void)data, (void)size, (void)error;
    return EPCTX_OK;
}

TEST(buffers_need_an_allocator) {
    epctx_buffer_io callbacks = {0};
    epctx_io io = epctx_io_buffers(&callbacks);
    epctx_io_file file;
    epctx_error error;
    callbacks.write_fn = take_buffer;
    epctx_error_clear(&error);
    CHECK_INT(io.create_fn(io.user, NULL, "b", &file, &error), EPCTX_ERR_NOMEM);
    CHECK_HAS(error.message, "no memory for a buffer to write");
}

/* Paths are judged all the same, and files only named. */
TEST(lint_and_files) {
    epctx_open_opts opts = {0};
    epctx_allocator allocator;
    epctx_check_opts check = {0};
    epctx_dependency *files;
    epctx_model model;
    epctx_arena arena;
    counting c = {0};
    bytes graph = {0}, b;
    uint64_t counts[EPCTX_SEVERITY_COUNT];
    size_t count = 0;
    allocator = counting_allocator(&c);
    opts.allocator = check.allocator = &allocator;
    check.context_file_path = "m_ctx.onnx";
    add_epnode(&graph, "good", "x", "y", 1, 0, "QNN", "p", "good.bin", 8);
    add_epnode(&graph, "bad", "y", "z", 1, 0, "QNN", "q", "../bad.bin", 10);
    b = new_model(&graph);
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, &opts, NULL), EPCTX_OK);
    epctx_arena_init(&arena, &allocator);
    CHECK_INT(epctx_model_files(&model, &check, &arena, &files, &count, NULL), EPCTX_OK);
    CHECK_UINT(count, 2);
    CHECK_INT(files[0].status, EPCTX_OK);
    CHECK_INT(files[1].status, EPCTX_ERR_PATH);
    CHECK_INT(epctx_lint(&model, &check, NULL, NULL, counts, NULL), EPCTX_OK);
    CHECK_TRUE(counts[EPCTX_SEVERITY_ERROR] > 0);
    epctx_arena_free(&arena);
    epctx_model_close(&model);
    bytes_free(&b);
    CHECK_UINT(c.alive, 0);
}

int main(int argc, char **argv) {
    RUN(files_need_an_io);
    RUN(sessions_need_an_io);
    RUN(memory_needs_an_allocator);
    RUN(shared_block_stays);
    RUN(buffers_need_an_allocator);
    RUN(lint_and_files);
    return test_end();
}
