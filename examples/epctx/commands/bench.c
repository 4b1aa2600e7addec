/* epctx bench: what an EPContext model saves. */
#define _GNU_SOURCE
#include "ort/anyep.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LIMIT = 600, MOST_SESSIONS = 1000 };
enum { CPU, JIT, EXTERNAL, EMBEDDED, ROWS };

static const char *const row_names[ROWS] = {"CPU", "JIT", "context", "embedded"};

typedef struct row {
    bool done;
    double session_ms, first_ms, run_ms; /* medians; first: session and first run */
    double compile_ms;                   /* of the contexts */
    uint64_t memory, bytes;              /* most of all processes; files */
    size_t nodes, ep_nodes;
    char problem[5200];
} row;

typedef struct work {
    anyep_settings any;
    const char *model, *input_folder;
    uint64_t seed, repeat, sessions;
    uint64_t threads; /* 0: as many as ORT likes */
    bool json;
    char folder[EPCTX_PATH_MAX];
    row rows[ROWS];
    anyep_board *ep; /* of a run with the EP */
    epctx_arena arena;
} work;

static int by_size(const void *a, const void *b) {
    const double *x = (const double *)a;
    const double *y = (const double *)b;
    return (*x > *y) - (*x < *y);
}

static double median(double *times, size_t count) {
    qsort(times, count, sizeof *times, by_size);
    return times[count / 2];
}

static anyep_job job_of(const work *w, anyep_work kind) {
    anyep_job job;
    memset(&job, 0, sizeof job);
    job.set = &w->any;
    job.work = kind;
    job.folder = w->folder;
    job.optimization = -1;
    job.threads = w->threads > 0 ? (int)w->threads : -1;
    job.input_folder = w->input_folder;
    job.seed = w->seed;
    job.repeat = w->repeat;
    return job;
}

static void fail_row(work *w, int which, const anyep_job *job, const anyep_result *result) {
    memcpy(w->rows[which].problem, result->words, sizeof result->words);
    anyep_tell(job, result, row_names[which]);
}

/* A process for each session: what one leaves in memory does not help the next. */
static void measure(work *w, int which, const char *model) {
    row *r = &w->rows[which];
    anyep_job job = job_of(w, ANYEP_RUN);
    double *times[3];
    size_t i, count = (size_t)w->sessions;
    job.model = model;
    job.cpu = which == CPU;
    for (i = 0; i < 3; i++) {
        times[i] = (double *)epctx_arena_array(&w->arena, count, sizeof *times[i]);
        if (times[i] == NULL) {
            snprintf(r->problem, sizeof r->problem, "out of memory");
            return;
        }
    }
    for (i = 0; i < count && !cli_signals_waiting(); i++) {
        anyep_result result;
        const bool ok = (anyep_do(&job, &result), result.end == ANYEP_OK);
        if (!ok) {
            fail_row(w, which, &job, &result);
        } else {
            times[0][i] = result.board->session_ms;
            times[1][i] = result.board->session_ms + result.board->first_ms;
            times[2][i] = result.board->median_ms;
            if (result.board->memory > r->memory) r->memory = result.board->memory;
            r->nodes = result.board->nodes;
            r->ep_nodes = result.board->ep_nodes;
            if (which != CPU) *w->ep = *result.board;
        }
        anyep_free(&result);
        if (!ok) return;
        cli_progress_add(1);
    }
    if (i < count) return;
    r->session_ms = median(times[0], count);
    r->first_ms = median(times[1], count);
    r->run_ms = median(times[2], count);
    r->done = true;
}

static uint64_t counted; /* nftw has no state */

static int count_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
    (void)path, (void)ftw;
    if (kind == FTW_F && S_ISREG(st->st_mode)) counted += (uint64_t)st->st_size;
    return 0;
}

static void measure_context(work *w, int which) {
    row *r = &w->rows[which];
    anyep_job job = job_of(w, ANYEP_COMPILE);
    char path[EPCTX_PATH_MAX], folder[EPCTX_PATH_MAX + 16];
    anyep_model model;
    anyep_result result;
    bool ok;
    if (cli_signals_waiting() ||
        !anyep_context_path(w->folder, row_names[which], w->model, path, sizeof path))
        return;
    model.source = w->model;
    model.output = path;
    job.models = &model;
    job.count = 1;
    job.embed = which == EMBEDDED;
    anyep_do(&job, &result);
    ok = result.end == ANYEP_OK;
    if (ok) r->compile_ms = result.board->compile_ms[0];
    if (!ok) fail_row(w, which, &job, &result);
    anyep_free(&result);
    if (!ok) return;
    snprintf(folder, sizeof folder, "%s/%s", w->folder, row_names[which]);
    counted = 0;
    nftw(folder, count_entry, 8, FTW_PHYS);
    r->bytes = counted;
    measure(w, which, path);
}

/* ---------------------------------------------------------------- report */

static void print_row(const work *w, int which) {
    const row *r = &w->rows[which];
    printf("%-10s ", row_names[which]);
    if (!r->done) {
        cli_put(stdout, epctx_str_of(r->problem[0] != '\0' ? r->problem : "not tried"));
        putchar('\n');
        return;
    }
    printf("%12.2f %14.2f %12.4f %8" PRIu64 " %13" PRIu64 "\n", r->session_ms, r->first_ms,
           r->run_ms, r->memory >> 20, r->bytes);
}

static void print_text(const work *w) {
    const row *jit = &w->rows[JIT], *context = &w->rows[EXTERNAL];
    int i;
    printf("%-14s ", "model");
    cli_put(stdout, epctx_str_of(w->model));
    putchar('\n');
    if (w->ep->ort_version[0] != '\0') anyep_print_ep(w->ep);
    if (jit->done)
        printf("%-14s %zu of %zu on %s\n", "nodes", jit->ep_nodes, jit->nodes,
               anyep_eps_word(w->ep));
    if (context->compile_ms > 0) printf("%-14s %.1f ms\n", "compiling", context->compile_ms);
    printf("%-14s median of %" PRIu64 " session%s with %" PRIu64 " run%s each\n\n", "times",
           w->sessions, cli_plural(w->sessions), w->repeat, cli_plural(w->repeat));
    printf("%-10s %12s %14s %12s %8s %13s\n", "", "session, ms", "1st output, ms", "run, ms",
           "mem, MiB", "files, bytes");
    for (i = 0; i < ROWS; i++) print_row(w, i);
    if (jit->done && context->done && context->first_ms > 0)
        printf("\nThe context gives its first output %.1f times as fast as the JIT.\n",
               jit->first_ms / context->first_ms);
}

static void json_row(json_writer *w, const char *name, const row *r) {
    json_object(w, NULL, JSON_INLINE);
    json_text(w, "row", name);
    json_bool(w, "done", r->done);
    if (r->done) {
        json_fixed(w, "session_ms", r->session_ms, 3);
        json_fixed(w, "first_output_ms", r->first_ms, 3);
        json_fixed(w, "run_ms", r->run_ms, 4);
        json_fixed(w, "compile_ms", r->compile_ms, 3);
        json_uint(w, "memory", r->memory);
        json_uint(w, "bytes", r->bytes);
        json_uint(w, "nodes", r->nodes);
        json_uint(w, "ep_nodes", r->ep_nodes);
    } else {
        json_text(w, "problem", r->problem);
    }
    json_end(w);
}

static void print_json(const work *all) {
    json_writer *w = cli_json_begin(stdout);
    int i;
    json_text(w, "model", all->model);
    if (all->ep->ort_version[0] != '\0') anyep_json_ep(w, all->ep);
    json_uint(w, "sessions", all->sessions);
    json_uint(w, "runs", all->repeat);
    json_array(w, "rows", JSON_HANGING);
    for (i = 0; i < ROWS; i++) json_row(w, row_names[i], &all->rows[i]);
    json_end(w);
    cli_json_end();
}

/* ---------------------------------------------------------------- the command */

static int bench(work *w) {
    int code = CLI_OK, i;
    if (!anyep_check_dims(&w->any, &w->model, 1) || !anyep_find_ort(&w->any)) return CLI_FAILED;
    if (!anyep_folder(NULL, w->folder, sizeof w->folder)) return CLI_FAILED;
    w->ep = (anyep_board *)epctx_arena_alloc(&w->arena, sizeof *w->ep);
    if (w->ep == NULL) return cli_fail_text("out of memory");
    w->rows[CPU].bytes = w->rows[JIT].bytes = cli_file_size(w->model);
    cli_progress_begin("bench", w->sessions * ROWS);
    measure(w, CPU, w->model);
    if (!cli_signals_waiting()) measure(w, JIT, w->model);
    measure_context(w, EXTERNAL);
    measure_context(w, EMBEDDED);
    cli_progress_end();
    if (!cli_signals_waiting()) w->json ? print_json(w) : print_text(w);
    for (i = 0; i < ROWS; i++)
        if (!w->rows[i].done) code = CLI_FAILED;
    anyep_remove(w->folder);
    return code;
}

static int run(const cli_args *args) {
    static work w;
    int code = CLI_USAGE;
    memset(&w, 0, sizeof w);
    anyep_take(&w.any, args);
    w.model = args->operands[0];
    w.input_folder = args->input_dir;
    w.seed = cli_number_or(args->seed, 1);
    w.repeat = cli_number_or(args->repeat, 20);
    w.sessions = cli_number_or(args->sessions, 3);
    w.threads = args->threads.value;
    w.json = args->json;
    if (args->seed.given && w.input_folder != NULL) {
        cli_misuse("--seed and --input-dir cannot be combined");
        return CLI_USAGE;
    }
    epctx_arena_init(&w.arena, NULL);
    if (anyep_read(&w.any, &w.arena, true, LIMIT)) code = bench(&w);
    epctx_arena_free(&w.arena);
    return code;
}

const cli_command cli_bench = {
    .name = "bench",
    .group = CLI_COMPARE,
    .operands = "MODEL",
    .least = 1,
    .most = 1,
    .summary = "measure what an EPContext model saves",
    .about = "Measures an ordinary model in ONNX Runtime four times: on its CPU EP, on the EP,\n"
             "which compiles it in the session (JIT), and from contexts that the EP compiled,\n"
             "in a file and embedded in the model. Prints for each the times to make a\n"
             "session, to the first output (session and first run) and of a run, the most\n"
             "memory of the process, and the size of the files. Each session is a process of\n"
             "its own. Nothing is written.\n",
    .more = "Exit code 1 if one of the four failed; the others are printed.\n"
            "\n"
            "Example: epctx bench --ep libacme_ep.so a.onnx\n",
    .run = run,
};
