/* reader.h - what the readers of context binaries share. Each format has a file of its own. */
#ifndef EPCTX_BINARY_READER_H
#define EPCTX_BINARY_READER_H

#include "binary.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Names longer than this are damage; so a file cannot ask for much memory. */
enum { BINARY_MOST_NAME = 4096 };

/* A graph while it is read. */
typedef struct binary_builder {
    epctx_str name;
    epctx_list inputs, outputs; /* of binary_value */
} binary_builder;

/* The reading of one file. `status`: NOMEM, after which nothing more is read. */
typedef struct binary_reading {
    epctx_span file;
    epctx_arena *arena;
    binary_facts *facts;
    epctx_list graphs, needs, chips; /* of binary_graph, binary_need, epctx_str */
    size_t values;                   /* of all graphs */
    void *tag;                       /* of read_openvino_xml.c, for all models */
    bool needs_only;                 /* nobody asks for more: graphs may be left out */
    bool no_memory;
    bool too_many; /* graphs or values: what is inside is not told, which is no damage */
    bool stopped;  /* a value had no room: what its reader misses then is no damage either */
} binary_reading;

/* -- bytes -- */

/* `size` bytes at `at`, or false: they are not all in `whole`. */
bool binary_part(epctx_span whole, uint64_t at, uint64_t size, epctx_span *out);
/* Little-endian numbers at `at`; 0 outside. */
uint32_t binary_u32(epctx_span whole, uint64_t at);
uint64_t binary_u64(epctx_span whole, uint64_t at);
/* The first place of `word` at or behind `from`, or SIZE_MAX. */
size_t binary_find(epctx_span whole, size_t from, const char *word);

/* -- results -- */

/* The first damage stays; the formats of epctx_fail. */
void binary_damage(binary_reading *r, const char *format, ...);
/* A copy in the arena. */
epctx_str binary_copy(binary_reading *r, epctx_str text);
/* Adds a value to a list of a graph; NULL: no memory, or there are too many, which is damage. */
binary_value *binary_add_value(binary_reading *r, epctx_list *list);
/* Zeroed dimensions of a value; false: no memory, or too many, which is damage. */
bool binary_set_rank(binary_reading *r, binary_value *value, uint64_t rank, int64_t **dims);
void binary_add_graph(binary_reading *r, const binary_builder *graph, bool values_known);
void binary_add_need(binary_reading *r, const binary_need *need);
/* A chip, once, and in capitals as vendors write it. */
void binary_add_chip(binary_reading *r, epctx_str name);

/* -- formats -- */

void binary_read_npu(binary_reading *r);
void binary_read_toy(binary_reading *r);
void binary_read_qnn(binary_reading *r);
void binary_read_dlc(binary_reading *r);
void binary_read_openvino_container(binary_reading *r);
void binary_read_openvino_blob(binary_reading *r);
void binary_read_openvino_ir(binary_reading *r);

/* A blob of OpenVINO, for the graph `name`. */
void binary_openvino_blob(binary_reading *r, epctx_span blob, epctx_str name);
/* The inputs and outputs of a model in OpenVINO's XML; each byte of it was changed by the twelve
 * of `mask` in turn. `*constants`: how many bytes its constants take. False: it is none. */
bool binary_openvino_model(binary_reading *r, epctx_span text, const uint8_t mask[12],
                           binary_builder *graph, uint64_t *constants);
/* What stands as text in a QNN binary. */
void binary_qnn_text(binary_reading *r, epctx_span file);

#ifdef __cplusplus
}
#endif

#endif
