/* Chips compared: by QNN's own rule where its string or an HTP architecture is known, else by the
 * text of hardware_architecture. */
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

/* -- QNN -- */

static epctx_compat no_chip(const chip *here, epctx_error *why) {
    return say(why, EPCTX_COMPAT_NOT_APPLICABLE,
               "'%.60s' is no known chip of Qualcomm (epctx profiles --chips lists them)",
               here->text);
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
    if ((profile->traits & EPCTX_QNN_COMPAT) == 0)
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

static epctx_compat fits_qnn(const chip *here, const epctx_profile *profile, const char *text,
                             epctx_error *why) {
    chip made;
    char string[64];
    if (!here->is_qualcomm) return no_chip(here, why);
    if (!made_for(text, &made, why)) return EPCTX_COMPAT_NOT_APPLICABLE;
    if (made.qualcomm.vtcm != 0)
        snprintf(string, sizeof string, "v2:0:0.0.0:0.0.0:%u:%u:%u:0", made.qualcomm.arch,
                 made.qualcomm.soc_model, made.qualcomm.vtcm);
    else
        snprintf(string, sizeof string, "0:0.0.0:0.0.0:0.0.0:%u:0", made.qualcomm.arch);
    return compare(here, profile, epctx_str_of(string), why);
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

bool chip_is_of(const chip *here, const epctx_profile *profile, epctx_str architecture) {
    const char *form = facts_of_ep(profile->name, "architecture");
    if ((profile->traits & EPCTX_QNN_COMPAT) != 0) return here->is_qualcomm;
    if (form != NULL && strcmp(form, "compute_capability") == 0)
        return !here->is_qualcomm && capability_of(here->text) != 0;
    return epctx_str_is(architecture, here->text);
}

epctx_compat chip_fits_node(const chip *here, const epctx_profile *profile, epctx_str architecture,
                            epctx_error *why) {
    char text[64];
    const char *form;
    if (architecture.size == 0)
        return say(why, EPCTX_COMPAT_NOT_APPLICABLE,
                   "neither a compatibility string nor hardware_architecture is stored");
    if (architecture.size >= sizeof text ||
        memchr(architecture.data, '\0', architecture.size) != NULL)
        return say(why, EPCTX_COMPAT_NOT_APPLICABLE,
                   "hardware_architecture is too long to be compared");
    memcpy(text, architecture.data, architecture.size);
    text[architecture.size] = '\0';
    if ((profile->traits & EPCTX_QNN_COMPAT) != 0) return fits_qnn(here, profile, text, why);
    form = facts_of_ep(profile->name, "architecture");
    if (form != NULL && strcmp(form, "compute_capability") == 0)
        return fits_nvidia(here, text, why);
    if (strcasecmp(text, here->text) == 0)
        return say(why, EPCTX_COMPAT_OPTIMAL, "the same architecture");
    return say(why, EPCTX_COMPAT_UNSUPPORTED, "made for architecture '%s'", text);
}
