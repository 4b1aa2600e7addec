/* Facts about vendors (examples/epctx/facts): versions, look-ups, other facts over the built-in
 * ones, files that are refused, and profiles and options of epctx.h beside those of the facts. */
#define _XOPEN_SOURCE 700
#include "examples/epctx/facts/facts.h"
#include "disk.h"
#include "files.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* -- versions -- */

TEST(compare_versions) {
    static const struct {
        const char *a, *b;
        int order;
    } cases[] = {
        {"1.30.0", "1.30.0", 0},
        {"1.30", "1.30.0", 0},
        {"1.9", "1.10", -1},
        {"2", "1.99.99", 1},
        {"1.31.1", "1.31", 1},
        {"2.6", "2.51", -1},
        {"2026.4.1", "2026.4", 1},
        {"1.30.0-rc1", "1.30.0", -1},
        {"1.30.1-dev", "1.30.0", 1},
        {"", "", 0},
        {"", "0.0", 0},
        {"", "0.1", -1},
        {"1.x", "1.0", 0},
        {"01.2", "1.2", 0},
        {"1.29.9", "1.30", -1},
    };
    size_t i;
    for (i = 0; i < COUNT(cases); i++) {
        const epctx_str a = epctx_str_of(cases[i].a), b = epctx_str_of(cases[i].b);
        const int there = facts_compare_versions(a, b), back = facts_compare_versions(b, a);
        CHECK(there == cases[i].order && back == -there, "%s and %s: expected %d, found %d and %d",
              cases[i].a, cases[i].b, cases[i].order, there, back);
    }
}

TEST(hold) {
    static const struct {
        const char *since, *until, *versions;
        bool holds;
    } cases[] = {
        {NULL, NULL, NULL, true},
        {NULL, NULL, "ort=1.29", true},
        {"ort 1.30", NULL, NULL, true},
        {"ort 1.30", NULL, "ort=1.29.0", false},
        {"ort 1.30", NULL, "ort=1.30.0", true},
        {"ort 1.30", NULL, "qnn=2.6", true},
        {NULL, "ort 1.23", NULL, false},
        {NULL, "ort 1.23", "ort=1.22.9", true},
        {NULL, "ort 1.23", "ort=1.23", false},
        {NULL, "ort 1.23", "qnn=1.0", false},
        {"ort 1.24", "ort 1.30", "ort=1.27", true},
        {"ort 1.24", "ort 1.30", "ort=1.30", false},
        {"ort 1.24", "ort 1.30", "ort=1.23", false},
        {"acme 3", NULL, "ort=1.29", true},
        {NULL, "acme 3", "ort=1.29", false},
        {"ort 1.24, qnn 2.6", NULL, "ort=1.29,qnn=2.5", false},
        {"ort 1.24, qnn 2.6", NULL, "qnn=2.6, ort=1.29", true},
        {NULL, "ort 1.30, qnn 2.7", "ort=1.29,qnn=2.6", true},
        {NULL, "ort 1.30, qnn 2.7", "ort=1.29,qnn=2.7", false},
    };
    size_t i;
    for (i = 0; i < COUNT(cases); i++) {
        fact_pair pairs[2];
        fact f;
        memset(&f, 0, sizeof f);
        f.pairs = pairs;
        if (cases[i].since != NULL) pairs[f.count++] = (fact_pair){"since", cases[i].since};
        if (cases[i].until != NULL) pairs[f.count++] = (fact_pair){"until", cases[i].until};
        CHECK(facts_hold(&f, cases[i].versions) == cases[i].holds, "case %zu: expected %d", i,
              cases[i].holds);
    }
}

TEST(check_versions) {
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"ort=1.29,qnn=2.6", NULL},
        {"ort=1.30.0-rc1", NULL},
        {"", "PRODUCT=VERSION"},
        {"ort", "expected a version"},
        {"ort=1.29,qnn=2.6,ort=1.30", "ort is named twice"},
        {"ort=", "expected a version"},
        {"ort=new", "expected a version"},
        {"ort=1.", "expected a version"},
        {"acme=1", "'acme' is no product"},
        {"ort=1.29;qnn=2", "expected a version"},
    };
    epctx_error error;
    size_t i;
    for (i = 0; i < COUNT(cases); i++) {
        const epctx_status status = facts_check_versions(cases[i].text, NULL, &error);
        CHECK((status == EPCTX_OK) == (cases[i].says == NULL), "'%s': %s", cases[i].text,
              error.message);
        CHECK(cases[i].says == NULL || strstr(error.message, cases[i].says) != NULL,
              "'%s': expected '%s', found '%s'", cases[i].text, cases[i].says, error.message);
    }
}

/* -- the built-in facts -- */

TEST(look_up) {
    const fact *f = facts_find("chip", "SM8550");
    epctx_str rest = epctx_str_of("a, b,c,"), word;
    size_t at = 0, count = 0;
    CHECK(f != NULL && fact_number(f, "soc_model") == 43, "SM8550 is not soc_model 43");
    CHECK(fact_get(f, "also") != NULL && fact_get(f, "nothing") == NULL, "keys");
    CHECK(fact_get(f, "who") != NULL, "what the default block says is not found");
    CHECK(fact_has(f, "soc_id", epctx_str_of("519")) && !fact_has(f, "soc_id", epctx_str_of("51")),
          "a word of a list");
    CHECK(facts_find("chip", "sm8550") == NULL && facts_find("nothing", "SM8550") == NULL,
          "what is not there is found");
    while (facts_next("chip", &at) != NULL) count++;
    CHECK(count > 80 && facts_next("chip", &at) == NULL, "found %zu chips", count);
    for (count = 0; fact_next_word(&rest, &word); count++)
        CHECK(word.size == 1 && *word.data == "abc"[count], "word %zu", count);
    CHECK_INT(count, 3);
    CHECK(facts_element(epctx_str_of("float32")) == EPCTX_ONNX_FLOAT &&
              facts_element(epctx_str_of("unknown")) == 0,
          "element types");
    CHECK(strstr(facts_of_ep("qnn_plugin", "library"), "qnn") != NULL, "the library of an EP");
    CHECK(facts_of_ep("generic", "library") == NULL, "no library");
}

static bool same_text(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool same_texts(const char *const *a, const char *const *b) {
    size_t i;
    for (i = 0; i < 4; i++)
        if (!same_text(a[i], b[i])) return false;
    return true;
}

/* A file that changes nothing makes the profiles of the facts be used. */
TEST(profiles_of_header) {
    static const char text[] = "facts: 1\n";
    size_t count, own, i;
    const epctx_profile *all, *built_in = epctx_profiles_built_in(&own);
    make_file(at("none.facts"), text, sizeof text - 1);
    CHECK_INT(facts_load(at("none.facts"), NULL), EPCTX_OK);
    all = epctx_profiles(&count);
    CHECK(all != built_in && count == own, "expected %zu other ones, found %zu", own, count);
    for (i = 0; i < count; i++) {
        const epctx_profile *a = &all[i], *b = &built_in[i];
        CHECK(same_text(a->name, b->name) && same_texts(a->sources, b->sources) &&
                  a->traits == b->traits && a->key == b->key && a->required == b->required &&
                  same_text(a->binary, b->binary) && same_texts(a->sidecars, b->sidecars) &&
                  same_text(a->attribute, b->attribute) && a->compat_fn == b->compat_fn,
              "profile %s of epctx.h is not %s of the facts", b->name, a->name);
    }
    facts_unload();
    CHECK(epctx_profiles(NULL) == built_in, "the built-in ones do not come back");
}

TEST(options_of_header) {
    static const char *const types[] = {"switch", "text",   "file",  "folder",
                                        "name",   "number", "choice"};
    static const char *const phases[] = {"none", "generate", "load", "both"};
    size_t count, i, at = 0;
    const epctx_option_info *all = epctx_option_list(&count);
    const fact *f;
    for (i = 0; (f = facts_next("option", &at)) != NULL;) {
        const char *constant = fact_get(f, "constant"), *value = fact_get(f, "default");
        if (fact_get(f, "id") == NULL) continue;
        CHECK(i < count && strcmp(all[i].key, f->name) == 0, "option %s", f->name);
        CHECK(strcmp(all[i].ort, constant != NULL ? constant : "") == 0 &&
                  strcmp(all[i].fallback, value != NULL ? value : "") == 0 &&
                  strcmp(all[i].text, fact_get(f, "text")) == 0 &&
                  strcmp(types[all[i].type], fact_get(f, "type")) == 0 &&
                  strcmp(phases[all[i].phases], fact_get(f, "phase")) == 0,
              "%s differs", f->name);
        i++;
    }
    CHECK_INT(i, count);
}

/* -- other facts -- */

#define HEAD    "facts: 1\n\ndefault: all\nwho: W\nseen: bench\nfrom: F\ndate: 2026-11-28\n\n"
#define PROFILE "profile: acme\nsources: AcmeEP\nkey: none\n"

static epctx_status load_text(const char *text, size_t size, epctx_error *error) {
    make_file(at("my.facts"), text, size);
    return facts_load(at("my.facts"), error);
}

TEST(extend_and_replace) {
    static const char text[] =
        HEAD "chip: SM8550; soc_model: 43; htp: 99\nchip: NEW; soc_model: 999; htp: 90; vtcm: 4\n"
             "# a comment\n"
             "option: a.name;\ncode: acme 65535; meaning: m\nopset: acme 99999;\nir: 999;\n"
             "\nmessage: one | two ...\n    three\n# a comment in a block\ncause: C\n   goes  on\n"
             "cure: D\r\n\n" PROFILE;
    static const char more[] = HEAD "chip: NEW; soc_model: 998; htp: 90\n";
    epctx_error error;
    size_t before = 0, after = 0, count, at_ = 0;
    const fact *f;
    const epctx_profile *all;
    while (facts_next("chip", &before) != NULL)
        ;
    CHECK_INT(load_text(text, sizeof text - 1, &error), EPCTX_OK);
    f = facts_find("chip", "SM8550");
    CHECK(fact_number(f, "htp") == 99 && fact_get(f, "also") == NULL, "it is not replaced");
    while (facts_next("chip", &after) != NULL)
        ;
    CHECK_INT(after, before + 1);
    f = facts_find("message", "one | two ... three");
    CHECK(f != NULL && strcmp(fact_get(f, "cause"), "C goes  on") == 0, "lines that go on");
    CHECK(strcmp(fact_get(f, "cure"), "D") == 0 && strcmp(fact_get(f, "who"), "W") == 0,
          "values of the block and its default");
    CHECK(strcmp(f->file, at("my.facts")) == 0 && f->line == 17, "line %u", (unsigned)f->line);
    all = epctx_profiles(&count);
    CHECK(strcmp(all[count - 1].name, "generic") == 0, "the last one is %s", all[count - 1].name);
    CHECK(strcmp(epctx_profile_of(epctx_str_of("acmeep"))->name, "acme") == 0, "the new profile");
    CHECK(epctx_profile_find(epctx_str_of("qnn")) != NULL, "the others");
    /* Over these, others. */
    CHECK_INT(load_text(more, sizeof more - 1, &error), EPCTX_OK);
    CHECK_INT(fact_number(facts_find("chip", "NEW"), "soc_model"), 998);
    CHECK_INT(fact_number(facts_find("chip", "SM8550"), "htp"), 99);
    facts_unload();
    CHECK(facts_find("chip", "NEW") == NULL, "they stay");
    CHECK(facts_next("chip", &at_) != NULL, "the built-in ones are gone");
}

TEST(replace_kinds) {
    static const char chips[] = "facts: 1\nreplace: chip\n\nchip: A; soc_model: 1; htp: 60; who: "
                                "W; seen: bench; from: F; date: 2026-11\n";
    size_t count = 0;
    CHECK_INT(load_text(chips, sizeof chips - 1, NULL), EPCTX_OK);
    while (facts_next("chip", &count) != NULL)
        ;
    CHECK_INT(count, 1);
    CHECK(facts_find("code", "qnn 1002") != NULL, "another kind is gone");
    facts_unload();
}

/* What is wrong, and the line that is named. */
TEST(refused) {
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", ":1: expected the head"},
        {"chip: A; soc_model: 1; htp: 1\n", ":1: 'facts: 1' must be the first block"},
        {"facts: 2\n", ":1: this is format '2'"},
        {"facts: 1\n\nfacts: 1\n", ":3: 'facts: 1' must be the first block, and no other"},
        {"facts: 1\nreplace: nothing\n", "there is no kind 'nothing'"},
        {"facts: 1\nreplace: profile\n", "expected one profile with the trait any_ep, found 0"},
        {"facts: 1\n\nabc\n", ":3: expected 'key: value'"},
        {"facts: 1\n\nAbc: d\n", ":3: expected 'key: value'"},
        {"facts: 1\n\n: d\n", ":3: expected 'key: value'"},
        {"facts: 1\n\nabcdefghijklmnopqrstuvwxyzabcdef: d\n", ":3: expected 'key: value'"},
        {"facts: 1\n\n  abc\n", ":3: this line goes on"},
        {"facts: 1\n\nchip:\n", ":3: 'chip' has no value"},
        {HEAD "chip: A; soc_model: 1; htp: 60; htp: 61\n", ":9: 'htp' stands twice"},
        {HEAD "chip: A; soc_model: 1; htp: 60; colour: red\n", ":9: 'chip' has no key 'colour'"},
        {HEAD "chop: A; soc_model: 1\n", ":9: there is no kind 'chop'"},
        {HEAD "chip: A; soc_model: 1\n", "has no 'htp'"},
        {HEAD "chip: A; soc_model: x; htp: 60\n", "soc_model: expected a number"},
        {HEAD "chip: A; soc_model: 70000; htp: 60\n", "soc_model: expected a number"},
        {HEAD "chip: A; soc_model: 1; htp: 256\n", "htp: expected a number"},
        {HEAD "chip: A; soc_model: 1; htp: -1\n", "htp: expected a number"},
        {HEAD "chip: A; soc_model: 1; htp: 60; seen: dream\n", "seen: expected bench, source"},
        {HEAD "chip: A; soc_model: 1; htp: 60; date: 2026\n", "date: expected a date"},
        {HEAD "chip: A; soc_model: 1; htp: 60; date: 2026-13\n", "date: expected a date"},
        {HEAD "chip: A; soc_model: 1; htp: 60; date: 2026-11-32\n", "date: expected a date"},
        {HEAD "chip: A; soc_model: 1; htp: 60; since: 1.30\n", "since: expected a product"},
        {HEAD "chip: A; soc_model: 1; htp: 60; since: acme 1\n", "there is no product 'acme'"},
        {HEAD "chip: A; soc_model: 1; htp: 60\nchip: A; soc_model: 2; htp: 60\n",
         ":10: 'chip: A' is in"},
        {"facts: 1\n\nchip: A; soc_model: 1; htp: 60\n", "has no 'who'"},
        {"facts: 1\n\nchip: A; soc_model: 1; htp: 60; who: W; seen: bench; from: F\n",
         "has no 'date'"},
        {HEAD PROFILE "traits: any_case, flying\n", "traits: expected a trait, found 'flying'"},
        {HEAD PROFILE "traits: any_ep\n", "with the trait any_ep, found 2"},
        {HEAD PROFILE "required: colour\n", "required: expected an attribute"},
        {HEAD PROFILE "binary: a/b\n", "binary: expected the name of a file"},
        {HEAD PROFILE "compat_rule: npu\n", "compat_rule: expected a built-in profile with a"},
        {HEAD PROFILE "sidecars: a, b, c, d, e\n", "sidecars: at most four"},
        {HEAD "profile: Acme\nkey: none\n", "profile: the name may have letters"},
        {HEAD "profile: acme\nkey: thing\n", "key: expected none, node_name, partition_name"},
        {HEAD "ep: acme\nprofiles: nobody\n", "profiles: there is no profile 'nobody'"},
        {HEAD "profile: acme\nkey: none\nbinaries_of: nobody\n", "there is no profile 'nobody'"},
        {HEAD "attribute: colour\nprofiles: qnn\n", "expected 'EP ATTRIBUTE'"},
        {HEAD "attribute: a b\nwhy: c\n", "has no 'profiles'"},
        {HEAD "attribute: a b\nprofiles: qnn\nwhen: c\n", "when: expected the name of an attr"},
        {HEAD "code: qnn\nmeaning: m\n", "expected 'EP NUMBER'"},
        {HEAD "code: qnn 65536\nmeaning: m\n", "expected 'EP NUMBER'"},
        {HEAD "range: qnn 5\nabout: m\n", "expected 'EP FIRST-LAST'"},
        {HEAD "opset: ai.onnx;\n", "expected 'DOMAIN VERSION'"},
        {HEAD "opset: ai.onnx 0;\n", "expected 'DOMAIN VERSION'"},
        {HEAD "opset: ai.onnx 100000;\n", "expected 'DOMAIN VERSION'"},
        {HEAD "ir: 1000;\n", "ir: expected a number"},
        {HEAD "ir: x;\n", "ir: expected a number"},
        {HEAD "genai: key; holds: text\n", "expected 'OBJECT.KEY'"},
        {HEAD "genai: a.b; holds: {c\n", "holds: expected text"},
        {HEAD "datatype: T; number: 0x10; onnx: float31\n", "onnx: expected an element type"},
        {HEAD "message: a\ncause: c\n", "has no 'cure'"},
        {HEAD "option: a; id: A; type: switch; text: t\n", "'option: a' has no 'phase'"},
        {HEAD "option: a; phase: load; type: switch\n", "'option: a' has no 'text'"},
        {HEAD "message: a\ncause: \x1b[31mc\ncure: d\n", ":10: has a character that is no text"},
        {"facts: 1\n\nchip: A; soc_model: 1; htp: 60; who: W; from: F; date: 2026-11\n",
         "has no 'seen'"},
        {"facts: 1\n\nchip: A; soc_model: 1; htp: 60; who: W; seen: bench; date: 2026-11\n",
         "has no 'from'"},
        {HEAD "chip: A; soc_model: 1; htp: 60\n\ndefault: all\nwho: W\nwho: X\n",
         ":13: 'who' stands twice"},
        {HEAD "default: all\nchip: A; soc_model: 1; htp: 60\n", ":9: 'default' has no key 'chip'"},
        {HEAD "message: a\ncause: \xff\ncure: d\n", ":10: has a character that is no text"},
    };
    const epctx_profile *before = epctx_profiles(NULL);
    epctx_error error;
    size_t i;
    for (i = 0; i < COUNT(cases); i++) {
        const epctx_status status = load_text(cases[i].text, strlen(cases[i].text), &error);
        CHECK(status == EPCTX_ERR_ARG && strstr(error.message, cases[i].says) != NULL,
              "case %zu: expected '%s', found '%s'", i, cases[i].says, error.message);
        CHECK(strncmp(error.message, root, strlen(root)) == 0, "the file is not named: %s",
              error.message);
        CHECK(epctx_profiles(NULL) == before && facts_find("chip", "A") == NULL,
              "case %zu: something of it is used", i);
    }
}

/* Files of many bytes, facts, pairs and loads, and what is no file. */
TEST(limits) {
    char *text = (char *)malloc(FACTS_MOST_BYTES + 2);
    epctx_error error;
    size_t size, i;
    CHECK(text != NULL, "no memory");
    memset(text, 'x', FACTS_MOST_BYTES + 1);
    CHECK(load_text(text, FACTS_MOST_BYTES + 1, &error) == EPCTX_ERR_ARG &&
              strstr(error.message, "more than 2097152 bytes") != NULL,
          "%s", error.message);
    size = (size_t)sprintf(text, HEAD);
    for (i = 0; i <= FACTS_MOST; i++)
        size += (size_t)sprintf(text + size, "chip: C%zu; soc_model: 1; htp: 60\n", i);
    CHECK(load_text(text, size, &error) == EPCTX_ERR_ARG &&
              strstr(error.message, ":5009: there are more than 5000 facts") != NULL,
          "%s", error.message);
    size = (size_t)sprintf(text, "facts: 1\n\nchip: A\n");
    for (i = 0; i < FACTS_MOST_PAIRS; i++)
        size +=
            (size_t)sprintf(text + size, "k%c%c: v\n", (int)('a' + i / 26), (int)('a' + i % 26));
    CHECK(load_text(text, size, &error) == EPCTX_ERR_ARG &&
              strstr(error.message, "a block has at most 32 lines") != NULL,
          "%s", error.message);
    size = (size_t)sprintf(text, HEAD "message: m\ncure: c\ncause: ");
    memset(text + size, 'x', FACTS_MOST_VALUE + 1);
    CHECK(load_text(text, size + FACTS_MOST_VALUE + 1, &error) == EPCTX_ERR_ARG &&
              strstr(error.message, "'cause' has more than 4000 bytes") != NULL,
          "%s", error.message);
    size = (size_t)sprintf(text, HEAD);
    for (i = 0; i < FACTS_MOST_PROFILES; i++)
        size += (size_t)sprintf(text + size, "profile: p%zu; key: none\n", i);
    CHECK(load_text(text, size, &error) == EPCTX_ERR_ARG &&
              strstr(error.message, "there are more than 64 profiles") != NULL,
          "%s", error.message);
    free(text);
    CHECK(facts_load(at("missing"), &error) == EPCTX_ERR_ARG &&
              strstr(error.message, "does not exist") != NULL,
          "%s", error.message);
    for (i = 0; i < FACTS_MOST_LOADS; i++) CHECK_INT(load_text("facts: 1\n", 9, &error), EPCTX_OK);
    CHECK_INT(load_text("facts: 1\n", 9, &error), EPCTX_ERR_LIMIT);
    facts_unload();
}

TEST(folders) {
    static const char one[] = HEAD "chip: A; soc_model: 1; htp: 60\n";
    static const char two[] = HEAD "chip: B; soc_model: 2; htp: 60\n";
    epctx_error error;
    CHECK_INT(mkdir(at("folder"), 0777), 0);
    CHECK(facts_load(at("folder"), &error) == EPCTX_ERR_ARG &&
              strstr(error.message, "has no file *.facts") != NULL,
          "%s", error.message);
    make_file(at("folder/2.facts"), two, sizeof two - 1);
    make_file(at("folder/1.facts"), one, sizeof one - 1);
    make_file(at("folder/README.md"), "x", 1);
    CHECK_INT(facts_load(at("folder"), &error), EPCTX_OK);
    CHECK(facts_find("chip", "A") != NULL && facts_find("chip", "B") != NULL, "both are there");
    facts_unload();
    make_file(at("folder/3.facts"), two, sizeof two - 1);
    CHECK(facts_load(at("folder"), &error) == EPCTX_ERR_ARG &&
              strstr(error.message, "folder/3.facts:9: 'chip: B' is in ") != NULL,
          "%s", error.message);
}

typedef struct told {
    size_t count;
    char first[200];
} told;

static void note(void *user, const char *file, uint32_t line, const char *problem) {
    told *t = (told *)user;
    if (t->count++ == 0)
        snprintf(t->first, sizeof t->first, "%s:%u: %s", strrchr(file, '/') + 1, (unsigned)line,
                 problem);
}

/* All problems are told, each once; nothing is used. */
TEST(judge) {
    static const char text[] =
        HEAD "chip: A; soc_model: x; htp: y\n\nmessage: m\n\nchip: B\nhtp: 1\n";
    told t = {0, ""};
    size_t count;
    make_file(at("bad.facts"), text, sizeof text - 1);
    CHECK_INT(facts_judge(at("bad.facts"), note, &t, &count), 5);
    CHECK(t.count == 5 && count == 3, "found %zu problems of %zu facts", t.count, count);
    CHECK_STR(t.first,
              "bad.facts:9: soc_model: expected a number that is not too large, found 'x'");
    CHECK(facts_find("chip", "A") == NULL, "it is used");
}

/* -- failures -- */

static const char *const faulty_paths[] = {"/d/1.facts", "/d"};

/* What the facts of the disk say, in a row. */
static void tell(char text[200]) {
    static const char *const chips[] = {"A", "B"};
    size_t i, used = 0;
    for (i = 0; i < 2; i++) {
        const fact *f = facts_find("chip", chips[i]);
        used += (size_t)snprintf(text + used, 200 - used, "%s %u ", f != NULL ? f->name : "none",
                                 f != NULL ? (unsigned)fact_number(f, "htp") : 0);
    }
    snprintf(text + used, 200 - used, "%s",
             epctx_profile_find(epctx_str_of("acme")) != NULL ? "acme" : "none");
}

/* Loads with these failures. A failure changes nothing; a success is whole, unless the bytes
 * themselves are others. `reached`: a failure was there. */
static void try_load(disk *d, const char *path, counting *c, const char *expected, bool *reached) {
    const epctx_io io = disk_io(d);
    const epctx_allocator allocator = counting_allocator(c);
    const epctx_profile *before = epctx_profiles(NULL);
    char text[200];
    epctx_error error;
    epctx_status status;
    d->calls = 0;
    *reached = false;
    status = facts_load_from(&io, &allocator, path, &error);
    *reached =
        (c->fail_at > 0 && c->calls >= c->fail_at) || (d->fail_at > 0 && d->calls >= d->fail_at);
    tell(text);
    if (status == EPCTX_OK) {
        /* A list of files that ends early is another folder. */
        CHECK(d->fault == DISK_CHANGED || strcmp(text, expected) == 0 ||
                  (d->fault == DISK_SHORT && d->fail_at == 2 && strcmp(path, "/d") == 0),
              "failure %d of call %d, allocation %zu: expected %s, found %s", (int)d->fault,
              d->fail_at, c->fail_at, expected, text);
    } else {
        CHECK(strncmp(error.message, "/d", 2) == 0, "no file in '%s'", error.message);
        CHECK(epctx_profiles(NULL) == before && strcmp(text, "none 0 none 0 none") == 0,
              "something of it is used: %s", text);
        CHECK(status != EPCTX_ERR_NOMEM || c->fail_at > 0, "no memory?");
        CHECK(c->fail_at == 0 || status == EPCTX_ERR_NOMEM, "expected no memory, found %s",
              error.message);
    }
    facts_unload();
    CHECK(c->alive == 0 && d->maps == 0, "%zu blocks, %d mappings stay", c->alive, d->maps);
}

/* Each allocation fails, alone or with all later ones; each call of the io fails, gives too few
 * bytes, other bytes. */
TEST(failures) {
    static const char one[] = HEAD "chip: A; soc_model: 1; htp: 60\n\n" PROFILE;
    static const char two[] = HEAD "chip: B; soc_model: 2; htp: 61\n";
    static const char *const expected[] = {"A 60 none 0 acme", "A 60 B 61 acme"};
    bool reached;
    size_t i, once;
    disk d;
    memset(&d, 0, sizeof d);
    disk_put(&d, "/d/1.facts", one, sizeof one - 1);
    disk_put(&d, "/d/2.facts", two, sizeof two - 1);
    for (i = 0; i < 2; i++) {
        counting c = {0, 0, 0, false};
        try_load(&d, faulty_paths[i], &c, expected[i], &reached);
        CHECK(!reached, "a failure without any");
        for (once = 0; once < 2; once++) {
            size_t n = 0;
            do {
                const counting fresh = {0, ++n, 0, once != 0};
                c = fresh;
                try_load(&d, faulty_paths[i], &c, expected[i], &reached);
            } while (reached && n < 1000);
            CHECK(n > 2 && n < 1000, "%zu allocations", n);
        }
        for (d.fault = DISK_FAILS; d.fault <= DISK_CHANGED; d.fault++)
            for (d.place = 0; d.place < 400; d.place += d.fault == DISK_CHANGED ? 3 : 400) {
                const counting fresh = {0, 0, 0, false};
                d.fail_at = 0;
                do {
                    d.fail_at++;
                    c = fresh;
                    try_load(&d, faulty_paths[i], &c, expected[i], &reached);
                } while (reached && d.fail_at < 100);
                CHECK(d.fail_at > 2 && d.fail_at < 100, "%d calls", d.fail_at);
            }
        d.fault = DISK_FAILS;
        d.fail_at = 0;
    }
    disk_free(&d);
}

int main(int argc, char **argv) {
    if (!test_temp(root)) return 1;
    RUN(compare_versions);
    RUN(hold);
    RUN(check_versions);
    RUN(look_up);
    RUN(profiles_of_header);
    RUN(options_of_header);
    RUN(extend_and_replace);
    RUN(replace_kinds);
    RUN(refused);
    RUN(limits);
    RUN(folders);
    RUN(judge);
    RUN(failures);
    return test_end();
}
