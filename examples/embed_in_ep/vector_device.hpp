// vector_device.hpp - the device of vector_ep.cc: Add, Sub, Mul and Relu of float tensors of a
// fixed shape. It knows epctx.h and nothing of ORT.
#ifndef VECTOR_DEVICE_HPP
#define VECTOR_DEVICE_HPP

#include "epctx.h"

namespace vector
{

constexpr const char *kName = "VectorExecutionProvider"; // `source` of its nodes, too
constexpr const char *kVersion = "1.0.0";

// The device has no state: one backend is for all sessions, sharing ones included.
epctx_backend Backend();

} // namespace vector

#endif
