/* >>option: keys, values, lists, combinations; and the check of outputs before compiling. */
#define _XOPEN_SOURCE 700
#include "epctx.h"
#include "temp.h"
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

/* -- options -- */

/* Options over an arena of their own. */
typedef struct session {
    epctx_arena arena;
    epctx_options options;
    epctx_error error;
} session;

static session begin(void) {
    session s = {0};
    epctx_arena_init(&s.arena, NULL);
    epctx_options_init(&s.options, NULL);
    return s;
}

static epctx_status set(session *s, const char *key, const char *value) {
    s->options.arena = &s->arena;
    return epctx_options_set(&s->options, epctx_str_of(key), epctx_str_of(value), &s->error);
}

static epctx_status check(session *s, uint32_t phase, const char *model) {
    return epctx_options_check(&s->options, phase, model, &s->error);
}

static void end(session *s) {
    epctx_arena_free(&s->arena);
}

TEST(list_is_complete) {
    size_t count, i;
    const epctx_option_info *list = epctx_option_list(&count);
    CHECK_UINT(count, EPCTX_OPTION_COUNT);
    for (i = 0; i < count; i++) {
        CHECK(list[i].key[0] != '\0' && list[i].text[0] != '\0', "row %zu has no key or text", i);
        CHECK(list[i].phases <= EPCTX_PHASE_BOTH, "%s: phases are %u", list[i].key, list[i].phases);
        CHECK(list[i].type != EPCTX_OPTION_TYPE_SWITCH || strcmp(list[i].fallback, "0") == 0,
              "%s: a switch is off by default, found \"%s\"", list[i].key, list[i].fallback);
    }
}

/* The phases as the EP-context design gives them. */
TEST(phases) {
    static const struct {
        epctx_option option;
        uint32_t phases;
    } want[] = {
        {EPCTX_OPTION_CONTEXT_ENABLE, EPCTX_PHASE_GENERATE},
        {EPCTX_OPTION_CONTEXT_FILE_PATH, EPCTX_PHASE_BOTH},
        {EPCTX_OPTION_CONTEXT_EMBED_MODE, EPCTX_PHASE_GENERATE},
        {EPCTX_OPTION_CONTEXT_NODE_NAME_PREFIX, EPCTX_PHASE_GENERATE},
        {EPCTX_OPTION_SHARE_EP_CONTEXTS, EPCTX_PHASE_BOTH},
        {EPCTX_OPTION_STOP_SHARE_EP_CONTEXTS, EPCTX_PHASE_BOTH},
        {EPCTX_OPTION_EXTERNAL_INITIALIZERS_FILE, EPCTX_PHASE_GENERATE},
        {EPCTX_OPTION_EXTERNAL_INITIALIZERS_FOLDER, EPCTX_PHASE_BOTH},
        {EPCTX_OPTION_OPTIMIZED_MODEL_PATH, EPCTX_PHASE_NONE},
    };
    const epctx_option_info *list = epctx_option_list(NULL);
    size_t i;
    for (i = 0; i < sizeof want / sizeof want[0]; i++)
        CHECK(list[want[i].option].phases == want[i].phases, "%s: phases are %u, expected %u",
              list[want[i].option].key, list[want[i].option].phases, want[i].phases);
}

TEST(defaults) {
    epctx_options zero = {0};
    CHECK_TRUE(!epctx_option_on(&zero, EPCTX_OPTION_CONTEXT_ENABLE));
    CHECK_TRUE(!epctx_option_on(&zero, EPCTX_OPTION_CONTEXT_EMBED_MODE));
    CHECK_TRUE(!epctx_option_on(&zero, EPCTX_OPTION_SHARE_EP_CONTEXTS));
    CHECK_TRUE(!epctx_option_on(&zero, EPCTX_OPTION_STOP_SHARE_EP_CONTEXTS));
    CHECK_STR(epctx_option_text(&zero, EPCTX_OPTION_CONTEXT_FILE_PATH), "");
    CHECK_STR(epctx_option_text(&zero, EPCTX_OPTION_CONTEXT_NODE_NAME_PREFIX), "");
    CHECK_STR(epctx_option_text(&zero, EPCTX_OPTION_EXTERNAL_INITIALIZERS_FILE), "");
    CHECK_STR(epctx_option_text(&zero, EPCTX_OPTION_OPTIMIZED_MODEL_SIZE), "1024");
    CHECK_INT(epctx_options_to_gen(&zero).no_nodes, EPCTX_NO_NODES_ERROR);
    CHECK_TRUE(!epctx_option_given(&zero, EPCTX_OPTION_CONTEXT_ENABLE));
    /* No options at all are the same. */
    CHECK_STR(epctx_option_text(NULL, EPCTX_OPTION_CONTEXT_EMBED_MODE), "0");
}

TEST(set_and_read) {
    session s = begin();
    char key[] = "ep.context_file_path", value[] = "out/m_ctx.onnx";
    CHECK_INT(set(&s, key, value), EPCTX_OK);
    memset(key, 'x', sizeof key - 1); /* copied: ORT's strings are gone after CreateEp */
    memset(value, 'x', sizeof value - 1);
    CHECK_STR(epctx_option_text(&s.options, EPCTX_OPTION_CONTEXT_FILE_PATH), "out/m_ctx.onnx");
    CHECK_INT(set(&s, "ep.context_enable", "1"), EPCTX_OK);
    CHECK_TRUE(epctx_option_on(&s.options, EPCTX_OPTION_CONTEXT_ENABLE));
    CHECK_INT(set(&s, "ep.context_enable", "0"), EPCTX_OK); /* the last one counts */
    CHECK_TRUE(!epctx_option_on(&s.options, EPCTX_OPTION_CONTEXT_ENABLE));
    CHECK_TRUE(epctx_option_given(&s.options, EPCTX_OPTION_CONTEXT_ENABLE));
    CHECK_INT(set(&s, "epctx.no_nodes", "copy"), EPCTX_OK);
    CHECK_INT(epctx_options_to_gen(&s.options).no_nodes, EPCTX_NO_NODES_COPY);
    CHECK_INT(set(&s, "epctx.no_nodes", "nothing"), EPCTX_OK);
    CHECK_INT(epctx_options_to_gen(&s.options).no_nodes, EPCTX_NO_NODES_NOTHING);
    CHECK_INT(set(&s, "session.optimized_model_external_initializers_min_size_in_bytes",
                  "18446744073709551615"),
              EPCTX_OK);
    CHECK_STR(epctx_option_text(&s.options, EPCTX_OPTION_OPTIMIZED_MODEL_SIZE),
              "18446744073709551615");
    end(&s);
}

TEST(set_by_hand) {
    epctx_options options = {0};
    options.values[EPCTX_OPTION_CONTEXT_EMBED_MODE] = "1";
    CHECK_TRUE(epctx_option_on(&options, EPCTX_OPTION_CONTEXT_EMBED_MODE));
    options.values[EPCTX_OPTION_CONTEXT_EMBED_MODE] = "yes";
    CHECK_INT(epctx_options_check(&options, EPCTX_PHASE_GENERATE, "m.onnx", NULL), EPCTX_ERR_ARG);
    CHECK_INT(epctx_options_check(&options, EPCTX_PHASE_LOAD, "m.onnx", NULL), EPCTX_OK);
}

TEST(switches) {
    static const char *const wrong[] = {"", "2", "true", "01", " 1", "1 ", "0 1", "on", "True"};
    session s = begin();
    size_t i;
    for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK(set(&s, "ep.context_embed_mode", wrong[i]) == EPCTX_ERR_ARG, "\"%s\" is taken",
              wrong[i]);
        CHECK_HAS(s.error.message, "ep.context_embed_mode: one of 0 1 is expected");
    }
    CHECK_TRUE(!epctx_option_given(&s.options, EPCTX_OPTION_CONTEXT_EMBED_MODE));
    CHECK_INT(epctx_options_set(&s.options, epctx_str_of("ep.context_embed_mode"),
                                (epctx_str){"1\0", 2}, &s.error),
              EPCTX_ERR_ARG);
    end(&s);
}

TEST(wrong_values) {
    static const char *const names[] = {"a/b.data", "/b.data", "..", "a\\b.data", "c:b.data"};
    static const char *const folders[] = {"", "w", "w/x/", "../w", "/data/w", "C:\\w"};
    session s = begin();
    char *big = (char *)malloc(8194);
    size_t i;
    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        CHECK(set(&s, "ep.context_model_external_initializers_file_name", names[i]) ==
                  EPCTX_ERR_ARG,
              "\"%s\" is taken", names[i]);
        CHECK_HAS(s.error.message, "a file name is expected");
    }
    /* The folder of external data may be any. */
    for (i = 0; i < sizeof folders / sizeof folders[0]; i++)
        CHECK_OK(set(&s, "session.model_external_initializers_file_folder_path", folders[i]),
                 s.error);
    CHECK_INT(set(&s, "epctx.no_nodes", "none"), EPCTX_ERR_ARG);
    CHECK_HAS(s.error.message, "one of error copy nothing is expected, found 'none'");
    CHECK_INT(set(&s, "session.optimized_model_external_initializers_min_size_in_bytes",
                  "18446744073709551616"),
              EPCTX_ERR_ARG);
    CHECK_HAS(s.error.message, "a decimal number is expected");
    CHECK_TRUE(big != NULL);
    memset(big, 'a', 8193);
    big[8193] = '\0';
    CHECK_INT(set(&s, "ep.context_node_name_prefix", big), EPCTX_ERR_ARG);
    CHECK_HAS(s.error.message, "at most 8192 bytes");
    big[8192] = '\0';
    CHECK_INT(set(&s, "ep.context_node_name_prefix", big), EPCTX_OK);
    free(big);
    end(&s);
}

TEST(unknown_keys) {
    static const struct {
        const char *key, *nearest;
    } wrong[] = {
        {"ep.context_enabled", "the nearest is ep.context_enable"},
        {"EP.CONTEXT_ENABLE", "the nearest is ep.context_enable"},
        {"ep.context_embedmode", "the nearest is ep.context_embed_mode"},
        {"ep.stop_share_ep_context", "the nearest is ep.stop_share_ep_contexts"},
        {"ep.share_contexts", "the nearest is ep.share_ep_contexts"},
        {"ep.anything", "there is no session option 'ep.anything'"},
        {"epctx.no_node", "the nearest is epctx.no_nodes"},
        {"session.disable_model_compiles", "the nearest is session.disable_model_compile"},
        {"session.model_external_initializer_file_folder_path",
         "the nearest is session.model_external_initializers_file_folder_path"},
        {"trt_ep_context_embed_mode", "the session option is ep.context_embed_mode"},
        {"qnn_context_cache_path", "the session option is ep.context_file_path"},
        {"ep_context_enable", "the nearest is ep.context_enable"}, /* Vitis AI's */
    };
    /* Other people's keys pass. */
    static const char *const foreign[] = {"ep.qnn.soc_model",
                                          "ep.dynamic.workload_type",
                                          "session.intra_op.allow_spinning",
                                          "session.x",
                                          "",
                                          "optimization.enable_gelu_approximation"};
    char *endless = (char *)malloc(100001);
    session s = begin();
    size_t i;
    for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK(set(&s, wrong[i].key, "1") == EPCTX_ERR_ARG, "\"%s\" is taken", wrong[i].key);
        CHECK_HAS(s.error.message, wrong[i].nearest);
    }
    for (i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
        CHECK(set(&s, foreign[i], "x") == EPCTX_OK, "\"%s\": %s", foreign[i], s.error.message);
    CHECK_TRUE(endless != NULL);
    memset(endless, 'e', 100000);
    endless[100000] = '\0';
    CHECK_INT(set(&s, endless, "1"), EPCTX_OK);
    free(endless);
    end(&s);
}

TEST(bar_lists) {
    static const struct {
        const char *list, *message;
    } wrong[] = {
        {"ep.context_enable", "key|value is expected, found 'ep.context_enable'"},
        {"|1", "key|value is expected"},
        {"ep.context_enable=1", "key|value is expected"},
        {"ep.context_enable|", "one of 0 1 is expected, found ''"},
        {"ep.context_enable|1 ep.context_enable|0", "is set twice"},
        {"ep.context_node_name_prefix|p ep.context_enabled|1", "nearest is ep.context_enable"},
    };
    session s = begin();
    size_t i;
    s.options.arena = &s.arena;
    CHECK_INT(epctx_options_set_list(&s.options,
                                     " ep.context_enable|1  ep.context_file_path|a|b.onnx\t"
                                     "ep.qnn.x|y\n",
                                     &s.error),
              EPCTX_OK);
    CHECK_TRUE(epctx_option_on(&s.options, EPCTX_OPTION_CONTEXT_ENABLE));
    CHECK_STR(epctx_option_text(&s.options, EPCTX_OPTION_CONTEXT_FILE_PATH), "a|b.onnx");
    CHECK_INT(epctx_options_set_list(&s.options, "", &s.error), EPCTX_OK);
    CHECK_INT(epctx_options_set_list(&s.options, NULL, &s.error), EPCTX_OK);
    for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK(epctx_options_set_list(&s.options, wrong[i].list, &s.error) == EPCTX_ERR_ARG,
              "\"%s\" is taken", wrong[i].list);
        CHECK_HAS(s.error.message, wrong[i].message);
    }
    /* A list that fails sets nothing. */
    CHECK_TRUE(!epctx_option_given(&s.options, EPCTX_OPTION_CONTEXT_NODE_NAME_PREFIX));
    end(&s);
}

/* Keys are exact: no capitals, and only "|" stands between key and value. */
TEST(exact_keys) {
    session s = begin();
    s.options.arena = &s.arena;
    CHECK_INT(epctx_options_set_list(&s.options, "EP_CONTEXT_ENABLE|1", &s.error), EPCTX_ERR_ARG);
    CHECK_HAS(s.error.message, "the nearest is ep.context_enable");
    CHECK_INT(epctx_options_set_list(&s.options, "ep.context_enable=1", &s.error), EPCTX_ERR_ARG);
    CHECK_HAS(s.error.message, "key|value is expected");
    CHECK_INT(
        epctx_options_set_list(&s.options, "ep.context_enable|1 ep.context_enable|0", &s.error),
        EPCTX_ERR_ARG);
    CHECK_HAS(s.error.message, "ep.context_enable is set twice");
    CHECK_TRUE(!epctx_option_given(&s.options, EPCTX_OPTION_CONTEXT_ENABLE));
    end(&s);
}

TEST(no_memory) {
    epctx_options options;
    epctx_arena arena;
    epctx_error error;
    char memory[64];
    epctx_options_init(&options, NULL);
    CHECK_INT(
        epctx_options_set(&options, epctx_str_of("ep.context_enable"), epctx_str_of("1"), &error),
        EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "no arena");
    epctx_arena_init_fixed(&arena, memory, sizeof memory);
    options.arena = &arena;
    CHECK_INT(
        epctx_options_set(&options, epctx_str_of("ep.context_enable"), epctx_str_of("1"), &error),
        EPCTX_OK);
    CHECK_INT(epctx_options_set(&options, epctx_str_of("ep.context_file_path"),
                                epctx_str_of("a path that is longer than what is left of the "
                                             "sixty-four bytes.onnx"),
                                &error),
              EPCTX_ERR_NOMEM);
    CHECK_STR(epctx_option_text(&options, EPCTX_OPTION_CONTEXT_FILE_PATH), "");
}

TEST(sharing_combinations) {
    session s = begin();
    CHECK_INT(set(&s, "ep.stop_share_ep_contexts", "1"), EPCTX_OK);
    CHECK_INT(check(&s, EPCTX_PHASE_GENERATE, "m.onnx"), EPCTX_ERR_ARG);
    CHECK_HAS(s.error.message, "ep.stop_share_ep_contexts is 1 without ep.share_ep_contexts");
    CHECK_INT(check(&s, EPCTX_PHASE_LOAD, "m.onnx"), EPCTX_OK);
    CHECK_INT(set(&s, "ep.share_ep_contexts", "1"), EPCTX_OK);
    CHECK_INT(check(&s, EPCTX_PHASE_BOTH, "m.onnx"), EPCTX_OK);
    CHECK_INT(set(&s, "ep.context_embed_mode", "1"), EPCTX_OK);
    CHECK_INT(check(&s, EPCTX_PHASE_GENERATE, "m.onnx"), EPCTX_ERR_ARG);
    CHECK_HAS(s.error.message, "ep.context_embed_mode");
    CHECK_INT(set(&s, "ep.context_embed_mode", "0"), EPCTX_OK);
    CHECK_INT(check(&s, EPCTX_PHASE_GENERATE, "m.onnx"), EPCTX_OK);
    end(&s);
}

TEST(memory_needs_a_path) {
    session s = begin();
    CHECK_INT(check(&s, EPCTX_PHASE_GENERATE, NULL), EPCTX_ERR_ARG);
    CHECK_HAS(s.error.message, "set ep.context_file_path");
    CHECK_INT(check(&s, EPCTX_PHASE_GENERATE, ""), EPCTX_ERR_ARG);
    /* Embedded contexts need no folder when loading; otherwise epctx_path_base says so. */
    CHECK_INT(check(&s, EPCTX_PHASE_LOAD, NULL), EPCTX_OK);
    CHECK_INT(set(&s, "ep.context_file_path", "out_ctx.onnx"), EPCTX_OK);
    CHECK_INT(check(&s, EPCTX_PHASE_GENERATE, NULL), EPCTX_OK);
    end(&s);
}

TEST(folder_as_path) {
    static const char *const folders[] = {"out", "out/", "a.b/", "a.b/out",
                                          "./",  ".",    "..",   "a/.."};
    static const char *const never[] = {"out/", ".", "..", "a/.", "a/..", "b.onnx/", "b.onnx\\"};
    session s = begin();
    size_t i;
    for (i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        CHECK_INT(set(&s, "ep.context_file_path", folders[i]), EPCTX_OK);
        CHECK(check(&s, EPCTX_PHASE_GENERATE, "m.onnx") == EPCTX_ERR_ARG, "\"%s\" is taken",
              folders[i]);
        CHECK_HAS(s.error.message, "should not point to a folder");
        /* An EP that looks: epctx_generate does, too. */
        s.options.profile = epctx_profile_of(epctx_str_of("TensorrtExecutionProvider"));
        CHECK(check(&s, EPCTX_PHASE_GENERATE, "m.onnx") == EPCTX_OK, "\"%s\": %s", folders[i],
              s.error.message);
        s.options.profile = NULL;
    }
    /* Loading uses the folder only, where a binary is looked for: epctx_path_base judges. */
    for (i = 0; i < sizeof never / sizeof never[0]; i++) {
        CHECK_INT(set(&s, "ep.context_file_path", never[i]), EPCTX_OK);
        CHECK_INT(check(&s, EPCTX_PHASE_LOAD, "m.onnx"), EPCTX_OK);
        CHECK_INT(check(&s, EPCTX_PHASE_GENERATE, "m.onnx"), EPCTX_ERR_ARG);
    }
    CHECK_INT(set(&s, "ep.context_file_path", "out/model"), EPCTX_OK);
    CHECK_INT(check(&s, EPCTX_PHASE_LOAD, "m.onnx"), EPCTX_OK);
    /* ORT's compile API names the binary like that: ModelCompilationOptions_
     * SetEpContextBinaryInformation("out/", "model"). */
    CHECK_INT(check(&s, EPCTX_PHASE_GENERATE, "m.onnx"), EPCTX_ERR_ARG);
    CHECK_INT(set(&s, "session.compile_only", "1"), EPCTX_OK);
    CHECK_INT(check(&s, EPCTX_PHASE_GENERATE, "m.onnx"), EPCTX_OK);
    end(&s);
}

TEST(contradictions) {
    session s = begin();
    CHECK_INT(set(&s, "session.disable_model_compile", "1"), EPCTX_OK);
    CHECK_INT(check(&s, EPCTX_PHASE_GENERATE, "m.onnx"), EPCTX_ERR_ARG);
    CHECK_HAS(s.error.message, "session.disable_model_compile");
    CHECK_INT(check(&s, EPCTX_PHASE_LOAD, "m.onnx"), EPCTX_OK);
    CHECK_INT(set(&s, "session.disable_model_compile", "0"), EPCTX_OK);
    CHECK_INT(set(&s, "ep.enable_weightless_ep_context_nodes", "1"), EPCTX_OK);
    CHECK_INT(check(&s, EPCTX_PHASE_GENERATE, "m.onnx"), EPCTX_OK);
    CHECK_INT(set(&s, "ep.enable_weightless", "0"), EPCTX_OK);
    CHECK_INT(check(&s, EPCTX_PHASE_GENERATE, "m.onnx"), EPCTX_ERR_ARG);
    CHECK_HAS(s.error.message, "keep the first");
    CHECK_INT(set(&s, "ep.enable_weightless", "1"), EPCTX_OK);
    CHECK_INT(check(&s, EPCTX_PHASE_GENERATE, "m.onnx"), EPCTX_OK);
    CHECK_INT(set(&s, "session.disable_cpu_ep_fallback", "1"), EPCTX_OK);
    CHECK_INT(set(&s, "epctx.no_nodes", "copy"), EPCTX_OK);
    CHECK_INT(check(&s, EPCTX_PHASE_GENERATE, "m.onnx"), EPCTX_ERR_ARG);
    CHECK_HAS(s.error.message, "epctx.no_nodes");
    end(&s);
}

/* -- the options of a session -- */

/* What epctx_options_read tells of. */
typedef struct told {
    unsigned warnings;
    char text[640];
} told;

static void tell(void *user, epctx_log level, const char *text) {
    told *to = (told *)user;
    CHECK_INT(level, EPCTX_LOG_WARNING);
    to->warnings++;
    snprintf(to->text, sizeof to->text, "%s", text);
}

/* Reads `count` entries of "MyExecutionProvider", whose own option is "threads". */
static epctx_status read_entries(session *s, const char *const *keys, const char *const *values,
                                 size_t count, told *to) {
    static const char *const own[] = {"threads", "cache", NULL};
    epctx_entries entries = {keys, values, count, "MyExecutionProvider", own};
    epctx_hooks hooks = {0};
    memset(to, 0, sizeof *to);
    hooks.user = to;
    hooks.log_fn = tell;
    epctx_options_init(&s->options, &s->arena);
    return epctx_options_read(&s->options, &entries, &hooks, &s->error);
}

/* Each option with a value that it does not allow: an error where it counts, else a warning. */
TEST(read_by_phase) {
    size_t count, i, wrong = 0;
    const epctx_option_info *list = epctx_option_list(&count);
    for (i = 0; i < 2 * count; i++) {
        const epctx_option_info *info = &list[i / 2];
        const char *value = info->type == EPCTX_OPTION_TYPE_NAME ? "a/b" : "no such value";
        const bool generates = i % 2 == 1;
        const char *keys[] = {info->key, "ep.context_enable"};
        const char *values[] = {value, "1"};
        told to;
        session s = begin();
        epctx_status status;
        uint32_t phase;
        if (i / 2 == EPCTX_OPTION_CONTEXT_ENABLE && generates) continue; /* is its own */
        phase = generates ? EPCTX_PHASE_GENERATE : EPCTX_PHASE_LOAD;
        status = read_entries(&s, keys, values, generates ? 2 : 1, &to);
        if (info->type == EPCTX_OPTION_TYPE_FILE || info->type == EPCTX_OPTION_TYPE_FOLDER ||
            info->type == EPCTX_OPTION_TYPE_TEXT) {
            CHECK(status == EPCTX_OK && to.text[0] == '\0', "%s: any text is right", info->key);
            CHECK_STR(epctx_option_text(&s.options, (epctx_option)(i / 2)), value);
        } else if ((info->phases & phase) != 0) {
            CHECK(status == EPCTX_ERR_ARG, "%s counts when %s", info->key,
                  generates ? "generating" : "loading");
            CHECK_HAS(s.error.message, info->key);
            CHECK_STR(to.text, "");
            wrong++;
        } else {
            CHECK(status == EPCTX_OK, "%s does not count when %s: %s", info->key,
                  generates ? "generating" : "loading", s.error.message);
            CHECK_HAS(to.text, info->key);
            CHECK_TRUE(!epctx_option_given(&s.options, (epctx_option)(i / 2)));
            CHECK_OK(epctx_options_check(&s.options, phase, "m.onnx", &s.error), s.error);
            wrong++;
        }
        end(&s);
    }
    CHECK_TRUE(wrong > 20);
}

TEST(read_combinations) {
    static const struct {
        const char *key, *value; /* beside ... */
        const char *other, *set; /* ... this, */
        epctx_status generating; /* with ep.context_enable */
        unsigned warnings;       /* without it */
        const char *text;        /* of either */
    } cases[] = {
        {"ep.stop_share_ep_contexts", "1", "a", "b", EPCTX_ERR_ARG, 1, "needs both"},
        {"ep.share_ep_contexts", "1", "ep.context_embed_mode", "1", EPCTX_ERR_ARG, 1, "both 1"},
        {"ep.share_ep_contexts", "1", "ep.stop_share_ep_contexts", "1", EPCTX_OK, 0, ""},
        /* ORT's own answers */
        {"session.disable_model_compile", "1", "a", "b", EPCTX_OK, 0, ""},
        {"ep.context_file_path", "out/", "a", "b", EPCTX_OK, 0, ""},
        {"ep.context_file_path", "..", "a", "b", EPCTX_OK, 0, ""},
        {"ep.enable_weightless", "1", "ep.enable_weightless_ep_context_nodes", "0", EPCTX_ERR_ARG,
         0, "keep the first"},
        /* keys */
        {"ep.context_enabled", "1", "ep.other.x", "1", EPCTX_OK, 1, "nearest is ep.context_enable"},
        {"ep.myexecutionprovider.threads", "4", "session.x", "1", EPCTX_OK, 0, ""},
        {"ep.MyExecutionProvider.thread", "4", "ep.myexecutionprovider", "1", EPCTX_OK, 1,
         "no session option 'ep.myexecutionprovider'"},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *keys[] = {cases[i].key, cases[i].other, "ep.context_enable"};
        const char *values[] = {cases[i].value, cases[i].set, "1"};
        told to;
        session s = begin();
        CHECK(read_entries(&s, keys, values, 2, &to) == EPCTX_OK, "%s: %s", cases[i].key,
              s.error.message);
        CHECK(to.warnings == cases[i].warnings, "%s: %u warnings", cases[i].key, to.warnings);
        if (to.warnings > 0) CHECK_HAS(to.text, cases[i].text);
        CHECK(read_entries(&s, keys, values, 3, &to) == cases[i].generating, "%s: %s", cases[i].key,
              s.error.message);
        if (cases[i].generating != EPCTX_OK) CHECK_HAS(s.error.message, cases[i].text);
        end(&s);
    }
}

/* Of the EP's own options a wrong name is an error in both phases. */
TEST(read_own_options) {
    static const char *const keys[] = {"ep.myexecutionprovider.thread", "ep.myexecutionprovider.x"};
    static const char *const values[] = {"4", "1"};
    epctx_entries none = {keys, values, 1, "MyExecutionProvider", NULL};
    told to;
    session s = begin();
    CHECK_INT(read_entries(&s, keys, values, 1, &to), EPCTX_ERR_ARG);
    CHECK_STR(s.error.message, "MyExecutionProvider has no option 'thread', did you mean "
                               "'threads'?: it knows threads, cache");
    CHECK_INT(read_entries(&s, keys + 1, values, 1, &to), EPCTX_ERR_ARG);
    CHECK_STR(s.error.message, "MyExecutionProvider has no option 'x': it knows threads, cache");
    CHECK_INT(epctx_options_read(&s.options, &none, NULL, &s.error), EPCTX_ERR_ARG);
    CHECK_STR(s.error.message, "MyExecutionProvider has no option 'thread', it has none");
    epctx_options_init(&s.options, NULL);
    CHECK_INT(epctx_options_read(&s.options, &none, NULL, &s.error), EPCTX_ERR_ARG);
    CHECK_HAS(s.error.message, "no arena");
    end(&s);
}

TEST(nearest_names) {
    static const char *const names[] = {"check_weights", "hardware_architecture", "layout", NULL};
    static const char *const none[] = {NULL};
    static const struct {
        const char *word;
        int meant; /* of `names` */
    } cases[] = {
        {"hardware_archtecture", 1},
        {"Check_Weights", 0},
        {"checkweights", 0},
        {"layuot", 2},
        {"layot", 2},
        {"colour", 3},
        {"lay", 3},
        {"", 3},
        {"layout", 2},
    };
    char wide[400];
    const char *const endless[] = {wide, NULL};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *found = epctx_nearest_name(epctx_str_of(cases[i].word), names);
        CHECK(found == names[cases[i].meant], "'%s': found %s", cases[i].word,
              found ? found : "none");
        CHECK_TRUE(epctx_nearest_name(epctx_str_of(cases[i].word), none) == NULL);
    }
    memset(wide, 'l', sizeof wide - 1); /* longer than any name may be */
    wide[sizeof wide - 1] = '\0';
    CHECK_TRUE(epctx_nearest_name(epctx_str_of(wide), names) == NULL);
    wide[97] = '\0';
    CHECK_TRUE(epctx_nearest_name(epctx_str_of("llllll"), endless) == NULL);
}

TEST(profile_defaults) {
    epctx_profile embeds = *epctx_profile_find(epctx_str_of("generic"));
    session s = begin();
    embeds.traits |= EPCTX_TRAIT_EMBEDS;
    s.options.profile = &embeds;
    CHECK_TRUE(epctx_option_on(&s.options, EPCTX_OPTION_CONTEXT_EMBED_MODE));
    CHECK_TRUE(!epctx_option_given(&s.options, EPCTX_OPTION_CONTEXT_EMBED_MODE));
    /* What is set wins, and so does what sharing needs. */
    CHECK_INT(set(&s, "ep.share_ep_contexts", "1"), EPCTX_OK);
    CHECK_TRUE(!epctx_option_on(&s.options, EPCTX_OPTION_CONTEXT_EMBED_MODE));
    CHECK_INT(check(&s, EPCTX_PHASE_GENERATE, "m.onnx"), EPCTX_OK);
    embeds.traits |= EPCTX_TRAIT_ONLY_EMBEDDED;
    CHECK_INT(check(&s, EPCTX_PHASE_GENERATE, "m.onnx"), EPCTX_ERR_ARG);
    CHECK_HAS(s.error.message, "ep.share_ep_contexts is 1, but generic reads no file");
    CHECK_INT(set(&s, "ep.share_ep_contexts", "0"), EPCTX_OK);
    CHECK_INT(check(&s, EPCTX_PHASE_GENERATE, "m.onnx"), EPCTX_OK);
    CHECK_INT(set(&s, "ep.context_embed_mode", "0"), EPCTX_OK);
    CHECK_INT(check(&s, EPCTX_PHASE_GENERATE, "m.onnx"), EPCTX_ERR_ARG);
    CHECK_HAS(s.error.message, "ep.context_embed_mode is 0, but generic reads no file");
    end(&s);
}

/* -- preflight -- */

/* A folder of its own, with model.onnx in it, that is the current folder. */
typedef struct place {
    session s;
    epctx_preflight_in in;
    epctx_outputs out;
} place;

static bool put(const char *path) {
    FILE *file = fopen(path, "wb");
    bool good = file != NULL && fputs("text", file) >= 0;
    return file != NULL && fclose(file) == 0 && good;
}

static char root[TEST_TEMP]; /* the current folder while these tests run */

static bool enter(place *p) {
    memset(p, 0, sizeof *p);
    p->s = begin();
    p->in.model_path = "model.onnx";
    p->in.short_name = "npu";
    return chdir(root) == 0 && system("rm -rf ./*") == 0 && put("model.onnx");
}

static epctx_status preflight(place *p) {
    return epctx_preflight(&p->s.options, &p->in, &p->s.arena, &p->out, &p->s.error);
}

/* Nothing but these files is in the folder. */
static bool only(const char *files) {
    char command[300];
    snprintf(command, sizeof command, "test \"$(ls -A | tr '\\n' ' ')\" = '%s'", files);
    return system(command) == 0;
}

TEST(outputs_named) {
    place p;
    CHECK_TRUE(enter(&p));
    CHECK_OK(preflight(&p), p.s.error);
    CHECK_STR(p.out.model, "model_ctx.onnx");
    CHECK_STR(p.out.binary, "model_npu.bin");
    CHECK_STR(p.out.initializers, NULL);
    CHECK(only("model.onnx "), "a file was left behind");
    /* Another folder, another EP, external initializers. */
    CHECK_INT(mkdir("out", 0777), 0);
    CHECK_INT(set(&p.s, "ep.context_file_path", "out/x_ctx.onnx"), EPCTX_OK);
    CHECK_INT(set(&p.s, "ep.context_model_external_initializers_file_name", "x.data"), EPCTX_OK);
    p.in.short_name = "gpu";
    CHECK_OK(preflight(&p), p.s.error);
    CHECK_STR(p.out.model, "out/x_ctx.onnx");
    CHECK_STR(p.out.initializers, "out/x.data");
    CHECK_STR(p.out.binary, "out/x_gpu.bin");
    /* Embedded: no binary. From memory: the option names the output. */
    CHECK_INT(set(&p.s, "ep.context_embed_mode", "1"), EPCTX_OK);
    p.in.model_path = NULL;
    CHECK_OK(preflight(&p), p.s.error);
    CHECK_STR(p.out.binary, NULL);
    /* The binary of a group has the name of the first model. */
    CHECK_INT(set(&p.s, "ep.context_embed_mode", "0"), EPCTX_OK);
    p.in.binary = "first_npu.bin";
    CHECK_OK(preflight(&p), p.s.error);
    CHECK_STR(p.out.binary, "out/first_npu.bin");
    p.in.binary = "../first_npu.bin";
    CHECK_INT(preflight(&p), EPCTX_ERR_PATH);
    p.in.binary = "C:first_npu.bin"; /* a file here, absolute where the model may be read */
    CHECK_INT(preflight(&p), EPCTX_ERR_PATH);
    end(&p.s);
}

TEST(options_first) {
    place p;
    CHECK_TRUE(enter(&p));
    CHECK_INT(set(&p.s, "ep.stop_share_ep_contexts", "1"), EPCTX_OK);
    CHECK_INT(preflight(&p), EPCTX_ERR_ARG);
    CHECK_INT(set(&p.s, "ep.stop_share_ep_contexts", "0"), EPCTX_OK);
    p.in.model_path = NULL;
    CHECK_INT(preflight(&p), EPCTX_ERR_ARG);
    CHECK_HAS(p.s.error.message, "set ep.context_file_path");
    end(&p.s);
}

TEST(output_folder) {
    place p;
    CHECK_TRUE(enter(&p));
    CHECK_INT(set(&p.s, "ep.context_file_path", "nowhere/x_ctx.onnx"), EPCTX_OK);
    CHECK_INT(preflight(&p), EPCTX_ERR_NOT_FOUND);
    CHECK_STR(p.s.error.message, "nowhere/x_ctx.onnx: its folder does not exist");
    CHECK_INT(set(&p.s, "ep.context_file_path", "model.onnx/x_ctx.onnx"), EPCTX_OK);
    CHECK_INT(preflight(&p), EPCTX_ERR_NOT_FOUND);
    CHECK_INT(mkdir("f.onnx", 0777), 0);
    CHECK_INT(set(&p.s, "ep.context_file_path", "f.onnx"), EPCTX_OK);
    CHECK_INT(preflight(&p), EPCTX_ERR_PATH);
    CHECK_HAS(p.s.error.message, "f.onnx: is a folder or a device");
    CHECK_INT(set(&p.s, "epctx.overwrite", "1"), EPCTX_OK);
    CHECK_INT(preflight(&p), EPCTX_ERR_PATH);
    end(&p.s);
}

TEST(output_exists) {
    static const char *const outputs[] = {"model_ctx.onnx", "model_npu.bin", "model.data"};
    size_t i;
    for (i = 0; i < 3; i++) {
        place p;
        CHECK_TRUE(enter(&p));
        CHECK_INT(set(&p.s, "ep.context_model_external_initializers_file_name", "model.data"),
                  EPCTX_OK);
        CHECK_TRUE(put(outputs[i]));
        CHECK_INT(preflight(&p), EPCTX_ERR_EXISTS);
        CHECK_HAS(p.s.error.message, outputs[i]);
        CHECK_INT(set(&p.s, "epctx.overwrite", "1"), EPCTX_OK);
        CHECK_OK(preflight(&p), p.s.error);
        end(&p.s);
    }
}

TEST(outputs_clash) {
    place p;
    CHECK_TRUE(enter(&p));
    CHECK_INT(set(&p.s, "ep.context_model_external_initializers_file_name", "model_npu.bin"),
              EPCTX_OK);
    CHECK_INT(preflight(&p), EPCTX_ERR_PATH);
    CHECK_STR(p.s.error.message, "model_npu.bin: two outputs would be this file: change one of the "
                                 "names");
    CHECK_INT(set(&p.s, "ep.context_model_external_initializers_file_name", "model_ctx.onnx"),
              EPCTX_OK);
    CHECK_INT(preflight(&p), EPCTX_ERR_PATH);
    /* One file under two names; only what the caller named may be a link. */
    CHECK_TRUE(put("model_npu.bin"));
    CHECK_INT(symlink("model_npu.bin", "model.data"), 0);
    CHECK_INT(set(&p.s, "ep.context_model_external_initializers_file_name", "model.data"),
              EPCTX_OK);
    CHECK_INT(set(&p.s, "epctx.overwrite", "1"), EPCTX_OK);
    CHECK_INT(preflight(&p), EPCTX_ERR_PATH);
    CHECK_HAS(p.s.error.message, "is a link");
    end(&p.s);
}

TEST(outputs_spare_inputs) {
    static const char *const inputs[] = {"weights.data"};
    place p;
    CHECK_TRUE(enter(&p));
    CHECK_TRUE(put("weights.data"));
    p.in.inputs = inputs;
    p.in.input_count = 1;
    CHECK_INT(set(&p.s, "epctx.overwrite", "1"), EPCTX_OK);
    CHECK_INT(set(&p.s, "ep.context_file_path", "./model.onnx"), EPCTX_OK);
    CHECK_INT(preflight(&p), EPCTX_ERR_PATH);
    CHECK_HAS(p.s.error.message, "./model.onnx: belongs to the source model");
    CHECK_INT(set(&p.s, "ep.context_file_path", "model_ctx.onnx"), EPCTX_OK);
    CHECK_INT(set(&p.s, "ep.context_model_external_initializers_file_name", "weights.data"),
              EPCTX_OK);
    CHECK_INT(preflight(&p), EPCTX_ERR_PATH);
    CHECK_HAS(p.s.error.message, "weights.data: belongs to the source model");
    /* Through a link. */
    CHECK_INT(symlink("model.onnx", "link.onnx"), 0);
    CHECK_INT(set(&p.s, "ep.context_model_external_initializers_file_name", ""), EPCTX_OK);
    CHECK_INT(set(&p.s, "ep.context_file_path", "link.onnx"), EPCTX_OK);
    CHECK_INT(preflight(&p), EPCTX_ERR_PATH);
    CHECK_HAS(p.s.error.message, "link.onnx: belongs to the source model");
    end(&p.s);
}

/* The machine's files, but creating fails as in a folder that is read-only. */
static epctx_status refuse(void *user, const char *folder, const char *name, epctx_io_file *file,
                           epctx_error *error) {
    (void)user, (void)folder, (void)name, (void)file;
    return epctx_fail(error, EPCTX_ERR_IO, "cannot create: read-only");
}

TEST(output_writable) {
    epctx_io io = *epctx_io_files();
    place p;
    CHECK_TRUE(enter(&p));
    io.create_fn = refuse;
    p.in.io = &io;
    CHECK_INT(preflight(&p), EPCTX_ERR_IO);
    CHECK_STR(p.s.error.message, "model_ctx.onnx: cannot create: read-only");
    end(&p.s);
}

TEST(preflight_no_memory) {
    size_t size;
    bool done = false;
    place p;
    char *memory = (char *)malloc(40000);
    CHECK_TRUE(memory != NULL);
    CHECK_TRUE(enter(&p));
    for (size = 0; size < 40000 && !done; size += 64) {
        epctx_arena arena;
        epctx_status status;
        epctx_arena_init_fixed(&arena, memory, size);
        status = epctx_preflight(NULL, &p.in, &arena, &p.out, &p.s.error);
        CHECK(status == EPCTX_OK || status == EPCTX_ERR_NOMEM, "%zu bytes: %s", size,
              p.s.error.message);
        CHECK(only("model.onnx "), "%zu bytes: a file was left behind", size);
        done = status == EPCTX_OK;
    }
    CHECK(done, "40000 bytes are not enough");
    free(memory);
    end(&p.s);
}

/* -- the rest of the rules -- */

TEST(keys_far_from_ours) {
    char *endless = (char *)malloc(300);
    session s = begin();
    CHECK_TRUE(endless != NULL);
    memset(endless, 'e', 299);
    endless[299] = '\0';
    memcpy(endless, "ep.", 3);
    CHECK_INT(set(&s, endless, "1"), EPCTX_ERR_ARG);
    CHECK(strstr(s.error.message, "nearest") == NULL, "%s", s.error.message);
    free(endless);
    CHECK_INT(set(&s, "epctx.something_else_altogether", "1"), EPCTX_ERR_ARG);
    CHECK_INT(set(&s, "EP_CONTEXT_SOMETHING_ELSE_ALTOGETHER", "1"), EPCTX_ERR_ARG);
    CHECK_HAS(s.error.message, "EP_CONTEXT_SOMETHING_ELSE_ALTOGETHER");
    CHECK_INT(set(&s, "session.optimized_model_external_initializers_min_size_in_bytes", "12a"),
              EPCTX_ERR_ARG);
    end(&s);
}

/* Blanks and ends of lines stand between entries. */
TEST(blanks) {
    session s = begin();
    s.options.arena = &s.arena;
    CHECK_INT(
        epctx_options_set_list(
            &s.options, "\t ep.context_enable|1 \t\r\nep.context_file_path|a=b.onnx \n", &s.error),
        EPCTX_OK);
    CHECK_TRUE(epctx_option_on(&s.options, EPCTX_OPTION_CONTEXT_ENABLE));
    CHECK_STR(epctx_option_text(&s.options, EPCTX_OPTION_CONTEXT_FILE_PATH), "a=b.onnx");
    end(&s);
}

/* Values that nobody checked: a choice is the careful one. */
TEST(unchecked_values) {
    epctx_profile plain = *epctx_profile_find(epctx_str_of("generic"));
    session s = begin();
    s.options.values[EPCTX_OPTION_NO_NODES] = "whatever";
    CHECK_INT(epctx_options_to_gen(&s.options).no_nodes, EPCTX_NO_NODES_ERROR);
    plain.traits &= ~EPCTX_TRAIT_EMBEDS;
    s.options.profile = &plain;
    CHECK_TRUE(!epctx_option_on(&s.options, EPCTX_OPTION_CONTEXT_EMBED_MODE));
    end(&s);
}

TEST(no_contradiction) {
    session s = begin();
    CHECK_INT(set(&s, "ep.enable_weightless", "1"), EPCTX_OK);
    CHECK_INT(set(&s, "session.disable_cpu_ep_fallback", "1"), EPCTX_OK);
    CHECK_INT(check(&s, EPCTX_PHASE_GENERATE, "m.onnx"), EPCTX_OK);
    CHECK_INT(set(&s, "ep.context_file_path", "out\\"), EPCTX_OK);
    CHECK_INT(check(&s, EPCTX_PHASE_GENERATE, "m.onnx"), EPCTX_ERR_ARG);
    CHECK_HAS(s.error.message, "should not point to a folder");
    end(&s);
}

/* Paths at and beyond the limit: each output says so. */
TEST(long_paths) {
    static const size_t sizes[] = {EPCTX_PATH_MAX + 9, EPCTX_PATH_MAX - 9, EPCTX_PATH_MAX - 20};
    char *path = (char *)malloc(EPCTX_PATH_MAX + 10);
    CHECK_TRUE(path != NULL);
    for (size_t i = 0; i < 3; i++) {
        place p;
        CHECK_TRUE(enter(&p));
        for (size_t k = 0; k < sizes[i]; k++)
            path[k] = k % 2 == 0 ? '.' : '/'; /* here, and still here */
        memcpy(path + sizes[i] - 7, "/x.onnx", 8);
        CHECK_INT(set(&p.s, "ep.context_file_path", path), EPCTX_OK);
        CHECK_INT(set(&p.s, "ep.context_model_external_initializers_file_name",
                      i == 2 ? "" : "initializers.data"),
                  EPCTX_OK);
        p.in.binary = "a_long_name_of_a_binary.bin";
        CHECK_INT(preflight(&p), EPCTX_ERR_LIMIT);
        CHECK(only("model.onnx "), "path %zu: a file was left behind", i);
        end(&p.s);
    }
    { /* a name made from the source's */
        place p;
        CHECK_TRUE(enter(&p));
        memset(path, 'n', EPCTX_PATH_MAX);
        path[EPCTX_PATH_MAX] = '\0';
        p.in.model_path = path;
        CHECK_INT(preflight(&p), EPCTX_ERR_LIMIT);
        CHECK(only("model.onnx "), "a file was left behind");
        end(&p.s);
    }
    free(path);
}

/* The machine's files, where one call fails. */
typedef struct few {
    int calls, fail_at;
} few;

static bool few_fails(void *user, epctx_error *error) {
    few *f = (few *)user;
    if (++f->calls != f->fail_at) return false;
    epctx_fail(error, EPCTX_ERR_IO, "the injected failure");
    return true;
}

static epctx_status few_stat(void *user, const char *path, epctx_file_info *info,
                             epctx_error *error) {
    const epctx_io *files = epctx_io_files();
    return few_fails(user, error) ? EPCTX_ERR_IO : files->stat_fn(files->user, path, info, error);
}

static epctx_status few_canonical(void *user, const char *path, char *out, size_t capacity,
                                  epctx_error *error) {
    const epctx_io *files = epctx_io_files();
    return few_fails(user, error) ? EPCTX_ERR_IO
                                  : files->canonical_fn(files->user, path, out, capacity, error);
}

TEST(preflight_io_fails) {
    static const char *const inputs[] = {NULL, ""};
    bool done = false;
    int n;
    for (n = 1; n < 50 && !done; n++) {
        epctx_io io = *epctx_io_files();
        few f = {0};
        place p;
        epctx_status status;
        CHECK_TRUE(enter(&p));
        f.fail_at = n;
        io.user = &f;
        io.stat_fn = few_stat;
        io.canonical_fn = few_canonical;
        p.in.io = &io;
        p.in.inputs = inputs;
        p.in.input_count = 2;
        status = preflight(&p);
        CHECK(status == EPCTX_OK || status == EPCTX_ERR_IO, "call %d: %s", n, p.s.error.message);
        CHECK(only("model.onnx "), "call %d: a file was left behind", n);
        done = status == EPCTX_OK && f.calls < n;
        end(&p.s);
    }
    CHECK(done && n > 6, "%d calls", n);
}

/* What is asked of a generation, as session options and back. */
TEST(options_of_a_generation) {
    static const epctx_weightless_support support[] = {EPCTX_WEIGHTLESS_NONE, EPCTX_WEIGHTLESS_ALL,
                                                       EPCTX_WEIGHTLESS_EXTERNAL_ONLY};
    epctx_options options;
    epctx_error error;
    for (int i = 0; i < 12; i++) {
        epctx_gen_opts opts = {0}, again;
        opts.context_file_path = i % 2 == 0 ? "out.onnx" : NULL;
        opts.name_prefix = i % 3 == 0 ? "p_" : NULL;
        opts.initializers_file_name = i % 4 == 0 ? "w.data" : NULL;
        opts.embed = i % 2 == 1;
        opts.overwrite = i % 3 == 1;
        opts.require_all = i % 4 == 1;
        opts.prepare_only = i % 3 == 2;
        opts.no_nodes = opts.require_all ? EPCTX_NO_NODES_ERROR : (epctx_no_nodes)(i % 3);
        opts.weightless = support[i % 3];
        options = epctx_options_of_gen(&opts);
        CHECK_OK(epctx_options_check(&options, EPCTX_PHASE_GENERATE, "m.onnx", &error), error);
        again = epctx_options_to_gen(&options);
        CHECK_TRUE(again.context_file_path == opts.context_file_path);
        CHECK_TRUE(again.name_prefix == opts.name_prefix);
        CHECK_TRUE(again.initializers_file_name == opts.initializers_file_name);
        CHECK_INT(again.embed, opts.embed);
        CHECK_INT(again.overwrite, opts.overwrite);
        CHECK_INT(again.require_all, opts.require_all);
        CHECK_INT(again.prepare_only, opts.prepare_only);
        CHECK_INT(again.no_nodes, opts.no_nodes);
        CHECK_INT(again.weightless, opts.weightless);
    }
    /* Nothing said is nothing asked for, and an empty text is none. */
    epctx_options_init(&options, NULL);
    options.values[EPCTX_OPTION_CONTEXT_FILE_PATH] = "";
    CHECK_TRUE(epctx_options_to_gen(&options).context_file_path == NULL);
    CHECK_INT(epctx_options_to_gen(&options).no_nodes, EPCTX_NO_NODES_ERROR);
}

int main(int argc, char **argv) {
    if (!test_temp(root)) return 1;
    RUN(list_is_complete);
    RUN(phases);
    RUN(defaults);
    RUN(set_and_read);
    RUN(set_by_hand);
    RUN(switches);
    RUN(wrong_values);
    RUN(unknown_keys);
    RUN(bar_lists);
    RUN(exact_keys);
    RUN(no_memory);
    RUN(sharing_combinations);
    RUN(memory_needs_a_path);
    RUN(folder_as_path);
    RUN(contradictions);
    RUN(read_by_phase);
    RUN(read_combinations);
    RUN(read_own_options);
    RUN(nearest_names);
    RUN(profile_defaults);
    RUN(outputs_named);
    RUN(options_first);
    RUN(output_folder);
    RUN(output_exists);
    RUN(outputs_clash);
    RUN(outputs_spare_inputs);
    RUN(output_writable);
    RUN(preflight_no_memory);
    RUN(keys_far_from_ours);
    RUN(blanks);
    RUN(unchecked_values);
    RUN(no_contradiction);
    RUN(long_paths);
    RUN(preflight_io_fails);
    if (chdir(root) != 0 || system("rm -rf ./*") != 0 || rmdir(root) != 0) return 1;
    RUN(options_of_a_generation);
    return test_end();
}
