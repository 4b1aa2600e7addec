/* epctx check --chip: was a compiled model made for this chip? Its binaries decide where they tell;
 * what the model says of them, where they do not. */
#include "check.h"

#include <string.h>

enum { CHIP_SEEN = 16 };

/* What a verdict was made by. */
typedef enum chip_by { BY_NOTHING, BY_BINARY, BY_STRING, BY_NODE } chip_by;

/* Of one node. */
typedef struct chip_verdict {
    epctx_compat compat;
    chip_by by;
    const char *told_by; /* the file, or the library that was asked; NULL: not by the binary */
    epctx_error why;
    char denied[320]; /* what the model says otherwise; "": nothing */
} chip_verdict;

typedef struct chip_work {
    check_work *check;
    const epctx_state *state;
    chip here;
    bool is_known;      /* nodes of an EP with chips of this kind: others do not count */
    epctx_compat worst; /* of those that could be judged */
    size_t judged, untold, useless; /* useless: no chip takes the binary */
    epctx_error why;                /* of the worst one, or of the first that could not be told */
    struct {
        epctx_str source, architecture;
        const binary_context *context;
    } seen[CHIP_SEEN]; /* the last nodes: of equal ones the first is told */
    size_t seen_count;
    uint64_t told[CHIP_SEEN]; /* the last lines, by their hash: equal ones are told once */
    size_t told_count;
} chip_work;

static void take_verdict(chip_work *work, const chip_verdict *verdict) {
    const epctx_compat compat = verdict->compat;
    const bool told = compat != EPCTX_COMPAT_NOT_APPLICABLE;
    if (told ? compat > work->worst : work->worst == 0 && work->untold == 0)
        work->why = verdict->why;
    if (told && compat > work->worst) work->worst = compat;
    work->judged += told;
    work->useless += verdict->why.status == EPCTX_ERR_CONTEXT;
    work->untold += !told;
}

/* -- for people and programs -- */

static void json_verdict(json_writer *w, epctx_str ep, const chip_verdict *verdict) {
    static const char *const words[] = {NULL, "binary", "compatibility", "hardware_architecture"};
    json_object(w, NULL, JSON_INLINE);
    json_str(w, "ep", ep);
    check_json_compat(w, verdict->compat);
    json_text(w, "by", words[verdict->by]);
    json_text(w, "told_by", verdict->told_by);
    json_text(w, "why", verdict->why.message);
    json_text(w, "contradiction", verdict->denied[0] != '\0' ? verdict->denied : NULL);
    json_end(w);
}

static void put_by(epctx_str ep, const chip_verdict *verdict) {
    if (verdict->by == BY_BINARY) printf(" (by the binary, as %s tells)", verdict->told_by);
    if (verdict->by == BY_NODE) fputs(" (only by hardware_architecture)", stdout);
    if (verdict->by != BY_STRING) return;
    fputs(" (only by " EPCTX_COMPAT_PREFIX, stdout);
    cli_put(stdout, ep);
    putchar(')');
}

/* Whether an equal one was told, of the last ones. */
static bool is_told(chip_work *work, epctx_str ep, const chip_verdict *verdict) {
    const size_t last = work->told_count < CHIP_SEEN ? work->told_count : CHIP_SEEN;
    uint64_t hash = epctx_hash(ep.data, ep.size, (uint64_t)verdict->compat);
    size_t i;
    hash = epctx_hash(verdict->why.message, strlen(verdict->why.message), hash);
    hash = epctx_hash(verdict->denied, strlen(verdict->denied), hash ^ (uint64_t)verdict->by);
    for (i = 0; i < last; i++)
        if (work->told[i] == hash) return true;
    work->told[work->told_count++ % CHIP_SEEN] = hash;
    return false;
}

static void put_verdict(chip_work *work, epctx_str ep, const chip_verdict *verdict) {
    if (is_told(work, ep, verdict)) return;
    if (work->check->json) {
        json_verdict(work->check->out, ep, verdict);
        return;
    }
    cli_put(stdout, ep);
    printf(": %s: ", check_compat_name(verdict->compat));
    cli_put(stdout, epctx_str_of(verdict->why.message));
    put_by(ep, verdict);
    if (verdict->denied[0] != '\0') fputs("\n    contradiction: ", stdout);
    cli_put(stdout, epctx_str_of(verdict->denied));
    putchar('\n');
}

/* -- one node -- */

/* The string of a node's EP, or NULL. */
static const epctx_compat_entry *entry_of(const epctx_state *state, epctx_str source) {
    const epctx_profile *profile = epctx_profile_of(source);
    const epctx_compat_entry *found = NULL;
    size_t i;
    for (i = 0; i < state->compat_count; i++) {
        const epctx_compat_entry *entry = &state->compat[i];
        if (epctx_str_eq(entry->ep, source)) return entry;
        if ((profile->traits & EPCTX_TRAIT_ANY_EP) == 0 && epctx_profile_of(entry->ep) == profile)
            found = entry;
    }
    return found;
}

/* What the model says otherwise than the binary, which is right. */
static void note_denied(const epctx_epnode *ep, const epctx_compat_entry *entry,
                        const binary_context *context, chip_verdict *verdict) {
    const epctx_profile *profile = context->profile;
    char text[224];
    epctx_text out = epctx_text_of(verdict->denied, sizeof verdict->denied);
    if (entry != NULL &&
        chip_denies_string(profile, &context->facts, entry->value, text, sizeof text))
        epctx_text_put_format(&out, EPCTX_COMPAT_PREFIX "%S %s", &entry->ep, text);
    else if (chip_denies_node(profile, &context->facts, ep->hardware_architecture, text,
                              sizeof text))
        epctx_text_put_format(&out, "hardware_architecture %s", text);
}

/* False: the binary does not tell enough; `verdict` says why. */
static bool judge_binary(const chip_work *work, const epctx_epnode *ep,
                         const epctx_compat_entry *entry, const binary_context *context,
                         chip_verdict *verdict) {
    if (context == NULL) return false;
    if (binary_check(&context->facts, context->profile, &verdict->why) != EPCTX_OK) {
        verdict->compat = EPCTX_COMPAT_UNSUPPORTED;
        epctx_blame(&verdict->why, work->check->file, &ep->name, context->place.attribute);
    } else {
        verdict->compat =
            chip_fits_binary(&work->here, context->profile, &context->facts, &verdict->why);
        note_denied(ep, entry, context, verdict);
    }
    verdict->by = BY_BINARY;
    verdict->told_by = context->facts.told_by;
    return verdict->compat != EPCTX_COMPAT_NOT_APPLICABLE || verdict->denied[0] != '\0';
}

/* By the EP's string, and where that tells nothing by the node's own word. */
static void judge_words(const chip_work *work, const epctx_epnode *ep,
                        const epctx_compat_entry *entry, chip_verdict *verdict) {
    const epctx_profile *profile = epctx_profile_of(ep->source);
    memset(verdict, 0, sizeof *verdict);
    if (entry != NULL)
        verdict->compat = chip_fits_string(&work->here, profile, entry->value, &verdict->why);
    if (verdict->compat != EPCTX_COMPAT_NOT_APPLICABLE) verdict->by = BY_STRING;
    if (verdict->compat != EPCTX_COMPAT_NOT_APPLICABLE ||
        (entry != NULL && ep->hardware_architecture.size == 0))
        return;
    verdict->compat =
        chip_fits_node(&work->here, profile, ep->hardware_architecture, &verdict->why);
    if (verdict->compat != EPCTX_COMPAT_NOT_APPLICABLE) verdict->by = BY_NODE;
}

static bool tells_target(const binary_context *context) {
    return context->facts.chip_count > 0 || context->facts.architecture.size > 0;
}

/* By the binary, else by what the model says of it. */
static void judge_node(const chip_work *work, const epctx_epnode *ep, const binary_context *context,
                       chip_verdict *verdict) {
    const epctx_compat_entry *entry = entry_of(work->state, ep->source);
    chip_verdict words;
    memset(verdict, 0, sizeof *verdict);
    if (judge_binary(work, ep, entry, context, verdict)) return;
    judge_words(work, ep, entry, &words);
    /* Of two that cannot be told the binary's reason is the better one. */
    if (context != NULL && words.compat == EPCTX_COMPAT_NOT_APPLICABLE && tells_target(context)) {
        verdict->by = BY_NOTHING;
        verdict->told_by = NULL;
    } else {
        *verdict = words;
    }
}

/* -- all nodes -- */

/* A secondary node has the binary of its EP's primary one. */
static bool is_seen(chip_work *work, const epctx_epnode *ep, const binary_context *context) {
    const size_t last = work->seen_count < CHIP_SEEN ? work->seen_count : CHIP_SEEN;
    size_t i;
    for (i = 0; i < last; i++)
        if (epctx_str_eq(work->seen[i].source, ep->source) &&
            ((epctx_str_eq(work->seen[i].architecture, ep->hardware_architecture) &&
              context == work->seen[i].context) ||
             (ep->main_context != 1 && context == NULL)))
            return true;
    i = work->seen_count++ % CHIP_SEEN;
    work->seen[i].source = ep->source;
    work->seen[i].architecture = ep->hardware_architecture;
    work->seen[i].context = context;
    return false;
}

/* The next EPContext node of the chosen EP that can be read, and its own context or NULL. */
static bool next_node(const chip_work *work, epctx_walk *walk, epctx_epnode *ep,
                      const binary_context **context) {
    epctx_node_view node;
    epctx_error ignored;
    while (epctx_walk_epnode(walk, &node)) {
        if (!epctx_view_is_epnode(&node) ||
            epctx_view_read_epnode(&node, ep, &ignored) != EPCTX_OK ||
            !cli_is_ep(ep->source, work->check->ep))
            continue;
        *context = binary_context_of(&work->check->contexts, &node, ep);
        return true;
    }
    return false;
}

static bool is_of_kind(const chip_work *work, const epctx_epnode *ep,
                       const binary_context *context) {
    const epctx_profile *profile = epctx_profile_of(ep->source);
    return chip_is_of(&work->here, profile, ep->hardware_architecture) ||
           (context != NULL && chip_is_of(&work->here, profile, context->facts.architecture));
}

/* Each node by its EP. */
static void judge_nodes(chip_work *work, const epctx_model *model) {
    const binary_context *context;
    epctx_epnode ep;
    epctx_walk walk;
    epctx_walk_begin(&walk, model);
    while (!work->is_known && next_node(work, &walk, &ep, &context))
        work->is_known = is_of_kind(work, &ep, context);
    epctx_walk_begin(&walk, model);
    while (next_node(work, &walk, &ep, &context)) {
        chip_verdict verdict;
        if (is_seen(work, &ep, context)) continue;
        if (work->is_known && !is_of_kind(work, &ep, context)) {
            memset(&verdict, 0, sizeof verdict);
            epctx_fail(&verdict.why, EPCTX_ERR_VERSION,
                       "not judged: runs on another kind of chip (--against compares its string)");
            put_verdict(work, ep.source, &verdict);
            continue;
        }
        judge_node(work, &ep, context, &verdict);
        take_verdict(work, &verdict);
        put_verdict(work, ep.source, &verdict);
    }
}

static int judge(chip_work *work, const epctx_model *model) {
    epctx_compat compat;
    char text[160];
    size_t i;
    chip_describe(&work->here, text, sizeof text);
    if (work->check->json) {
        check_begin_json(work->check);
        json_text(work->check->out, "chip", text);
        json_array(work->check->out, "entries", JSON_HANGING);
    } else {
        fputs("chip ", stdout);
        cli_put(stdout, epctx_str_of(text));
        putchar('\n');
    }
    for (i = 0; i < work->state->compat_count; i++)
        if (cli_is_ep(work->state->compat[i].ep, work->check->ep))
            check_put_entry(work->check, &work->state->compat[i]);
    if (work->check->json) {
        json_end(work->check->out);
        json_array(work->check->out, "verdicts", JSON_HANGING);
    }
    judge_nodes(work, model);
    if (work->judged + work->untold == 0)
        epctx_fail(&work->why, EPCTX_ERR_NOT_FOUND, "no EPContext node%s",
                   work->check->ep != NULL ? " of this EP" : "");
    /* One that does not fit decides; else all must be told. */
    compat = work->worst == EPCTX_COMPAT_UNSUPPORTED || work->untold == 0
                 ? work->worst
                 : EPCTX_COMPAT_NOT_APPLICABLE;
    if (work->check->json) {
        json_end(work->check->out);
        check_json_compat(work->check->out, compat);
        json_text(work->check->out, "why", work->why.message);
        info_end(&work->check->where);
        return check_code_of(work->check, compat);
    }
    puts(work->useless > 0                    ? "cannot be used on any chip: see its binary above"
         : compat == EPCTX_COMPAT_OPTIMAL     ? "fits"
         : compat == EPCTX_COMPAT_UNSUPPORTED ? "does not fit: compile for this chip"
         : compat == EPCTX_COMPAT_PREFER_RECOMPILATION
             ? "runs, but was not made for this chip: compile again for speed"
             : "cannot be told");
    if (work->judged + work->untold == 0) puts(work->why.message);
    if (compat != EPCTX_COMPAT_UNSUPPORTED && work->judged > 0 && work->here.is_qualcomm)
        puts("note: versions of SDK and driver were not compared (--against does), and VTCM only "
             "where\n      the model tells it");
    return check_code_of(work->check, compat);
}

int check_chip(check_work *work, const epctx_model *model, const epctx_state *state) {
    chip_work judged;
    memset(&judged, 0, sizeof judged);
    judged.check = work;
    judged.state = state;
    chip_read(work->chip, &judged.here);
    return judge(&judged, model);
}
