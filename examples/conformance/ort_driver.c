/* The driver of the tool with ONNX Runtime's own header, which the suite and the tests need. */
#define _XOPEN_SOURCE 700
#include <onnxruntime_c_api.h>

#include "ort/driver.c"
