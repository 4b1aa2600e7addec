/* An application that keeps EPContext models and their context binaries encrypted at rest.
 *
 * What the library writes and reads goes through two callbacks with the shape of ONNX Runtime's
 * named-buffer callbacks (epctx_io_buffers). They seal each buffer with libsodium into the file
 * NAME.sealed: XChaCha20-Poly1305, a fresh nonce each time, the name as additional data, so that
 * one sealed file cannot stand in for another. Plain bytes are never in a file. */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "epctx.h"
#include "epctx_npu.h"

#define KEY_SIZE   crypto_aead_xchacha20poly1305_ietf_KEYBYTES
#define NONCE_SIZE crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
#define TAG_SIZE   crypto_aead_xchacha20poly1305_ietf_ABYTES

static const char magic[] = "SEALED1\n";
#define MAGIC_SIZE (sizeof magic - 1)
#define HEAD_SIZE  (MAGIC_SIZE + NONCE_SIZE)

typedef struct vault {
    unsigned char key[KEY_SIZE];
    bool plain_sources; /* a buffer that is not sealed may be an ordinary file: compiling only */
} vault;

/* -- sealed files -- */

static epctx_status sealed_path(const char *name, char out[EPCTX_PATH_MAX], epctx_error *error) {
    int size = snprintf(out, EPCTX_PATH_MAX, "%s.sealed", name);
    return size > 0 && size < EPCTX_PATH_MAX ? EPCTX_OK
                                             : epctx_fail(error, EPCTX_ERR_LIMIT, "name too long");
}

/* The folder may move, the name in it counts. */
static epctx_str sealed_as(const char *name) {
    return epctx_path_file(epctx_str_of(name));
}

static epctx_status open_sealed(const vault *v, const char *name, const epctx_mapping *file,
                                void **data, size_t *size, epctx_error *error) {
    epctx_str as = sealed_as(name);
    unsigned char *plain;
    size_t room;
    if (file->size < HEAD_SIZE + TAG_SIZE || memcmp(file->data, magic, MAGIC_SIZE) != 0)
        return epctx_fail(error, EPCTX_ERR_CONTEXT, "is not a sealed file");
    room = file->size - HEAD_SIZE - TAG_SIZE;
    plain = (unsigned char *)malloc(room + 1);
    if (plain == NULL) return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    if (crypto_aead_xchacha20poly1305_ietf_decrypt(
            plain, NULL, NULL, file->data + HEAD_SIZE, file->size - HEAD_SIZE,
            (const unsigned char *)as.data, as.size, file->data + MAGIC_SIZE, v->key) != 0) {
        free(plain);
        return epctx_fail(error, EPCTX_ERR_CONTEXT,
                          "does not match this name and key: it was changed, is another file, "
                          "or the key is wrong");
    }
    *data = plain;
    *size = room;
    return EPCTX_OK;
}

static epctx_status copy_plain(const epctx_mapping *file, void **data, size_t *size,
                               epctx_error *error) {
    *data = malloc(file->size + 1);
    if (*data == NULL) return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    memcpy(*data, file->data, file->size);
    *size = file->size;
    return EPCTX_OK;
}

static epctx_status read_buffer(void *user, const char *name, void **data, size_t *size,
                                epctx_error *error) {
    const vault *v = (const vault *)user;
    const epctx_io *files = epctx_io_files();
    char path[EPCTX_PATH_MAX];
    epctx_file_info info;
    epctx_mapping file;
    bool sealed;
    epctx_status status = sealed_path(name, path, error);
    if (status == EPCTX_OK) status = files->stat_fn(files->user, path, &info, error);
    if (status != EPCTX_OK) return status;
    sealed = info.kind == EPCTX_FILE_REGULAR;
    if (!sealed && !v->plain_sources) return EPCTX_ERR_NOT_FOUND;
    status = files->map_fn(files->user, NULL, sealed ? path : name, false, &file, error);
    if (status != EPCTX_OK) return status;
    status = sealed ? open_sealed(v, name, &file, data, size, error)
                    : copy_plain(&file, data, size, error);
    files->unmap_fn(files->user, &file);
    return status;
}

static void free_buffer(void *user, void *data, size_t size) {
    (void)user;
    sodium_memzero(data, size);
    free(data);
}

static epctx_status write_buffer(void *user, const char *name, const void *data, size_t size,
                                 epctx_error *error) {
    const vault *v = (const vault *)user;
    epctx_str as = sealed_as(name);
    char path[EPCTX_PATH_MAX];
    unsigned char *sealed;
    epctx_status status = sealed_path(name, path, error);
    if (status != EPCTX_OK) return status;
    if (size > SIZE_MAX - HEAD_SIZE - TAG_SIZE) return EPCTX_ERR_LIMIT;
    sealed = (unsigned char *)malloc(HEAD_SIZE + size + TAG_SIZE);
    if (sealed == NULL) return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    memcpy(sealed, magic, MAGIC_SIZE);
    randombytes_buf(sealed + MAGIC_SIZE, NONCE_SIZE);
    crypto_aead_xchacha20poly1305_ietf_encrypt(
        sealed + HEAD_SIZE, NULL, (const unsigned char *)data, size, (const unsigned char *)as.data,
        as.size, NULL, sealed + MAGIC_SIZE, v->key);
    status = epctx_write_bytes(NULL, path, sealed, HEAD_SIZE + size + TAG_SIZE, NULL, error);
    free(sealed);
    return status;
}

static epctx_status remove_buffer(void *user, const char *name, epctx_error *error) {
    const epctx_io *files = epctx_io_files();
    char path[EPCTX_PATH_MAX];
    epctx_status status = sealed_path(name, path, error);
    (void)user;
    return status == EPCTX_OK ? files->remove_fn(files->user, NULL, path, error) : status;
}

static epctx_buffer_io callbacks(vault *v) {
    epctx_buffer_io b;
    memset(&b, 0, sizeof b);
    b.user = v;
    b.read_fn = read_buffer;
    b.free_fn = free_buffer;
    b.write_fn = write_buffer;
    b.remove_fn = remove_buffer;
    return b;
}

/* -- the three commands -- */

static int fail(const epctx_error *error) {
    fprintf(stderr, "encrypted: %s\n", error->message);
    return 1;
}

static int fail_file(const char *path) {
    fprintf(stderr, "encrypted: %s: %s\n", path, strerror(errno));
    return 1;
}

static int make_key(const char *path) {
    unsigned char key[KEY_SIZE];
    ssize_t written;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0) return fail_file(path);
    randombytes_buf(key, sizeof key);
    written = write(fd, key, sizeof key);
    sodium_memzero(key, sizeof key);
    if (close(fd) != 0 || written != (ssize_t)sizeof key) return fail_file(path);
    return 0;
}

static bool read_key(const char *path, vault *v) {
    FILE *file = fopen(path, "rb");
    bool good = file != NULL && fread(v->key, 1, KEY_SIZE, file) == KEY_SIZE && fgetc(file) == EOF;
    if (file != NULL) fclose(file);
    if (!good) fprintf(stderr, "encrypted: %s: expected a key of %d bytes\n", path, (int)KEY_SIZE);
    return good;
}

static int compile(vault *v, const char *from, const char *to) {
    epctx_npu npu;
    epctx_backend backend;
    epctx_buffer_io buffers = callbacks(v);
    epctx_io io = epctx_io_buffers(&buffers);
    epctx_open_opts open;
    epctx_gen_opts opts;
    epctx_gen_report report;
    epctx_model model;
    epctx_error error;
    epctx_status status;
    memset(&open, 0, sizeof open);
    memset(&opts, 0, sizeof opts);
    open.io = &io;
    opts.context_file_path = to;
    opts.overwrite = true;
    v->plain_sources = true;
    status = epctx_npu_init(&npu, NULL, &backend, &error);
    if (status == EPCTX_OK) status = epctx_model_open_file(&model, from, &open, &error);
    if (status != EPCTX_OK) return fail(&error);
    status = epctx_generate(&model, &backend, &opts, &report, &error);
    epctx_model_close(&model);
    if (status != EPCTX_OK) return fail(&error);
    printf("%s.sealed\n%s.sealed\n", report.context_path, report.binary_path);
    return 0;
}

static void fill(const epctx_value *type, void *data, size_t size) {
    size_t i;
    memset(data, 0, size);
    for (i = 0; type->elem_type == EPCTX_ONNX_FLOAT && i < size / sizeof(float); i++)
        ((float *)data)[i] = (float)((int)(i % 17) - 8) / 8;
}

static size_t bytes_of(const epctx_value *type) {
    size_t size = epctx_elem_size(type->elem_type);
    int32_t i;
    for (i = 0; i < type->rank; i++) size *= type->dims[i] > 0 ? (size_t)type->dims[i] : 0;
    return size;
}

/* Runs one partition with made-up inputs and prints a hash of each output. */
static epctx_status run_node(const epctx_backend *backend, const epctx_bound *bound,
                             epctx_error *error) {
    const epctx_graph_info *info = &bound->info;
    epctx_arena arena;
    epctx_span *inputs;
    epctx_memory *outputs;
    uint8_t *scratch;
    epctx_status status;
    size_t i;
    memset(&arena, 0, sizeof arena);
    epctx_arena_init(&arena, NULL);
    inputs = (epctx_span *)epctx_arena_array(&arena, info->input_count, sizeof *inputs);
    outputs = (epctx_memory *)epctx_arena_array(&arena, info->output_count, sizeof *outputs);
    scratch = (uint8_t *)epctx_arena_alloc(&arena, info->scratch_size + 64);
    status = inputs != NULL && outputs != NULL && scratch != NULL ? EPCTX_OK : EPCTX_ERR_NOMEM;
    for (i = 0; status == EPCTX_OK && i < info->input_count; i++) {
        size_t size = bytes_of(&info->inputs[i]);
        void *data = epctx_arena_alloc(&arena, size);
        if (data == NULL) status = EPCTX_ERR_NOMEM;
        if (data != NULL) fill(&info->inputs[i], data, size);
        inputs[i].data = (const uint8_t *)data;
        inputs[i].size = size;
    }
    for (i = 0; status == EPCTX_OK && i < info->output_count; i++) {
        outputs[i].size = bytes_of(&info->outputs[i]);
        outputs[i].data = epctx_arena_alloc(&arena, outputs[i].size);
        if (outputs[i].data == NULL) status = EPCTX_ERR_NOMEM;
    }
    if (status != EPCTX_OK) epctx_fail(error, status, "out of memory");
    if (status == EPCTX_OK) {
        scratch += (64 - (uintptr_t)scratch % 64) % 64;
        status = backend->run_fn(backend->self, bound->graph, inputs, outputs, scratch,
                                 info->scratch_size, error);
    }
    for (i = 0; status == EPCTX_OK && i < info->output_count; i++)
        printf("%.*s %016" PRIx64 "\n", (int)info->outputs[i].name.size, info->outputs[i].name.data,
               epctx_hash(outputs[i].data, outputs[i].size, 0));
    epctx_arena_free(&arena);
    return status;
}

/* `v` NULL: ordinary files, to compare with. */
static int run(vault *v, const char *path) {
    epctx_npu npu;
    epctx_backend backend;
    epctx_buffer_io buffers = callbacks(v);
    epctx_io io = epctx_io_buffers(&buffers);
    epctx_open_opts open;
    epctx_model model;
    epctx_loaded loaded;
    epctx_error error;
    epctx_status status;
    size_t i;
    memset(&open, 0, sizeof open);
    memset(&loaded, 0, sizeof loaded);
    if (v != NULL) open.io = &io;
    status = epctx_npu_init(&npu, NULL, &backend, &error);
    if (status == EPCTX_OK) status = epctx_model_open_file(&model, path, &open, &error);
    if (status != EPCTX_OK) return fail(&error);
    status = epctx_load(&loaded, &model, &backend, NULL, &error);
    for (i = 0; status == EPCTX_OK && i < loaded.bound_count; i++)
        status = run_node(&backend, &loaded.bound[i], &error);
    epctx_unload(&loaded);
    epctx_model_close(&model);
    return status == EPCTX_OK ? 0 : fail(&error);
}

int main(int argc, char **argv) {
    static vault v;
    const char *command = argc > 2 ? argv[1] : "";
    bool plain = argc == 4 && strcmp(command, "run") == 0 && strcmp(argv[2], "-") == 0;
    int code = 2;
    if (sodium_init() < 0) return fail_file("libsodium");
    if (argc == 3 && strcmp(command, "key") == 0) return make_key(argv[2]);
    if (argc > 3 && !plain && !read_key(argv[2], &v)) return 1;
    if (argc == 5 && strcmp(command, "compile") == 0)
        code = compile(&v, argv[3], argv[4]);
    else if (argc == 4 && strcmp(command, "run") == 0)
        code = run(plain ? NULL : &v, argv[3]);
    else
        fputs("usage: encrypted key KEY | compile KEY MODEL CONTEXT_MODEL | run KEY CONTEXT_MODEL\n"
              "(run - CONTEXT_MODEL: run ordinary files)\n",
              stderr);
    sodium_memzero(&v, sizeof v);
    return code;
}
