/* >>state: files of a model: what goes along with it, partitions of one name in one file or in
 * several, and both listing and lint with every allocation failing in turn. */
#define _XOPEN_SOURCE 700
#include "files.h"
#include "examples/epctx/ops/lint.h"
#include "starve.h"

static const char npu[] = "EpctxNpuExecutionProvider";

typedef struct findings {
    char ids[600]; /* each with a blank behind it */
} findings;

static void note_finding(void *user, const epctx_finding *finding) {
    findings *all = (findings *)user;
    size_t used = strlen(all->ids);
    snprintf(all->ids + used, sizeof all->ids - used, "%s ", finding->info.id);
}

/* One partition name, in contexts of their own or in one. */
TEST(partitions_of_one_name) {
    static const struct {
        int64_t embed[2];
        const char *cache[2];
        bool doubled;
    } cases[] = {
        {{0, 0}, {"c.bin", "c.bin"}, true},  {{0, 0}, {"c.bin", "d.bin"}, false},
        {{0, 1}, {"c.bin", "c.bin"}, false}, {{1, 0}, {"c.bin", "c.bin"}, false},
        {{1, 1}, {"c.bin", "c.bin"}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes graph = {0}, data;
        epctx_check_opts opts = {0};
        epctx_model model;
        findings all = {{0}};
        for (int k = 0; k < 2; k++)
            add_epnode(&graph, k == 0 ? "a" : "b", "x", k == 0 ? "y" : "z", 1, cases[i].embed[k],
                       npu, "same", cases[i].cache[k], 5);
        data = end_model(&graph);
        opts.no_files = true;
        CHECK_INT(epctx_model_open_memory(&model, data.data, data.size, NULL, NULL), EPCTX_OK);
        CHECK_INT(epctx_lint(&model, &opts, note_finding, &all, NULL, NULL), EPCTX_OK);
        CHECK((strstr(all.ids, "E040 ") != NULL) == cases[i].doubled, "case %zu: %s", i, all.ids);
        epctx_model_close(&model);
        bytes_free(&data);
    }
}

/* A secondary node with a context of its own; more sidecars than are listed: the first by name. */
TEST(files_of_a_model) {
    enum { SIDECARS = 70 };
    bytes graph = {0}, data;
    epctx_dependency *files;
    epctx_arena arena;
    epctx_model model;
    epctx_error error;
    size_t count, sidecars = 0;
    char name[40];
    CHECK_TRUE(make_root());
    for (int i = 0; i < SIDECARS; i++) {
        snprintf(name, sizeof name, "m%02d_schematic.bin", i * 37 % SIDECARS);
        make_file(at(name), "s", 1);
    }
    make_file(at("rtx.bin"), "c", 1);
    make_file(at("qnn.bin"), "c", 1);
    add_epnode(&graph, "a", "x", "y", 0, 0, "NvTensorRTRTXExecutionProvider", "p", "rtx.bin", 7);
    add_epnode(&graph, "b", "x", "z", 1, 0, "QNN", "p", "qnn.bin", 7);
    data = end_model(&graph);
    make_file(at("m.onnx"), data.data, data.size);
    CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, &error), EPCTX_OK);
    epctx_arena_init(&arena, NULL);
    CHECK_OK(epctx_model_files(&model, NULL, &arena, &files, &count, &error), error);
    CHECK_UINT(count, 2 + EPCTX_MATCH_MAX);
    CHECK_TRUE(epctx_str_is(files[0].name, "rtx.bin") && files[0].required);
    for (size_t i = 0; i < count; i++) {
        if (files[i].use != EPCTX_USE_COMPANION) continue;
        snprintf(name, sizeof name, "m%02zu_schematic.bin", sidecars++);
        CHECK(epctx_str_is(files[i].name, name), "'%.*s', expected '%s'", (int)files[i].name.size,
              files[i].name.data, name);
    }
    epctx_arena_free(&arena);
    epctx_model_close(&model);
    bytes_free(&data);
    remove_root();
}

static epctx_status run_files(epctx_model *a, epctx_model *b, epctx_error *error) {
    epctx_dependency *files;
    size_t count;
    epctx_status status = epctx_model_files(a, NULL, &a->arena, &files, &count, error);
    (void)b;
    for (size_t i = 0; status == EPCTX_OK && i < count; i++)
        starve_say("%d %.*s %d %d %s %s\n", (int)files[i].use, (int)files[i].name.size,
                   files[i].name.data, (int)files[i].required, (int)files[i].status,
                   files[i].folder, files[i].path != NULL ? files[i].path : "");
    return status;
}

/* What is reported when memory ends is true, as far as it goes. */
static epctx_status run_lint(epctx_model *a, epctx_model *b, epctx_error *error) {
    static findings all, some;
    epctx_check_opts opts = {0};
    epctx_status status;
    (void)b;
    memset(&all, 0, sizeof all);
    memset(&some, 0, sizeof some);
    if (epctx_lint(a, &opts, note_finding, &all, NULL, NULL) != EPCTX_OK) return EPCTX_ERR_ARG;
    opts.allocator = a->arena.allocator.alloc_fn != NULL ? &a->arena.allocator : NULL;
    status = epctx_lint(a, &opts, note_finding, &some, NULL, error);
    if (strncmp(all.ids, some.ids, strlen(some.ids)) != 0 ||
        (status == EPCTX_OK && strcmp(all.ids, some.ids) != 0))
        return epctx_fail(error, EPCTX_ERR_ARG, "found '%s', with all memory '%s'", some.ids,
                          all.ids);
    return status;
}

TEST(out_of_memory) {
    size_t runs = 0;
    for (int fill = 0; fill < 13; fill++) {
        static const starve_fn runs_of[] = {run_files, run_lint};
        bytes graph = {0}, node, data;
        char name[40], path[400];
        starve_in in;
        CHECK_TRUE(make_root());
        for (int i = 0; i < fill; i++) {
            snprintf(name, sizeof name, "c%d.bin", i);
            make_file(at(name), "c", 1);
            add_epnode(&graph, name, "x", "", 1, 0, npu, name, name, strlen(name));
        }
        make_file(at("qnn_op_trace.json"), "{}", 2);
        node = new_node("EPContext", "com.microsoft", "dlc", "x", "y");
        add_attr_int(&node, "embed_mode", 0);
        add_attr_str(&node, "source", "QNN", 3);
        add_attr_str(&node, "ep_dlc_context", "qnn_op_trace.json", 17);
        put_child(&graph, 1, &node);
        data = end_model(&graph);
        make_file(at("m.onnx"), data.data, data.size);
        snprintf(path, sizeof path, "%s", at("m.onnx"));
        memset(&in, 0, sizeof in);
        in.path[0] = path;
        in.data[1] = &data;
        for (int k = 0; k < 2; k++) {
            const char *wrong =
                fill == 0 ? starve(runs_of[k], &in, &runs) : starve_tables(runs_of[k], &in, &runs);
            CHECK(wrong == NULL, "operation %d, fill %d: %s", k, fill, wrong);
        }
        bytes_free(&data);
        remove_root();
    }
    printf("note %zu runs\n", runs);
}

int main(int argc, char **argv) {
    RUN(partitions_of_one_name);
    RUN(files_of_a_model);
    RUN(out_of_memory);
    return test_end();
}
