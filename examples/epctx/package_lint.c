/* package_lint.c - a model package of ONNX Runtime. */
#include "delivery_internal.h"
void package_lint(delivery *d, const char *manifest) {
    (void)d;
    (void)manifest;
}
