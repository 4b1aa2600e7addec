/*
 * SPDX-License-Identifier: MIT
 *
 * ort131.h - what ONNX Runtime 1.30 and 1.31 add at the ends of the tables of API 29. No package
 * has official headers of API 30 or newer; this stands beside those of API 24 to 29 (or the tool's
 * own examples/epctx/ort/abi.h), which are included first. A table grows at its end only and is the
 * same for every version of the API asked for, so the new functions have fixed places.
 * tests/ort/slots131.c calls them.
 *
 * Only an ONNX Runtime of API 31 has them: each ort131_..._of() is told the library's version
 * ("1.31.1" is 31) and gives NULL for older ones.
 */
#ifndef ORT131_H
#define ORT131_H

#include <stddef.h>
#include <stdint.h>

enum { ORT131_API = 31 };

/* A function of API 29 or older, which those headers declare. */
typedef void(ORT_API_CALL *ort131_older)(void);

/* Data of EPContext nodes, from and to the application instead of files. A read callback takes the
 * buffer from the allocator. */
typedef OrtStatus *(ORT_API_CALL *ort131_read_fn)(void *state, const char *name,
                                                  OrtAllocator *allocator, void **buffer,
                                                  size_t *size);
typedef OrtStatus *(ORT_API_CALL *ort131_write_fn)(void *state, const char *name,
                                                   const void *buffer, size_t size);

/* ---------------------------------------------------------- model packages */

typedef struct ort131_package_options ort131_package_options;
typedef struct ort131_package ort131_package;
typedef struct ort131_component ort131_component; /* with the variant that was selected */

/* Strings belong to the package or the component. */
typedef struct ort131_package_api {
    OrtStatus *(ORT_API_CALL *CreateModelPackageOptionsFromSessionOptions)(
        const OrtEnv *env, const OrtSessionOptions *session_options, ort131_package_options **out);
    void(ORT_API_CALL *ReleaseModelPackageOptions)(ort131_package_options *options);
    OrtStatus *(ORT_API_CALL *CreateModelPackageContext)(const ORTCHAR_T *folder,
                                                         ort131_package **out);
    void(ORT_API_CALL *ReleaseModelPackageContext)(ort131_package *package);
    OrtStatus *(ORT_API_CALL *ModelPackage_GetSchemaVersion)(const ort131_package *package,
                                                             int64_t *out);
    OrtStatus *(ORT_API_CALL *ModelPackage_GetComponentCount)(const ort131_package *package,
                                                              size_t *out);
    OrtStatus *(ORT_API_CALL *ModelPackage_GetComponentNames)(const ort131_package *package,
                                                              const char *const **out,
                                                              size_t *count);
    OrtStatus *(ORT_API_CALL *ModelPackage_GetVariantCount)(const ort131_package *package,
                                                            const char *component, size_t *out);
    OrtStatus *(ORT_API_CALL *ModelPackage_GetVariantNames)(const ort131_package *package,
                                                            const char *component,
                                                            const char *const **out, size_t *count);
    OrtStatus *(ORT_API_CALL *ModelPackage_GetVariantEpName)(const ort131_package *package,
                                                             const char *component,
                                                             const char *variant, const char **out);
    OrtStatus *(ORT_API_CALL *ModelPackage_ResolveStringRef)(const ort131_package *package,
                                                             const char *folder, const char *name,
                                                             int kind, const char **out);
    OrtStatus *(ORT_API_CALL *SelectComponent)(const ort131_package *package, const char *component,
                                               const ort131_package_options *options,
                                               ort131_component **out);
    void(ORT_API_CALL *ReleaseModelPackageComponentContext)(ort131_component *component);
    OrtStatus *(ORT_API_CALL *ModelPackageComponent_GetSelectedVariantName)(
        const ort131_component *component, const char **out);
    OrtStatus *(ORT_API_CALL *ModelPackageComponent_GetSelectedVariantFolderPath)(
        const ort131_component *component, const ORTCHAR_T **out);
    /* Without options: those that the package was opened with, and the variant's. */
    OrtStatus *(ORT_API_CALL *CreateSession)(const OrtEnv *env, ort131_component *component,
                                             const OrtSessionOptions *session_options,
                                             OrtSession **out);
} ort131_package_api;

/* ------------------------------------------------------------- applications */

/* OrtApi */
typedef struct ort131_api {
    ort131_older older[425];
    /* Since API 30; may give NULL. */
    OrtStatus *(ORT_API_CALL *KernelContext_GetPreallocatedOutput)(const OrtKernelContext *context,
                                                                   size_t index, OrtValue **out);
    /* A NULL callback takes away what was set. */
    OrtStatus *(ORT_API_CALL *SessionOptionsSetEpContextDataReadFunc)(OrtSessionOptions *options,
                                                                      ort131_read_fn callback,
                                                                      void *state);
    const ort131_package_api *(ORT_API_CALL *GetModelPackageApi)(void);
} ort131_api;

static inline const ort131_api *ort131_api_of(const OrtApi *api, uint32_t version) {
    return version < ORT131_API ? NULL : (const ort131_api *)(const void *)api;
}

/* OrtCompileApi */
typedef struct ort131_compile_api {
    ort131_older older[16];
    OrtStatus *(ORT_API_CALL *ModelCompilationOptions_SetEpContextDataWriteFunc)(
        OrtModelCompilationOptions *options, ort131_write_fn callback, void *state);
    /* Initializers of `threshold` bytes or more into a buffer of the allocator's; `name` is what
     * the model says of their file. */
    OrtStatus *(ORT_API_CALL *ModelCompilationOptions_SetOutputModelExternalInitializersBuffer)(
        OrtModelCompilationOptions *options, const ORTCHAR_T *name, size_t threshold,
        OrtAllocator *allocator, void **buffer, size_t *size);
    OrtStatus *(ORT_API_CALL *ModelCompilationOptions_SetOutputModelExternalInitializersAlignment)(
        OrtModelCompilationOptions *options, size_t alignment, size_t minimum_size);
} ort131_compile_api;

static inline const ort131_compile_api *ort131_compile_of(const OrtCompileApi *api,
                                                          uint32_t version) {
    return version < ORT131_API ? NULL : (const ort131_compile_api *)(const void *)api;
}

/* --------------------------------------------------------------------- EPs */

#if defined(ORT_API_VERSION) /* the official headers: the tool's own knows no EPs from inside */

/* A copy of the callbacks and their states in a session's options, released by the EP. */
typedef struct ort131_config ort131_config;

/* OrtEpApi */
typedef struct ort131_ep_api {
    ort131_older older[74];
    OrtStatus *(ORT_API_CALL *SessionOptionsGetEpContextConfig)(const OrtSessionOptions *options,
                                                                ort131_config **out);
    void(ORT_API_CALL *ReleaseEpContextConfig)(ort131_config *config);
    OrtStatus *(ORT_API_CALL *EpContextConfigGetEpContextDataReadFunc)(const ort131_config *config,
                                                                       ort131_read_fn *callback,
                                                                       void **state);
    OrtStatus *(ORT_API_CALL *EpContextConfigGetEpContextDataWriteFunc)(const ort131_config *config,
                                                                        ort131_write_fn *callback,
                                                                        void **state);
} ort131_ep_api;

static inline const ort131_ep_api *ort131_ep_of(const OrtEpApi *api, uint32_t version) {
    return version < ORT131_API ? NULL : (const ort131_ep_api *)(const void *)api;
}

/* Which callbacks an EP uses; ONNX Runtime refuses sessions with others, and any further bit. */
enum { ORT131_DATA_READ = 1, ORT131_DATA_WRITE = 2 };

/* OrtEp with the member that ONNX Runtime reads of EPs whose ort_version_supported is 31 or more:
 * an EP that reports 31 with the OrtEp of API 29 makes it call whatever lies behind that.
 * epctx_ort_announce (buffers.c) fills it in and reports 31. */
typedef OrtStatus *(ORT_API_CALL *ort131_support_fn)(const OrtEp *self, uint32_t *flags);
enum { ORT131_SUPPORT_AT = 26 }; /* its place, in pointers, whatever the headers */
#if defined(__cplusplus)         /* to derive from, as from OrtEp */
struct ort131_ep : OrtEp {
#else
typedef struct ort131_ep ort131_ep;
struct ort131_ep {
    OrtEp older;
#endif
#if ORT_API_VERSION < 31 /* later headers have it in OrtEp */
    /* From where these headers end to GetEpContextDataSupport, the last: NULL is "not there". */
    ort131_support_fn newer[ORT131_SUPPORT_AT + 1 - sizeof(OrtEp) / sizeof(void *)];
#endif
};

#endif

#endif
