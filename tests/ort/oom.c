/* oom.c - linked into libtoy_oom_ep.so with -Wl,--wrap: makes one allocation of the plugin fail. */
#include <stdbool.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
EXPORT void oom_arm(long at);
EXPORT bool oom_fired(void);

static long left; /* allocations until the one that fails; 0: none does */
static bool fired;

/* Arms the trap for the `at`th allocation from now. */
void oom_arm(long at)
{
    left = at;
    fired = false;
}

bool oom_fired(void)
{
    return fired;
}

static bool now(void)
{
    if (left == 0 || --left > 0) return false;
    fired = true;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return now() ? NULL : __real_realloc(memory, size);
}
