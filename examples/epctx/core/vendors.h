/* Facts about vendors as the commands ask for them: EP libraries and packages, error numbers,
 * chips. */
#ifndef EPCTX_CLI_VENDORS_H
#define EPCTX_CLI_VENDORS_H

#include "facts/facts.h"

/* How an EP comes to a machine. Texts may be NULL. */
typedef struct vendor_ep {
    const char *registers; /* the name for RegisterExecutionProviderLibrary; NULL: any */
    const char *library;   /* on Linux */
    const char *dll;       /* on Windows */
    const char *packages;  /* where it is to be had */
    const char *needs;     /* driver, runtime libraries */
    const char *offline;   /* compiling without the device */
    const char *mind;      /* what else to mind: memory, caches */
    const char *load;      /* options that loading needs again when they were given to compile */
} vendor_ep;

/* Of a profile; without any text when nothing is known. */
vendor_ep vendor_ep_of(const char *profile);

/* The name under which applications register a library, known by its file; NULL: not known. */
const char *vendor_registration(epctx_str library);

/* An EP of ONNX Runtime that neither writes nor loads EPContext models, by name or by what it is
 * called, too, in any case of letters: a fact "plain", or NULL. */
const fact *vendor_plain_of(const char *text);

/* Whether a warning of ORT or an EP says nothing about the model: a fact "harmless". */
bool vendor_is_harmless(const char *warning);

/* The EP with facts "code" that a text names, in any case: "qnn"; empty: none. */
epctx_str vendor_named_ep(const char *text);
/* The fact "code" or "range" about an error number, of this EP or else the first; NULL: none. */
const fact *vendor_error_of(const char *kind, uint32_t number, epctx_str ep);
/* Whose error such a fact is about. */
epctx_str vendor_ep_of_error(const fact *f);
/* The fact "code" by a name of the error in the vendor's headers, such as
 * QNN_CONTEXT_ERROR_CREATE_FROM_BINARY, or NULL. */
const fact *vendor_code_named(epctx_str name);
/* The number of such a fact. */
uint32_t vendor_code_number(const fact *code);

/* A chip of Qualcomm. */
typedef struct vendor_chip {
    uint16_t soc_model; /* QNN's number */
    uint8_t arch;       /* of the HTP: 73 is v73 */
    uint8_t vtcm;       /* MiB; 0: not known */
    char name[160];     /* "SM8550/8 Gen 2": all its names; "": not known */
} vendor_chip;

/* The chips one after the other, as facts_next. */
bool vendor_next_chip(size_t *at, vendor_chip *out);
/* By name in any case of letters, by soc_model, or by Linux's soc_id; false: not known. */
bool vendor_chip_of(const char *text, vendor_chip *out);

#endif
