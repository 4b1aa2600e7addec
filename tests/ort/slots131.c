/* slots131 LIBRARY PACKAGE: calls what examples/plugin_ep/ort131.h adds to the tables, in the real
 * library. PACKAGE is of one component with one variant, "npu". Exit code 77: the library is
 * older. */
#include <onnxruntime_c_api.h>

#include "examples/plugin_ep/ort131.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const OrtApi *ort;
static int failed;

static void check(bool ok, const char *what) {
    printf("%s %s\n", ok ? "ok" : "FAIL", what);
    failed |= !ok;
}

static bool took(OrtStatus *status) {
    if (!status) return true;
    printf("  %s\n", ort->GetErrorMessage(status));
    ort->ReleaseStatus(status);
    return false;
}

/* Whether it was refused with these words. */
static bool refused(OrtStatus *status, const char *words) {
    bool ok;
    if (!status) return false;
    ok = strstr(ort->GetErrorMessage(status), words) != NULL;
    if (!ok) printf("  '%s' is not in: %s\n", words, ort->GetErrorMessage(status));
    ort->ReleaseStatus(status);
    return ok;
}

static OrtStatus *ORT_API_CALL read_data(void *state, const char *name, OrtAllocator *allocator,
                                         void **buffer, size_t *size) {
    (void)state, (void)name, (void)allocator, (void)buffer, (void)size;
    return ort->CreateStatus(ORT_FAIL, "not called");
}

static OrtStatus *ORT_API_CALL write_data(void *state, const char *name, const void *buffer,
                                          size_t size) {
    (void)state, (void)name, (void)buffer, (void)size;
    return ort->CreateStatus(ORT_FAIL, "not called");
}

/* What an EP would be told of these options. */
static bool told(const OrtSessionOptions *options, ort131_read_fn callback, const void *state) {
    const ort131_ep_api *ep = ort131_ep_of(ort->GetEpApi(), ORT131_API);
    ort131_config *config = NULL;
    ort131_read_fn reads = NULL;
    ort131_write_fn writes = write_data;
    void *read_state = NULL, *write_state = NULL;
    const bool ok =
        took(ep->SessionOptionsGetEpContextConfig(options, &config)) &&
        took(ep->EpContextConfigGetEpContextDataReadFunc(config, &reads, &read_state)) &&
        took(ep->EpContextConfigGetEpContextDataWriteFunc(config, &writes, &write_state));
    if (config) ep->ReleaseEpContextConfig(config);
    return ok && reads == callback && read_state == state && !writes;
}

static void callbacks(OrtEnv *env, OrtSessionOptions *options) {
    const ort131_api *api = ort131_api_of(ort, ORT131_API);
    const ort131_compile_api *compile = ort131_compile_of(ort->GetCompileApi(), ORT131_API);
    OrtModelCompilationOptions *to = NULL;
    OrtAllocator *allocator = NULL;
    void *buffer = NULL;
    size_t size = 0;
    int state = 0;
    check(told(options, NULL, NULL), "an EP is told of no callback");
    check(took(api->SessionOptionsSetEpContextDataReadFunc(options, read_data, &state)) &&
              told(options, read_data, &state),
          "a read callback and its state reach an EP");
    check(took(api->SessionOptionsSetEpContextDataReadFunc(options, NULL, &state)) &&
              told(options, NULL, NULL),
          "NULL takes it away");
    check(refused(api->SessionOptionsSetEpContextDataReadFunc(NULL, read_data, NULL), "options"),
          "a read callback for no options");
    if (!took(ort->GetCompileApi()->CreateModelCompilationOptionsFromSessionOptions(env, options,
                                                                                    &to)) ||
        !took(ort->GetAllocatorWithDefaultOptions(&allocator)))
        return;
    check(took(compile->ModelCompilationOptions_SetEpContextDataWriteFunc(to, write_data, &state)),
          "a write callback");
    check(refused(
              compile->ModelCompilationOptions_SetEpContextDataWriteFunc(NULL, write_data, &state),
              "is NULL"),
          "a write callback for no options");
    check(took(compile->ModelCompilationOptions_SetOutputModelExternalInitializersBuffer(
              to, "weights.bin", 16, allocator, &buffer, &size)),
          "initializers into a buffer");
    check(refused(compile->ModelCompilationOptions_SetOutputModelExternalInitializersBuffer(
                      to, "weights.bin", 16, NULL, &buffer, &size),
                  "llocator"),
          "a buffer without an allocator");
    check(took(compile->ModelCompilationOptions_SetOutputModelExternalInitializersAlignment(to, 64,
                                                                                            1024)),
          "their alignment");
    check(refused(compile->ModelCompilationOptions_SetOutputModelExternalInitializersAlignment(
                      to, 3, 1024),
                  "power of"),
          "an alignment that is no power of two");
    ort->GetCompileApi()->ReleaseModelCompilationOptions(to);
}

static void packages(const char *folder) {
    const ort131_package_api *api = ort131_api_of(ort, ORT131_API)->GetModelPackageApi();
    ort131_package *package = NULL;
    const char *const *names = NULL, *ep = NULL;
    size_t count = 0;
    int64_t schema = 0;
    check(refused(api->CreateModelPackageContext("/no such package", &package), "no such package"),
          "a package that is not there");
    if (!took(api->CreateModelPackageContext(folder, &package))) {
        check(false, "a package");
        return;
    }
    check(took(api->ModelPackage_GetSchemaVersion(package, &schema)) && schema == 1,
          "the schema's version");
    check(took(api->ModelPackage_GetComponentCount(package, &count)) && count == 1,
          "the number of components");
    count = 0;
    check(took(api->ModelPackage_GetComponentNames(package, &names, &count)) && count == 1 &&
              strcmp(names[0], "model") == 0,
          "the component's name");
    count = 0;
    check(took(api->ModelPackage_GetVariantCount(package, "model", &count)) && count == 1,
          "the number of variants");
    count = 0;
    check(took(api->ModelPackage_GetVariantNames(package, "model", &names, &count)) && count == 1 &&
              strcmp(names[0], "npu") == 0,
          "the variant's name");
    check(took(api->ModelPackage_GetVariantEpName(package, "model", "npu", &ep)) &&
              strcmp(ep, "EpctxNpuExecutionProvider") == 0,
          "its EP");
    api->ReleaseModelPackageContext(package);
}

int main(int argc, char **argv) {
    const OrtApiBase *(*get_base)(void) = NULL;
    OrtEnv *env = NULL;
    OrtSessionOptions *options = NULL;
    void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL, *symbol;
    unsigned version = 0;
    if (!library || !(symbol = dlsym(library, "OrtGetApiBase"))) {
        printf("FAIL slots131 LIBRARY PACKAGE: %s\n", argc == 3 ? dlerror() : "usage");
        return 1;
    }
    memcpy(&get_base, &symbol, sizeof symbol);
    sscanf(get_base()->GetVersionString(), "1.%u", &version);
    if (version < ORT131_API) return 77;
    ort = get_base()->GetApi(ORT131_API);
    if (!ort || !took(ort->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "slots", &env)) ||
        !took(ort->CreateSessionOptions(&options))) {
        printf("FAIL opening %s\n", argv[1]);
        return 1;
    }
    check(ort == get_base()->GetApi(ORT_API_VERSION), "one table for every version");
    check(!ort131_api_of(ort, 30) && !ort131_compile_of(ort->GetCompileApi(), 30) &&
              !ort131_ep_of(ort->GetEpApi(), 30),
          "nothing is taken from an older library's tables");
    callbacks(env, options);
    packages(argv[2]);
    ort->ReleaseSessionOptions(options);
    ort->ReleaseEnv(env);
    return failed;
}
