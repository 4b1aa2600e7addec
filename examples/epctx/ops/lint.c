/* lint.c - the rules, how their findings are told, and the fields of the model. */
#include "lint_internal.h"
#include "sharding.h"

epctx_rule_info epctx_rule_of(epctx_rule rule) {
    static const epctx_rule_info rules[EPCTX_RULE_COUNT + 1] = {
#define OPS_RULE_INFO(symbol, id, name, text, fix) \
    {id, name, text, fix, \
     (id)[0] == 'E'   ? EPCTX_SEVERITY_ERROR \
     : (id)[0] == 'W' ? EPCTX_SEVERITY_WARNING \
                      : EPCTX_SEVERITY_HINT},
        EPCTX_RULE_LIST(OPS_RULE_INFO)
#undef OPS_RULE_INFO
            {"", "unknown", "", "", EPCTX_SEVERITY_HINT},
    };
    return rules[(unsigned)rule < (unsigned)EPCTX_RULE_COUNT ? (int)rule : (int)EPCTX_RULE_COUNT];
}

void lint_say(linter *l, epctx_rule rule, epctx_str node, const char *attribute, const char *format,
              ...) {
    char message[LINT_MESSAGE];
    epctx_text text = epctx_text_of(message, sizeof message);
    const fact *versions = facts_rule(epctx_rule_of(rule).id, l->profile);
    epctx_finding finding;
    va_list args;
    finding.since = versions != NULL ? fact_get(versions, "since") : NULL;
    finding.until = versions != NULL ? fact_get(versions, "until") : l->until;
    if (finding.since == NULL) finding.since = "";
    if (finding.until == NULL) finding.until = "";
    l->until = NULL;
    if (versions != NULL && !facts_hold(versions, NULL)) return;
    va_start(args, format);
    epctx_text_put_args(&text, format, args);
    va_end(args);
    if (l->demoted != EPCTX_RULE_COUNT && epctx_rule_of(rule).severity == EPCTX_SEVERITY_ERROR)
        rule = l->demoted;
    finding.rule = rule;
    finding.info = epctx_rule_of(rule);
    finding.node = node;
    finding.graph = l->graph;
    finding.attribute = attribute != NULL ? attribute : "";
    finding.message = message;
    l->counts[finding.info.severity]++;
    if (l->found_fn != NULL) l->found_fn(l->user, &finding);
}

epctx_status lint_set(linter *l, epctx_map *map, epctx_str key, uint32_t value) {
    return epctx_map_put(map, key, value) == EPCTX_OK ? EPCTX_OK : ops_nomem(&l->arena, l->error);
}

epctx_status lint_add(linter *l, epctx_map *map, epctx_str key, uint32_t value, uint32_t *before) {
    *before = epctx_map_get(map, key);
    return *before == EPCTX_MAP_NONE ? lint_set(l, map, key, value) : EPCTX_OK;
}

epctx_status lint_append(linter *l, epctx_list *list, size_t size, void *out) {
    void *place = epctx_list_add(list, &l->arena, size);
    memcpy(out, &place, sizeof place);
    return place != NULL ? EPCTX_OK : ops_nomem(&l->arena, l->error);
}

void lint_attr_text(char out[LINT_ATTR_TEXT], epctx_str name) {
    epctx_text text = epctx_text_of(out, LINT_ATTR_TEXT);
    epctx_text_put_shown(&text, name);
}

/* An attribute's field that holds a graph. */
bool lint_is_body(const epctx_field *field) {
    return field->wire == EPCTX_WIRE_LEN &&
           (field->number == EPCTX_FIELD_ATTR_G || field->number == EPCTX_FIELD_ATTR_GRAPHS);
}

/* -- fields that occur twice -- */

/* Singular fields that occur twice, and strings that are not UTF-8. `node`: the innermost node. */
void lint_fields(linter *l, epctx_kind type, epctx_view message, epctx_str node, epctx_str attr) {
    epctx_cursor it = epctx_view_fields(message, 0);
    epctx_field field;
    uint32_t seen = 0;
    char attribute[LINT_ATTR_TEXT];
    if (type == EPCTX_KIND_NODE)
        node = epctx_view_as_node(message).name;
    else if (type == EPCTX_KIND_ATTR)
        attr = epctx_view_as_attr(message).name;
    lint_attr_text(attribute, attr);
    while (epctx_next_field(&it, &field)) {
        const epctx_field_info *info = epctx_field_find(type, field.number);
        uint32_t bit;
        if (info == NULL || !epctx_field_fits(info, field.wire)) continue;
        /* In the oneof of a type, any second member counts. */
        bit =
            UINT32_C(1) << (type == EPCTX_KIND_TYPE && info->kind < EPCTX_KIND_INT ? 31
                                                                                   : info->number);
        if (!info->repeated && (seen & bit) != 0) {
            lint_say(l, EPCTX_RULE_DOUBLED_FIELD, node, attribute,
                     "field %s of a %s occurs twice: readers disagree on which one counts",
                     ops_field_name(info).text, epctx_message_name(type));
        }
        seen |= info->repeated ? 0 : bit;
        if (info->kind < EPCTX_KIND_INT) {
            lint_fields(l, info->kind, field.body, node, attr);
        } else if (info->kind == EPCTX_KIND_STRING &&
                   !epctx_str_is_utf8(epctx_view_str(field.body))) {
            epctx_str text = epctx_view_str(field.body);
            lint_say(l, EPCTX_RULE_NOT_UTF8, node, attribute,
                     "field %s of a %s is '%S', which is not UTF-8", ops_field_name(info).text,
                     epctx_message_name(type), &text);
        }
    }
}

/* -- the fields of the model -- */

static epctx_str lint_canonical_domain(epctx_str domain) {
    return epctx_str_is(domain, "ai.onnx") ? epctx_str_of("") : domain;
}

/* The number of a fact "opset" or "ir", of an operator set only if it is of that domain; or 0. */
static int64_t lint_number_of(const fact *f, epctx_str domain) {
    epctx_str text = epctx_str_of(f->name);
    uint64_t number = 0;
    if (domain.size > 0 && !epctx_str_eq(epctx_str_cut(&text, ' '), domain)) return 0;
    return epctx_str_number(text, &number) ? (int64_t)number : 0;
}

/* The newest version that ORT reads, 0: none. */
static int64_t lint_newest(const char *kind, epctx_str domain) {
    size_t at = 0;
    int64_t newest = 0;
    const fact *f;
    while ((f = facts_next(kind, &at)) != NULL) {
        const int64_t number = lint_number_of(f, domain);
        if (number > newest && facts_hold(f, NULL)) newest = number;
    }
    return newest;
}

/* The first release that reads a version which the one judged for does not: the rest of a finding
 * about it. NULL: none is known. */
static const char *lint_reads_later(const char *kind, epctx_str domain, int64_t version) {
    size_t at = 0;
    const char *first = NULL;
    const fact *f;
    while ((f = facts_next(kind, &at)) != NULL) {
        const char *since = fact_get(f, "since");
        if (lint_number_of(f, domain) < version || since == NULL || facts_hold(f, NULL)) continue;
        if (first == NULL ||
            facts_compare_versions(epctx_str_of(since + strcspn(since, " ") + 1),
                                   epctx_str_of(first + strcspn(first, " ") + 1)) < 0)
            first = since;
    }
    return first;
}

/* As facts write a domain; empty: as the default domain is not written. */
static epctx_str lint_fact_domain(epctx_str domain) {
    return domain.size > 0 ? domain : epctx_str_of("ai.onnx");
}

bool epctx_lint_is_payload(epctx_str context) {
    const epctx_span bytes = {(const uint8_t *)context.data, context.size};
    epctx_binary_id id;
    size_t i = 0;
    while (i < context.size && (uint8_t)context.data[i] >= 0x20) i++;
    if (i == context.size) return false;
    if (context.size >= 1024) return true;
    epctx_binary_identify(bytes, bytes, bytes.size, &id);
    return id.sort == EPCTX_BINARY_SORT_CONTEXT;
}

int32_t epctx_lint_opset(epctx_str domain) {
    if (epctx_str_is(domain, "ai.onnx")) return 0;
    return (int32_t)lint_newest("opset", lint_fact_domain(domain));
}

/* Opset imports of the model or of a function. For each domain the last one counts, as in ORT. */
epctx_status lint_opsets(linter *l, epctx_cursor imports) {
    epctx_opset opset;
    epctx_map_init(&l->imports, &l->arena);
    while (epctx_next_opset(&imports, &opset)) {
        /* ORT reads "ai.onnx" as another domain in functions. */
        epctx_str domain = l->in_function ? opset.domain : lint_canonical_domain(opset.domain);
        int32_t newest = epctx_lint_opset(domain);
        int32_t version = (int32_t)(uint32_t)(uint64_t)opset.version; /* what ORT keeps of it */
        if (epctx_map_get(&l->imports, domain) != EPCTX_MAP_NONE) {
            lint_say(l, EPCTX_RULE_DOUBLED_OPSET, domain, NULL, "domain '%S' is imported twice",
                     &domain);
        }
        /* A version of "ai.onnx" matters if a node uses it, a version of "" always. */
        bool alias = domain.size != opset.domain.size;
        OPS_TRY(
            lint_set(l, &l->imports, domain, version > 0 && (version <= newest || !alias) ? 1 : 2));
        if (newest > 0 && !alias && (version > newest || (l->in_function && version < 0))) {
            if (version > newest)
                l->until = lint_reads_later("opset", lint_fact_domain(domain), version);
            lint_say(l, EPCTX_RULE_OPSET_VERSION, domain, NULL,
                     "version %d of domain '%S' is imported, but ORT %s supports 1 to %d",
                     opset.version, &domain, l->ort, (int64_t)newest);
        }
    }
    return EPCTX_OK;
}

epctx_status lint_domain(linter *l, const epctx_node_view *node, bool inner) {
    /* To ORT "ai.onnx" is another domain in bodies and functions. */
    epctx_str domain = inner ? node->domain : lint_canonical_domain(node->domain);
    uint32_t found = epctx_map_get(&l->imports, domain);
    bool known;
    if (found == 1) return EPCTX_OK;
    known = epctx_lint_opset(domain) > 0;
    if (found == 2) {
        if (known && !l->in_function) { /* in functions the model's version counts */
            lint_say(l, EPCTX_RULE_OPSET_VERSION, node->name, NULL,
                     "operator %S is of domain '%S', of which a version is imported that ORT %s "
                     "does not have",
                     &node->op_type, &domain, l->ort);
        }
    } else if (!known || l->in_function) {
        epctx_rule demoted = l->demoted;
        l->demoted = l->in_training || l->unread ? demoted : EPCTX_RULE_COUNT; /* ORT looks at every
                                                                               other function */
        lint_say(l, EPCTX_RULE_NO_OPSET, node->name, NULL,
                 "operator %S is of domain '%S', which the %s does not import", &node->op_type,
                 &domain, l->in_function ? "function" : "model");
        l->demoted = demoted;
    } else if (epctx_str_is(domain, EPCTX_DOMAIN)) {
        lint_say(l, EPCTX_RULE_EPCONTEXT_OPSET, node->name, NULL,
                 "domain com.microsoft is not imported: ORT accepts it, the ONNX checker does not");
    } else {
        lint_say(l, EPCTX_RULE_DEFAULT_OPSET, node->name, NULL,
                 "operator %S is of domain '%S', which the model does not import: ORT takes "
                 "version %d",
                 &node->op_type, &domain, (int64_t)epctx_lint_opset(domain));
    }
    return lint_set(l, &l->imports, domain, 1); /* reported once */
}

static epctx_status lint_metadata(linter *l) {
    epctx_cursor it =
        epctx_view_fields(epctx_model_read(l->model).view, EPCTX_FIELD_MODEL_METADATA_PROPS);
    epctx_map keys;
    epctx_pair pair;
    uint32_t before;
    epctx_map_init(&keys, &l->arena);
    while (epctx_next_pair(&it, &pair)) {
        OPS_TRY(lint_add(l, &keys, pair.key, 1, &before));
        if (before != EPCTX_MAP_NONE) {
            lint_say(l, EPCTX_RULE_DOUBLED_METADATA, pair.key, NULL,
                     "metadata key '%S' occurs twice", &pair.key);
        }
    }
    return EPCTX_OK;
}

epctx_status lint_model(linter *l) {
    epctx_model_info info = epctx_model_read(l->model);
    uint64_t size = l->model->bytes.size;
    epctx_str none = epctx_str_of("");
    epctx_cursor configs = epctx_model_device_configs(l->model);
    epctx_device_config_view config;
    epctx_cursor ir = epctx_view_fields(info.view, EPCTX_FIELD_MODEL_IR_VERSION);
    epctx_field field;
    l->ir_version = info.ir_version;
    if (info.ir_version > lint_newest("ir", none)) {
        l->until = lint_reads_later("ir", none, info.ir_version);
        lint_say(l, EPCTX_RULE_IR_REFUSED, none, NULL,
                 "ir_version is %d, but ORT %s reads up to %d", info.ir_version, l->ort,
                 lint_newest("ir", none));
    } else {
        bool found = false;
        while (epctx_next_field(&ir, &field)) found = found || field.wire == EPCTX_WIRE_VARINT;
        if (!found) lint_say(l, EPCTX_RULE_IR_REFUSED, none, NULL, "the model has no ir_version");
    }
    if (size > INT32_MAX) {
        lint_say(l, EPCTX_RULE_MODEL_SIZE, none, NULL,
                 "the model has %u bytes, but libprotobuf and ORT read at most %u", size,
                 (uint64_t)INT32_MAX);
    } else if (size > (uint64_t)INT32_MAX / 4 * 3) {
        lint_say(l, EPCTX_RULE_NEAR_LIMIT, none, NULL, "the model has %u bytes of at most %u", size,
                 (uint64_t)INT32_MAX);
    }
    if (!epctx_model_has_graph(l->model))
        lint_say(l, EPCTX_RULE_NO_GRAPH, none, NULL, "the model has no graph");
    while (epctx_next_device_config(&configs, &config))
        OPS_TRY(lint_set(l, &l->configurations, config.name, 1));
    if (epctx_cursor_count(epctx_model_opsets(l->model)) == 0)
        lint_say(l, EPCTX_RULE_NO_OPSETS, none, NULL, "the model imports no operator set");
    OPS_TRY(lint_opsets(l, epctx_model_opsets(l->model)));
    return lint_metadata(l);
}
