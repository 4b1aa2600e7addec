/* The driver of the conformance suite and the tests, with our own header of ONNX Runtime's API. */
#define _XOPEN_SOURCE 700
#include "abi.h"

#include "../../conformance/ort_driver.c"
