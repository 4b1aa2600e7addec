/* A program that knows epctx.h as a binding does: symbols, sizes and a copy of one struct, but no
 * header.
 *
 *     abi LIBRARY MODEL MISSING STRUCT...
 *
 * Prints the version, the size of each struct, and what opening the two files gave. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A function of the library, or the end. */
static void *find(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (found == NULL) {
        printf("FAIL the symbol %s is exported\n", name);
        exit(1);
    }
    return found;
}

int main(int argc, char **argv) {
    void *library = argc > 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    const char *(*version)(void);
    size_t (*size_of)(const char *);
    int (*open_file)(void *, const char *, const void *, void *);
    const char *(*status_name)(int);
    uint64_t (*model_size)(void *);
    void (*close_model)(void *);
    if (library == NULL) {
        printf("FAIL the library opens: %s\n", argc > 3 ? dlerror() : "too few arguments");
        return 1;
    }
    *(void **)&version = find(library, "epctx_version");
    *(void **)&size_of = find(library, "epctx_struct_size");
    *(void **)&open_file = find(library, "epctx_model_open_file");
    *(void **)&status_name = find(library, "epctx_status_name");
    *(void **)&model_size = find(library, "epctx_model_size");
    *(void **)&close_model = find(library, "epctx_model_close");
    printf("version %s\n", version());
    for (int i = 4; i < argc; i++) printf("%s %zu\n", argv[i], size_of(argv[i]));
    for (int i = 2; i < 4; i++) {
        void *model = calloc(1, size_of("epctx_model")), *error = calloc(1, size_of("epctx_error"));
        int status = model && error ? open_file(model, argv[i], NULL, error) : -1;
        if (status == 0)
            printf("opened, %llu bytes\n", (unsigned long long)model_size(model));
        else
            printf("failed, %s\n", status_name(status));
        if (model) close_model(model);
        free(model);
        free(error);
    }
    return dlclose(library) != 0;
}
