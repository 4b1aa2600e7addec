/* epctx explain: from the text of an ORT error to its cause and its cure. */
#include "explain.h"
#include "core/rules.h"
#include "core/session_keys.h"
#include "core/vendors.h"
#include "core/options.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* A fact "message" fits when every part of its name, with " ... " between them, occurs in one line
 * of the text, in any case of letters; of a part with bars one of what is between them. So does a
 * text that is nothing but the first part. One that is "general" is told only of lines that no
 * other fits, nor a general one before it: those say more. */

static char upper(char c) {
    return (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
}

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool has_part(epctx_str text, epctx_str part) {
    size_t at, i;
    for (at = 0; at + part.size <= text.size; at++) {
        for (i = 0; i < part.size && lower(text.data[at + i]) == lower(part.data[i]);) i++;
        if (i == part.size) return true;
    }
    return false;
}

/* Takes the first part off a name. */
static bool next_fragment(epctx_str *rest, epctx_str *fragment) {
    static const char between[] = " ... ";
    const size_t size = sizeof between - 1;
    size_t at = 0;
    if (rest->size == 0) return false;
    while (at + size <= rest->size && memcmp(rest->data + at, between, size) != 0) at++;
    fragment->data = rest->data;
    fragment->size = at + size <= rest->size ? at : rest->size;
    at = fragment->size < rest->size ? at + size : rest->size;
    rest->data += at;
    rest->size -= at;
    return true;
}

/* What the text has of a part; empty: nothing. */
static epctx_str found_part(epctx_str text, epctx_str fragment) {
    while (fragment.size > 0) {
        epctx_str part = epctx_str_cut(&fragment, '|');
        while (part.size > 0 && *part.data == ' ') {
            part.data++;
            part.size--;
        }
        while (part.size > 0 && part.data[part.size - 1] == ' ') part.size--;
        if (part.size > 0 && has_part(text, part)) return part;
    }
    return epctx_str_of("");
}

static bool has(const char *text, const char *fragment) {
    return found_part(epctx_str_of(text), epctx_str_of(fragment)).size > 0;
}

static bool fits(const fact *message, epctx_str line, size_t text_size) {
    epctx_str name = epctx_str_of(message->name), fragment;
    bool all = next_fragment(&name, &fragment);
    const epctx_str part = found_part(line, fragment);
    if (part.size > 0 && part.size == text_size) return true;
    all = all && part.size > 0;
    while (all && next_fragment(&name, &fragment)) all = found_part(line, fragment).size > 0;
    return all;
}

static bool is_general(const fact *message) {
    return fact_get(message, "general") != NULL;
}

/* Whether a message fits that says more than this general one: any other, or a general one before
 * it. */
static bool is_known(const fact *general, epctx_str line, size_t text_size) {
    const fact *message;
    size_t at = 0;
    bool before = true;
    while ((message = facts_next("message", &at)) != NULL) {
        before = before && message != general;
        if ((before || !is_general(message)) && fits(message, line, text_size)) return true;
    }
    return false;
}

/* The line of the text that the message fits; empty: none. */
static epctx_str fitting_line(const fact *message, const char *text) {
    const size_t size = strlen(text);
    epctx_str rest = epctx_str_of(text);
    while (rest.size > 0) {
        const epctx_str line = epctx_str_cut(&rest, '\n');
        if (!fits(message, line, size)) continue;
        if (!is_general(message) || !is_known(message, line, size)) return line;
    }
    return epctx_str_of("");
}

const fact *explain_message(const char *text) {
    size_t at = 0;
    const fact *message;
    while ((message = facts_next("message", &at)) != NULL &&
           (is_general(message) || fitting_line(message, text).size == 0))
        continue;
    return message;
}

static void put_entry(const fact *message, epctx_str line, bool first) {
    epctx_str name = epctx_str_of(message->name), fragment;
    const char *before = "";
    if (!first) putchar('\n');
    for (; next_fragment(&name, &fragment); before = " ... ") {
        const epctx_str part = found_part(line, fragment);
        if (part.size == 0) break;
        printf("%s\"%.*s\"", before, (int)part.size, part.data);
    }
    printf("\n  cause: %s\n  cure:  %s\n", fact_get(message, "cause"), fact_get(message, "cure"));
}

static void json_cure(json_writer *w, const char *cause, const char *cure) {
    json_text(w, "cause", cause);
    json_text(w, "cure", cure != NULL ? cure : "");
    json_end(w);
}

static void json_entry(json_writer *w, const fact *message, epctx_str line) {
    epctx_str name = epctx_str_of(message->name), fragment;
    json_object(w, NULL, JSON_INLINE);
    json_array(w, "text", JSON_INLINE);
    while (next_fragment(&name, &fragment)) {
        const epctx_str part = found_part(line, fragment);
        if (part.size == 0) break;
        json_str(w, NULL, part);
    }
    json_end(w);
    json_cure(w, fact_get(message, "cause"), fact_get(message, "cure"));
}

/* One explanation; `cure` may be NULL. Without --json `w` is NULL. */
static void put_found(epctx_str text, const char *cause, const char *cure, json_writer *w,
                      bool first) {
    if (w != NULL) {
        json_object(w, NULL, JSON_INLINE);
        json_array(w, "text", JSON_INLINE);
        json_str(w, NULL, text);
        json_end(w);
        json_cure(w, cause, cure);
        return;
    }
    printf("%s\"%.*s\"\n  cause: %s\n", first ? "" : "\n", (int)text.size, text.data, cause);
    if (cure != NULL) printf("  cure:  %s\n", cure);
}

/* -- EPs -- */

/* The source of the profile that the text is about: all of the text, or a name in quotes in a
 * message about EPContext, the one behind "generated by" where that is said: nodes have names of
 * EPs, too. NULL: another one. */
static const char *named_source(const epctx_profile *profile, const char *text) {
    static const char by[] = "generated by ";
    const char *begin = strstr(text, by);
    char quoted[2 * 64 + 8];
    size_t i;
    if (begin != NULL) begin += sizeof by - 1;
    for (i = 0; i < 4 && profile->sources[i] != NULL; i++) {
        const char *source = profile->sources[i];
        snprintf(quoted, sizeof quoted, "'%.60s'|'%.60s_", source, source);
        if (strcasecmp(text, source) == 0) return source;
        if (begin == NULL && has(text, "EPContext") && has(text, quoted)) return source;
        snprintf(quoted, sizeof quoted, "'%.60s'", source);
        if (begin != NULL && strncasecmp(begin, quoted, strlen(quoted)) == 0) return source;
    }
    return strcasecmp(text, profile->name) == 0 ? profile->sources[0] : NULL;
}

/* What the EP needs of which the text speaks, and where it is to be had. */
static size_t put_ep(const char *text, json_writer *w, bool first) {
    size_t count, i;
    const epctx_profile *all = epctx_profiles(&count);
    for (i = 0; i < count; i++) {
        const vendor_ep ep = vendor_ep_of(all[i].name);
        const char *source = ep.registers != NULL && strcasecmp(text, ep.registers) == 0
                                 ? ep.registers
                                 : named_source(&all[i], text);
        const char *library = ep.library != NULL ? ep.library : ep.dll;
        char cause[512], cure[512];
        if (source == NULL || library == NULL || ep.needs == NULL || ep.packages == NULL) continue;
        snprintf(cause, sizeof cause, "This EP is %s; it needs %s.", library, ep.needs);
        snprintf(cure, sizeof cure,
                 "To be had: %s. Register it %s%s; epctx profiles %s tells more.", ep.packages,
                 ep.registers != NULL ? "as " : "under any name",
                 ep.registers != NULL ? ep.registers : "", all[i].name);
        put_found(epctx_str_of(source), cause, cure, w, first);
        return 1;
    }
    return 0;
}

/* An EP of which the text speaks and that has no EPContext. */
static size_t put_plain(const char *text, json_writer *w, bool first) {
    const fact *ep = vendor_plain_of(text), *f;
    size_t at = 0;
    while (ep == NULL && (f = facts_next("plain", &at)) != NULL)
        if (!fact_has(f, "also", epctx_str_of("CPU")) && has(text, f->name)) ep = f;
    if (ep == NULL) return 0;
    put_found(epctx_str_of(ep->name),
              "This EP has no EPContext: it writes no context model, and loads none; ORT ignores "
              "ep.context_enable for it.",
              fact_get(ep, "instead"), w, first);
    return 1;
}

/* -- session options -- */

/* A session option of ORT that does not concern EPContext models, or a misspelled one. */
static size_t put_session_key(const char *text, json_writer *w, bool first) {
    const fact *key = session_key_find(epctx_str_of(text));
    const char *since, *meaning, *value;
    cli_guess guess;
    char cause[400], anew[60] = "", is[240] = "", ort[FACTS_RELEASE];
    facts_release("ort", ort);
    if (key == NULL && strchr(text, '.') != NULL &&
        session_key_judge(epctx_str_of(text), &guess) != SESSION_KEY_FOREIGN &&
        guess.best != NULL) {
        snprintf(cause, sizeof cause, "ONNX Runtime up to %s has no such session option%s", ort,
                 cli_guess_hint(&guess));
        put_found(epctx_str_of(text), cause,
                  "Correct the spelling: ORT ignores keys that it does not know.", w, first);
        return 1;
    }
    if (key == NULL) return 0;
    since = fact_get(key, "since");
    meaning = fact_get(key, "text");
    value = fact_get(key, "default");
    if (since != NULL)
        snprintf(anew, sizeof anew, " since %.20s; older versions ignore it",
                 since + strcspn(since, " ") + (strchr(since, ' ') != NULL));
    if (meaning != NULL)
        snprintf(is, sizeof is, ": %.160s. Default: %.40s", meaning,
                 value != NULL ? value : "none");
    snprintf(cause, sizeof cause, "A session option of ONNX Runtime%s%s.", anew, is);
    put_found(epctx_str_of(text), cause, "Set it in the session's configuration.", w, first);
    return 1;
}

static size_t put_option(const char *text, json_writer *w, bool first) {
    const fact *option = facts_find("option", text);
    const char *value;
    char cause[400], cure[200];
    if (option == NULL || fact_get(option, "phase") == NULL) return put_session_key(text, w, first);
    value = fact_get(option, "default");
    snprintf(cause, sizeof cause, "A session option: %s. Default: %s.", fact_get(option, "text"),
             value != NULL ? value : "none");
    snprintf(cure, sizeof cure,
             "Set it in the session's configuration, not in the EP's options, where it has no "
             "effect; epctx compile --options lists all.");
    put_found(epctx_str_of(text), cause, cure, w, first);
    return 1;
}

/* -- error numbers of EPs -- */

/* An error of a fact "code", or without one of a fact "range". */
static void put_error(const fact *code, const fact *range, uint32_t number, epctx_str number_text,
                      json_writer *w, bool first) {
    const epctx_str ep = vendor_ep_of_error(code != NULL ? code : range);
    char name[32], meaning[200];
    size_t i;
    for (i = 0; i < ep.size && i + 1 < sizeof name; i++) name[i] = upper(ep.data[i]);
    name[i] = '\0';
    if (code != NULL)
        snprintf(meaning, sizeof meaning, "%s error %u: %s", name, (unsigned)number,
                 fact_get(code, "meaning"));
    else
        snprintf(meaning, sizeof meaning, "%s error %u, which is about %s", name, (unsigned)number,
                 fact_get(range, "about"));
    put_found(number_text, meaning, code != NULL ? fact_get(code, "cure") : NULL, w, first);
}

/* A number as logs have it, in decimal or as 0x..., with the code in the lower 16 bits. */
typedef struct error_number {
    uint32_t number;
    const fact *code, *range;
    bool named; /* the text names the EP of the code */
} error_number;

static error_number read_number(uint64_t value, epctx_str ep) {
    error_number out;
    out.number = (uint32_t)(value & 0xffff);
    out.code = vendor_error_of("code", out.number, ep);
    out.range = vendor_error_of("range", out.number, ep);
    out.named = out.code != NULL && epctx_str_eq(vendor_ep_of_error(out.code), ep);
    if (value >> 28 == 0xc) out.code = out.range = NULL; /* 0xC0000409: an error of Windows */
    return out;
}

static bool is_word(const char *word, size_t size, const char *expected) {
    return size == strlen(expected) && strncasecmp(word, expected, size) == 0;
}

/* Does the number stand behind such a word, as in "Error code: 5005" or "err=0x138d"? */
static bool is_code(const char *text, const char *number) {
    const char *end = number, *word;
    size_t size;
    while (end > text && strchr(" :=(", end[-1]) != NULL) end--;
    for (word = end; word > text && lower(word[-1]) >= 'a' && lower(word[-1]) <= 'z';) word--;
    size = (size_t)(end - word);
    return is_word(word, size, "code") || is_word(word, size, "error") ||
           is_word(word, size, "err");
}

/* A text that is a number, or numbers behind words such as "error" or an EP's name: those of the
 * table.
 * Returns how many there were. */
static size_t put_numbers(const char *text, json_writer *w, bool first) {
    const size_t most = 8;
    const epctx_str ep = vendor_named_ep(text);
    uint32_t seen[8];
    size_t count = 0, i;
    const char *at = text;
    while (*at != '\0' && count < most) {
        char *end;
        uint64_t value;
        error_number read;
        epctx_str digits;
        bool alone, known;
        if (*at < '0' || *at > '9' || (at > text && (lower(at[-1]) >= 'a' || at[-1] == '.'))) {
            at++;
            continue;
        }
        value = strtoull(at, &end, at[0] == '0' && lower(at[1]) == 'x' ? 16 : 10);
        alone = at == text && *end == '\0';
        read = read_number(value, ep);
        known = read.code != NULL && value >= 1000;
        for (i = 0; i < count; i++) known = known && seen[i] != (uint32_t)value;
        known = known && (is_code(text, at) || (read.named && has(text, "err")));
        digits.data = at;
        digits.size = (size_t)(end - at);
        at = end;
        if ((!alone && !known) || (read.code == NULL && read.range == NULL)) continue;
        put_error(read.code, read.range, read.number, digits, w, first && count == 0);
        seen[count++] = (uint32_t)value;
    }
    return count;
}

/* Errors by their names in the headers of vendors. */
static size_t put_names(const char *text, json_writer *w, bool first) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    size_t count = 0;
    for (; *(text += strcspn(text, letters)) != '\0' && count < 8;) {
        const epctx_str name = {text, strspn(text, letters)};
        const fact *code = vendor_code_named(name);
        text += name.size;
        if (code == NULL) continue;
        put_error(code, NULL, vendor_code_number(code), name, w, first && count == 0);
        count++;
    }
    return count;
}

/* The writer of --json, or NULL. */
static json_writer *begin(bool json) {
    json_writer *w = json ? cli_json_begin(stdout) : NULL;
    if (json) json_array(w, "entries", JSON_LINES);
    return w;
}

static void end(json_writer *w) {
    if (w == NULL) return;
    json_end(w);
    cli_json_end();
}

static int explain(const char *text, bool json) {
    json_writer *w = begin(json);
    size_t at = 0, found = 0;
    const fact *message;
    while ((message = facts_next("message", &at)) != NULL) {
        const epctx_str line = fitting_line(message, text);
        if (line.size == 0) continue;
        if (json)
            json_entry(w, message, line);
        else
            put_entry(message, line, found == 0);
        found++;
    }
    found += put_ep(text, w, found == 0);
    found += put_plain(text, w, found == 0);
    found += put_option(text, w, found == 0);
    found += put_numbers(text, w, found == 0);
    found += put_names(text, w, found == 0);
    if (found == 0 && access(text, R_OK) == 0)
        cli_fail_text("nothing is known about this text; if it is a log: epctx explain - < %s",
                      text);
    else if (found == 0)
        cli_fail_text("nothing is known about this text; try epctx lint MODEL");
    end(w);
    return found > 0 ? CLI_OK : CLI_FAILED;
}

/* TEXT may be a rule of lint, by id or name; false: it is none. */
static bool explain_rule(const char *text, bool json) {
    char id[8];
    size_t i;
    int rule = rule_find(epctx_str_of(text));
    epctx_rule_info info;
    char holds[RULE_VERSIONS], cause[400];
    json_writer *w;
    if (rule == RULE_COUNT && strlen(text) < sizeof id) { /* "e012" */
        for (i = 0; i <= strlen(text); i++) id[i] = upper(text[i]);
        rule = rule_find(epctx_str_of(id));
    }
    if (rule == RULE_COUNT) return false;
    info = rule_info(rule);
    rule_versions(&info, holds);
    snprintf(cause, sizeof cause, "%s%s", info.text, holds);
    w = begin(json);
    if (json) {
        json_object(w, NULL, JSON_INLINE);
        json_array(w, "text", JSON_INLINE);
        json_text(w, NULL, info.id);
        json_text(w, NULL, info.name);
        json_end(w);
        json_cure(w, cause, info.fix);
    } else {
        printf("%s %s\n  cause: %s\n  cure:  %s\n", info.id, info.name, cause, info.fix);
    }
    end(w);
    return true;
}

/* All of standard input, terminated; NULL when memory runs out. A log of 1 MiB is enough. */
static char *read_input(void) {
    const size_t room = (size_t)1 << 20;
    char *text = (char *)malloc(room + 1);
    size_t size = text != NULL ? fread(text, 1, room, stdin) : 0;
    size_t i;
    for (i = 0; i < size; i++)
        if (text[i] == '\0') text[i] = ' ';
    if (text != NULL) text[size] = '\0';
    return text;
}

static int run(const cli_args *args) {
    const char *text = args->operands[0];
    char *input;
    int code;
    if (explain_rule(text, args->json)) return CLI_OK;
    if (strcmp(text, "-") != 0) return explain(text, args->json);
    input = read_input();
    if (input == NULL) return cli_fail_text("out of memory");
    code = explain(input, args->json);
    free(input);
    return code;
}

const cli_command cli_explain = {
    .name = "explain",
    .group = CLI_LOOK,
    .operands = "TEXT",
    .least = 1,
    .most = 1,
    .dash = true,
    .summary = "explain an ONNX Runtime error message or a lint rule",
    .about = "Prints the cause and the fix. TEXT is an error message, '-' to read a log from\n"
             "standard input, a rule of `epctx lint` such as E012, an error of QNN such as\n"
             "5005, 0x138d or QNN_DEVICE_ERROR_INVALID_CONFIG, or the name of an EP. The exit\n"
             "code is 1 if no explanation is found.\n",
    .more = "Example: epctx explain - < session.log\n",
    .run = run,
};
