/* What vendors call their things: EP libraries and packages, error numbers, chips. */
#ifndef EPCTX_CLI_VENDORS_H
#define EPCTX_CLI_VENDORS_H

#include <stddef.h>
#include <stdint.h>

/* How an EP comes to a machine. Texts may be NULL. */
typedef struct vendor_ep {
    const char *profile;   /* of epctx_profiles */
    const char *registers; /* the name for RegisterExecutionProviderLibrary; NULL: any */
    const char *library;   /* on Linux */
    const char *dll;       /* on Windows */
    const char *packages;  /* where it is to be had */
    const char *needs;     /* driver, runtime libraries */
    const char *offline;   /* compiling without the device */
    const char *mind;      /* what else to mind: memory, caches */
} vendor_ep;

/* The entry of a profile, or NULL. */
const vendor_ep *vendor_ep_of(const char *profile);

/* An EP of ONNX Runtime that neither writes nor loads EPContext models. */
typedef struct vendor_plain {
    const char *name;
    const char *alias;   /* "DML/DirectML" */
    const char *instead; /* what helps */
} vendor_plain;

extern const vendor_plain vendor_plains[];
extern const size_t vendor_plain_count;
/* By name or alias in any case of letters; NULL: none of them. */
const vendor_plain *vendor_plain_of(const char *text);

/* An error number of QNN. */
typedef struct vendor_code {
    uint16_t number;
    const char *meaning;
    const char *cure; /* usual cause and what helps; NULL: none is known */
} vendor_code;

extern const vendor_code vendor_codes[];
extern const size_t vendor_code_count;
/* The number itself, or NULL. */
const vendor_code *vendor_code_of(uint32_t number);
/* By its name in QNN's headers, such as QNN_CONTEXT_ERROR_CREATE_FROM_BINARY, or NULL. */
const vendor_code *vendor_code_named(const char *name, size_t size);
/* What numbers of this range are about, or NULL. */
const char *vendor_range_of(uint32_t number);

/* A chip of Qualcomm. */
typedef struct vendor_chip {
    uint16_t soc_model; /* QNN's number */
    uint8_t arch;       /* of the HTP: 73 is v73 */
    uint8_t vtcm;       /* MiB; 0: not known */
    const char *name;   /* "SM8550/8 Gen 2": all its names */
} vendor_chip;

extern const vendor_chip vendor_chips[];
extern const size_t vendor_chip_count;
/* By name in any case of letters, by soc_model, or by Linux's soc_id; NULL: not known. */
const vendor_chip *vendor_chip_of(const char *text);

#endif
