/* Does a context that was made for one chip run on another? */
#ifndef EPCTX_CLI_CHIP_H
#define EPCTX_CLI_CHIP_H

#include "binary/binary.h"
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

/* By what the context binary tells, by the compatibility string that the EP stored, or by
 * hardware_architecture of a node. NOT_APPLICABLE: it cannot be told, also where only options fit.
 * `why` gets the reason; its status is EPCTX_ERR_CONTEXT for a binary that fits no chip. */
epctx_compat chip_fits_binary(const chip *here, const epctx_profile *profile,
                              const binary_facts *facts, epctx_error *why);
epctx_compat chip_fits_string(const chip *here, const epctx_profile *profile, epctx_str string,
                              epctx_error *why);
epctx_compat chip_fits_node(const chip *here, const epctx_profile *profile, epctx_str architecture,
                            epctx_error *why);

/* Where the EP's string, or hardware_architecture, names other chips than the binary: "names HTP
 * v68, the binary is for HTP v79". False: they agree, or one of the two does not tell. */
bool chip_denies_string(const epctx_profile *profile, const binary_facts *facts, epctx_str string,
                        char *out, size_t size);
bool chip_denies_node(const epctx_profile *profile, const binary_facts *facts,
                      epctx_str architecture, char *out, size_t size);

/* "CHIP, HTP v79, 8 MiB of VTCM", or for how many chips a binary is, or its architecture in its
 * own words; "": it does not tell. */
void chip_describe_made(const binary_facts *facts, char *out, size_t size);
/* Whether a binary of Qualcomm's is for this chip. UNTOLD: it does not tell. */
typedef enum chip_made { CHIP_MADE_UNTOLD, CHIP_MADE_YES, CHIP_MADE_NO } chip_made;
chip_made chip_is_made_for(const chip *here, const binary_facts *facts);

/* The options of an EP that choose a chip, with its values for this one: "soc_model", "69", ...,
 * `count` of them at most. 0: none are known of the EP. */
enum { CHIP_VALUE = 16 };
typedef struct chip_option {
    epctx_str key;
    char value[CHIP_VALUE];
} chip_option;
size_t chip_options_of(const chip *here, const char *profile, chip_option *out, size_t count);

/* The names of known chips that are nearest to one that is not known: "CHIP, CHIP"; "": none
 * is near. */
void chip_nearest(const char *text, char *out, size_t size);

#endif
