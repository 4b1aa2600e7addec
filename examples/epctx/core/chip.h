/* Does a context that was made for one chip run on another? */
#ifndef EPCTX_CLI_CHIP_H
#define EPCTX_CLI_CHIP_H

#include "cli.h"
#include "vendors.h"

/* The chip that a user has. */
typedef struct chip {
    const char *text; /* as it was given */
    vendor_chip qualcomm;
    bool is_qualcomm; /* soc_model and VTCM are 0 where only the architecture was given */
} chip;

/* A chip of Qualcomm by name, soc_model, soc_id or architecture ("v73"); others are compared as
 * text only. */
void chip_read(const char *text, chip *out);
/* "SM8550/8 Gen 2: soc_model 43, HTP v73, 8 MiB of VTCM" */
void chip_describe(const chip *here, char *text, size_t size);

/* Whether an EP runs on chips of this kind: Qualcomm's, NVIDIA's, or of just this name. */
bool chip_is_of(const chip *here, const epctx_profile *profile, epctx_str architecture);

/* By the compatibility string that the EP stored, or by hardware_architecture of a node.
 * NOT_APPLICABLE: it cannot be told, also where only options fit. `why` gets the reason. */
epctx_compat chip_fits_string(const chip *here, const epctx_profile *profile, epctx_str string,
                              epctx_error *why);
epctx_compat chip_fits_node(const chip *here, const epctx_profile *profile, epctx_str architecture,
                            epctx_error *why);

#endif
