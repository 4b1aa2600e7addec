/* epctx verify: does an EP compute what ONNX Runtime's CPU EP computes, compiled in the session and
 * loaded from a context? */
#define _GNU_SOURCE
#include "compile/compile.h"
#include "core/given.h"
#include "verify_model.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT = 600, CODE_DIFFERS = 1, CODE_FAILED = 3 };
/* ROUNDED: the CPU's with weights and inputs in bfloat16, only when an output differs. */
enum { CPU, JIT, CONTEXT, RUNS, ROUNDED = RUNS, ALL_RUNS };

static const char *const run_names[ALL_RUNS] = {"CPU", "JIT", "context", "rounded"};

/* What kernels may differ by that compute the same in another order, by the type that they compute
 * in. */
typedef struct tolerance {
    int32_t elem_type;
    double rtol, atol; /* the latter: times 1 + the largest element */
} tolerance;

static const tolerance tolerances[] = {
    {EPCTX_ONNX_FLOAT, 1e-3, 1e-5},
    {EPCTX_ONNX_FLOAT16, 5e-3, 1e-3},
    {EPCTX_ONNX_BFLOAT16, 4e-2, 1e-2},
    {EPCTX_ONNX_DOUBLE, 1e-9, 1e-11},
};

typedef struct settings {
    anyep_settings any;
    const char *model, *context, *source, *input_folder;
    uint64_t seed;
    double rtol, atol, cosine; /* below 0: not given */
    int optimization;          /* of all runs, and of the context */
    bool embed, json;
} settings;

/* One of the runs. */
typedef struct one_run {
    anyep_result result;
    bool tried, done;
    char path[EPCTX_PATH_MAX + 32];
    tensor_list inputs, outputs;
    char problem[5200];
} one_run;

/* An output of one run beside the same of another. */
typedef struct difference {
    bool found;                      /* the other run has it, with this type and shape */
    bool numbers;                    /* otherwise bytes are compared */
    size_t count, beyond, first;     /* elements; beyond the tolerance; the first of these */
    double max_abs, max_rel, cosine; /* NaN: there is none */
    double rms;                      /* of the differences, as far as they are finite */
    double got, want;                /* at `first` */
    double rtol, atol;               /* what was allowed */
    bool drawn;                      /* it depends on drawn numbers: nothing to compare */
    bool bf16;                       /* as far off as bfloat16 makes it */
    double bf16_abs;                 /* which is this far */
    bool ok;
} difference;

typedef struct work {
    settings set;
    epctx_arena arena;
    uint64_t threads; /* 0: as many as ORT likes */
    char folder[EPCTX_PATH_MAX];
    one_run runs[ALL_RUNS];
    int32_t coarsest;    /* type of floats in the model */
    epctx_map drawn;     /* values that depend on drawn numbers */
    char drawing[300];   /* a node that draws, or "" */
    const char *relaxed; /* what the reference did without, or NULL */
    bool differs, failed;
    char *open_inputs; /* NULL or "": every input has a fixed shape */
    json_writer *json; /* NULL: for people */
} work;

/* ---------------------------------------------------------------- comparing */

static bool same_shape(const epctx_value *a, const epctx_value *b) {
    return a->elem_type == b->elem_type && a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0);
}

static const session_value *find(const tensor_list *list, epctx_str name) {
    size_t i;
    for (i = 0; i < list->count; i++)
        if (epctx_str_eq(list->values[i]->type.name, name)) return list->values[i];
    return NULL;
}

static bool equal(double a, double b) {
    return !(a < b) && !(a > b) && isnan(a) == isnan(b); /* two NaNs are, too */
}

/* Sums are ordered differently: what is small beside the largest element may differ. A float32
 * output of a model that computes in a coarser type inside is no better than that. */
static void allow(const work *w, const session_value *want, difference *out) {
    const int32_t own = want->type.elem_type;
    const int32_t elem_type = own == EPCTX_ONNX_FLOAT ? w->coarsest : own;
    const tolerance *t = tolerances;
    double most = 0, b = 0;
    size_t i;
    for (i = 0; i < sizeof tolerances / sizeof *tolerances; i++)
        if (tolerances[i].elem_type == elem_type) t = &tolerances[i];
    for (i = 0; i < out->count; i++)
        if (tensors_element(want, i, &b) && fabs(b) > most && isfinite(b)) most = fabs(b);
    out->rtol = w->set.rtol >= 0 ? w->set.rtol : t->rtol;
    out->atol = w->set.atol >= 0 ? w->set.atol : t->atol * (1 + most);
}

static void note_beyond(difference *out, size_t i, double a, double b) {
    if (out->beyond++ > 0) return;
    out->first = i;
    out->got = a;
    out->want = b;
}

static void compare_floats(const session_value *got, const session_value *want, difference *out) {
    double dot = 0, size_a = 0, size_b = 0, squares = 0, a = 0, b = 0;
    size_t i;
    for (i = 0; i < out->count; i++) {
        double off;
        tensors_element(got, i, &a);
        tensors_element(want, i, &b);
        if (isfinite(a) && isfinite(b)) {
            dot += a * b;
            size_a += a * a;
            size_b += b * b;
            squares += (a - b) * (a - b);
        }
        if (equal(a, b)) continue;
        off = fabs(a - b);
        if (!(off <= out->max_abs)) out->max_abs = off;
        if (fabs(b) > 0 && !(off / fabs(b) <= out->max_rel)) out->max_rel = off / fabs(b);
        if (!(off <= out->atol + out->rtol * fabs(b))) note_beyond(out, i, a, b);
    }
    out->rms = out->count > 0 ? sqrt(squares / (double)out->count) : 0;
    out->cosine = size_a > 0 && size_b > 0   ? dot / sqrt(size_a) / sqrt(size_b)
                  : size_a > 0 || size_b > 0 ? 0
                                             : 1;
}

/* Integers are equal, or as far apart as --rtol and --atol allow. */
static void compare_integers(const settings *set, const session_value *got,
                             const session_value *want, difference *out) {
    size_t i;
    out->rtol = set->rtol >= 0 ? set->rtol : 0;
    out->atol = set->atol >= 0 ? set->atol : 0;
    compare_floats(got, want, out); /* for the figures */
    out->beyond = out->first = 0;
    for (i = 0; i < out->count; i++) {
        uint64_t a = 0, b = 0;
        bool below_a = false, below_b = false;
        double x = 0, y = 0, off;
        tensors_integer(got, i, &a, &below_a);
        tensors_integer(want, i, &b, &below_b);
        if (a == b && below_a == below_b) continue;
        tensors_element(got, i, &x);
        tensors_element(want, i, &y);
        off = below_a == below_b ? (double)(a > b ? a - b : b - a) : fabs(x - y);
        if (off > out->max_abs) out->max_abs = off;
        if (off > out->atol + out->rtol * fabs(y)) note_beyond(out, i, x, y);
    }
}

static void compare_bytes(const session_value *got, const session_value *want, difference *out) {
    const size_t width = got->size / (out->count > 0 ? out->count : 1);
    size_t i;
    out->cosine = NAN;
    for (i = 0; i < out->count; i++)
        if (memcmp(got->data + i * width, want->data + i * width, width) != 0 && out->beyond++ == 0)
            out->first = i;
}

static void compare(const work *w, const session_value *got, const session_value *want,
                    difference *out) {
    const settings *set = &w->set;
    const size_t width = epctx_elem_size(got->type.elem_type);
    uint64_t bits;
    double ignored;
    bool below;
    memset(out, 0, sizeof *out);
    out->found = want != NULL && same_shape(&got->type, &want->type);
    if (!out->found) return;
    out->count = got->size / width;
    out->numbers = out->count == 0 || tensors_element(got, 0, &ignored);
    out->drawn = epctx_map_get(&w->drawn, want->type.name) != EPCTX_MAP_NONE;
    if (!out->numbers) {
        compare_bytes(got, want, out);
    } else if (out->count > 0 && tensors_integer(got, 0, &bits, &below)) {
        compare_integers(set, got, want, out);
    } else {
        allow(w, want, out);
        compare_floats(got, want, out);
    }
    out->ok =
        out->beyond == 0 || out->drawn ||
        (set->cosine >= 0 && out->numbers && out->cosine >= set->cosine && isfinite(out->max_abs));
}

/* ---------------------------------------------------------------- running */

static anyep_job job_of(const work *w, anyep_work kind) {
    anyep_job job;
    memset(&job, 0, sizeof job);
    job.set = &w->set.any;
    job.work = kind;
    job.folder = w->folder;
    job.optimization = w->set.optimization;
    job.threads = w->threads > 0 ? (int)w->threads : -1;
    job.input_folder = w->set.input_folder;
    job.seed = w->set.seed;
    job.repeat = 1;
    return job;
}

static void fail_run(work *w, int which, const anyep_job *job, const char *what) {
    one_run *run = &w->runs[which];
    memcpy(run->problem, run->result.words, sizeof run->result.words);
    w->failed = true;
    anyep_tell(job, &run->result, what);
    cli_fail_file(w->set.model);
}

static void again(const anyep_job *job, one_run *run) {
    anyep_free(&run->result);
    anyep_do(job, &run->result);
}

/* What makes the reference exact must not be what makes ONNX Runtime refuse a legal model: without
 * optimizations most models have no kernels that saturate, and the others get them. */
static void relax(work *w, anyep_job *job, one_run *run) {
    const int optimization = w->set.optimization;
    const char *const *given = w->set.any.session;
    for (; given != NULL && *given != NULL; given += 2)
        if (strcmp(*given, "session.x64quantprecision") == 0) return;
    if (run->result.end == ANYEP_REFUSED && optimization != 0) {
        w->relaxed = "ONNX Runtime refuses the model with exact int8 kernels and optimizations: "
                     "all runs are without optimizations";
        w->set.optimization = job->optimization = 0;
        again(job, run);
    }
    if (run->result.end == ANYEP_REFUSED) {
        w->relaxed = "ONNX Runtime refuses the model with exact int8 kernels: those of its CPU EP "
                     "may saturate";
        w->set.optimization = job->optimization = optimization;
        w->set.any.exact = false;
        again(job, run);
    }
    if (run->result.end != ANYEP_OK) w->relaxed = NULL;
}

/* A run of `model`; the second and third take the first one's inputs. */
static void run_one(work *w, int which, const char *model) {
    one_run *run = &w->runs[which];
    anyep_job job = job_of(w, ANYEP_RUN);
    epctx_error error;
    if (cli_signals_waiting()) return;
    snprintf(run->path, sizeof run->path, "%s/%s.run", w->folder, run_names[which]);
    job.model = model;
    job.cpu = which == CPU;
    job.results = run->path;
    if (which != CPU && w->runs[CPU].done) job.inputs = w->runs[CPU].path;
    run->tried = true;
    anyep_do(&job, &run->result);
    if (which == CPU) relax(w, &job, run);
    if (run->result.end != ANYEP_OK) {
        fail_run(w, which, &job, run_names[which]);
        if (which == CONTEXT)
            given_tell_failed(model, anyep_ep_options(&w->set.any), w->set.any.session);
    } else if (tensors_restore(run->path, &w->arena, &run->inputs, &run->outputs, &error) !=
               EPCTX_OK) {
        snprintf(run->problem, sizeof run->problem, "%s", error.message);
        w->failed = true;
        cli_fail(&error);
    } else if (which != CPU && run->result.board->ep_nodes == 0) {
        snprintf(run->problem, sizeof run->problem,
                 "no node runs on the EP: the CPU EP would be compared with itself");
        w->failed = true;
        cli_fail_text("%s: %s", run_names[which], run->problem);
        cli_fail_file(w->set.model);
    } else {
        run->done = true;
        if (w->set.any.verbose) anyep_print_log(&job);
    }
}

/* The model at `path`, with its weights in bfloat16. */
static bool round_model(const char *model, const char *path) {
    epctx_model source;
    epctx_error error;
    const bool ok = cli_open(&source, model, &error) == EPCTX_OK &&
                    verify_round_weights(&source, path, &error) == EPCTX_OK;
    epctx_model_close(&source);
    return ok;
}

/* The context model: the given one, or compiled for now. */
static void run_context(work *w) {
    one_run *run = &w->runs[CONTEXT];
    anyep_job job = job_of(w, ANYEP_COMPILE);
    char path[EPCTX_PATH_MAX];
    anyep_model model;
    if (w->set.context != NULL) {
        run_one(w, CONTEXT, w->set.context);
        return;
    }
    if (cli_signals_waiting()) return;
    if (!anyep_context_path(w->folder, "context", w->set.model, path, sizeof path)) {
        w->failed = true;
        return;
    }
    model.source = w->set.model;
    model.output = path;
    job.models = &model;
    job.count = 1;
    job.embed = w->set.embed;
    run->tried = true;
    anyep_do(&job, &run->result);
    if (run->result.end != ANYEP_OK) {
        fail_run(w, CONTEXT, &job, "compiling a context");
        return;
    }
    anyep_free(&run->result);
    run_one(w, CONTEXT, path);
}

/* ---------------------------------------------------------------- report */

/* What rounding weights and inputs to bfloat16 makes of the reference; run once, if at all. */
static const one_run *run_rounded(work *w) {
    one_run *run = &w->runs[ROUNDED];
    const char *model = w->set.model;
    anyep_job job = job_of(w, ANYEP_RUN);
    char path[EPCTX_PATH_MAX + 32], values[EPCTX_PATH_MAX + 32];
    tensor_list inputs, outputs;
    epctx_error error;
    if (run->tried || cli_signals_waiting()) return run;
    run->tried = true;
    snprintf(path, sizeof path, "%s/rounded.onnx", w->folder);
    snprintf(values, sizeof values, "%s/rounded.in", w->folder);
    snprintf(run->path, sizeof run->path, "%s/rounded.run", w->folder);
    if (tensors_restore(w->runs[CPU].path, &w->arena, &inputs, &outputs, &error) != EPCTX_OK)
        return run;
    verify_round_values(&inputs);
    if (tensors_save(values, &inputs, &outputs, &error) != EPCTX_OK) return run;
    if (round_model(model, path)) model = path; /* else only the inputs */
    job.model = model;
    job.cpu = true;
    job.inputs = values;
    job.results = run->path;
    anyep_do(&job, &run->result);
    run->done = run->result.end == ANYEP_OK && tensors_restore(run->path, &w->arena, &run->inputs,
                                                               &run->outputs, &error) == EPCTX_OK;
    return run;
}

/* The difference is as large as that of rounding, and goes the same way: an EP that computes in
 * bfloat16 has the rounding of weights and inputs, and that of the values between. */
static void explain(work *w, const session_value *got, const session_value *want, difference *d) {
    const one_run *run = run_rounded(w);
    const session_value *coarse = run->done ? find(&run->outputs, want->type.name) : NULL;
    double dot = 0, ours = 0, its = 0, a = 0, b = 0, c = 0, most = 0;
    size_t i;
    if (coarse == NULL || !same_shape(&coarse->type, &want->type)) return;
    for (i = 0; i < d->count; i++) {
        tensors_element(got, i, &a);
        tensors_element(want, i, &b);
        tensors_element(coarse, i, &c);
        if (!isfinite(a) || !isfinite(b) || !isfinite(c)) return;
        dot += (a - b) * (c - b);
        ours += (a - b) * (a - b);
        its += (c - b) * (c - b);
        if (fabs(c - b) > most) most = fabs(c - b);
    }
    d->bf16 = its > 0 && ours <= 16 * its && its <= 16 * ours && dot >= 0.5 * sqrt(ours * its);
    d->bf16_abs = most;
}

static void print_place(const session_value *value, size_t index) {
    size_t place[64];
    const int32_t rank = value->type.rank < 64 ? value->type.rank : 64;
    int32_t i;
    for (i = rank - 1; i >= 0; i--) {
        const size_t dim = value->type.dims[i] > 0 ? (size_t)value->type.dims[i] : 1;
        place[i] = index % dim;
        index /= dim;
    }
    putchar('[');
    for (i = 0; i < rank; i++) printf("%s%zu", i > 0 ? "," : "", place[i]);
    putchar(']');
}

static void print_difference(const session_value *got, const session_value *want,
                             const difference *d) {
    printf("  %s '", d->drawn ? "random " : d->ok ? "ok     " : "DIFFERS");
    cli_put(stdout, got->type.name);
    putchar('\'');
    tensors_print_type(&got->type);
    if (!d->found) {
        fputs(want == NULL ? " is not there" : " has another type:", stdout);
        if (want != NULL) tensors_print_type(&want->type);
        putchar('\n');
        return;
    }
    if (d->numbers)
        printf(" max abs %.3g, max rel %.3g, cosine %.6f", d->max_abs, d->max_rel, d->cosine);
    if (d->beyond > 0 && !d->drawn) {
        printf("\n          %zu of %zu elements beyond the tolerance, first ", d->beyond, d->count);
        print_place(got, d->first);
        if (d->numbers) printf(": %.9g, expected %.9g", d->got, d->want);
    }
    if (d->bf16)
        printf("\n          as bfloat16 makes it: rounding weights and inputs to it changes this "
               "output by up to %.3g",
               d->bf16_abs);
    putchar('\n');
}

static void json_difference(json_writer *w, const session_value *got, const difference *d) {
    json_object(w, NULL, JSON_INLINE);
    json_str(w, "output", got->type.name);
    json_bool(w, "ok", d->ok);
    json_bool(w, "comparable", d->found);
    if (d->found) {
        json_uint(w, "elements", d->count);
        json_uint(w, "beyond", d->beyond);
        json_real(w, "max_abs", d->max_abs);
        json_real(w, "max_rel", d->max_rel);
        json_real(w, "cosine", d->cosine);
        json_real(w, "rtol", d->rtol);
        json_real(w, "atol", d->atol);
        json_bool(w, "random", d->drawn);
        json_bool(w, "bfloat16", d->bf16);
    }
    if (d->found && d->beyond > 0) {
        json_uint(w, "first", d->first);
        json_real(w, "found", d->got);
        json_real(w, "expected", d->want);
    }
    json_end(w);
}

static void report_pair(work *w, int which, int reference) {
    const one_run *a = &w->runs[which], *b = &w->runs[reference];
    size_t i;
    if (!a->done || !b->done) return;
    if (w->json != NULL) {
        json_object(w->json, NULL, JSON_INLINE);
        json_text(w->json, "run", run_names[which]);
        json_text(w->json, "reference", run_names[reference]);
        json_array(w->json, "outputs", JSON_INLINE);
    } else {
        printf("%s against %s\n", run_names[which], run_names[reference]);
    }
    for (i = 0; i < b->outputs.count; i++) { /* all that the reference has */
        const session_value *want = b->outputs.values[i];
        const session_value *got = find(&a->outputs, want->type.name);
        difference d;
        compare(w, want, got, &d);
        if (d.found) compare(w, got, want, &d);
        if (d.found && !d.ok && d.numbers && reference == CPU &&
            want->type.elem_type == EPCTX_ONNX_FLOAT)
            explain(w, got, want, &d);
        w->differs = w->differs || !d.ok;
        if (w->json != NULL)
            json_difference(w->json, want, &d);
        else
            print_difference(want, got, &d);
    }
    if (w->json == NULL) return;
    json_end(w->json);
    json_end(w->json);
}

static void report_runs(const work *w) {
    int i;
    for (i = 0; i < RUNS; i++) {
        const one_run *run = &w->runs[i];
        const anyep_board *board = run->result.board;
        if (!run->done) {
            printf("%-14s ", run_names[i]);
            cli_put(stdout, epctx_str_of(run->tried ? run->problem : "not tried"));
            putchar('\n');
        } else if (i == CPU) {
            printf("%-14s session %.1f ms, run %.3f ms\n", run_names[i], board->session_ms,
                   board->first_ms);
        } else {
            printf("%-14s %zu of %zu nodes on %s, session %.1f ms, run %.3f ms\n", run_names[i],
                   board->ep_nodes, board->nodes, anyep_eps_word(board), board->session_ms,
                   board->first_ms);
        }
    }
}

static void json_runs(const work *all) {
    json_writer *w = all->json;
    int i;
    json_array(w, "runs", JSON_HANGING);
    for (i = 0; i < RUNS; i++) {
        const one_run *run = &all->runs[i];
        const anyep_board *board = run->result.board;
        json_object(w, NULL, JSON_INLINE);
        json_text(w, "run", run_names[i]);
        json_bool(w, "done", run->done);
        if (run->done) {
            json_uint(w, "nodes", board->nodes);
            json_uint(w, "ep_nodes", board->ep_nodes);
            json_fixed(w, "session_ms", board->session_ms, 3);
            json_fixed(w, "run_ms", board->first_ms, 3);
        } else {
            json_text(w, "problem", run->problem);
        }
        json_end(w);
    }
    json_end(w);
}

static int report_all(work *w) {
    const anyep_board *board = NULL;
    int i;
    for (i = RUNS - 1; i > CPU && board == NULL; i--)
        if (w->runs[i].done) board = w->runs[i].result.board;
    if (w->set.json) {
        w->json = cli_json_begin(stdout);
        json_text(w->json, "model", w->set.model);
        if (board != NULL) anyep_json_ep(w->json, board);
        json_runs(w);
        if (w->relaxed != NULL) json_text(w->json, "relaxed", w->relaxed);
        json_array(w->json, "comparisons", JSON_HANGING);
    } else {
        printf("%-14s ", "model");
        cli_put(stdout, epctx_str_of(w->set.model));
        putchar('\n');
        if (board != NULL) anyep_print_ep(board);
        report_runs(w);
        if (w->relaxed != NULL) printf("%-14s %s\n", "note", w->relaxed);
        if (w->drawing[0] != '\0') {
            printf("%-14s ", "note");
            cli_put(stdout, epctx_str_of(w->drawing));
            fputs(" draws random numbers: what depends on it differs by nature\n", stdout);
        }
    }
    report_pair(w, JIT, CPU);
    report_pair(w, CONTEXT, CPU);
    report_pair(w, CONTEXT, JIT);
    if (w->set.json) {
        json_end(w->json);
        json_bool(w->json, "differs", w->differs);
        json_bool(w->json, "failed", w->failed);
        cli_json_end();
    }
    return w->failed ? CODE_FAILED : w->differs ? CODE_DIFFERS : CLI_OK;
}

/* ---------------------------------------------------------------- the command */

static bool read_tolerance(const char *option, const char *text, double *out) {
    char *end = NULL;
    *out = -1;
    if (text == NULL) return true;
    *out = strtod(text, &end);
    if (end != text && *end == '\0' && *out >= 0 && *out <= 1e30) return true;
    cli_misuse("%s: '%s' is not a non-negative number", option, text);
    return false;
}

static size_t short_size(epctx_str name) {
    return name.size < 120 ? name.size : 120;
}

/* What of the model tells how to compare. */
static bool look(work *w, const epctx_model *model, epctx_error *error) {
    epctx_node_view node;
    w->coarsest = verify_coarsest(model);
    if (verify_find_drawn(model, &w->drawn, &node, error) != EPCTX_OK) return false;
    if (node.op_type.size > 0)
        snprintf(w->drawing, sizeof w->drawing, "%.*s '%.*s'", (int)short_size(node.op_type),
                 node.op_type.data, (int)short_size(node.name), node.name.data);
    return true;
}

/* An EPContext model has no reference. */
static bool is_source(work *w) {
    const settings *set = &w->set;
    epctx_model model;
    epctx_error error;
    epctx_node_view node;
    bool ok = false;
    if (cli_open(&model, set->model, &error) != EPCTX_OK)
        cli_fail(&error);
    else if (cli_first_epnode(&model, &node))
        cli_fail_text("%s is an EPContext model, which the CPU cannot run: give its source model, "
                      "and this one with --context",
                      set->model);
    else
        ok = (compile_open_inputs(&model, &w->open_inputs, &error) == EPCTX_OK &&
              look(w, &model, &error)) ||
             cli_fail(&error) == CLI_OK;
    epctx_model_close(&model);
    return ok;
}

/* Of a model without one no context would be loaded, and nothing would be verified. */
static bool is_compiled(const char *context) {
    epctx_model model;
    epctx_error error;
    epctx_node_view node;
    bool ok = false;
    if (context == NULL) return true;
    if (cli_open(&model, context, &error) != EPCTX_OK)
        cli_fail(&error);
    else if (!cli_first_epnode(&model, &node))
        cli_fail_text("--context: %s has no EPContext node: expected a compiled model", context);
    else
        ok = true;
    epctx_model_close(&model);
    return ok;
}

static int verify(work *w) {
    const anyep_settings *set = &w->set.any;
    int code = CODE_FAILED, i;
    if (!is_source(w) || !is_compiled(w->set.context) || !anyep_check_dims(set, &w->set.model, 1) ||
        !anyep_find_ort(&w->set.any) || !anyep_folder(NULL, w->folder, sizeof w->folder))
        return code;
    cli_progress_begin("verify", 0);
    run_one(w, CPU, w->set.model);
    run_one(w, JIT, w->set.model);
    run_context(w);
    cli_progress_end();
    if (w->failed && set->dim_count == 0 && w->open_inputs[0] != '\0')
        cli_fail_with_cure(w->open_inputs);
    if (!cli_signals_waiting()) code = report_all(w);
    for (i = 0; i < ALL_RUNS; i++) anyep_free(&w->runs[i].result);
    anyep_remove(w->folder);
    return code;
}

static int run(const cli_args *args) {
    static const int levels[] = {-1, 0, 1, 2, 3, 99}; /* of the table's words; -1: not given */
    static work w;
    settings *set = &w.set;
    int code = CLI_USAGE;
    memset(&w, 0, sizeof w);
    anyep_take(&set->any, args);
    set->any.exact = true; /* the CPU EP is the reference */
    set->model = args->operands[0];
    set->context = args->context;
    set->source = args->source;
    set->input_folder = args->input_dir;
    set->seed = cli_number_or(args->seed, 1);
    set->embed = args->embed;
    /* The same for every run: a context is otherwise compiled without optimizations. */
    set->optimization = args->optimization != 0 ? levels[args->optimization]
                        : set->context != NULL  ? levels[1]
                                                : levels[5];
    set->json = args->json;
    w.threads = args->threads.value;
    if (args->seed.given && set->input_folder != NULL) {
        cli_misuse("--seed and --input-dir cannot be combined");
        return CLI_USAGE;
    }
    epctx_arena_init(&w.arena, NULL);
    epctx_map_init(&w.drawn, &w.arena);
    if (read_tolerance("--rtol", args->rtol, &set->rtol) &&
        read_tolerance("--atol", args->atol, &set->atol) &&
        read_tolerance("--cosine", args->cosine, &set->cosine) &&
        anyep_read(&set->any, &w.arena, true, LIMIT) &&
        (set->source == NULL ||
         anyep_add(&set->any, &set->any.session, "ep.context_source_model_path", set->source)))
        code = verify(&w);
    free(w.open_inputs);
    epctx_arena_free(&w.arena);
    return code;
}

const cli_command cli_verify = {
    .name = "verify",
    .group = CLI_COMPARE,
    .operands = "MODEL",
    .least = 1,
    .most = 1,
    .failed = CODE_FAILED,
    .summary = "compare an EP with ONNX Runtime's CPU EP",
    .about = "Runs an ordinary model three times on the same inputs: on ONNX Runtime's CPU EP,\n"
             "on the EP, which compiles it in the session (JIT), and from a context that the\n"
             "EP compiled. Compares each output of the EP with the CPU's, and those of the\n"
             "context with the JIT's. Each step is a process of its own; what an EP that\n"
             "crashes or hangs leaves to compare is compared. Nothing is written. Kernels of\n"
             "the CPU EP that saturate in int8 models are not used from ONNX Runtime 1.30 on,\n"
             "unless it refuses the model without them (--option\n"
             "session.x64quantprecision=0 takes them).\n"
             "Integers have to be equal. What floats may differ by depends on the coarsest\n"
             "type that the model computes in: float16 and bfloat16 more, float64 less. Of an\n"
             "output that differs as rounding to bfloat16 makes it, this is said. What depends\n"
             "on operators that draw random numbers is not compared.\n",
    .more = "Exit codes: 0 everything fits; 1 an output differs; 2 a wrong command line; 3 a\n"
            "model could not be compiled or run, or no node of it runs on the EP.\n"
            "\n"
            "Example: epctx verify --ep libacme_ep.so a.onnx\n",
    .run = run,
};
