/* store.c - what an application has behind its callbacks for context data, and the callbacks. */
#define _GNU_SOURCE
#include "conformance.h"

#include "examples/plugin_ep/ort131.h"

void store_free(store *s) {
    size_t i;
    for (i = 0; i < s->count; i++) free(s->list[i].data);
    memset(s, 0, sizeof *s);
}

stored_data *store_find(store *s, const char *key, size_t length) {
    size_t i;
    for (i = 0; i < s->count; i++)
        if (strlen(s->list[i].key) == length && memcmp(s->list[i].key, key, length) == 0)
            return &s->list[i];
    return NULL;
}

bool store_keep(store *s, const char *key, const void *data, size_t size) {
    stored_data *to = store_find(s, key, strlen(key));
    uint8_t *copy = (uint8_t *)malloc(size + 1);
    if (!copy || strlen(key) >= KEY || (!to && s->count == MOST_KEYS)) {
        free(copy);
        return false;
    }
    if (!to) to = &s->list[s->count++];
    free(to->data);
    memset(to, 0, sizeof *to);
    snprintf(to->key, KEY, "%s", key);
    if (size > 0) memcpy(copy, data, size);
    to->data = copy;
    to->size = size;
    return true;
}

/* ---------------------------------------------------------------- callbacks */

static OrtStatus *ORT_API_CALL write_data(void *state, const char *name, const void *data,
                                          size_t size) {
    store *s = (store *)state;
    s->writes++;
    if (s->code) return ort->CreateStatus(s->code, s->text);
    if (!name || (!data && size > 0))
        return ort->CreateStatus(ORT_INVALID_ARGUMENT, "the write callback got NULL");
    return store_keep(s, name, data, size) ? NULL
                                           : ort->CreateStatus(ORT_FAIL, "the store is full");
}

static OrtStatus *ORT_API_CALL read_data(void *state, const char *name, OrtAllocator *allocator,
                                         void **data, size_t *size) {
    store *s = (store *)state;
    stored_data *found;
    s->reads++;
    if (!name || !allocator || !data || !size)
        return ort->CreateStatus(ORT_INVALID_ARGUMENT, "the read callback got NULL");
    snprintf(s->asked, sizeof s->asked, "%s", name);
    if (s->code) return ort->CreateStatus(s->code, s->text);
    found = store_find(s, name, strlen(name));
    if (!found) return ort->CreateStatus(ORT_NO_SUCHFILE, "the store has no such key");
    found->reads++;
    *size = found->size;
    *data = found->size ? allocator->Alloc(allocator, found->size + s->spare) : NULL;
    if (!*data) return found->size ? ort->CreateStatus(ORT_FAIL, "no memory") : NULL;
    memset(*data, 0, found->size + s->spare); /* memory that is not used is not even taken */
    memcpy(*data, found->data, found->size);
    return NULL;
}

void set_reader(OrtSessionOptions *options, void *user) {
    ort_ok(ort131_api_of(ort, ort_version)
               ->SessionOptionsSetEpContextDataReadFunc(options, read_data, user));
}

void set_writer(OrtModelCompilationOptions *options, void *user) {
    ort_ok(ort131_compile_of(ort_compile, ort_version)
               ->ModelCompilationOptions_SetEpContextDataWriteFunc(options, write_data, user));
}
