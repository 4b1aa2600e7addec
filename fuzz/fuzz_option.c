/*
 * Session options in every form in which they can be given: a list, one pair
 * at a time. What is refused changes nothing and says why; what is taken prints back to the same
 * options, and outputs that a preflight makes of them can be told apart.
 *
 * The first byte chooses the form, the profile and how much memory there is; the rest is the text.
 */
#include "fuzz.h"

/* -- options -- */

enum { FORM_LIST, FORM_PAIRS };

/* Lines of "key=value", each for itself, until one is refused. */
static epctx_status set_pairs(epctx_options *options, const char *text, size_t size,
                              epctx_error *error) {
    epctx_status status = EPCTX_OK;
    while (status == EPCTX_OK && size > 0) {
        const char *end = (const char *)memchr(text, '\n', size);
        size_t line = end != NULL ? (size_t)(end - text) : size;
        const char *middle = (const char *)memchr(text, '=', line);
        epctx_str key = {text, line}, value = {NULL, 0};
        if (middle != NULL) {
            key.size = (size_t)(middle - text);
            value.data = middle + 1;
            value.size = line - key.size - 1;
        }
        status = epctx_options_set(options, key, value, error);
        text += line + (end != NULL);
        size -= line + (end != NULL);
    }
    return status;
}

static epctx_status set(epctx_options *options, int form, const char *text, size_t size,
                        epctx_error *error) {
    if (form == FORM_LIST) return epctx_options_set_list(options, text, error);
    return set_pairs(options, text, size, error);
}

/* The options as a text of that form. */
static char *print(const epctx_options *options, int form, size_t *size) {
    size_t count, room = 1, i;
    const epctx_option_info *list = epctx_option_list(&count);
    char *text, *to;
    for (i = 0; i < count; i++)
        if (options->values[i] != NULL)
            room += strlen(list[i].key) + strlen(options->values[i]) + 2;
    text = to = (char *)malloc(room);
    require(text != NULL);
    for (i = 0; i < count; i++) {
        const char *key = list[i].key;
        if (options->values[i] == NULL) continue;
        memcpy(to, key, strlen(key));
        to += strlen(key);
        *to++ = form == FORM_LIST ? '|' : '=';
        memcpy(to, options->values[i], strlen(options->values[i]));
        to += strlen(options->values[i]);
        *to++ = form == FORM_LIST ? ' ' : '\n';
    }
    *to = '\0';
    *size = (size_t)(to - text);
    return text;
}

static bool same(const epctx_options *a, const epctx_options *b) {
    size_t i;
    for (i = 0; i < EPCTX_OPTION_COUNT; i++) {
        const char *x = a->values[i], *y = b->values[i];
        if ((x == NULL) != (y == NULL) || (x != NULL && strcmp(x, y) != 0)) return false;
    }
    return true;
}

/* -- a disk with one folder, /m, where half of the names exist -- */

static epctx_status look(void *user, const char *path, epctx_file_info *info, epctx_error *error) {
    size_t length = strlen(path);
    (void)user;
    (void)error;
    memset(info, 0, sizeof *info);
    info->size = 1;
    info->kind =
        length == 0 || path[length - 1] == '/' || strcmp(path, ".") == 0 || strcmp(path, "/m") == 0
            ? EPCTX_FILE_FOLDER
        : (epctx_hash(path, length, 0) & 1) != 0 ? EPCTX_FILE_REGULAR
                                                 : EPCTX_FILE_NONE;
    return EPCTX_OK;
}

static epctx_status create(void *user, const char *root, const char *name, epctx_io_file *file,
                           epctx_error *error) {
    (void)root, (void)name;
    (void)file;
    (void)error;
    ++*(int *)user;
    return EPCTX_OK;
}

static void give_up(void *user, epctx_io_file *file) {
    (void)file;
    --*(int *)user;
}

static void preflight(const epctx_options *options, bool many) {
    static const char *const inputs[] = {"/m/weights.bin"};
    int open = 0;
    epctx_io io;
    epctx_preflight_in in;
    epctx_outputs out;
    epctx_arena arena;
    epctx_error error;
    size_t i;
    memset(&io, 0, sizeof io);
    memset(&in, 0, sizeof in);
    io.user = &open;
    io.stat_fn = look;
    io.canonical_fn = same_path;
    io.create_fn = create;
    io.close_fn = give_up;
    in.io = &io;
    in.model_path = many ? "/m/model.onnx" : NULL;
    in.inputs = inputs;
    in.input_count = 1;
    in.short_name = many ? "qnn" : "npu";
    epctx_arena_init(&arena, NULL);
    if (epctx_preflight(options, &in, &arena, &out, &error) == EPCTX_OK) {
        const char *paths[3];
        size_t count = 0, k;
        paths[count++] = out.model;
        if (out.initializers != NULL) paths[count++] = out.initializers;
        if (out.binary != NULL) paths[count++] = out.binary;
        for (i = 0; i < count; i++) {
            require(strcmp(paths[i], "/m/model.onnx") != 0 && strcmp(paths[i], inputs[0]) != 0);
            for (k = 0; k < i; k++) require(strcmp(paths[i], paths[k]) != 0);
        }
    } else {
        require(error.message[0] != '\0');
    }
    require(open == 0);
    epctx_arena_free(&arena);
}

/* Values that were accepted have a meaning. */
static void use(const epctx_options *options) {
    size_t count, i;
    epctx_error error;
    const epctx_option_info *list = epctx_option_list(&count);
    for (i = 0; i < count; i++) {
        const char *text = epctx_option_text(options, (epctx_option)i);
        if (list[i].type == EPCTX_OPTION_TYPE_SWITCH)
            require(strcmp(text, epctx_option_on(options, (epctx_option)i) ? "1" : "0") == 0);
        if (list[i].type == EPCTX_OPTION_TYPE_NUMBER) {
            uint64_t number;
            require(epctx_str_number(epctx_str_of(text), &number));
        }
        if (list[i].type == EPCTX_OPTION_TYPE_NAME && text[0] != '\0')
            require(epctx_path_check(epctx_str_of(text), NULL) == EPCTX_OK);
    }
    require(epctx_options_to_gen(options).no_nodes <= EPCTX_NO_NODES_NOTHING);
    for (i = EPCTX_PHASE_GENERATE; i <= EPCTX_PHASE_LOAD; i++)
        if (epctx_options_check(options, (uint32_t)i, "/m/model.onnx", &error) != EPCTX_OK)
            require(error.message[0] != '\0');
    preflight(options, true);
    preflight(options, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t memory[600];
    size_t count, length;
    const epctx_profile *profiles = epctx_profiles(&count);
    epctx_options options, before, again;
    epctx_arena arena;
    epctx_error error;
    epctx_status status;
    char *text, *printed;
    bool little;
    int form;
    if (size == 0 || size > 20000) return 0;
    form = data[0] % 2;
    little = (data[0] & 0x80) != 0;
    text = (char *)malloc(size);
    require(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';

    if (little)
        epctx_arena_init_fixed(&arena, memory, sizeof memory);
    else
        epctx_arena_init(&arena, NULL);
    epctx_options_init(&options, &arena);
    options.profile = &profiles[(size_t)(data[0] & 0x7f) / 3 % count];
    (void)epctx_options_set(&options, epctx_str_of("ep.context_enable"), epctx_str_of("1"), NULL);
    before = options;
    epctx_error_clear(&error);
    status = set(&options, form, text, size - 1, &error);
    require((status == EPCTX_OK) == (error.message[0] == '\0'));
    require(status == EPCTX_OK || status == EPCTX_ERR_ARG || (little && status == EPCTX_ERR_NOMEM));
    if (status != EPCTX_OK && form != FORM_PAIRS) require(same(&options, &before));
    use(&options);

    /* In memory that is enough: the same options again. */
    printed = print(&options, form, &length);
    {
        epctx_arena other;
        epctx_arena_init(&other, NULL);
        epctx_options_init(&again, &other);
        require(set(&again, form, printed, length, &error) == EPCTX_OK);
        require(same(&again, &options));
        epctx_arena_free(&other);
    }
    free(printed);
    free(text);
    epctx_arena_free(&arena);
    return 0;
}
