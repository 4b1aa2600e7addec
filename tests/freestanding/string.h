/* What a target without a C library has of <string.h>: these, from whoever
   links the firmware. Nothing else may be needed. */
#ifndef FREESTANDING_STRING_H
#define FREESTANDING_STRING_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
void *memcpy(void *to, const void *from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int byte, size_t size);
int memcmp(const void *a, const void *b, size_t size);
void *memchr(const void *in, int byte, size_t size);
size_t strlen(const char *text);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t size);
#ifdef __cplusplus
}
#endif
#endif
