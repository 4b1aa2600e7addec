/* A folder of its own for a test program, and the model that most of them compile. The program
 * defines _XOPEN_SOURCE 700 first. */
#ifndef EPCTX_TEST_FILES_H
#define EPCTX_TEST_FILES_H

#include "build.h"
#include "temp.h"
#include "test.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[TEST_TEMP];

TEST_UNUSED static const char *at(const char *name) {
    static char path[32][TEST_TEMP + 768]; /* a name lives for the next 31 calls */
    static int turn;
    turn = (turn + 1) % 32;
    snprintf(path[turn], sizeof path[turn], "%s/%s", root, name);
    return path[turn];
}

TEST_UNUSED static void make_file(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(data, 1, size, file) != size || fclose(file) != 0) abort();
}

/* Writes the bytes into the root folder and frees them. */
TEST_UNUSED static void save_bytes(const char *name, bytes *b) {
    make_file(at(name), b->data, b->size);
    bytes_free(b);
}

/* Writes sixteen bytes of one value. */
TEST_UNUSED static void save_sixteen(const char *name, uint8_t value) {
    uint8_t data[16];
    memset(data, value, sizeof data);
    make_file(at(name), data, sizeof data);
}

/* Writes a model around `graph`, which is freed. */
TEST_UNUSED static void save_model(const char *name, bytes *graph) {
    bytes b = new_model(graph);
    save_bytes(name, &b);
}

TEST_UNUSED static bytes read_file(const char *path) {
    bytes b = {0};
    char block[4096];
    size_t size;
    FILE *file = fopen(path, "rb");
    while (file != NULL && (size = fread(block, 1, sizeof block, file)) > 0)
        bytes_add(&b, block, size);
    if (file != NULL) fclose(file);
    return b;
}

/* Names in the root folder, sorted, each with a blank behind it. */
TEST_UNUSED static const char *listing(void) {
    static char text[2000];
    struct dirent **entries;
    int count = scandir(root, &entries, NULL, alphasort);
    text[0] = '\0';
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.' || strlen(entries[i]->d_name) > 2) {
            strcat(text, entries[i]->d_name);
            strcat(text, " ");
        }
        free(entries[i]);
    }
    if (count >= 0) free(entries);
    return text;
}

TEST_UNUSED static void clear_root(void) {
    struct dirent **entries;
    int count = scandir(root, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        remove(at(entries[i]->d_name));
        free(entries[i]);
    }
    if (count >= 0) free(entries);
}

TEST_UNUSED static bool make_root(void) {
    return test_temp(root);
}

TEST_UNUSED static void remove_root(void) {
    clear_root();
    rmdir(root);
}

/* x -> Take -> Take -> Keep -> Take -> y: two partitions around a node that stays; `first` makes
 * one generation differ from another. */
TEST_UNUSED static bytes source(float first) {
    static const int64_t dims[] = {2, -1};
    bytes graph = {0}, model, function = {0};
    float weights[2] = {0, 1};
    weights[0] = first;
    add_node(&graph, "Take", "n0", "x,w", "a");
    add_node(&graph, "Take", "n1", "a,x2", "b,b2");
    add_node(&graph, "Keep", "n2", "b,k", "c");
    add_node(&graph, "Take", "n3", "c,b2,w", "y");
    put_str(&graph, 2, "main");
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_INPUT, "x2", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_VALUE, "a", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_VALUE, "b", EPCTX_ONNX_FLOAT, dims);
    add_floats(&graph, "w", weights, 2);
    add_floats(&graph, "k", weights, 2);
    put_str(&graph, 1001, "unknown in the graph");
    model = new_model(&graph);
    put_str(&model, 6, "doc of the model");
    put_str(&function, 1, "my_function");
    put_child(&model, 25, &function);
    return model;
}

TEST_UNUSED static void make_named(const char *name, float first) {
    bytes b = source(first);
    save_bytes(name, &b);
}

TEST_UNUSED static void make_source(float first) {
    make_named("m.onnx", first);
}

/* Files that are not flushed: what is written a thousand times need not survive a power cut. */
TEST_UNUSED static epctx_status no_sync(void *user, epctx_io_file *file, epctx_error *error) {
    (void)user, (void)file, (void)error;
    return EPCTX_OK;
}

TEST_UNUSED static epctx_io quick_io(void) {
    epctx_io io = *epctx_io_files();
    io.sync_fn = no_sync;
    return io;
}

#endif
