/* profiler.c - what the device did, in ORT's profile: one event for each Compute, under the name of
 * its graph. EnableProfiling writes the events of a session, RunOptionsEnableProfiling those of one
 * run. Where nobody profiles, Compute looks at one number more. */
#if !defined(_WIN32)
#define _POSIX_C_SOURCE 200809L
#endif
#include "ep.h"

#include <inttypes.h>
#include <stdio.h>
#if defined(_WIN32)
#include <windows.h>
typedef DWORD thread_id;
#else
#include <pthread.h>
#include <time.h>
typedef pthread_t thread_id;
#endif

/* ORT says which of its events begins and ends in which thread; a Compute in between belongs to it.
 * So two profiled runs at once do not get each other's events. */
typedef struct open_event {
    thread_id thread;
    uint64_t correlation;
    struct open_event *next;
} open_event;

typedef struct closed_event {
    char name[120];
    uint64_t correlation;
    int64_t start_ns, duration_ns;
} closed_event;

struct ep_profiler {
    OrtEpProfilerImpl ort; /* first */
    const epctx_ort_api *api;
    const char *provider;
    ep_session *session;
    bool started; /* and in the session's list, which ORT may release before this */
    struct ep_profiler *next;
    int64_t offset_ns; /* ORT's clock minus ours */
    open_event *open;
    closed_event *closed;
    size_t count, room;
};

static bool is_this_thread(thread_id thread) {
#if defined(_WIN32)
    return thread == GetCurrentThreadId();
#else
    return pthread_equal(thread, pthread_self()) != 0;
#endif
}

static thread_id this_thread(void) {
#if defined(_WIN32)
    return GetCurrentThreadId();
#else
    return pthread_self();
#endif
}

static int64_t now_ns(void) {
#if defined(_WIN32)
    LARGE_INTEGER now, second;
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&second);
    return now.QuadPart / second.QuadPart * 1000000000 +
           now.QuadPart % second.QuadPart * 1000000000 / second.QuadPart;
#else
    struct timespec t = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
#endif
}

/* Held only briefly. */
static void lock(ep_session *session) {
    while (atomic_flag_test_and_set_explicit(&session->profilers_lock, memory_order_acquire)) {
    }
}

static void unlock(ep_session *session) {
    atomic_flag_clear_explicit(&session->profilers_lock, memory_order_release);
}

/* ------------------------------------------------------------ ORT's events */

static OrtStatus *ORT_API_CALL start_profiling(OrtEpProfilerImpl *self, int64_t offset_ns) {
    ep_profiler *profiler = (ep_profiler *)(void *)self;
    ep_session *session = profiler->session;
    profiler->offset_ns = offset_ns - now_ns();
    lock(session);
    profiler->next = session->profilers;
    session->profilers = profiler;
    profiler->started = true;
    unlock(session);
    atomic_fetch_add(&session->profiler_count, 1);
    return NULL;
}

static OrtStatus *ORT_API_CALL start_event(OrtEpProfilerImpl *self, uint64_t correlation) {
    ep_profiler *profiler = (ep_profiler *)(void *)self;
    open_event *event = (open_event *)malloc(sizeof *event);
    if (!event) return epctx_ort_no_memory(profiler->api);
    if (!profiler->started) {
        free(event);
        return NULL;
    }
    event->thread = this_thread();
    event->correlation = correlation;
    lock(profiler->session);
    event->next = profiler->open;
    profiler->open = event;
    unlock(profiler->session);
    return NULL;
}

static OrtStatus *ORT_API_CALL stop_event(OrtEpProfilerImpl *self, uint64_t correlation,
                                          const OrtProfilingEvent *ort_event) {
    ep_profiler *profiler = (ep_profiler *)(void *)self;
    open_event **at, *found;
    (void)ort_event;
    if (!profiler->started) return NULL;
    lock(profiler->session);
    for (at = &profiler->open; *at; at = &(*at)->next)
        if ((*at)->correlation == correlation && is_this_thread((*at)->thread)) break;
    found = *at;
    if (found) *at = found->next;
    unlock(profiler->session);
    free(found);
    return NULL;
}

/* -------------------------------------------------------------- our events */

/* Space for one more event, or NULL. */
static closed_event *grow(ep_profiler *profiler) {
    if (profiler->count == profiler->room) {
        const size_t room = profiler->room ? 2 * profiler->room : 64;
        closed_event *more =
            (closed_event *)realloc(profiler->closed, room * sizeof *profiler->closed);
        if (!more) return NULL;
        profiler->closed = more;
        profiler->room = room;
    }
    return &profiler->closed[profiler->count++];
}

int64_t ep_profile_begin(const ep_session *session) {
    return atomic_load_explicit(&session->profiler_count, memory_order_relaxed) ? now_ns() : 0;
}

/* If out of memory, drops the event: profiling must not fail a run. */
void ep_profile_end(ep_session *session, epctx_str name, int64_t start_ns) {
    const int64_t duration = start_ns ? now_ns() - start_ns : 0;
    ep_profiler *profiler;
    if (!start_ns) return;
    lock(session);
    for (profiler = session->profilers; profiler; profiler = profiler->next) {
        const open_event *event = profiler->open;
        closed_event *mine;
        while (event && !is_this_thread(event->thread)) event = event->next;
        mine = event ? grow(profiler) : NULL;
        if (!mine) continue;
        snprintf(mine->name, sizeof mine->name, "%.*s", (int)(name.size < 119 ? name.size : 119),
                 name.data);
        mine->correlation = event->correlation;
        mine->start_ns = start_ns;
        mine->duration_ns = duration;
    }
    unlock(session);
}

static OrtStatus *add_event(const ep_profiler *profiler, const closed_event *event,
                            OrtProfilingEventsContainer *container) {
    const epctx_ort_api *api = profiler->api;
    const char *const keys[] = {"provider", "ort_event"};
    const char *values[2];
    char correlation[24];
    OrtProfilingEvent *made = NULL;
    const OrtProfilingEvent *list[1];
    OrtStatus *status;
    snprintf(correlation, sizeof correlation, "%" PRIu64, event->correlation);
    values[0] = profiler->provider;
    values[1] = correlation;
    EPCTX_ORT_TRY(api->ep->CreateProfilingEvent(OrtProfilingEventCategory_KERNEL, -1, -1,
                                                event->name,
                                                (event->start_ns + profiler->offset_ns) / 1000,
                                                event->duration_ns / 1000, keys, values, 2, &made));
    list[0] = made;
    status = api->ep->ProfilingEventsContainer_AddEvents(container, list, 1);
    api->ep->ReleaseProfilingEvent(made);
    return status;
}

/* After this, no Compute uses this profiler. */
static void leave(ep_profiler *profiler) {
    ep_session *session = profiler->session;
    ep_profiler **at;
    if (!profiler->started) return;
    lock(session);
    for (at = &session->profilers; *at && *at != profiler; at = &(*at)->next) {
    }
    if (*at) {
        *at = profiler->next;
        atomic_fetch_sub(&session->profiler_count, 1);
    }
    profiler->started = false;
    unlock(session);
}

static OrtStatus *ORT_API_CALL end_profiling(OrtEpProfilerImpl *self,
                                             OrtProfilingEventsContainer *container) {
    ep_profiler *profiler = (ep_profiler *)(void *)self;
    size_t i;
    leave(profiler);
    for (i = 0; i < profiler->count; i++)
        EPCTX_ORT_TRY(add_event(profiler, &profiler->closed[i], container));
    return NULL;
}

static void ORT_API_CALL release_profiler(OrtEpProfilerImpl *self) {
    ep_profiler *profiler = (ep_profiler *)(void *)self;
    if (!profiler) return;
    leave(profiler);
    while (profiler->open) {
        open_event *next = profiler->open->next;
        free(profiler->open);
        profiler->open = next;
    }
    free(profiler->closed);
    free(profiler);
}

static OrtStatus *ORT_API_CALL create_profiler(OrtEp *self, OrtEpProfilerImpl **out) {
    ep_session *session = (ep_session *)(void *)self;
    ep_profiler *profiler = (ep_profiler *)calloc(1, sizeof *profiler);
    *out = NULL;
    if (!profiler) return epctx_ort_no_memory(session->api);
    profiler->session = session;
    profiler->api = session->api;
    profiler->provider = session->factory->device->ep_name;
    profiler->ort.ort_version_supported = epctx_ort_layout(session->api);
    profiler->ort.Release = release_profiler;
    profiler->ort.StartProfiling = start_profiling;
    profiler->ort.StartEvent = start_event;
    profiler->ort.StopEvent = stop_event;
    profiler->ort.EndProfiling = end_profiling;
    *out = &profiler->ort;
    return NULL;
}

/* The session ends; ORT releases its profilers later. */
void ep_profiler_detach(ep_session *session) {
    ep_profiler *profiler;
    for (profiler = session->profilers; profiler; profiler = profiler->next)
        profiler->started = false;
    session->profilers = NULL;
}

void ep_profiler_register(ep_session *session) {
    if (session->api->version >= 25) session->ort.older.CreateProfiler = create_profiler;
}
