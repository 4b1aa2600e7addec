/* Facts about vendors, looked up. */
#include "vendors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

vendor_ep vendor_ep_of(const char *profile) {
    vendor_ep ep;
    ep.registers = facts_of_ep(profile, "registers");
    ep.library = facts_of_ep(profile, "library");
    ep.dll = facts_of_ep(profile, "dll");
    ep.packages = facts_of_ep(profile, "packages");
    ep.needs = facts_of_ep(profile, "needs");
    ep.offline = facts_of_ep(profile, "offline");
    ep.mind = facts_of_ep(profile, "mind");
    ep.load = facts_of_ep(profile, "load");
    return ep;
}

/* Where an EP is registered under any name, its own is the one that says what it is. */
const char *vendor_registration(epctx_str library) {
    const epctx_str file = epctx_path_file(library);
    size_t count, i;
    const epctx_profile *all = epctx_profiles(&count);
    for (i = 0; i < count; i++) {
        const vendor_ep ep = vendor_ep_of(all[i].name);
        if (ep.library != NULL && epctx_str_starts(file, ep.library))
            return ep.registers != NULL ? ep.registers : all[i].sources[0];
    }
    return NULL;
}

/* Its name, or one of the others? */
static bool is_called(const fact *f, const char *text) {
    const epctx_str name = epctx_str_of(text);
    epctx_str rest = epctx_str_of(fact_get(f, "also")), one;
    if (strcasecmp(f->name, text) == 0) return true;
    while (fact_next_word(&rest, &one))
        if (epctx_str_eq_nocase(one, name)) return true;
    return false;
}

const fact *vendor_plain_of(const char *text) {
    size_t at = 0;
    const fact *f;
    while ((f = facts_next("plain", &at)) != NULL && !is_called(f, text))
        ;
    return f;
}

bool vendor_is_harmless(const char *warning) {
    size_t at = 0;
    const fact *f;
    while ((f = facts_next("harmless", &at)) != NULL && strstr(warning, f->name) == NULL)
        ;
    return f != NULL;
}

/* -- error numbers -- */

epctx_str vendor_ep_of_error(const fact *f) {
    epctx_str name = epctx_str_of(f->name);
    return epctx_str_cut(&name, ' ');
}

/* "EP NUMBER" or "EP FIRST-LAST" */
static bool is_about(const fact *f, uint32_t number) {
    char *end;
    const unsigned long first = strtoul(f->name + strcspn(f->name, " "), &end, 10);
    return number >= first && number <= (*end == '-' ? strtoul(end + 1, NULL, 10) : first);
}

/* Whether a text names the EP, in any case. */
static bool is_named_in(epctx_str ep, const char *text) {
    for (; *text != '\0'; text++)
        if (strncasecmp(text, ep.data, ep.size) == 0) return true;
    return false;
}

epctx_str vendor_named_ep(const char *text) {
    epctx_str last = epctx_str_of("");
    const fact *f;
    size_t at = 0;
    while ((f = facts_next("code", &at)) != NULL) {
        const epctx_str ep = vendor_ep_of_error(f);
        if (!epctx_str_eq(ep, last) && is_named_in(ep, text)) return ep;
        last = ep;
    }
    return epctx_str_of("");
}

const fact *vendor_error_of(const char *kind, uint32_t number, epctx_str ep) {
    const fact *f, *first = NULL;
    size_t at = 0;
    while ((f = facts_next(kind, &at)) != NULL) {
        if (!is_about(f, number)) continue;
        if (epctx_str_eq(vendor_ep_of_error(f), ep)) return f;
        if (first == NULL) first = f;
    }
    return first;
}

const fact *vendor_code_named(epctx_str name) {
    size_t at = 0;
    const fact *f;
    while ((f = facts_next("code", &at)) != NULL && !fact_has(f, "names", name))
        ;
    return f;
}

uint32_t vendor_code_number(const fact *code) {
    const char *number = strchr(code->name, ' ');
    return number != NULL ? (uint32_t)strtoul(number, NULL, 10) : 0;
}

/* -- chips -- */

static void read_chip(const fact *f, vendor_chip *out) {
    epctx_text name = epctx_text_of(out->name, sizeof out->name);
    epctx_str rest = epctx_str_of(fact_get(f, "also")), one;
    out->soc_model = (uint16_t)fact_number(f, "soc_model");
    out->arch = (uint8_t)fact_number(f, "htp");
    out->vtcm = (uint8_t)fact_number(f, "vtcm");
    epctx_text_put_format(&name, "%s", f->name);
    while (fact_next_word(&rest, &one)) epctx_text_put_format(&name, "/%S", &one);
}

bool vendor_next_chip(size_t *at, vendor_chip *out) {
    const fact *f = facts_next("chip", at);
    if (f != NULL) read_chip(f, out);
    return f != NULL;
}

static const fact *chip_of_number(const char *text) {
    const epctx_str number = epctx_str_of(text);
    const fact *f;
    size_t at = 0;
    while ((f = facts_next("chip", &at)) != NULL && !fact_has(f, "soc_id", number))
        ;
    if (f != NULL) return f;
    at = 0;
    while ((f = facts_next("chip", &at)) != NULL &&
           fact_number(f, "soc_model") != strtoul(text, NULL, 10))
        ;
    return f;
}

/* The name of a chip behind a brand. */
static const char *without_brand(const char *text) {
    const fact *f;
    size_t at = 0;
    while ((f = facts_next("brand", &at)) != NULL) {
        const size_t size = strlen(f->name);
        if (strncasecmp(text, f->name, size) == 0 && text[size] == ' ') return text + size + 1;
    }
    return text;
}

bool vendor_chip_of(const char *text, vendor_chip *out) {
    const fact *f = NULL;
    size_t at = 0;
    if (*text >= '0' && *text <= '9' && text[strspn(text, "0123456789")] == '\0') {
        f = chip_of_number(text);
    } else {
        text = without_brand(text);
        while ((f = facts_next("chip", &at)) != NULL && !is_called(f, text))
            ;
    }
    if (f != NULL) read_chip(f, out);
    return f != NULL;
}
