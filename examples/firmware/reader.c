/* A firmware that finds the context binary in an EPContext model. No heap, no files, no printf: the
 * model is in flash, and the payload is used in place. */
#define EPCTX_IMPLEMENTATION
#define EPCTX_STATIC
#define EPCTX_NO_MALLOC
#define EPCTX_NO_STDIO
#define EPCTX_NO_EDIT
#define EPCTX_SCAN_DEPTH 8
#define EPCTX_SCAN_TEXT  96 /* of a node: its name and source; longer ones are omitted */
#include "epctx.h"

#include "board.h"

extern const uint8_t flash_file[], flash_file_end[];

static bool read_flash(void *user, uint64_t offset, void *out, size_t size) {
    (void)user;
    memcpy(out, flash_file + offset, size);
    return true;
}

int main(void) {
    static epctx_scan scan;
    epctx_reader source = {NULL, read_flash, 0};
    const uint8_t *payload = NULL;
    size_t size = 0;
    epctx_scan_event event;
    source.size = (uint64_t)(flash_file_end - flash_file);
    epctx_scan_begin(&scan, &source);
    while ((event = epctx_scan_next(&scan, NULL)) != EPCTX_SCAN_END) {
        if (event == EPCTX_SCAN_FAILED) {
            board_print("not a model\n");
            return 1;
        }
        if (event == EPCTX_SCAN_EPNODE && !scan.broken && scan.node.embed_mode == 1) {
            epctx_range range = scan.ranges[EPCTX_EPNODE_EP_CACHE_CONTEXT];
            payload = flash_file + range.offset; /* certain only at the end: use it there */
            size = (size_t)range.length;
            board_print("source ");
            board_write(scan.node.source.data, scan.node.source.size);
            board_print("\n");
        }
    }
    if (size == 0) {
        board_print("no context binary\n");
        return 1;
    }
    board_print("context binary at ");
    board_number((uint64_t)(payload - flash_file));
    board_print(", ");
    board_number(size);
    board_print(" bytes, begins with ");
    board_write((const char *)payload, size < 8 ? size : 8);
    board_print("\n");
    return 0;
}
