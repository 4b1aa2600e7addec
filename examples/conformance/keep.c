/* keep.c - what a rule failed on, for who has no suite: the files of the experiment as they were
 * then, and a program in Python that makes the last session or compilation again. */
#define _GNU_SOURCE
#include "conformance.h"

#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH = 8, NAMES = 64 };

/* A text of Python. */
static void put_quoted(FILE *out, const char *text) {
    fputc('\'', out);
    for (; *text; text++)
        if ((unsigned char)*text < 0x20)
            fprintf(out, "\\x%02x", (unsigned)*text);
        else if (*text == '\'' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else
            fputc(*text, out);
    fputc('\'', out);
}

/* As seen from the experiment's folder. */
static const char *inside(const trial *t, const char *path) {
    const size_t length = strlen(t->folder);
    if (strncmp(path, t->folder, length) != 0) return path;
    return path[length] == '/' ? path + length + 1 : path[length] ? path : ".";
}

static void put_call(const trial *t, FILE *out, const char *begin, const char *const *pair) {
    fputs(begin, out);
    put_quoted(out, pair[0]);
    fputs(*begin == ' ' ? ": " : ", ", out);
    put_quoted(out, inside(t, pair[1]));
    fputs(*begin == ' ' ? "," : ")\n", out);
}

static void put_options(const trial *t, FILE *out, const ort_spec *spec) {
    size_t i;
    fputs("onnxruntime.register_execution_provider_library(", out);
    put_quoted(out, t->registered);
    fputs(", ", out);
    put_quoted(out, t->wanted.library);
    fputs(")\ndevices = [d for d in onnxruntime.get_ep_devices() if d.ep_name == ", out);
    put_quoted(out, spec->ep ? spec->ep : "");
    fputs("][:1]\noptions = onnxruntime.SessionOptions()\n", out);
    if (spec->plain)
        fputs("options.graph_optimization_level = "
              "onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL\n",
              out);
    for (i = 0; spec->config && spec->config[i]; i += 2)
        put_call(t, out, "options.add_session_config_entry(", &spec->config[i]);
    if (spec->more)
        fputs("# The suite also sets what is not shown here: a callback, or how EPs are chosen.\n",
              out);
    fputs("options.add_provider_for_devices(devices, {", out);
    for (i = 0; spec->options && spec->options[i]; i += 2) put_call(t, out, " ", &spec->options[i]);
    fputs("})\n", out);
}

/* The model's path, or its bytes: a file beside the experiment's folder until they are kept. */
static void put_model(const trial *t, FILE *out, const ort_spec *spec) {
    char path[PATH_MAX];
    if (spec->path) {
        put_quoted(out, inside(t, spec->path));
        return;
    }
    snprintf(path, sizeof path, "%.*s.onnx", PATH_MAX - 8, t->folder);
    write_file(path, spec->data, spec->size);
    fputs("open('memory.onnx', 'rb').read()", out);
}

static void put_compilation(const trial *t, FILE *out, const ort_spec *spec, const ort_output *to) {
    static const char writer[] =
        "compiler.set_ep_context_data_write_func(\n"
        "    lambda name, data: print('write callback:', name, data.size))\n";
    const char *slash = to->path ? strrchr(to->path, '/') : NULL;
    fputs("compiler = onnxruntime.ModelCompiler(options, ", out);
    put_model(t, out, spec);
    fprintf(out,
            ", embed_compiled_data_into_model=%s)\n"
            "%sos.makedirs('again', exist_ok=True)\ncompiler.compile_to_file('again/' + ",
            to->embed ? "True" : "False", to->more == set_writer ? writer : "");
    put_quoted(out, slash ? slash + 1 : "m_ctx.onnx");
    fputs(")\nprint(os.listdir('again'))\n", out);
}

static void put_run(const trial *t, FILE *out, const ort_spec *spec) {
    fputs("session = onnxruntime.InferenceSession(", out);
    put_model(t, out, spec);
    /* Else ORT's Python goes on with the CPU EP where this one refuses the model. */
    fputs(", options, enable_fallback=0)\n"
          "types = {'tensor(int8)': 'int8', 'tensor(uint8)': 'uint8'}\nvalues = {}\n"
          "for one in session.get_inputs():\n"
          "    shape = [d if isinstance(d, int) else 1 for d in one.shape]\n"
          "    values[one.name] = numpy.resize(numpy.arange(-4, 5) / 4, shape).astype(\n"
          "        types.get(one.type, 'float32'))\n"
          "print(session.run(None, values))\n",
          out);
}

void note_session(const ort_spec *spec, const ort_output *to) {
    const trial *t = (const trial *)spec->seen_by;
    char here[PATH_MAX];
    t->board->sessions++;
    /* The last byte stays 0, however long the options are. */
    FILE *out = fmemopen(t->board->again, sizeof t->board->again - 1, "w");
    if (!out) return;
    if (getcwd(here, sizeof here) && strcmp(here, t->folder) != 0) {
        fputs("os.chdir(", out);
        put_quoted(out, inside(t, here));
        fputs(")\n", out);
    }
    put_options(t, out, spec);
    if (to)
        put_compilation(t, out, spec, to);
    else
        put_run(t, out, spec);
    fclose(out);
}

/* ------------------------------------------------------------------ keeping */

static void copy_tree(const char *from, const char *to, unsigned depth);

static void copy_entry(const char *from, const char *to, unsigned depth) {
    char link[PATH_MAX];
    struct stat st;
    ssize_t length;
    if (lstat(from, &st) != 0) return;
    if (S_ISDIR(st.st_mode)) copy_tree(from, to, depth + 1);
    if (S_ISREG(st.st_mode)) copy_file(from, to);
    if (!S_ISLNK(st.st_mode)) return;
    length = readlink(from, link, sizeof link - 1);
    if (length < 0) return;
    link[length] = '\0';
    if (symlink(link, to) != 0) remove(to);
}

static void copy_tree(const char *from, const char *to, unsigned depth) {
    char names[NAMES][256], here[PATH_MAX], there[PATH_MAX];
    const size_t count = depth < DEPTH ? list_files(from, names, NAMES) : 0;
    size_t i;
    make_folder(to);
    for (i = 0; i < count; i++)
        if ((size_t)snprintf(here, sizeof here, "%s/%s", from, names[i]) < sizeof here &&
            (size_t)snprintf(there, sizeof there, "%s/%s", to, names[i]) < sizeof there)
            copy_entry(here, there, depth);
}

/* One line of a comment. */
static void put_comment(FILE *out, const char *text) {
    fputs("# ", out);
    for (; *text; text++) fputc((unsigned char)*text < 0x20 ? ' ' : *text, out);
    fputc('\n', out);
}

void keep_failure(const trial *t, const char *rule_id, const char *text) {
    char to[PATH_MAX], path[PATH_MAX], from[PATH_MAX];
    FILE *out;
    snprintf(to, sizeof to, "%.*s/%s", PATH_MAX - 32, t->wanted.keep, rule_id);
    if (file_exists(to)) return; /* the first failure of a rule is kept */
    copy_tree(t->folder, to, 0);
    snprintf(from, sizeof from, "%.*s.onnx", PATH_MAX - 8, t->folder);
    snprintf(path, sizeof path, "%.*s/memory.onnx", PATH_MAX - 32, to);
    if (file_exists(from)) copy_file(from, path);
    snprintf(path, sizeof path, "%.*s/again.py", PATH_MAX - 32, to);
    out = fopen(path, "w");
    if (!out) return;
    put_comment(out, rule_id);
    put_comment(out, text);
    put_comment(out, "What was done last before this was seen, as an application does it.");
    fputs("import os\nimport numpy\nimport onnxruntime\n\n"
          "os.chdir(os.path.dirname(os.path.abspath(__file__)))\n",
          out);
    fputs(t->board->again, out);
    if (t->board->sessions > 1)
        fprintf(out, "print('Before it the suite made %zu other%s, which it may need.')\n",
                t->board->sessions - 1, t->board->sessions > 2 ? "s" : "");
    fputs("print('The suite found:', ", out);
    put_quoted(out, text);
    fputs(")\n", out);
    fclose(out);
}
