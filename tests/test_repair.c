/* Repair: what it does and undoes; what is left alone because it was not asked for, is not ours to
 * choose or is right; and what the source model says. */
#define _XOPEN_SOURCE 700
#include "examples/epctx/ops/repair.h"
#include "binaries.h"
#include "combine.h"
#include "examples/epctx/ops/lint.h"

/* One compiled node of a source that makes y from x. */
static bytes one_node(const char *source, const char *cache, int64_t embed) {
    bytes graph = {0};
    add_epnode(&graph, "n", "x", "y", 1, embed, source, "p", cache, strlen(cache));
    return end_model(&graph);
}

/* -- a repair -- */

typedef struct job {
    bytes data, from; /* taken over */
    epctx_model model, source;
    epctx_repair_opts opts;
    epctx_rule rules[8];
    size_t done, left;
    char notes[4000];     /* "ID text; " of what was done */
    char last_left[1200]; /* text of the last that was not */
    epctx_error error;
} job;

static void job_note(void *user, const epctx_repair_note *note) {
    job *j = (job *)user;
    size_t used = strlen(j->notes);
    if (note->done)
        snprintf(j->notes + used, sizeof j->notes - used, "%s %s; ", note->info.id, note->text);
    else
        snprintf(j->last_left, sizeof j->last_left, "%s", note->text);
}

static bool job_open(job *j, bytes data) {
    memset(j, 0, sizeof *j);
    j->data = data;
    j->opts.check.no_files = true;
    j->opts.rules = j->rules;
    return epctx_model_open_memory(&j->model, data.data, data.size, NULL, &j->error) == EPCTX_OK;
}

static bool job_source(job *j, bytes data) {
    j->from = data;
    j->opts.source = &j->source;
    return epctx_model_open_memory(&j->source, data.data, data.size, NULL, &j->error) == EPCTX_OK;
}

static void job_rule(job *j, epctx_rule rule) {
    j->rules[j->opts.rule_count++] = rule;
}

/* What was done, or the error. */
static const char *job_run(job *j) {
    j->notes[0] = '\0';
    if (epctx_repair(&j->model, &j->opts, job_note, j, &j->done, &j->left, &j->error) != EPCTX_OK)
        return j->error.message;
    return j->notes;
}

static void job_close(job *j) {
    epctx_model_close(&j->model);
    epctx_model_close(&j->source);
    bytes_free(&j->data);
    bytes_free(&j->from);
}

static epctx_epnode epnode_at(const epctx_model *model, int number) {
    epctx_node_view node = node_at(model, number);
    epctx_epnode ep = {0};
    if (epctx_view_read_epnode(&node, &ep, NULL) != EPCTX_OK) ep.main_context = -1;
    return ep;
}

static bool job_untouched(job *j) {
    bytes now = written(&j->model);
    bool same = bytes_equal(&now, j->data.data, j->data.size);
    bytes_free(&now);
    return same;
}

/* -- by rule, and undone -- */

static size_t count_metadata(const epctx_model *model) {
    epctx_cursor it =
        epctx_view_fields(epctx_model_read(model).view, EPCTX_FIELD_MODEL_METADATA_PROPS);
    epctx_pair entry;
    size_t count = 0;
    while (epctx_next_pair(&it, &entry)) count++;
    return count;
}

/* Without options: every rule that is no hint. */
TEST(defaults) {
    bytes data = one_node(npu, "c", 1);
    epctx_model model;
    size_t done = 9, left = 9;
    add_metadata(&data, "ep_compatibility_info.none", "x");
    CHECK_INT(epctx_model_open_memory(&model, data.data, data.size, NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_repair(&model, NULL, NULL, NULL, &done, &left, NULL), EPCTX_OK);
    CHECK_UINT(done, 1);
    CHECK_UINT(count_metadata(&model), 0);
    epctx_model_close(&model);
    bytes_free(&data);
}

typedef struct tally {
    size_t done, left;
    epctx_rule last;
} tally;

static void count_note(void *user, const epctx_repair_note *n) {
    tally *all = (tally *)user;
    all->done += n->done;
    all->left += !n->done;
    all->last = n->rule;
}

/* The graph occurs twice: what can only be read becomes what can be edited, and back. */
TEST(repair_and_undo) {
    bytes data = compiled_model("EpctxNpuExecutionProvider"), graph = {0}, now;
    epctx_repair_opts opts = {0};
    epctx_model model;
    epctx_error error;
    tally all = {0, 0, EPCTX_RULE_COUNT};
    size_t done, left;
    opts.check.no_files = true;
    add_node(&graph, "Relu", "extra", "y", "z");
    put_child(&data, 7, &graph);
    CHECK_INT(epctx_model_open_memory(&model, data.data, data.size, NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_edit_set_metadata(&model, epctx_str_of("a"), epctx_str_of("b"), &error),
              EPCTX_ERR_GRAPH);
    CHECK_OK(epctx_repair(&model, &opts, count_note, &all, &done, &left, &error), error);
    CHECK_TRUE(done > 0 && done == all.done && left == all.left);
    CHECK_INT(count_of(epctx_view_graph_nodes(epctx_model_graph(&model))), 3);
    CHECK_INT(epctx_edit_set_metadata(&model, epctx_str_of("a"), epctx_str_of("b"), &error),
              EPCTX_OK);
    epctx_edit_undo(&model, 0);
    now = written(&model);
    CHECK_MEM(now.data, now.size, data.data, data.size);
    CHECK_INT(count_of(epctx_view_graph_nodes(epctx_model_graph(&model))), 3);
    CHECK_INT(epctx_edit_set_metadata(&model, epctx_str_of("a"), epctx_str_of("b"), &error),
              EPCTX_ERR_GRAPH);
    bytes_free(&now);
    epctx_model_close(&model);
    bytes_free(&data);
}

/* A rule that was not asked for is left alone; a hint is repaired when it is named. */
TEST(repair_by_rule) {
    bytes graph = {0}, data;
    epctx_rule rule = EPCTX_RULE_DEFAULTS;
    epctx_repair_opts opts = {0};
    epctx_model model;
    epctx_error error;
    tally all = {0, 0, EPCTX_RULE_COUNT};
    add_epnode(&graph, "n", "x", "y", -1, -1, "QNN", "n", "payload", 7);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, vector);
    data = new_model(&graph); /* com.microsoft is not imported */
    opts.check.no_files = true;
    opts.rules = &rule;
    opts.rule_count = 1;
    CHECK_INT(epctx_model_open_memory(&model, data.data, data.size, NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_repair(&model, &opts, count_note, &all, NULL, NULL, &error), EPCTX_OK);
    CHECK_INT(all.done, 2);
    CHECK_INT(all.last, EPCTX_RULE_DEFAULTS);
    CHECK_INT(epctx_model_opset(&model, epctx_str_of("com.microsoft")), 0);
    rule = EPCTX_RULE_EPCONTEXT_OPSET;
    CHECK_INT(epctx_repair(&model, &opts, count_note, &all, NULL, NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_model_opset(&model, epctx_str_of("com.microsoft")), 1);
    epctx_model_close(&model);
    bytes_free(&data);
}

/* -- fields that occur twice -- */

/* Of two types only the last counts; of two graphs both; a model with such fields can only be
 * read until they are repaired. */
TEST(doubled_fields) {
    bytes graph = {0}, more = {0}, value = {0}, type = {0}, inner = {0}, data, odd = {0};
    epctx_cursor it;
    epctx_value_view view;
    job j;
    put_int(&inner, 1, EPCTX_ONNX_FLOAT);
    put_child(&type, 1, &inner); /* a tensor */
    put_int(&odd, 1, EPCTX_ONNX_FLOAT);
    put_child(&inner, 1, &odd);
    put_child(&value, 1, &inner);
    bytes_free(&value);
    put_child(&inner, 1, &type); /* a sequence of them */
    put_int(&odd, 1, EPCTX_ONNX_INT8);
    put_child(&type, 1, &odd);
    put_child(&type, 4, &inner);
    put_str(&value, 1, "v");
    put_child(&value, 2, &type);
    add_node(&graph, "Relu", "n", "x", "y");
    put_child(&graph, GRAPH_VALUE, &value);
    data = end_model(&graph);
    add_opset(&data, "idle", 1);
    add_opset(&data, "idle", 1);
    add_node(&more, "Relu", "m", "y", "z");
    put_child(&data, 7, &more);
    CHECK_TRUE(job_open(&j, data));
    CHECK_TRUE(j.model.duplicate);
    job_rule(&j, EPCTX_RULE_DOUBLED_OPSET);
    CHECK_STR(job_run(&j), "");
    CHECK(job_untouched(&j), "a model that can only be read was changed");
    job_rule(&j, EPCTX_RULE_DOUBLED_FIELD);
    CHECK_HAS(job_run(&j), "both were merged into one");
    CHECK_HAS(j.notes, "field sequence_type of a TypeProto: both were merged into one; ");
    CHECK_HAS(j.notes, "'idle' occurred twice with the same content; one was removed");
    it = epctx_view_graph_values(epctx_model_graph(&j.model));
    CHECK_TRUE(epctx_next_value(&it, &view));
    CHECK(view.has_type && !view.is_tensor, "the first of two types is still there");
    CHECK_TRUE(epctx_str_is(node_at(&j.model, 1).name, "m"));
    /* Undoing less than the repair leaves it a model that can be edited. */
    {
        size_t mark = epctx_edit_mark(&j.model);
        CHECK_INT(epctx_edit_put_opset(&j.model, epctx_str_of("d"), 1, &j.error), EPCTX_OK);
        epctx_edit_undo(&j.model, mark);
        CHECK(!j.model.duplicate && epctx_str_is(node_at(&j.model, 1).name, "m"),
              "undoing an edit undoes the repair");
    }
    epctx_edit_undo(&j.model, 0);
    CHECK_TRUE(j.model.duplicate && job_untouched(&j));
    job_close(&j);
}

/* Different values are not ours to choose; one rule does not do the work of another. */
TEST(doubled_entries) {
    bytes graph = {0}, node = new_node("EPContext", "com.microsoft", "n", "x", "y"), data;
    job j;
    add_attr_int(&node, "main_context", 1);
    add_attr_int(&node, "embed_mode", 1);
    add_attr_str(&node, "source", npu, strlen(npu));
    add_attr_str(&node, "partition_name", "p", 1);
    add_attr_str(&node, "ep_cache_context", "one", 3);
    add_attr_str(&node, "ep_cache_context", "two", 3);
    put_child(&graph, 1, &node);
    data = end_model(&graph);
    add_opset(&data, "com.microsoft", 1);
    for (int i = 0; i < 2; i++) add_metadata(&data, "key", "value");
    CHECK_TRUE(job_open(&j, data));
    job_rule(&j, EPCTX_RULE_DOUBLED_ATTRIBUTE);
    CHECK_STR(job_run(&j), "");
    CHECK_UINT(j.left, 1);
    CHECK(job_untouched(&j), "one of two different attributes went");
    job_rule(&j, EPCTX_RULE_DOUBLED_OPSET);
    CHECK_HAS(job_run(&j),
              "'com.microsoft' occurred twice with the same content; one was removed; ");
    CHECK(strstr(j.notes, "'key'") == NULL, "metadata went that nobody asked for: %s", j.notes);
    job_close(&j);
}

/* Equal is equal at any size; one byte of difference, the last one, is not ours to choose. An entry
 * that was edited is not what its bytes in the file say. */
TEST(doubled_entries_of_any_size) {
    enum { size = 70000 };
    char *data = (char *)calloc(1, size);
    epctx_tensor_view tensor;
    epctx_cursor it;
    CHECK_TRUE(data != NULL);
    for (int variant = 0; variant < 3; variant++) {
        bytes graph = {0}, file;
        job j;
        add_node(&graph, "Relu", "n", "x", "y");
        for (int i = 0; i < 2; i++) {
            bytes t = {0};
            put_int(&t, 1, size);
            put_int(&t, 2, EPCTX_ONNX_UINT8);
            put_str(&t, 8, "w");
            data[size - 1] = (char)(variant == 1 && i == 1);
            put_data(&t, 9, data, size);
            put_child(&graph, 5, &t);
        }
        file = end_model(&graph);
        CHECK_TRUE(job_open(&j, file));
        job_rule(&j, EPCTX_RULE_REDEFINED);
        it = epctx_view_graph_initializers(epctx_model_graph(&j.model));
        CHECK_TRUE(epctx_next_tensor(&it, &tensor));
        if (variant == 2)
            CHECK_INT(
                epctx_edit_set_field_str(&j.model, tensor.view, 12, epctx_str_of("doc"), &j.error),
                EPCTX_OK);
        CHECK_STR(job_run(&j), variant == 0 ? "W026 initializer 'w' occurred twice with the same "
                                              "content; one was removed; "
                                            : "");
        CHECK_UINT(j.left, variant == 0 ? 0 : 1);
        job_close(&j);
    }
    free(data);
}

/* A function of `domain` and `overload`, whose node is `op`. */
static void add_function(bytes *model, const char *domain, const char *overload, const char *op) {
    bytes f = {0}, opset = {0}, node = new_node(op, "", "", "a", "b");
    put_str(&f, 1, "F");
    put_str(&f, 4, "a");
    put_str(&f, 5, "b");
    put_child(&f, 7, &node);
    put_str(&opset, 1, "");
    put_int(&opset, 2, 13);
    put_child(&f, 9, &opset);
    put_str(&f, 10, domain);
    put_str(&f, 13, overload);
    put_child(model, 25, &f);
}

/* Of equal functions one stays, whatever lies between them; of others ONNX Runtime 1.30 takes the
 * last, which need not be the one that is meant. */
TEST(doubled_functions) {
    static const struct {
        const char *functions[4]; /* domain, overload and operator */
        size_t done, left;
    } models[] = {{{"m,,Relu", "m,,Relu"}, 1, 0},
                  {{"m,,Relu", "k,,Relu", "m,,Relu"}, 1, 0},
                  {{"m,,Relu", "m,o,Relu", "m,,Relu", "m,o,Relu"}, 2, 0},
                  {{"m,,Relu", "m,,Neg"}, 0, 1},
                  {{"m,,Relu", "m,,Neg", "m,,Relu"}, 0, 2},
                  {{"m,,Relu", "m,o,Relu", "k,,Relu"}, 0, 0}};
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        bytes graph = {0}, file;
        job j;
        add_node(&graph, "Relu", "n", "x", "y");
        file = end_model(&graph);
        for (size_t k = 0; k < 4 && models[i].functions[k] != NULL; k++) {
            char words[16], *overload, *op;
            strcpy(words, models[i].functions[k]);
            overload = strchr(words, ',');
            *overload++ = '\0';
            op = strchr(overload, ',');
            *op++ = '\0';
            add_function(&file, words, overload, op);
        }
        CHECK_TRUE(job_open(&j, file));
        job_rule(&j, EPCTX_RULE_DOUBLED_FUNCTION);
        job_run(&j);
        CHECK(j.done == models[i].done && j.left == models[i].left,
              "model %zu: %zu done, %zu left: %s", i, j.done, j.left, j.notes);
        if (j.done > 0) CHECK_HAS(j.notes, "E070 function 'm:F");
        job_close(&j);
    }
}

/* -- inputs of bodies -- */

/* A Loop gives its body three inputs. Of i, c, v and w those in `inputs` are inputs, those in
 * `constants` have an initializer. */
static bytes loop_model(const char *inputs, const char *constants) {
    bytes graph = {0}, body = {0}, node = new_node("Loop", "", "loop", ",,x", "y"), attr = {0};
    const char *c;
    put_str(&body, 2, "body");
    add_node(&body, "Identity", "l1", "c", "co");
    add_node(&body, "Identity", "l2", "v", "vo");
    for (c = inputs; *c != '\0'; c++) {
        char name[2] = {*c, '\0'};
        add_value(&body, 11, name, EPCTX_ONNX_FLOAT, NULL);
    }
    for (c = constants; *c != '\0'; c++) {
        static const float data[1] = {1};
        char name[2] = {*c, '\0'};
        add_floats(&body, name, data, 1);
    }
    add_value(&body, 12, "co", EPCTX_ONNX_BOOL, NULL);
    add_value(&body, 12, "vo", EPCTX_ONNX_FLOAT, NULL);
    put_str(&attr, 1, "body");
    put_child(&attr, 6, &body);
    put_int(&attr, 20, 5);
    put_child(&node, 5, &attr);
    put_child(&graph, 1, &node);
    return end_model(&graph);
}

/* With as many inputs as the Loop gives, each gets its value from there. */
TEST(inputs_of_bodies) {
    static const struct {
        const char *inputs, *constants;
        size_t done, left;
    } models[] = {{"icv", "v", 1, 0},   {"icv", "icv", 3, 0}, {"icv", "vw", 1, 0},
                  {"icvw", "vw", 0, 1}, {"icvw", "w", 0, 0},  {"icv", "", 0, 0}};
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        job j;
        CHECK_TRUE(job_open(&j, loop_model(models[i].inputs, models[i].constants)));
        job_rule(&j, EPCTX_RULE_BODY_INPUT);
        job_run(&j);
        CHECK(j.done == models[i].done && j.left == models[i].left,
              "%s of %s: %zu done, %zu left: %s", models[i].constants, models[i].inputs, j.done,
              j.left, j.notes);
        if (j.done > 0)
            CHECK_HAS(j.notes, "of the body was removed: the Loop gives this input its value");
        job_close(&j);
    }
}

/* -- names of values in bodies -- */

/* A body that makes x and y, around another one if `inner`; y is its output. */
static bytes shadow_body(bool inner) {
    bytes body = {0};
    add_node(&body, "Identity", "b1", "i", "x");
    if (inner) {
        bytes node = new_node("If", "", "in", "c", "t"), attr = {0}, below = shadow_body(false);
        put_str(&attr, 1, "then_branch");
        put_child(&attr, 6, &below);
        put_int(&attr, 20, 5);
        put_child(&node, 5, &attr);
        put_child(&body, 1, &node);
    }
    add_node(&body, "Identity", "b2", "x", "y");
    put_str(&body, 2, "body");
    add_value(&body, 12, "y", EPCTX_ONNX_FLOAT, NULL);
    return body;
}

/* The main graph makes x and y, and a node of this type has two bodies that do, too. */
static bytes shadow_model(const char *op, const char *domain) {
    bytes graph = {0}, node = new_node(op, domain, "if", "c", "z");
    size_t i;
    add_node(&graph, "Identity", "n1", "i", "x");
    add_node(&graph, "Identity", "n2", "i", "y");
    for (i = 0; i < 2; i++) {
        bytes attr = {0}, body = shadow_body(i == 1);
        put_str(&attr, 1, i == 0 ? "then_branch" : "else_branch");
        put_child(&attr, 6, &body);
        put_int(&attr, 20, 5);
        put_child(&node, 5, &attr);
    }
    put_child(&graph, 1, &node);
    return end_model(&graph);
}

TEST(values_of_bodies) {
    job j;
    CHECK_TRUE(job_open(&j, shadow_model("If", "")));
    job_rule(&j, EPCTX_RULE_OUTER_NAME);
    CHECK_STR(job_run(&j), "E055 value 'x' of a body is now 'x_2'; "
                           "E055 value 'y' of a body is now 'y_2'; "
                           "E055 value 'x' of a body is now 'x_3'; "
                           "E055 value 'y' of a body is now 'y_3'; "
                           "E055 value 'x' of a body is now 'x_4'; "
                           "E055 value 'y' of a body is now 'y_4'; ");
    CHECK(j.left == 0, "%zu left: %s", j.left, j.last_left);
    CHECK_TRUE(epctx_edit_mark(&j.model) > 0);
    job_run(&j);
    CHECK(j.done == 0 && j.left == 0, "again: %s", j.notes);
    job_close(&j);
    /* Outputs that the node finds by name stay. */
    CHECK_TRUE(job_open(&j, shadow_model("BeamSearch", "com.microsoft")));
    job_rule(&j, EPCTX_RULE_OUTER_NAME);
    CHECK_HAS(job_run(&j), "value 'x' of a body is now 'x_2'; E055 value 'x' of a body is now");
    CHECK_HAS(j.last_left, "'y'");
    job_close(&j);
}

/* -- EPContext nodes -- */

TEST(spelling_of_sources) {
    bytes graph = {0};
    job j;
    add_epnode(&graph, "a", "x", "y", 1, 1, "openvinoexecutionprovider", "p", "c", 1);
    add_epnode(&graph, "b", "x", "z", 1, 1, NULL, "q", "c", 1);
    CHECK_TRUE(job_open(&j, end_model(&graph)));
    j.opts.check.profile = epctx_profile_find(epctx_str_of("openvino"));
    job_rule(&j, EPCTX_RULE_NO_SOURCE);
    CHECK_HAS(job_run(&j), "source is now 'OpenVINOExecutionProvider'");
    CHECK_UINT(j.done, 1);
    CHECK_TRUE(epctx_str_is(epnode_at(&j.model, 0).source, "openvinoexecutionprovider"));
    CHECK_TRUE(epctx_str_is(epnode_at(&j.model, 1).source, ov));
    epctx_edit_undo(&j.model, 0);
    j.rules[0] = EPCTX_RULE_SOURCE_SPELLING;
    job_run(&j);
    CHECK_UINT(j.done, 1);
    CHECK_TRUE(epctx_str_is(epnode_at(&j.model, 0).source, ov));
    CHECK_TRUE(epnode_at(&j.model, 1).source.size == 0);
    job_close(&j);
}

/* A profile without a source of its own has none to give. */
TEST(sources_of_no_profile) {
    static epctx_profile own;
    bytes graph = {0};
    job j;
    own = *epctx_profile_find(epctx_str_of("generic"));
    own.traits &= ~(uint32_t)EPCTX_TRAIT_NO_SOURCE;
    own.required |= 1u << EPCTX_EPNODE_SOURCE;
    add_epnode(&graph, "b", "x", "y", 1, 1, NULL, "q", "c", 1);
    CHECK_TRUE(job_open(&j, end_model(&graph)));
    j.opts.check.profile = &own;
    job_rule(&j, EPCTX_RULE_NO_SOURCE);
    job_rule(&j, EPCTX_RULE_SOURCE_ABSENT);
    CHECK_STR(job_run(&j), "");
    CHECK(j.left > 0 && job_untouched(&j), "%zu left", j.left);
    job_close(&j);
}

/* Only what the EP wants stored is stored. */
TEST(attributes_that_are_required) {
    bytes graph = {0};
    job j;
    add_epnode(&graph, "telum", "x", "y", -1, -1, "telum", NULL, NULL, 0);
    add_epnode(&graph, "npu", "x", "z", -1, -1, npu, "p", "c", 1);
    add_epnode(&graph, "external", "x", "z1", 0, 0, ov, "p1", NULL, 0);
    add_epnode(&graph, "embedded", "x", "z2", 0, 1, ov, "p2", NULL, 0);
    add_epnode(&graph, "stored", "x", "z3", 0, 1, ov, "p3", "", 0);
    CHECK_TRUE(job_open(&j, end_model(&graph)));
    job_rule(&j, EPCTX_RULE_NO_ATTRIBUTE);
    CHECK_STR(job_run(&j), "E041 embed_mode 1 is stored; "
                           "E041 an empty ep_cache_context is stored; ");
    CHECK_UINT(epnode_at(&j.model, 0).present & 1u << EPCTX_EPNODE_EMBED_MODE, 0);
    CHECK_TRUE((epnode_at(&j.model, 1).present & 1u << EPCTX_EPNODE_EMBED_MODE) != 0);
    CHECK_UINT(epnode_at(&j.model, 1).present & 1u << EPCTX_EPNODE_MAIN_CONTEXT, 0);
    CHECK_UINT(epnode_at(&j.model, 2).present & 1u << EPCTX_EPNODE_EP_CACHE_CONTEXT, 0);
    CHECK_TRUE((epnode_at(&j.model, 3).present & 1u << EPCTX_EPNODE_EP_CACHE_CONTEXT) != 0);
    job_close(&j);
}

/* QNN finds its graph by the node's name: two of one name stay as they are. */
TEST(names_that_are_keys) {
    bytes graph = {0};
    job j;
    add_epnode(&graph, "same", "x", "y", 1, 1, "QNN", "p", "c", 1);
    add_epnode(&graph, "same", "x", "z", 1, 1, "QNN", "p", "c", 1);
    add_epnode(&graph, "same", "x", "z2", 1, 1, npu, "p", "c", 1);
    add_node(&graph, "Relu", "twice", "z", "z3");
    add_node(&graph, "Relu", "twice", "z", "z4");
    CHECK_TRUE(job_open(&j, end_model(&graph)));
    job_rule(&j, EPCTX_RULE_DOUBLED_EPNODE);
    CHECK_HAS(job_run(&j), "the node's name is now 'same_2'; ");
    CHECK_UINT(j.done, 1);
    CHECK_TRUE(epctx_str_is(node_at(&j.model, 1).name, "same"));
    CHECK_TRUE(epctx_str_is(node_at(&j.model, 2).name, "same_2"));
    CHECK_TRUE(epctx_str_is(node_at(&j.model, 4).name, "twice"));
    job_close(&j);
}

/* -- files -- */

/* Without files, or without a folder, nobody knows which name is right. */
TEST(files_that_cannot_be_looked_for) {
    job j;
    int turn;
    for (turn = 0; turn < 2; turn++) {
        CHECK_TRUE(job_open(&j, one_node(npu, "old\\c.bin", 0)));
        j.opts.check.no_files = turn == 0;
        job_rule(&j, EPCTX_RULE_BACKSLASH);
        job_rule(&j, EPCTX_RULE_FILE_MISSING);
        CHECK_STR(job_run(&j), "");
        CHECK(j.left > 0 && job_untouched(&j), "%zu left", j.left);
        job_close(&j);
        CHECK_TRUE(job_open(&j, one_node(npu, "c.bin", 1)));
        j.opts.check.no_files = turn == 0;
        job_rule(&j, EPCTX_RULE_LIKE_PATH);
        CHECK_STR(job_run(&j), "");
        CHECK(j.left > 0 && job_untouched(&j), "%zu left", j.left);
        job_close(&j);
    }
}

static bool job_file(job *j, bytes data) {
    save_bytes("m.onnx", &data);
    memset(j, 0, sizeof *j);
    j->opts.rules = j->rules;
    if (epctx_model_open_file(&j->model, at("m.onnx"), NULL, &j->error) != EPCTX_OK) return false;
    j->data = written(&j->model);
    return true;
}

/* What counts as a payload is the name of a file: only if the file is there. */
TEST(payloads_that_are_names) {
    static char name[1100];
    bytes graph = {0};
    job j;
    memset(name, 'n', sizeof name - 1);
    CHECK_TRUE(make_root());
    save_sixteen("c.bin", 0);
    add_epnode(&graph, "a", "x", "y", 1, 1, npu, "p0", "c.bin", 5);
    add_epnode(&graph, "b", "x", "z", 1, 1, npu, "p1", "gone.bin", 8);
    add_epnode(&graph, "c", "x", "z1", 1, 1, npu, "p2", "", 0);
    add_epnode(&graph, "d", "x", "z2", 1, 1, npu, "p3", name, sizeof name - 1);
    CHECK_TRUE(job_file(&j, end_model(&graph)));
    job_rule(&j, EPCTX_RULE_LIKE_PATH);
    CHECK_STR(job_run(&j), "W009 embed_mode is now 0: 'c.bin' is a file beside the model; ");
    CHECK_INT(epnode_at(&j.model, 0).embed_mode, 0);
    for (int i = 1; i < 4; i++) CHECK_INT(epnode_at(&j.model, i).embed_mode, 1);
    job_close(&j);
    remove_root();
}

/* embed_mode 0 with the context inside. What is short may be a path with a stray character. */
TEST(payloads_where_a_path_should_be) {
    static char payload[1024], stray[] = "c.bin";
    bytes graph = {0};
    job j;
    CHECK_TRUE(make_root());
    save_sixteen("c.bin", 0);
    add_epnode(&graph, "a", "x", "y", 1, 0, npu, "p0", payload, sizeof payload);
    add_epnode(&graph, "b", "x", "z", 1, 0, npu, "p1", stray, sizeof stray);
    add_epnode(&graph, "c", "x", "z1", 1, 1, npu, "p2", payload, sizeof payload);
    CHECK_TRUE(job_file(&j, end_model(&graph)));
    job_rule(&j, EPCTX_RULE_PAYLOAD_AS_PATH);
    CHECK_STR(job_run(&j),
              "E087 embed_mode is now 1: ep_cache_context holds the context, 1024 bytes; ");
    CHECK_INT(epnode_at(&j.model, 0).embed_mode, 1);
    CHECK_INT(epnode_at(&j.model, 1).embed_mode, 0);
    job_close(&j);
    remove_root();
}

TEST(operators_that_are_misspelt) {
    static const char *const rows[][3] = {{"EPcontext", "com.microsoft", "EPContext"},
                                          {"EPContxt", "com.microsoft", "EPContext"},
                                          {"EPcontext", "ai.example", "EPcontext"},
                                          {"Gelu", "com.microsoft", "Gelu"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bytes graph = {0}, node = new_node(rows[i][0], rows[i][1], "a", "x", "y");
        epctx_node_view view;
        epctx_cursor it;
        job j;
        put_child(&graph, 1, &node);
        CHECK_TRUE(make_root());
        CHECK_TRUE(job_file(&j, end_model(&graph)));
        job_rule(&j, EPCTX_RULE_OP_SPELLING);
        job_run(&j);
        it = epctx_view_graph_nodes(epctx_model_graph(&j.model));
        CHECK_TRUE(epctx_next_node(&it, &view));
        CHECK(epctx_str_is(view.op_type, rows[i][2]), "%s of %s", rows[i][0], rows[i][1]);
        job_close(&j);
        remove_root();
    }
}

/* A name that breaks another rule than the one that was asked for; one that is none. */
TEST(names_by_rule) {
    bytes graph = {0}, node;
    job j;
    CHECK_TRUE(make_root());
    save_sixteen("c.bin", 0);
    save_sixteen("d.bin", 0);
    add_epnode(&graph, "a", "x", "y", 1, 0, npu, "p0", "old\\c.bin", 9);
    add_epnode(&graph, "b", "x", "z", 1, 0, npu, "p1", "old/d.bin", 9);
    node = new_node("EPContext", "com.microsoft", "c", "x", "z1");
    add_attr_str(&node, "onnx_model_filename", "/build/m.onnx", 13);
    put_child(&graph, 1, &node);
    node = new_node("EPContext", "com.microsoft", "d", "x", "z2");
    add_attr_str(&node, "onnx_model_filename", "m.onnx", 6);
    put_child(&graph, 1, &node);
    node = new_node("EPContext", "com.microsoft", "e", "x", "z3");
    add_attr_str(&node, "onnx_model_filename", "/build/", 7);
    put_child(&graph, 1, &node);
    CHECK_TRUE(job_file(&j, end_model(&graph)));
    job_rule(&j, EPCTX_RULE_FILE_MISSING);
    CHECK_HAS(job_run(&j), "'old/d.bin' is now 'd.bin', which exists; ");
    CHECK_UINT(j.done, 1);
    CHECK_TRUE(epctx_str_is(epnode_at(&j.model, 0).ep_cache_context, "old\\c.bin"));
    j.rules[0] = EPCTX_RULE_BACKSLASH;
    CHECK_HAS(job_run(&j), "'old\\c.bin' is now 'c.bin', which exists; ");
    j.rules[0] = EPCTX_RULE_BUILD_PATH;
    CHECK_STR(job_run(&j), "W008 onnx_model_filename is now 'm.onnx'; ");
    CHECK_TRUE(epctx_str_is(epnode_at(&j.model, 2).onnx_model_filename, "m.onnx"));
    CHECK_TRUE(epctx_str_is(epnode_at(&j.model, 4).onnx_model_filename, "/build/"));
    job_close(&j);
    remove_root();
}

/* Names that are wrong, of files that are there. */
static void make_misnamed(void) {
    static char deep[6000];
    bytes graph = {0}, model, attr = {0}, node;
    size_t i;
    for (i = 0; i < sizeof deep - 1; i++) deep[i] = i % 2 == 0 ? 'd' : '/';
    mkdir(at("sub"), 0700);
    save_sixteen("ctx.bin", 1);
    save_sixteen("sub/two.bin", 2);
    save_sixteen("three.bin", 3);
    save_sixteen("w.bin", 4);
    add_epnode(&graph, "a", "x", "a", 1, 1, NULL, "p0", "ctx.bin", 7); /* embed_mode is wrong */
    add_epnode(&graph, "b", "x", "b", 1, 0, NULL, "p1", "C:\\build\\sub\\two.bin", 20);
    add_epnode(&graph, "c", "x", "c", 1, 0, NULL, "p2", "/build//three.bin", 17);
    add_epnode(&graph, "d", "x", "d", 1, 0, NULL, "p3", "gone/three.bin", 14);
    add_epnode(&graph, "e", "x", "e", 1, 0, NULL, "p4", deep, sizeof deep - 1);
    add_epnode(&graph, "f", "x", "f", 1, 0, NULL, "p5", "nowhere.bin", 11);
    node = new_node("EPContext", "com.microsoft", "g", "x", "g");
    add_attr_str(&node, "onnx_model_filename", "C:\\build/old\\m.onnx", 19);
    add_attr_str(&node, "ep_cache_context", "", 0);
    put_child(&graph, 1, &node);
    node = new_node("EPContext", "com.microsoft", "", "x", "h"); /* has a type that is wrong */
    put_str(&attr, 1, "embed_mode");
    put_str(&attr, 4, "no");
    put_int(&attr, 20, EPCTX_ATTR_STRING);
    put_child(&node, 5, &attr);
    put_child(&graph, 1, &node);
    add_epnode(&graph, "", "x", "i", 0, 1, NULL, NULL, NULL, 0);
    put_outside(&graph, 5, "w", "old/w.bin");
    add_node(&graph, "Use", "use", "w", "y");
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, vector);
    model = new_model(&graph);
    add_opset(&model, "com.microsoft", 1);
    save_bytes("m.onnx", &model);
}

/* "name embed_mode context" of every EPContext node that can be read. */
static const char *contexts_of(const epctx_model *model) {
    static char text[12000];
    epctx_walk walk;
    epctx_node_view node;
    epctx_epnode ep;
    text[0] = '\0';
    epctx_walk_begin(&walk, model);
    while (epctx_walk_epnode(&walk, &node)) {
        size_t used = strlen(text);
        if (epctx_view_read_epnode(&node, &ep, NULL) == EPCTX_OK)
            snprintf(text + used, sizeof text - used, "%.*s %d %.*s; ", (int)ep.name.size,
                     ep.name.data, (int)ep.embed_mode, (int)ep.ep_cache_context.size,
                     ep.ep_cache_context.data);
    }
    return text;
}

static epctx_str source_of(const epctx_model *model, const char *name) {
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(model));
    epctx_node_view node;
    while (epctx_next_node(&it, &node))
        if (epctx_str_is(node.name, name))
            return epctx_view_node_attr_str(&node, "onnx_model_filename");
    return epctx_str_of("no such node");
}

TEST(repair_of_names_of_files) {
    static uint64_t memory[HUNGRY_BUFFER / 8];
    static epctx_profile strict;
    static epctx_error error;
    const epctx_profile *profiles[3] = {NULL, NULL, NULL};
    epctx_rule rules[EPCTX_RULE_COUNT];
    epctx_repair_opts opts = {0};
    tally all = {0, 0, EPCTX_RULE_COUNT};
    size_t i, room, done, left;
    int turn;
    CHECK_TRUE(make_root());
    make_misnamed();
    strict = *epctx_profile_find(epctx_str_of("npu"));
    strict.required = (1u << EPCTX_EPNODE_ATTR_COUNT) - 1;
    profiles[1] = epctx_profile_find(epctx_str_of("tensorrt"));
    profiles[2] = &strict;
    for (i = 0; i < EPCTX_RULE_COUNT; i++) rules[i] = (epctx_rule)i;
    for (turn = 0; turn < 4; turn++) {
        opts.check.profile = profiles[turn % 3];
        opts.rules = rules;
        opts.rule_count = turn < 2 ? EPCTX_RULE_COUNT : turn == 2 ? 0 : 1;
        for (room = 0;;) { /* every allocation fails once */
            epctx_model model;
            epctx_status status;
            size_t missing;
            CHECK_OK(open_hungry(&model, at("m.onnx"), NULL, memory, room, &error), error);
            status = epctx_repair(&model, &opts, count_note, &all, &done, &left, &error);
            missing = model.arena.missing;
            if (status == EPCTX_OK && turn < 3) {
                CHECK_HAS(contexts_of(&model), "a 0 ctx.bin; b 0 sub/two.bin; c 0 three.bin; "
                                               "d 0 three.bin; e 0 d/d/");
                CHECK_HAS(contexts_of(&model), "f 0 nowhere.bin; ");
                CHECK_TRUE(epctx_str_is(source_of(&model, "g"), "m.onnx"));
            }
            epctx_model_close(&model);
            if (status == EPCTX_OK) break;
            CHECK(status == EPCTX_ERR_NOMEM, "%s", error.message);
            CHECK(missing > 0, "a failure without a request");
            room += missing;
        }
        CHECK(turn == 3 || (done > 5 && left > 0), "%zu repaired, %zu left", done, left);
    }
    remove(at("sub/two.bin"));
    rmdir(at("sub"));
    clear_root();
    rmdir(root);
}

/* -- binaries by what is inside -- */

/* A node of the reference NPU, or of another EP, that names a file which is not there. */
static bytes lost_model(const char *source, const char *partition, const char *y) {
    static const int64_t dims[] = {2, 3, -1};
    bytes graph = {0}, model;
    add_epnode(&graph, partition, "x", y, 1, 0, source, partition, "gone.bin", 8);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_OUTPUT, y, EPCTX_ONNX_FLOAT, dims);
    put_str(&graph, 2, "g");
    model = new_model(&graph);
    add_opset(&model, "com.microsoft", 1);
    return model;
}

/* One kind of file, by a letter. */
static bytes file_of_kind(char kind) {
    container c = {4096, "1.1.0", {"main", "m_1"}, NULL, NULL, false};
    bytes b = {0}, html = {0};
    switch (kind) {
    case 'n': return npu_binary();
    case 'b':
        b = npu_binary();
        b.data[b.size / 2] ^= 1;
        return b; /* damaged */
    case 'o': return openvino_container_of(&c);
    case 'q': return qnn_binary("SM8750", "79");
    case 'm': return onnx_model();
    case 'u': put_noise(&b, 3000); return b;
    default: put_text(&html, "<html>none</html>"); return html;
    }
}

/* Takes the only file that fits; with none, or several, says so and changes nothing. */
TEST(binaries_by_what_is_inside) {
    static const struct {
        const char *source, *partition, *y, *files, *done, *left;
    } cases[] = {
        {npu, "main", "y", "hnobqmu", "'gone.bin' is now '1n.bin', which is the only one here", ""},
        {npu, "main", "y", "n", "is now '0n.bin'", ""},
        {npu, "main", "y", "hnn", "", "'1n.bin' and '2n.bin' both have what its nodes want"},
        {npu, "main", "y", "nnnnnn", "",
         "'0n.bin', '1n.bin', '2n.bin', '3n.bin' and 2 more all have what its nodes want"},
        {npu, "other", "y", "bn", "",
         "none of the context binaries here, as '0b.bin': E078: node 'other': "},
        {npu, "other", "y", "n", "", "'0n.bin': E079: node 'other': its graph is not in the"},
        {npu, "main", "y", "hmu", "", "copy it beside the model"},
        {ov, "main", "y", "hno", "",
         "as '2o.bin': E080: node 'main': input 'x' is not in the binary"},
        {"QNNExecutionProvider", "main", "y", "nq", "",
         "whether it is '1q.bin' only its vendor's library can tell"}};
    char name[16];
    size_t i, k;
    job j;
    CHECK_TRUE(make_root());
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (k = 0; cases[i].files[k] != '\0'; k++) {
            bytes b = file_of_kind(cases[i].files[k]);
            snprintf(name, sizeof name, "%zu%c.bin", k, cases[i].files[k]);
            save_bytes(name, &b);
        }
        CHECK_TRUE(job_file(&j, lost_model(cases[i].source, cases[i].partition, cases[i].y)));
        job_rule(&j, EPCTX_RULE_FILE_MISSING);
        CHECK(strstr(job_run(&j), cases[i].done) != NULL, "case %zu: %s", i, job_run(&j));
        CHECK_UINT(j.done, cases[i].done[0] != '\0');
        CHECK(strstr(j.last_left, cases[i].left) != NULL, "case %zu: %s", i, j.last_left);
        CHECK(j.done == 1 || job_untouched(&j), "case %zu: the model changed", i);
        job_close(&j);
        clear_root();
    }
    rmdir(root);
}

/* -- what the source model knows -- */

static void add_tensor(bytes *graph, const char *name, int32_t elem, int64_t d0, int64_t d1) {
    static const uint8_t data[64] = {7};
    bytes tensor = {0};
    put_int(&tensor, 1, d0);
    if (d1 > 0) put_int(&tensor, 1, d1);
    put_int(&tensor, 2, elem);
    put_str(&tensor, 8, name);
    if (elem == EPCTX_ONNX_STRING)
        put_str(&tensor, 6, "text");
    else
        put_data(&tensor, 9, data, (size_t)d0 * (size_t)(d1 > 0 ? d1 : 1) * epctx_elem_size(elem));
    put_child(graph, 5, &tensor);
}

/* Data that was in memory comes back from a tensor of the same type and shape, and no other. */
TEST(data_of_the_source) {
    static const struct {
        int32_t elem;
        int64_t d0, d1; /* d0 0: in a file that is gone */
        bool repaired;
    } cases[] = {
        {EPCTX_ONNX_FLOAT, 4, 0, true},  {EPCTX_ONNX_INT8, 4, 0, false},
        {EPCTX_ONNX_FLOAT, 0, 0, false}, {EPCTX_ONNX_FLOAT, 4, 1, false},
        {EPCTX_ONNX_FLOAT, 5, 0, false}, {EPCTX_ONNX_STRING, 4, 0, false},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes graph = {0}, source = {0}, body = {0}, attr = {0}, node;
        epctx_tensor_view tensor;
        epctx_cursor it;
        job j;
        add_node(&graph, "Use", "use", "far,file", "y");
        add_external(&graph, "far", 4, "*/_ORT_MEM_ADDR_/*", "0", "16");
        add_external(&graph, "file", 4, "w.bin", "0", "16");
        if (cases[i].d0 > 0)
            add_tensor(&source, "far", cases[i].elem, cases[i].d0, cases[i].d1);
        else
            add_external(&source, "far", 4, "gone.bin", "0", "16");
        node = new_node("If", "", "", "x", "y"); /* a later tensor of that name is another one */
        add_floats(&body, "far", weights, 4);
        put_child(&attr, 6, &body);
        end_attr(&node, "then_branch", EPCTX_ATTR_GRAPH, &attr);
        put_child(&source, 1, &node);
        CHECK_TRUE(job_open(&j, end_model(&graph)) && job_source(&j, end_model(&source)));
        job_rule(&j, EPCTX_RULE_MEMORY_LOCATION);
        job_run(&j);
        CHECK((j.done == 1) == cases[i].repaired, "case %zu: %s", i, j.notes);
        it = epctx_view_graph_initializers(epctx_model_graph(&j.model));
        CHECK_TRUE(epctx_next_tensor(&it, &tensor));
        CHECK(tensor.external != cases[i].repaired, "case %zu", i);
        if (cases[i].repaired) CHECK_INT(tensor.raw.data[0], 7);
        CHECK(cases[i].repaired || job_untouched(&j), "case %zu: a model was changed", i);
        job_close(&j);
    }
}

/* Initializers that only bodies read come back in the order of the bodies, whatever the addresses
 * are. */
TEST(repair_order) {
    bytes graph = {0}, source = {0}, body = {0}, node, a, b;
    epctx_repair_opts opts = {0};
    epctx_model model, before;
    epctx_tensor_view tensor;
    epctx_cursor it;
    char name[16];
    int i;
    for (i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "w%d", i * 7 % 40);
        add_node(&body, "Relu", "", name, "");
        add_floats(&source, name, weights, 4);
    }
    add_value(&body, GRAPH_OUTPUT, "w0", EPCTX_ONNX_FLOAT, vector);
    node = new_node("If", "", "if", "x", "y");
    add_attr_graph(&node, "then_branch", &body);
    put_child(&graph, 1, &node);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_BOOL, NULL);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, vector);
    a = new_model(&graph);
    b = new_model(&source);
    CHECK_INT(epctx_model_open_memory(&before, b.data, b.size, NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_model_open_memory(&model, a.data, a.size, NULL, NULL), EPCTX_OK);
    opts.source = &before;
    opts.check.no_files = true;
    CHECK_INT(epctx_repair(&model, &opts, NULL, NULL, NULL, NULL, NULL), EPCTX_OK);
    it = epctx_view_graph_initializers(epctx_model_graph(&model));
    for (i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "w%d", i * 7 % 40);
        CHECK_TRUE(epctx_next_tensor(&it, &tensor));
        CHECK(epctx_str_is(tensor.name, name), "initializer %d is '%.*s', expected '%s'", i,
              (int)tensor.name.size, tensor.name.data, name);
    }
    epctx_model_close(&model);
    epctx_model_close(&before);
    bytes_free(&a);
    bytes_free(&b);
}

/* -- types -- */

static void add_untyped(bytes *graph, const char *name) {
    bytes value = {0};
    put_str(&value, 1, name);
    put_child(graph, GRAPH_VALUE, &value);
}

/* What the reader of an output leaves open: 0 is no type. */
TEST(types_by_reader) {
    static const struct {
        const char *op, *domain, *inputs;
        int32_t elem;
    } cases[] = {
        {"DequantizeLinear", "", "q,f,u8", EPCTX_ONNX_UINT8},
        {"DequantizeLinear", "ai.onnx", "q,f,u8", EPCTX_ONNX_UINT8},
        {"DequantizeLinear", "mine", "q,f,u8", 0},
        {"DequantizeLinear", "", "u8,q,u8", 0},
        {"DequantizeLinear", "", "q,f", 0},
        {"QuantizeLinear", "", "q,f,u8", EPCTX_ONNX_FLOAT},
        {"QuantizeLinear", "", "f,q,u8", 0},
        {"Add", "", "q,f", EPCTX_ONNX_FLOAT},
        {"Add", "", "f,q", EPCTX_ONNX_FLOAT},
        {"Add", "", "q,q", 0},
        {"Add", "", "q,untyped", 0},
        {"Sum", "", "f,q,untyped", EPCTX_ONNX_FLOAT},
        {"Add", "", "q,sequence", 0},
        {"Relu", "", "q", 0},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes graph = {0}, node, value = {0}, type = {0}, inner = {0};
        epctx_value_view view;
        epctx_cursor it;
        int32_t found = 0;
        job j;
        add_epnode(&graph, "n", "x", "q", 1, 1, npu, "p", "c", 1);
        node = new_node(cases[i].op, cases[i].domain, "r", cases[i].inputs, "y");
        put_child(&graph, 1, &node);
        add_tensor(&graph, "f", EPCTX_ONNX_FLOAT, 4, 0);
        add_tensor(&graph, "u8", EPCTX_ONNX_UINT8, 4, 0);
        add_untyped(&graph, "untyped");
        put_child(&type, 4, &inner);
        put_str(&value, 1, "sequence");
        put_child(&value, 2, &type);
        put_child(&graph, GRAPH_VALUE, &value);
        CHECK_TRUE(job_open(&j, end_model(&graph)));
        job_rule(&j, EPCTX_RULE_NO_VALUE_TYPE);
        job_run(&j);
        it = epctx_view_graph_values(epctx_model_graph(&j.model));
        while (epctx_next_value(&it, &view))
            if (epctx_str_is(view.name, "q")) found = view.elem_type;
        CHECK(found == cases[i].elem && j.done == (size_t)(cases[i].elem != 0),
              "case %zu, %s of '%s' (%s): type %d, expected %d; %s", i, cases[i].op,
              cases[i].inputs, cases[i].domain, (int)found, (int)cases[i].elem, j.notes);
        job_close(&j);
    }
}

/* A graph output without a type: the source model may tell it, or has none either. */
TEST(types_of_graph_outputs) {
    static const char *const told[] = {
        "has no type, neither in value_info nor as a graph output: ORT cannot infer it (only the "
        "source model has the information)",
        "'q' now has its type from the source model",
        "(the source model does not have it: compile it again, or first run type inference on "
        "it)"};
    for (int kind = 0; kind < 3; kind++) { /* no source, one that tells, one that does not */
        bytes graph = {0}, source = {0}, untyped = {0};
        epctx_cursor it;
        epctx_value_view view;
        job j;
        add_epnode(&graph, "n", "x", "q", 1, 1, npu, "p", "c", 1);
        put_str(&untyped, 1, "q");
        put_data(&graph, GRAPH_OUTPUT, untyped.data, untyped.size);
        add_node(&source, "Relu", "r", "x", "q");
        if (kind == 1) add_value(&source, GRAPH_OUTPUT, "q", EPCTX_ONNX_INT8, vector);
        if (kind == 2) put_data(&source, GRAPH_OUTPUT, untyped.data, untyped.size);
        bytes_free(&untyped);
        CHECK_TRUE(job_open(&j, end_model(&graph)));
        if (kind > 0)
            CHECK_TRUE(job_source(&j, end_model(&source)));
        else
            bytes_free(&source);
        job_rule(&j, EPCTX_RULE_NO_VALUE_TYPE);
        job_run(&j);
        CHECK_HAS(kind == 1 ? j.notes : j.last_left, told[kind]);
        CHECK_UINT(j.done, kind == 1);
        CHECK_UINT(j.left, kind != 1);
        it = epctx_view_graph_values(epctx_model_graph(&j.model));
        CHECK_TRUE(epctx_next_value(&it, &view) == (kind == 1));
        if (kind == 1) CHECK_INT(view.elem_type, EPCTX_ONNX_INT8);
        job_close(&j);
    }
}

/* The type of an output that only DequantizeLinear reads is that of its zero point. */
TEST(repair_type_from_reader) {
    static const uint8_t zero = 0;
    bytes graph = {0}, data, tensor = {0};
    epctx_repair_opts opts = {0};
    epctx_cursor it;
    epctx_value_view value;
    epctx_model model;
    epctx_error error;
    opts.check.no_files = true;
    add_epnode(&graph, "n", "x", "q", 1, 1, "QNN", "n", "payload", 7);
    add_node(&graph, "DequantizeLinear", "dq", "q,s,z", "y");
    add_floats(&graph, "s", weights, 1);
    put_int(&tensor, 2, EPCTX_ONNX_UINT8);
    put_str(&tensor, 8, "z");
    put_data(&tensor, 9, &zero, 1);
    put_child(&graph, 5, &tensor);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, vector);
    data = new_model(&graph);
    CHECK_INT(epctx_model_open_memory(&model, data.data, data.size, NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_repair(&model, &opts, NULL, NULL, NULL, NULL, &error), EPCTX_OK);
    it = epctx_view_graph_values(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_value(&it, &value));
    CHECK_TRUE(epctx_str_is(value.name, "q") && value.elem_type == EPCTX_ONNX_UINT8);
    epctx_model_close(&model);
    bytes_free(&data);
}

/* -- many -- */

/* Thousands of nodes of one name take memory in proportion. */
TEST(repair_of_many_names) {
    enum { MANY = 5000 };
    bytes graph = {0}, data;
    epctx_repair_opts opts = {0};
    epctx_rule rule = EPCTX_RULE_DOUBLED_NODE, none = (epctx_rule)EPCTX_RULE_COUNT;
    epctx_model model;
    epctx_error error;
    size_t done, i;
    for (i = 0; i < MANY; i++) add_node(&graph, "Relu", "same", "x", "");
    data = new_model(&graph);
    CHECK_INT(epctx_model_open_memory(&model, data.data, data.size, NULL, &error), EPCTX_OK);
    opts.rules = &none;
    opts.rule_count = 1;
    CHECK_INT(epctx_repair(&model, &opts, NULL, NULL, NULL, NULL, &error), EPCTX_ERR_ARG);
    opts.rules = &rule;
    opts.check.no_files = true;
    CHECK_OK(epctx_repair(&model, &opts, NULL, NULL, &done, NULL, &error), error);
    CHECK_UINT(done, MANY - 1);
    CHECK(model.arena.used < MANY * 2000u, "%zu bytes for %d names", model.arena.used, MANY);
    epctx_model_close(&model);
    bytes_free(&data);
}

int main(int argc, char **argv) {
    RUN(defaults);
    RUN(repair_and_undo);
    RUN(repair_by_rule);
    RUN(doubled_fields);
    RUN(doubled_entries);
    RUN(doubled_entries_of_any_size);
    RUN(doubled_functions);
    RUN(inputs_of_bodies);
    RUN(values_of_bodies);
    RUN(spelling_of_sources);
    RUN(sources_of_no_profile);
    RUN(attributes_that_are_required);
    RUN(names_that_are_keys);
    RUN(files_that_cannot_be_looked_for);
    RUN(payloads_that_are_names);
    RUN(payloads_where_a_path_should_be);
    RUN(operators_that_are_misspelt);
    RUN(names_by_rule);
    RUN(repair_of_names_of_files);
    RUN(binaries_by_what_is_inside);
    RUN(data_of_the_source);
    RUN(repair_order);
    RUN(types_by_reader);
    RUN(types_of_graph_outputs);
    RUN(repair_type_from_reader);
    RUN(repair_of_many_names);
    return test_end();
}
