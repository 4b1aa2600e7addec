/* delivery.h - whole deliveries: does everything in a folder fit together? */
#ifndef EPCTX_CLI_DELIVERY_H
#define EPCTX_CLI_DELIVERY_H

#include "findings.h"
#include "tree.h"

/* Judges the folders of ORT GenAI and the model packages in a folder, each as a whole; a finding's
 * file is the JSON file that it starts at. False: there are none. */
bool delivery_lint(findings *out, const tree *files);

#endif
