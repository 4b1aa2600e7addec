/* oom.c - linked into libtoy_oom_ep.so with -Wl,--wrap: makes one allocation of the plugin fail,
 * and counts what it has not freed. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void __wrap_free(void *memory);
EXPORT void oom_arm(long at);
EXPORT bool oom_fired(void);
EXPORT long oom_alive(void);

static long left; /* allocations until the one that fails; 0: none does */
static bool fired;
static atomic_long alive; /* blocks */

/* Arms the trap for the `at`th allocation from now. */
void oom_arm(long at) {
    left = at;
    fired = false;
}

bool oom_fired(void) {
    return fired;
}

/* Blocks of the plugin that are not freed yet. */
long oom_alive(void) {
    return alive;
}

static bool now(void) {
    if (left == 0 || --left > 0) return false;
    fired = true;
    return true;
}

static void *counted(void *memory) {
    alive += memory != NULL;
    return memory;
}

void *__wrap_malloc(size_t size) {
    return now() ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size) {
    return now() ? NULL : counted(__real_calloc(count, size));
}

void *__wrap_realloc(void *memory, size_t size) {
    if (now()) return NULL;
    return memory ? __real_realloc(memory, size) : counted(__real_realloc(NULL, size));
}

void __wrap_free(void *memory) {
    alive -= memory != NULL;
    __real_free(memory);
}
