/* Each rule of lint with the smallest model that breaks it and the smallest that does not. */
#define _XOPEN_SOURCE     700
#define _FILE_OFFSET_BITS 64

#include "examples/epctx/facts/facts.h"
#include "examples/epctx/ops/lint.h"
#include "examples/epctx/ops/state.h"
#include "binaries.h"
#include "rich.h"
#include "checked.h"
#include "temp.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- models -- */

static void empty_model(bytes *model) {
    bytes_free(model);
    put_int(model, 1, 8);
}

static void second_name(bytes *node) {
    put_str(node, 3, "n");
}

static void text_max_size(bytes *node) {
    add_attr_str(node, "max_size", "7", 1);
}

static void number_max_size(bytes *node) {
    add_attr_int(node, "max_size", 7);
}

static void second_source(bytes *node) {
    add_attr_str(node, "source", "MyEP", 4);
}

static void own_attribute(bytes *node) {
    add_attr_str(node, "mine", "x", 1);
}

static void index_attribute(bytes *node) {
    add_attr_int(node, "index", 0);
}

static void again_y(bytes *graph) {
    add_node(graph, "Relu", "r", "x", "y");
}

static void two_weights(bytes *graph) {
    static const float data[1] = {1};
    add_floats(graph, "w", data, 1);
    add_floats(graph, "w", data, 1);
    add_node(graph, "Relu", "r", "w", "z");
}

static void unused_weight(bytes *graph) {
    static const float data[1] = {1};
    add_floats(graph, "w", data, 1);
}

static void ghost_input(bytes *graph) {
    add_node(graph, "Relu", "r", "ghost", "z");
}

static void ghost_in_body(bytes *graph) {
    bytes body = {0};
    add_node(&body, "Relu", "r", "ghost", "q");
    if_body(graph, &body);
}

static void outer_in_body(bytes *graph) {
    bytes body = {0};
    add_node(&body, "Relu", "r", "x", "q");
    if_body(graph, &body);
}

static void memory_data(bytes *graph) {
    add_external(graph, "w", 1, "*/_ORT_MEM_ADDR_/*", "0", "4");
}

static void file_data(bytes *graph) {
    add_external(graph, "w", 1, "good.bin", "0", "4");
}

static void data_beyond(bytes *graph) {
    add_external(graph, "w", 4, "good.bin", "32", "16");
    add_node(graph, "Relu", "r", "w", "z");
}

static void data_nowhere(bytes *graph) {
    add_external(graph, "w", 1, NULL, "0", "4");
    add_node(graph, "Relu", "r", "w", "z");
}

static void custom_node(bytes *graph) {
    bytes node = new_node("Op", "custom", "c", "x", "z");
    put_child(graph, 1, &node);
}

static void custom_import(bytes *model) {
    add_opset(model, "custom", 1);
}

static void second_import(bytes *model) {
    add_opset(model, "ai.onnx", 13);
}

static void lost_output(bytes *graph) {
    static const int64_t dims[] = {1, -1};
    add_value(graph, GRAPH_OUTPUT, "nowhere", 1, dims);
}

static void short_tensor(bytes *graph) {
    bytes tensor = {0};
    put_int(&tensor, 1, 3);
    put_int(&tensor, 2, 1);
    put_str(&tensor, 8, "w");
    put_data(&tensor, 9, "12345678", 8);
    put_child(graph, 5, &tensor);
}

static void short_tensor_read(bytes *graph) {
    short_tensor(graph);
    add_node(graph, "Relu", "r", "w", "z");
}

/* A second output, of strings. */
static void text_output(bytes *node) {
    put_str(node, 2, "t");
}

static void text_value(bytes *graph) {
    static const int64_t dims[] = {1, -1};
    add_value(graph, GRAPH_OUTPUT, "t", EPCTX_ONNX_STRING, dims);
}

static void compat_other(bytes *model) {
    metadata(model, "ep_compatibility_info.OtherEP", "x");
}

/* The first letter and the last one. */
static void compat_capitals(bytes *model) {
    metadata(model, "ep_compatibility_info.AZEP", "x");
}

static void metadata_latin(bytes *model) {
    metadata(model, "author", "J\xfcrgen");
}

static void compat_qnn_bad(bytes *model) {
    metadata(model, "ep_compatibility_info.QNNExecutionProvider", "0:1.2:3");
}

static void compat_qnn_good(bytes *model) {
    metadata(model, "ep_compatibility_info.QNNExecutionProvider", "6:2.30.0:2.20.0:3.3.3:73:0");
}

static void metadata_twice(bytes *model) {
    metadata(model, "author", "a");
    metadata(model, "author", "b");
}

static void info_twice(bytes *graph) {
    static const int64_t dims[] = {1, -1};
    add_value(graph, GRAPH_VALUE, "v", 1, dims);
    add_value(graph, GRAPH_VALUE, "v", 1, dims);
}

static void ir_99(bytes *model) {
    put_int(model, 1, 99);
}

static void relus_of_one_name(bytes *graph) {
    add_node(graph, "Relu", "r", "x", "p");
    add_node(graph, "Relu", "r", "x", "q");
}

static void annotation_of_nothing(bytes *graph) {
    add_scale(graph, "gone", "x");
}

static void annotation_of_y(bytes *graph) {
    add_scale(graph, "y", "x");
}

static void wrong_order(bytes *graph) {
    add_node(graph, "Relu", "r1", "p", "q");
    add_node(graph, "Relu", "r2", "x", "p");
}

/* -- devices, training, functions -- */

static void on_mesh(bytes *node, const char *id, const char *tensor) {
    bytes on = {0}, sharding = {0};
    put_str(&on, 1, id);
    put_str(&sharding, 1, tensor);
    put_child(&on, 2, &sharding);
    put_child(node, 10, &on);
}

static void mesh(bytes *model) {
    bytes config = {0};
    put_str(&config, 1, "mesh");
    put_int(&config, 2, 2);
    put_child(model, 26, &config);
}

static void on_mesh_y(bytes *node) {
    on_mesh(node, "mesh", "y");
}

static void sharding_of_nothing(bytes *node) {
    on_mesh(node, "mesh", "gone");
}

static void bind(bytes *training, uint32_t number, const char *key, const char *value) {
    put_pair(training, number, key, value);
}

enum { INITIAL = 3, UPDATE = 4 };

/* initialization: -> w0; algorithm: w of the main graph, momentum -> w1. */
static void train(bytes *model, const char *reads, uint32_t number, const char *key,
                  const char *value) {
    static const float data[1] = {1};
    static const int64_t dims[] = {1, -1};
    bytes training = {0}, start = {0}, step = {0};
    put_str(&start, 2, "start");
    add_node(&start, "RandomNormal", "s", "", "w0");
    add_value(&start, GRAPH_OUTPUT, "w0", 1, dims);
    put_str(&step, 2, "step");
    add_floats(&step, "momentum", data, 1);
    add_node(&step, "Add", "t", reads, "w1");
    add_value(&step, GRAPH_OUTPUT, "w1", 1, dims);
    put_child(&training, 1, &start);
    put_child(&training, 2, &step);
    bind(&training, number, key, value);
    put_child(model, 20, &training);
}

static void train_well(bytes *model) {
    train(model, "w,momentum", UPDATE, "w", "w1");
    train(model, "y,momentum", UPDATE, "momentum", "y"); /* values of the main graph */
    train(model, "w,momentum", INITIAL, "w", "w0");
}

static void train_no_initializer(bytes *model) {
    train(model, "w,momentum", UPDATE, "x", "w1");
}

static void train_no_output(bytes *model) {
    train(model, "w,momentum", INITIAL, "w", "w1"); /* of the algorithm */
}

static void train_twice(bytes *model) {
    train(model, "w,momentum", UPDATE, "w", "w1");
    train(model, "w,momentum", UPDATE, "w", "w1");
}

static void train_ghost(bytes *model) {
    train(model, "ghost,momentum", UPDATE, "w", "w1");
}

/* A function with a node of domain `custom`. */
static void function(bytes *model, bool import) {
    bytes f = {0}, node = new_node("Op", "custom", "c", "a", "b");
    put_str(&f, 1, "F");
    put_str(&f, 4, "a");
    put_str(&f, 5, "b");
    put_child(&f, 7, &node);
    if (import) {
        bytes opset = {0};
        put_str(&opset, 1, "custom");
        put_int(&opset, 2, 1);
        put_child(&f, 9, &opset);
    }
    put_str(&f, 10, "mine");
    put_child(model, 25, &f);
}

/* What the model imports does not count inside of a function. */
static void function_without_import(bytes *model) {
    add_opset(model, "custom", 1);
    function(model, false);
}

static void function_with_import(bytes *model) {
    function(model, true);
}

/* An EPContext in a function, which has the types of its values in a list (IR version 10). */
static void function_with_type(bytes *model, const char *typed) {
    static const int64_t dims[] = {2, -1};
    bytes f = {0}, node = new_node("EPContext", "com.microsoft", "c", "a", "t");
    put_str(&f, 1, "F");
    put_str(&f, 4, "a");
    put_str(&f, 5, "t");
    add_attr_str(&node, "source", "MyEP", 4);
    put_child(&f, 7, &node);
    add_value(&f, 12, typed, EPCTX_ONNX_FLOAT, dims);
    put_child(model, 25, &f);
}

static void function_that_types_its_output(bytes *model) {
    function_with_type(model, "t");
}

static void function_that_types_its_input(bytes *model) {
    function_with_type(model, "a");
}

static void function_without_its_output(bytes *model) {
    bytes f = {0};
    put_str(&f, 1, "F");
    put_str(&f, 5, "b");
    put_child(model, 25, &f);
}

/* Domains that ORT brings itself. */
static void domains_of_ort(bytes *graph) {
    static const char *const domains[] = {"com.microsoft.nchwc", "ai.onnx.ml",
                                          "com.ms.internal.nhwc", "org.pytorch.aten"};
    for (size_t i = 0; i < sizeof domains / sizeof domains[0]; i++) {
        bytes node = new_node("Op", domains[i], "", "x", "");
        put_child(graph, 1, &node);
    }
}

/* A value of which one dimension is `dim`. */
static void one_dim(bytes *graph, const char *name, int64_t dim) {
    bytes value = {0}, type = {0}, tensor = {0}, shape = {0}, one = {0};
    put_int(&one, 1, dim);
    put_child(&shape, 1, &one);
    put_int(&tensor, 1, 1);
    put_child(&tensor, 2, &shape);
    put_child(&type, 1, &tensor);
    put_str(&value, 1, name);
    put_child(&value, 2, &type);
    put_child(graph, GRAPH_VALUE, &value);
}

static void x_is_negative(bytes *graph) {
    one_dim(graph, "x", -5);
}

static void x_is_five(bytes *graph) {
    one_dim(graph, "x", 5);
}

/* An initializer and a node that reads it. */
static void tensor_of(bytes *graph, const char *name, int32_t elem, int64_t dim, int64_t other,
                      size_t size) {
    static const uint8_t zeros[16] = {0};
    char reader[8];
    bytes tensor = {0};
    put_int(&tensor, 1, dim);
    put_int(&tensor, 1, other);
    put_int(&tensor, 2, elem);
    put_str(&tensor, 8, name);
    put_data(&tensor, 9, zeros, size);
    put_child(graph, 5, &tensor);
    snprintf(reader, sizeof reader, "r%s", name);
    add_node(graph, "Relu", reader, name, reader);
}

static void small_types(bytes *graph) {
    tensor_of(graph, "a", 21, 3, 1, 2);
    tensor_of(graph, "b", 22, 4, 1, 2);
    tensor_of(graph, "c", 25, 5, 1, 2);
    tensor_of(graph, "d", 26, 4, 1, 1);
    tensor_of(graph, "e", 1, 0, 7, 0);
}

static void small_type_too_long(bytes *graph) {
    tensor_of(graph, "a", 22, 3, 1, 3);
}

static void too_many_to_count(bytes *graph) {
    tensor_of(graph, "a", 1, INT64_MAX, 8, 3);
}

static void strings_in_raw_data(bytes *graph) {
    tensor_of(graph, "a", EPCTX_ONNX_STRING, 3, 1, 1);
}

static void negative_dim(bytes *graph) {
    tensor_of(graph, "a", 1, -1, 1, 0);
}

static void external_length(bytes *graph) {
    add_external(graph, "w", 4, "good.bin", "0", "12");
    add_node(graph, "Relu", "r", "w", "z");
}

/* No number: not as if it were not there. */
static void external_odd_length(bytes *graph) {
    add_external(graph, "w", 4, "good.bin", "0", "16x");
    add_node(graph, "Relu", "r", "w", "z");
}

static void external_without_length(bytes *graph) {
    add_external(graph, "w", 4, "good.bin", "0", NULL);
    add_node(graph, "Relu", "r", "w", "z");
}

static void external_behind(bytes *graph) {
    add_external(graph, "w", 1, "good.bin", "41", NULL);
    add_node(graph, "Relu", "r", "w", "z");
}

static void sparse_of(bytes *graph, const char *name) {
    bytes sparse = {0}, values = {0};
    put_str(&values, 8, name);
    put_child(&sparse, 1, &values);
    put_child(graph, 15, &sparse);
}

static void two_sparse(bytes *graph) {
    sparse_of(graph, "w");
    sparse_of(graph, "w");
}

static void two_shardings(bytes *node) {
    on_mesh_y(node);
    on_mesh_y(node);
}

static void sharding_without_name(bytes *node) {
    on_mesh(node, "mesh", "");
}

/* Training graphs that continue the main graph: what they define must be new. */
static void continuing(bytes *model, uint32_t number, const char *name) {
    static const float data[1] = {1};
    static const int64_t dims[] = {1, -1};
    bytes training = {0}, step = {0};
    put_str(&step, 2, "step");
    if (number == 5) add_floats(&step, name, data, 1);
    if (number == 11) add_value(&step, GRAPH_INPUT, name, 1, dims);
    if (number == 1) add_node(&step, "Relu", "s", "x", name);
    if (number != 0) put_child(&training, 2, &step);
    if (number == 0) bind(&training, UPDATE, "w", "y");
    bytes_free(&step);
    put_child(model, 20, &training);
}

static void initializer_again(bytes *model) {
    continuing(model, 5, "y");
}

static void input_again(bytes *model) {
    continuing(model, 11, "y");
}

static void output_again(bytes *model) {
    continuing(model, 1, "y");
}

static void all_new(bytes *model) {
    continuing(model, 5, "new5");
    continuing(model, 11, "new11");
    continuing(model, 1, "new1");
}

static void no_algorithm(bytes *model) {
    continuing(model, 0, "");
}

static void stamp_of_another(bytes *model) {
    metadata(model, "epctx.build.MyEP", "binary 3 0000000000000001");
}

static void stamp_of_npu(bytes *model) {
    metadata(model, "epctx.build.EpctxNpuExecutionProvider", "binary 3 0000000000000001");
}

static void stamp_of_two(bytes *model) {
    metadata(model, "epctx.build.EpctxNpuExecutionProvider",
             "binary 3 0000000000000001\nbinary 3 0000000000000001");
}

static void stamp_of_registration(bytes *model) {
    metadata(model, "epctx.build.epctx", "binary 3 0000000000000001");
}

static void other_op(bytes *graph, const char *op, const char *domain) {
    bytes node = new_node(op, domain, "c", "x", "z");
    put_child(graph, 1, &node);
}

static void op_in_small_letters(bytes *graph) {
    other_op(graph, "EpContext", "com.microsoft");
}

static void op_with_a_letter_less(bytes *graph) {
    other_op(graph, "EPContex", "com.microsoft");
}

static void op_of_another_domain(bytes *graph) {
    other_op(graph, "EpContext", "com.example");
}

static void add_context(bytes *node, bytes binary) {
    add_attr_str(node, "ep_cache_context", binary.data, binary.size);
    bytes_free(&binary);
}

static void toy_context(bytes *node) {
    add_context(node, toy_binary());
}

static void damaged_toy_context(bytes *node) {
    bytes binary = toy_binary();
    binary.data[binary.size - 1] ^= 1;
    add_context(node, binary);
}

static void qnn_of_one_chip(bytes *node) {
    add_context(node, qnn_binary("SM8750", "79"));
    add_attr_int(node, "is_multi_soc_ep_context", 0);
}

static void qnn_as_if_of_several(bytes *node) {
    add_context(node, qnn_binary("SM8750", "79"));
    add_attr_int(node, "is_multi_soc_ep_context", 1);
}

static void op_far_off(bytes *graph) {
    other_op(graph, "Inverse", "com.microsoft");
}

static void override_of_nobody(bytes *node) {
    add_attr_str(node, "io_name_overrides", "gone=input;", 11);
}

static void override_of_input(bytes *node) {
    add_attr_str(node, "io_name_overrides", "x=input;", 8);
}

static void override_without_name(bytes *node) {
    add_context(node, openvino_container(4096, "1.1.0"));
    add_attr_str(node, "io_name_overrides", "y=y;x", 5);
}

static void compat_qnn_v2(bytes *model) {
    metadata(model, "ep_compatibility_info.QNNExecutionProvider", "v2:6:2.0:5.0:73:43:0:0");
}

static void compat_openvino(bytes *model) {
    metadata(model, "ep_compatibility_info.OpenVINOExecutionProvider", "{\"ovep_ver\": \"1\"}");
}

static void compat_empty(bytes *model) {
    metadata(model, "ep_compatibility_info.MyEP", "");
}

static void context_type(bytes *node, const char *type, const char *path) {
    add_attr_str(node, "ep_context_type", type, strlen(type));
    if (path != NULL) add_attr_str(node, "ep_dlc_context", path, strlen(path));
}

static void type_unknown(bytes *node) {
    context_type(node, "zip", NULL);
}

static void type_bin(bytes *node) {
    context_type(node, "bin", NULL);
}

static void dlc_without_path(bytes *node) {
    context_type(node, "dlc", NULL);
}

static void dlc_empty(bytes *node) {
    context_type(node, "dlc", "");
}

static void dlc_good(bytes *node) {
    context_type(node, "dlc", "good.bin");
}

static void dlc_missing(bytes *node) {
    context_type(node, "dlc", "missing.dlc");
}

/* -- what ONNX Runtime refuses -- */

static void circle(bytes *graph) {
    add_node(graph, "Relu", "r1", "p", "q");
    add_node(graph, "Relu", "r2", "q", "p");
}

static void body_of(bytes *graph, const char *title, const char *first, const char *second) {
    bytes body = {0};
    if (title != NULL) put_str(&body, 2, title);
    add_node(&body, "Relu", "b1", first, second);
    add_node(&body, "Relu", "b2", "x", "p");
    if_body(graph, &body);
}

static void unsorted_body(bytes *graph) {
    body_of(graph, "body", "p", "q");
}

static void sorted_body(bytes *graph) {
    body_of(graph, "body", "x", "q");
}

static void nameless_body(bytes *graph) {
    body_of(graph, NULL, "x", "q");
}

/* The name of an outer input, and of nodes before and behind. */
static void body_makes_x(bytes *graph) {
    body_of(graph, "body", "x", "x");
}

static void body_makes_s(bytes *graph) {
    add_node(graph, "Relu", "side", "x", "s");
    body_of(graph, "body", "x", "s");
}

static void body_makes_what_follows(bytes *graph) {
    body_of(graph, "body", "x", "s");
    add_node(graph, "Relu", "side", "z", "s"); /* reads what the If makes */
}

static void body_gives(bytes *graph, const char *result) {
    static const int64_t dims[] = {1, 4, -1};
    bytes body = {0};
    put_str(&body, 2, "body");
    add_node(&body, "Relu", "b1", "x", "q");
    add_value(&body, GRAPH_OUTPUT, result, 1, dims);
    if_body(graph, &body);
}

static void body_gives_x(bytes *graph) {
    body_gives(graph, "x");
}

static void body_gives_q(bytes *graph) {
    body_gives(graph, "q");
}

static void body_weights(bytes *graph, bool twice) {
    static const float data[1] = {1};
    bytes body = {0};
    put_str(&body, 2, "body");
    add_floats(&body, "w", data, 1);
    if (twice) add_floats(&body, "w", data, 1);
    add_node(&body, "Relu", "b1", "w", "q");
    if_body(graph, &body);
}

static void two_body_weights(bytes *graph) {
    body_weights(graph, true);
}

static void one_body_weight(bytes *graph) {
    body_weights(graph, false);
}

static void body_tensor(bytes *graph, int field, size_t size) {
    bytes body = {0}, t = {0};
    put_str(&body, 2, "body");
    put_int(&t, 1, 1);
    put_int(&t, 2, 1);
    put_str(&t, 8, "w");
    put_data(&t, 9, "1234", 4);
    if (field != 0) put_data(&t, (uint32_t)field, "12345678", size);
    put_child(&body, 5, &t);
    add_node(&body, "Relu", "b1", "w", "q");
    if_body(graph, &body);
}

static void data_in_two_fields(bytes *graph) {
    body_tensor(graph, 4, 4);
}

static void data_in_one_field(bytes *graph) {
    body_tensor(graph, 0, 0);
}

static void body_input(bytes *graph, const char *name) {
    static const int64_t dims[] = {1, 4, -1};
    bytes body = {0};
    put_str(&body, 2, "body");
    add_value(&body, GRAPH_INPUT, name, 1, dims);
    add_node(&body, "Relu", "b1", "x", "q");
    if_body(graph, &body);
}

static void nameless_input(bytes *graph) {
    body_input(graph, "");
}

static void named_input(bytes *graph) {
    body_input(graph, "i");
}

static void opset_27(bytes *model) {
    add_opset(model, "", 27);
}

static void opset_0(bytes *model) {
    add_opset(model, "com.microsoft", 0);
}

static void ml_5(bytes *model) {
    add_opset(model, "ai.onnx.ml", 5);
}

static void no_opset(bytes *model) {
    bytes graph = {0};
    bytes_free(model);
    put_int(model, 1, 8);
    put_str(&graph, 2, "g");
    put_child(model, 7, &graph);
}

static void untyped(bytes *graph) {
    bytes value = {0};
    put_str(&value, 1, "u");
    put_child(graph, GRAPH_INPUT, &value);
}

static void typed(bytes *graph, int32_t elem) {
    static const int64_t dims[] = {1, 4, -1};
    add_value(graph, GRAPH_INPUT, "u", elem, dims);
}

static void type_99(bytes *graph) {
    typed(graph, 99);
}

static void type_complex(bytes *graph) {
    typed(graph, 14);
}

static void type_int2(bytes *graph) {
    typed(graph, 26);
}

/* A Relu with attributes of these names, the first without a type. */
static void with_attrs(bytes *graph, const char *first, const char *second, bool type) {
    bytes node = new_node("Relu", "", "r", "x", "z"), attr = {0};
    put_str(&attr, 1, first);
    put_int(&attr, 3, 1);
    if (type) put_int(&attr, 20, EPCTX_ATTR_INT);
    put_child(&node, 5, &attr);
    if (second != NULL) add_attr_int(&node, second, 1);
    put_child(graph, 1, &node);
}

static void attr_without_type(bytes *graph) {
    with_attrs(graph, "a", NULL, false);
}

static void attr_without_name(bytes *graph) {
    with_attrs(graph, "", NULL, true);
}

static void attrs_of_one_name(bytes *graph) {
    with_attrs(graph, "a", "a", true);
}

static void attrs_of_two_names(bytes *graph) {
    with_attrs(graph, "a", "b", true);
}

static void nine_attrs(bytes *graph, const char *last) {
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
    bytes node = new_node("Relu", "", "r", "x", "z");
    for (int i = 0; i < 9; i++) add_attr_int(&node, names[i], 1);
    add_attr_int(&node, last, 1);
    put_child(graph, 1, &node);
}

static void nine_attrs_and_first(bytes *graph) {
    nine_attrs(graph, "a");
}

static void nine_attrs_and_last(bytes *graph) {
    nine_attrs(graph, "i");
}

static void ten_attrs(bytes *graph) {
    nine_attrs(graph, "j");
}

static void nameless_op(bytes *graph) {
    add_node(graph, "", "r", "x", "z");
}

static void no_nodes(bytes *model) {
    bytes graph = {0};
    bytes_free(model);
    put_int(model, 1, 8);
    put_str(&graph, 2, "g");
    put_child(model, 7, &graph);
    add_opset(model, "", 13);
}

static void declared_weight(bytes *graph, int64_t dim) {
    const int64_t dims[] = {dim, -1};
    used_weight(graph);
    add_value(graph, GRAPH_INPUT, "w", 1, dims);
}

static void declared_otherwise(bytes *graph) {
    declared_weight(graph, 2);
}

static void declared_well(bytes *graph) {
    declared_weight(graph, 1);
}

static void two_shapes(bytes *graph) {
    static const float data[2] = {1, 2};
    used_weight(graph);
    add_floats(graph, "w", data, 2);
}

static void ir_3(bytes *model) {
    put_int(model, 1, 3);
}

static void unknown_entry(bytes *graph) {
    bytes tensor = {0};
    put_int(&tensor, 1, 1);
    put_int(&tensor, 2, 1);
    put_str(&tensor, 8, "w");
    put_pair(&tensor, 13, "location", "good.bin");
    put_pair(&tensor, 13, "what", "x");
    put_int(&tensor, 14, 1);
    put_child(graph, 5, &tensor);
    add_node(graph, "Relu", "r", "w", "z");
}

static void file_data_read(bytes *graph) {
    file_data(graph);
    add_node(graph, "Relu", "r", "w", "z");
}

/* One int64 of a file, `w`, which `op` reads. */
static void file_shape(bytes *graph, const char *op, const char *inputs) {
    bytes tensor = {0};
    put_int(&tensor, 1, 1);
    put_int(&tensor, 2, EPCTX_ONNX_INT64);
    put_str(&tensor, 8, "w");
    put_pair(&tensor, 13, "location", "good.bin");
    put_pair(&tensor, 13, "offset", "8");
    put_pair(&tensor, 13, "length", "8");
    put_int(&tensor, 14, 1);
    put_child(graph, 5, &tensor);
    add_node(graph, op, "r", inputs, "z");
}

static void file_shape_read(bytes *graph) {
    file_shape(graph, "ConstantOfShape", "w");
}

/* Of a value without a shape, so that ORT does not come to read it. */
static void file_shape_maybe(bytes *graph) {
    add_value(graph, GRAPH_INPUT, "u", EPCTX_ONNX_FLOAT, NULL);
    file_shape(graph, "Squeeze", "u,w");
}

static void file_no_shape(bytes *graph) {
    file_shape(graph, "Neg", "w");
}

/* Functions A -> `a` and B -> Relu of domain mine; the graph calls A with `inputs`. */
static void two_functions(bytes *model, const char *calls, const char *outputs) {
    for (int i = 0; i < 2; i++) {
        bytes f = {0}, opset = {0};
        bytes node = new_node(i == 0 ? calls : "Relu", i == 0 ? "mine" : "", "c", "a", "b");
        put_str(&f, 1, i == 0 ? "A" : "B");
        put_str(&f, 4, "a");
        put_str(&f, 5, i == 0 ? outputs : "b");
        if (i == 0 && strcmp(outputs, "a") != 0 && strcmp(outputs, "b") != 0) put_str(&f, 5, "b");
        put_child(&f, 7, &node);
        put_str(&opset, 1, "");
        put_int(&opset, 2, 13);
        put_child(&f, 9, &opset);
        put_str(&opset, 1, "mine");
        put_int(&opset, 2, 1);
        put_child(&f, 9, &opset);
        put_str(&f, 10, "mine");
        put_child(model, 25, &f);
    }
    add_opset(model, "mine", 1);
}

static void functions_in_a_circle(bytes *model) {
    two_functions(model, "A", "b");
}

static void functions_in_order(bytes *model) {
    two_functions(model, "B", "b");
}

static void function_returns_its_input(bytes *model) {
    two_functions(model, "B", "a");
}

static void call_of_f(bytes *graph) {
    add_node(graph, "F", "c", "x", "z");
}

static void call_of_a(bytes *graph) {
    bytes node = new_node("A", "mine", "c", "x", "z");
    put_child(graph, 1, &node);
}

static void call_with_too_much(bytes *graph) {
    bytes node = new_node("A", "mine", "c", "x,x", "z");
    put_child(graph, 1, &node);
}

/* A function that reads a value which is not there. */
static void function_with_ghost(bytes *model) {
    bytes f = {0}, opset = {0}, node = new_node("Relu", "", "c", "ghost", "b");
    put_str(&f, 1, "A");
    put_str(&f, 4, "a");
    put_str(&f, 5, "b");
    put_child(&f, 7, &node);
    put_str(&opset, 1, "");
    put_int(&opset, 2, 13);
    put_child(&f, 9, &opset);
    put_str(&f, 10, "mine");
    put_child(model, 25, &f);
    add_opset(model, "mine", 1);
}

/* A function of domain mine, a -> b. */
static void add_function(bytes *model, const char *name, const char *overload, const bytes *nodes) {
    bytes f = {0}, opset = {0};
    put_str(&f, 1, name);
    put_str(&f, 4, "a");
    put_str(&f, 5, "b");
    bytes_add(&f, nodes->data, nodes->size);
    put_str(&opset, 1, "");
    put_int(&opset, 2, 13);
    put_child(&f, 9, &opset);
    put_str(&opset, 1, "mine");
    put_int(&opset, 2, 1);
    put_child(&f, 9, &opset);
    put_str(&f, 10, "mine");
    if (overload[0] != '\0') put_str(&f, 13, overload);
    put_child(model, 25, &f);
}

/* A function whose first node, and what that makes, ORT names when it inlines it. */
static void function_in_two_steps(bytes *model) {
    bytes nodes = {0}, first = new_node("Relu", "", "n", "a", "m"),
          second = new_node("Relu", "", "", "m", "b");
    put_child(&nodes, 7, &first);
    put_child(&nodes, 7, &second);
    add_function(model, "A", "", &nodes);
    bytes_free(&nodes);
    add_opset(model, "mine", 1);
}

static void call_beside(bytes *graph, const char *name, const char *value) {
    call_of_a(graph);
    add_node(graph, "Relu", name, "x", value);
}

static void call_beside_value(bytes *graph) {
    call_beside(graph, "r", "_inlfunc_A_m");
}

static void call_beside_node(bytes *graph) {
    call_beside(graph, "_inlfunc_A_n", "r");
}

static void call_beside_others(bytes *graph) {
    call_beside(graph, "_inlfunc_A_m", "_inlfunc_A_n"); /* nodes and values do not meet */
    add_node(graph, "Relu", "r2", "x", "_inlfunc_A_b");
}

/* A chain of nodes from a to b, as field `number` of a function (7) or graph (1). */
static bytes chain_of(uint32_t number, const char *op, const char *domain, size_t count) {
    bytes nodes = {0};
    size_t i;
    for (i = 0; i < count; i++) {
        char in[24] = "a", out[24] = "b";
        bytes node;
        if (i > 0) snprintf(in, sizeof in, "t%zu", i);
        if (i + 1 < count) snprintf(out, sizeof out, "t%zu", i + 1);
        node = new_node(op, domain, "", in, out);
        put_child(&nodes, number, &node);
    }
    return nodes;
}

static void add_relu_function(bytes *model, const char *name, const char *overload) {
    bytes nodes = chain_of(7, "Relu", "", 1);
    add_function(model, name, overload, &nodes);
    bytes_free(&nodes);
}

static void function_twice(bytes *model) {
    add_relu_function(model, "A", "");
    add_relu_function(model, "A", "");
    add_opset(model, "mine", 1);
}

static void function_with_overloads(bytes *model) {
    add_relu_function(model, "A", "");
    add_relu_function(model, "A", "o");
    add_relu_function(model, "a", "");
    add_opset(model, "mine", 1);
}

static void overload_twice(bytes *model) {
    function_with_overloads(model);
    add_relu_function(model, "A", "o");
}

/* To ORT, "mine:A:o" is both. */
static void overload_in_the_name(bytes *model) {
    function_with_overloads(model);
    add_relu_function(model, "A:o", "");
}

/* Longer than the text of a message. */
static void long_function_twice(bytes *model) {
    char name[1000];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    add_relu_function(model, name, "");
    add_relu_function(model, name, "");
    add_opset(model, "mine", 1);
}

/* Functions F0 of 2 nodes and F1 to Fdepth, each of which calls the one before twice; A calls the
 * last. */
static void doubling(bytes *model, size_t depth) {
    bytes nodes = chain_of(7, "Relu", "", 2);
    char name[24] = "F0";
    size_t i;
    for (i = 1; i <= depth + 1; i++) {
        add_function(model, name, "", &nodes);
        bytes_free(&nodes);
        nodes = chain_of(7, name, "mine", i <= depth ? 2 : 1);
        snprintf(name, sizeof name, "F%zu", i);
    }
    add_function(model, "A", "", &nodes);
    bytes_free(&nodes);
    add_opset(model, "mine", 1);
}

static void doubling_18(bytes *model) {
    doubling(model, 18);
}

static void doubling_17(bytes *model) {
    doubling(model, 17);
}

/* A Loop over x with a body that copies its inputs; of i, c and v those in `constants` have an
 * initializer, too, and so has a fourth input w. */
static void add_loop(bytes *graph, const char *constants, bool more) {
    static const char *const names[4] = {"i", "c", "v", "w"};
    static const int32_t types[4] = {EPCTX_ONNX_INT64, EPCTX_ONNX_BOOL, EPCTX_ONNX_FLOAT,
                                     EPCTX_ONNX_FLOAT};
    bytes body = {0}, node = new_node("Loop", "", "loop", ",,x", "z"), attr = {0};
    int i;
    put_str(&body, 2, "body");
    add_node(&body, "Identity", "l1", "c", "co");
    add_node(&body, "Identity", "l2", "v", "vo");
    for (i = 0; i < (more ? 4 : 3); i++) {
        add_value(&body, 11, names[i], types[i], NULL);
        if (i == 3 || strchr(constants, names[i][0]) != NULL) {
            bytes tensor = {0};
            put_int(&tensor, 2, types[i]);
            put_str(&tensor, 8, names[i]);
            put_data(&tensor, 9, "\1\0\0\0\0\0\0\0",
                     types[i] == EPCTX_ONNX_INT64   ? 8
                     : types[i] == EPCTX_ONNX_FLOAT ? 4
                                                    : 1);
            put_child(&body, 5, &tensor);
        }
    }
    add_value(&body, 12, "co", EPCTX_ONNX_BOOL, NULL);
    add_value(&body, 12, "vo", EPCTX_ONNX_FLOAT, NULL);
    put_str(&attr, 1, "body");
    put_child(&attr, 6, &body);
    put_int(&attr, 20, 5);
    put_child(&node, 5, &attr);
    put_child(graph, 1, &node);
}

static void loop_over_constant(bytes *graph) {
    add_loop(graph, "v", false);
}

static void loop_of_constants(bytes *graph) {
    add_loop(graph, "icv", true);
}

static void loop_plain(bytes *graph) {
    add_loop(graph, "", false);
}

static void loop_with_one_more(bytes *graph) {
    add_loop(graph, "", true);
}

static void detour(bytes *graph) {
    add_external(graph, "w", 1, "sub/../good.bin", "0", "4");
    add_node(graph, "Relu", "r", "w", "z");
}

static void sparse_shape(bytes *graph, int64_t dim, int64_t index) {
    bytes sparse = {0}, values = {0}, indices = {0};
    put_int(&values, 1, 1);
    put_int(&values, 2, 1);
    put_str(&values, 8, "w");
    put_data(&values, 9, "\0\0\x80\x3f", 4);
    put_child(&sparse, 1, &values);
    put_int(&indices, 1, 1);
    put_int(&indices, 2, EPCTX_ONNX_INT64);
    put_int(&indices, 7, index);
    put_child(&sparse, 2, &indices);
    put_int(&sparse, 3, dim);
    put_child(graph, 15, &sparse);
    add_node(graph, "Relu", "r", "w", "z");
}

static void index_outside(bytes *graph) {
    sparse_shape(graph, 4, 4);
}

static void index_inside(bytes *graph) {
    sparse_shape(graph, 4, 3);
}

/* -- the rules -- */

typedef struct rule_case {
    epctx_rule rule;
    const char *profile; /* NULL: by source */
    spec bad, good;      /* an empty `good` is the model without anything special */
} rule_case;

#define QNN_SOURCE "QNNExecutionProvider"
#define TRT_SOURCE "TensorrtExecutionProvider"
#define OV_SOURCE  "OpenVINOExecutionProvider"
#define VAI_SOURCE "MorphiZenExecutionProvider"
#define NPU_SOURCE "EpctxNpuExecutionProvider"

/* Longer than a name of a file; filled when the rules are walked. */
static char long_payload[1025];

/* clang-format off */
static const rule_case cases[] = {
    {EPCTX_RULE_DOUBLED_FIELD, NULL, {.node_fn = second_name}, {.two = false}},
    {EPCTX_RULE_NO_GRAPH, NULL, {.model_fn = empty_model}, {.two = false}},
    {EPCTX_RULE_WRONG_DOMAIN, NULL, {.first = {.domain = ""}}, {.two = false}},
    {EPCTX_RULE_ATTRIBUTE_TYPE, NULL, {.node_fn = text_max_size}, {.node_fn = number_max_size}},
    {EPCTX_RULE_ATTRIBUTE_VALUE, NULL, {.first = {.main = "2"}}, {.two = false}},
    {EPCTX_RULE_DOUBLED_ATTRIBUTE, NULL, {.node_fn = second_source}, {.two = false}},
    {EPCTX_RULE_DOUBLED_EPNODE, NULL, {.two = true, .second = {.name = "n"}}, {.two = true}},
    {EPCTX_RULE_DOUBLED_VALUE, NULL, {.graph_fn = again_y}, {.two = false}},
    {EPCTX_RULE_REDEFINED, NULL, {.graph_fn = two_weights}, {.graph_fn = used_weight}},
    {EPCTX_RULE_DOUBLED_INITIALIZER, NULL, {.graph_fn = two_body_weights},
     {.graph_fn = one_body_weight}},
    {EPCTX_RULE_DOUBLED_ATTRIBUTE, NULL, {.graph_fn = attrs_of_one_name},
     {.graph_fn = attrs_of_two_names}},
    {EPCTX_RULE_DOUBLED_ATTRIBUTE, NULL, {.graph_fn = nine_attrs_and_first},
     {.graph_fn = ten_attrs}},
    {EPCTX_RULE_DOUBLED_ATTRIBUTE, NULL, {.graph_fn = nine_attrs_and_last},
     {.graph_fn = ten_attrs}},
    {EPCTX_RULE_CYCLE, NULL, {.graph_fn = circle}, {.graph_fn = wrong_order}},
    {EPCTX_RULE_BODY_ORDER, NULL, {.graph_fn = unsorted_body}, {.graph_fn = sorted_body}},
    {EPCTX_RULE_IR_REFUSED, NULL, {.model_fn = ir_99}, {.model_fn = ir_3}},
    {EPCTX_RULE_OPSET_VERSION, NULL, {.model_fn = opset_27}, {.model_fn = ml_5}},
    {EPCTX_RULE_OPSET_VERSION, NULL, {.model_fn = opset_0}, {.two = false}},
    {EPCTX_RULE_NO_OPSETS, NULL, {.model_fn = no_opset}, {.two = false}},
    {EPCTX_RULE_NO_INPUT_TYPE, NULL, {.graph_fn = untyped}, {.graph_fn = type_int2}},
    {EPCTX_RULE_ELEMENT_TYPE, NULL, {.graph_fn = type_99}, {.graph_fn = type_int2}},
    {EPCTX_RULE_ELEMENT_TYPE, NULL, {.graph_fn = type_complex}, {.graph_fn = type_int2}},
    {EPCTX_RULE_OUTER_NAME, NULL, {.graph_fn = body_makes_x}, {.graph_fn = sorted_body}},
    {EPCTX_RULE_OUTER_NAME, NULL, {.graph_fn = body_makes_s},
     {.graph_fn = body_makes_what_follows}},
    {EPCTX_RULE_ATTRIBUTE_FORM, NULL, {.graph_fn = attr_without_type},
     {.graph_fn = attrs_of_two_names}},
    {EPCTX_RULE_ATTRIBUTE_FORM, NULL, {.graph_fn = attr_without_name},
     {.graph_fn = attrs_of_two_names}},
    {EPCTX_RULE_NODE_FORM, NULL, {.graph_fn = nameless_op}, {.two = false}},
    {EPCTX_RULE_NO_BODY_NAME, NULL, {.graph_fn = nameless_body}, {.graph_fn = sorted_body}},
    {EPCTX_RULE_NO_NODES, NULL, {.model_fn = no_nodes}, {.two = false}},
    {EPCTX_RULE_INITIALIZER_TYPE, NULL, {.graph_fn = declared_otherwise},
     {.graph_fn = declared_well}},
    {EPCTX_RULE_INITIALIZER_TYPE, NULL, {.graph_fn = two_shapes}, {.graph_fn = two_weights}},
    {EPCTX_RULE_TENSOR_FORM, NULL, {.graph_fn = data_in_two_fields},
     {.graph_fn = data_in_one_field}},
    {EPCTX_RULE_NOT_AN_INPUT, NULL, {.graph_fn = unused_weight, .model_fn = ir_3},
     {.graph_fn = declared_well, .model_fn = ir_3}},
    {EPCTX_RULE_EXTERNAL_ENTRY, NULL, {.graph_fn = unknown_entry}, {.graph_fn = file_data_read}},
    {EPCTX_RULE_SHAPE_OUTSIDE, NULL, {.graph_fn = file_shape_read}, {.graph_fn = file_no_shape}},
    {EPCTX_RULE_SHAPE_MAYBE, NULL, {.graph_fn = file_shape_maybe}, {.graph_fn = file_no_shape}},
    {EPCTX_RULE_NO_VALUE_NAME, NULL, {.graph_fn = nameless_input}, {.graph_fn = named_input}},
    {EPCTX_RULE_OUTER_RESULT, NULL, {.graph_fn = body_gives_x}, {.graph_fn = body_gives_q}},
    {EPCTX_RULE_RECURSION, NULL, {.model_fn = functions_in_a_circle},
     {.model_fn = functions_in_order}},
    {EPCTX_RULE_DOUBLED_FUNCTION, NULL, {.model_fn = function_twice},
     {.model_fn = function_with_overloads}},
    {EPCTX_RULE_DOUBLED_FUNCTION, NULL, {.model_fn = overload_twice}, {.two = false}},
    {EPCTX_RULE_DOUBLED_FUNCTION, NULL, {.model_fn = overload_in_the_name}, {.two = false}},
    {EPCTX_RULE_DOUBLED_FUNCTION, NULL, {.model_fn = long_function_twice}, {.two = false}},
    {EPCTX_RULE_EXPANSION, NULL, {.graph_fn = call_of_a, .model_fn = doubling_18},
     {.graph_fn = call_of_a, .model_fn = doubling_17}},
    {EPCTX_RULE_EXPANSION, NULL, {.graph_fn = call_of_a, .model_fn = doubling_18},
     {.model_fn = doubling_18}},
    {EPCTX_RULE_INLINED_NAME, NULL,
     {.graph_fn = call_beside_value, .model_fn = function_in_two_steps},
     {.graph_fn = call_beside_others, .model_fn = function_in_two_steps}},
    {EPCTX_RULE_INLINED_NAME, NULL,
     {.graph_fn = call_beside_node, .model_fn = function_in_two_steps},
     {.graph_fn = call_beside_value, .model_fn = functions_in_order}},
    {EPCTX_RULE_BODY_INPUT, NULL, {.graph_fn = loop_over_constant}, {.graph_fn = loop_plain}},
    {EPCTX_RULE_BODY_INPUT, NULL, {.graph_fn = loop_of_constants},
     {.graph_fn = loop_with_one_more}},
    {EPCTX_RULE_FUNCTION_FORM, NULL, {.model_fn = function_returns_its_input},
     {.model_fn = functions_in_order}},
    {EPCTX_RULE_FUNCTION_FORM, NULL,
     {.graph_fn = call_with_too_much, .model_fn = functions_in_order},
     {.graph_fn = call_of_a, .model_fn = functions_in_order}},
    {EPCTX_RULE_IDLE_FUNCTION, NULL, {.model_fn = function_with_ghost},
     {.graph_fn = call_of_a, .model_fn = function_with_ghost}},
    {EPCTX_RULE_UNDEFINED_VALUE, NULL, {.graph_fn = call_of_a, .model_fn = function_with_ghost},
     {.model_fn = function_with_ghost}},
    {EPCTX_RULE_IDLE_INITIALIZER, NULL, {.graph_fn = short_tensor},
     {.graph_fn = short_tensor_read}},
    {EPCTX_RULE_DETOUR, NULL, {.graph_fn = detour}, {.graph_fn = file_data_read}},
    {EPCTX_RULE_SPARSE_TENSOR, NULL, {.graph_fn = index_outside}, {.graph_fn = index_inside}},
    {EPCTX_RULE_DEFAULT_OPSET, NULL, {.graph_fn = domains_of_ort}, {.two = false}},
    {EPCTX_RULE_OUTPUT_TYPE, NULL, {.node_fn = text_output, .graph_fn = text_value},
     {.two = false}},
    {EPCTX_RULE_UNDEFINED_VALUE, NULL, {.graph_fn = ghost_input}, {.two = false}},
    {EPCTX_RULE_DROPPED_VALUE, NULL, {.graph_fn = ghost_in_body}, {.graph_fn = outer_in_body}},
    {EPCTX_RULE_NO_PRIMARY,
     NULL,
     {.first = {.main = "0", .cache = ABSENT}},
     {.two = true, .second = {.main = "0", .cache = ABSENT}}},
    /* A context that a secondary node has itself is not one that it may read. */
    {EPCTX_RULE_NO_PRIMARY, NULL, {.first = {.main = "0", .source = NPU_SOURCE}},
     {.two = true, .first = {.source = NPU_SOURCE}, .second = {.main = "0", .source = NPU_SOURCE}}},
    /* An EP that nobody knows may have a context in each node, and never look at main_context. */
    {EPCTX_RULE_NO_PRIMARY, NULL, {.first = {.main = "0", .cache = ABSENT}},
     {.first = {.main = "0"}}},
    {EPCTX_RULE_NO_PRIMARY,
     NULL,
     {.first = {.main = "0", .source = QNN_SOURCE, .embed = "0", .cache = "good.bin"}},
     {.first = {.main = "0", .source = "NvTensorRTRTXExecutionProvider"}}},
    {EPCTX_RULE_NO_CONTEXT, NULL, {.first = {.cache = ABSENT}}, {.two = false}},
    {EPCTX_RULE_NO_PAYLOAD,
     "qnn",
     {.two = true,
      .first = {.source = QNN_SOURCE},
      .second = {.source = "qnn", .main = "0", .cache = ABSENT}},
     {.two = true,
      .first = {.source = QNN_SOURCE, .embed = "0", .cache = "good.bin"},
      .second = {.source = "qnn", .main = "0", .embed = "0", .cache = ABSENT}}},
    /* Of an EP with one context for each node nobody else has this one. */
    {EPCTX_RULE_NO_PAYLOAD,
     "migraphx",
     {.two = true,
      .first = {.source = "MIGraphXExecutionProvider"},
      .second = {.source = "MIGraphXExecutionProvider", .main = "0", .cache = ABSENT}},
     {.two = true,
      .first = {.source = "MIGraphXExecutionProvider"},
      .second = {.source = "MIGraphXExecutionProvider", .main = "0"}}},
    {EPCTX_RULE_MIXED_MODES,
     "openvino",
     {.two = true,
      .first = {.source = OV_SOURCE},
      .second = {.source = OV_SOURCE, .embed = "0", .cache = "good.bin"}},
     {.two = true,
      .first = {.source = OV_SOURCE},
      .second = {.source = OV_SOURCE, .main = "0", .cache = ""}}},
    {EPCTX_RULE_NO_SOURCE, "qnn", {.first = {.source = ABSENT}}, {.first = {.source = "QNN"}}},
    {EPCTX_RULE_SOURCE_SPELLING,
     NULL,
     {.first = {.source = "openvinoexecutionprovider"}},
     {.first = {.source = OV_SOURCE}}},
    {EPCTX_RULE_NOT_OURS, "openvino", {.two = false}, {.first = {.source = OV_SOURCE}}},
    {EPCTX_RULE_PATH_EMPTY,
     NULL,
     {.first = {.embed = "0", .cache = ""}},
     {.first = {.embed = "0", .cache = "good.bin"}}},
    {EPCTX_RULE_PATH_UNSAFE,
     NULL,
     {.first = {.embed = "0", .cache = "../good.bin"}},
     {.first = {.embed = "0", .cache = "good.bin"}}},
    {EPCTX_RULE_MEMORY_LOCATION, NULL, {.graph_fn = memory_data}, {.graph_fn = file_data}},
    {EPCTX_RULE_FILE_MISSING,
     NULL,
     {.first = {.embed = "0", .cache = "missing.bin"}},
     {.first = {.embed = "0", .cache = "good.bin"}}},
    {EPCTX_RULE_FILE_IRREGULAR,
     NULL,
     {.first = {.embed = "0", .cache = "folder.bin"}},
     {.first = {.embed = "0", .cache = "good.bin"}}},
    {EPCTX_RULE_FILE_EMPTY,
     NULL,
     {.first = {.embed = "0", .cache = "empty.bin"}},
     {.first = {.embed = "0", .cache = "good.bin"}}},
    {EPCTX_RULE_PATH_LINK,
     NULL,
     {.first = {.embed = "0", .cache = "link.bin"}},
     {.first = {.embed = "0", .cache = "good.bin"}}},
    {EPCTX_RULE_VALUE_TYPE, NULL, {.elem = EPCTX_ONNX_STRING}, {.elem = EPCTX_ONNX_INT8}},
    {EPCTX_RULE_NO_VALUE_TYPE, NULL, {.two = true, .no_info = true}, {.two = true}},
    {EPCTX_RULE_NO_OPSET,
     NULL,
     {.graph_fn = custom_node},
     {.graph_fn = custom_node, .model_fn = custom_import}},
    {EPCTX_RULE_DOUBLED_OPSET, NULL, {.model_fn = second_import}, {.two = false}},
    {EPCTX_RULE_DYNAMIC_SHAPE,
     NULL,
     {.dynamic = true, .first = {.source = "QNN"}},
     {.dynamic = true, .first = {.source = OV_SOURCE}}},
    {EPCTX_RULE_MORE_NODES,
     NULL,
     {.two = true,
      .first = {.source = "TensorrtExecutionProvider"},
      .second = {.source = "TensorrtExecutionProvider"}},
     {.first = {.source = "TensorrtExecutionProvider"}}},
    {EPCTX_RULE_EXTERNAL_RANGE, NULL, {.graph_fn = data_beyond}, {.graph_fn = file_data}},
    {EPCTX_RULE_NO_LOCATION, NULL, {.graph_fn = data_nowhere}, {.graph_fn = file_data}},
    {EPCTX_RULE_NO_OUTPUT, NULL, {.first = {.outputs = ""}}, {.two = false}},
    {EPCTX_RULE_NO_INPUT, NULL, {.first = {.inputs = ""}}, {.two = false}},
    {EPCTX_RULE_OUTPUT_UNDEFINED, NULL, {.graph_fn = lost_output}, {.two = false}},
    {EPCTX_RULE_ONLY_EMBEDDED,
     NULL,
     {.first = {.source = "TelumPluginExecutionProvider", .embed = "0", .cache = "good.bin"}},
     {.first = {.source = "TelumPluginExecutionProvider"}}},
    {EPCTX_RULE_NO_KEY,
     NULL,
     {.two = true,
      .first = {.source = OV_SOURCE, .partition = ABSENT},
      .second = {.source = OV_SOURCE}},
     {.two = true, .first = {.source = OV_SOURCE}, .second = {.source = OV_SOURCE}}},
    {EPCTX_RULE_DOUBLED_KEY,
     NULL,
     {.two = true,
      .first = {.source = NPU_SOURCE, .partition = "p"},
      .second = {.source = NPU_SOURCE, .partition = "p", .main = "0", .cache = ABSENT}},
     {.two = true,
      .first = {.source = NPU_SOURCE},
      .second = {.source = NPU_SOURCE, .main = "0", .cache = ABSENT}}},
    {EPCTX_RULE_NO_ATTRIBUTE,
     "openvino",
     {.first = {.source = OV_SOURCE, .embed = ABSENT}},
     {.first = {.source = OV_SOURCE}}},
    /* What the plugin EP or the one in ONNX Runtime's tree loads, where nothing tells which. */
    {EPCTX_RULE_NO_ATTRIBUTE, NULL, {.first = {.source = NPU_SOURCE, .embed = ABSENT}},
     {.first = {.source = OV_SOURCE, .embed = ABSENT}}},
    {EPCTX_RULE_NO_PAYLOAD,
     NULL,
     {.two = true,
      .first = {.source = "MIGraphXExecutionProvider"},
      .second = {.source = "MIGraphXExecutionProvider", .main = "0", .cache = ABSENT}},
     {.two = true,
      .first = {.source = QNN_SOURCE},
      .second = {.source = QNN_SOURCE, .main = "0", .cache = ABSENT}}},
    {EPCTX_RULE_NO_PRIMARY, NULL, {.first = {.source = OV_SOURCE, .main = "0"}},
     {.first = {.source = OV_SOURCE, .main = "0", .embed = "0", .cache = "good.bin"}}},
    {EPCTX_RULE_NO_PRIMARY, "openvino",
     {.first = {.source = OV_SOURCE, .main = "0", .embed = "0", .cache = "good.bin"}},
     {.first = {.source = OV_SOURCE, .embed = "0", .cache = "good.bin"}}},
    {EPCTX_RULE_ATTRIBUTE_VALUE, NULL, {.first = {.source = OV_SOURCE, .main = "2"}},
     {.first = {.source = OV_SOURCE, .main = "2", .embed = "0", .cache = "good.bin"}}},
    {EPCTX_RULE_PAYLOAD_IGNORED,
     NULL,
     {.two = true, .first = {.source = OV_SOURCE}, .second = {.source = OV_SOURCE, .main = "0"}},
     {.two = true,
      .first = {.source = OV_SOURCE, .embed = "0", .cache = "good.bin"},
      .second = {.source = OV_SOURCE, .main = "0", .embed = "0", .cache = "good.bin"}}},
    {EPCTX_RULE_PROFILE,
     NULL,
     {.two = true, .first = {.source = OV_SOURCE}, .second = {.source = OV_SOURCE}},
     {.two = true,
      .first = {.source = OV_SOURCE},
      .second = {.source = OV_SOURCE, .main = "0", .cache = ABSENT}}},
    {EPCTX_RULE_PROFILE,
     NULL,
     {.two = true,
      .first = {.source = OV_SOURCE, .embed = "0", .cache = "good.bin"},
      .second = {.source = OV_SOURCE, .embed = "0", .cache = "other.bin"}},
     {.two = true,
      .first = {.source = OV_SOURCE, .embed = "0", .cache = "good.bin"},
      .second = {.source = OV_SOURCE, .embed = "0", .cache = "good.bin"}}},
    {EPCTX_RULE_STALE_OVERRIDE, NULL,
     {.first = {.source = QNN_SOURCE}, .node_fn = override_of_nobody},
     {.first = {.source = QNN_SOURCE}, .node_fn = override_of_input}},
    {EPCTX_RULE_DOTS,
     NULL,
     {.first = {.source = QNN_SOURCE, .embed = "0", .cache = "a..b.bin"}},
     {.first = {.source = QNN_SOURCE, .embed = "0", .cache = "good.bin"}}},
    {EPCTX_RULE_STALE_COMPAT, NULL, {.model_fn = compat_other},
     {.first = {.source = "QNN"}, .model_fn = compat_qnn_good}},
    {EPCTX_RULE_STALE_COMPAT, NULL, {.model_fn = compat_other},
     {.first = {.source = "QNN"}, .model_fn = compat_qnn_v2}},
    {EPCTX_RULE_NO_COMPAT, NULL, {.first = {.source = OV_SOURCE}},
     {.first = {.source = OV_SOURCE}, .model_fn = compat_openvino}},
    {EPCTX_RULE_MANY_PRIMARIES,
     NULL,
     {.two = true, .first = {.source = VAI_SOURCE}, .second = {.source = VAI_SOURCE}},
     {.first = {.source = VAI_SOURCE}}},
    {EPCTX_RULE_REFERENCE, NULL, {.node_fn = reference}, {.two = false}},
    {EPCTX_RULE_PROFILE,
     NULL,
     {.first = {.source = VAI_SOURCE}},
     {.first = {.source = VAI_SOURCE}, .node_fn = index_attribute}},
    {EPCTX_RULE_PROFILE,
     NULL,
     {.first = {.source = OV_SOURCE, .embed = "0", .cache = "good.bin", .partition = ABSENT}},
     {.first = {.source = OV_SOURCE, .embed = "0", .cache = "model.xml", .partition = ABSENT}}},
    {EPCTX_RULE_PROFILE,
     NULL,
     {.first = {.source = TRT_SOURCE, .embed = "0", .cache = "a.stripped.engine"}},
     {.first = {.source = TRT_SOURCE,
                .embed = "0",
                .cache = "a.stripped.engine",
                .made_from = "model.onnx"}}},
    {EPCTX_RULE_PROFILE,
     NULL,
     {.first = {.source = VAI_SOURCE}},
     {.first = {.source = TRT_SOURCE, .embed = "0", .cache = "a.engine"}}},
    {EPCTX_RULE_PROFILE, "vitisai", {.first = {.source = VAI_SOURCE}},
     {.first = {.source = "VitisAIExecutionProvider"}}},
    {EPCTX_RULE_PROFILE, "qnn_plugin", {.first = {.source = "QNN"}, .node_fn = type_unknown},
     {.first = {.source = "QNN"}, .node_fn = type_bin}},
    {EPCTX_RULE_PROFILE, "qnn_plugin", {.first = {.source = "QNN"}, .node_fn = dlc_without_path},
     {.first = {.source = "QNN"}, .node_fn = dlc_good}},
    {EPCTX_RULE_PROFILE, "qnn_plugin", {.first = {.source = "QNN"}, .node_fn = dlc_empty},
     {.first = {.source = "QNN"}}},
    {EPCTX_RULE_FILE_MISSING,
     "qnn_plugin",
     {.first = {.source = "QNN", .embed = "0", .cache = ABSENT}, .node_fn = dlc_missing},
     {.first = {.source = "QNN", .embed = "0", .cache = ABSENT}, .node_fn = dlc_good}},
    {EPCTX_RULE_PATH_EMPTY,
     "qnn_plugin",
     {.first = {.source = "QNN", .embed = "0", .cache = ABSENT}},
     {.first = {.source = "QNN", .embed = "0", .cache = ABSENT}, .node_fn = dlc_good}},
    {EPCTX_RULE_NO_CONTEXT, NULL, {.first = {.cache = ""}}, {.two = false}},
    {EPCTX_RULE_LIKE_PATH,
     NULL,
     {.first = {.cache = "good.bin"}},
     {.first = {.cache = "a\x01.bin"}}},
    {EPCTX_RULE_PAYLOAD_AS_PATH,
     NULL,
     {.first = {.embed = "0", .cache = long_payload}},
     {.first = {.embed = "0", .cache = "good.bin"}}},
    {EPCTX_RULE_NO_ATTRIBUTE,
     "npu",
     {.first = {.source = NPU_SOURCE, .embed = ABSENT}},
     {.first = {.source = ABSENT}}},
    {EPCTX_RULE_BINARY_NAME,
     NULL,
     {.first = {.source = VAI_SOURCE, .embed = "0", .cache = "good.bin"}},
     {.first = {.source = VAI_SOURCE, .embed = "0", .cache = "model_ctx.onnx_MORPHIZEN.bin"}}},
    {EPCTX_RULE_DOUBLED_KEY,
     NULL,
     {.two = true,
      .first = {.source = NPU_SOURCE, .partition = "p", .embed = "0", .cache = "good.bin"},
      .second = {.source = NPU_SOURCE, .partition = "p", .embed = "0", .cache = "good.bin"}},
     {.two = true,
      .first = {.source = NPU_SOURCE, .partition = "p", .embed = "0", .cache = "good.bin"},
      .second = {.source = NPU_SOURCE, .partition = "p", .embed = "0", .cache = "other.bin"}}},
    {EPCTX_RULE_DOUBLED_KEY,
     NULL,
     {.two = true,
      .first = {.source = NPU_SOURCE, .partition = "p", .main = "0", .cache = ABSENT},
      .second = {.source = NPU_SOURCE, .partition = "p"}},
     {.two = true,
      .first = {.source = NPU_SOURCE, .partition = "p", .embed = "0", .cache = "good.bin"},
      .second = {.source = NPU_SOURCE, .partition = "p"}}},
    {EPCTX_RULE_NO_OPSET, NULL, {.graph_fn = custom_node}, {.graph_fn = domains_of_ort}},
    {EPCTX_RULE_DYNAMIC_SHAPE,
     NULL,
     {.first = {.source = "QNN"}, .graph_fn = x_is_negative},
     {.first = {.source = "QNN"}, .graph_fn = x_is_five}},
    {EPCTX_RULE_VALUE_TYPE, NULL, {.elem = -1}, {.elem = 16}},
    {EPCTX_RULE_NO_VALUE_TYPE,
     NULL,
     {.first = {.outputs = "y,untold"}},
     {.first = {.outputs = "y,"}}},
    {EPCTX_RULE_NO_VALUE_TYPE, NULL,
     {.graph_fn = call_of_f, .model_fn = function_that_types_its_input},
     {.model_fn = function_that_types_its_output}},
    {EPCTX_RULE_REFERENCE, NULL, {.node_fn = reference}, {.model_fn = function_with_reference}},
    {EPCTX_RULE_OUTPUT_UNDEFINED, NULL, {.model_fn = function_without_its_output},
     {.model_fn = function_with_import}},
    {EPCTX_RULE_TENSOR_SIZE, NULL, {.graph_fn = small_type_too_long}, {.graph_fn = small_types}},
    {EPCTX_RULE_TENSOR_SIZE, NULL, {.graph_fn = too_many_to_count}, {.graph_fn = small_types}},
    {EPCTX_RULE_TENSOR_SIZE, NULL, {.graph_fn = strings_in_raw_data}, {.graph_fn = small_types}},
    {EPCTX_RULE_TENSOR_SIZE, NULL, {.graph_fn = negative_dim}, {.graph_fn = file_data}},
    {EPCTX_RULE_TENSOR_SIZE, NULL, {.graph_fn = external_length},
     {.graph_fn = external_without_length}},
    {EPCTX_RULE_EXTERNAL_ENTRY, NULL, {.graph_fn = external_odd_length},
     {.graph_fn = external_without_length}},
    {EPCTX_RULE_EXTERNAL_RANGE, NULL, {.graph_fn = external_behind},
     {.graph_fn = external_without_length}},
    {EPCTX_RULE_DOUBLED_INITIALIZER, NULL, {.graph_fn = two_sparse}, {.graph_fn = used_weight}},
    {EPCTX_RULE_SHARDING, NULL, {.node_fn = sharding_without_name, .model_fn = mesh},
     {.node_fn = two_shardings, .model_fn = mesh}},
    {EPCTX_RULE_TRAINING, NULL, {.model_fn = initializer_again}, {.model_fn = all_new}},
    {EPCTX_RULE_TRAINING, NULL, {.model_fn = input_again}, {.model_fn = all_new}},
    {EPCTX_RULE_TRAINING, NULL, {.model_fn = output_again}, {.model_fn = all_new}},
    {EPCTX_RULE_BINDING, NULL, {.model_fn = no_algorithm},
     {.graph_fn = used_weight, .model_fn = no_algorithm}},
    {EPCTX_RULE_COMPAT_SYNTAX, NULL, {.model_fn = compat_empty}, {.model_fn = compat_mine}},
    {EPCTX_RULE_STALE_BINARY, NULL, {.model_fn = stamp_of_another}, {.model_fn = compat_mine}},
    {EPCTX_RULE_STALE_COMPAT, NULL, {.model_fn = compat_other},
     {.first = {.source = ABSENT}, .model_fn = compat_other}},
    {EPCTX_RULE_STALE_COMPAT, NULL, {.model_fn = compat_other},
     {.first = {.domain = ""}, .model_fn = compat_other}},
    {EPCTX_RULE_STALE_COMPAT, NULL, {.model_fn = compat_other},
     {.first = {.source = "azep"}, .model_fn = compat_capitals}},
    {EPCTX_RULE_FILE_IRREGULAR,
     NULL,
     {.first = {.embed = "0", .cache = "unreadable.bin"}},
     {.first = {.embed = "0", .cache = "good.bin"}}},
    {EPCTX_RULE_NO_BASE,
     NULL,
     {.no_base = true, .first = {.embed = "0", .cache = "good.bin"}},
     {.first = {.embed = "0", .cache = "good.bin"}}},
    {EPCTX_RULE_TENSOR_SIZE, NULL, {.graph_fn = short_tensor_read}, {.graph_fn = used_weight}},
    {EPCTX_RULE_REGISTRATION, NULL, {.first = {.source = "epctx"}}, {.first = {.source = "e"}}},
    {EPCTX_RULE_REGISTRATION,
     NULL,
     {.first = {.source = "epctx.virtual"}},
     {.first = {.source = "epctx.v"}}},
    {EPCTX_RULE_OTHER_EP, NULL, {.first = {.source = OV_SOURCE}, .model_fn = stamp_of_npu},
     {.first = {.source = NPU_SOURCE}, .model_fn = stamp_of_npu}},
    {EPCTX_RULE_OTHER_EP, NULL, {.first = {.source = ""}, .model_fn = stamp_of_npu},
     {.first = {.source = ""}, .model_fn = stamp_of_two}},
    /* Perhaps the application registers the EP by that name. */
    {EPCTX_RULE_OTHER_EP, NULL, {.first = {.source = ABSENT}, .model_fn = stamp_of_npu},
     {.first = {.source = "e"}, .model_fn = stamp_of_npu}},
    {EPCTX_RULE_OTHER_EP, NULL, {.first = {.source = "QNN"}, .model_fn = stamp_of_npu},
     {.first = {.source = QNN_SOURCE}, .model_fn = stamp_of_registration}},
    {EPCTX_RULE_OP_SPELLING, NULL, {.graph_fn = op_in_small_letters},
     {.graph_fn = op_of_another_domain}},
    {EPCTX_RULE_OP_SPELLING, NULL, {.graph_fn = op_with_a_letter_less}, {.graph_fn = op_far_off}},
    {EPCTX_RULE_MISSPELLED_SOURCE, NULL, {.first = {.source = "QNNExecutionProvder"}},
     {.first = {.source = "DmlExecutionProvider"}}},
    {EPCTX_RULE_MISSPELLED_SOURCE, NULL, {.first = {.source = "OpenVINOExecutionProviders"}},
     {.first = {.source = "QN"}}},
    {EPCTX_RULE_FOREIGN_BINARY, NULL, {.first = {.cache = "version https://git-lfs.github.com/"}},
     {.first = {.cache = "a context"}}},
    /* Of an EP of which nothing is known it may be the format. */
    {EPCTX_RULE_FOREIGN_BINARY, NULL, {.first = {.source = QNN_SOURCE, .cache = "PK\003\004"}},
     {.first = {.source = "MyExecutionProvider", .cache = "PK\003\004"}}},
    {EPCTX_RULE_NO_SOURCE, NULL, {.first = {.source = ABSENT, .cache = "OVEP_BIN of OpenVINO"}},
     {.first = {.source = ABSENT, .cache = "FAKE\001"}}},
    {EPCTX_RULE_OTHER_BINARY, NULL, {.first = {.source = QNN_SOURCE, .cache = "ftrt of TensorRT"}},
     {.first = {.source = "TensorrtExecutionProvider", .cache = "ftrt of TensorRT"}}},
    {EPCTX_RULE_DAMAGED_BINARY, NULL,
     {.first = {.source = "Toy", .cache = ABSENT}, .node_fn = damaged_toy_context},
     {.first = {.source = "Toy", .cache = ABSENT}, .node_fn = toy_context}},
    {EPCTX_RULE_BINARY_GRAPH, NULL,
     {.first = {.source = "Toy", .cache = ABSENT, .partition = "toy_1"}, .node_fn = toy_context},
     {.first = {.source = "Toy", .cache = ABSENT, .partition = "toy_0"}, .node_fn = toy_context}},
    {EPCTX_RULE_BINARY_VALUES, NULL,
     {.elem = 7, .first = {.source = "Toy", .cache = ABSENT, .partition = "toy_0"},
      .node_fn = toy_context},
     {.first = {.source = "Toy", .cache = "a context", .partition = "toy_0"}}},
    {EPCTX_RULE_BINARY_VALUES, NULL,
     {.first = {.source = OV_SOURCE, .cache = ABSENT, .partition = "m_1"},
      .node_fn = override_without_name},
     {.first = {.source = OV_SOURCE, .cache = "a context", .partition = "m_1"}}},
    {EPCTX_RULE_BINARY_TARGET, NULL,
     {.first = {.source = QNN_SOURCE, .cache = ABSENT}, .node_fn = qnn_as_if_of_several},
     {.first = {.source = QNN_SOURCE, .cache = ABSENT}, .node_fn = qnn_of_one_chip}},
    /* The second reads what the first one writes. */
    {EPCTX_RULE_CONTEXT_PLACE, NULL,
     {.two = true,
      .first = {.source = OV_SOURCE, .main = "0", .cache = ""},
      .second = {.source = OV_SOURCE}},
     {.two = true,
      .first = {.source = OV_SOURCE},
      .second = {.source = OV_SOURCE, .main = "0", .cache = ""}}},
    {EPCTX_RULE_UNKNOWN_BINARY, NULL, {.first = {.source = QNN_SOURCE, .cache = "a context"}},
     {.first = {.source = "MyExecutionProvider", .cache = "a context"}}},
    {EPCTX_RULE_EPCONTEXT_OPSET, NULL, {.no_import = true}, {.two = false}},
    {EPCTX_RULE_SOURCE_ABSENT, NULL, {.first = {.source = ABSENT}}, {.two = false}},
    {EPCTX_RULE_SOURCE_ABSENT, NULL, {.first = {.source = ""}}, {.two = false}},
    {EPCTX_RULE_PAYLOAD_IGNORED,
     NULL,
     {.two = true, .second = {.main = "0"}},
     {.two = true, .second = {.main = "0", .cache = ABSENT}}},
    {EPCTX_RULE_STALE_COMPAT, NULL, {.model_fn = compat_other}, {.model_fn = compat_mine}},
    {EPCTX_RULE_COMPAT_SYNTAX,
     NULL,
     {.first = {.source = "QNN"}, .model_fn = compat_qnn_bad},
     {.first = {.source = "QNN"}, .model_fn = compat_qnn_good}},
    {EPCTX_RULE_IN_BODY, NULL, {.graph_fn = epnode_in_body}, {.graph_fn = outer_in_body}},
    {EPCTX_RULE_BACKSLASH,
     NULL,
     {.first = {.embed = "0", .cache = "sub\\x.bin"}},
     {.first = {.embed = "0", .cache = "good.bin"}}},
    {EPCTX_RULE_BUILD_PATH,
     NULL,
     {.first = {.made_from = "/models/model.onnx"}},
     {.first = {.made_from = "model.onnx"}}},
    {EPCTX_RULE_LIKE_PATH, NULL, {.first = {.embed = ABSENT, .cache = "good.bin"}}, {.two = false}},
    {EPCTX_RULE_NO_NAME, NULL, {.first = {.name = ""}}, {.two = false}},
    {EPCTX_RULE_DOUBLED_METADATA, NULL, {.model_fn = metadata_twice}, {.model_fn = compat_mine}},
    {EPCTX_RULE_DOUBLED_INFO, NULL, {.graph_fn = info_twice}, {.two = false}},
    {EPCTX_RULE_NOT_UTF8, NULL, {.first = {.name = "\xff"}}, {.first = {.name = "\xc3\xa4"}}},
    {EPCTX_RULE_NOT_UTF8, NULL, {.first = {.outputs = "y,\xc0\xaf"}},
     {.first = {.outputs = "y,\xc3\xa4"}}},
    {EPCTX_RULE_NOT_UTF8, NULL, {.model_fn = metadata_latin}, {.model_fn = compat_mine}},
    {EPCTX_RULE_NO_GRAPH_NAME, NULL, {.no_title = true}, {.two = false}},
    {EPCTX_RULE_DOTS,
     "qnn_plugin",
     {.first = {.source = "QNN", .embed = "0", .cache = "a..b.bin"}},
     {.first = {.source = "QNN", .embed = "0", .cache = "good.bin"}}},
    {EPCTX_RULE_DOUBLED_NODE, NULL, {.graph_fn = relus_of_one_name}, {.graph_fn = ghost_input}},
    {EPCTX_RULE_ORDER, NULL, {.graph_fn = wrong_order}, {.graph_fn = relus_of_one_name}},
    {EPCTX_RULE_ANNOTATION, NULL, {.graph_fn = annotation_of_nothing},
     {.graph_fn = annotation_of_y}},
    {EPCTX_RULE_CONFIGURATION, NULL, {.node_fn = on_mesh_y},
     {.node_fn = on_mesh_y, .model_fn = mesh}},
    {EPCTX_RULE_SHARDING, NULL, {.node_fn = sharding_of_nothing, .model_fn = mesh},
     {.node_fn = on_mesh_y, .model_fn = mesh}},
    {EPCTX_RULE_BINDING, NULL, {.graph_fn = used_weight, .model_fn = train_no_initializer},
     {.graph_fn = used_weight, .model_fn = train_well}},
    {EPCTX_RULE_BINDING, NULL, {.graph_fn = used_weight, .model_fn = train_no_output},
     {.graph_fn = used_weight, .model_fn = train_well}},
    {EPCTX_RULE_BINDING, NULL, {.graph_fn = used_weight, .model_fn = train_twice},
     {.graph_fn = used_weight, .model_fn = train_well}},
    {EPCTX_RULE_TRAINING, NULL, {.graph_fn = used_weight, .model_fn = train_ghost},
     {.graph_fn = used_weight, .model_fn = train_well}},
    {EPCTX_RULE_UNUSED, NULL, {.graph_fn = unused_weight},
     {.graph_fn = unused_weight, .model_fn = train_well}},
    {EPCTX_RULE_NO_OPSET, NULL, {.model_fn = function_without_import},
     {.model_fn = function_with_import}},
    {EPCTX_RULE_DEFAULTS, NULL, {.first = {.embed = ABSENT}}, {.two = false}},
    {EPCTX_RULE_EXTRA_ATTRIBUTE, NULL, {.node_fn = own_attribute}, {.two = false}},
    {EPCTX_RULE_UNKNOWN_SOURCE,
     NULL,
     {.first = {.source = "NobodysEP"}},
     {.first = {.source = NPU_SOURCE}}},
    {EPCTX_RULE_NO_COMPAT, NULL, {.two = true}, {.model_fn = compat_mine}},
    {EPCTX_RULE_WEIGHTLESS,
     NULL,
     {.graph_fn = used_weight, .first = {.inputs = "x,w"}},
     {.two = false}},
    {EPCTX_RULE_UNUSED, NULL, {.graph_fn = unused_weight}, {.graph_fn = used_weight}},
    {EPCTX_RULE_BINARY_NAME,
     NULL,
     {.first = {.source = NPU_SOURCE, .embed = "0", .cache = "good.bin"}},
     {.first = {.source = NPU_SOURCE, .embed = "0", .cache = "model_npu.bin"}}},
    {EPCTX_RULE_FOREIGN,
     "openvino",
     {.two = true, .first = {.source = OV_SOURCE}},
     {.first = {.source = OV_SOURCE}}},
    {EPCTX_RULE_NO_SDK, NULL, {.first = {.sdk = ABSENT}}, {.two = false}},
};
/* clang-format on */
#define CASE_COUNT (sizeof cases / sizeof cases[0])

/* -- running lint -- */

typedef struct findings {
    uint32_t count[EPCTX_RULE_COUNT];
    const char *since[EPCTX_RULE_COUNT], *until[EPCTX_RULE_COUNT]; /* of the last one */
    char text[4000];
    bool complete; /* every finding has id, message and fix */
} findings;

static void collect(void *user, const epctx_finding *finding) {
    findings *f = (findings *)user;
    size_t used = strlen(f->text);
    f->count[finding->rule]++;
    f->since[finding->rule] = finding->since;
    f->until[finding->rule] = finding->until;
    f->complete = f->complete && finding->info.id[0] != '\0' && finding->message[0] != '\0' &&
                  finding->info.fix[0] != '\0';
    snprintf(f->text + used, sizeof f->text - used, "[%s '%.*s' %s: %s]", finding->info.id,
             (int)finding->node.size, finding->node.size > 0 ? finding->node.data : "",
             finding->attribute, finding->message);
}

static epctx_status lint_bytes(const bytes *model, const char *profile, bool no_base, findings *f) {
    epctx_open_opts open = {0};
    epctx_check_opts opts = {0};
    epctx_model m;
    epctx_error error;
    epctx_io io = *epctx_io_files();
    epctx_status status;
    io.stat_fn = fake_stat;
    io.canonical_fn = fake_canonical;
    memset(f, 0, sizeof *f);
    f->complete = true;
    open.io = &io;
    if (!no_base) {
        opts.context_file_path = "/m/model_ctx.onnx";
        opts.external_folder = "/m/";
    }
    if (profile != NULL) opts.profile = epctx_profile_find(epctx_str_of(profile));
    status = epctx_model_open_memory(&m, model->data, model->size, &open, &error);
    if (status == EPCTX_OK) status = epctx_lint(&m, &opts, collect, f, NULL, &error);
    epctx_model_close(&m);
    return status;
}

/* EPCTX_FIXTURES=FOLDER keeps them: test_lint_ort.sh asks ONNX Runtime about each. */
static void keep(const bytes *model, const char *profile, epctx_rule_info rule, size_t number,
                 const char *kind) {
    const char *folder = getenv("EPCTX_FIXTURES");
    char path[4096];
    FILE *out;
    if (folder == NULL || profile != NULL) return;
    if (strcmp(rule.id, "E071") == 0) return; /* ORT takes minutes: tests/judge/ort_verdicts.py */
    if (strcmp(rule.id, "E086") == 0) return; /* only older ones refuse */
    snprintf(path, sizeof path, "%s/%s_%zu_%s.onnx", folder, rule.id, number, kind);
    out = fopen(path, "wb");
    if (out == NULL) return;
    fwrite(model->data, 1, model->size, out);
    fclose(out);
}

/* "ort=1.30.999" of "ort 1.31": the last version before. */
static void before_version(const char *fact_version, char out[60]) {
    unsigned parts[4] = {0, 0, 0, 0};
    char product[30];
    int used, i,
        count = sscanf(fact_version, "%29s %u.%u.%u.%u", product, &parts[0], &parts[1], &parts[2],
                       &parts[3]) -
                1;
    while (count > 1 && parts[count - 1] == 0) count--;
    parts[count - 1]--;
    used = snprintf(out, 60, "%s=", product);
    for (i = 0; i < count; i++) used += snprintf(out + used, 60 - (size_t)used, "%u.", parts[i]);
    snprintf(out + used, 60 - (size_t)used, "999");
}

TEST(every_rule_fails_and_passes) {
    size_t i;
    memset(long_payload, '\1', sizeof long_payload - 1);
    for (i = 0; i < CASE_COUNT; i++) {
        const rule_case *c = &cases[i];
        epctx_rule_info rule = epctx_rule_of(c->rule);
        const fact *versions = facts_rule(rule.id, NULL);
        const char *until = versions != NULL ? fact_get(versions, "until") : NULL;
        bytes bad = make(&c->bad), good = make(&c->good);
        findings in_bad, in_good;
        epctx_status bad_status, good_status;
        char before[60];
        if (until != NULL) before_version(until, before);
        if (until != NULL) facts_set_versions(before);
        bad_status = lint_bytes(&bad, c->profile, c->bad.no_base, &in_bad);
        good_status = lint_bytes(&good, c->profile, c->good.no_base, &in_good);
        facts_set_versions(NULL);
        keep(&bad, c->profile, rule, i, "bad");
        keep(&good, c->profile, rule, i, "good");
        bytes_free(&bad);
        bytes_free(&good);
        CHECK(bad_status == EPCTX_OK && good_status == EPCTX_OK, "%s %s: lint could not judge",
              rule.id, rule.name);
        CHECK(in_bad.count[c->rule] > 0, "%s %s was not found, but %s", rule.id, rule.name,
              in_bad.text);
        CHECK(in_good.count[c->rule] == 0, "%s %s was found in the good model: %s", rule.id,
              rule.name, in_good.text);
        CHECK(in_bad.complete, "%s: a finding lacks id, message or fix", rule.id);
    }
}

/* Rules about sizes need files of gigabytes, made sparse. */
static bool big_rule(epctx_rule rule) {
    return rule == EPCTX_RULE_MODEL_SIZE || rule == EPCTX_RULE_PAYLOAD_SIZE ||
           rule == EPCTX_RULE_NEAR_LIMIT;
}

TEST(every_rule_has_a_case) {
    bool seen[EPCTX_RULE_COUNT] = {false};
    size_t i;
    int k;
    for (i = 0; i < CASE_COUNT; i++) seen[cases[i].rule] = true;
    for (k = 0; k < EPCTX_RULE_COUNT; k++) {
        epctx_rule_info rule = epctx_rule_of((epctx_rule)k);
        CHECK(seen[k] || big_rule((epctx_rule)k), "%s %s has no case", rule.id, rule.name);
    }
    printf("note lint: %d rules\n", (int)EPCTX_RULE_COUNT);
}

TEST(a_proper_model_has_no_finding) {
    spec s = {.two = true,
              .first = {.source = NPU_SOURCE, .embed = "0", .cache = "model_npu.bin"},
              .second = {.source = NPU_SOURCE, .embed = "0", .main = "0", .cache = ABSENT}};
    bytes model = make(&s);
    findings f;
    CHECK_INT(lint_bytes(&model, "npu", false, &f), EPCTX_OK);
    bytes_free(&model);
    f.count[EPCTX_RULE_NO_COMPAT] = 0;
    for (int i = 0; i < EPCTX_RULE_COUNT; i++)
        CHECK(f.count[i] == 0 || i == EPCTX_RULE_NO_COMPAT, "found %s", f.text);
}

/* A model whose last field is a payload of `hole` zero bytes that take no room on the disk. */
static bool big_model(const char *path, uint64_t hole) {
    static const int64_t dims[] = {1, -1};
    bytes graph = {0}, node = new_node("EPContext", "com.microsoft", "n", "x", "y"), attr = {0};
    bytes model = {0}, head = {0};
    int fd;
    bool done;
    add_value(&graph, GRAPH_INPUT, "x", 1, dims);
    add_value(&graph, GRAPH_OUTPUT, "y", 1, dims);
    add_attr_int(&node, "embed_mode", 1);
    add_attr_str(&node, "source", "MyEP", 4);
    put_str(&attr, 1, "ep_cache_context");
    put_int(&attr, 20, EPCTX_ATTR_STRING);
    put_tag(&attr, 4, 2);
    put_varint(&attr, hole);
    put_tag(&node, 5, 2);
    put_varint(&node, attr.size + hole);
    bytes_add(&node, attr.data, attr.size);
    put_tag(&graph, 1, 2);
    put_varint(&graph, node.size + hole);
    bytes_add(&graph, node.data, node.size);
    put_int(&model, 1, 8);
    add_opset(&model, "", 17);
    add_opset(&model, "com.microsoft", 1);
    put_tag(&model, 7, 2);
    put_varint(&model, graph.size + hole);
    bytes_add(&model, graph.data, graph.size);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    done = fd >= 0 && write(fd, model.data, model.size) == (ssize_t)model.size &&
           ftruncate(fd, (off_t)(model.size + hole)) == 0;
    if (fd >= 0) close(fd);
    bytes_free(&graph);
    bytes_free(&node);
    bytes_free(&attr);
    bytes_free(&model);
    bytes_free(&head);
    return done;
}

TEST(sizes) {
    static const struct {
        uint64_t hole;
        epctx_rule rule;
        bool found;
    } sizes[] = {
        {UINT64_C(1) << 20, EPCTX_RULE_NEAR_LIMIT, false},
        {UINT64_C(1) << 20, EPCTX_RULE_MODEL_SIZE, false},
        {UINT64_C(1) << 20, EPCTX_RULE_PAYLOAD_SIZE, false},
        {UINT64_C(1900) << 20, EPCTX_RULE_NEAR_LIMIT, true},
        {UINT64_C(1900) << 20, EPCTX_RULE_MODEL_SIZE, false},
        {UINT64_C(3000) << 20, EPCTX_RULE_MODEL_SIZE, true},
        {UINT64_C(3000) << 20, EPCTX_RULE_PAYLOAD_SIZE, true},
    };
    char folder[TEST_TEMP], path[200];
    size_t i;
    if (sizeof(size_t) < 8) SKIP("3 GiB cannot be mapped here");
    CHECK_TRUE(test_temp(folder));
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        epctx_model model;
        epctx_error error;
        findings f = {0};
        epctx_status status;
        if (!big_model(path, sizes[i].hole)) {
            unlink(path);
            rmdir(folder);
            SKIP("no sparse files of 3 GiB in %s", folder);
        }
        status = epctx_model_open_file(&model, path, NULL, &error);
        unlink(path);
        CHECK_OK(status, error);
        status = epctx_lint(&model, NULL, collect, &f, NULL, &error);
        epctx_model_close(&model);
        CHECK_INT(status, EPCTX_OK);
        CHECK((f.count[sizes[i].rule] > 0) == sizes[i].found, "%s at %" PRIu64 " MiB: %s",
              epctx_rule_of(sizes[i].rule).id, sizes[i].hole >> 20, f.text);
    }
    rmdir(folder);
}

/* -- the model with everything -- */

static bool judge_without_list; /* the io cannot list folders */

/* What lint, state and files say of the model, in `text`. Memory from `allocator`. */
static epctx_status judge_rich(bool noise, const epctx_allocator *allocator, findings *f,
                               char *text, size_t room) {
    bytes b = rich_model(noise);
    epctx_io io = rich_io();
    epctx_open_opts open = {0};
    epctx_check_opts opts = {0};
    epctx_model model;
    epctx_arena arena;
    epctx_dependency *files;
    epctx_state state;
    epctx_status status;
    epctx_error error;
    size_t count = 0, i;
    memset(f, 0, sizeof *f);
    io.list_fn = judge_without_list ? NULL : fake_list;
    open.io = &io;
    opts.context_file_path = "/m/model_ctx.onnx";
    opts.external_folder = "/m";
    opts.allocator = allocator;
    text[0] = '\0';
    epctx_arena_init(&arena, allocator);
    epctx_model_open_memory(&model, b.data, b.size, &open, NULL);
    status = epctx_lint(&model, &opts, collect, f, NULL, &error);
    if (status == EPCTX_OK) status = epctx_model_state(&model, &arena, &state, &error);
    if (status == EPCTX_OK)
        status = epctx_model_files(&model, &opts, &arena, &files, &count, &error);
    if (status == EPCTX_OK)
        snprintf(text, room, "%d ep %d other %d weightless %d makers %d:", (int)state.ep_nodes,
                 (int)state.other_nodes, (int)state.weightless_inputs, (int)state.maker_count,
                 (int)state.compat_count);
    for (i = 0; i < count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, room - used, " %.*s%s", (int)files[i].name.size, files[i].name.data,
                 files[i].required ? "" : "?");
    }
    epctx_arena_free(&arena);
    epctx_model_close(&model);
    bytes_free(&b);
    return status;
}

TEST(the_model_with_everything) {
    static findings f, with_noise;
    char text[1000], noisy[1000], ids[400] = "";
    const char *at;
    size_t i;
    CHECK_INT(judge_rich(false, NULL, &f, text, sizeof text), EPCTX_OK);
    CHECK_INT(judge_rich(true, NULL, &with_noise, noisy, sizeof noisy), EPCTX_OK);
    CHECK_STR(noisy, text);
    CHECK_STR(text, "5 ep 17 other 1 weightless 3 makers 1: model_qnn.bin from.onnx? "
                    "qnn_op_trace.json? net_schematic.bin? model.xml model.bin training.bin? "
                    "attr.bin sparse.bin body.bin weights.bin start.bin? step.bin?");
    for (i = 0; i < EPCTX_RULE_COUNT; i++)
        CHECK(f.count[i] == with_noise.count[i], "%s: found %u times, with unknown fields %u",
              epctx_rule_of((epctx_rule)i).id, f.count[i], with_noise.count[i]);
    CHECK_STR(f.text, with_noise.text);
    for (at = f.text; (at = strchr(at, '[')) != NULL; at++)
        if (at[1] != ' ') sprintf(ids + strlen(ids), "%.4s ", at + 1);
    CHECK_STR(ids, "I002 I009 E030 I005 E030 I002 I009 I002 I009 I003 W003 W021 " /* the nodes */
                   "I006 I006 I006 W019 W019 "                          /* bodies, annotations */
                   "W006 I002 I009 W023 W022 W022 W022 W022 W022 W022 " /* training */
                   "I006 I006 I006 "                                    /* main graph */
                   "E011 I006 E011 I006 E011 I006 E028 W006 I002 I009 E027 " /* function */
                   "E076 E076 I010 "                                         /* binaries */
                   "I004 I004 I007 I007 "); /* EPs together, files */
}

/* Every allocation fails, alone or with all that follow: NOMEM or the whole answer. */
TEST(out_of_memory_with_everything) {
    static findings f, whole;
    char text[1000], all[1000];
    for (int round = 0; round < 4; round++) {
        size_t n = 0;
        counting c;
        judge_without_list = round % 2 == 1;
        CHECK_INT(judge_rich(false, NULL, &whole, all, sizeof all), EPCTX_OK);
        do {
            epctx_allocator allocator;
            epctx_status status;
            memset(&c, 0, sizeof c);
            c.fail_at = ++n;
            c.once = round < 2;
            allocator = counting_allocator(&c);
            status = judge_rich(false, &allocator, &f, text, sizeof text);
            CHECK(c.alive == 0, "allocation %zu: %zu blocks leak", n, (size_t)c.alive);
            CHECK(status == EPCTX_ERR_NOMEM || (status == EPCTX_OK && strcmp(text, all) == 0 &&
                                                strcmp(f.text, whole.text) == 0),
                  "allocation %zu, %s: %s, with all memory %s", n, epctx_status_name(status), text,
                  all);
        } while (c.calls >= n && n < 5000);
        CHECK(n > 3 && n < 5000, "%zu allocations", n);
    }
    judge_without_list = false;
}

/* Lint with every allocation failing once: NOMEM or a full answer, and nothing leaks. */
TEST(out_of_memory) {
    spec s = {.two = true, .graph_fn = ghost_in_body, .model_fn = metadata_twice};
    bytes model = make(&s);
    size_t n;
    for (n = 1; n < 5000; n++) {
        counting c = {0};
        epctx_allocator allocator;
        epctx_check_opts opts = {0};
        epctx_model m;
        epctx_error error;
        epctx_status status;
        c.fail_at = n;
        allocator = counting_allocator(&c);
        opts.allocator = &allocator;
        CHECK_INT(epctx_model_open_memory(&m, model.data, model.size, NULL, NULL), EPCTX_OK);
        status = epctx_lint(&m, &opts, NULL, NULL, NULL, &error);
        epctx_model_close(&m);
        CHECK(c.alive == 0, "allocation %zu: %zu blocks leak", n, (size_t)c.alive);
        if (status == EPCTX_OK) break;
        CHECK_INT(status, EPCTX_ERR_NOMEM);
    }
    CHECK(n > 1 && n < 5000, "%zu allocations", n);
    bytes_free(&model);
}

/* -- profiles -- */

TEST(a_profile_of_your_own) {
    epctx_profile own = *epctx_profile_find(epctx_str_of("generic"));
    spec s = {.two = true};
    bytes model;
    epctx_check_opts opts = {0};
    epctx_model m;
    findings f = {0};
    own.name = "own";
    opts.profile = &own;
    /* Four sources, and nodes whose context is of no primary one: neither is a fault here. */
    s.first.main = "0";
    s.second.main = "0";
    s.second.source = ABSENT;
    model = make(&s);
    own.sources[1] = own.sources[2] = "Other";
    own.sources[3] = "MyEP";
    own.sources[0] = "First";
    own.traits = EPCTX_TRAIT_SECONDARY_CONTEXT;
    CHECK_INT(epctx_model_open_memory(&m, model.data, model.size, NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_lint(&m, &opts, collect, &f, NULL, NULL), EPCTX_OK);
    CHECK(f.count[EPCTX_RULE_NO_PRIMARY] == 0 && f.count[EPCTX_RULE_PAYLOAD_IGNORED] == 0, "%s",
          f.text);
    CHECK_HAS(f.text, "accepts only nodes with 'First'");
    CHECK_UINT(f.count[EPCTX_RULE_FOREIGN], 0);
    /* Without sources it takes none. */
    memset(own.sources, 0, sizeof own.sources);
    memset(&f, 0, sizeof f);
    CHECK_INT(epctx_lint(&m, &opts, collect, &f, NULL, NULL), EPCTX_OK);
    CHECK_HAS(f.text, "accepts only nodes with 'its name'");
    CHECK_UINT(f.count[EPCTX_RULE_FOREIGN], 1);
    epctx_model_close(&m);
    bytes_free(&model);
}

/* -- compatibility -- */

static bool is_qnn(epctx_str text) {
    return epctx_compat_compare(epctx_profile_find(epctx_str_of("qnn")), text, text, NULL) ==
           EPCTX_COMPAT_OPTIMAL;
}

/* QNN's second form, by the rule of QNN EP 2.3.0. */
TEST(compatibility_of_chips) {
    static const char machine[] = "v2:6:2.47.0:2.34.0:75:57:8:0";
    static const char driver[] = "v2:6:2.47.0:2.34.0:75:57:8:1";
    static const struct {
        const char *model;
        epctx_compat want, with_driver;
    } models[] = {
        {"v2:6:2.47.0:2.34.0:75:57:8:0", EPCTX_COMPAT_OPTIMAL, EPCTX_COMPAT_OPTIMAL},
        /* The chip's number takes no part, nor do patches of versions. */
        {"v2:6:2.47.9:2.34.9:75:1:8:0", EPCTX_COMPAT_OPTIMAL, EPCTX_COMPAT_OPTIMAL},
        {"v2:4:2.47.0:2.34.0:75:57:8:0", EPCTX_COMPAT_UNSUPPORTED, EPCTX_COMPAT_UNSUPPORTED},
        {"v2:6:2.47.0:2.35.0:75:57:8:0", EPCTX_COMPAT_UNSUPPORTED, EPCTX_COMPAT_OPTIMAL},
        {"v2:6:2.48.0:2.34.0:75:57:8:0", EPCTX_COMPAT_OPTIMAL, EPCTX_COMPAT_UNSUPPORTED},
        {"v2:6:2.47.0:2.34.0:75:57:8:1", EPCTX_COMPAT_UNSUPPORTED, EPCTX_COMPAT_OPTIMAL},
        {"v2:6:2.47.0:2.34.0:79:69:8:0", EPCTX_COMPAT_UNSUPPORTED, EPCTX_COMPAT_UNSUPPORTED},
        {"v2:6:2.47.0:2.34.0:73:43:8:0", EPCTX_COMPAT_PREFER_RECOMPILATION,
         EPCTX_COMPAT_PREFER_RECOMPILATION},
        {"v2:6:2.47.0:2.34.0:69:36:8:0", EPCTX_COMPAT_UNSUPPORTED, EPCTX_COMPAT_UNSUPPORTED},
        {"v2:6:2.47.0:2.34.0:0:57:0:0", EPCTX_COMPAT_PREFER_RECOMPILATION,
         EPCTX_COMPAT_PREFER_RECOMPILATION},
        {"v2:6:2.47.0:2.34.0:75:57:16:0", EPCTX_COMPAT_UNSUPPORTED, EPCTX_COMPAT_UNSUPPORTED},
        {"v2:6:2.47.0:2.34.0:75:57::0", EPCTX_COMPAT_PREFER_RECOMPILATION,
         EPCTX_COMPAT_PREFER_RECOMPILATION},
        /* The best of several chips. */
        {"v2:6:2.47.0:2.34.0:69,73,75:36,43,57:8,8,8:0", EPCTX_COMPAT_OPTIMAL,
         EPCTX_COMPAT_OPTIMAL},
        {"v2:6:2.47.0:2.34.0:69,73,79:36,43,69:8,8,8:0", EPCTX_COMPAT_PREFER_RECOMPILATION,
         EPCTX_COMPAT_PREFER_RECOMPILATION},
        {"v2:6:2.47.0:2.34.0:69,79:36,69:8,8:0", EPCTX_COMPAT_UNSUPPORTED,
         EPCTX_COMPAT_UNSUPPORTED},
        /* The first form on such a machine: no bound between v6x and v7x. */
        {"6:2.47.0:2.34.0:3.3.3:75:0", EPCTX_COMPAT_OPTIMAL, EPCTX_COMPAT_OPTIMAL},
        {"6:2.47.0:2.34.0:3.3.3:69:0", EPCTX_COMPAT_PREFER_RECOMPILATION,
         EPCTX_COMPAT_PREFER_RECOMPILATION},
        {"6:2.47.0:2.34.0:3.3.3:79:0", EPCTX_COMPAT_UNSUPPORTED, EPCTX_COMPAT_UNSUPPORTED},
        /* Not QNN's. */
        {"v3:6:2.47.0:2.34.0:75:57:8:0", EPCTX_COMPAT_NOT_APPLICABLE, EPCTX_COMPAT_NOT_APPLICABLE},
        {"v2:6:2.47.0:2.34.0:75,73:57:8:0", EPCTX_COMPAT_NOT_APPLICABLE,
         EPCTX_COMPAT_NOT_APPLICABLE},
        {"v2:6:2.47.0:2.34.0:75:57,43:8:0", EPCTX_COMPAT_NOT_APPLICABLE,
         EPCTX_COMPAT_NOT_APPLICABLE},
        {"v2:6:2.47.0:2.34.0:75:57:8,8:0", EPCTX_COMPAT_NOT_APPLICABLE,
         EPCTX_COMPAT_NOT_APPLICABLE},
        {"v2:6:2.47.0:2.34.0::57:8:0", EPCTX_COMPAT_NOT_APPLICABLE, EPCTX_COMPAT_NOT_APPLICABLE},
        {"v2:6:2.47.0:2.34.0:75:57:8:0:1", EPCTX_COMPAT_NOT_APPLICABLE,
         EPCTX_COMPAT_NOT_APPLICABLE},
        {"v2:6:2.47.0:2.34.0:75:57:8:", EPCTX_COMPAT_NOT_APPLICABLE, EPCTX_COMPAT_NOT_APPLICABLE},
        {"v2:", EPCTX_COMPAT_NOT_APPLICABLE, EPCTX_COMPAT_NOT_APPLICABLE}};
    size_t i;
    for (i = 0; i < sizeof models / sizeof models[0]; i++) {
        CHECK(compare("qnn", models[i].model, machine) == models[i].want, "%s", models[i].model);
        CHECK(compare("qnn_plugin", models[i].model, driver) == models[i].with_driver, "%s, driver",
              models[i].model);
    }
    CHECK_TRUE(is_qnn(epctx_str_of("v2:6:2.47.0:2.34.0:69,75:36,57:8,8:0")));
    /* A machine whose VTCM is not known, and one whose EP reads the first form only. */
    CHECK_INT(compare("qnn", machine, "v2:6:2.47.0:2.34.0:75:57:0:0"),
              EPCTX_COMPAT_PREFER_RECOMPILATION);
    CHECK_INT(compare("qnn", machine, "6:2.47.0:2.34.0:3.3.3:75:0"), EPCTX_COMPAT_NOT_APPLICABLE);
    /* A machine's string with several chips stands for each; without an architecture for none. */
    CHECK_INT(compare("qnn", "v2:6:2.47.0:2.34.0:73,75,79:43,57,69:8,8,8:0",
                      "v2:6:2.47.0:2.34.0:75,73:57,43:8,8:0"),
              EPCTX_COMPAT_OPTIMAL);
    CHECK_INT(compare("qnn", machine, "v2:6:2.47.0:2.34.0:75,79:57,69:8,8:0"),
              EPCTX_COMPAT_PREFER_RECOMPILATION);
    CHECK_INT(compare("qnn", machine, "v2:6:2.47.0:2.34.0:79,73:69,43:8,8:0"),
              EPCTX_COMPAT_UNSUPPORTED);
    CHECK_INT(compare("qnn", machine, "v2:6:2.47.0:2.34.0:0:57:0:0"), EPCTX_COMPAT_NOT_APPLICABLE);
    CHECK_INT(compare("qnn", "6:2.47.0:2.34.0:3.3.3:75:0", "v2:6:2.47.0:2.34.0:0:57:0:0"),
              EPCTX_COMPAT_NOT_APPLICABLE);
    CHECK_TRUE(is_qnn(epctx_str_of("v2:6:2.47.0:2.34.0:0:57:0:0")));
    for (i = 0; i < sizeof machine - 1; i++) {
        epctx_str cut = {machine, i};
        CHECK(!is_qnn(cut), "%zu characters are read", i);
    }
}

/* What OpenVINO's plugin EP 1.8.1 answered on such a machine, string by string. */
#define FORM    "\"ovep_compat_ver\":\"1.0\""
#define BIN     "\"ovep_bin_ver\":\"1.1\""
#define OWN     "\"ov_compat_string\":\"meta=1.0;ov=2026.4.1;isa=Intel AVX2\""
#define NA      EPCTX_COMPAT_NOT_APPLICABLE
#define OPTIMAL EPCTX_COMPAT_OPTIMAL
#define NO      EPCTX_COMPAT_UNSUPPORTED
static const struct {
    const char *text;
    epctx_compat want;
} openvino_strings[] = {
    {"{" FORM ",\"ovep_ver\":\"1.8.1\"," BIN "," OWN "}", OPTIMAL},
    {"{" FORM "," BIN "," OWN "}", OPTIMAL},
    {"{" OWN "," BIN "," FORM "}", OPTIMAL},
    {" {\t\"ovep_compat_ver\" : \"1.0\" ,\r " BIN " , " OWN " } ", OPTIMAL},
    {"{" FORM ",\"ovep_bin_ver\":\"1.0\"," OWN "}", OPTIMAL},
    {"{" FORM ",\"ovep_bin_ver\":\"1.99\"," OWN "}", OPTIMAL},
    {"{" FORM ",\"ovep_bin_ver\":\"1\"," OWN "}", OPTIMAL},
    {"{" FORM ",\"ovep_bin_ver\":\"1.x\"," OWN "}", OPTIMAL},
    {"{" FORM ",\"ovep_bin_ver\":\"01.1\"," OWN "}", OPTIMAL},
    {"{" FORM ",\"ovep_bin_ver\":\" 1.1\"," OWN "}", OPTIMAL},
    {"{" FORM ",\"ovep_bin_ver\":\"+1.1\"," OWN "}", OPTIMAL},
    {"{" FORM ",\"ovep_bin_ver\":\"1e1\"," OWN "}", OPTIMAL},
    {"{" FORM ",\"ovep_bin_ver\":\"2.0\"," OWN "}", NO},
    {"{" FORM ",\"ovep_bin_ver\":\"0.9\"," OWN "}", NO},
    {"{" FORM ",\"ovep_bin_ver\":\"11.0\"," OWN "}", NO},
    {"{" FORM ",\"ovep_bin_ver\":\"-1.1\"," OWN "}", NO},
    {"{" FORM ",\"ovep_bin_ver\":\"\"," OWN "}", NO},
    {"{" FORM ",\"ovep_bin_ver\":\"x\"," OWN "}", NO},
    {"{" FORM ",\"ovep_bin_ver\":\"4294967297.1\"," OWN "}", NO},
    {"{" FORM ",\"ovep_bin_ver\":\"99999999999999999999\"," OWN "}", NO},
    {"{" FORM ",\"ovep_bin_ver\":\"\\u0031.7\"," OWN "}", OPTIMAL},
    {"{" FORM ",\"ovep_bin_ver\":\"\\u000b1\"," OWN "}", OPTIMAL},
    {"{" FORM ",\"ovep_bin_ver\":\"1\\u00002\"," OWN "}", OPTIMAL},
    {"{\"ovep_compat_ver\":\"1.1\"," BIN "," OWN "}", NA},
    {"{\"ovep_compat_ver\":\"2.0\"," BIN "," OWN "}", NA},
    {"{\"ovep_compat_ver\":\"1\"," BIN "," OWN "}", NA},
    {"{\"ovep_compat_ver\":\"\"," BIN "," OWN "}", NA},
    {"{\"ovep_compat_ver\":\"1.0.0\"," BIN "," OWN "}", NA},
    {"{" BIN "," OWN "}", NA},
    {"{" FORM "," OWN "}", NO},
    {"{" FORM "," BIN "}", NA},
    {"{" FORM "," BIN ",\"ov_compat_string\":\"\"}", NA},
    {"{\"ovep_compat_ver\":\"2.0\",\"ovep_bin_ver\":\"2.0\"," OWN "}", NA},
    {"{" FORM ",\"ovep_bin_ver\":\"2.0\"}", NO},
    {"{\"ovep_compat_ver\":5," BIN "," OWN "}", NA},
    {"{\"ovep_compat_ver\":1.0," BIN "," OWN "}", NA},
    {"{\"ovep_compat_ver\":null," BIN "," OWN "}", NA},
    {"{\"ovep_compat_ver\":true," BIN "," OWN "}", NA},
    {"{\"ovep_compat_ver\":{}," BIN "," OWN "}", NA},
    {"{\"ovep_compat_ver\":[\"1.0\"]," BIN "," OWN "}", NA},
    {"{" FORM ",\"ovep_bin_ver\":1.1," OWN "}", NA},
    {"{" FORM "," BIN ",\"ov_compat_string\":[1]}", NA},
    {"{" FORM ",\"ovep_bin_ver\":\"x\",\"ov_compat_string\":5}", NO},
    {"{" FORM "," BIN ",\"ov_compat_string\":\"meta=1.0;ov=2026.4.0;isa=Intel AVX2\"}", NO},
    {"{" FORM "," BIN ",\"ov_compat_string\":\"meta=1.0;ov=2026.4;isa=Intel AVX2\"}", NO},
    {"{" FORM "," BIN ",\"ov_compat_string\":\"meta=1.0;ov=2026.4.1;isa=Intel AVX\"}", NO},
    {"{" FORM "," BIN ",\"ov_compat_string\":\"meta=1.1;ov=2026.4.1;isa=Intel AVX2\"}", NO},
    {"{" FORM "," BIN ",\"ov_compat_string\":\"meta=1.0;ov=2026.4.1;isa=intel avx2\"}", NO},
    {"{" FORM "," BIN ",\"ov_compat_string\":\"isa=Intel AVX2;ov=2026.4.1;meta=1.0\"}", NO},
    {"{" FORM "," BIN ",\"ov_compat_string\":\"meta=1.0;ov=2026.4.1;isa=Intel AVX2;\"}", NO},
    {"{" FORM "," BIN ",\"ov_compat_string\":\"meta=1.0;ov=2026.4.1;isa=Intel AVX2;new=1\"}", NO},
    {"{" FORM "," BIN ",\"ov_compat_string\":\"x\"}", NO},
    {"{" FORM "," BIN ",\"ov_compat_string\":\"meta=1.0;ov=2026.4.1;isa=Intel AVX2 \"}", NO},
    {"{" FORM "," BIN ",\"ov_compat_string\":\"ov=2026.4.1;isa=Intel AVX2\"}", NO},
    {"{" FORM "," BIN ",\"ov_compat_string\":\"meta=1.0;ov=2026.4.1;isa=Intel AVX2\\u0000\"}", NO},
    {"{" FORM "," BIN ",\"ov_compat_string\":\"meta\\u003d1\\u002E0;ov=2026.4.1;isa=Intel AVX2\"}",
     OPTIMAL},
    {"{" FORM ",\"ovep_bin_v\\u0065r\":\"1.1\"," OWN "}", OPTIMAL},
    {"{\"ovep_compat_ver\":5," FORM "," BIN "," OWN "}", OPTIMAL},
    {"{" FORM "," BIN "," OWN ",\"ovep_bin_ver\":\"2.0\"}", NO},
    {"{" FORM "," BIN "," OWN ",\"ovep_compat_ver\":5}", NA},
    {"{" FORM "," BIN "," OWN ",\"a\":{\"a\":[1,2,{\"ovep_bin_ver\":\"9.0\"}]}}", OPTIMAL},
    {"{" FORM "," BIN "," OWN ",\"a\":[{\"b\":[]},{},[-1.5e+3,\"x\",null,false,true,0,-0,2E7]]}",
     OPTIMAL},
    {"{" FORM "," BIN "," OWN ",\"a\":\"\\ud83d\\ude00\\n\\r\\b\\f\\t\\/\\\\\\\"\"}", OPTIMAL},
    {"{" FORM "," BIN "," OWN ",\"a\":\"\303\244\342\202\254\"}", OPTIMAL},
    {"{" FORM "," BIN "," OWN ",\"a\":01}", NO},
    {"{" FORM "," BIN "," OWN ",\"a\":1.}", NO},
    {"{" FORM "," BIN "," OWN ",\"a\":.5}", NO},
    {"{" FORM "," BIN "," OWN ",\"a\":1e}", NO},
    {"{" FORM "," BIN "," OWN ",\"a\":+1}", NO},
    {"{" FORM "," BIN "," OWN ",\"a\":NaN}", NO},
    {"{" FORM "," BIN "," OWN ",\"a\":True}", NO},
    {"{" FORM "," BIN "," OWN ",\"a\":truex}", NO},
    {"{" FORM "," BIN "," OWN ",\"a\":[1,]}", NO},
    {"{" FORM "," BIN "," OWN ",\"a\":[1}", NO},
    {"{" FORM "," BIN "," OWN ",\"a\":{1:2}}", NO},
    {"{" FORM "," BIN "," OWN ",\"a\":{\"b\" 1}}", NO},
    {"{" FORM "," BIN "," OWN ",\"a\":{\"b\":}}", NO},
    {"{" FORM "," BIN "," OWN ",\"a\":\"\\ud800\"}", NO},
    {"{" FORM "," BIN "," OWN ",\"a\":\"\\ud800\\u0041\"}", NO},
    {"{" FORM "," BIN "," OWN ",\"a\":\"\\udc00\"}", NO},
    {"{" FORM "," BIN "," OWN ",\"a\":\"\\x\"}", NO},
    {"{" FORM "," BIN "," OWN ",\"a\":\"\\u12g4\"}", NO},
    {"{" FORM "," BIN "," OWN ",\"a\":\"\\u12\"}", NO},
    {"{" FORM "," BIN "," OWN ",\"a\":\"a\001b\"}", NO},
    {"{" FORM "," BIN "," OWN ",\"a\":\"\\\"}", NO},
    {"{" FORM "," BIN "," OWN ",\"a\":}", NO},
    {"{" FORM "," BIN "," OWN
     ",\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}",
     OPTIMAL},
    {"\357\273\277{" FORM "," BIN "," OWN "}", OPTIMAL},
    {"\357\273\277\357\273\277{" FORM "," BIN "," OWN "}", NO},
    {"hello", NO},
    {" ", NO},
    {"meta=1.0;ov=2026.4.1;isa=Intel AVX2", NO},
    {"{" FORM "," BIN "," OWN "}x", NO},
    {"{" FORM "," BIN "," OWN "}{" FORM "," BIN "," OWN "}", NO},
    {"{" FORM "," BIN "," OWN, NO},
    {"{" FORM "," BIN "," OWN ",}", NO},
    {"/**/{" FORM "," BIN "," OWN "}", NO},
    {"{'ovep_compat_ver':'1.0','ovep_bin_ver':'1.1','ov_compat_string':'meta=1.0;ov=2026.4.1;isa="
     "Intel AVX2'}",
     NO},
    {"v2:6:2.51.0:2.37.0:79:69:8:0", NO},
    {"\013{" FORM "," BIN "," OWN "}", NO},
    {"5", NA},
    {"null", NA},
    {"[]", NA},
    {"{}", NA},
    {"\"x\"", NA},
    {"{\"a\":{" FORM "," BIN "," OWN "}}", NA},
    {"{" FORM ",\"ovep_BIN_VER\":\"1.1\"," OWN "}", NO},
};

TEST(compatibility_of_openvino) {
    static const char machine[] = "{" FORM "," BIN "," OWN "}";
    static const char npu[] = "{" FORM "," BIN ",\"ov_compat_string\":\"meta=1.0;x=1\"}";
    static const char *const no_machine[] = {
        "x", "{}", "[]", "{" FORM "," BIN "}", "{" FORM "," OWN "}", "{" BIN "," OWN "}"};
    epctx_error why;
    size_t i;
    for (i = 0; i < sizeof openvino_strings / sizeof openvino_strings[0]; i++)
        CHECK(compare("openvino", openvino_strings[i].text, machine) == openvino_strings[i].want,
              "'%s' is %d, the EP says %d", openvino_strings[i].text,
              (int)compare("openvino", openvino_strings[i].text, machine),
              (int)openvino_strings[i].want);
    /* Without this machine's own words, and of a device other than the CPU, nothing is known. */
    for (i = 0; i < sizeof no_machine / sizeof no_machine[0]; i++)
        CHECK(compare("openvino", machine, no_machine[i]) == NA, "against '%s'", no_machine[i]);
    CHECK_INT(compare("openvino", npu, npu), OPTIMAL);
    CHECK_INT(compare("openvino", machine, npu), NA);
    CHECK_INT(compare("openvino", npu, machine), NO);
    for (i = 0; i < sizeof machine - 1; i++) {
        const epctx_str cut = {machine, i};
        CHECK(epctx_compat_compare(epctx_profile_find(epctx_str_of("openvino")), cut,
                                   epctx_str_of(machine), NULL) == (i == 0 ? NA : NO),
              "%zu characters are read", i);
    }
    epctx_compat_compare(epctx_profile_find(epctx_str_of("openvino")), epctx_str_of(machine),
                         epctx_str_of("{" FORM "," BIN ",\"ov_compat_string\":\"ov=7;isa=A\"}"),
                         &why);
    CHECK_HAS(why.message, "version of OpenVINO");
}
#undef FORM
#undef BIN
#undef OWN
#undef NA
#undef OPTIMAL
#undef NO

TEST(compatibility) {
    static const char machine[] = "6:2.30.0:2.20.0:3.3.3:73:0";
    static const char longer[] = "6:2.30.0:2.20.0:3.3.3:73:0\0x";
    static char many[4098];
    epctx_error why;
    CHECK_TRUE(is_qnn(epctx_str_of(machine)));
    CHECK_TRUE(!is_qnn(epctx_str_of("6:2.30.0:2.20.0:3.3.3:73")));
    CHECK_TRUE(!is_qnn(epctx_str_of("6:2.30:2.20.0:3.3.3:73:0")));
    CHECK_TRUE(!is_qnn(epctx_str_of("6:2.30.0:2.20.0:3.3.3:73:0:1")));
    CHECK_TRUE(!is_qnn((epctx_str){longer, sizeof longer - 1}));
    CHECK_TRUE(!is_qnn(epctx_str_of("6:2.30.0:2.20.0:3.3.3:73:")));
    CHECK_TRUE(!is_qnn(epctx_str_of("6:2.30.0:2.20.0:3.3.3:-73:0")));
    CHECK_TRUE(!is_qnn(epctx_str_of("")));
    CHECK_INT(compare("qnn", machine, machine), EPCTX_COMPAT_OPTIMAL);
    CHECK_INT(compare("qnn", "6:2.29.0:2.20.0:3.3.3:68:0", machine),
              EPCTX_COMPAT_PREFER_RECOMPILATION);
    CHECK_INT(compare("qnn", "6:1.31.0:2.20.0:3.3.3:68:0", machine),
              EPCTX_COMPAT_PREFER_RECOMPILATION);
    CHECK_INT(compare("qnn", "6:2.30.0:2.20.0:3.3.3:75:0", machine), EPCTX_COMPAT_UNSUPPORTED);
    CHECK_INT(compare("qnn", "4:2.30.0:2.20.0:3.3.3:73:0", machine), EPCTX_COMPAT_UNSUPPORTED);
    CHECK_INT(compare("qnn", "6:2.31.0:2.20.0:3.3.3:73:0", machine), EPCTX_COMPAT_UNSUPPORTED);
    CHECK_INT(compare("qnn", "6:2.30.0:2.20.0:3.3.4:73:0", machine), EPCTX_COMPAT_UNSUPPORTED);
    CHECK_INT(compare("qnn", "nonsense", machine), EPCTX_COMPAT_NOT_APPLICABLE);
    CHECK_INT(compare("example", "ep;version=1;arch=a", "ep;version=1;arch=a"),
              EPCTX_COMPAT_OPTIMAL);
    CHECK_INT(compare("example", "ep;version=1;arch=a", "ep;version=2;arch=a"),
              EPCTX_COMPAT_PREFER_RECOMPILATION);
    CHECK_INT(compare("example", "ep;version=1;arch=a", "ep;version=1;arch=b"),
              EPCTX_COMPAT_UNSUPPORTED);
    CHECK_INT(compare("example", "ep;version=1", "other;version=1"), EPCTX_COMPAT_NOT_APPLICABLE);
    CHECK_INT(compare("example", "ep;version=1", "ep"), EPCTX_COMPAT_NOT_APPLICABLE);
    CHECK_INT(compare("example", "", "ep"), EPCTX_COMPAT_NOT_APPLICABLE);
    memset(many, 'x', sizeof many - 1);
    CHECK_INT(compare("example", "ep", many), EPCTX_COMPAT_NOT_APPLICABLE);
    CHECK_INT(compare("example", many, "ep"), EPCTX_COMPAT_NOT_APPLICABLE);
    epctx_compat_compare(NULL, epctx_str_of("ep;arch=a"), epctx_str_of("ep;arch=b"), &why);
    CHECK_HAS(why.message, "architecture");
    CHECK_STR(epctx_file_use_name((epctx_file_use)4), "unknown");
    CHECK_STR(epctx_rule_of((epctx_rule)9999).name, "unknown");
    CHECK_INT(compare("example", "ep", ""), EPCTX_COMPAT_NOT_APPLICABLE);
    CHECK_INT(compare("example", "ep;a=1;b=2", "ep;b=2;a=1"), EPCTX_COMPAT_OPTIMAL);
    CHECK_INT(compare("example", "ep;hardware_architecture=1", "ep;hardware_architecture=2"),
              EPCTX_COMPAT_UNSUPPORTED);
    CHECK_INT(compare("qnn", "6:2.30.0:2.21.0:3.3.3:73:0", machine), EPCTX_COMPAT_UNSUPPORTED);
    CHECK_INT(compare("qnn", machine, "nonsense"), EPCTX_COMPAT_NOT_APPLICABLE);
    /* Cut off anywhere, or with a letter anywhere, or a number too long for one: no string. */
    for (size_t i = 0; i < sizeof machine - 1; i++) {
        char text[64];
        epctx_str cut = {machine, i};
        CHECK(!is_qnn(cut), "%zu characters are read", i);
        memcpy(text, machine, sizeof machine);
        text[i] = 'x';
        CHECK(!is_qnn(epctx_str_of(text)), "%s is read", text);
        snprintf(text, sizeof text, "%.*s99999999999999999999%s", (int)i, machine, machine + i);
        CHECK(!is_qnn(epctx_str_of(text)), "%s is read", text);
        snprintf(text, sizeof text, "%.*s.1%s", (int)i, machine, machine + i);
        CHECK(!is_qnn(epctx_str_of(text)), "%s is read", text);
    }
    CHECK_TRUE(!is_qnn(epctx_str_of(NULL)));
}

/* -- opening what was resolved -- */

/* Payloads that end like the name of a file, of 260 bytes and of one more. */
TEST(a_long_payload_is_no_path) {
    char text[262];
    findings f;
    for (size_t size = 260; size <= 261; size++) {
        bytes graph = {0}, b;
        memset(text, 'a', sizeof text);
        memcpy(text + size - 4, ".bin", 4);
        add_epnode(&graph, "n", "x", "y", 1, 1, "QNN", "p", text, size);
        b = new_model(&graph);
        CHECK_INT(lint_bytes(&b, NULL, false, &f), EPCTX_OK);
        CHECK((f.count[EPCTX_RULE_LIKE_PATH] > 0) == (size == 260), "%zu bytes: %s", size, f.text);
        bytes_free(&b);
    }
}

/* -- limits of inlining: what was measured with ONNX Runtime 1.31.1 -- */

/* A model of `calls` calls of a function A of `count` nodes, of which one holds a constant. */
static bytes calls_of_a(size_t calls, size_t count, size_t constant) {
    bytes graph = chain_of(1, "A", "mine", calls), nodes = chain_of(7, "Relu", "", count),
          whole = {0};
    bytes model;
    if (constant > 0) {
        bytes node = new_node("Constant", "", "", "", "k"), attr = {0}, tensor = {0};
        void *data = calloc(constant, 1);
        put_int(&tensor, 2, EPCTX_ONNX_UINT8);
        put_data(&tensor, 9, data, constant);
        free(data);
        put_str(&attr, 1, "value");
        put_child(&attr, 5, &tensor);
        put_int(&attr, 20, EPCTX_ATTR_TENSOR);
        put_child(&node, 5, &attr);
        put_child(&nodes, 7, &node);
    }
    put_str(&whole, 2, "graph");
    bytes_add(&whole, graph.data, graph.size);
    bytes_free(&graph);
    add_value(&whole, 11, "a", EPCTX_ONNX_FLOAT, NULL);
    add_value(&whole, 12, "b", EPCTX_ONNX_FLOAT, NULL);
    model = new_model(&whole);
    add_function(&model, "A", "", &nodes);
    bytes_free(&nodes);
    add_opset(&model, "mine", 1);
    return model;
}

TEST(inlining_up_to_the_limits) {
    static const struct {
        size_t calls, count, constant;
        const char *text; /* "": nothing is found */
    } models[] = {
        {1000, 1000, 0, ""},
        {1001, 1000, 0,
         "at least 1001000 nodes, ONNX Runtime 1.31 allows 1000000 "
         "(session.function_expansion_node_limit): 'A' is expanded 1001 times"},
        {1000, 1001, 0, "at least 1001000 nodes"},
        {1000, 999, 1, ""}, /* the constant is a node, too */
        {1000, 1000, 1, "at least 1001000 nodes"},
        {1024, 1, 1 << 20, ""},
        {1025, 1, 1 << 20,
         "at least 1074790400 bytes of constants, ONNX Runtime 1.31 allows 1073741824 "
         "(session.function_expansion_byte_limit): 'A' is expanded 1025 times"},
        {1024, 1, (1 << 20) + 1, "at least 1073742848 bytes"},
    };
    size_t i;
    for (i = 0; i < sizeof models / sizeof models[0]; i++) {
        bytes model = calls_of_a(models[i].calls, models[i].count, models[i].constant);
        findings f;
        epctx_status status = lint_bytes(&model, NULL, false, &f);
        bytes_free(&model);
        CHECK_INT(status, EPCTX_OK);
        CHECK(f.count[EPCTX_RULE_EXPANSION] == (models[i].text[0] != '\0') &&
                  strstr(f.text, models[i].text) != NULL,
              "%zu calls of %zu nodes: %s", models[i].calls, models[i].count, f.text);
    }
}

/* The number of nodes doubles with each of 20,000 functions. */
TEST(inlining_without_end_is_counted_fast) {
    bytes graph = {0}, model;
    findings f;
    add_node(&graph, "Relu", "r", "x", "y");
    call_of_a(&graph);
    add_value(&graph, 11, "x", EPCTX_ONNX_FLOAT, NULL);
    add_value(&graph, 12, "z", EPCTX_ONNX_FLOAT, NULL);
    put_str(&graph, 2, "graph");
    model = new_model(&graph);
    doubling(&model, 20000);
    CHECK_INT(lint_bytes(&model, NULL, false, &f), EPCTX_OK);
    CHECK(f.count[EPCTX_RULE_EXPANSION] == 1 &&
              strstr(f.text, "at least 18446744073709551615 nodes") != NULL,
          "%s", f.text);
    bytes_free(&model);
}

/* -- versions: on both sides of every version that a fact about rules names -- */

static void at_version(const char *fact_version, char out[60]) {
    snprintf(out, 60, "%s", fact_version);
    *strchr(out, ' ') = '=';
}

static void lint_for(const bytes *model, const char *profile, const char *versions, findings *f) {
    epctx_error error;
    CHECK(facts_check_versions(versions, NULL, &error) == EPCTX_OK, "%s", error.message);
    facts_set_versions(versions);
    CHECK_INT(lint_bytes(model, profile, false, f), EPCTX_OK);
    facts_set_versions(NULL);
}

/* Lints the models of the rule on both sides of a version; returns how many break it on one. */
static size_t try_rule(const fact *f, int rule, const char *profile, const char *version,
                       bool holds_from) {
    char before[60], from[60];
    size_t i, broken = 0;
    before_version(version, before);
    at_version(version, from);
    for (i = 0; i < CASE_COUNT; i++) {
        const rule_case *c = &cases[i];
        const char *since = fact_get(f, "since"), *until = fact_get(f, "until");
        findings with, without;
        bytes bad;
        if ((int)c->rule != rule) continue;
        bad = make(&c->bad);
        lint_for(&bad, profile[0] != '\0' ? profile : c->profile, holds_from ? from : before,
                 &with);
        lint_for(&bad, profile[0] != '\0' ? profile : c->profile, holds_from ? before : from,
                 &without);
        bytes_free(&bad);
        if (with.count[rule] == 0) continue; /* another profile's */
        broken++;
        if (without.count[rule] != 0 || strcmp(with.since[rule], since != NULL ? since : "") != 0 ||
            strcmp(with.until[rule], until != NULL ? until : "") != 0)
            return 0;
    }
    return broken;
}

TEST(versions_of_rules) {
    static const char *const keys[] = {"since", "until"};
    size_t at = 0, key, count = 0;
    const fact *f;
    while ((f = facts_next("rule", &at)) != NULL) {
        epctx_str profile = epctx_str_of(f->name), id = epctx_str_cut(&profile, ' ');
        int rule = 0;
        while (rule < EPCTX_RULE_COUNT && !epctx_str_is(id, epctx_rule_of((epctx_rule)rule).id))
            rule++;
        if (rule == EPCTX_RULE_COUNT && epctx_str_starts(id, "E1"))
            continue; /* of deliveries: judge/genai.py */
        CHECK(rule < EPCTX_RULE_COUNT, "there is no rule %s", f->name);
        for (key = 0; key < 2; key++) {
            epctx_str rest = epctx_str_of(fact_get(f, keys[key])), version;
            while (fact_next_word(&rest, &version)) {
                char text[60];
                snprintf(text, sizeof text, "%.*s", (int)version.size, version.data);
                CHECK(try_rule(f, rule, profile.size > 0 ? profile.data : "", text, key == 0) > 0,
                      "%s: no model breaks it only %s %s", f->name, keys[key], text);
                count++;
            }
        }
    }
    CHECK(count > 0, "no rule has versions");
}

/* A model of this operator set or (no domain) IR version. */
static bytes of_version(epctx_str domain, int64_t number) {
    const spec plain = {.two = false};
    bytes model = make(&plain);
    char name[100];
    snprintf(name, sizeof name, "%.*s", (int)domain.size, domain.data);
    if (domain.size == 0)
        put_int(&model, 1, number);
    else
        add_opset(&model, strcmp(name, "ai.onnx") == 0 ? "" : name, number);
    return model;
}

static size_t try_number(const char *kind, const fact *f, const char *since) {
    const int rule = kind[0] == 'i' ? EPCTX_RULE_IR_REFUSED : EPCTX_RULE_OPSET_VERSION;
    epctx_str number = epctx_str_of(f->name), domain = epctx_str_of("");
    findings early, late, all;
    char before[60], from[60];
    uint64_t value = 0;
    bytes model;
    if (kind[0] == 'o') domain = epctx_str_cut(&number, ' ');
    if (!epctx_str_number(number, &value)) return 0;
    before_version(since, before);
    at_version(since, from);
    model = of_version(domain, (int64_t)value);
    lint_for(&model, NULL, before, &early);
    lint_for(&model, NULL, from, &late);
    lint_for(&model, NULL, "ort=9999", &all);
    bytes_free(&model);
    return late.count[rule] == 0 && all.count[rule] == 0 &&
           (value == 1 /* the domain itself is new: no version of it is refused */
                ? early.count[rule] == 0
                : early.count[rule] == 1 && strcmp(early.until[rule], since) == 0);
}

TEST(versions_of_numbers) {
    static const char *const kinds[] = {"opset", "ir"};
    size_t kind, at, count;
    const fact *f;
    for (kind = 0; kind < 2; kind++) {
        for (at = 0, count = 0; (f = facts_next(kinds[kind], &at)) != NULL;) {
            const char *since = fact_get(f, "since");
            if (since == NULL) continue;
            CHECK(try_number(kinds[kind], f, since) == 1,
                  "%s %s: expected no finding from %s on, "
                  "one before that tells so",
                  kinds[kind], f->name, since);
            count++;
        }
        CHECK(count > 2, "%zu versions of %s", count, kinds[kind]);
    }
}

/* What is said names the version that is judged for: the newest that was looked at, or that asked
 * for. */
TEST(version_in_messages) {
    static const struct {
        const char *versions, *says;
    } asked[] = {
        {"ort=1.23.2", "ORT 1.23 supports 1 to 23"},
        {"ort=1.23", "ORT 1.23 supports 1 to 23"},
        {"ort=1.20.0,qnn=2.0", "ORT 1.20 supports 1 to 21"},
        {"ort=1", "ORT 1 supports 1 to 21"},
        {"ort=9.9.9", "ORT 9.9 supports 1 to 28"},
        {"qnn=2.0", "ORT 1.31 supports 1 to 26"},
    };
    bytes model = of_version(epctx_str_of("ai.onnx"), 99);
    findings f;
    size_t i;
    for (i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        lint_for(&model, NULL, asked[i].versions, &f);
        CHECK(strstr(f.text, asked[i].says) != NULL, "expected %s, found %s", asked[i].says,
              f.text);
        CHECK(f.until[EPCTX_RULE_OPSET_VERSION][0] == '\0', "99 is in no version");
    }
    bytes_free(&model);
}

int main(int argc, char **argv) {
    RUN(versions_of_rules);
    RUN(versions_of_numbers);
    RUN(version_in_messages);
    RUN(inlining_up_to_the_limits);
    RUN(inlining_without_end_is_counted_fast);
    RUN(every_rule_fails_and_passes);
    RUN(every_rule_has_a_case);
    RUN(a_proper_model_has_no_finding);
    RUN(sizes);
    RUN(the_model_with_everything);
    RUN(out_of_memory_with_everything);
    RUN(out_of_memory);
    RUN(a_profile_of_your_own);
    RUN(compatibility);
    RUN(compatibility_of_chips);
    RUN(compatibility_of_openvino);
    RUN(a_long_payload_is_no_path);
    return test_end();
}
