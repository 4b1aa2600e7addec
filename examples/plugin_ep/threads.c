/* threads.c - ONNX Runtime's own threads for the device: those of the session's intra-op pool
 * (SetIntraOpNumThreads), or of the application's global one. An EP needs none of its own. */
#include "ep.h"

#ifdef _WIN32
#include <windows.h>
typedef DWORD thread_id;
static thread_id this_thread(void) {
    return GetCurrentThreadId();
}
static bool same_thread(thread_id a, thread_id b) {
    return a == b;
}
#else
#include <pthread.h>
#include <unistd.h>
typedef pthread_t thread_id;
static thread_id this_thread(void) {
    return pthread_self();
}
static bool same_thread(thread_id a, thread_id b) {
    return pthread_equal(a, b) != 0;
}
#endif

uint32_t ep_processors(void) {
    const long most = 64;
    long count;
#ifdef _WIN32
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    count = (long)info.dwNumberOfProcessors;
#else
    count = sysconf(_SC_NPROCESSORS_ONLN);
#endif
    return (uint32_t)(count < 1 ? 1 : count < most ? count : most);
}

/* For KernelContext_ParallelFor. */
typedef struct shared_work {
    void (*work_fn)(void *work, uint32_t i);
    void *work;
    thread_id caller;
    atomic_bool helped;
} shared_work;

static void one_part(void *user, size_t i) {
    shared_work *shared = (shared_work *)user;
    if (!same_thread(shared->caller, this_thread()))
        atomic_store_explicit(&shared->helped, true, memory_order_relaxed);
    shared->work_fn(shared->work, (uint32_t)i);
}

void ep_share_work(void *user, uint32_t count, void (*work_fn)(void *work, uint32_t i),
                   void *work) {
    const ep_pool *pool = (const ep_pool *)user;
    const OrtApi *ort = pool->session->api->ort;
    ep_runs *runs = &pool->session->runs;
    shared_work shared;
    OrtStatus *status;
    uint32_t i;
    shared.work_fn = work_fn;
    shared.work = work;
    shared.caller = this_thread();
    atomic_init(&shared.helped, false);
    status = ort->KernelContext_ParallelFor(pool->context, one_part, count, 0, &shared);
    if (atomic_load(&shared.helped))
        atomic_store(&runs->helped, true);
    else
        atomic_fetch_add(&runs->alone, 1);
    if (!status) return;
    ort->ReleaseStatus(status); /* some parts were done, perhaps: each gives the same again */
    for (i = 0; i < count; i++) work_fn(work, i);
}

/* ORT tells no EP how many threads it has. With one it does all parts on that of the run: then
 * whole commands are quicker. Others may be asleep or busy at first. */
uint32_t ep_threads(const ep_session *session) {
    enum { PATIENCE = 1000 };
    const bool many =
        atomic_load(&session->runs.helped) || atomic_load(&session->runs.alone) < PATIENCE;
    return many ? ep_processors() : 1;
}
