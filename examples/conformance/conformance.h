/* conformance.h - epctx-conformance: the rules of ONNX Runtime's documents, tried on any plugin EP.
 *
 * main.c runs experiments, each in a process of its own that loads ONNX Runtime (ORT) and the EP:
 * what crashes or hangs there is a result like any other. An experiment judges rules; what it finds
 * goes onto a board in shared memory, from which report.c makes the report. Nothing in here knows
 * an EP: what it claims is asked (session.c) and models are made of that (models.c).
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <onnxruntime_c_api.h>

#include "epctx.h"
#include "ort/driver.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- rules */

typedef struct rule {
    const char *id;
    const char *words;
} rule;

extern const rule rules[];
extern const size_t rule_count;

/* ------------------------------------------------------------------- board */

/* NOT_JUDGED: this machine, ONNX Runtime or an earlier failure is in the way, not the EP. */
typedef enum verdict { NOT_SEEN, NOT_APPLICABLE, PASSED, NOT_JUDGED, FAILED } verdict;
enum { NO_MODEL = -1 };

typedef struct finding {
    size_t rule;
    const char *experiment;
    int model; /* of the user's, or NO_MODEL */
    verdict verdict;
    bool blocked;      /* not judged, because of board.blocker */
    const char *lacks; /* what again.py would need to show the failure; "": nothing */
    char text[600];    /* of a rule that passed: a remark, or "" */
} finding;

enum { MAX_FINDINGS = 4000, MAX_FACTS = 300, OP = 40, NAME = 200 };

/* How values between nodes are made: what an EP of quantized networks alone would claim, too. */
typedef enum form {
    FORM_FLOAT,
    FORM_QDQ,  /* uint8 between floats: a QuantizeLinear and a DequantizeLinear behind each node */
    FORM_INT8, /* int8, also the graph's ends: nodes between DequantizeLinear and QuantizeLinear */
    FORM_GIVEN /* a model of the user, and what can be made of it: nothing else is claimed */
} form;

/* What the EP turned out to be (session.c). */
typedef struct ep_facts {
    char name[NAME], vendor[NAME], version[NAME];
    bool device;       /* there is one */
    bool is_virtual;   /* which shows itself only where virtual devices are allowed */
    bool runs;         /* what it compiled: a virtual device may refuse */
    form form;         /* of the models that it takes */
    int given;         /* which of the user's models, FORM_GIVEN */
    bool lone;         /* one node and no other behind it: chains are one node long */
    bool whole;        /* all nodes of the chain, also those at the graph's ends */
    size_t chain;      /* nodes that it claims of the chain */
    double session;    /* seconds that one took, with the EP */
    char unary[OP];    /* operators that it claims; "": none */
    char weighted[OP]; /* with a constant second input */
    char binary[OP];
    char foreign[OP];   /* one that it leaves to the CPU */
    bool dynamic;       /* claims nodes with open dimensions */
    bool contexts;      /* gives EPContext nodes */
    bool files, embeds; /* with embed mode 0, 1 */
    bool compatibility; /* writes a compatibility string */
    size_t parts;       /* EPContext nodes of MODEL_ISLAND; 0: not known */
    bool shares;        /* several models, one binary */
    bool reads, writes; /* uses the application's callbacks for context data */
    /* Why not: */
    char no_device[600], no_claim[600], no_runs[600], no_contexts[600], no_callbacks[600];
} ep_facts;

typedef struct fact {
    char name[80], text[120];
} fact;

/* What keep.c knows of a session, or compilation, and its last run. */
typedef enum session_end { END_DIED, END_REFUSED, END_DONE } session_end;
typedef enum run_end { RUN_NONE, RUN_WRONG, RUN_RIGHT } run_end;
typedef struct last_session {
    session_end end;
    run_end run;
    int code;         /* ORT's, */
    char said[600];   /* and its message */
    const char *more; /* what the kept program cannot do; "" */
    bool writes;      /* by the application's callback */
    size_t blobs;     /* kept beside it */
} last_session;

typedef struct board {
    ep_facts ep;
    size_t count;
    finding findings[MAX_FINDINGS];
    size_t fact_count;
    fact facts[MAX_FACTS]; /* reported, not judged: times, sizes */
    /* Of the experiment that runs: */
    const char *experiment;
    int model;                  /* of the user's, that it tries, or NO_MODEL */
    bool returned;              /* it came to its end: nobody else ended the process */
    const char *step;           /* that the process is in; NULL: none of those below */
    bool blocked;               /* what is not judged now is so because of the blocker */
    char registered[NAME + 10]; /* as what the library is */
    char judging[32];           /* the rule that a crash would break */
    char doing[300];            /* and what the EP is asked to do */
    char gave_up[600];          /* why the rest of it is not applicable; "" */
    const char *beside; /* what it does besides sessions one after the other; NULL: nothing */
    size_t sessions; /* and compilations that it has made; of the last one, if failures are kept: */
    last_session last;
    bool platform; /* the EP has said that this machine cannot do what it was asked */
    /* What others need: */
    const char *hung;    /* the step of opening the EP that did not return; NULL: all did */
    const char *hung_in; /* that experiment */
    bool probed;         /* the probe came to its end */
    bool probing;        /* the experiment that runs is the probe */
    const rule *blocker; /* what the probe failed at, and needed for all others; NULL: nothing */
} board;

/* Steps of opening an EP: who hangs in one does so in each experiment. */
extern const char step_load[], step_register[];
/* And what ORT does in a session. */
extern const char step_session[], step_compile[], step_run[];
/* For board.beside. */
extern const char several_sessions[];

/* What the user asked for. */
enum { MAX_MODELS = 64 };
typedef struct request {
    const char *library;      /* absolute, as it was given: a link stays one */
    const char *name;         /* of the EP; NULL: the first of the library */
    const char *registration; /* what its applications register it as; NULL: nothing is known */
    ort_ep_options options;
    const char *models[MAX_MODELS]; /* absolute */
    const char *words[MAX_MODELS];  /* as they were given */
    size_t model_count;
    const char *keep;  /* a folder for what rules fail on; NULL: none */
    double time_limit; /* seconds for one experiment */
    double tolerance;  /* of the user, for ort_relative; 0: the suite's */
} request;

/* What is tried, and what was found: main.c makes it, and each experiment works with a copy. */
typedef struct trial {
    request wanted;
    char folder[PATH_MAX + 24]; /* of the experiment */
    /* What keep.c does with sessions and failures; NULL: nothing is kept. */
    void (*seen)(const ort_spec *spec, const ort_output *to);
    void (*done)(const ort_spec *spec, bool ok);
    void (*ran)(const struct trial *t, const char *reference, uint32_t seed, bool ok);
    /* Returns what the kept program lacks to show it; "": nothing. */
    const char *(*failed)(const struct trial *t, const char *rule_id, const char *text);
    board *board; /* shared with main.c's process */
    /* ORT's last code and message, "10: ...", for texts: filled in when a text is made, after the
     * arguments of the call. */
    char answer[4200];
    size_t log_from;         /* where ort_log goes on with what is being judged */
    char paths[8][PATH_MAX]; /* of in_folder */
    unsigned path_count;
    char registration[NAME + 10]; /* of registration_of */
} trial;

/* ---------------------------------------------------------------- verdicts */

#if defined(__GNUC__)
#define LIKE_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define LIKE_PRINTF(text, first)
#endif

/* An experiment names the rule, and what it does, before the EP can crash on it. */
void judging(trial *t, const char *rule_id, const char *format, ...) LIKE_PRINTF(3, 4);
/* Notes a verdict on `ids`, one rule or several, separated by blanks: passed if `ok`, else failed
 * with the text, which says what was expected and what was found. Of several only the first one
 * fails, and the others are not judged: they saw the same event. What the EP says to be the
 * platform's fault is judged in no rule. Returns `ok`. */
bool judge(trial *t, const char *ids, bool ok, const char *format, ...) LIKE_PRINTF(4, 5);
void holds(trial *t, const char *ids);
/* Passed, but users may be hurt. */
void remark(trial *t, const char *ids, const char *format, ...) LIKE_PRINTF(3, 4);
void does_not_apply(trial *t, const char *ids, const char *format, ...) LIKE_PRINTF(3, 4);
void cannot_judge(trial *t, const char *ids, const char *format, ...) LIKE_PRINTF(3, 4);
/* Whether a message says that this machine is in the way: another library is missing, or the device
 * that it would need. */
bool is_platform(const char *text);
/* The rules that are not judged yet do not apply, because of this. Returns false. */
bool give_up(trial *t, const char *format, ...) LIKE_PRINTF(2, 3);
void tell_fact(trial *t, const char *name, const char *format, ...) LIKE_PRINTF(3, 4);

/* The next of a list with blanks between; false at the end. */
bool next_id(const char **list, size_t *index);
void put_finding(trial *t, size_t index, verdict v, const char *text);
/* Of an experiment that is over: what it did not come to, since finding `from`. */
void put_rest(trial *t, const char *ids, size_t from, verdict v, const char *why);

/* What an experiment needs of the EP; without it its rules do not apply. */
enum {
    NEEDS_DEVICE = 1,
    NEEDS_CLAIM = 2,      /* it claims something */
    NEEDS_CONTEXTS = 4,   /* it gives EPContext nodes */
    NEEDS_FILES = 8,      /* in files */
    NEEDS_EMBEDDING = 16, /* in the model */
    NEEDS_FOREIGN = 32,   /* it leaves something to the CPU */
    NEEDS_SHARING = 64,
    FINDS_FACTS = 128, /* others need what it finds: it always runs */
    ONLY_LOADS = 256,  /* the library: it is not registered */
    NEEDS_RUNS = 512,
    NEEDS_PARTS = 1024, /* it takes several parts of a model, and the CPU what is between */
    EACH_MODEL = 2048,  /* once for each of the user's models */
    NEEDS_READS = 4096, /* it declares that it uses the callback for context data */
    NEEDS_WRITES = 8192
};

typedef struct experiment {
    const char *name;
    void (*run)(trial *t);
    unsigned needs;
    const char *rules; /* that it judges, blanks between */
} experiment;

extern const experiment factory_experiments[], registration_experiments[], session_experiments[],
    identity_experiments[], context_experiments[], loading_experiments[], damage_experiments[],
    buffer_experiments[], weightless_experiments[], sharing_experiments[], model_experiments[];

/* ------------------------------------------------------------------ report */

typedef struct outcome {
    verdict verdict;
    const finding *shown; /* NULL: none */
} outcome;

/* Of all findings about a rule: one failure counts. */
outcome outcome_of(const trial *t, size_t rule_index);
/* The rule to begin with: others fail, or cannot be judged, because it does. rule_count: none, or
 * it fails alone. */
size_t root_of(const trial *t);
/* Of all findings about one of the user's models: one failure counts; without one, what could not
 * be judged leaves it without a verdict. */
verdict verdict_of_model(const trial *t, size_t model);
void report_text(const trial *t, FILE *out);
void report_json(const trial *t, FILE *out);
void report_junit(const trial *t, FILE *out);
void report_badge(const trial *t, FILE *out); /* what shields.io makes an image of */
void report_rules(FILE *out);

/* ------------------------------------------------------------------ models */

/* All small, of static shapes, made of operators that the EP claims. */
typedef enum model_kind {
    MODEL_CHAIN,   /* S-S-S */
    MODEL_SUB,     /* two inputs of different shapes, two outputs, order-sensitive */
    MODEL_ISLAND,  /* S-S-B-S-S-B-S-S, B left to the CPU */
    MODEL_FAN,     /* a value of S is graph output, goes to S and to B */
    MODEL_WEIGHTS, /* weights in the model */
    MODEL_WEXT,    /* in a file, in a subfolder */
    MODEL_CONST,   /* no graph input */
    MODEL_SCALAR,  /* rank 0 */
    MODEL_DYN,     /* an open batch */
    MODEL_ZERO,    /* a dimension of 0 */
    MODEL_NAMES,   /* odd names of nodes and values */
    MODEL_IF,      /* S in both branches */
    MODEL_DOUBLE,  /* float64, rank 7 */
    MODEL_CONSTS,  /* constants of lower rank, on both sides */
    MODEL_OTHER,   /* as CHAIN, other numbers: another model's binary does not fit */
    MODEL_PAIR,    /* as WEIGHTS, with other names */
    MODEL_NONE,    /* only B */
    MODEL_KINDS
} model_kind;

extern const char *const model_names[MODEL_KINDS];

/* False: the EP claims nothing to make it of, or (with ort_text) an error. */
bool make_model(trial *t, model_kind kind, const char *path);
/* Moves the larger initializers of a model that will be at `path` beside it, into data/weights.bin.
 * False: there are none, or an error, which is in `error`. */
bool make_external(epctx_model *model, const char *path, epctx_error *error);
/* The user's model that the EP takes, changed as `kind` says. */
bool can_change(model_kind kind);
bool make_given(trial *t, model_kind kind, const char *path);
/* Whether there is anything that models can be made of. */
bool claims_any(const ep_facts *ep);
/* Two of the same operator (one of a lone one), to see whether the EP takes it. */
bool make_probe(trial *t, form how, const char *op, const char *path);
bool make_probe_binary(trial *t, form how, const char *op, const char *path);
/* Whether NaN and infinities come through it. */
bool is_sum_or_product(const char *op);

/* One node of another domain. */
bool make_custom(trial *t, const char *domain, const char *op, const char *path);

extern const char *const unary_ops[],
    *const weighted_ops[], *const binary_ops[], *const foreign_ops[]; /* NULL at the end */

/* ------------------------------------------------------------------- tools */

/* Of the experiment: a folder of its own, with src/ and out/ in it; it is the current one. */
const char *in_folder(trial *t, const char *name); /* eight results are valid at a time */
void make_folder(const char *path);
bool copy_file(const char *from, const char *to);
bool write_file(const char *path, const void *data, size_t size);
/* malloc; NULL: not there. */
uint8_t *read_file(const char *path, size_t *size);
bool file_exists(const char *path);
size_t list_files(const char *folder, char names[][256], size_t room); /* sorted, without ".." */
void remove_tree(const char *path);
double seconds_now(void);
/* How often what takes `each` seconds is tried, if there is a reason for `most` times: slow EPs are
 * tried less often, but `least` times. */
size_t affordable(double each, size_t least, size_t most);
size_t memory_now(void);  /* resident bytes of this process */
size_t threads_now(void); /* of this process: to compare with each other */

/* What ort_relative is, if the user does not say: `usual`. */
void allow(const trial *t, double usual);
/* Loads ORT, registers the library; `facts.name` is looked for. */
bool open_ep(trial *t);
void *load_ep(trial *t); /* with dlopen; NULL: dlerror() */
bool register_ep(trial *t, const char *registration);
/* What to register the library as: the name that its applications give it, else `name`, with an
 * end that allows virtual devices if the EP's device needs that; valid until the next call. */
const char *registration_of(trial *t, const char *name);
const char *virtual_registration_of(trial *t, const char *name);
/* Whether `device` is the EP's: under another registration name some EPs have another name. */
bool is_own_device(const trial *t, const OrtEpDevice *device);
bool unregister_ep(const char *registration);
const OrtEpDevice *find_device(trial *t);

/* A session with the EP and the CPU, the graph as it is. */
ort_spec spec_of(trial *t, const char *path);
bool session_opens(const ort_spec *spec); /* and closes */
/* What sessions after each other leave, when a third of them has warmed up. */
typedef struct remains {
    size_t memory; /* twice what the second or the last third leaves, whichever is less */
    size_t files, threads;
} remains;
/* Each of them opens, or with `opens` false is refused; else false. */
bool sessions_leave(const ort_spec *spec, bool opens, size_t count, remains *out);
/* Judges what `count` sessions of `ours` leave by what those of the CPU EP do. */
void judge_left(trial *t, const char *what, const ort_spec *ours, bool opens, const ort_spec *cpu,
                size_t count);
/* Runs `session` and the CPU EP alone on `reference`, with the same inputs. */
bool equals_cpu(const trial *t, OrtSession *session, const char *reference, uint32_t seed);
/* A session from the spec gives what the CPU EP gives for `reference`. */
bool runs_as(const ort_spec *spec, const char *reference);

/* What happens to a context model that may be damaged. */
typedef enum fate { FATE_INVALID_GRAPH, FATE_OTHER_CODE, FATE_RIGHT, FATE_WRONG } fate;
fate fate_of(const ort_spec *spec, const char *reference);

bool generate(trial *t, const char *source, const char *out, bool embed);
bool generate_by_options(trial *t, const char *source, const char *const *more);

/* The file that the first primary node names, in `folder`. */
bool binary_of(const char *model, const char *folder, char *out, size_t size);
/* Copies a context model with an attribute of all its EPContext nodes changed: `value` NULL removes
 * it. */
bool change_attr(const char *from, const char *to, const char *attr, const char *value,
                 size_t size);

/* ---------------------------------------------------- callbacks for context data */

enum { MOST_KEYS = 16, KEY = 1024, SPARE = 1 << 20 };

typedef struct stored_data {
    char key[KEY];
    uint8_t *data;
    size_t size, reads;
} stored_data;

/* What the application has behind its callbacks. */
typedef struct store {
    stored_data list[MOST_KEYS];
    size_t count, writes, reads;
    char asked[KEY];   /* the last key */
    OrtErrorCode code; /* ORT_OK, or both callbacks fail */
    const char *text;  /* with these words */
    size_t spare;      /* bytes that a read callback allocates and does not tell of */
} store;

void store_free(store *s);
stored_data *store_find(store *s, const char *key, size_t length); /* NULL: there is none */
bool store_keep(store *s, const char *key, const void *data, size_t size);
/* For ort_spec.more and ort_output.more, with a store. */
void set_reader(OrtSessionOptions *options, void *user);
void set_writer(OrtModelCompilationOptions *options, void *user);

/* ------------------------------------------------------------- what is kept */

/* What ORT said, for the board. */
void note_answer(const trial *t, bool ok);
/* trial.seen, .done and .ran: they write down, beside the experiment's folder, what again.py does,
 * and put what came of it onto the board. */
void note_session(const ort_spec *spec, const ort_output *to);
void note_end(const ort_spec *spec, bool ok);
void note_run(const trial *t, const char *reference, uint32_t seed, bool ok);
/* At the beginning and the end of an experiment. */
void forget_sessions(const trial *t);
/* request.keep gets a folder of the rule's name: the experiment's files and again.py. Returns what
 * again.py lacks to show the failure; "": nothing. */
const char *keep_failure(const trial *t, const char *rule_id, const char *text);

/* ----------------------------------------------------- a context model, made */

/* src/m.onnx, and out/m_ctx.onnx from it. False: the experiment gives up. */
bool prepare_context(trial *t, model_kind kind, bool embed);
/* ref/m.onnx, the same source, where ORT cannot look for its files. */
const char *keep_reference(trial *t);
/* As spec_of, and a session that would compile is refused. */
ort_spec strict_spec(trial *t, const char *path);
/* The session has the outputs of ref/m.onnx; `what` it is. */
void judge_load(trial *t, const char *ids, const ort_spec *spec, const char *what);

/* "%.*s" of an epctx_str. */
#define STR(s) (int)(s).size, (s).data

#endif
