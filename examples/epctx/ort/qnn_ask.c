/* In the child process: asks the library about a binary, and writes down what it tells. Whatever is
 * wrong with the library ends this process only. */
#define _GNU_SOURCE
#include "qnn.h"
#include "qnn_api.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <string.h>

CLI_FORMAT(2) static bool refuse(anyep_board *board, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(board->text, sizeof board->text, format, args);
    va_end(args);
    return false;
}

/* ---------------------------------------------------------------- writing down */

static bool put(qnn_question *q, anyep_board *board, const void *data, size_t size) {
    if (size > sizeof q->told - q->used) return refuse(board, "it tells too much");
    if (size > 0) memcpy(q->told + q->used, data, size);
    q->used += (uint32_t)size;
    return true;
}

static bool put_number(qnn_question *q, anyep_board *board, uint32_t number) {
    return put(q, board, &number, sizeof number);
}

static bool put_version(qnn_question *q, anyep_board *board, qnn_version version) {
    return put_number(q, board, version.major) && put_number(q, board, version.minor) &&
           put_number(q, board, version.patch);
}

/* NULL is as good as empty. */
static bool put_text(qnn_question *q, anyep_board *board, const char *text) {
    const size_t size = text != NULL ? strnlen(text, QNN_NAME_MOST + 1) : 0;
    if (size > QNN_NAME_MOST)
        return refuse(board, "it tells a name of more than %d bytes", (int)QNN_NAME_MOST);
    return put_number(q, board, (uint32_t)size) && put(q, board, text, size);
}

/* ---------------------------------------------------------------- what is told */

static bool put_tensor(qnn_question *q, anyep_board *board, const qnn_tensor *tensor) {
    const uint8_t *dynamic = tensor->version == 2 ? tensor->v.dynamic : NULL;
    const bool shaped = tensor->v.rank == 0 || tensor->v.dims != NULL;
    uint32_t i;
    if (tensor->v.rank > BINARY_MOST_RANK)
        return refuse(board, "it tells a tensor of %u dimensions", (unsigned)tensor->v.rank);
    if (!put_text(q, board, tensor->v.name) || !put_number(q, board, tensor->v.type) ||
        !put_number(q, board, shaped) || !put_number(q, board, shaped ? tensor->v.rank : 0))
        return false;
    for (i = 0; shaped && i < tensor->v.rank; i++) {
        const bool any = dynamic != NULL && dynamic[i] != 0;
        if (!put_number(q, board, any) || !put_number(q, board, tensor->v.dims[i])) return false;
    }
    return true;
}

static bool put_tensors(qnn_question *q, anyep_board *board, const qnn_tensor *tensors,
                        uint32_t count) {
    uint32_t i;
    if (!put_number(q, board, count)) return false;
    for (i = 0; i < count; i++)
        if (!put_tensor(q, board, &tensors[i])) return false;
    return true;
}

/* Whether a list is there, of no more than may be, and of versions that we know. */
static bool check_tensors(anyep_board *board, const qnn_tensor *tensors, uint32_t count,
                          bool *known) {
    uint32_t i;
    if (count > BINARY_MOST_VALUES)
        return refuse(board, "it tells %u inputs or outputs of a graph", (unsigned)count);
    if (count > 0 && tensors == NULL)
        return refuse(board, "it tells %u inputs or outputs, and does not show them",
                      (unsigned)count);
    for (i = 0; i < count; i++)
        *known = *known && (tensors[i].version == 1 || tensors[i].version == 2);
    return true;
}

static bool put_graph(qnn_question *q, anyep_board *board, const qnn_graph *graph) {
    bool known = true;
    if (!check_tensors(board, graph->v.inputs, graph->v.input_count, &known) ||
        !check_tensors(board, graph->v.outputs, graph->v.output_count, &known))
        return false;
    return put_text(q, board, graph->v.name) && put_number(q, board, known) &&
           (!known || (put_tensors(q, board, graph->v.inputs, graph->v.input_count) &&
                       put_tensors(q, board, graph->v.outputs, graph->v.output_count)));
}

/* All of them or none: a graph of an unknown version has an unknown size, too. */
static bool put_graphs(qnn_question *q, anyep_board *board, const qnn_graph *graphs,
                       uint32_t count) {
    bool known = true;
    uint32_t i;
    if (count > BINARY_MOST_GRAPHS) return refuse(board, "it tells %u graphs", (unsigned)count);
    if (count > 0 && graphs == NULL)
        return refuse(board, "it tells %u graphs, and does not show them", (unsigned)count);
    for (i = 0; i < count; i++) known = known && graphs[i].version >= 1 && graphs[i].version <= 3;
    if (!put_number(q, board, known)) return false;
    if (!known) return true;
    if (!put_number(q, board, count)) return false;
    for (i = 0; i < count; i++)
        if (!put_graph(q, board, &graphs[i])) return false;
    return true;
}

/* In the order in which qnn_read.c reads it. */
static bool put_binary(qnn_question *q, anyep_board *board, const qnn_binary *binary) {
    const qnn_binary_1 *one = &binary->v.v1;
    const qnn_binary_3 *three = &binary->v.v3;
    if (binary->version == 1 || binary->version == 2)
        return put_number(q, board, one->backend) && put_text(q, board, one->build) &&
               put_version(q, board, one->core_api) && put_version(q, board, one->backend_api) &&
               put_version(q, board, one->blob_version) && put_number(q, board, 0) &&
               put_graphs(q, board, one->graphs, one->graph_count);
    if (binary->version == 3)
        return put_number(q, board, three->backend) && put_text(q, board, three->build) &&
               put_version(q, board, three->core_api) &&
               put_version(q, board, three->backend_api) &&
               put_version(q, board, three->blob_version) &&
               put_number(q, board, three->soc_model) &&
               put_graphs(q, board, three->graphs, three->graph_count);
    return refuse(board, "it tells in a structure of version %u, which epctx does not know",
                  (unsigned)binary->version);
}

/* ---------------------------------------------------------------- asking */

/* The functions of the library, or NULL. */
static const qnn_system *open_library(const char *path, anyep_board *board) {
    const qnn_system **systems = NULL;
    qnn_providers_fn providers = NULL;
    uint32_t count = 0;
    qnn_error error;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library != NULL ? dlsym(library, "QnnSystemInterface_getProviders") : NULL;
    if (symbol == NULL) {
        refuse(board, "%s", dlerror());
        return NULL;
    }
    memcpy(&providers, &symbol, sizeof providers); /* ISO C has no cast to a function */
    error = providers(&systems, &count);
    if (error != 0 || count == 0 || systems == NULL || systems[0] == NULL) {
        refuse(board, "it offers no interface (error %llu)", (unsigned long long)error);
        return NULL;
    }
    return systems[0];
}

bool qnn_ask(void *user, anyep_board *board) {
    qnn_question *q = (qnn_question *)user;
    const qnn_binary *binary = NULL;
    const qnn_system *system;
    void *context = NULL;
    snprintf(board->doing, sizeof board->doing, "asking %s", q->library);
    system = open_library(q->library, board);
    if (system == NULL) return false;
    q->api[0] = system->api.major, q->api[1] = system->api.minor, q->api[2] = system->api.patch;
    if (q->api[0] != 1 || q->api[1] < 1 || system->create_fn == NULL || system->metadata_fn == NULL)
        return refuse(board, "its interface of version %u.%u is not known here",
                      (unsigned)q->api[0], (unsigned)q->api[1]);
    q->error = system->create_fn(&context);
    if (q->error == 0)
        q->error = system->metadata_fn(context, q->binary.data, q->binary.size, &binary);
    if (q->error != 0)
        return refuse(board, "it refuses the binary: error %llu", (unsigned long long)q->error);
    if (binary == NULL) return refuse(board, "it tells nothing");
    return put_binary(q, board, binary); /* the context lives as long as this process */
}
