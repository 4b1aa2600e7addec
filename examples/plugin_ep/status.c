/* SPDX-License-Identifier: MIT */
/* status.c - errors of epctx.h as OrtStatus: ORT's code and the text we wrote. And the log, and
 * which ORT this is. */
#include "bridge.h"

#include <stdarg.h>
#include <stdio.h>

uint32_t epctx_ort_runtime(const OrtApiBase *base) {
    unsigned major = 0, minor = 0;
    if (sscanf(base->GetVersionString(), "%u.%u", &major, &minor) != 2 || major != 1)
        return ORT_API_VERSION;
    if (minor <= ORT_API_VERSION) return minor;
    return minor < ORT131_API ? minor : ORT131_API;
}

static OrtStatus *make(const epctx_ort_api *api, OrtErrorCode code, epctx_status status,
                       const epctx_error *error) {
    const char *text = error ? error->message : "";
    return api->ort->CreateStatus(code, *text ? text : epctx_status_text(status));
}

OrtStatus *epctx_ort_status(const epctx_ort_api *api, epctx_status status,
                            const epctx_error *error) {
    if (status == EPCTX_OK) return NULL;
    return make(api, (OrtErrorCode)epctx_status_to_ort(status), status, error);
}

OrtStatus *epctx_ort_load_status(const epctx_ort_api *api, epctx_status status,
                                 const epctx_error *error) {
    if (status == EPCTX_OK) return NULL;
    return make(api, ORT_INVALID_GRAPH, status, error);
}

OrtStatus *epctx_ort_fail(const epctx_ort_api *api, epctx_status status, const char *format, ...) {
    char text[1000];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return api->ort->CreateStatus((OrtErrorCode)epctx_status_to_ort(status), text);
}

OrtStatus *epctx_ort_no_memory(const epctx_ort_api *api) {
    return epctx_ort_status(api, EPCTX_ERR_NOMEM, NULL);
}

epctx_status epctx_ort_absorb(const epctx_ort_api *api, OrtStatus *status, epctx_error *error) {
    OrtErrorCode code;
    epctx_status mine;
    if (!status) return EPCTX_OK;
    code = api->ort->GetErrorCode(status);
    mine = code == ORT_INVALID_GRAPH     ? EPCTX_ERR_GRAPH
           : code == ORT_NOT_IMPLEMENTED ? EPCTX_ERR_UNSUPPORTED
                                         : EPCTX_ERR_BACKEND;
    mine = epctx_fail(error, mine, "%s", api->ort->GetErrorMessage(status));
    api->ort->ReleaseStatus(status);
    return mine;
}

void epctx_ort_log(const epctx_ort_api *api, const OrtLogger *logger, OrtLoggingLevel level,
                   const char *format, ...) {
    char text[1000];
    va_list args;
    OrtStatus *status;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    status = api->ort->Logger_LogMessage(logger, level, text, ORT_FILE, __LINE__, "epctx");
    if (status) api->ort->ReleaseStatus(status);
}

static void log_to(void *user, epctx_log level, const char *text) {
    const epctx_ort_log_to *to = (const epctx_ort_log_to *)user;
    epctx_ort_log(to->api, to->logger,
                  level == EPCTX_LOG_WARNING ? ORT_LOGGING_LEVEL_WARNING : ORT_LOGGING_LEVEL_INFO,
                  "%s: %s", to->ep_name, text);
}

epctx_hooks epctx_ort_hooks(epctx_ort_log_to *to) {
    epctx_hooks hooks;
    memset(&hooks, 0, sizeof hooks);
    hooks.user = to;
    hooks.log_fn = log_to;
    return hooks;
}
