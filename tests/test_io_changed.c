/* >>io: files that somebody else cuts or overwrites while they are in use: at every call of the io
 * and of the backend, from opening the model to the run. A clean error or the right result; where a
 * mapped model is cut, SIGBUS, as the manual says. Each case is a process of its own. */
#define _XOPEN_SOURCE 700
#include "files.h"

#include "epctx_npu.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#define ELEMENTS 64

enum { RIGHT = 40, REFUSED, WRONG, NEVER }; /* exit codes; NEVER: there is no such moment */

typedef enum action { CUT_ALL, CUT_HALF, OVERWRITE, ACTION_COUNT } action;

static const char *const action_names[ACTION_COUNT] = {"cut to nothing", "cut in half",
                                                       "overwritten"};

/* -- the other process -- */

typedef struct other {
    int at; /* the moment at which it strikes */
    int moments;
    action action;
    char path[400];
} other;

static other somebody;

static void strike(void) {
    pid_t pid;
    int status;
    if (++somebody.moments != somebody.at) return;
    pid = fork();
    if (pid == 0) {
        int fd = open(somebody.path, O_WRONLY);
        struct stat info;
        bool done = fd >= 0 && fstat(fd, &info) == 0;
        if (done && somebody.action == OVERWRITE)
            for (off_t i = 0; i < info.st_size; i++) done = done && pwrite(fd, "\xff", 1, i) == 1;
        else if (done)
            done = ftruncate(fd, somebody.action == CUT_HALF ? info.st_size / 2 : 0) == 0;
        _exit(done ? 0 : 1);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) abort();
}

/* -- an io and a backend that let it in, before and after each call -- */

static const epctx_io *inner;
static epctx_backend npu_backend;

static epctx_status late_map(void *user, const char *folder, const char *name, bool copy,
                             epctx_mapping *out, epctx_error *error) {
    epctx_status status;
    strike();
    status = inner->map_fn(user, folder, name, copy, out, error);
    strike();
    return status;
}

static epctx_status late_load(void *self, const epctx_load_in *in, void **context,
                              epctx_error *error) {
    epctx_status status;
    strike();
    status = npu_backend.load_fn(self, in, context, error);
    strike();
    return status;
}

static epctx_status late_find(void *self, void *context, epctx_str name, uint64_t hash,
                              void **graph, epctx_error *error) {
    strike();
    return npu_backend.find_fn(self, context, name, hash, graph, error);
}

static epctx_status late_run(void *self, void *graph, const epctx_span *inputs,
                             const epctx_memory *outputs, void *scratch, size_t scratch_size,
                             epctx_error *error) {
    strike();
    return npu_backend.run_fn(self, graph, inputs, outputs, scratch, scratch_size, error);
}

static epctx_io late_io(const epctx_io *files) {
    epctx_io io = *files;
    inner = files;
    io.map_fn = late_map;
    return io;
}

/* -- the model: y = Relu(x + w) -- */

static epctx_npu npu;

static bool make_npu_model(bool embed) {
    static const int64_t dims[] = {ELEMENTS, -1};
    bytes graph = {0}, tensor = {0};
    uint8_t weights[ELEMENTS][4]; /* little-endian */
    epctx_gen_opts opts;
    epctx_model model;
    epctx_error error;
    bool good;
    for (int i = 0; i < ELEMENTS; i++) {
        float value = (float)(i - 10);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        for (int k = 0; k < 4; k++) weights[i][k] = (uint8_t)(bits >> 8 * k);
    }
    add_node(&graph, "Add", "add", "x,w", "t");
    add_node(&graph, "Relu", "relu", "t", "y");
    put_int(&tensor, 1, ELEMENTS);
    put_int(&tensor, 2, EPCTX_ONNX_FLOAT);
    put_str(&tensor, 8, "w");
    put_data(&tensor, 9, weights, sizeof weights);
    put_child(&graph, 5, &tensor);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, dims);
    put_str(&graph, 2, "g");
    save_model("m.onnx", &graph);
    memset(&opts, 0, sizeof opts);
    opts.embed = embed;
    opts.overwrite = true;
    good = epctx_npu_init(&npu, NULL, &npu_backend, &error) == EPCTX_OK &&
           epctx_model_open_file(&model, at("m.onnx"), NULL, &error) == EPCTX_OK &&
           epctx_generate(&model, &npu_backend, &opts, NULL, &error) == EPCTX_OK;
    if (!good) fprintf(stderr, "%s\n", error.message);
    epctx_model_close(&model);
    return good;
}

static int run(const epctx_loaded *loaded, const epctx_backend *backend, epctx_error *error) {
    float x[ELEMENTS], y[ELEMENTS] = {0};
    const epctx_bound *bound = &loaded->bound[0];
    epctx_span in = {(const uint8_t *)x, sizeof x};
    epctx_memory out = {y, sizeof y};
    size_t need = (bound->info.scratch_size + 127) / 64 * 64;
    void *scratch = aligned_alloc(64, need);
    int code = RIGHT;
    for (int i = 0; i < ELEMENTS; i++) x[i] = (float)(i % 3);
    if (loaded->bound_count != 1 || scratch == NULL) abort();
    if (backend->run_fn(backend->self, bound->graph, &in, &out, scratch, bound->info.scratch_size,
                        error) != EPCTX_OK)
        code = REFUSED;
    for (int i = 0; code == RIGHT && i < ELEMENTS; i++) {
        float want = (float)(i % 3 + i - 10);
        if (y[i] != (want > 0 ? want : 0)) code = WRONG;
    }
    free(scratch);
    return code;
}

/* A whole session; its exit code. */
static int session(const epctx_io *io, uint32_t flags) {
    epctx_backend backend = npu_backend;
    epctx_open_opts open = {0};
    epctx_model model;
    epctx_loaded loaded = {0};
    epctx_error error;
    int code = REFUSED;
    backend.load_fn = late_load;
    backend.find_fn = late_find;
    backend.run_fn = late_run;
    open.io = io;
    open.path_flags = flags;
    if (epctx_model_open_file(&model, at("m_ctx.onnx"), &open, &error) == EPCTX_OK &&
        epctx_load(&loaded, &model, &backend, NULL, &error) == EPCTX_OK && loaded.bound_count > 0)
        code = run(&loaded, &backend, &error);
    else if (error.message[0] == '\0' && model.bytes.size > 0 && loaded.backend == NULL)
        code = WRONG;
    epctx_unload(&loaded);
    epctx_model_close(&model);
    return somebody.moments < somebody.at ? NEVER : code;
}

/* What comes of a session in which `file` changes at `moment`: an exit code, or minus a signal. */
static int attacked(const epctx_io *files, uint32_t flags, const char *file, action what,
                    int moment) {
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        epctx_io io = late_io(files);
        memset(&somebody, 0, sizeof somebody);
        somebody.at = moment;
        somebody.action = what;
        snprintf(somebody.path, sizeof somebody.path, "%s", at(file));
#if defined(__SANITIZE_ADDRESS__)
        signal(SIGBUS, SIG_DFL); /* the sanitizer would take it for a wild access */
#endif
        fflush(stdout);
        _exit(session(&io, flags));
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) abort();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

typedef struct outcome {
    int cases, right, refused, bus;
    char bad[300];
} outcome;

/* Every action at every moment. `mapped`: the file stays mapped, a cut may end in SIGBUS. */
static outcome attack(const epctx_io *files, uint32_t flags, const char *file, bool mapped) {
    outcome o = {0};
    bytes clean = read_file(at(file));
    for (int what = 0; what < ACTION_COUNT; what++) {
        for (int moment = 1; moment < 100; moment++) {
            int code = attacked(files, flags, file, (action)what, moment);
            make_file(at(file), clean.data, clean.size);
            if (code == NEVER) break;
            o.cases++;
            o.right += code == RIGHT;
            o.refused += code == REFUSED;
            o.bus += code == -SIGBUS;
            if (code != RIGHT && code != REFUSED &&
                !(code == -SIGBUS && mapped && what != OVERWRITE))
                snprintf(o.bad, sizeof o.bad, "%s %s at moment %d: %d", file, action_names[what],
                         moment, code);
        }
    }
    bytes_free(&clean);
    return o;
}

/* A binary is read before it is checked: nothing that happens to the file afterwards matters. */
TEST(binary) {
    outcome o;
    CHECK_TRUE(make_npu_model(false));
    o = attack(epctx_io_files(), 0, "m_npu.bin", false);
    CHECK(o.bad[0] == '\0', "%s", o.bad);
    CHECK(o.right > 0 && o.refused > 0 && o.cases >= 24, "%d right, %d refused of %d", o.right,
          o.refused, o.cases);
}

/* The same with a mapped model that has the binary inside: only cutting is not survived. */
TEST(embedded) {
    outcome o;
    CHECK_TRUE(make_npu_model(true));
    o = attack(epctx_io_files(), 0, "m_ctx.onnx", true);
    CHECK(o.bad[0] == '\0', "%s", o.bad);
    CHECK(o.right > 0 && o.refused > 0, "%d right, %d refused", o.right, o.refused);
}

TEST(model) {
    outcome o;
    CHECK_TRUE(make_npu_model(false));
    o = attack(epctx_io_files(), 0, "m_ctx.onnx", true);
    CHECK(o.bad[0] == '\0', "%s", o.bad);
    CHECK(o.right > 0 && o.refused > 0, "%d right, %d refused", o.right, o.refused);
}

/* Nothing is mapped: nothing can end the process. */
TEST(private_io) {
    for (int embed = 0; embed < 2; embed++) {
        outcome o;
        CHECK_TRUE(make_npu_model(embed == 1));
        o = attack(epctx_io_private(), 0, "m_ctx.onnx", false);
        CHECK(o.bad[0] == '\0', "%s", o.bad);
        CHECK(o.right > 0 && o.refused > 0 && o.bus == 0, "%d right, %d refused", o.right,
              o.refused);
        if (embed == 1) continue;
        o = attack(epctx_io_private(), 0, "m_npu.bin", false);
        CHECK(o.bad[0] == '\0', "%s", o.bad);
    }
}

/* In place, on request: the binary's weights are used where they are, so that others can change
 * results (WRONG is what the caller asked for) and end the process, but no access goes wild. */
TEST(in_place) {
    static const uint16_t one = 1;
    bytes clean;
    int wrong = 0;
    CHECK_TRUE(make_npu_model(false));
    clean = read_file(at("m_npu.bin"));
    for (int moment = 1; moment < 100; moment++) {
        int code = attacked(epctx_io_files(), EPCTX_PATH_IN_PLACE, "m_npu.bin", OVERWRITE, moment);
        make_file(at("m_npu.bin"), clean.data, clean.size);
        if (code == NEVER) break;
        CHECK(code == RIGHT || code == REFUSED || code == WRONG, "moment %d: %d", moment, code);
        wrong += code == WRONG;
    }
    bytes_free(&clean);
    /* Where the weights have another byte order they are copied at last. */
    CHECK(wrong > 0 || *(const uint8_t *)&one == 0, "the weights are not used in place");
}

/* What was read is whole or refused, also when the file ends earlier than its size says. */
TEST(reading) {
    static const char odd[] = "/sys/kernel/mm/transparent_hugepage/enabled";
    const epctx_io *io = epctx_io_private();
    epctx_mapping m;
    epctx_error error;
    make_file(at("r"), "some bytes", 10);
    CHECK_INT(io->map_fn(io->user, NULL, at("r"), false, &m, &error), EPCTX_OK);
    make_file(at("r"), "other", 5);
    CHECK_MEM(m.data, m.size, "some bytes", 10);
    io->unmap_fn(io->user, &m);
    CHECK_INT(io->map_fn(io->user, NULL, at("none"), false, &m, &error), EPCTX_ERR_NOT_FOUND);
    make_file(at("r"), "", 0);
    CHECK_INT(io->map_fn(io->user, NULL, at("r"), false, &m, &error), EPCTX_OK);
    CHECK_UINT(m.size, 0);
    CHECK_TRUE(!m.shared);
    /* Files of the kernel tell a size that is not theirs. */
    epctx_error_clear(&error);
    if (access(odd, R_OK) == 0) {
        CHECK_INT(io->map_fn(io->user, NULL, odd, false, &m, &error), EPCTX_ERR_IO);
        CHECK_HAS(error.message, "changed while it was read");
    }
}

int main(int argc, char **argv) {
    if (!make_root()) return 1;
    RUN(binary);
    RUN(embedded);
    RUN(model);
    RUN(private_io);
    RUN(in_place);
    RUN(reading);
    remove_root();
    return test_end();
}
