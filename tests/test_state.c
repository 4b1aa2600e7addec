/* >>profile, >>state and what >>path has for them: state, files, compatibility, walk. */
#define _XOPEN_SOURCE     700
#define _FILE_OFFSET_BITS 64

#include "examples/epctx/ops/state.h"
#include "examples/epctx/ops/dims.h"
#include "examples/epctx/ops/init.h"
#include "examples/epctx/ops/lint.h"
#include "examples/epctx/ops/merge.h"
#include "examples/epctx/ops/rename.h"
#include "examples/epctx/ops/repair.h"
#include "examples/epctx/ops/split.h"
#include "examples/epctx/ops/weightless.h"
#include "rich.h"
#include "checked.h"
#include "temp.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- profiles -- */

/* A profile with two patterns, a model of two nodes for it, and what epctx_model_files finds. */
static bool list_files(bool can_list, char *out, size_t room) {
    spec s = {.two = true, .first = {.source = "Mine"}, .second = {.source = "Mine"}};
    bytes b = make(&s);
    epctx_io io = *epctx_io_files();
    epctx_profile mine = *epctx_profile_find(epctx_str_of("generic"));
    epctx_open_opts open = {0};
    epctx_check_opts opts = {0};
    epctx_model model;
    epctx_arena arena = {0};
    epctx_dependency *files;
    size_t count = 0, i;
    bool good;
    mine.name = "mine";
    mine.sources[0] = "Mine";
    mine.sidecars[0] = "*_schematic.bin";
    mine.sidecars[1] = "tmp*.json";
    mine.sidecars[2] = "good.bin";
    mine.sidecars[3] = "{stem}.json";
    io.stat_fn = fake_stat;
    io.canonical_fn = fake_canonical;
    io.list_fn = can_list ? fake_list : NULL;
    open.io = &io;
    opts.context_file_path = "/m/model_ctx.onnx";
    opts.profile = &mine;
    epctx_arena_init(&arena, NULL);
    out[0] = '\0';
    good = epctx_model_open_memory(&model, b.data, b.size, &open, NULL) == EPCTX_OK &&
           epctx_model_files(&model, &opts, &arena, &files, &count, NULL) == EPCTX_OK;
    for (i = 0; i < count; i++) {
        size_t used = strlen(out);
        snprintf(out + used, room - used, "%.*s%s ", (int)files[i].name.size, files[i].name.data,
                 files[i].status == EPCTX_OK                ? ""
                 : files[i].status == EPCTX_ERR_UNSUPPORTED ? "?"
                                                            : "!");
    }
    epctx_model_close(&model);
    epctx_arena_free(&arena);
    bytes_free(&b);
    return good;
}

TEST(sidecar_patterns) {
    char found[400];
    CHECK_TRUE(list_files(true, found, sizeof found));
    CHECK_STR(found, "net_schematic.bin tmpA.json tmpB.json good.bin model_ctx.json ");
    /* An io that cannot list folders: the patterns themselves. */
    CHECK_TRUE(list_files(false, found, sizeof found));
    CHECK_STR(found, "*_schematic.bin? tmp*.json? good.bin {stem}.json? ");
}

static epctx_status many_names(void *user, const char *folder,
                               bool (*name_fn)(void *state, const char *name), void *state,
                               epctx_error *error) {
    (void)user;
    (void)folder;
    (void)error;
    for (int i = 99; i >= 0; i--) {
        char name[32];
        snprintf(name, sizeof name, "tmp%02d.json", i < 50 ? 49 - i : i);
        if (!name_fn(state, name)) break;
    }
    return EPCTX_OK;
}

/* Of more than fit the first ones by name. */
TEST(many_sidecars) {
    spec s = {.first = {.source = "QAIRTExport"}};
    bytes b = make(&s);
    epctx_io io = rich_io();
    epctx_open_opts open = {0};
    epctx_check_opts opts = {0};
    epctx_model model;
    epctx_arena arena;
    epctx_dependency *files;
    size_t count = 0, found = 0, i;
    io.list_fn = many_names;
    open.io = &io;
    opts.context_file_path = "/m/model_ctx.onnx";
    opts.profile = epctx_profile_find(epctx_str_of("qnn_plugin"));
    epctx_arena_init(&arena, NULL);
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, &open, NULL), EPCTX_OK);
    CHECK_INT(epctx_model_files(&model, &opts, &arena, &files, &count, NULL), EPCTX_OK);
    for (i = 0; i < count; i++) {
        char want[32];
        if (files[i].name.data[0] != 't') continue;
        snprintf(want, sizeof want, "tmp%02d.json", (int)found++);
        CHECK(epctx_str_is(files[i].name, want), "file %zu is %s, expected %s", i,
              files[i].name.data, want);
    }
    CHECK_UINT(found, EPCTX_MATCH_MAX);
    epctx_model_close(&model);
    epctx_arena_free(&arena);
    bytes_free(&b);
}

static bool count_name(void *state, const char *name) {
    int *found = (int *)state;
    *found |= strcmp(name, "one.json") == 0 ? 1 : strcmp(name, "two.bin") == 0 ? 2 : 0;
    return true;
}

static bool first_name(void *state, const char *name) {
    (void)name;
    ++*(int *)state;
    return false;
}

TEST(the_disk_lists_folders) {
    const epctx_io *io = epctx_io_files();
    char folder[TEST_TEMP], path[200];
    epctx_error error;
    int found = 0, calls = 0, i;
    CHECK_TRUE(test_temp(folder));
    for (i = 0; i < 2; i++) {
        int fd;
        snprintf(path, sizeof path, "%s/%s", folder, i == 0 ? "one.json" : "two.bin");
        fd = open(path, O_WRONLY | O_CREAT, 0600);
        CHECK_TRUE(fd >= 0);
        close(fd);
    }
    CHECK_INT(io->list_fn(io->user, folder, count_name, &found, NULL), EPCTX_OK);
    CHECK_INT(io->list_fn(io->user, folder, first_name, &calls, NULL), EPCTX_OK);
    for (i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, i == 0 ? "one.json" : "two.bin");
        unlink(path);
    }
    rmdir(folder);
    CHECK_INT(found, 3);
    CHECK_INT(calls, 1);
    epctx_error_clear(&error);
    CHECK_INT(io->list_fn(io->user, folder, count_name, &found, &error), EPCTX_ERR_NOT_FOUND);
    CHECK_HAS(error.message, folder);
}

static bytes external_tensor(const char *location) {
    bytes tensor = {0};
    put_int(&tensor, 1, 1);
    put_int(&tensor, 2, EPCTX_ONNX_FLOAT);
    put_pair(&tensor, 13, "location", location);
    put_int(&tensor, 14, 1);
    return tensor;
}

/* External data stands in initializers, sparse ones, attributes, functions, training graphs. */
TEST(files_of_every_tensor) {
    bytes graph = {0}, body = {0}, attr = {0}, node, sparse = {0}, f = {0}, training = {0}, step;
    bytes tensor = external_tensor("values.bin"), indices = external_tensor("indices.bin"), b;
    static const char *const want[] = {"values.bin", "indices.bin", "body.bin", "function.bin",
                                       "train.bin"};
    epctx_open_opts open = {0};
    epctx_model model;
    epctx_arena arena = {0};
    epctx_dependency *files;
    size_t count, i;
    put_child(&sparse, 1, &tensor);
    put_child(&sparse, 2, &indices);
    put_child(&graph, 15, &sparse);
    tensor = external_tensor("body.bin");
    put_child(&body, 5, &tensor);
    if_body(&graph, &body);
    b = new_model(&graph);
    tensor = external_tensor("function.bin");
    put_str(&attr, 1, "value");
    put_child(&attr, 5, &tensor);
    put_int(&attr, 20, EPCTX_ATTR_TENSOR);
    node = new_node("Constant", "", "c", "", "y");
    put_child(&node, 5, &attr);
    put_str(&f, 1, "F");
    put_child(&f, 7, &node);
    put_child(&b, 25, &f);
    memset(&step, 0, sizeof step);
    tensor = external_tensor("train.bin");
    put_child(&step, 5, &tensor);
    tensor = external_tensor("values.bin"); /* required by the other user */
    put_child(&step, 5, &tensor);
    put_child(&training, 2, &step);
    put_child(&b, 20, &training);
    epctx_arena_init(&arena, NULL);
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, &open, NULL), EPCTX_OK);
    CHECK_INT(epctx_model_files(&model, NULL, &arena, &files, &count, NULL), EPCTX_OK);
    CHECK_UINT(count, sizeof want / sizeof want[0]);
    for (i = 0; i < count; i++) {
        CHECK(epctx_str_is(files[i].name, want[i]), "file %zu is not %s", i, want[i]);
        CHECK_INT(files[i].required, i < 4); /* sessions do not read training graphs */
    }
    epctx_model_close(&model);
    epctx_arena_free(&arena);
    bytes_free(&b);
}

/* What goes along with a model: the files of the primary nodes, each once, and of a secondary node
 * only one that it names. */
TEST(binaries_to_deliver) {
    static const char *const wanted[] = {"p.bin", "sub/q.bin", "s.bin"};
    static const uint32_t users[] = {2, 1, 1};
    bytes graph = {0}, b;
    epctx_model model;
    epctx_arena arena;
    epctx_dependency *files;
    epctx_error error;
    size_t count = 0, i;
    add_epnode(&graph, "n0", "x", "a", 1, 0, "Some", "g0", "p.bin", 5);
    add_epnode(&graph, "n1", "x", "b", 0, 0, "Some", "g1", NULL, 0);
    add_epnode(&graph, "n2", "x", "c", 1, 1, "Some", "g2", "payload", 7);
    add_epnode(&graph, "n3", "x", "d", 1, 0, "Some", "g3", "sub/q.bin", 9);
    add_epnode(&graph, "n4", "x", "e", 1, 0, "Some", "g4", "p.bin", 5);
    add_epnode(&graph, "n5", "x", "f", 0, 0, "Some", "g5", "s.bin", 5);
    add_epnode(&graph, "n6", "x", "g", 0, 1, "Some", "g6", NULL, 0);
    b = new_model(&graph);
    epctx_arena_init(&arena, NULL);
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, &error), EPCTX_OK);
    CHECK_OK(epctx_model_files(&model, NULL, &arena, &files, &count, &error), error);
    CHECK_UINT(count, 3);
    for (i = 0; i < count; i++) {
        CHECK(epctx_str_is(files[i].name, wanted[i]), "file %zu is '%.*s'", i,
              (int)files[i].name.size, files[i].name.data);
        CHECK_INT(files[i].use, EPCTX_USE_CONTEXT);
        CHECK_UINT(files[i].users, users[i]);
    }
    epctx_model_close(&model);
    epctx_arena_free(&arena);
    bytes_free(&b);
}

TEST(profiles_are_complete) {
    static const char *const names[] = {
        "qnn",      "qnn_plugin", "openvino", "openvino_plugin", "tensorrt", "nv_tensorrt_rtx",
        "migraphx", "vitisai",    "telum",    "example",         "npu",      "generic"};
    size_t count, i;
    epctx_profiles(&count);
    CHECK_UINT(count, sizeof names / sizeof names[0]);
    for (i = 0; i < count; i++) {
        const epctx_profile *p = epctx_profile_find(epctx_str_of(names[i]));
        CHECK(p != NULL, "there is no profile %s", names[i]);
    }
    /* Names as a whole: no beginning of one, no more than one, no other case. */
    for (i = 0; i < count; i++) {
        char name[40];
        epctx_str start = epctx_str_of(names[i]);
        while (--start.size > 0)
            CHECK(epctx_profile_find(start) == NULL || epctx_str_is(start, "qnn") ||
                      epctx_str_is(start, "openvino"),
                  "%.*s", (int)start.size, start.data);
        snprintf(name, sizeof name, "%s_", names[i]);
        CHECK(epctx_profile_find(epctx_str_of(name)) == NULL, "%s", name);
        name[0] ^= 0x20;
        name[strlen(name) - 1] = '\0';
        CHECK(epctx_profile_find(epctx_str_of(name)) == NULL, "%s", name);
    }
    CHECK_TRUE(epctx_profile_find(epctx_str_of("")) == NULL);
    CHECK_TRUE(epctx_profile_find(epctx_str_of("cuda")) == NULL);
    CHECK_TRUE(epctx_profiles(NULL) == epctx_profiles(&count));
}

static epctx_claim claim(const char *profile, const char *source) {
    epctx_epnode node = epctx_epnode_default();
    if (source != NULL) {
        node.present |= 1u << EPCTX_EPNODE_SOURCE;
        node.source = epctx_str_of(source);
    }
    return epctx_profile_claims(epctx_profile_find(epctx_str_of(profile)), &node);
}

static const char *rules_for(const char *wanted, const char *source) {
    const epctx_profile *profile = wanted != NULL ? epctx_profile_find(epctx_str_of(wanted)) : NULL;
    return epctx_profile_for(profile, epctx_str_of(source))->name;
}

/* An EP that is named is never taken for the EP of other nodes. */
TEST(profile_for_nodes) {
    CHECK_STR(rules_for(NULL, "QNN"), "qnn");
    CHECK_STR(rules_for("qnn", "QNN"), "qnn");
    CHECK_STR(rules_for("qnn_plugin", "QNNExecutionProvider"), "qnn_plugin");
    CHECK_STR(rules_for("openvino", "openvinoexecutionprovider"), "openvino");
    CHECK_STR(rules_for("openvino", "QNN"), "qnn");
    CHECK_STR(rules_for("migraphx", "QNN"), "qnn");
    CHECK_STR(rules_for("generic", "QNN"), "qnn");
    CHECK_STR(rules_for("openvino", ""), "openvino");
    CHECK_STR(rules_for("openvino", NULL), "openvino");
    CHECK_STR(rules_for("openvino", "AcmeExecutionProvider"), "openvino");
    CHECK_STR(rules_for("generic", "AcmeExecutionProvider"), "generic");
}

TEST(sources) {
    CHECK_INT(claim("qnn", "QNN"), EPCTX_CLAIM_YES);
    CHECK_INT(claim("qnn", "QnnExecutionProvider"), EPCTX_CLAIM_YES);
    CHECK_INT(claim("qnn", "Qnn"), EPCTX_CLAIM_YES);
    CHECK_INT(claim("qnn", "QAIRTExport"), EPCTX_CLAIM_NO);
    CHECK_INT(claim("qnn_plugin", "qairtexport"), EPCTX_CLAIM_YES);
    CHECK_INT(claim("qnn", NULL), EPCTX_CLAIM_MISSING);
    CHECK_INT(claim("openvino", "OpenVINOExecutionProvider"), EPCTX_CLAIM_YES);
    CHECK_INT(claim("openvino", "OPENVINOEXECUTIONPROVIDER"), EPCTX_CLAIM_SPELLING);
    CHECK_INT(claim("openvino", "QNN"), EPCTX_CLAIM_NO);
    CHECK_INT(claim("tensorrt", NULL), EPCTX_CLAIM_YES);
    CHECK_INT(claim("nv_tensorrt_rtx", "TensorrtExecutionProvider"), EPCTX_CLAIM_NO);
    CHECK_INT(claim("migraphx", NULL), EPCTX_CLAIM_YES);
    CHECK_INT(claim("generic", NULL), EPCTX_CLAIM_YES);
    CHECK_INT(claim("npu", "epctxnpuexecutionprovider"), EPCTX_CLAIM_SPELLING);
    CHECK_STR(epctx_profile_of(epctx_str_of("qnn"))->name, "qnn");
    CHECK_STR(epctx_profile_of(epctx_str_of("whatever"))->name, "generic");
}

/* As many sources as a profile can have. */
TEST(four_sources) {
    epctx_profile own = *epctx_profile_find(epctx_str_of("npu"));
    epctx_epnode node = epctx_epnode_default();
    own.sources[0] = "A";
    own.sources[1] = "B";
    own.sources[2] = "C";
    own.sources[3] = "D";
    node.present |= 1u << EPCTX_EPNODE_SOURCE;
    node.source = epctx_str_of("D");
    CHECK_INT(epctx_profile_claims(&own, &node), EPCTX_CLAIM_YES);
    node.source = epctx_str_of("E");
    CHECK_INT(epctx_profile_claims(&own, &node), EPCTX_CLAIM_NO);
}

/* Profiles in which one trait stands, and no other has it. */
static void only(uint32_t trait, const char *what, const char *const *names, size_t name_count) {
    size_t count, i, k, found = 0;
    const epctx_profile *profiles = epctx_profiles(&count);
    for (i = 0; i < count; i++) {
        bool expected = false;
        for (k = 0; k < name_count; k++)
            expected = expected || strcmp(profiles[i].name, names[k]) == 0;
        found += expected;
        CHECK(((profiles[i].traits & trait) != 0) == expected, "EP '%s': expected %s%s",
              profiles[i].name, expected ? "" : "not ", what);
    }
    CHECK_UINT(found, name_count);
}

/* One context for all nodes, or one for each: as the sources of each EP say (EPC-012). */
TEST(whose_context) {
    static const char *const each[] = {"tensorrt", "nv_tensorrt_rtx", "migraphx", "telum",
                                       "example"};
    static const char *const one[] = {"openvino", "openvino_plugin"};
    only(EPCTX_TRAIT_EACH_CONTEXT, "a context in each node", each, sizeof each / sizeof each[0]);
    only(EPCTX_TRAIT_ONE_CONTEXT, "one context for all nodes", one, sizeof one / sizeof one[0]);
}

/* -- compatibility -- */

/* Strings of epctx_backend_compatibility: one rule for the tool and for plugin EPs. */
TEST(compatibility_of_own_strings) {
    static const char here[] = "epctx=1;source=MyEP;sdk=2.5.0;arch=a1";
    static const struct {
        const char *text;
        epctx_compat want;
    } texts[] = {
        {here, EPCTX_COMPAT_OPTIMAL},
        {"arch=a1;sdk=2.5.0;source=MyEP;epctx=1", EPCTX_COMPAT_OPTIMAL},
        {"epctx=1;source=MyEP;sdk=2.5.0;arch=a1;new=key", EPCTX_COMPAT_OPTIMAL},
        {"epctx=1;source=MyEP;sdk=2.5.1;arch=a1", EPCTX_COMPAT_PREFER_RECOMPILATION},
        {"epctx=1;source=MyEP;sdk=2.9;arch=a1", EPCTX_COMPAT_PREFER_RECOMPILATION},
        {"epctx=1;source=MyEP;sdk=2;arch=a1", EPCTX_COMPAT_PREFER_RECOMPILATION},
        {"epctx=1;source=MyEP;sdk=3.5.0;arch=a1", EPCTX_COMPAT_UNSUPPORTED},
        {"epctx=1;source=MyEP;sdk=1.5.0;arch=a1", EPCTX_COMPAT_UNSUPPORTED},
        {"epctx=1;source=MyEP;sdk=22.5.0;arch=a1", EPCTX_COMPAT_UNSUPPORTED},
        {"epctx=1;source=MyEP;sdk=;arch=a1", EPCTX_COMPAT_UNSUPPORTED},
        {"epctx=1;source=MyEP;arch=a1", EPCTX_COMPAT_UNSUPPORTED},
        {"epctx=1;source=MyEP;sdk=2.5.0;arch=a2", EPCTX_COMPAT_UNSUPPORTED},
        {"epctx=1;source=MyEP;sdk=2.5.0;arch=a", EPCTX_COMPAT_UNSUPPORTED},
        {"epctx=1;source=MyEP;sdk=2.5.0", EPCTX_COMPAT_UNSUPPORTED},
        {"epctx=1;source=MyEP;sdk=3.0;arch=a2", EPCTX_COMPAT_UNSUPPORTED},
        {"epctx=1;source=OtherEP;sdk=2.5.0;arch=a1", EPCTX_COMPAT_NOT_APPLICABLE},
        {"sdk=3;arch=a2;epctx=1;source=OtherEP", EPCTX_COMPAT_NOT_APPLICABLE},
        {"epctx=1;sdk=2.5.0;arch=a1", EPCTX_COMPAT_NOT_APPLICABLE},
        {"epctx=2;source=MyEP;sdk=2.5.0;arch=a1", EPCTX_COMPAT_NOT_APPLICABLE},
        {"source=MyEP;sdk=2.5.0;arch=a1", EPCTX_COMPAT_NOT_APPLICABLE},
        {"something else", EPCTX_COMPAT_NOT_APPLICABLE},
        {"", EPCTX_COMPAT_NOT_APPLICABLE},
    };
    static char endless[20000];
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        CHECK(compare("example", texts[i].text, here) == texts[i].want, "'%s' is %d", texts[i].text,
              (int)compare("example", texts[i].text, here));
    memset(endless, ';', sizeof endless - 1);
    CHECK_INT(compare("example", endless, here), EPCTX_COMPAT_NOT_APPLICABLE);
    CHECK_INT(compare("example", "ep", "ep;version=1"), EPCTX_COMPAT_NOT_APPLICABLE);
    CHECK_INT(compare("example", "arch=1;a", "arch=2;b"), EPCTX_COMPAT_NOT_APPLICABLE);
}

/* An EP that knows what its device runs. */
typedef struct driver {
    epctx_profile profile;
    char newest; /* "x2" runs where this is at least '2' */
    int *asked;
} driver;

static epctx_compat ask_driver(const epctx_profile *profile, epctx_str model, epctx_str runtime,
                               const char **why) {
    const driver *d = (const driver *)profile;
    ++*d->asked;
    if (runtime.size != 2 || model.size != 2) return EPCTX_COMPAT_NOT_APPLICABLE;
    *why = "the device's driver";
    return model.data[1] <= d->newest ? EPCTX_COMPAT_OPTIMAL : EPCTX_COMPAT_UNSUPPORTED;
}

/* The rule of a profile of one's own decides, of strings that have a length that it can take. */
TEST(compatibility_by_own_rule) {
    static char longest[4097];
    int asked = 0;
    driver d = {.newest = '2', .asked = &asked};
    epctx_error why;
    d.profile = *epctx_profile_find(epctx_str_of("generic"));
    d.profile.compat_fn = ask_driver;
    memset(longest, 'x', sizeof longest);
    CHECK_INT(epctx_compat_compare(&d.profile, epctx_str_of("x2"), epctx_str_of("x1"), &why),
              EPCTX_COMPAT_OPTIMAL);
    CHECK_STR(why.message, "the device's driver");
    CHECK_INT(why.status, EPCTX_OK);
    CHECK_INT(epctx_compat_compare(&d.profile, epctx_str_of("x3"), epctx_str_of("x3"), NULL),
              EPCTX_COMPAT_UNSUPPORTED);
    CHECK_INT(asked, 2);
    CHECK_INT(epctx_compat_compare(&d.profile, (epctx_str){longest, 4096}, epctx_str_of("x"), &why),
              EPCTX_COMPAT_NOT_APPLICABLE);
    CHECK_STR(why.message, "");
    CHECK_INT(asked, 3);
    CHECK_INT(epctx_compat_compare(&d.profile, (epctx_str){longest, 4097}, epctx_str_of("x"), &why),
              EPCTX_COMPAT_NOT_APPLICABLE);
    CHECK_HAS(why.message, "too long");
    CHECK_INT(epctx_compat_compare(&d.profile, epctx_str_of("x"), (epctx_str){longest, 4097}, NULL),
              EPCTX_COMPAT_NOT_APPLICABLE);
    CHECK_INT(epctx_compat_compare(&d.profile, epctx_str_of(""), epctx_str_of("x2"), NULL),
              EPCTX_COMPAT_NOT_APPLICABLE);
    CHECK_INT(epctx_compat_compare(&d.profile, epctx_str_of("x2"), epctx_str_of(""), NULL),
              EPCTX_COMPAT_NOT_APPLICABLE);
    CHECK_INT(asked, 3);
}

/* What it must not answer: no value of epctx_compat, and no text. */
typedef struct wrong_rule {
    epctx_profile profile;
    int answer;
    const char *said, *before; /* `before`: what it found as `*why` */
} wrong_rule;

static epctx_compat answer_wrong(const epctx_profile *profile, epctx_str model, epctx_str runtime,
                                 const char **why) {
    wrong_rule *rule;
    memcpy(&rule, &profile, sizeof rule); /* the test's own, which is not const */
    (void)model;
    (void)runtime;
    rule->before = *why;
    *why = rule->said;
    return (epctx_compat)rule->answer;
}

TEST(compatibility_by_wrong_rule) {
    static const struct {
        int answer;
        const char *said;
        epctx_compat verdict;
        const char *message;
    } rows[] = {
        {EPCTX_COMPAT_UNSUPPORTED, "another driver", EPCTX_COMPAT_UNSUPPORTED, "another driver"},
        {EPCTX_COMPAT_OPTIMAL, NULL, EPCTX_COMPAT_OPTIMAL, ""},
        {4, "another driver", EPCTX_COMPAT_NOT_APPLICABLE, "compat_fn gave no epctx_compat"},
        {-1, NULL, EPCTX_COMPAT_NOT_APPLICABLE, "compat_fn gave no epctx_compat"},
        {INT_MIN, "", EPCTX_COMPAT_NOT_APPLICABLE, "compat_fn gave no epctx_compat"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wrong_rule rule = {.answer = rows[i].answer, .said = rows[i].said};
        epctx_error why;
        rule.profile = *epctx_profile_find(epctx_str_of("generic"));
        rule.profile.compat_fn = answer_wrong;
        CHECK_INT(epctx_compat_compare(&rule.profile, epctx_str_of("a"), epctx_str_of("b"), &why),
                  rows[i].verdict);
        CHECK_STR(rule.before, "");
        CHECK_STR(why.message, rows[i].message);
        CHECK_INT(why.status, EPCTX_OK);
    }
}

/* -- state, files, walk -- */

/* A model that is open, and its state. */
typedef struct judged {
    bytes data;
    epctx_arena arena;
    epctx_model model;
    epctx_state state;
} judged;

/* Takes the bytes over. */
static bool judge(judged *j, bytes data) {
    j->data = data;
    epctx_arena_init(&j->arena, NULL);
    return epctx_model_open_memory(&j->model, data.data, data.size, NULL, NULL) == EPCTX_OK &&
           epctx_model_state(&j->model, &j->arena, &j->state, NULL) == EPCTX_OK;
}

static void judged_free(judged *j) {
    epctx_model_close(&j->model);
    epctx_arena_free(&j->arena);
    bytes_free(&j->data);
}

TEST(state) {
    spec s = {.two = true,
              .first = {.source = "QNN"},
              .second = {.source = "QNN", .main = "0"},
              .graph_fn = used_weight,
              .model_fn = compat_mine};
    judged j;
    CHECK_TRUE(judge(&j, make(&s)));
    CHECK_INT(j.state.compiled, EPCTX_PARTLY_COMPILED);
    CHECK_UINT(j.state.ep_nodes, 2);
    CHECK_UINT(j.state.other_nodes, 1);
    CHECK_UINT(j.state.maker_count, 1);
    CHECK_UINT(j.state.makers[0].nodes, 2);
    CHECK_UINT(j.state.makers[0].primaries, 1);
    CHECK_UINT(j.state.makers[0].payload_size, 14);
    CHECK_TRUE(epctx_str_is(j.state.makers[0].sdk_version, "1"));
    CHECK_UINT(j.state.compat_count, 1);
    CHECK_TRUE(epctx_str_is(j.state.compat[0].ep, "MyEP"));
    judged_free(&j);
}

/* Plain, and compiled whole. */
TEST(state_whole) {
    for (int compiled = 0; compiled < 2; compiled++) {
        bytes graph = {0};
        judged j;
        if (compiled)
            add_epnode(&graph, "n", "x", "y", 1, 1, "QNN", "n", "payload", 7);
        else {
            add_node(&graph, "Relu", "n", "x", "m");
            add_node(&graph, "Relu", "n2", "m", "y");
        }
        CHECK_TRUE(judge(&j, new_model(&graph)));
        CHECK_INT(j.state.compiled, compiled ? EPCTX_FULLY_COMPILED : EPCTX_PLAIN);
        CHECK_UINT(j.state.ep_nodes, (size_t)compiled);
        CHECK_UINT(j.state.other_nodes, compiled ? 0u : 2u);
        judged_free(&j);
    }
}

/* Nodes that cannot be read are counted, those in bodies and functions too. */
TEST(state_of_broken_nodes) {
    spec s = {.two = true,
              .first = {.domain = ""},
              .second = {.main = "2"},
              .graph_fn = epnode_in_body,
              .model_fn = function_with_reference};
    judged j;
    CHECK_TRUE(judge(&j, make(&s)));
    CHECK_UINT(j.state.broken_nodes, 2);
    CHECK_UINT(j.state.ep_nodes, 2);
    CHECK_INT(j.state.compiled, EPCTX_PARTLY_COMPILED);
    judged_free(&j);
}

TEST(walk_goes_everywhere) {
    spec s = {.graph_fn = epnode_in_body};
    bytes model = make(&s), function = {0}, training = {0}, graph = {0};
    epctx_model m;
    epctx_walk walk;
    epctx_node_view node;
    int found = 0, functions = 0, trainings = 0;
    uint32_t deepest = 0;
    bytes inner = new_node("EPContext", "com.microsoft", "f", "", "q");
    put_str(&function, 1, "F");
    put_child(&function, 7, &inner);
    put_child(&model, 25, &function);
    add_epnode(&graph, "t", "", "q", 1, 1, "MyEP", "p", "x", 1);
    put_child(&training, 2, &graph);
    put_child(&model, 20, &training);
    CHECK_INT(epctx_model_open_memory(&m, model.data, model.size, NULL, NULL), EPCTX_OK);
    epctx_walk_begin(&walk, &m);
    while (epctx_walk_epnode(&walk, &node)) {
        found++;
        functions += walk.in_function;
        trainings += walk.in_training;
        if (walk.depth > deepest) deepest = walk.depth;
    }
    epctx_walk_below(&walk, epctx_model_root(&m), EPCTX_KIND_MODEL); /* in the order of the file */
    while (epctx_walk_epnode(&walk, &node)) found++;
    epctx_model_close(&m);
    bytes_free(&model);
    CHECK_INT(found, 8);
    CHECK_INT(functions, 1);
    CHECK_INT(trainings, 1);
    CHECK_UINT(deepest, 1);
}

/* -- opening what was resolved -- */

static bool write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    bool done = file != NULL && fputs(text, file) >= 0;
    return file != NULL && fclose(file) == 0 && done;
}

TEST(nothing_is_opened_through_a_link) {
    char root[TEST_TEMP], path[200], canonical[EPCTX_PATH_MAX];
    const epctx_io *io = epctx_io_files();
    epctx_mapping mapping;
    epctx_error error;
    epctx_status status;
    CHECK_TRUE(test_temp(root));
    snprintf(path, sizeof path, "%s/real", root);
    CHECK_TRUE(mkdir(path, 0700) == 0);
    snprintf(path, sizeof path, "%s/real/a.bin", root);
    CHECK_TRUE(write_text(path, "inside"));
    snprintf(path, sizeof path, "%s/way", root);
    CHECK_TRUE(symlink("real", path) == 0);
    snprintf(path, sizeof path, "%s/out", root);
    CHECK_TRUE(symlink("/etc", path) == 0);
    CHECK_INT(io->canonical_fn(io->user, root, canonical, sizeof canonical, NULL), EPCTX_OK);
    /* A link that stays inside is followed when the path is made, never when it is opened. */
    status = epctx_path_map(io, epctx_str_of(root), epctx_str_of("way/a.bin"), 0, &mapping, NULL,
                            &error);
    CHECK_OK(status, error);
    CHECK_MEM(mapping.data, mapping.size, "inside", 6);
    io->unmap_fn(io->user, &mapping);
    epctx_error_clear(&error);
    CHECK_INT(io->map_fn(io->user, canonical, "way/a.bin", false, &mapping, &error),
              EPCTX_ERR_PATH);
    epctx_error_clear(&error);
    CHECK_INT(io->map_fn(io->user, canonical, "real/a.bin", false, &mapping, &error), EPCTX_OK);
    io->unmap_fn(io->user, &mapping);
    CHECK_INT(epctx_path_map(io, epctx_str_of(root), epctx_str_of("out/passwd"), 0, &mapping, NULL,
                             &error),
              EPCTX_ERR_PATH);
    snprintf(path, sizeof path, "rm -r '%s'", root);
    CHECK_TRUE(system(path) == 0);
}

/* A model from memory has no folder to look in, and what cannot be read names no file. */
TEST(files_without_a_folder) {
    bytes graph = {0}, b;
    epctx_model model;
    epctx_arena arena;
    epctx_dependency *files;
    size_t count;
    add_epnode(&graph, "odd", "x", "z", 1, 7, "QNN", "p", "odd.bin", 7);
    add_epnode(&graph, "n", "x", "y", 1, 0, "QNN", "p", "n.bin", 5);
    b = new_model(&graph);
    epctx_arena_init(&arena, NULL);
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_model_files(&model, NULL, &arena, &files, &count, NULL), EPCTX_OK);
    CHECK_UINT(count, 1);
    CHECK_TRUE(epctx_str_is(files[0].name, "n.bin"));
    CHECK_INT(files[0].status, EPCTX_ERR_PATH);
    CHECK_HAS(files[0].problem, "came from memory");
    CHECK_TRUE(files[0].path == NULL);
    epctx_model_close(&model);
    epctx_arena_free(&arena);
    bytes_free(&b);
}

TEST(hugging_face_cache) {
    char root[TEST_TEMP], path[400], folder[200], found[EPCTX_PATH_MAX];
    const epctx_io *io = epctx_io_files();
    epctx_mapping mapping;
    epctx_error error;
    epctx_status status;
    CHECK_TRUE(test_temp(root));
    snprintf(path, sizeof path, "mkdir -p %s/snapshots/1 %s/blobs/deeper", root, root);
    CHECK_TRUE(system(path) == 0);
    snprintf(path, sizeof path, "%s/blobs/abc", root);
    CHECK_TRUE(write_text(path, "blob"));
    snprintf(path, sizeof path, "%s/secret", root);
    CHECK_TRUE(write_text(path, "secret"));
    snprintf(folder, sizeof folder, "%s/snapshots/1/", root);
    snprintf(path, sizeof path, "%sa.bin", folder);
    CHECK_TRUE(symlink("../../blobs/abc", path) == 0);
    snprintf(path, sizeof path, "%sb.bin", folder);
    CHECK_TRUE(symlink("../../secret", path) == 0);
    CHECK_INT(epctx_path_find(io, epctx_str_of(folder), epctx_str_of("a.bin"), 0, found,
                              sizeof found, &error),
              EPCTX_ERR_PATH);
    status = epctx_path_map(io, epctx_str_of(folder), epctx_str_of("a.bin"),
                            EPCTX_PATH_HUGGING_FACE, &mapping, found, &error);
    CHECK_OK(status, error);
    CHECK_MEM(mapping.data, mapping.size, "blob", 4);
    io->unmap_fn(io->user, &mapping);
    CHECK_INT(epctx_path_find(io, epctx_str_of(folder), epctx_str_of("b.bin"),
                              EPCTX_PATH_HUGGING_FACE, found, sizeof found, &error),
              EPCTX_ERR_PATH);
    /* Not beside that snapshot, below the blobs, in another repository, from no snapshot at all. */
    snprintf(found, sizeof found,
             "cd %s && mkdir -p other/blobs blobs/deeper plain && echo x >other/blobs/abc && "
             "echo x >blobs/deeper/abc && "
             "ln -s ../../blobs/deeper/abc snapshots/1/c.bin && "
             "ln -s ../../other/blobs/abc snapshots/1/d.bin && ln -s ../blobs/abc plain/e.bin && "
             "ln -s /etc/passwd snapshots/1/f.bin",
             root);
    CHECK_TRUE(system(found) == 0);
    for (const char *name = "cdef"; *name != '\0'; name++) {
        char file[] = "x.bin";
        file[0] = *name;
        if (*name == 'e') snprintf(folder, sizeof folder, "%s/plain", root);
        if (*name == 'f') snprintf(folder, sizeof folder, "%s/snapshots/1", root);
        CHECK(epctx_path_find(io, epctx_str_of(folder), epctx_str_of(file), EPCTX_PATH_HUGGING_FACE,
                              found, sizeof found, &error) == EPCTX_ERR_PATH,
              "%s is found", file);
    }
    snprintf(path, sizeof path, "rm -r '%s'", root);
    CHECK_TRUE(system(path) == 0);
}

/* Names of files by a profile's pattern. */
TEST(names_by_pattern) {
    static const struct {
        const char *pattern, *model, *name;
        bool fits;
    } patterns[] = {{"{stem}_qnn.bin", "a_ctx.onnx", "a_ctx_qnn.bin", true},
                    {"{model}_*.bin", "a_ctx.onnx", "a_x.bin", true},
                    {"{model}_*.bin", "a_ctx.onnx", "b_x.bin", false},
                    {"{file}_M.bin", "a.onnx", "a.onnx_M.bin", true},
                    {"{file}_M.bin", "a.onnx", "a.onnx_M.bin2", false},
                    {"*.mxr", "a.onnx", ".mxr", true},
                    {"{other}", "a.onnx", "{other}", true},
                    {"", "a.onnx", "", true},
                    {"x", "a.onnx", "", false}};
    epctx_epnode node = epctx_epnode_default();
    const epctx_profile *shared = epctx_profile_find(epctx_str_of("generic"));
    const epctx_profile *each = epctx_profile_find(epctx_str_of("migraphx"));
    epctx_str model = epctx_str_of("a_ctx.onnx");
    epctx_error error;
    char out[64];
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        CHECK(epctx_profile_name_fits(patterns[i].pattern, epctx_str_of(patterns[i].name),
                                      epctx_str_of(patterns[i].model)) == patterns[i].fits,
              "'%s' and '%s'", patterns[i].pattern, patterns[i].name);
    node.name = epctx_str_of("n/1..x");
    node.source = epctx_str_of("My.OwnExecutionProvider");
    node.partition_name = epctx_str_of("part 1");
    CHECK_OK(
        epctx_profile_fill_name("{model}_*.bin", shared, &node, model, out, sizeof out, &error),
        error);
    CHECK_STR(out, "a_my_own.bin");
    CHECK_OK(
        epctx_profile_fill_name("*-{node}.{stem}", each, &node, model, out, sizeof out, &error),
        error);
    CHECK_STR(out, "part_1-n_1._x.a_ctx");
    CHECK_OK(epctx_profile_fill_name("*.{file}{", NULL, NULL, model, out, sizeof out, &error),
             error);
    CHECK_STR(out, "*.a_ctx.onnx{");
    CHECK_OK(epctx_profile_fill_name("*", shared, NULL, model, out, sizeof out, &error), error);
    CHECK_STR(out, "*");
    CHECK_INT(epctx_profile_fill_name("{node}", NULL, NULL, model, out, sizeof out, &error),
              EPCTX_ERR_ARG);
    CHECK_INT(epctx_profile_fill_name("{file}{file}", NULL, NULL, model, out, 20, &error),
              EPCTX_ERR_LIMIT);
    node = epctx_epnode_default(); /* whose texts have no data */
    CHECK_OK(
        epctx_profile_fill_name("{model}_*.bin", shared, &node, model, out, sizeof out, &error),
        error);
    CHECK_STR(out, "a_ctx.bin");
    CHECK_TRUE(epctx_profile_name_fits("{stem}*", node.name, node.name));
}

static void no_finding(void *user, const epctx_finding *finding) {
    (void)user, (void)finding;
}

/* The operations on a model that is not open: an error, or nothing to do. */
TEST(closed_models) {
    const epctx_str from = epctx_str_of("x"), to = epctx_str_of("y");
    const epctx_view none = {NULL, NULL, 0};
    uint64_t counts[EPCTX_RULE_COUNT];
    epctx_model closed, open;
    epctx_part parts[2] = {{&open, NULL}, {&closed, NULL}};
    epctx_arena arena;
    epctx_state state;
    epctx_error error;
    memset(&closed, 0, sizeof closed);
    epctx_arena_init(&arena, NULL);
    CHECK_INT(epctx_model_state(&closed, &arena, &state, NULL), EPCTX_OK);
    CHECK_UINT(state.ep_nodes + state.other_nodes, 0);
    epctx_arena_free(&arena);
    CHECK_INT(epctx_lint(&closed, NULL, no_finding, NULL, NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_lint_count(&closed, NULL, counts, NULL), EPCTX_OK);
    CHECK_INT(epctx_fix_dim(&closed, from, 1, NULL, &error), EPCTX_ERR_NOT_FOUND);
    CHECK_INT(epctx_fix_input_dim(&closed, from, 0, 1, NULL, NULL), EPCTX_ERR_NOT_FOUND);
    CHECK_INT(epctx_init_inline(&closed, NULL, NULL, NULL), EPCTX_OK);
    CHECK_TRUE(epctx_init_external(&closed, NULL, NULL, &error) != EPCTX_OK);
    CHECK_INT(epctx_weightless(&closed, NULL, NULL, NULL), EPCTX_ERR_NO_NODES);
    CHECK_INT(epctx_self_contained(&closed, NULL, NULL, NULL), EPCTX_ERR_NO_NODES);
    CHECK_TRUE(epctx_rename_values(&closed, none, &from, &to, 1, NULL, NULL, NULL) != EPCTX_OK);
    CHECK_TRUE(epctx_split(&closed, NULL, NULL, &error) != EPCTX_OK);
    CHECK_INT(epctx_repair(&closed, NULL, NULL, NULL, NULL, NULL, NULL), EPCTX_OK);
    CHECK_OK(epctx_model_new(&open, 8, NULL, &error), error);
    epctx_merge(parts, 2, NULL, NULL, NULL);
    parts[0].model = &closed;
    parts[1].model = &open;
    CHECK_TRUE(epctx_merge(parts, 2, NULL, NULL, &error) != EPCTX_OK);
    epctx_model_close(&open);
    epctx_model_close(&closed);
}

int main(int argc, char **argv) {
    RUN(sidecar_patterns);
    RUN(the_disk_lists_folders);
    RUN(files_of_every_tensor);
    RUN(binaries_to_deliver);
    RUN(profiles_are_complete);
    RUN(profile_for_nodes);
    RUN(sources);
    RUN(four_sources);
    RUN(whose_context);
    RUN(compatibility_of_own_strings);
    RUN(compatibility_by_own_rule);
    RUN(compatibility_by_wrong_rule);
    RUN(state);
    RUN(state_whole);
    RUN(state_of_broken_nodes);
    RUN(many_sidecars);
    RUN(walk_goes_everywhere);
    RUN(nothing_is_opened_through_a_link);
    RUN(files_without_a_folder);
    RUN(hugging_face_cache);
    RUN(names_by_pattern);
    RUN(closed_models);
    return test_end();
}
