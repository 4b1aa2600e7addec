/* Compiled, not run: each entry of the lists in examples/epctx/ort/abi.h beside the official
 * headers, whose structures and types these are. A wrong place, type or number is an error of the
 * compiler. */
#include <onnxruntime_c_api.h>

#include "examples/epctx/ort/abi.h"
#include "examples/plugin_ep/ort131.h"

#define SAME_TYPE(a, b)      __builtin_types_compatible_p(a, b)
#define TYPE_OF(table, name) __typeof__(((table *)0)->name)

#define SLOT(place, result, name, parameters) \
    _Static_assert(offsetof(TABLE, name) == (place) * sizeof(void *), #name ": another place"); \
    _Static_assert(SAME_TYPE(TYPE_OF(TABLE, name), result(ORT_API_CALL *) parameters), \
                   #name ": another type");
#define GAP(first, last) _Static_assert((first) <= (last), "a gap of nothing");

#define TABLE OrtApiBase
ORT_ABI_BASE(SLOT, GAP)
#undef TABLE
#define TABLE OrtAllocator
ORT_ABI_ALLOCATOR(SLOT, GAP)
#undef TABLE
#define TABLE OrtCompileApi
ORT_ABI_COMPILE(SLOT, GAP)
#undef TABLE
#define TABLE OrtApi
ORT_ABI_API(SLOT, GAP)
#undef TABLE

#define MEMBER(type, name) type name;
typedef struct env_options {
    ORT_ABI_ENV(MEMBER)
} env_options;
#undef MEMBER
#define MEMBER(type, name) \
    _Static_assert(offsetof(OrtEnvCreationOptions, name) == offsetof(env_options, name), \
                   #name ": another place"); \
    _Static_assert(SAME_TYPE(TYPE_OF(OrtEnvCreationOptions, name), type), #name ": another type");
ORT_ABI_ENV(MEMBER)
/* Of API 24, whose number the driver gives; a longer one has more members behind. */
_Static_assert(sizeof(OrtEnvCreationOptions) >= sizeof(env_options), "more members here");

#define NUMBER(type, name, value) \
    _Static_assert((int)(name) == (value), #name ": another number"); \
    _Static_assert(sizeof(type) == sizeof(int), #type ": no int");
ORT_ABI_NUMBERS(NUMBER)

/* Pointers to functions that are declared here, not listed. */
_Static_assert(SAME_TYPE(OrtLoggingFunction,
                         void(ORT_API_CALL *)(void *, OrtLoggingLevel, const char *, const char *,
                                              const char *, const char *)),
               "OrtLoggingFunction");
_Static_assert(SAME_TYPE(OrtWriteBufferFunc,
                         OrtStatus *(ORT_API_CALL *)(void *, const void *, size_t)),
               "OrtWriteBufferFunc");

#if ORT_API_VERSION == 29
/* Where ort131.h goes on. */
_Static_assert(offsetof(ort131_api, KernelContext_GetPreallocatedOutput) == sizeof(OrtApi),
               "OrtApi");
_Static_assert(offsetof(ort131_compile_api, ModelCompilationOptions_SetEpContextDataWriteFunc) ==
                   sizeof(OrtCompileApi),
               "OrtCompileApi");
_Static_assert(offsetof(ort131_ep_api, SessionOptionsGetEpContextConfig) == sizeof(OrtEpApi),
               "OrtEpApi");
_Static_assert(ORT131_SUPPORT_AT * sizeof(void *) == sizeof(OrtEp), "OrtEp");
#endif
