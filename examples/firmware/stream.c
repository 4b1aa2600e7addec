/* A firmware whose model is in an SPI flash: it reads the model once, front to back, through a
 * nanopb stream with a buffer of 512 bytes, then the payload it found, piece by piece. */
#define EPCTX_IMPLEMENTATION
#define EPCTX_STATIC
#define EPCTX_NO_MALLOC
#define EPCTX_NO_STDIO
#define EPCTX_NO_EDIT
#define EPCTX_SCAN_DEPTH 16
#define EPCTX_SCAN_TEXT  96
#include "epctx.h"

#include "board.h"

extern const uint8_t flash_file[], flash_file_end[];

/* -- the SPI flash: give it an address, then take bytes -- */

static struct {
    uint64_t address;
    uint64_t bytes; /* bytes read so far */
} spi;

static void spi_read(void *out, size_t size) {
    memcpy(out, flash_file + spi.address, size);
    spi.address += size;
    spi.bytes += size;
}

/* -- a stream over it -- */

static uint8_t buffer[512];
static size_t buffer_at, buffer_size;

static bool stream_read(pb_istream_t *stream, pb_byte_t *out, size_t count) {
    const uint64_t size = (uint64_t)(flash_file_end - flash_file);
    (void)stream;
    while (count > 0) {
        size_t part;
        if (buffer_at == buffer_size) {
            buffer_at = 0;
            buffer_size =
                size - spi.address < sizeof buffer ? (size_t)(size - spi.address) : sizeof buffer;
            if (buffer_size == 0) return false;
            spi_read(buffer, buffer_size);
        }
        part = count < buffer_size - buffer_at ? count : buffer_size - buffer_at;
        memcpy(out, buffer + buffer_at, part);
        buffer_at += part;
        out += part;
        count -= part;
    }
    return true;
}

static void read_payload(epctx_range payload) {
    uint32_t sum = 0;
    spi.address = payload.offset;
    while (payload.length > 0) {
        size_t part = payload.length < sizeof buffer ? (size_t)payload.length : sizeof buffer;
        size_t i;
        spi_read(buffer, part);
        for (i = 0; i < part; i++) sum += buffer[i];
        payload.length -= part;
    }
    board_print(", sum of its bytes ");
    board_number(sum);
}

int main(void) {
    static epctx_scan scan;
    static epctx_range payload;
    pb_istream_t stream = {stream_read, NULL, 0};
    epctx_scan_event event;
    stream.bytes_left = (size_t)(flash_file_end - flash_file);
    epctx_scan_begin_stream(&scan, &stream);
    while ((event = epctx_scan_next(&scan, NULL)) != EPCTX_SCAN_END) {
        if (event == EPCTX_SCAN_FAILED) {
            board_print("not a model\n");
            return 1;
        }
        if (event == EPCTX_SCAN_EPNODE && !scan.broken && scan.node.embed_mode == 1)
            payload = scan.ranges[EPCTX_EPNODE_EP_CACHE_CONTEXT]; /* certain only at the end */
    }
    if (payload.length == 0) {
        board_print("no context binary\n");
        return 1;
    }
    board_print("read ");
    board_number(spi.bytes);
    board_print(" of ");
    board_number((uint64_t)(flash_file_end - flash_file));
    board_print(" bytes; context binary at ");
    board_number(payload.offset);
    read_payload(payload);
    board_print("\n");
    return 0;
}
