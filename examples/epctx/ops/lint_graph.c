/* lint_graph.c - graphs: the names of values, nodes, and training graphs. */
#include "lint_internal.h"
#include "sharding.h"

/* -- names -- */

/* The main graph, whose nodes ORT sorts; not that of a function, and no training graph. */
bool lint_is_main(const linter *l, const lint_frame *scope) {
    return scope->outer == NULL && !l->in_function;
}

/* An initializer, or what a Constant makes: ORT takes the one for the other. `made` is what the
 * frame's `names` say. */
static bool lint_made_constant(const lint_frame *scope, uint32_t made) {
    return made == 1 || (made >= 2 && made != EPCTX_MAP_NONE && scope->constants[made - 2] != 0);
}

/* Reads of a value by a node or, `position` UINT32_MAX, by the graph's end. */
static epctx_status lint_read(linter *l, lint_frame *scope, epctx_str node, epctx_str name) {
    lint_frame *s;
    for (s = scope; s != NULL; s = s->outer) {
        uint32_t made = epctx_map_get(&s->names, name);
        if (made == EPCTX_MAP_NONE) continue;
        if (made == 1) OPS_TRY(lint_set(l, &s->used, name, 1));
        if (made >= 2 && made - 2 >= s->at) {
            bool sorted = lint_is_main(l, s);
            s->unsorted = true;
            lint_say(l, sorted ? EPCTX_RULE_ORDER : EPCTX_RULE_BODY_ORDER, node, NULL,
                     "value '%S' is read before the node that produces it", &name);
        }
        if (made >= 2 && lint_is_main(l, s) && s->at != UINT32_MAX && !lint_made_constant(s, made))
            OPS_TRY(lint_add_edge(l, &s->edges, made - 2, s->at));
        return EPCTX_OK;
    }
    if (scope->outer != NULL) {
        lint_say(l, EPCTX_RULE_DROPPED_VALUE, node, NULL,
                 "the body reads '%S', which neither it nor an outer graph defines", &name);
    } else {
        lint_say(l, EPCTX_RULE_UNDEFINED_VALUE, node, NULL,
                 "input '%S' is neither a graph input nor an initializer nor a node output", &name);
    }
    return EPCTX_OK;
}

/* The main graph has a value of this name, and the graph continues the main graph. */
static bool lint_made_before(const lint_frame *scope, epctx_str name) {
    return scope->joined && epctx_map_get(&scope->outer->names, name) != EPCTX_MAP_NONE;
}

/* Also of a name that is listed as a graph input, as IR versions below 4 demand. */
static epctx_status lint_scope_constant(linter *l, lint_frame *scope, epctx_str name) {
    if (lint_made_before(scope, name)) {
        lint_say(l, EPCTX_RULE_DOUBLED_INITIALIZER, name, NULL,
                 "initializer '%S' is also a value of the main graph", &name);
    }
    if (l->ir_version < 4 && !ops_has(&scope->inputs, name))
        scope->bare = true; /* whether it matters is known when the nodes are */
    return lint_set(l, &scope->names, name, 1);
}

/* Whether two lists of dimensions agree. */
static bool lint_equal_dims(epctx_cursor a, epctx_cursor b) {
    int64_t dim_a;
    int64_t dim_b;
    while (epctx_next_int(&a, &dim_a))
        if (!epctx_next_int(&b, &dim_b) || dim_a != dim_b) return false;
    return !epctx_next_int(&b, &dim_b);
}

/* A further initializer of a name against one before: ORT compares them. */
static void lint_equal(linter *l, const lint_frame *scope, uint32_t at, epctx_str name,
                       int32_t elem_type, epctx_cursor dims) {
    epctx_tensor_view other;
    other = epctx_view_as_tensor(((const lint_constant_note *)scope->tensor_list.items)[at].view);
    if (elem_type != other.elem_type || !lint_equal_dims(dims, epctx_view_tensor_dims(&other))) {
        lint_say(l, EPCTX_RULE_INITIALIZER_TYPE, name, NULL,
                 "the initializers '%S' differ in type or shape", &name);
    }
}

static epctx_status lint_add_constant(linter *l, lint_frame *scope, epctx_view view,
                                      epctx_str name) {
    lint_constant_note *constant;
    OPS_TRY(lint_append(l, &scope->tensor_list, sizeof *constant, &constant));
    constant->view = view;
    constant->name = name;
    return EPCTX_OK;
}

/* A Constant of the main graph, which ORT makes an initializer by its first attribute. */
static epctx_status lint_constant(linter *l, lint_frame *scope, const epctx_node_view *node,
                                  epctx_str name) {
    epctx_cursor it = epctx_view_node_attrs(node);
    epctx_attr_view attr;
    if (node->output_count != 1) {
        lint_say(l, EPCTX_RULE_NODE_FORM, node->name, NULL, "a Constant has %u outputs, expected 1",
                 (uint64_t)node->output_count);
    }
    if (!epctx_next_attr(&it, &attr)) return EPCTX_OK;
    if (attr.type < 1 || attr.type == 5 || (attr.type > 8 && attr.type != 11)) {
        lint_say(l, EPCTX_RULE_ATTRIBUTE_FORM, node->name, NULL,
                 "the attribute of a Constant is of type %d", (int64_t)attr.type);
    } else if (attr.type == EPCTX_ATTR_TENSOR && epctx_view_exists(attr.t)) {
        OPS_TRY(lint_add_constant(l, scope, attr.t, name));
    } else if (attr.type == 11) {
        epctx_cursor tensors = epctx_view_fields(attr.view, EPCTX_FIELD_ATTR_SPARSE_TENSOR);
        epctx_sparse_view sparse;
        memset(&sparse, 0, sizeof sparse);
        while (epctx_next_sparse(&tensors, &sparse)) {
        }
        lint_sparse(l, &sparse, name);
    }
    return EPCTX_OK;
}

static epctx_status lint_dense_values(linter *l, lint_frame *scope, epctx_view graph, bool main) {
    epctx_cursor it = epctx_view_fields(graph, EPCTX_FIELD_GRAPH_INITIALIZER);
    epctx_tensor_view tensor;
    epctx_map_init(&scope->tensors, &l->arena);
    while (epctx_next_tensor(&it, &tensor)) {
        uint32_t other = epctx_map_get(&scope->tensors, tensor.name);
        if (other != EPCTX_MAP_NONE) {
            lint_say(l, main ? EPCTX_RULE_REDEFINED : EPCTX_RULE_DOUBLED_INITIALIZER, tensor.name,
                     NULL, "there are two initializers '%S'", &tensor.name);
            lint_equal(l, scope, other, tensor.name, tensor.elem_type,
                       epctx_view_tensor_dims(&tensor));
        }
        OPS_TRY(lint_set(l, &scope->tensors, tensor.name, (uint32_t)scope->tensor_list.count));
        OPS_TRY(lint_add_constant(l, scope, tensor.view, tensor.name));
    }
    scope->initializer_count = scope->tensor_list.count;
    return EPCTX_OK;
}

static epctx_status lint_inputs(linter *l, lint_frame *scope, epctx_view graph, bool main) {
    epctx_cursor it = epctx_view_fields(graph, EPCTX_FIELD_GRAPH_INPUT);
    bool body = scope->outer != NULL && !scope->joined;
    epctx_value_view value;
    uint32_t before;
    epctx_map_init(&scope->inputs, &l->arena);
    while (epctx_next_value(&it, &value)) {
        epctx_cursor named = epctx_view_fields(value.view, EPCTX_FIELD_VALUE_NAME);
        epctx_view text;
        if (body ? value.name.size == 0 : !epctx_next_view(&named, &text))
            lint_say(l, EPCTX_RULE_NO_VALUE_NAME, value.name, NULL, "a graph input has no name");
        if (l->ir_version < 4) OPS_TRY(lint_set(l, &scope->inputs, value.name, 1));
        OPS_TRY(lint_add(l, &scope->names, value.name, 0, &before));
        if (before != EPCTX_MAP_NONE) {
            if (!main || !ops_has(&scope->tensors, value.name)) {
                lint_say(l, EPCTX_RULE_DOUBLED_VALUE, value.name, NULL,
                         "'%S' is a graph input twice", &value.name);
            }
        } else if (lint_made_before(scope, value.name)) {
            lint_say(l, EPCTX_RULE_DOUBLED_VALUE, value.name, NULL,
                     "graph input '%S' is also a value of the main graph", &value.name);
        }
    }
    return EPCTX_OK;
}

static epctx_status lint_sparse_values(linter *l, lint_frame *scope, epctx_view graph, bool main) {
    epctx_cursor it = epctx_view_fields(graph, EPCTX_FIELD_GRAPH_SPARSE_INITIALIZER);
    epctx_sparse_view sparse;
    epctx_map names;
    epctx_map_init(&names, &l->arena);
    while (epctx_next_sparse(&it, &sparse)) {
        epctx_str name = sparse.values.name;
        uint32_t dense = epctx_map_get(&scope->tensors, name);
        uint32_t twice;
        OPS_TRY(lint_add(l, &names, name, 1, &twice));
        lint_sparse(l, &sparse, name);
        if (dense != EPCTX_MAP_NONE) {
            lint_equal(l, scope, dense, name, sparse.values.elem_type,
                       epctx_view_fields(sparse.view, EPCTX_FIELD_SPARSE_DIMS));
        }
        if (twice != EPCTX_MAP_NONE || dense != EPCTX_MAP_NONE) {
            lint_say(l,
                     main && twice == EPCTX_MAP_NONE ? EPCTX_RULE_REDEFINED
                                                     : EPCTX_RULE_DOUBLED_INITIALIZER,
                     name, NULL, "there are two initializers '%S'", &name);
        }
        OPS_TRY(lint_scope_constant(l, scope, name));
    }
    return EPCTX_OK;
}

static epctx_status lint_infos(linter *l, epctx_view graph) {
    epctx_cursor it = epctx_view_fields(graph, EPCTX_FIELD_GRAPH_VALUE_INFO);
    epctx_value_view value;
    epctx_map infos;
    uint32_t before;
    epctx_map_init(&infos, &l->arena);
    while (epctx_next_value(&it, &value)) {
        OPS_TRY(lint_add(l, &infos, value.name, 1, &before));
        if (before != EPCTX_MAP_NONE) {
            lint_say(l, EPCTX_RULE_DOUBLED_INFO, value.name, NULL,
                     "there are two value_info entries for '%S'", &value.name);
        }
    }
    return EPCTX_OK;
}

/* Fills the names that a graph defines before its nodes run. */
LINT_APART static epctx_status lint_scope_values(linter *l, lint_frame *scope, epctx_view graph) {
    bool main = lint_is_main(l, scope) && !l->in_training;
    epctx_cursor it = epctx_view_fields(graph, EPCTX_FIELD_GRAPH_INITIALIZER);
    epctx_tensor_view tensor;
    OPS_TRY(lint_dense_values(l, scope, graph, main));
    OPS_TRY(lint_inputs(l, scope, graph, main));
    while (epctx_next_tensor(&it, &tensor)) OPS_TRY(lint_scope_constant(l, scope, tensor.name));
    OPS_TRY(lint_sparse_values(l, scope, graph, main));
    return lint_infos(l, graph);
}

/* A body's node makes `name`: does a graph around it have that name already? */
static epctx_status lint_shadow(linter *l, const lint_frame *scope, epctx_str node,
                                epctx_str name) {
    lint_frame *s;
    for (s = scope->outer; s != NULL && !scope->joined; s = s->outer) {
        uint32_t made = epctx_map_get(&s->names, name);
        bool main = lint_is_main(l, s);
        if (made == EPCTX_MAP_NONE || (made >= 2 && made - 2 >= s->at && !main)) continue;
        if (made >= 2 && main && !lint_made_constant(s, made)) {
            lint_shadow_note *shadow;
            OPS_TRY(lint_append(l, &s->shadows, sizeof *shadow, &shadow));
            shadow->producer = made - 2;
            shadow->owner = s->at;
            shadow->name = name;
            shadow->node = node;
            shadow->graph = l->graph;
        } else {
            lint_say(l, EPCTX_RULE_OUTER_NAME, node, NULL,
                     "the body defines '%S', which an outer graph also defines", &name);
        }
        return EPCTX_OK;
    }
    return EPCTX_OK;
}

epctx_status lint_scope_nodes(linter *l, lint_frame *scope, epctx_cursor nodes) {
    size_t count = epctx_cursor_count(nodes);
    bool main = lint_is_main(l, scope);
    epctx_node_view node;
    epctx_map names;
    uint32_t at = 0;
    uint32_t made;
    epctx_map_init(&names, &l->arena);
    OPS_TRY(ops_array(&l->arena, count + 1, 1, &scope->constants, l->error));
    for (; epctx_next_node(&nodes, &node); at++) {
        epctx_cursor it = epctx_view_node_outputs(&node);
        epctx_str name;
        bool constant = epctx_str_is(node.op_type, "Constant"); /* of any domain, as in ORT */
        scope->constants[at] = constant;
        scope->node_count += !constant;
        if (constant && main) {
            epctx_cursor names_of = epctx_view_node_outputs(&node);
            epctx_str value = epctx_str_of("");
            (void)epctx_next_str(&names_of, &value);
            OPS_TRY(lint_constant(l, scope, &node, value));
        }
        if (node.name.size > 0 && !constant) {
            uint32_t kind = epctx_view_is_epnode(&node) ? 2 : 1;
            uint32_t other;
            OPS_TRY(lint_add(l, &names, node.name, kind, &other));
            if (other != EPCTX_MAP_NONE && (other != 2 || kind != 2)) { /* two EPContext: E007 */
                lint_say(l, EPCTX_RULE_DOUBLED_NODE, node.name, NULL,
                         "two nodes of the graph are named '%S'", &node.name);
            }
        }
        while (epctx_next_str(&it, &name)) {
            if (name.size == 0) continue;
            OPS_TRY(lint_add(l, &scope->names, name, at + 2, &made));
            if (made != EPCTX_MAP_NONE && made >= 2 && main && constant &&
                scope->constants[made - 2] != 0) {
                lint_say(l, EPCTX_RULE_REDEFINED, name, NULL, "two Constants define '%S'", &name);
            } else if (made != EPCTX_MAP_NONE || lint_made_before(scope, name)) {
                lint_say(l, EPCTX_RULE_DOUBLED_VALUE, node.name, NULL,
                         "output '%S' is also produced elsewhere in the graph", &name);
            }
            OPS_TRY(lint_shadow(l, scope, node.name, name));
        }
    }
    return EPCTX_OK;
}

/* -- declarations -- */

/* Does ONNX have every type of elements that a type names? Opening the model bounded how deep they
 * are. `found` gets the one that it does not have. */
static bool lint_type_known(epctx_type_view type, int32_t *found) {
    while (type.kind == EPCTX_TYPE_SEQUENCE || type.kind == EPCTX_TYPE_MAP ||
           type.kind == EPCTX_TYPE_OPTIONAL) {
        *found = type.kind == EPCTX_TYPE_MAP ? type.elem_type : EPCTX_ONNX_FLOAT;
        if (!lint_elem_known(*found)) return false;
        type = epctx_type_of(type.element);
    }
    *found = type.kind == EPCTX_TYPE_TENSOR || type.kind == EPCTX_TYPE_SPARSE ? type.elem_type : 0;
    return lint_elem_known(*found) || type.kind == EPCTX_TYPE_OPAQUE;
}

/* Graph outputs with a type: an input that is an output, too, has it from there. */
static epctx_status lint_typed_outputs(linter *l, epctx_view graph, epctx_map *names) {
    epctx_cursor it = epctx_view_fields(graph, EPCTX_FIELD_GRAPH_OUTPUT);
    epctx_value_view value;
    epctx_map_init(names, &l->arena);
    while (epctx_next_value(&it, &value))
        if (epctx_type_of(value.type).kind != EPCTX_TYPE_NONE)
            OPS_TRY(lint_set(l, names, value.name, 1));
    return EPCTX_OK;
}

/* Inputs, outputs and value_info of a graph: names, types, and whether an initializer is as it is
 * declared. `scope` has the names of all values. */
LINT_APART static epctx_status lint_declared(linter *l, lint_frame *scope, epctx_view graph) {
    static const uint8_t lists[3] = {EPCTX_FIELD_GRAPH_INPUT, EPCTX_FIELD_GRAPH_VALUE_INFO,
                                     EPCTX_FIELD_GRAPH_OUTPUT};
    bool main = lint_is_main(l, scope) && !l->in_training;
    epctx_value_view *place;
    epctx_map typed; /* once it is asked for */
    int i;
    typed.arena = NULL;
    epctx_map_init(&scope->declared, &l->arena);
    for (i = 0; i < 3; i++) {
        epctx_cursor it = epctx_view_fields(graph, lists[i]);
        epctx_value_view value;
        while (epctx_next_value(&it, &value)) {
            uint32_t made = epctx_map_get(&scope->names, value.name);
            epctx_type_view type = epctx_type_of(value.type);
            int32_t elem = 0;
            if (type.kind == EPCTX_TYPE_NONE) {
                if (i != 0 || !main || made == 1) continue;
                if (typed.arena == NULL) OPS_TRY(lint_typed_outputs(l, graph, &typed));
                if (epctx_map_get(&typed, value.name) == EPCTX_MAP_NONE) {
                    lint_say(l, EPCTX_RULE_NO_INPUT_TYPE, value.name, NULL,
                             "input '%S' has no type", &value.name);
                }
                continue;
            }
            /* Types of values that do not exist do not matter, nor those of constants, which have
             * their own. */
            if (i == 0 || (made != EPCTX_MAP_NONE && !lint_made_constant(scope, made))) {
                bool known = lint_type_known(type, &elem);
                bool complex = main && lists[i] != EPCTX_FIELD_GRAPH_VALUE_INFO &&
                               value.is_tensor && made != 1 && (elem == 14 || elem == 15);
                if (!known || complex) {
                    lint_say(l, EPCTX_RULE_ELEMENT_TYPE, value.name, NULL,
                             complex
                                 ? "'%S' is of type %d: ORT does not support complex numbers there"
                                 : "'%S' is of type %d, which does not exist",
                             &value.name, (int64_t)elem);
                }
            }
            if (i == 0 && made == 1 &&
                epctx_map_get(&scope->declared, value.name) == EPCTX_MAP_NONE) {
                OPS_TRY(lint_append(l, &scope->declared_list, sizeof *place, &place));
                *place = value;
                OPS_TRY(lint_set(l, &scope->declared, value.name,
                                 (uint32_t)scope->declared_list.count - 1));
            }
        }
    }
    return EPCTX_OK;
}

/* -- nodes -- */

static epctx_status lint_bodies(linter *l, const epctx_node_view *node, lint_frame *scope) {
    epctx_cursor attrs = epctx_view_node_attrs(node);
    epctx_view attr;
    while (epctx_next_view(&attrs, &attr)) {
        epctx_cursor parts = epctx_view_fields(attr, 0);
        epctx_field field;
        while (epctx_next_field(&parts, &field)) {
            if (lint_is_body(&field)) {
                epctx_str before = l->graph;
                l->graph = epctx_view_as_graph(field.body).name;
                OPS_TRY(lint_graph(l, field.body, scope));
                l->graph = before;
            }
        }
    }
    return EPCTX_OK;
}

static epctx_status lint_sharding(linter *l, const epctx_node_view *node, epctx_cursor shardings,
                                  epctx_map *values) {
    epctx_sharding_view sharding;
    epctx_str name;
    while (epctx_next_sharding(&shardings, &sharding)) {
        if (values->arena == NULL) {
            epctx_cursor lists[2];
            int i;
            lists[0] = epctx_view_node_inputs(node);
            lists[1] = epctx_view_node_outputs(node);
            epctx_map_init(values, &l->arena);
            for (i = 0; i < 2; i++)
                while (epctx_next_str(&lists[i], &name)) OPS_TRY(lint_set(l, values, name, 1));
        }
        if (sharding.tensor_name.size == 0 ||
            epctx_map_get(values, sharding.tensor_name) == EPCTX_MAP_NONE) {
            lint_say(l, EPCTX_RULE_SHARDING, node->name, NULL,
                     "the sharding is for '%S', which is not an input or output of the node",
                     &sharding.tensor_name);
        }
    }
    return EPCTX_OK;
}

/* onnx.proto at NodeDeviceConfigurationProto and ShardingSpecProto: the id is the name of one of
 * the model's configurations, the tensor an input or output of the node. */
LINT_APART static epctx_status lint_devices(linter *l, const epctx_node_view *node) {
    epctx_cursor it = epctx_node_configs(node);
    epctx_node_config_view config;
    epctx_map values; /* of the node, once something asks */
    values.arena = NULL;
    while (epctx_next_node_config(&it, &config)) {
        if (epctx_map_get(&l->configurations, config.configuration_id) == EPCTX_MAP_NONE) {
            lint_say(l, EPCTX_RULE_CONFIGURATION, node->name, NULL,
                     "configuration_id is '%S', but no configuration of the model has this name",
                     &config.configuration_id);
        }
        OPS_TRY(lint_sharding(l, node, epctx_node_config_shardings(&config), &values));
    }
    return EPCTX_OK;
}

/* Fields of an AttributeProto that hold a value -> the type that goes with each. */
static int32_t lint_attr_field_type(const epctx_field *field) {
    static const int8_t types[] = {0, 0, 1,  2,  3, 4, 5, 6, 7, 8, 9,  10,
                                   0, 0, 13, 14, 0, 0, 0, 0, 0, 0, 11, 12};
    int32_t type = field->number < sizeof types ? types[field->number] : 0;
    uint32_t plain = type == 1 || type == 6   ? EPCTX_WIRE_FIXED32
                     : type == 2 || type == 7 ? EPCTX_WIRE_VARINT
                                              : EPCTX_WIRE_LEN;
    bool packed = (type == 6 || type == 7) && field->wire == EPCTX_WIRE_LEN;
    return (uint32_t)field->wire == plain || packed ? type : 0;
}

/* Rules of the ONNX checker for all attributes of any operator. */
static void lint_attr(linter *l, const epctx_node_view *node, const epctx_attr_view *attr,
                      bool inner) {
    epctx_cursor it = epctx_view_fields(attr->view, 0);
    epctx_field field;
    uint32_t used = 0;
    char text[LINT_ATTR_TEXT];
    lint_attr_text(text, attr->name);
    while (epctx_next_field(&it, &field)) {
        int32_t type = lint_attr_field_type(&field);
        used |= type > 0 ? UINT32_C(1) << type : 0;
        if ((type == 4 || type == 9) && field.wire == EPCTX_WIRE_LEN)
            lint_tensor_form(l, field.body, node->name);
    }
    if (attr->name.size == 0) {
        lint_say(l, EPCTX_RULE_ATTRIBUTE_FORM, node->name, NULL, "an attribute has no name");
    } else if (attr->type == EPCTX_ATTR_UNDEFINED) {
        lint_say(l, EPCTX_RULE_ATTRIBUTE_FORM, node->name, text, "has no type");
    } else if ((used & ~(UINT32_C(1) << attr->type)) != 0) {
        lint_say(l, EPCTX_RULE_ATTRIBUTE_FORM, node->name, text,
                 "has a value that does not match its type %d", (int64_t)attr->type);
    } else if (inner && attr->ref_attr_name.size > 0 && used != 0) {
        lint_say(l, EPCTX_RULE_ATTRIBUTE_FORM, node->name, text,
                 "has a value and refers to attribute '%S' of a function", &attr->ref_attr_name);
    }
}

/* Checks of a node that do not depend on its operator. */
LINT_APART static epctx_status lint_node(linter *l, const lint_frame *scope,
                                         const epctx_node_view *node) {
    bool body = scope->outer != NULL && !scope->joined;
    bool constant = epctx_str_is(node->op_type, "Constant") && !body;
    epctx_cursor it = epctx_view_node_attrs(node);
    uint32_t callee = lint_callee_of(l, node);
    epctx_attr_view attr;
    epctx_str names[8];
    epctx_map more;
    size_t count = 0;
    if (!body && node->input_count == 0 && node->output_count == 0)
        return EPCTX_OK; /* ORT does not check it */
    if (node->op_type.size == 0) {
        lint_say(l, EPCTX_RULE_NODE_FORM, node->name, NULL, "the node has no op_type");
    } else if (node->input_count == 0 && node->output_count == 0) {
        lint_say(l, EPCTX_RULE_NODE_FORM, node->name, NULL,
                 "the node has neither inputs nor outputs");
    }
    if (callee != EPCTX_MAP_NONE) {
        const epctx_function_view *f = &lint_callee_at(l, callee)->view;
        if (node->input_count > f->input_count || node->output_count > f->output_count) {
            lint_say(l, EPCTX_RULE_FUNCTION_FORM, node->name, NULL,
                     "the node has %u inputs and %u outputs, but function '%S' has %u and %u",
                     (uint64_t)node->input_count, (uint64_t)node->output_count, &f->name,
                     (uint64_t)f->input_count, (uint64_t)f->output_count);
        }
    }
    for (; epctx_next_attr(&it, &attr) && !constant; count++) { /* ORT makes constants tensors */
        size_t i;
        bool twice = false;
        for (i = 0; i < count && i < 8; i++) twice = twice || epctx_str_eq(names[i], attr.name);
        if (count < 8) {
            names[count] = attr.name;
        } else {
            if (count == 8) epctx_map_init(&more, &l->arena);
            twice = twice || ops_has(&more, attr.name);
            OPS_TRY(lint_set(l, &more, attr.name, 1));
        }
        if (twice) {
            char text[LINT_ATTR_TEXT];
            lint_attr_text(text, attr.name);
            lint_say(l, EPCTX_RULE_DOUBLED_ATTRIBUTE, node->name, text,
                     "the node has two attributes '%S'", &attr.name);
        }
        lint_attr(l, node, &attr, body || l->in_function);
    }
    return EPCTX_OK;
}

/* Circles, and values of bodies that the main graph has made before; `nodes` is their number. */
LINT_APART static epctx_status lint_order(linter *l, lint_frame *scope, uint32_t nodes) {
    uint32_t *order;
    size_t i;
    epctx_str before = l->graph;
    bool circle;
    if (!lint_is_main(l, scope) || (!scope->unsorted && scope->shadows.count == 0)) return EPCTX_OK;
    OPS_TRY(ops_array(&l->arena, (size_t)nodes + 1, sizeof *order, &order, l->error));
    OPS_TRY(lint_ort_order(l, &scope->edges, nodes, order, &circle));
    if (circle)
        lint_say(l, EPCTX_RULE_CYCLE, epctx_str_of(""), NULL, "a node depends on its own output");
    for (i = 0; i < scope->shadows.count; i++) {
        const lint_shadow_note *shadow = (const lint_shadow_note *)scope->shadows.items + i;
        if (order[shadow->producer] < order[shadow->owner]) {
            l->graph = shadow->graph;
            lint_say(l, EPCTX_RULE_OUTER_NAME, shadow->node, NULL,
                     "the body defines '%S', which the main graph also defines", &shadow->name);
        }
    }
    l->graph = before;
    return EPCTX_OK;
}

epctx_status lint_nodes(linter *l, lint_frame *scope, epctx_cursor nodes, epctx_view graph) {
    epctx_node_view node;
    for (scope->at = 0; epctx_next_node(&nodes, &node); scope->at++) {
        epctx_cursor it = epctx_view_node_inputs(&node);
        epctx_str name;
        if (!lint_is_main(l, scope) || scope->constants[scope->at] == 0) {
            OPS_TRY(
                lint_domain(l, &node, l->in_function || (scope->outer != NULL && !scope->joined)));
        }
        OPS_TRY(lint_node(l, scope, &node));
        while (epctx_next_str(&it, &name))
            if (name.size > 0) OPS_TRY(lint_read(l, scope, node.name, name));
        if (epctx_str_is(node.op_type, EPCTX_OP_TYPE))
            OPS_TRY(lint_epnode(l, scope, &node, graph));
        else
            lint_op_spelling(l, &node);
        OPS_TRY(lint_devices(l, &node));
        scope->node = &node;
        OPS_TRY(lint_bodies(l, &node, scope));
    }
    return EPCTX_OK;
}

LINT_APART static epctx_status lint_outputs(linter *l, lint_frame *scope, epctx_view graph) {
    epctx_cursor it = epctx_view_fields(graph, EPCTX_FIELD_GRAPH_OUTPUT);
    epctx_value_view value;
    scope->at = UINT32_MAX;
    while (epctx_next_value(&it, &value)) {
        lint_frame *s = scope;
        while (s != NULL && epctx_map_get(&s->names, value.name) == EPCTX_MAP_NONE) s = s->outer;
        if (s == NULL) {
            lint_say(l, EPCTX_RULE_OUTPUT_UNDEFINED, value.name, NULL,
                     "nothing produces graph output '%S'", &value.name);
            continue;
        }
        OPS_TRY(lint_set(l, &s->used, value.name, 1));
        if (s != scope && !scope->joined) {
            lint_say(l, EPCTX_RULE_OUTER_RESULT, value.name, NULL,
                     "output '%S' of the body is a value of an outer graph", &value.name);
        }
    }
    return EPCTX_OK;
}

/* Quantization annotations name the value and the values of its parameters. */
LINT_APART static epctx_status lint_annotations(linter *l, lint_frame *scope, epctx_view graph) {
    epctx_cursor it = epctx_view_fields(graph, EPCTX_FIELD_GRAPH_QUANTIZATION_ANNOTATION);
    epctx_annotation_view annotation;
    epctx_pair pair;
    while (epctx_next_annotation(&it, &annotation)) {
        epctx_cursor pairs = epctx_annotation_pairs(&annotation);
        if (epctx_map_get(&scope->names, annotation.tensor_name) == EPCTX_MAP_NONE) {
            lint_say(l, EPCTX_RULE_ANNOTATION, annotation.tensor_name, NULL,
                     "the annotated value '%S' does not exist", &annotation.tensor_name);
        }
        while (epctx_next_pair(&pairs, &pair)) {
            if (epctx_map_get(&scope->names, pair.value) == EPCTX_MAP_NONE) {
                lint_say(l, EPCTX_RULE_ANNOTATION, annotation.tensor_name, NULL,
                         "%S of the annotation is '%S', which does not exist", &pair.key,
                         &pair.value);
            } else {
                OPS_TRY(lint_set(l, &scope->used, pair.value, 1));
            }
        }
    }
    return EPCTX_OK;
}

/* -- graphs -- */

static epctx_status lint_judge_frame(linter *l, lint_frame *scope, epctx_view graph);

/* Collects the names of a list of values. */
static epctx_status lint_name_values(linter *l, epctx_map *names, epctx_view graph, uint32_t list) {
    epctx_cursor it = epctx_view_fields(graph, list);
    epctx_value_view value;
    while (epctx_next_value(&it, &value)) OPS_TRY(lint_set(l, names, value.name, 1));
    return EPCTX_OK;
}

/* Initializers have the number 1 among the names of a frame. */
static bool lint_is_initializer(const lint_frame *scope, epctx_str name) {
    return scope != NULL && epctx_map_get(&scope->names, name) == 1;
}

/* onnx.proto at TrainingInfoProto: a key is an initializer of the main graph or of `algorithm`; a
 * value an output of `initialization`, or for updates of `algorithm` or the main graph. `keys` has
 * the keys seen. `algorithm` and `more` are NULL when there are none. */
static epctx_status lint_bindings(linter *l, epctx_cursor bindings, lint_frame *graph,
                                  const lint_frame *algorithm, const epctx_map *outputs,
                                  const epctx_map *more, epctx_map *keys) {
    epctx_pair pair;
    uint32_t before;
    while (epctx_next_pair(&bindings, &pair)) {
        OPS_TRY(lint_add(l, keys, pair.key, 1, &before));
        if (before != EPCTX_MAP_NONE) {
            lint_say(l, EPCTX_RULE_BINDING, pair.key, NULL,
                     "'%S' is bound twice, so its value is undefined", &pair.key);
        }
        if (!lint_is_initializer(graph, pair.key) && !lint_is_initializer(algorithm, pair.key)) {
            lint_say(l, EPCTX_RULE_BINDING, pair.key, NULL,
                     "'%S' is not an initializer of the main graph or of the algorithm", &pair.key);
        }
        OPS_TRY(lint_set(l, &graph->used, pair.key, 1));
        if (epctx_map_get(outputs, pair.value) == EPCTX_MAP_NONE &&
            (more == NULL || epctx_map_get(more, pair.value) == EPCTX_MAP_NONE)) {
            lint_say(l, EPCTX_RULE_BINDING, pair.key, NULL,
                     "'%S' is bound to '%S', which is not an output of the training graph",
                     &pair.key, &pair.value);
        }
    }
    return EPCTX_OK;
}

/* `initialization` stands alone; `algorithm` continues the main graph and sees its values.
 * `results` has the main graph's outputs, `keys` what was updated so far. */
static epctx_status lint_training(linter *l, const epctx_training_view *training, lint_frame *graph,
                                  const epctx_map *results, epctx_map *keys) {
    lint_frame algorithm;
    epctx_map outputs[2];
    bool has = epctx_view_exists(training->algorithm.view);
    epctx_map initialized;
    memset(&algorithm, 0, sizeof algorithm);
    l->in_training = true;
    l->demoted = EPCTX_RULE_TRAINING; /* sessions do not read training graphs */
    if (epctx_view_exists(training->initialization.view)) {
        lint_frame alone;
        memset(&alone, 0, sizeof alone);
        l->graph = training->initialization.name;
        OPS_TRY(lint_judge_frame(l, &alone, training->initialization.view));
    }
    if (has) {
        algorithm.outer = graph;
        algorithm.joined = true;
        l->graph = training->algorithm.name;
        OPS_TRY(lint_judge_frame(l, &algorithm, training->algorithm.view));
    }
    l->graph = epctx_str_of("");
    epctx_map_init(&outputs[0], &l->arena);
    epctx_map_init(&outputs[1], &l->arena);
    epctx_map_init(&initialized, &l->arena);
    OPS_TRY(
        lint_name_values(l, &outputs[0], training->initialization.view, EPCTX_FIELD_GRAPH_OUTPUT));
    OPS_TRY(lint_name_values(l, &outputs[1], training->algorithm.view, EPCTX_FIELD_GRAPH_OUTPUT));
    OPS_TRY(lint_bindings(
        l, epctx_view_fields(training->view, EPCTX_FIELD_TRAINING_INITIALIZATION_BINDING), graph,
        has ? &algorithm : NULL, &outputs[0], NULL, &initialized));
    OPS_TRY(lint_bindings(l, epctx_view_fields(training->view, EPCTX_FIELD_TRAINING_UPDATE_BINDING),
                          graph, has ? &algorithm : NULL, &outputs[1], results, keys));
    l->in_training = false;
    l->demoted = EPCTX_RULE_COUNT;
    return EPCTX_OK;
}

LINT_APART static epctx_status lint_trainings(linter *l, lint_frame *graph) {
    epctx_cursor it = epctx_model_trainings(l->model);
    epctx_training_view training;
    epctx_map keys; /* of all updates: an initializer is assigned once */
    epctx_map results;
    epctx_map_init(&keys, &l->arena);
    epctx_map_init(&results, &l->arena);
    OPS_TRY(
        lint_name_values(l, &results, epctx_model_graph(l->model).view, EPCTX_FIELD_GRAPH_OUTPUT));
    while (epctx_next_training(&it, &training))
        OPS_TRY(lint_training(l, &training, graph, &results, &keys));
    return EPCTX_OK;
}

/* Do dimensions agree with what is known of those of a value? */
static bool lint_dims_fit(epctx_cursor dims, const epctx_value_view *value) {
    epctx_cursor of_value = epctx_view_value_dims(value);
    int64_t number;
    epctx_dim dim;
    if (!value->has_shape) return true;
    while (epctx_next_dim(&of_value, &dim))
        if (!epctx_next_int(&dims, &number) || (dim.known && dim.value >= 0 && dim.value != number))
            return false;
    return !epctx_next_int(&dims, &number);
}

/* Compares an initializer with its declaration. */
static void lint_declaration(linter *l, const lint_frame *scope, epctx_str name, int32_t elem_type,
                             epctx_cursor dims) {
    uint32_t at = epctx_map_get(&scope->declared, name);
    if (at != EPCTX_MAP_NONE) {
        const epctx_value_view *value = (const epctx_value_view *)scope->declared_list.items + at;
        if (!value->is_tensor || value->elem_type != elem_type || !lint_dims_fit(dims, value)) {
            lint_say(l, EPCTX_RULE_INITIALIZER_TYPE, name, NULL,
                     "initializer '%S' is declared with another type or shape", &name);
        }
    }
}

static void lint_listed(linter *l, const lint_frame *scope, epctx_str name) {
    bool idle = epctx_map_get(&scope->used, name) == EPCTX_MAP_NONE;
    if (scope->bare && (idle || scope->outer != NULL) &&
        epctx_map_get(&scope->inputs, name) == EPCTX_MAP_NONE) {
        lint_say(l, EPCTX_RULE_NOT_AN_INPUT, name, NULL,
                 "initializer '%S' is not a graph input, as IR version %d requires", &name,
                 l->ir_version);
    }
}

/* Checks initializers, after all reads are known. */
LINT_APART static epctx_status lint_initializers(linter *l, lint_frame *scope, epctx_view graph) {
    bool body = scope->outer != NULL;
    epctx_rule before = l->demoted;
    epctx_cursor it = epctx_view_fields(graph, EPCTX_FIELD_GRAPH_SPARSE_INITIALIZER);
    epctx_sparse_view sparse;
    size_t i;
    while (epctx_next_sparse(&it, &sparse)) {
        lint_listed(l, scope, sparse.values.name);
        lint_declaration(l, scope, sparse.values.name, sparse.values.elem_type,
                         epctx_view_fields(sparse.view, EPCTX_FIELD_SPARSE_DIMS));
    }
    for (i = 0; i < scope->tensor_list.count; i++) {
        const lint_constant_note *constant =
            (const lint_constant_note *)scope->tensor_list.items + i;
        epctx_view view = constant->view;
        epctx_tensor_view tensor = epctx_view_as_tensor(view);
        bool stored = i < scope->initializer_count;
        bool last = !stored || epctx_map_get(&scope->tensors, tensor.name) == i;
        /* What nothing reads of Constant nodes is not known: ORT drops them rarely. */
        bool idle = stored && epctx_map_get(&scope->used, tensor.name) == EPCTX_MAP_NONE;
        if (idle) {
            lint_say(l, EPCTX_RULE_UNUSED, tensor.name, NULL, "nothing reads initializer '%S'",
                     &tensor.name);
        }
        if (stored) lint_listed(l, scope, tensor.name);
        if (!lint_elem_known(tensor.elem_type)) {
            lint_say(l, EPCTX_RULE_ELEMENT_TYPE, tensor.name, NULL,
                     "initializer '%S' has data_type %d", &tensor.name, (int64_t)tensor.elem_type);
            continue;
        }
        if (body) lint_tensor_form(l, view, tensor.name);
        if (body && tensor.name.size == 0) {
            lint_say(l, EPCTX_RULE_NO_VALUE_NAME, tensor.name, NULL,
                     "an initializer of the body has no name");
        }
        if (stored)
            lint_declaration(l, scope, tensor.name, tensor.elem_type,
                             epctx_view_tensor_dims(&tensor));
        l->demoted = idle ? EPCTX_RULE_IDLE_INITIALIZER : l->demoted;
        if (last) lint_tensor(l, view, constant->name);
        l->demoted = before;
        if (body && tensor.external) OPS_TRY(lint_set(l, &l->body_files, tensor.location, 1));
        if (idle && tensor.external) {
            uint32_t users = epctx_map_get(&l->idle_files, tensor.location);
            OPS_TRY(lint_set(l, &l->idle_files, tensor.location,
                             users == EPCTX_MAP_NONE ? 1 : users + 1));
        }
    }
    return EPCTX_OK;
}

/* Of opset 8, Scan has an input more than its body. */
bool epctx_lint_gives_inputs(const epctx_model *model, const epctx_node_view *node) {
    if (node->domain.size > 0 && !epctx_str_is(node->domain, "ai.onnx")) return false;
    return epctx_str_is(node->op_type, "Loop") ||
           (epctx_str_is(node->op_type, "Scan") && epctx_model_opset(model, epctx_str_of("")) > 8);
}

/* ORT gives values to those inputs of a body that are no initializers; `scope` has the names of
 * both. */
static void lint_body_inputs(linter *l, const lint_frame *scope, epctx_view graph) {
    const epctx_node_view *node =
        scope->outer != NULL && !scope->joined ? scope->outer->node : NULL;
    epctx_cursor it = epctx_view_fields(graph, EPCTX_FIELD_GRAPH_INPUT);
    uint64_t all = 0;
    uint64_t constant = 0;
    epctx_str name = epctx_str_of("");
    epctx_value_view value;
    if (node == NULL || !epctx_lint_gives_inputs(l->model, node)) return;
    for (; epctx_next_value(&it, &value); all++) {
        if (!lint_is_initializer(scope, value.name)) continue;
        constant++;
        name = value.name;
    }
    if (constant > 0 && all - constant != node->input_count) {
        lint_say(
            l, EPCTX_RULE_BODY_INPUT, node->name, NULL,
            "the %S gives its body %u inputs, but %u of the body's %u inputs are initializers, "
            "such as '%S'",
            &node->op_type, (uint64_t)node->input_count, constant, all, &name);
    }
}

/* Everything about a graph but what needs to know its readers. `scope` has its surroundings. */
static epctx_status lint_judge_frame(linter *l, lint_frame *scope, epctx_view graph) {
    bool body = scope->outer != NULL && !scope->joined;
    if (epctx_view_exists(graph) && epctx_view_as_graph(graph).name.size == 0) {
        lint_say(l, body ? EPCTX_RULE_NO_BODY_NAME : EPCTX_RULE_NO_GRAPH_NAME, epctx_str_of(""),
                 NULL,
                 body ? "the body has no name"
                      : "the graph has no name: ORT accepts it, the ONNX checker does not");
    }
    epctx_map_init(&scope->names, &l->arena);
    epctx_map_init(&scope->used, &l->arena);
    OPS_TRY(lint_scope_values(l, scope, graph));
    lint_body_inputs(l, scope, graph);
    OPS_TRY(lint_scope_nodes(l, scope, epctx_view_fields(graph, EPCTX_FIELD_GRAPH_NODE)));
    OPS_TRY(lint_declared(l, scope, graph));
    OPS_TRY(lint_nodes(l, scope, epctx_view_fields(graph, EPCTX_FIELD_GRAPH_NODE), graph));
    OPS_TRY(lint_order(l, scope, scope->at));
    OPS_TRY(lint_outputs(l, scope, graph));
    return lint_annotations(l, scope, graph);
}

epctx_status lint_graph(linter *l, epctx_view graph, lint_frame *outer) {
    lint_frame scope;
    memset(&scope, 0, sizeof scope);
    scope.outer = outer;
    OPS_TRY(lint_judge_frame(l, &scope, graph));
    if (outer == NULL) {
        if (epctx_view_exists(graph) && scope.node_count == 0 &&
            epctx_cursor_count(epctx_view_fields(graph, EPCTX_FIELD_GRAPH_OUTPUT)) == 0) {
            lint_say(l, EPCTX_RULE_NO_NODES, epctx_str_of(""), NULL,
                     "the graph has no nodes to run and no outputs");
        }
        OPS_TRY(lint_trainings(l, &scope)); /* they read values of the main graph */
    }
    return lint_initializers(l, &scope, graph);
}
