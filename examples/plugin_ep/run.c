/* run.c - what an application says to a living session: options of a run, dynamic options.
 *
 *   AddRunConfigEntry "ep.<ep name in lower case>.max_concurrent_runs" = N
 *       The run is refused when N runs of its session are under way. For an application that would
 *       rather drop a frame than queue it.
 *   SetEpDynamicOptions "ep.dynamic.workload_type" = Default | Efficient
 *       ORT's own key. Efficient: a run gives its scratch memory back when it ends, where Default
 *       keeps it for the next one.
 *   SetEpDynamicOptions with a key of ep_device.dynamic_keys: the device's.
 *
 * RunOptionsSetTerminate is ORT's alone: it has no function that lets an EP read the flag.
 */
#include "ep.h"

#include <stdio.h>

#define WORKLOAD_KEY "ep.dynamic.workload_type"

static ep_session *session_of(OrtEp *self) {
    return (ep_session *)(void *)self;
}

/* ------------------------------------------------------------------- a run */

/* 0: no limit. */
static OrtStatus *read_limit(const ep_session *session, const OrtRunOptions *options,
                             uint32_t *limit) {
    const epctx_ort_api *api = session->api;
    const char *const key = session->runs.limit_key;
    const char *text = api->ort->GetRunConfigEntry(options, key);
    uint64_t number = 0;
    if (!text || (epctx_str_number(epctx_str_of(text), &number) && number > 0)) {
        *limit = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
        return NULL;
    }
    return epctx_ort_fail(api, EPCTX_ERR_ARG,
                          "run option %s: a number from 1 is expected, found '%s'", key, text);
}

/* ORT calls on_run_end for exactly those runs that were let in here, also when they fail. */
static OrtStatus *ORT_API_CALL on_run_start(OrtEp *self, const OrtRunOptions *options) {
    ep_session *session = session_of(self);
    uint32_t limit = 0, others;
    const char *tag = NULL;
    EPCTX_ORT_TRY(read_limit(session, options, &limit));
    others = atomic_fetch_add(&session->runs.under_way, 1);
    if (limit == 0 || others < limit) {
        atomic_fetch_add(&session->runs.started, 1);
        return NULL;
    }
    atomic_fetch_sub(&session->runs.under_way, 1);
    atomic_fetch_add(&session->runs.refused, 1);
    EPCTX_ORT_TRY(session->api->ort->RunOptionsGetRunTag(options, &tag));
    return epctx_ort_fail(
        session->api, EPCTX_ERR_BACKEND,
        "run '%s' is refused: %u of this session are under way, max_concurrent_runs "
        "is %u",
        tag ? tag : "", others, limit);
}

/* Compute has finished when it returns: nothing to wait for, whatever `sync_stream` asks. */
static OrtStatus *ORT_API_CALL on_run_end(OrtEp *self, const OrtRunOptions *options,
                                          bool sync_stream) {
    (void)options;
    (void)sync_stream;
    atomic_fetch_sub(&session_of(self)->runs.under_way, 1);
    return NULL;
}

/* --------------------------------------------------------- dynamic options */

static bool is_of_device(const ep_device *device, const char *key) {
    const char *const *known = device->dynamic_keys;
    for (; known && *known; known++)
        if (strcmp(*known, key) == 0) return true;
    return false;
}

static OrtStatus *unknown_key(const ep_session *session, const char *key) {
    const char *const *known = session->factory->device->dynamic_keys;
    char list[400] = WORKLOAD_KEY;
    for (; known && *known; known++) {
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, ", %s", *known);
    }
    return epctx_ort_fail(session->api, EPCTX_ERR_ARG, "dynamic option '%s' is not one of %s: %s",
                          key, session->factory->device->ep_name, list);
}

static OrtStatus *check_option(const ep_session *session, const char *key, const char *value) {
    if (is_of_device(session->factory->device, key)) return NULL;
    if (strcmp(key, WORKLOAD_KEY) != 0) return unknown_key(session, key);
    if (strcmp(value, "Default") == 0 || strcmp(value, "Efficient") == 0) return NULL;
    return epctx_ort_fail(session->api, EPCTX_ERR_ARG,
                          "%s: Default or Efficient is expected, found '%s'", key, value);
}

/* All are checked before one counts; a value that the device refuses ends the list there. ORT may
 * call this while runs are under way. */
static OrtStatus *ORT_API_CALL set_dynamic_options(OrtEp *self, const char *const *keys,
                                                   const char *const *values, size_t count) {
    ep_session *session = session_of(self);
    const ep_device *device = session->factory->device;
    epctx_error error;
    size_t i;
    epctx_error_clear(&error);
    for (i = 0; i < count; i++) EPCTX_ORT_TRY(check_option(session, keys[i], values[i]));
    for (i = 0; i < count; i++) {
        if (is_of_device(device, keys[i])) {
            EPCTX_ORT_TRY(epctx_ort_status(
                session->api, device->dynamic_fn(&session->backend, keys[i], values[i], &error),
                &error));
        } else {
            atomic_store(&session->runs.efficient, strcmp(values[i], "Efficient") == 0);
        }
    }
    return NULL;
}

void ep_runs_register(ep_session *session) {
    ep_option_key(session, "max_concurrent_runs", session->runs.limit_key,
                  sizeof session->runs.limit_key);
    session->ort.older.OnRunStart = on_run_start;
    session->ort.older.OnRunEnd = on_run_end;
    session->ort.older.SetDynamicOptions = set_dynamic_options;
}

void ep_runs_report(const ep_session *session) {
    const ep_runs *runs = &session->runs;
    if (atomic_load(&runs->started) + atomic_load(&runs->refused) == 0) return;
    /* Not the session's logger, which ORT has already released. */
    epctx_ort_log(
        session->api, session->factory->logger, ORT_LOGGING_LEVEL_INFO,
        "%s: %u runs, %u refused, %u under way; streams: %u, of them open %u, flushed %u times",
        session->factory->device->ep_name, atomic_load(&runs->started), atomic_load(&runs->refused),
        atomic_load(&runs->under_way), atomic_load(&runs->streams),
        atomic_load(&runs->open_streams), atomic_load(&runs->flushes));
}
