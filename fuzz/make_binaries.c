/*
 * Writes the seeds of fuzz_binary: a small file of every kind.
 *
 *     make_binaries FOLDER
 */
#include "../tests/binaries.h"

#include <stdio.h>

static bool save(const char *folder, const char *name, bytes b) {
    char path[1024];
    FILE *file;
    bool good;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "wb");
    good = file != NULL && fwrite(b.data, 1, b.size, file) == b.size && fclose(file) == 0;
    if (!good) fprintf(stderr, "%s: cannot be written\n", path);
    bytes_free(&b);
    return good;
}

int main(int argc, char **argv) {
    const char *folder = argc == 2 ? argv[1] : NULL;
    bytes model;
    bool good;
    if (folder == NULL) {
        fprintf(stderr, "usage: make_binaries FOLDER\n");
        return 2;
    }
    model = onnx_model();
    good = save(folder, "npu", npu_binary());
    good &= save(folder, "toy", toy_binary());
    good &= save(folder, "qnn", qnn_binary("SM8750", "79"));
    good &= save(folder, "dlc", dlc_binary(false));
    good &= save(folder, "dlc_wide", dlc_binary(true));
    good &= save(folder, "container", openvino_container(1024, "1.1.0"));
    good &= save(folder, "blob", openvino_blob(true));
    good &= save(folder, "blob_bare", openvino_blob(false));
    good &= save(folder, "ir", ir_text(true));
    good &= save(folder, "ir_unnamed", ir_text(false));
    good &= save(folder, "tar", tar_file("cache.bin"));
    good &= save(folder, "crlf", with_crlf(&model));
    good &= save(folder, "utf8", as_utf8(&model, false));
    good &= save(folder, "onnx", model);
    return good ? 0 : 1;
}
