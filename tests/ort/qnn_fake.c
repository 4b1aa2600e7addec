/* qnn_fake.c - a library with the interface of Qualcomm's libQnnSystem.so, for
 * test_qnn_system.sh: it tells of any binary what EPCTX_QNN_FAKE says, or lies, or does not come
 * back. */
#define _GNU_SOURCE
#include "../../examples/epctx/ort/qnn_api.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* Is it this one? */
static int lie(const char *name) {
    const char *what = getenv("EPCTX_QNN_FAKE");
    return what != NULL && strcmp(what, name) == 0;
}

/* ---------------------------------------------------------------- what is told */

static const uint32_t shape[2] = {3, 4};
static const uint8_t dynamic[2] = {1, 0};
static qnn_tensor tensors[3];
static qnn_graph graphs[2];
static qnn_binary told;

static void name_tensor(qnn_tensor *tensor, const char *name, uint32_t type, uint32_t version) {
    memset(tensor, 0, sizeof *tensor);
    tensor->version = version;
    tensor->v.name = name;
    tensor->v.type = type;
    tensor->v.rank = 2;
    tensor->v.dims = shape;
    tensor->v.dynamic = version == 2 ? dynamic : NULL;
}

static void name_graph(qnn_graph *graph, const char *name, uint32_t version) {
    memset(graph, 0, sizeof *graph);
    graph->version = version;
    graph->v.name = name;
    graph->v.input_count = 2;
    graph->v.inputs = tensors;
    graph->v.output_count = 1;
    graph->v.outputs = tensors + 2;
}

/* Two graphs with two inputs and an output. */
static void tell_all(void) {
    static const qnn_version version = {1, 2, 3}, blob = {4, 5, 6};
    name_tensor(&tensors[0], "a", QNN_FLOAT_16, 1);
    name_tensor(&tensors[1], "b", QNN_UFIXED_16, 2);
    name_tensor(&tensors[2], "c", 0x0777, 1);
    name_graph(&graphs[0], "one", 3);
    name_graph(&graphs[1], "two", 1);
    memset(&told, 0, sizeof told);
    if (lie("version 1") || lie("version 2")) {
        told.version = lie("version 1") ? 1 : 2;
        told.v.v1.backend = QNN_GPU;
        told.v.v1.build = "v2.0";
        told.v.v1.blob_version = blob;
        told.v.v1.graph_count = 2;
        told.v.v1.graphs = graphs;
        return;
    }
    told.version = 3;
    told.v.v3.backend = QNN_HTP;
    told.v.v3.build = "v9.8.7";
    told.v.v3.core_api = told.v.v3.backend_api = version;
    told.v.v3.blob_version = blob;
    told.v.v3.graph_count = 2;
    told.v.v3.graphs = graphs;
    told.v.v3.soc_model = 69;
}

/* ---------------------------------------------------------------- lies */

static char *letters(size_t count) {
    char *text = (char *)malloc(count + 1);
    if (text == NULL) abort();
    memset(text, 'x', count);
    text[count] = '\0';
    return text;
}

/* As many graphs as may be, with names as long as may be. */
static void tell_much(void) {
    enum { COUNT = 4096, NAME = 4096 };
    qnn_graph *list = (qnn_graph *)calloc(COUNT, sizeof *list);
    const char *name = letters(NAME);
    size_t i;
    if (list == NULL) abort();
    for (i = 0; i < COUNT; i++) name_graph(&list[i], name, 3);
    told.v.v3.graph_count = COUNT;
    told.v.v3.graphs = list;
}

/* Within the bounds of each graph, but not of all. */
static void tell_many_values(void) {
    enum { COUNT = 65536 };
    qnn_tensor *list = (qnn_tensor *)calloc(COUNT, sizeof *list);
    size_t i;
    if (list == NULL) abort();
    for (i = 0; i < COUNT; i++) list[i].version = 1;
    for (i = 0; i < 2; i++) {
        graphs[i].v.input_count = COUNT;
        graphs[i].v.inputs = list;
    }
}

static void tell_lies(void) {
    if (lie("binary version")) told.version = 4;
    if (lie("graph version")) graphs[1].version = 4;
    if (lie("tensor version")) tensors[1].version = 3;
    if (lie("many graphs")) told.v.v3.graph_count = UINT32_MAX;
    if (lie("no graphs")) told.v.v3.graphs = NULL;
    if (lie("empty")) told.v.v3.graph_count = 0;
    if (lie("many inputs")) graphs[0].v.input_count = UINT32_MAX;
    if (lie("no inputs")) graphs[0].v.inputs = NULL;
    if (lie("many values")) tell_many_values();
    if (lie("no names")) tensors[0].v.name = graphs[0].v.name = told.v.v3.build = NULL;
    if (lie("long name")) graphs[1].v.name = letters(1 << 20);
    if (lie("odd name")) graphs[0].v.name = "\033[31mred\n";
    if (lie("all is known")) {
        tensors[1].version = 1;
        tensors[2].v.type = QNN_INT_64;
    }
    if (lie("rank")) tensors[2].v.rank = UINT32_MAX;
    if (lie("no shape")) tensors[2].v.dims = NULL;
    if (lie("much")) tell_much();
    if (lie("bad pointer")) graphs[1].v.inputs = (const qnn_tensor *)(uintptr_t)16;
    if (lie("unknown chip")) told.v.v3.soc_model = 65000;
}

static void print_much(void) {
    enum { SIZE = 100 << 20, LINE = 64 };
    const char *text = letters(LINE - 1);
    size_t i;
    for (i = 0; i < SIZE / LINE; i++) puts(text);
    fflush(stdout);
}

/* ---------------------------------------------------------------- the interface */

static qnn_error create(void **context) {
    if (lie("no context")) return 30001;
    *context = &told;
    return 0;
}

static void deprecated(void) {
    abort();
}

static qnn_error metadata(void *context, const void *binary, uint64_t size,
                          const qnn_binary **info) {
    if (context != &told || binary == NULL || size == 0) abort();
    if (lie("malformed")) return QNN_MALFORMED_BINARY;
    if (lie("another error")) return 30002;
    if (lie("crash")) raise(SIGSEGV);
    if (lie("abort")) abort();
    if (lie("exit")) exit(0);
    while (lie("hang")) sleep(1);
    if (lie("prints")) print_much();
    tell_all();
    tell_lies();
    *info = lie("nothing") ? NULL : &told;
    return 0;
}

static qnn_error free_context(void *context) {
    (void)context;
    return 0;
}

EXPORT qnn_error QnnSystemInterface_getProviders(const qnn_system ***systems, uint32_t *count);
EXPORT qnn_error QnnSystemInterface_getProviders(const qnn_system ***systems, uint32_t *count) {
    static const qnn_system newest = {0,          "SYSTEM", {1, 15, 0},  create,
                                      deprecated, metadata, free_context};
    static const qnn_system future = {0,          "SYSTEM", {2, 0, 0},   create,
                                      deprecated, metadata, free_context};
    static const qnn_system *list[1];
    if (lie("no interface")) return 1;
    list[0] = lie("interface version") ? &future : &newest;
    *systems = lie("no systems") ? NULL : list;
    *count = 1;
    return 0;
}
