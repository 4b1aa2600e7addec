/*
 * A mutator for models: takes one apart with the library's own edits and changes a field somewhere
 * in the tree, so that lengths stay right and names keep meeting names. Blind bytes, which mostly
 * break the protobuf, are for one input in four. With EPCTX_FUZZ_BLIND this is left out.
 */
#ifndef EPCTX_FUZZ_MUTATE_H
#define EPCTX_FUZZ_MUTATE_H

#include "epctx.h"

#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);

#ifndef EPCTX_FUZZ_BLIND

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t room, unsigned seed);

static uint32_t mutate_any(uint64_t *state, uint32_t below) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33) % below;
}

/* One of the first fields of a message, of any kind or of LEN only. */
static bool mutate_field(epctx_view view, bool len, uint64_t *random, epctx_field *out) {
    epctx_cursor it = epctx_view_fields(view, 0);
    epctx_field field;
    uint32_t seen = 0;
    while (seen < 200 && epctx_next_field(&it, &field)) {
        if (len && field.wire != EPCTX_WIRE_LEN) continue;
        if (mutate_any(random, ++seen) == 0) *out = field;
    }
    return seen > 0;
}

/* A message somewhere, the way to it and the number of its field. */
static epctx_view mutate_view(const epctx_model *model, uint64_t *random, epctx_view *parent,
                              uint32_t *number) {
    epctx_view view = epctx_model_read(model).view;
    uint32_t depth = 1 + mutate_any(random, 8);
    epctx_field field;
    memset(parent, 0, sizeof *parent);
    *number = 0;
    while (depth-- > 0 && mutate_field(view, true, random, &field)) {
        *parent = view;
        *number = field.number;
        view = field.body;
    }
    return view;
}

static void mutate_number(epctx_model *model, epctx_view view, uint64_t *random) {
    static const int64_t good[] = {0,  1,  2,  3,  4,  5,  6,    7,         8,         9,
                                   11, 13, 16, 21, 64, -1, -2,   255,       1000,      65536,
                                   10, 12, 14, 18, 22, 24, 4096, INT32_MAX, INT64_MAX, INT64_MIN};
    epctx_field field;
    int64_t value = good[mutate_any(random, sizeof good / sizeof good[0])];
    uint32_t number = 1 + mutate_any(random, 25);
    if (mutate_field(view, false, random, &field) && field.wire == EPCTX_WIRE_VARINT) {
        number = field.number;
        if (mutate_any(random, 2) == 0)
            value = (int64_t)(field.value + 1 - 2 * mutate_any(random, 2));
    }
    (void)epctx_edit_set_field_int(model, view, number, value, NULL);
}

/* A text that stands somewhere else in the model, or a changed one. */
static void mutate_text(epctx_model *model, epctx_view view, uint64_t *random) {
    char text[256];
    epctx_view parent, other;
    epctx_str to = {text, 0};
    uint32_t number;
    if (mutate_any(random, 2) == 0) {
        other = mutate_view(model, random, &parent, &number);
        if (other.data == NULL || other.size > sizeof text) return;
        to.size = other.size;
        memcpy(text, other.data, other.size);
    } else {
        if (view.data == NULL || view.size > sizeof text / 2) return;
        memcpy(text, view.data, view.size);
        to.size = LLVMFuzzerMutate((uint8_t *)text, view.size, sizeof text);
    }
    (void)epctx_edit_replace_str(model, view, to, NULL);
}

static void mutate_once(epctx_model *model, const epctx_model *from, uint64_t *random) {
    epctx_view parent, other_parent, other;
    uint32_t number, other_number;
    epctx_view view = mutate_view(model, random, &parent, &number);
    epctx_field beside;
    memset(&beside, 0, sizeof beside);
    switch (mutate_any(random, 8)) {
    case 0: (void)epctx_edit_remove(model, view, NULL); break;
    case 1: (void)epctx_edit_put_copy(model, parent, number, view, view, NULL, NULL); break;
    case 2: /* the same kind of field from somewhere else, or from the other model */
    case 3:
        other = mutate_view(from, random, &other_parent, &other_number);
        for (int tries = 0; tries < 20 && other_number != number; tries++)
            other = mutate_view(from, random, &other_parent, &other_number);
        if (other.slot != NULL)
            (void)epctx_edit_put_copy(model, parent, number, other, view, NULL, NULL);
        break;
    case 4:
        (void)mutate_field(parent, true, random, &beside);
        (void)epctx_edit_move(model, view, beside.body, NULL, NULL);
        break;
    case 5: mutate_number(model, view, random); break;
    default: mutate_text(model, view, random); break;
    }
}

static bool mutate_add(pb_ostream_t *stream, const pb_byte_t *data, size_t size) {
    memcpy(stream->state, data, size);
    stream->state = (uint8_t *)stream->state + size;
    return true;
}

/* Writes the model over `out`; false when it is too long. */
static bool mutate_write(epctx_model *model, uint8_t *out, size_t room, size_t *size) {
    uint64_t need = epctx_model_size(model);
    pb_ostream_t stream;
    uint8_t *copy;
    bool good;
    if (need == 0 || need > room) return false;
    copy = (uint8_t *)malloc((size_t)need);
    if (copy == NULL) return false;
    memset(&stream, 0, sizeof stream);
    stream.callback = mutate_add;
    stream.state = copy;
    stream.max_size = (size_t)need;
    good = epctx_model_write_stream(model, &stream, NULL) == EPCTX_OK;
    if (good) memcpy(out, copy, (size_t)need);
    *size = (size_t)need;
    free(copy);
    return good;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) {
    uint64_t random = seed;
    uint32_t edits = 1 + mutate_any(&random, 3);
    epctx_model model;
    bool good;
    if (mutate_any(&random, 4) == 0 || size == 0 ||
        epctx_model_open_memory(&model, data, size, NULL, NULL) != EPCTX_OK)
        return LLVMFuzzerMutate(data, size, room);
    while (edits-- > 0) mutate_once(&model, &model, &random);
    good = epctx_edit_mark(&model) > 0 && mutate_write(&model, data, room, &size);
    epctx_model_close(&model);
    return good ? size : LLVMFuzzerMutate(data, size, room);
}

/* `a` with a message of `b`. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t room, unsigned seed) {
    uint64_t random = seed;
    epctx_model first, second;
    size_t size = 0;
    if (epctx_model_open_memory(&first, a, a_size, NULL, NULL) == EPCTX_OK) {
        if (epctx_model_open_memory(&second, b, b_size, NULL, NULL) == EPCTX_OK) {
            epctx_view parent, other_parent, view, other;
            uint32_t number, other_number;
            view = mutate_view(&first, &random, &parent, &number);
            other = mutate_view(&second, &random, &other_parent, &other_number);
            for (int tries = 0; tries < 20 && other_number != number; tries++)
                other = mutate_view(&second, &random, &other_parent, &other_number);
            if (epctx_edit_put_copy(&first, parent, number, other, view, NULL, NULL) == EPCTX_OK &&
                !mutate_write(&first, out, room, &size))
                size = 0;
        }
        epctx_model_close(&second);
    }
    epctx_model_close(&first);
    return size;
}

#endif /* EPCTX_FUZZ_BLIND */

#endif
