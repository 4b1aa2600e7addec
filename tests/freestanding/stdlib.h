/* Only what nanopb's pb.h may want to see when it is set up with a heap. That
   nothing calls these where there is no heap is checked on the object. */
#ifndef FREESTANDING_STDLIB_H
#define FREESTANDING_STDLIB_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
void *malloc(size_t size);
void *realloc(void *block, size_t size);
void free(void *block);
#ifdef __cplusplus
}
#endif
#endif
