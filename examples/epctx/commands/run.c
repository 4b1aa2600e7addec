/* epctx run: executes a model on the reference NPU, or through ONNX Runtime. */
#include "ort/anyep.h"
#include "epctx_npu.h"
#include "core/given.h"
#include "core/tensors.h"
#include "core/threads.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct settings {
    uint64_t seed;
    uint64_t repeat;
    const char *input_folder;
    const char *dump_folder;   /* inputs and outputs */
    const char *output_folder; /* outputs only */
    const char *source;        /* model with the weights */
    bool json;
} settings;

static epctx_status make_inputs(const session *s, const settings *set, epctx_error *error) {
    size_t i;
    if (set->input_folder != NULL) {
        const tensor_list inputs = {s->inputs, s->input_count};
        return tensors_read(&inputs, set->input_folder, error);
    }
    for (i = 0; i < s->input_count; i++) tensors_fill(s->inputs[i], set->seed, i);
    return EPCTX_OK;
}

static epctx_status write_results(const tensor_list *inputs, const tensor_list *outputs,
                                  const settings *set, epctx_error *error) {
    epctx_status status = EPCTX_OK;
    if (set->dump_folder != NULL)
        status = tensors_write(inputs, outputs, set->dump_folder, true, error);
    if (status == EPCTX_OK && set->output_folder != NULL)
        status = tensors_write(inputs, outputs, set->output_folder, false, error);
    return status;
}

static void print_head(const session *s, const char *file) {
    printf("model          %s%s\n", file,
           s->compiled ? ", ordinary model, compiled in memory" : "");
    printf("partitions     %zu on %s\n", s->loaded.bound_count, s->backend.source);
}

static int by_size(const void *a, const void *b) {
    const double *x = (const double *)a;
    const double *y = (const double *)b;
    return (*x > *y) - (*x < *y);
}

static void print_json(const session *s, const char *file, const double *times, uint64_t count,
                       double first) {
    json_writer *w = cli_json_begin(stdout);
    size_t i;
    json_text(w, "model", file);
    json_bool(w, "compiled_in_memory", s->compiled);
    json_uint(w, "partitions", s->loaded.bound_count);
    json_text(w, "source", s->backend.source);
    json_fixed(w, "open_to_first_output_ms", first, 3);
    json_uint(w, "runs", count);
    json_fixed(w, "median_ms", times[count / 2], 3);
    json_array(w, "outputs", JSON_HANGING);
    for (i = 0; i < s->output_count; i++) tensors_put_json(w, s->outputs[i]);
    json_end(w);
    cli_json_end();
}

/* Runs `count` times, each into `times`. */
static epctx_status run_times(session *s, double *times, uint64_t count, epctx_error *error) {
    uint64_t i;
    for (i = 0; i < count; i++) {
        double start = cli_now();
        epctx_status status = session_run(s, error);
        if (status != EPCTX_OK) return status;
        times[i] = cli_now() - start;
        cli_progress_add(1);
    }
    return EPCTX_OK;
}

/* `opened`: what opening took; making the inputs does not count. */
static epctx_status run_and_print(session *s, const char *file, const settings *set, double opened,
                                  epctx_error *error) {
    double *times = (double *)calloc((size_t)set->repeat, sizeof *times);
    epctx_status status;
    size_t i;
    if (times == NULL) return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    cli_progress_begin("run", set->repeat);
    status = run_times(s, times, set->repeat, error);
    cli_progress_end();
    if (status == EPCTX_OK) {
        const tensor_list inputs = {s->inputs, s->input_count};
        const tensor_list outputs = {s->outputs, s->output_count};
        status = write_results(&inputs, &outputs, set, error);
    }
    opened += times[0];
    qsort(times, (size_t)set->repeat, sizeof *times, by_size);
    if (status == EPCTX_OK && set->json) {
        print_json(s, file, times, set->repeat, opened);
    } else if (status == EPCTX_OK) {
        print_head(s, file);
        printf("open-to-first-output: %.3f ms\n", opened);
        if (set->repeat > 1)
            printf("run            median %.3f ms of %" PRIu64 "\n", times[set->repeat / 2],
                   set->repeat);
        for (i = 0; i < s->output_count; i++) tensors_print(s->outputs[i], i);
    }
    free(times);
    return status;
}

static int run_model(const char *file, const settings *set) {
    double start = cli_now();
    session s;
    epctx_error error;
    epctx_status status;
    double opened;
    cli_progress_begin("run: load", 0);
    status = session_open(&s, file, set->source, &error);
    cli_progress_end();
    opened = cli_now() - start;
    if (status == EPCTX_OK) status = make_inputs(&s, set, &error);
    if (status == EPCTX_OK) status = run_and_print(&s, file, set, opened, &error);
    session_close(&s);
    return status == EPCTX_OK ? CLI_OK : cli_fail(&error);
}

/* -- through ONNX Runtime -- */

static void json_ort(const anyep_board *board, const char *file, const settings *set,
                     const tensor_list *outputs) {
    json_writer *w = cli_json_begin(stdout);
    size_t i;
    json_text(w, "model", file);
    anyep_json_ep(w, board);
    json_uint(w, "nodes", board->nodes);
    json_uint(w, "ep_nodes", board->ep_count == 0 ? board->nodes : board->ep_nodes);
    json_fixed(w, "session_ms", board->session_ms, 3);
    json_fixed(w, "open_to_first_output_ms", board->session_ms + board->first_ms, 3);
    json_uint(w, "runs", set->repeat);
    json_fixed(w, "median_ms", board->median_ms, 3);
    json_uint(w, "memory", board->memory);
    json_array(w, "outputs", JSON_HANGING);
    for (i = 0; i < outputs->count; i++) tensors_put_json(w, outputs->values[i]);
    json_end(w);
    cli_json_end();
}

static void print_ort(const anyep_board *board, const char *file, const settings *set,
                      const tensor_list *outputs) {
    size_t i;
    if (set->json) {
        json_ort(board, file, set, outputs);
        return;
    }
    printf("%-14s ", "model");
    cli_put(stdout, epctx_str_of(file));
    putchar('\n');
    anyep_print_ep(board);
    for (i = 0; i < board->ep_count; i++) {
        printf("nodes          %zu of %zu on ", board->eps[i].nodes, board->nodes);
        cli_put(stdout, epctx_str_of(board->ep_count > 1 ? board->eps[i].ep : "the EP"));
        putchar('\n');
    }
    printf("session        %.3f ms\n", board->session_ms);
    printf("open-to-first-output: %.3f ms\n", board->session_ms + board->first_ms);
    if (set->repeat > 1)
        printf("run            median %.3f ms of %" PRIu64 "\n", board->median_ms, set->repeat);
    printf("memory         %" PRIu64 " MiB\n", board->memory >> 20);
    for (i = 0; i < outputs->count; i++) tensors_print(outputs->values[i], i);
}

static int run_in(anyep_job *job, const char *file, const settings *set) {
    char results[EPCTX_PATH_MAX];
    tensor_list inputs, outputs;
    anyep_result result;
    epctx_arena arena;
    epctx_error error;
    int code = CLI_FAILED;
    snprintf(results, sizeof results, "%s/results", job->folder);
    job->results = results;
    cli_progress_begin("run", 0);
    anyep_do(job, &result);
    cli_progress_end();
    epctx_arena_init(&arena, NULL);
    if (result.end != ANYEP_OK) {
        anyep_tell(job, &result, file);
        if (job->set->ep_count > 0)
            given_tell_failed(file, anyep_ep_options(job->set), job->set->session);
    } else if (tensors_restore(results, &arena, &inputs, &outputs, &error) != EPCTX_OK ||
               write_results(&inputs, &outputs, set, &error) != EPCTX_OK) {
        cli_fail(&error);
    } else {
        if (job->set->verbose) anyep_print_log(job);
        print_ort(result.board, file, set, &outputs);
        code = CLI_OK;
    }
    epctx_arena_free(&arena);
    anyep_free(&result);
    return code;
}

static int run_ort(anyep_settings *any, const char *file, const settings *set) {
    enum { LIMIT = 600 };
    char folder[EPCTX_PATH_MAX];
    epctx_arena arena;
    anyep_job job;
    const cli_number threads = any->args->threads;
    int code = CLI_USAGE;
    memset(&job, 0, sizeof job);
    epctx_arena_init(&arena, NULL);
    if (any->args->max_work.given) {
        cli_misuse("--max-work is for the reference NPU: omit it beside --ort");
    } else if (anyep_read(any, &arena, false, LIMIT) &&
               (set->source == NULL ||
                anyep_add(any, &any->session, "ep.context_source_model_path", set->source))) {
        job.set = any;
        job.work = ANYEP_RUN;
        job.model = file;
        job.folder = folder;
        job.optimization = -1;
        job.threads = threads.given ? (int)threads.value : -1;
        job.input_folder = set->input_folder;
        job.seed = set->seed;
        job.repeat = set->repeat;
        code = CLI_FAILED;
        if (anyep_check_dims(any, &file, 1) && anyep_find_ort(any) &&
            anyep_folder(NULL, folder, sizeof folder)) {
            code = run_in(&job, file, set);
            anyep_remove(folder);
        }
    }
    epctx_arena_free(&arena);
    return code;
}

static int run_npu(const cli_args *args, const settings *set) {
    epctx_npu_run_opts run_opts;
    epctx_npu_opts npu_opts;
    memset(&npu_opts, 0, sizeof npu_opts);
    if (args->dim.count > 0 || args->verbose) {
        cli_misuse("--dim and -v need --ort (epctx compile --dim for the reference NPU)");
        return CLI_USAGE;
    }
    run_opts = threads_opts((uint32_t)cli_number_or(args->threads, 1));
    npu_opts.run = &run_opts;
    npu_opts.max_work = args->max_work.value;
    cli_npu_opts(&npu_opts);
    return run_model(args->operands[0], set);
}

static int run(const cli_args *args) {
    settings set;
    anyep_settings any;
    memset(&set, 0, sizeof set);
    anyep_take(&any, args);
    set.seed = cli_number_or(args->seed, 1);
    set.repeat = cli_number_or(args->repeat, 1);
    set.input_folder = args->input_dir;
    set.dump_folder = args->dump;
    set.output_folder = args->output_dir;
    set.source = args->source;
    set.json = args->json;
    if (args->seed.given && set.input_folder != NULL) {
        cli_misuse("--seed and --input-dir cannot be combined");
        return CLI_USAGE;
    }
    return anyep_asked(&any) ? run_ort(&any, args->operands[0], &set) : run_npu(args, &set);
}

const cli_command cli_run = {
    .name = "run",
    .group = CLI_COMPARE,
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "run a model on the reference NPU, or through ONNX Runtime",
    .about = "Loads an EPContext model of the reference NPU and runs it; compiles an ordinary\n"
             "model in memory first. The NPU must support every node: no other EP is\n"
             "available.\n"
             "\n"
             "'open-to-first-output' is the time from opening the file to the end of the first\n"
             "run, without creating or reading the inputs.\n"
             "\n"
             "With --ort or --ep, ONNX Runtime runs the model instead, in a process of its\n"
             "own; without --ep on its CPU EP alone. The inputs are the same.\n",
    .more = "Example: epctx run model_ctx.onnx --seed 1 --dump outputs\n"
            "Example: epctx run --ort libonnxruntime.so.1 --ep libacme_ep.so model_ctx.onnx\n",
    .run = run,
};
