/* >>io: where outputs go and what becomes of what stood there: links, modes, names at their limit,
 * others who write the same files. */
#define _XOPEN_SOURCE 700
#include "examples/epctx/ops/cache.h"
#include "examples/epctx/ops/contexts.h"
#include "examples/epctx/ops/init.h"
#include "examples/epctx/ops/move.h"
#include "fake.h"
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

/* -- a tree: the model's folder "in", somebody else's "out" -- */

static void remove_tree(const char *folder) {
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char path[600];
        struct stat info;
        const char *name = entries[i]->d_name;
        snprintf(path, sizeof path, "%s/%s", folder, name);
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && lstat(path, &info) == 0) {
            if (S_ISDIR(info.st_mode)) remove_tree(path);
            remove(path);
        }
        free(entries[i]);
    }
    if (count >= 0) free(entries);
}

static void make_tree(void) {
    remove_tree(root);
    mkdir(at("in"), 0755);
    mkdir(at("out"), 0755);
    make_file(at("out/victim"), "precious", 8);
}

static const char *names_in(const char *folder) {
    static char text[1000];
    struct dirent **entries;
    int count = scandir(at(folder), &entries, NULL, alphasort);
    text[0] = '\0';
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.') {
            strcat(text, entries[i]->d_name);
            strcat(text, " ");
        }
        free(entries[i]);
    }
    if (count >= 0) free(entries);
    return text;
}

static bool victim_lives(void) {
    bytes b = read_file(at("out/victim"));
    bool same = bytes_equal(&b, "precious", 8) && strcmp(names_in("out"), "victim ") == 0;
    bytes_free(&b);
    return same;
}

/* -- everything that writes: a model in "in" and one name that nobody chose -- */

static epctx_error error;

static void save_source(void) {
    make_named("in/m.onnx", 0);
}

static void save_embedded(const char *cache, int64_t embed) {
    static const int64_t dims[] = {1, -1};
    bytes graph = {0}, model;
    add_epnode(&graph, "a", "x", "y", 1, embed, "X", "a", cache, strlen(cache));
    put_str(&graph, 2, "main");
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, dims);
    model = new_model(&graph);
    add_opset(&model, "com.microsoft", 1);
    save_bytes("in/m.onnx", &model);
}

static epctx_status generate_with(const epctx_gen_opts *given) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_gen_opts opts = {0};
    epctx_model model;
    epctx_status status;
    if (given != NULL) opts = *given;
    opts.overwrite = true;
    status = epctx_model_open_file(&model, at("in/m.onnx"), NULL, &error);
    if (status == EPCTX_OK) status = epctx_generate(&model, &backend, &opts, NULL, &error);
    epctx_model_close(&model);
    return status;
}

static epctx_status generate(const char *name) {
    (void)name;
    return generate_with(NULL);
}

static epctx_status generate_binary(const char *name) {
    epctx_gen_opts opts = {0};
    opts.binary = name;
    return generate_with(&opts);
}

static epctx_status generate_initializers(const char *name) {
    epctx_gen_opts opts = {0};
    opts.initializers_file_name = name;
    return generate_with(&opts);
}

static epctx_status open_or_compile(const char *name) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_opened opened;
    epctx_status status;
    (void)name;
    status = epctx_open_or_compile(&opened, at("in/m.onnx"), &backend, NULL, &error);
    epctx_opened_close(&opened);
    return status;
}

static epctx_status share_generate(const char *name) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_gen_opts opts = {0};
    epctx_workspace *w = NULL;
    epctx_model model;
    epctx_status status;
    (void)name;
    opts.overwrite = true;
    if (epctx_workspace_open(&w, NULL, &error) != EPCTX_OK) return EPCTX_ERR_NOMEM;
    status = epctx_model_open_file(&model, at("in/m.onnx"), NULL, &error);
    opts.workspace = w;
    opts.group = "g";
    opts.stop = true;
    if (status == EPCTX_OK) status = epctx_generate(&model, &backend, &opts, NULL, &error);
    epctx_model_close(&model);
    epctx_workspace_close(w);
    return status;
}

typedef epctx_status (*convert_fn)(epctx_model *model, const ops_convert_opts *opts,
                                   ops_changes *changes, epctx_error *error);

static epctx_status convert_at(convert_fn function, const char *path, const char *name,
                               epctx_overwrite overwrite) {
    ops_convert_opts opts = {0};
    epctx_write_opts write = {0};
    ops_changes changes;
    epctx_model model;
    epctx_status status = epctx_model_open_file(&model, at(path), NULL, &error);
    opts.common.name = name;
    if (overwrite == EPCTX_OVERWRITE_BACKUP) write.overwrite = overwrite;
    if (status == EPCTX_OK) status = function(&model, &opts, &changes, &error);
    if (status == EPCTX_OK)
        status = epctx_model_write_group(&model, at(path), &write, changes.files,
                                         changes.file_count, overwrite, &error);
    epctx_model_close(&model);
    return status;
}

static epctx_status extract(const char *name) {
    return convert_at(ops_extract, "in/m.onnx", name, EPCTX_OVERWRITE_REPLACE);
}

static epctx_status extract_backup(const char *name) {
    return convert_at(ops_extract, "in/m.onnx", name, EPCTX_OVERWRITE_BACKUP);
}

static epctx_status external(const char *name) {
    return convert_at(epctx_init_external, "in/m.onnx", name, EPCTX_OVERWRITE_REPLACE);
}

static epctx_status move(const char *name) {
    const char *model = at("in/m.onnx");
    char to[100];
    snprintf(to, sizeof to, "in/%s", name);
    return epctx_move_binary(at("in/c.bin"), at(to), &model, 1, NULL, NULL, &error);
}

static void save_inside(void) {
    save_embedded("context", 1);
}

static void save_outside(void) {
    save_embedded("c.bin", 0);
    make_file(at("in/c.bin"), "context", 7);
}

static const struct output {
    const char *what;
    void (*make)(void);
    epctx_status (*run)(const char *name);
    const char *name; /* of what is written, below "in" */
} outputs[] = {
    {"generate: model", save_source, generate, "m_ctx.onnx"},
    {"generate: binary", save_source, generate, "m_fake.bin"},
    {"generate: named binary", save_source, generate_binary, "sub/b.bin"},
    {"generate: initializers", save_source, generate_initializers, "w.data"},
    {"open_or_compile: model", save_source, open_or_compile, "m_ctx.onnx"},
    {"open_or_compile: binary", save_source, open_or_compile, "m_fake.bin"},
    {"share_generate: model", save_source, share_generate, "m_ctx.onnx"},
    {"share_generate: binary", save_source, share_generate, "m_fake.bin"},
    {"extract", save_inside, extract, "c.bin"},
    {"extract into a folder", save_inside, extract, "sub/c.bin"},
    {"extract into a folder of a folder", save_inside, extract, "sub/a/c.bin"},
    {"extract with a backup", save_inside, extract_backup, "c.bin"},
    {"init --external", save_source, external, "w.data"},
    {"init --external into a folder", save_source, external, "sub/w.data"},
    {"mv", save_outside, move, "d.bin"},
    {"mv into a folder", save_outside, move, "sub/d.bin"},
};

#define OUTPUTS (sizeof outputs / sizeof outputs[0])

static void make_folders(const char *name) {
    if (strncmp(name, "sub/", 4) == 0) mkdir(at("in/sub"), 0755);
    if (strncmp(name, "sub/a/", 6) == 0) mkdir(at("in/sub/a"), 0755);
}

/* Every function that writes, with each part of the name being a link out of the folder: to a file,
 * to nothing, to a folder. Nothing is written there, and without the link it works. */
TEST(links) {
    for (size_t i = 0; i < OUTPUTS; i++) {
        const struct output *o = &outputs[i];
        char path[100];
        int kinds = strncmp(o->name, "sub/", 4) == 0 ? 4 : 2;
        snprintf(path, sizeof path, "in/%s", o->name);
        for (int kind = 0; kind < kinds; kind++) {
            epctx_status status;
            struct stat info;
            make_tree();
            o->make();
            if (kind < 2) {
                make_folders(o->name);
                CHECK_INT(symlink(at(kind == 0 ? "out/victim" : "out/new"), at(path)), 0);
            } else if (kind == 2) {
                CHECK_INT(symlink("../out", at("in/sub")), 0);
            } else {
                make_folders(o->name);
                rename(at("in/sub"), at("in/real"));
                CHECK_INT(symlink("real", at("in/sub")), 0);
            }
            epctx_error_clear(&error);
            status = o->run(o->name);
            CHECK(victim_lives(), "%s, link %d: written out of the folder: %s", o->what, kind,
                  names_in("out"));
            CHECK(status == EPCTX_ERR_PATH || status == EPCTX_ERR_NOT_FOUND ||
                      (status == EPCTX_ERR_EXISTS && o->run == move) ||
                      (status == EPCTX_OK && o->run == move && kind == 3), /* named by the caller */
                  "%s, link %d: %s (%s)", o->what, kind, epctx_status_name(status), error.message);
            CHECK(kind >= 2 || (lstat(at(path), &info) == 0 && S_ISLNK(info.st_mode)),
                  "%s, link %d: the link is gone", o->what, kind);
        }
        make_tree();
        o->make();
        make_folders(o->name);
        epctx_error_clear(&error);
        CHECK(o->run(o->name) == EPCTX_OK, "%s: %s", o->what, error.message);
        CHECK(access(at(path), F_OK) == 0, "%s: %s is not there", o->what, o->name);
    }
}

/* A lock or a backup that is a link already. */
TEST(links_beside) {
    make_tree();
    save_inside();
    make_file(at("in/c.bin"), "old", 3);
    CHECK_INT(symlink(at("out/victim"), at("in/c.bin~")), 0);
    CHECK_INT(symlink(at("out/victim"), at("in/m.onnx~")), 0);
    CHECK_OK(extract_backup("c.bin"), error);
    CHECK_TRUE(victim_lives());
    CHECK_STR(names_in("in"), "c.bin c.bin~ c.bin~2 m.onnx m.onnx~ m.onnx~2 ");
    make_tree();
    save_inside();
    CHECK_INT(symlink(at("out/victim"), at("in/c.bin.lock")), 0);
    CHECK_INT(symlink(at("out/new"), at("in/m.onnx.lock")), 0);
    CHECK_TRUE(extract("c.bin") != EPCTX_OK);
    CHECK_HAS(error.message, "lock");
    CHECK_TRUE(victim_lives());
    CHECK_STR(names_in("in"), "c.bin.lock m.onnx m.onnx.lock ");
}

/* Somebody makes the folder a link and a folder again while the call runs. */
static volatile bool swapping;

static void *swap_folders(void *unused) {
    char sub[TEST_TEMP + 16], real[TEST_TEMP + 16], link[TEST_TEMP + 16];
    (void)unused;
    snprintf(sub, sizeof sub, "%s/in/sub", root);
    snprintf(real, sizeof real, "%s/in/.real", root);
    snprintf(link, sizeof link, "%s/in/.link", root);
    while (swapping) {
        rename(sub, real);
        rename(link, sub);
        rename(sub, link);
        rename(real, sub);
    }
    return NULL;
}

TEST(racing_links) {
    int done = 0;
    for (size_t i = 0; i < OUTPUTS; i++) {
        pthread_t thread;
        if (strncmp(outputs[i].name, "sub/", 4) != 0) continue;
        make_tree();
        make_folders(outputs[i].name);
        CHECK_INT(symlink("../out", at("in/.link")), 0);
        swapping = true;
        CHECK_INT(pthread_create(&thread, NULL, swap_folders, NULL), 0);
        for (int round = 0; round < 60; round++) {
            outputs[i].make();
            done += outputs[i].run(outputs[i].name) == EPCTX_OK;
        }
        swapping = false;
        pthread_join(thread, NULL);
        CHECK(victim_lives(), "%s: written out of the folder: %s", outputs[i].what,
              names_in("out"));
    }
    printf("note racing_links: %d calls went through\n", done);
}

/* -- what the caller named may be a link; what the model names is beside the file -- */

static bool loads(const char *path) {
    epctx_arena arena;
    epctx_dependency *files;
    epctx_model model;
    size_t count = 0;
    bool good = epctx_model_open_file(&model, at(path), NULL, &error) == EPCTX_OK;
    epctx_arena_init(&arena, NULL);
    good = good && epctx_model_files(&model, NULL, &arena, &files, &count, &error) == EPCTX_OK;
    for (size_t i = 0; i < count; i++) good = good && files[i].status == EPCTX_OK;
    epctx_arena_free(&arena);
    epctx_model_close(&model);
    return good;
}

static void make_linked(void (*make)(void)) {
    make_tree();
    make();
    CHECK_INT(rename(at("in"), at("real")), 0);
    CHECK_INT(mkdir(at("in"), 0755), 0);
    CHECK_INT(symlink("../real/m.onnx", at("in/m.onnx")), 0);
}

TEST(beside_the_file) {
    epctx_gen_opts opts = {0};
    const char *model;
    make_linked(save_inside);
    CHECK_OK(extract(NULL), error);
    CHECK_STR(names_in("in"), "m.onnx ");
    CHECK_STR(names_in("real"), "m.onnx m_x.bin ");
    CHECK_TRUE(loads("real/m.onnx"));
    make_linked(save_source);
    CHECK_OK(external(NULL), error);
    CHECK_STR(names_in("in"), "m.onnx ");
    CHECK_STR(names_in("real"), "m.onnx m.onnx.data ");
    CHECK_TRUE(loads("real/m.onnx"));
    make_linked(save_outside);
    CHECK_INT(symlink("../real/c.bin", at("in/c.bin")), 0);
    model = at("in/m.onnx");
    CHECK_OK(epctx_move_binary(at("in/c.bin"), at("in/d.bin"), &model, 1, NULL, NULL, &error),
             error);
    CHECK_STR(names_in("real"), "d.bin m.onnx ");
    CHECK_TRUE(loads("real/m.onnx"));
    make_tree(); /* the EPContext model is a link */
    save_source();
    CHECK_INT(mkdir(at("real"), 0755), 0);
    make_file(at("real/o.onnx"), "old", 3);
    CHECK_INT(symlink("../real/o.onnx", at("in/o.onnx")), 0);
    opts.context_file_path = at("in/o.onnx");
    CHECK_OK(generate_with(&opts), error);
    CHECK_STR(names_in("in"), "m.onnx o.onnx ");
    CHECK_STR(names_in("real"), "o.onnx o_fake.bin ");
    CHECK_TRUE(loads("real/o.onnx"));
}

/* -- modes -- */

static int mode_after(mode_t before) {
    struct stat info;
    make_tree();
    save_inside();
    make_file(at("in/c.bin"), "old", 3);
    if (chmod(at("in/c.bin"), before) != 0 || extract("c.bin") != EPCTX_OK ||
        stat(at("in/c.bin"), &info) != 0)
        return -1;
    return (int)(info.st_mode & 07777);
}

TEST(modes) {
    CHECK_INT(mode_after(0640), 0640);
    CHECK_INT(mode_after(0600), 0600);
    CHECK_INT(mode_after(0755), 0755);
    CHECK_INT(mode_after(06755), 0755);
    CHECK_INT(mode_after(04711), 0711);
    CHECK_INT(mode_after(01666), 0666);
}

/* Owner and group of the old file. The child is somebody else, in a folder that is everybody's. */
TEST(modes_of_others) {
    static const struct {
        uid_t owner;
        gid_t group;
        mode_t before, after;
        uid_t writer;
    } cases[] = {
        {0, 33, 0660, 0660, 0},    /* the group is kept */
        {0, 33, 0660, 0600, 4321}, /* not by him: nobody of his group could read it */
        {0, 33, 0640, 0600, 4321},    {0, 33, 0664, 0644, 4321}, /* what all could, all can */
        {4321, 4321, 0666, 0644, 0}, /* nobody writes what belongs to us now */
        {4321, 4321, 06755, 0755, 0},
    };
    if (getuid() != 0) SKIP("not root: files cannot be given to others");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct stat info;
        pid_t child;
        int code = -1;
        make_tree();
        save_inside();
        make_file(at("in/c.bin"), "old", 3);
        CHECK_INT(chown(at("in/c.bin"), cases[i].owner, cases[i].group), 0);
        CHECK_INT(chmod(at("in/c.bin"), cases[i].before), 0);
        CHECK_INT(chmod(root, 0755), 0);
        CHECK_INT(chmod(at("in"), 0777), 0);
        CHECK_INT(chmod(at("in/m.onnx"), 0666), 0);
        child = fork();
        if (child == 0) {
            if (cases[i].writer != 0 &&
                (setgid(cases[i].writer) != 0 || setuid(cases[i].writer) != 0))
                _exit(9);
            _exit(extract("c.bin") == EPCTX_OK ? 0 : 1);
        }
        CHECK_TRUE(child > 0 && waitpid(child, &code, 0) == child);
        if (code != 0 && (cases[i].before & 04) == 0) continue; /* he cannot read the old one */
        CHECK(code == 0, "case %zu: the writer ends with %d", i, code);
        CHECK_INT(stat(at("in/c.bin"), &info), 0);
        CHECK(info.st_uid == cases[i].writer, "case %zu: it belongs to %d", i, (int)info.st_uid);
        CHECK((info.st_mode & 07777) == cases[i].after, "case %zu: mode %o, expected %o", i,
              (unsigned)(info.st_mode & 07777), (unsigned)cases[i].after);
    }
}

/* -- names -- */

/* From 240 bytes to the longest that there are; letters of two bytes are not cut. */
TEST(long_names) {
    for (size_t size = 236; size <= 255; size++) {
        char name[260], path[300];
        epctx_write_opts opts = {0};
        epctx_gen_opts gen = {0};
        epctx_model model;
        make_tree();
        save_source();
        for (size_t i = 0; i + 1 < size; i += 2) memcpy(name + i, "\xc3\xa4", 2);
        memcpy(name + size - 5, ".onnx", 6);
        if (size % 2 == 0) {
            name[0] = 'x';
            memmove(name + 1, name + 2, size - 7);
            name[size - 6] = 'y';
        }
        snprintf(path, sizeof path, "in/%s", name);
        CHECK_INT(epctx_model_open_file(&model, at("in/m.onnx"), NULL, &error), EPCTX_OK);
        CHECK_OK(epctx_model_write_file(&model, at(path), NULL, &error), error);
        opts.overwrite = EPCTX_OVERWRITE_BACKUP;
        CHECK_OK(epctx_model_write_file(&model, at(path), &opts, &error), error);
        CHECK_OK(epctx_model_write_file(&model, at(path), &opts, &error), error);
        epctx_model_close(&model);
        CHECK_TRUE(access(at(path), F_OK) == 0);
        make_tree();
        save_source();
        gen.binary = name;
        CHECK_OK(generate_with(&gen), error);
        CHECK_OK(generate_with(&gen), error);
        CHECK_TRUE(access(at(path), F_OK) == 0);
        CHECK_TRUE(strstr(names_in("in"), ".tmp") == NULL);
        CHECK_TRUE(strstr(names_in("in"), ".lock") == NULL);
    }
}

/* The source goes to `model` and a file beside it: both under locks. */
static epctx_status write_two(const char *model_name, const char *file_name) {
    static const uint8_t text[] = "beside";
    char model_path[TEST_TEMP + 300], file_path[TEST_TEMP + 300];
    epctx_output_file file;
    epctx_span part = {text, sizeof text};
    epctx_model model;
    epctx_status status;
    snprintf(model_path, sizeof model_path, "%s/in/%s", root, model_name);
    snprintf(file_path, sizeof file_path, "%s/in/%s", root, file_name);
    memset(&file, 0, sizeof file);
    file.path = file_path;
    file.name = file_name;
    file.parts = &part;
    file.part_count = 1;
    file.size = sizeof text;
    status = epctx_model_open_file(&model, at("in/s.onnx"), NULL, &error);
    if (status == EPCTX_OK) {
        status = epctx_model_write_group(&model, model_path, NULL, &file, 1,
                                         EPCTX_OVERWRITE_REPLACE, &error);
    }
    epctx_model_close(&model);
    return status;
}

/* Names that are cut to the name of one lock: nobody waits for himself. */
TEST(long_names_of_one_lock) {
    char model[256], file[256];
    memset(model, 'a', sizeof model);
    memcpy(model + 245, ".onnx", 6);
    snprintf(file, sizeof file, "%.250s.data", model);
    make_tree();
    make_named("in/s.onnx", 0);
    alarm(60);
    CHECK_OK(write_two(model, file), error);
    CHECK_OK(write_two(file, model), error);
    alarm(0);
}

/* A name that is no path any more behind its whole folder, which the model's path leaves out. */
TEST(long_names_in_a_folder) {
    static char name[EPCTX_PATH_MAX];
    char here[EPCTX_PATH_MAX];
    epctx_output_file file = {0};
    epctx_model model;
    epctx_status status;
    make_tree();
    make_named("in/m.onnx", 0);
    memset(name, 'n', sizeof name - 4);
    for (size_t i = 200; i + 4 < sizeof name; i += 200) name[i] = '/';
    file.path = file.name = name;
    CHECK_TRUE(getcwd(here, sizeof here) != NULL && chdir(at("in")) == 0);
    CHECK_OK(epctx_model_open_file(&model, "m.onnx", NULL, &error), error);
    status =
        epctx_model_write_group(&model, "m.onnx", NULL, &file, 1, EPCTX_OVERWRITE_REPLACE, &error);
    epctx_model_close(&model);
    CHECK_INT(chdir(here), 0);
    CHECK_INT(status, EPCTX_ERR_LIMIT);
    CHECK_HAS(error.message, "a path is longer");
    CHECK_STR(names_in("in"), "m.onnx ");
}

/* Whether the process comes to wait for something that can be interrupted, as a lock is. */
static bool comes_to_wait(pid_t pid) {
    static const struct timespec moment = {0, 20000000};
    char path[40], line[200];
    for (int i = 0; i < 500; i++) {
        const char *state = NULL;
        FILE *f;
        nanosleep(&moment, NULL);
        snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
        f = fopen(path, "r");
        if (f && fgets(line, sizeof line, f)) state = strrchr(line, ')');
        if (f) fclose(f);
        if (state && state[1] == ' ' && state[2] == 'S') return true;
    }
    return false;
}

/* What is a model for one is a file beside it for the other: who waits for the lock of one has not
 * got the other's. */
TEST(locks_have_one_order) {
    epctx_file_lock first, second;
    bool waits;
    pid_t child;
    int status = -1;
    make_tree();
    make_named("in/s.onnx", 0);
    CHECK_OK(epctx_file_lock_take(&first, NULL, at("in/a.onnx"), &error), error);
    child = fork();
    if (child == 0) {
        alarm(60);
        _exit(write_two("b.onnx", "a.onnx") == EPCTX_OK ? 0 : 1);
    }
    waits = comes_to_wait(child);
    alarm(60);
    CHECK_OK(epctx_file_lock_take(&second, NULL, at("in/b.onnx"), &error), error);
    alarm(0);
    epctx_file_lock_drop(&second);
    epctx_file_lock_drop(&first);
    CHECK_TRUE(waitpid(child, &status, 0) == child);
    CHECK_INT(status, 0);
    CHECK(waits, "the other process never waited for a lock: the case proves nothing");
}

/* FILE.lock that somebody has for purposes of his own. */
TEST(lock_of_somebody) {
    bytes b;
    make_tree();
    make_named("in/s.onnx", 0);
    make_file(at("in/m.onnx.lock"), "mine", 4);
    CHECK_OK(write_two("m.onnx", "m.bin"), error);
    b = read_file(at("in/m.onnx.lock"));
    CHECK(bytes_equal(&b, "mine", 4), "a lock file with something in it is gone or changed");
    bytes_free(&b);
    CHECK_STR(names_in("in"), "m.bin m.onnx m.onnx.lock s.onnx ");
}

/* What is being written has no name where the system can do that: nothing is left by a kill. */
TEST(nothing_to_leave) {
    static epctx_io_file file;
    const epctx_io *io = epctx_io_files();
    make_tree();
    CHECK_INT(io->create_fn(io->user, NULL, at("in/x"), &file, &error), EPCTX_OK);
    CHECK_INT(io->write_fn(io->user, &file, "half", 4, &error), EPCTX_OK);
    if (strcmp(names_in("in"), "") != 0) {
        io->close_fn(io->user, &file);
        SKIP("files without a name cannot be made here");
    }
    io->close_fn(io->user, &file);
    CHECK_STR(names_in("in"), "");
}

/* -- others who write the same -- */

TEST(changed_since_read) {
    epctx_model one, two;
    bytes before, after;
    make_tree();
    save_source();
    CHECK_INT(epctx_model_open_file(&one, at("in/m.onnx"), NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_model_open_file(&two, at("in/m.onnx"), NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_edit_set_metadata(&one, epctx_str_of("a"), epctx_str_of("1"), &error),
              EPCTX_OK);
    CHECK_INT(epctx_edit_set_metadata(&two, epctx_str_of("b"), epctx_str_of("2"), &error),
              EPCTX_OK);
    CHECK_OK(epctx_model_write_file(&one, at("in/m.onnx"), NULL, &error), error);
    before = read_file(at("in/m.onnx"));
    CHECK_INT(epctx_model_write_file(&two, at("in/m.onnx"), NULL, &error), EPCTX_ERR_CHANGED);
    CHECK_HAS(error.message, "m.onnx: changed since it was read");
    CHECK_INT(epctx_model_write_group(&two, at("in/m.onnx"), NULL, NULL, 0, EPCTX_OVERWRITE_REPLACE,
                                      &error),
              EPCTX_ERR_CHANGED);
    after = read_file(at("in/m.onnx"));
    CHECK_TRUE(bytes_equal(&after, before.data, before.size));
    CHECK_OK(epctx_model_write_file(&one, at("in/m.onnx"), NULL, &error), error); /* its own */
    CHECK_OK(epctx_model_write_file(&two, at("in/other.onnx"), NULL, &error), error);
    epctx_model_close(&one);
    epctx_model_close(&two);
    bytes_free(&before);
    bytes_free(&after);
    CHECK_STR(names_in("in"), "m.onnx other.onnx ");
}

#define WRITERS 8

static char in_model[200]; /* at() is for one thread */

static void *change_one(void *user) {
    char key[2] = {(char)('a' + *(int *)user), '\0'};
    epctx_file_lock lock;
    epctx_write_opts opts = {0};
    epctx_error e;
    epctx_model model;
    bool good = epctx_file_lock_take(&lock, NULL, in_model, &e) == EPCTX_OK;
    opts.lock = &lock;
    good = good && epctx_model_open_file(&model, in_model, NULL, &e) == EPCTX_OK;
    good = good &&
           epctx_edit_set_metadata(&model, epctx_str_of(key), epctx_str_of("x"), &e) == EPCTX_OK &&
           epctx_model_write_file(&model, in_model, &opts, &e) == EPCTX_OK;
    epctx_model_close(&model);
    epctx_file_lock_drop(&lock);
    return good ? user : NULL;
}

static bool has_metadata(const epctx_model *model, const char *key) {
    epctx_cursor it =
        epctx_view_fields(epctx_model_read(model).view, EPCTX_FIELD_MODEL_METADATA_PROPS);
    epctx_pair pair;
    while (epctx_next_pair(&it, &pair))
        if (epctx_str_is(pair.key, key)) return true;
    return false;
}

TEST(read_change_write) {
    pthread_t threads[WRITERS];
    int numbers[WRITERS];
    epctx_model model;
    make_tree();
    save_source();
    strcpy(in_model, at("in/m.onnx"));
    for (int i = 0; i < WRITERS; i++) {
        numbers[i] = i;
        CHECK_INT(pthread_create(&threads[i], NULL, change_one, &numbers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        CHECK(result != NULL, "writer %d failed", i);
    }
    CHECK_INT(epctx_model_open_file(&model, at("in/m.onnx"), NULL, &error), EPCTX_OK);
    for (int i = 0; i < WRITERS; i++) {
        char key[2] = {(char)('a' + i), '\0'};
        CHECK(has_metadata(&model, key), "change %d is lost", i);
    }
    epctx_model_close(&model);
    CHECK_STR(names_in("in"), "m.onnx ");
}

/* A compiler of one of two sources into one EPContext model, or into one binary. */
typedef struct compiler {
    char source[200], context[200];
    const char *binary;
    int rounds, failed;
    atomic_int ended; /* rounds */
    epctx_error error;
} compiler;

static void *compile_often(void *user) {
    compiler *c = (compiler *)user;
    for (int i = 0; i < c->rounds; i++) {
        fake f = {0};
        epctx_backend backend = fake_backend(&f);
        epctx_gen_opts opts = {0};
        epctx_model model;
        opts.overwrite = true;
        opts.context_file_path = c->context;
        opts.binary = c->binary;
        if (epctx_model_open_file(&model, c->source, NULL, &c->error) != EPCTX_OK ||
            epctx_generate(&model, &backend, &opts, NULL, &c->error) != EPCTX_OK)
            c->failed++;
        epctx_model_close(&model);
        atomic_fetch_add(&c->ended, 1);
    }
    return NULL;
}

static bool fake_loads(const char *path) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_loaded loaded;
    epctx_model model;
    epctx_status status = epctx_model_open_file(&model, at(path), NULL, &error);
    if (status == EPCTX_OK) {
        status = epctx_load(&loaded, &model, &backend, NULL, &error);
        epctx_unload(&loaded);
    }
    epctx_model_close(&model);
    return status == EPCTX_OK;
}

TEST(two_writers) {
    for (int round = 0; round < 16; round++) {
        compiler c[2];
        pthread_t threads[2];
        bool shared = round % 2 != 0; /* two models, one binary */
        make_tree();
        make_named("in/a.onnx", 1);
        make_named("in/b.onnx", 2);
        memset(c, 0, sizeof c);
        for (int i = 0; i < 2; i++) {
            strcpy(c[i].source, at(i == 0 ? "in/a.onnx" : "in/b.onnx"));
            strcpy(c[i].context, at(shared && i == 0 ? "in/z_ctx.onnx" : "in/o_ctx.onnx"));
            c[i].binary = shared ? "o.bin" : NULL;
            c[i].rounds = 4;
            CHECK_INT(pthread_create(&threads[i], NULL, compile_often, &c[i]), 0);
        }
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
        CHECK(c[0].failed + c[1].failed == 0, "round %d: %s%s", round, c[0].error.message,
              c[1].error.message);
        CHECK(fake_loads("in/o_ctx.onnx") || (shared && fake_loads("in/z_ctx.onnx")),
              "round %d: %s", round, error.message);
        CHECK_STR(names_in("in"), shared ? "a.onnx b.onnx o.bin o_ctx.onnx z_ctx.onnx "
                                         : "a.onnx b.onnx o_ctx.onnx o_fake.bin ");
    }
}

/* The model that is replaced with its binary is never missing, and always a whole one. */
TEST(never_missing) {
    compiler c;
    pthread_t thread;
    int seen = 0, missing = 0, met = 0, ended = 0;
    make_tree();
    save_source();
    CHECK_OK(generate(NULL), error);
    memset(&c, 0, sizeof c);
    make_named("in/b.onnx", 7);
    strcpy(c.source, at("in/b.onnx"));
    strcpy(c.context, at("in/m_ctx.onnx"));
    c.rounds = 30;
    CHECK_INT(pthread_create(&thread, NULL, compile_often, &c), 0);
    for (; seen < 1500 || ended < c.rounds; seen++) {
        epctx_model model;
        const int now = atomic_load(&c.ended);
        if (epctx_model_open_file(&model, c.context, NULL, NULL) != EPCTX_OK) missing++;
        epctx_model_close(&model);
        met += now != ended;
        ended = now;
    }
    pthread_join(thread, NULL);
    CHECK(missing == 0, "the model was missing %d of %d times", missing, seen);
    CHECK(met > 2, "reader and writer met %d times: the case proves nothing", met);
    CHECK_INT(c.failed, 0);
    CHECK_TRUE(fake_loads("in/m_ctx.onnx"));
    CHECK_STR(names_in("in"), "b.onnx m.onnx m_ctx.onnx m_fake.bin ");
}

int main(int argc, char **argv) {
    if (!make_root()) {
        printf("FAIL test_io_outputs: no folder to work in\n");
        return 1;
    }
    RUN(links);
    RUN(links_beside);
    RUN(racing_links);
    RUN(beside_the_file);
    RUN(modes);
    RUN(modes_of_others);
    RUN(long_names);
    RUN(long_names_of_one_lock);
    RUN(long_names_in_a_folder);
    RUN(locks_have_one_order);
    RUN(lock_of_somebody);
    RUN(nothing_to_leave);
    RUN(changed_since_read);
    RUN(read_change_write);
    RUN(two_writers);
    RUN(never_missing);
    remove_tree(root);
    remove_root();
    return test_end();
}
