/* epctx verify: does an EP compute what ONNX Runtime's CPU EP computes, compiled in the session and
 * loaded from a context? */
#define _GNU_SOURCE
#include "compile/compile.h"
#include "core/given.h"
#include "core/tensors.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT = 600, CODE_DIFFERS = 1, CODE_FAILED = 3 };
enum { CPU, JIT, CONTEXT, RUNS };

static const double RTOL = 1e-3, ATOL = 1e-5;

static const char *const run_names[RUNS] = {"CPU", "JIT", "context"};

typedef struct settings {
    anyep_settings any;
    const char *model, *context, *source, *input_folder;
    uint64_t seed;
    double rtol, atol, cosine; /* the latter two: below 0 when not given */
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
    double got, want;                /* at `first` */
    bool ok;
} difference;

typedef struct work {
    settings set;
    epctx_arena arena;
    uint64_t threads; /* 0: as many as ORT likes */
    char folder[EPCTX_PATH_MAX];
    one_run runs[RUNS];
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

static void compare_numbers(const settings *set, const session_value *got,
                            const session_value *want, difference *out) {
    double dot = 0, size_a = 0, size_b = 0, a = 0, b = 0, atol = set->atol, most = 0;
    size_t i;
    if (atol < 0) { /* sums are ordered differently: what is small beside the largest may differ */
        for (i = 0; i < out->count; i++)
            if (tensors_element(want, i, &b) && fabs(b) > most && isfinite(b)) most = fabs(b);
        atol = ATOL * (1 + most);
    }
    for (i = 0; i < out->count; i++) {
        double off;
        tensors_element(got, i, &a);
        tensors_element(want, i, &b);
        if (isfinite(a) && isfinite(b)) {
            dot += a * b;
            size_a += a * a;
            size_b += b * b;
        }
        if (equal(a, b)) continue;
        off = fabs(a - b);
        if (!(off <= out->max_abs)) out->max_abs = off;
        if (fabs(b) > 0 && !(off / fabs(b) <= out->max_rel)) out->max_rel = off / fabs(b);
        if (off <= atol + set->rtol * fabs(b)) continue;
        if (out->beyond++ > 0) continue;
        out->first = i;
        out->got = a;
        out->want = b;
    }
    out->cosine = size_a > 0 && size_b > 0   ? dot / sqrt(size_a) / sqrt(size_b)
                  : size_a > 0 || size_b > 0 ? 0
                                             : 1;
}

static void compare_bytes(const session_value *got, const session_value *want, difference *out) {
    const size_t width = got->size / (out->count > 0 ? out->count : 1);
    size_t i;
    out->cosine = NAN;
    for (i = 0; i < out->count; i++)
        if (memcmp(got->data + i * width, want->data + i * width, width) != 0 && out->beyond++ == 0)
            out->first = i;
}

static void compare(const settings *set, const session_value *got, const session_value *want,
                    difference *out) {
    const size_t width = epctx_elem_size(got->type.elem_type);
    double ignored;
    memset(out, 0, sizeof *out);
    out->found = want != NULL && same_shape(&got->type, &want->type);
    if (!out->found) return;
    out->count = got->size / width;
    out->numbers = out->count == 0 || tensors_element(got, 0, &ignored);
    if (out->numbers)
        compare_numbers(set, got, want, out);
    else
        compare_bytes(got, want, out);
    out->ok = out->beyond == 0 || (set->cosine >= 0 && out->numbers && out->cosine >= set->cosine &&
                                   isfinite(out->max_abs));
}

/* ---------------------------------------------------------------- running */

static anyep_job job_of(const work *w, anyep_work kind) {
    anyep_job job;
    memset(&job, 0, sizeof job);
    job.set = &w->set.any;
    job.work = kind;
    job.folder = w->folder;
    job.optimization = -1;
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
    printf("  %s '", d->ok ? "ok     " : "DIFFERS");
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
    if (d->beyond > 0) {
        printf("\n          %zu of %zu elements beyond the tolerance, first ", d->beyond, d->count);
        print_place(got, d->first);
        if (d->numbers) printf(": %.9g, expected %.9g", d->got, d->want);
    }
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
        compare(&w->set, want, got, &d);
        if (d.found) compare(&w->set, got, want, &d);
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
        json_array(w->json, "comparisons", JSON_HANGING);
    } else {
        printf("%-14s ", "model");
        cli_put(stdout, epctx_str_of(w->set.model));
        putchar('\n');
        if (board != NULL) anyep_print_ep(board);
        report_runs(w);
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

static bool read_tolerance(const char *option, const char *text, double fallback, double *out) {
    char *end = NULL;
    *out = fallback;
    if (text == NULL) return true;
    *out = strtod(text, &end);
    if (end != text && *end == '\0' && *out >= 0 && *out <= 1e30) return true;
    cli_misuse("%s: '%s' is not a number from 0 on", option, text);
    return false;
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
        ok = compile_open_inputs(&model, &w->open_inputs, &error) == EPCTX_OK ||
             cli_fail(&error) == CLI_OK;
    epctx_model_close(&model);
    return ok;
}

static int verify(work *w) {
    const anyep_settings *set = &w->set.any;
    int code = CODE_FAILED, i;
    if (!is_source(w) || !anyep_check_dims(set, &w->set.model, 1) || !anyep_find_ort(&w->set.any) ||
        !anyep_folder(NULL, w->folder, sizeof w->folder))
        return code;
    cli_progress_begin("verify", 0);
    run_one(w, CPU, w->set.model);
    run_one(w, JIT, w->set.model);
    run_context(w);
    cli_progress_end();
    if (w->failed && set->dim_count == 0 && w->open_inputs[0] != '\0')
        cli_fail_with_cure(w->open_inputs);
    if (!cli_signals_waiting()) code = report_all(w);
    for (i = 0; i < RUNS; i++) anyep_free(&w->runs[i].result);
    anyep_remove(w->folder);
    return code;
}

static int run(const cli_args *args) {
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
    set->json = args->json;
    w.threads = args->threads.value;
    if (args->seed.given && set->input_folder != NULL) {
        cli_misuse("--seed and --input-dir cannot be combined");
        return CLI_USAGE;
    }
    epctx_arena_init(&w.arena, NULL);
    if (read_tolerance("--rtol", args->rtol, RTOL, &set->rtol) &&
        read_tolerance("--atol", args->atol, -1, &set->atol) &&
        read_tolerance("--cosine", args->cosine, -1, &set->cosine) &&
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
             "the CPU EP that saturate in int8 models are not used from ONNX Runtime 1.30 on\n"
             "(--option session.x64quantprecision=0 takes them).\n",
    .more = "Exit codes: 0 everything fits; 1 an output differs; 2 a wrong command line; 3 a\n"
            "model could not be compiled or run, or no node of it runs on the EP.\n"
            "\n"
            "Example: epctx verify --ep libacme_ep.so a.onnx\n",
    .run = run,
};
