/* Chips compared: by QNN's own rule where its binary, its string or an HTP architecture is known,
 * else by the text of the architecture. */
#include "chip.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static epctx_compat say(epctx_error *why, epctx_compat compat, const char *format, ...) {
    char line[256];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    epctx_error_clear(why);
    epctx_fail(why, EPCTX_ERR_VERSION, "%s", line);
    why->status = EPCTX_OK;
    return compat;
}

/* -- the chip of the user -- */

/* "v73", "HTP v73", "htp_v73": the number, or 0. */
static unsigned architecture_of(const char *text) {
    size_t size = strlen(text);
    if (size < 3 || size > 8 || text[size - 1] < '0' || text[size - 1] > '9' ||
        text[size - 2] < '6' || text[size - 2] > '9' || (text[size - 3] | 32) != 'v')
        return 0;
    if (size > 3 && (strncasecmp(text, "htp", 3) != 0 || size > 7)) return 0;
    return (unsigned)strtoul(text + size - 2, NULL, 10);
}

static bool is_architecture(unsigned number) {
    size_t at = 0;
    const fact *f;
    while ((f = facts_next("chip", &at)) != NULL)
        if (fact_number(f, "htp") == number) return true;
    return false;
}

void chip_read(const char *text, chip *out) {
    memset(out, 0, sizeof *out);
    out->text = text;
    if (!vendor_chip_of(text, &out->qualcomm)) out->qualcomm.arch = (uint8_t)architecture_of(text);
    out->is_qualcomm = out->qualcomm.arch != 0;
}

/* How many characters two names have in common at their beginning, in any case. */
static size_t common(const char *a, const char *b) {
    size_t size = 0;
    while (a[size] != '\0' && (a[size] | 32) == (b[size] | 32)) size++;
    return size;
}

/* The lower, the nearer: by the last digits of names that begin alike. */
static unsigned long distance(const char *a, const char *b) {
    const size_t size = common(a, b);
    const unsigned long x = strtoul(a + size, NULL, 10), y = strtoul(b + size, NULL, 10);
    return (x > y ? x - y : y - x) + (strlen(a) == strlen(b) ? 0 : 1000);
}

void chip_nearest(const char *text, char *out, size_t size) {
    enum { MOST_NEAR = 3, LEAST_COMMON = 2 };
    const char *best[MOST_NEAR] = {NULL, NULL, NULL};
    epctx_text list = epctx_text_of(out, size);
    size_t at = 0, i, k;
    const fact *f;
    while ((f = facts_next("chip", &at)) != NULL) {
        const size_t same = common(text, f->name);
        if (same < LEAST_COMMON) continue;
        for (i = 0; i < MOST_NEAR; i++)
            if (best[i] == NULL || same > common(text, best[i]) ||
                (same == common(text, best[i]) &&
                 distance(text, f->name) < distance(text, best[i])))
                break;
        for (k = MOST_NEAR - 1; i < MOST_NEAR && k > i; k--) best[k] = best[k - 1];
        if (i < MOST_NEAR) best[i] = f->name;
    }
    for (i = 0; i < MOST_NEAR && best[i] != NULL; i++)
        epctx_text_put_format(&list, "%s%s", i > 0 ? ", " : "", best[i]);
}

void chip_describe(const chip *here, char *text, size_t size) {
    const vendor_chip *q = &here->qualcomm;
    if (!here->is_qualcomm)
        snprintf(text, size, "%s", here->text);
    else if (q->name[0] == '\0')
        snprintf(text, size, "HTP v%u, VTCM not known", q->arch);
    else if (q->vtcm == 0)
        snprintf(text, size, "%s: soc_model %u, HTP v%u, VTCM not known", q->name, q->soc_model,
                 q->arch);
    else
        snprintf(text, size, "%s: soc_model %u, HTP v%u, %u MiB of VTCM", q->name, q->soc_model,
                 q->arch, q->vtcm);
}

/* What the EP calls the architecture of a chip: a word of the facts. */
static bool is_form(const epctx_profile *profile, const char *form) {
    return facts_ep_has(profile->name, "architecture", form);
}

/* -- QNN -- */

static epctx_compat no_chip(const chip *here, epctx_error *why) {
    char nearest[96];
    chip_nearest(here->text, nearest, sizeof nearest);
    return say(why, EPCTX_COMPAT_NOT_APPLICABLE,
               "'%.60s' is no known chip of Qualcomm%s%s (epctx profiles --chips lists them)",
               here->text, nearest[0] != '\0' ? "; near are " : "", nearest);
}

/* The string with other fields `at`...: what the EP of this chip would write with the same SDK. */
static bool with_fields(epctx_str string, size_t at, const char *const *fields, size_t count,
                        char *out, size_t size) {
    size_t i, used = 0;
    for (i = 0; string.data != NULL; i++) {
        const epctx_str old = epctx_str_cut(&string, ':');
        const epctx_str field = i >= at && i < at + count && fields[i - at] != NULL
                                    ? epctx_str_of(fields[i - at])
                                    : old;
        if (used + field.size + 2 > size) return false;
        if (i > 0) out[used++] = ':';
        memcpy(out + used, field.data, field.size);
        used += field.size;
    }
    out[used] = '\0';
    return true;
}

static epctx_compat compare(const chip *here, const epctx_profile *profile, epctx_str string,
                            epctx_error *why) {
    const bool second = epctx_str_starts(string, "v2:");
    const bool vtcm = here->qualcomm.vtcm != 0;
    char arch[8], soc[8], mib[8], own[512], model[512];
    epctx_compat compat;
    const char *fields[3], *none[3] = {NULL, NULL, ""};
    snprintf(arch, sizeof arch, "%u", here->qualcomm.arch);
    snprintf(soc, sizeof soc, "%u", here->qualcomm.soc_model);
    snprintf(mib, sizeof mib, "%u", here->qualcomm.vtcm);
    fields[0] = arch;
    fields[1] = soc;
    fields[2] = vtcm ? mib : "";
    /* A VTCM that is not known is left out on both sides. */
    if (!with_fields(string, 4, fields, second ? 3 : 1, own, sizeof own) ||
        !with_fields(string, 4, none, second && !vtcm ? 3 : 0, model, sizeof model))
        return say(why, EPCTX_COMPAT_NOT_APPLICABLE, "the compatibility string is too long");
    compat = epctx_compat_compare(profile, epctx_str_of(model), epctx_str_of(own), why);
    if (compat == EPCTX_COMPAT_OPTIMAL && !vtcm)
        say(why, compat, "same backend and architecture; VTCM is not known");
    return compat;
}

/* QNN writes the options of the compilation into its string, and may have compiled for another
 * chip: soc_model decides over htp_arch. What the EP would say of them is known, not what the
 * binary is. */
static epctx_compat by_options(epctx_compat compat, epctx_error *why) {
    epctx_error reason;
    if (compat == EPCTX_COMPAT_NOT_APPLICABLE) return compat;
    reason = *why;
    if (compat == EPCTX_COMPAT_OPTIMAL)
        return say(why, EPCTX_COMPAT_NOT_APPLICABLE,
                   "%s, but the compatibility string holds the options as given, not the binary",
                   reason.message);
    return say(why, compat,
               "by its string the EP says: %s. The compatibility string holds the options as "
               "given, not the binary",
               reason.message);
}

epctx_compat chip_fits_string(const chip *here, const epctx_profile *profile, epctx_str string,
                              epctx_error *why) {
    if (!is_form(profile, "htp"))
        return say(
            why, EPCTX_COMPAT_NOT_APPLICABLE,
            "the compatibility string of this EP names no chip that is known: use --against");
    if (!here->is_qualcomm) return no_chip(here, why);
    return by_options(compare(here, profile, string, why), why);
}

/* What hardware_architecture says: the chip or architecture that the node was made for. False: it
 * can be both, or neither. */
static bool made_for(const char *text, chip *out, epctx_error *why) {
    const unsigned number = (unsigned)strtoul(text, NULL, 10);
    chip_read(text, out);
    if (*text < '0' || *text > '9' || strlen(text) > 2) {
        if (!out->is_qualcomm)
            say(why, EPCTX_COMPAT_NOT_APPLICABLE, "'%.60s' is no known chip or HTP architecture",
                text);
        return out->is_qualcomm;
    }
    /* A chip with the architecture of its own number: either way that is what it was made for. */
    if (out->is_qualcomm && out->qualcomm.arch == number)
        memset(&out->qualcomm, 0, sizeof out->qualcomm);
    out->is_qualcomm = out->qualcomm.arch != 0;
    if (out->is_qualcomm && is_architecture(number)) {
        say(why, EPCTX_COMPAT_NOT_APPLICABLE,
            "architecture '%s' can be HTP v%u or soc_model %u, which is %s with HTP v%u", text,
            number, number, out->qualcomm.name, out->qualcomm.arch);
        return false;
    }
    if (!out->is_qualcomm && is_architecture(number)) {
        out->qualcomm.arch = (uint8_t)number;
        out->is_qualcomm = true;
    }
    if (!out->is_qualcomm)
        say(why, EPCTX_COMPAT_NOT_APPLICABLE,
            "'%s' is neither an HTP architecture nor a known "
            "soc_model",
            text);
    return out->is_qualcomm;
}

/* What was made for `made`. */
static epctx_compat compare_chips(const chip *here, const epctx_profile *profile,
                                  const vendor_chip *made, epctx_error *why) {
    char string[64];
    if (made->vtcm != 0)
        snprintf(string, sizeof string, "v2:0:0.0.0:0.0.0:%u:%u:%u:0", made->arch, made->soc_model,
                 made->vtcm);
    else
        snprintf(string, sizeof string, "0:0.0.0:0.0.0:0.0.0:%u:0", made->arch);
    return compare(here, profile, epctx_str_of(string), why);
}

static epctx_compat fits_qnn(const chip *here, const epctx_profile *profile, const char *text,
                             epctx_error *why) {
    chip made;
    if (!here->is_qualcomm) return no_chip(here, why);
    if (!made_for(text, &made, why)) return EPCTX_COMPAT_NOT_APPLICABLE;
    return compare_chips(here, profile, &made.qualcomm, why);
}

/* -- QNN's binaries -- */

/* The number of the next architecture in "v73,v79"; 0: there is none. */
static unsigned next_architecture(epctx_str *list) {
    const epctx_str one = epctx_str_cut(list, ',');
    char text[16];
    if (one.size == 0 || one.size >= sizeof text) return 0;
    memcpy(text, one.data, one.size);
    text[one.size] = '\0';
    return architecture_of(text);
}

static size_t count_architectures(const binary_facts *facts) {
    epctx_str list = facts->architecture;
    size_t count = 0;
    while (list.size > 0) count += next_architecture(&list) != 0;
    return count;
}

/* How many chips a binary is for, each by its name or by its architecture alone. */
static size_t count_made(const binary_facts *facts) {
    return facts->chip_count > 0 ? facts->chip_count : count_architectures(facts);
}

/* The chip number `at` of those. What the binary itself says of it is first. */
static void read_made(const binary_facts *facts, size_t at, vendor_chip *out) {
    char text[64];
    epctx_str list = facts->architecture;
    unsigned number = next_architecture(&list);
    memset(out, 0, sizeof *out);
    if (facts->chip_count == 0) {
        while (at-- > 0) number = next_architecture(&list);
        out->arch = (uint8_t)number;
    } else if (facts->chips[at].size < sizeof text) {
        memcpy(text, facts->chips[at].data, facts->chips[at].size);
        text[facts->chips[at].size] = '\0';
        if (!vendor_chip_of(text, out)) snprintf(out->name, sizeof out->name, "%s", text);
    }
    if (count_made(facts) > 1) return; /* the list and the largest VTCM are of all */
    if (number != 0 && count_architectures(facts) == 1) out->arch = (uint8_t)number;
    if (facts->vtcm_size >> 20 > 0 && facts->vtcm_size >> 20 <= UINT8_MAX)
        out->vtcm = (uint8_t)(facts->vtcm_size >> 20);
}

/* "CHIP, HTP v79, 8 MiB of VTCM" */
static void describe_made(const vendor_chip *made, char *out, size_t size) {
    epctx_str names = epctx_str_of(made->name);
    const epctx_str first = epctx_str_cut(&names, '/');
    epctx_text text = epctx_text_of(out, size);
    const char *comma = first.size > 0 ? ", " : "";
    epctx_text_put_format(&text, "%S", &first);
    if (made->arch != 0) {
        epctx_text_put_format(&text, "%sHTP v%u", comma, (uint64_t)made->arch);
        comma = ", ";
    }
    if (made->vtcm != 0)
        epctx_text_put_format(&text, "%s%u MiB of VTCM", comma, (uint64_t)made->vtcm);
}

static epctx_compat fits_one_made(const chip *here, const epctx_profile *profile,
                                  const vendor_chip *made, epctx_error *why) {
    char text[128];
    epctx_compat compat;
    epctx_error reason;
    describe_made(made, text, sizeof text);
    if (made->arch == 0)
        return say(why, EPCTX_COMPAT_NOT_APPLICABLE, "made for %s, whose architecture is not known",
                   text);
    epctx_error_clear(&reason);
    compat = compare_chips(here, profile, made, &reason);
    return say(why, compat, "made for %s: %s", text, reason.message);
}

static bool is_same_chip(const chip *here, const vendor_chip *made) {
    return here->qualcomm.soc_model != 0 && here->qualcomm.soc_model == made->soc_model;
}

/* A context for each of several chips: the one for this chip decides. Which other one the EP would
 * take, if any, is not known. */
static epctx_compat fits_several(const chip *here, const epctx_profile *profile,
                                 const binary_facts *facts, epctx_error *why) {
    bool possible = false;
    size_t i;
    for (i = 0; i < count_made(facts); i++) {
        vendor_chip made;
        epctx_compat compat;
        read_made(facts, i, &made);
        compat = fits_one_made(here, profile, &made, why);
        if (is_same_chip(here, &made) ||
            (here->qualcomm.soc_model == 0 && compat == EPCTX_COMPAT_OPTIMAL))
            return compat;
        possible = possible || compat != EPCTX_COMPAT_UNSUPPORTED;
    }
    return say(why, possible ? EPCTX_COMPAT_NOT_APPLICABLE : EPCTX_COMPAT_UNSUPPORTED,
               "it has contexts for %zu chips, none for this one%s", count_made(facts),
               possible ? "; whether the EP takes another one's is not known" : "");
}

static epctx_compat fits_qnn_binary(const chip *here, const epctx_profile *profile,
                                    const binary_facts *facts, epctx_error *why) {
    vendor_chip made;
    const size_t count = count_made(facts);
    if (!here->is_qualcomm) return no_chip(here, why);
    if (count == 0)
        return say(why, EPCTX_COMPAT_NOT_APPLICABLE, "%s does not tell its chip", facts->told_by);
    if (count > 1) return fits_several(here, profile, facts, why);
    read_made(facts, 0, &made);
    return fits_one_made(here, profile, &made, why);
}

/* -- other EPs -- */

/* "8.9", "89", "sm_89", "80+": compute capabilities of NVIDIA times ten; 0: none. */
static unsigned capability_of(const char *text) {
    char *end;
    unsigned long major, minor = 0;
    if (strncasecmp(text, "sm_", 3) == 0) text += 3;
    if (*text < '0' || *text > '9') return 0;
    major = strtoul(text, &end, 10);
    if (*end == '.') minor = strtoul(end + 1, &end, 10);
    if (*end == '+') end++;
    if (*end != '\0' || major > 999 || minor > 9) return 0;
    return (unsigned)(major < 20 ? 10 * major + minor : major);
}

static epctx_compat fits_nvidia(const chip *here, const char *text, epctx_error *why) {
    const unsigned made = capability_of(text), own = capability_of(here->text);
    if (made == 0 || own == 0)
        return say(why, EPCTX_COMPAT_NOT_APPLICABLE,
                   "give the GPU's compute capability, such as 8.9; the node has '%.60s'", text);
    if (made == own) return say(why, EPCTX_COMPAT_OPTIMAL, "the same compute capability");
    if (text[strlen(text) - 1] == '+' && own > made)
        return say(why, EPCTX_COMPAT_OPTIMAL, "made for compute capability %u.%u and above",
                   made / 10, made % 10);
    return say(why, EPCTX_COMPAT_UNSUPPORTED, "made for compute capability %u.%u", made / 10,
               made % 10);
}

/* Whether two names are of one kind, so that they tell different things: "gfx1100" and "gfx942"
 * are, "MI300X" and "gfx942" are not. */
static bool is_of_form(const char *a, const char *b) {
    static const char digits[] = "0123456789";
    const size_t size = strcspn(a, digits);
    return size > 0 && a[size] != '\0' && size == strcspn(b, digits) && b[size] != '\0' &&
           strncasecmp(a, b, size) == 0;
}

/* Names that nobody here knows: equal ones fit. */
static epctx_compat fits_text(const chip *here, const char *text, epctx_error *why) {
    if (strcasecmp(text, here->text) == 0)
        return say(why, EPCTX_COMPAT_OPTIMAL, "the same architecture");
    if (is_of_form(here->text, text))
        return say(why, EPCTX_COMPAT_UNSUPPORTED, "made for architecture '%s'", text);
    return say(why, EPCTX_COMPAT_NOT_APPLICABLE,
               "made for architecture '%s': what '%.60s' is to it is not known; give the chip's "
               "architecture in this form",
               text, here->text);
}

bool chip_is_of(const chip *here, const epctx_profile *profile, epctx_str architecture) {
    if (is_form(profile, "htp")) return here->is_qualcomm;
    if (is_form(profile, "compute_capability"))
        return !here->is_qualcomm && capability_of(here->text) != 0;
    return epctx_str_is(architecture, here->text);
}

epctx_compat chip_fits_node(const chip *here, const epctx_profile *profile, epctx_str architecture,
                            epctx_error *why) {
    char text[64];
    if (architecture.size == 0)
        return say(why, EPCTX_COMPAT_NOT_APPLICABLE,
                   "neither a compatibility string nor hardware_architecture is stored");
    if (architecture.size >= sizeof text ||
        memchr(architecture.data, '\0', architecture.size) != NULL)
        return say(why, EPCTX_COMPAT_NOT_APPLICABLE,
                   "hardware_architecture is too long to be compared");
    memcpy(text, architecture.data, architecture.size);
    text[architecture.size] = '\0';
    if (is_form(profile, "htp")) return fits_qnn(here, profile, text, why);
    if (is_form(profile, "compute_capability")) return fits_nvidia(here, text, why);
    return fits_text(here, text, why);
}

epctx_compat chip_fits_binary(const chip *here, const epctx_profile *profile,
                              const binary_facts *facts, epctx_error *why) {
    const epctx_str architecture = facts->architecture;
    if (is_form(profile, "htp")) return fits_qnn_binary(here, profile, facts, why);
    return architecture.size > 0
               ? chip_fits_node(here, profile, architecture, why)
               : say(why, EPCTX_COMPAT_NOT_APPLICABLE, "%s does not tell its chip", facts->told_by);
}

void chip_describe_made(const binary_facts *facts, char *out, size_t size) {
    vendor_chip made;
    const size_t count = facts->chip_count;
    epctx_text text = epctx_text_of(out, size);
    if (count > 1)
        epctx_text_put_format(&text, "%u chips, the first is %S", (uint64_t)count,
                              &facts->chips[0]);
    else if (count_made(facts) == 1) {
        read_made(facts, 0, &made);
        describe_made(&made, out, size);
    } else
        epctx_text_put_format(&text, "%S", &facts->architecture);
}

chip_made chip_is_made_for(const chip *here, const binary_facts *facts) {
    bool told = false;
    size_t i;
    for (i = 0; i < count_made(facts); i++) {
        vendor_chip made;
        read_made(facts, i, &made);
        if (made.arch == 0 && made.soc_model == 0) continue;
        told = true;
        if ((made.arch == 0 || made.arch == here->qualcomm.arch) &&
            (made.soc_model == 0 || made.soc_model == here->qualcomm.soc_model))
            return CHIP_MADE_YES;
    }
    return told ? CHIP_MADE_NO : CHIP_MADE_UNTOLD;
}

/* -- options of EPs -- */

/* The fact has "soc_model=soc_model, htp_arch=htp": what the option's value is of the chip. */
size_t chip_options_of(const chip *here, const char *profile, chip_option *out, size_t count) {
    epctx_str rest = epctx_str_of(facts_of_ep(profile, "chip_options")), word;
    size_t used = 0;
    while (used < count && fact_next_word(&rest, &word)) {
        const epctx_str key = epctx_str_cut(&word, '=');
        out[used].key = key;
        snprintf(out[used++].value, CHIP_VALUE, "%u",
                 epctx_str_is(word, "htp") ? (unsigned)here->qualcomm.arch
                                           : (unsigned)here->qualcomm.soc_model);
    }
    return used;
}

/* -- the binary against what is said of it -- */

/* Whether a number that is given is in none of the binary's chips; 0 is not given. */
static bool is_denied(const binary_facts *facts, uint64_t arch, uint64_t soc, uint64_t vtcm) {
    size_t i;
    bool told = false;
    for (i = 0; i < count_made(facts); i++) {
        vendor_chip made;
        read_made(facts, i, &made);
        if (made.arch == 0) return false;
        told = true;
        if ((arch == 0 || arch == made.arch) &&
            (soc == 0 || made.soc_model == 0 || soc == made.soc_model) &&
            (vtcm == 0 || made.vtcm == 0 || vtcm == made.vtcm))
            return false;
    }
    return told;
}

static void tell_denied(const binary_facts *facts, const vendor_chip *said, char *out,
                        size_t size) {
    char names[128], is[128];
    vendor_chip made;
    describe_made(said, names, sizeof names);
    if (count_made(facts) > 1) {
        snprintf(is, sizeof is, "%zu other chips", count_made(facts));
    } else {
        read_made(facts, 0, &made);
        describe_made(&made, is, sizeof is);
    }
    snprintf(out, size, "names %s, the binary is for %s", names, is);
}

/* One of the string's chips: architecture, soc_model and MiB, each 0 where it is not given. */
static vendor_chip chip_said(const uint64_t numbers[3]) {
    vendor_chip said;
    char soc[24];
    memset(&said, 0, sizeof said);
    snprintf(soc, sizeof soc, "%u", (unsigned)(numbers[1] & UINT16_MAX));
    if (numbers[1] != 0 && !vendor_chip_of(soc, &said))
        snprintf(said.name, sizeof said.name, "soc_model %s", soc);
    said.arch = (uint8_t)(numbers[0] <= UINT8_MAX ? numbers[0] : 0);
    said.vtcm = (uint8_t)(numbers[2] <= UINT8_MAX ? numbers[2] : 0);
    return said;
}

/* The string lists chips; that the binary is for one of them is enough. */
bool chip_denies_string(const epctx_profile *profile, const binary_facts *facts, epctx_str string,
                        char *out, size_t size) {
    epctx_str lists[3] = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    const int count = epctx_str_starts(string, "v2:") ? 3 : 1;
    vendor_chip first = {0, 0, 0, ""};
    bool denied = false;
    int i;
    if (!is_form(profile, "htp")) return false;
    for (i = 0; i < 4; i++) (void)epctx_str_cut(&string, ':');
    for (i = 0; i < count; i++) lists[i] = epctx_str_cut(&string, ':');
    while (lists[0].size > 0) {
        uint64_t numbers[3] = {0, 0, 0};
        for (i = 0; i < 3; i++) {
            const epctx_str text = epctx_str_cut(&lists[i], ',');
            if (!epctx_str_number(text, &numbers[i])) numbers[i] = 0;
        }
        if (!is_denied(facts, numbers[0], numbers[1], numbers[2])) return false;
        if (!denied) first = chip_said(numbers);
        denied = true;
    }
    if (denied) tell_denied(facts, &first, out, size);
    return denied;
}

bool chip_denies_node(const epctx_profile *profile, const binary_facts *facts,
                      epctx_str architecture, char *out, size_t size) {
    char text[64];
    epctx_error ignored;
    chip said;
    if (architecture.size == 0 || architecture.size >= sizeof text ||
        memchr(architecture.data, '\0', architecture.size) != NULL)
        return false;
    memcpy(text, architecture.data, architecture.size);
    text[architecture.size] = '\0';
    if (!is_form(profile, "htp")) {
        if (facts->architecture.size == 0 || epctx_str_eq_nocase(facts->architecture, architecture))
            return false;
        snprintf(out, size, "names '%s', the binary is for '%.*s'", text,
                 (int)(facts->architecture.size < 60 ? facts->architecture.size : 60),
                 facts->architecture.data);
        return true;
    }
    if (!made_for(text, &said, &ignored) ||
        !is_denied(facts, said.qualcomm.arch, said.qualcomm.soc_model, 0))
        return false;
    said.qualcomm.vtcm = 0;
    tell_denied(facts, &said.qualcomm, out, size);
    return true;
}
