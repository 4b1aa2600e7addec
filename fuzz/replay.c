/* Runs a fuzzer's function on files, without libFuzzer: for compilers that have none, and for
 * coverage.
 *
 *     replay FILE...
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);

/* Mutators call it; nothing is mutated here. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room) {
    (void)data;
    (void)room;
    return size;
}

int main(int argc, char **argv) {
    static uint8_t data[1 << 20];
    int i;
    for (i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        size_t size;
        uint8_t *copy;
        if (file == NULL) {
            perror(argv[i]);
            return 1;
        }
        size = fread(data, 1, sizeof data, file);
        fclose(file);
        copy = (uint8_t *)malloc(size + 1); /* of its exact size, for sanitizers */
        if (copy == NULL) return 1;
        for (size_t j = 0; j < size; j++) copy[j] = data[j];
        LLVMFuzzerTestOneInput(copy, size);
        free(copy);
    }
    return 0;
}
