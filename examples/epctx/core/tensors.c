/* Raw little-endian tensor files, random inputs, and the summary of an output. */
#define _POSIX_C_SOURCE 200809L

#include "tensors.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ONNX element types beyond those that epctx.h names. */
enum { FLOAT64 = 11, UINT16 = 4, INT16 = 5, UINT32 = 12, UINT64 = 13 };

/* -- byte order: files are little-endian, tensors in memory are the processor's -- */

static bool big_endian(void) {
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 0;
}

/* From the processor's order to that of the files, or back. */
static void turn(const session_value *value) {
    size_t size = epctx_elem_size(value->type.elem_type);
    size_t at, i;
    if (!big_endian() || size < 2) return;
    for (at = 0; at + size <= value->size; at += size) {
        for (i = 0; i < size / 2; i++) {
            uint8_t kept = value->data[at + i];
            value->data[at + i] = value->data[at + size - 1 - i];
            value->data[at + size - 1 - i] = kept;
        }
    }
}

/* -- random -- */

/* xorshift64*: the state is never 0. */
static uint64_t next_random(uint64_t *state) {
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * UINT64_C(2685821657736338717);
}

/* Writes the low bytes of `bits` as this processor keeps numbers. */
static void store(uint8_t *to, uint64_t bits, size_t size) {
    size_t i;
    for (i = 0; i < size; i++) to[big_endian() ? size - 1 - i : i] = (uint8_t)(bits >> 8 * i);
}

/* -- 16-bit floats -- */

static uint32_t float_bits(float f) {
    uint32_t word;
    memcpy(&word, &f, sizeof word);
    return word;
}

/* Of a number in [-1, 1) with at most 11 bits: exact, or 0 where it would not be normal. */
static uint64_t half_bits(float f) {
    const uint32_t word = float_bits(f), exponent = word >> 23 & 0xff;
    if (exponent < 113) return 0;
    return (word >> 16 & 0x8000) | (exponent - 112) << 10 | (word >> 13 & 0x3ff);
}

static double half_number(uint32_t bits) {
    const uint32_t exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
    double size = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                  : exponent == 0 ? ldexp((double)fraction, -24)
                                  : ldexp((double)(fraction + 1024), (int)exponent - 25);
    return (bits & 0x8000) != 0 ? -size : size;
}

static uint64_t random_element(int32_t elem_type, uint64_t *state) {
    uint64_t bits = next_random(state) >> 40; /* 24 bits: exact as a float */
    uint64_t out = 0;
    float f = (float)bits / 8388608.0f - 1.0f;
    double d = (double)f;
    uint32_t word;
    switch (elem_type) {
    case EPCTX_ONNX_FLOAT: memcpy(&word, &f, sizeof word); return word;
    case FLOAT64: memcpy(&out, &d, sizeof out); return out;
    case EPCTX_ONNX_FLOAT16: return half_bits((float)(bits >> 13) / 1024.0f - 1.0f);
    case EPCTX_ONNX_BFLOAT16: return float_bits((float)(bits >> 16) / 128.0f - 1.0f) >> 16;
    case EPCTX_ONNX_UINT8:
    case EPCTX_ONNX_INT8: return bits & 0xff;
    case EPCTX_ONNX_BOOL: return bits & 1;
    case EPCTX_ONNX_INT32:
    case EPCTX_ONNX_INT64:
    case INT16:
    case UINT16:
    case UINT32:
    case UINT64: return bits % 10;
    default: return 0; /* a bit pattern that is 0 in every format */
    }
}

void tensors_fill(const session_value *value, uint64_t seed, size_t index) {
    uint64_t state =
        (seed + 1) * UINT64_C(0x9E3779B97F4A7C15) + index * UINT64_C(0xD1B54A32D192ED03);
    size_t size = epctx_elem_size(value->type.elem_type);
    size_t at;
    if (state == 0) state = 1;
    (void)next_random(&state); /* near seeds give near first numbers */
    for (at = 0; at + size <= value->size; at += size)
        store(value->data + at, random_element(value->type.elem_type, &state), size);
}

/* -- files -- */

static epctx_status io_problem(epctx_error *error, const char *path) {
    return epctx_fail(error, errno == ENOENT ? EPCTX_ERR_NOT_FOUND : EPCTX_ERR_IO, "%s: %s", path,
                      strerror(errno));
}

static bool join(char *path, size_t capacity, const char *folder, const char *word, size_t index) {
    int size = snprintf(path, capacity, "%s/%s_%zu.bin", folder, word, index);
    return size >= 0 && (size_t)size < capacity;
}

static epctx_status read_file(const char *path, const session_value *value, epctx_error *error) {
    FILE *file = fopen(path, "rb");
    size_t got;
    int more;
    if (file == NULL) return io_problem(error, path);
    got = fread(value->data, 1, value->size, file);
    more = fgetc(file);
    if (ferror(file)) {
        epctx_status status = io_problem(error, path);
        fclose(file);
        return status;
    }
    fclose(file);
    if (got != value->size || more != EOF)
        return epctx_fail(error, EPCTX_ERR_ARG, "%s: %s than the %u bytes of the input '%S'", path,
                          more != EOF ? "more" : "less", (uint64_t)value->size, &value->type.name);
    turn(value);
    return EPCTX_OK;
}

epctx_status tensors_read(const tensor_list *inputs, const char *folder, epctx_error *error) {
    char path[EPCTX_PATH_MAX];
    size_t i;
    epctx_error_clear(error);
    for (i = 0; i < inputs->count; i++) {
        epctx_status status;
        if (!join(path, sizeof path, folder, "input", i))
            return epctx_fail(error, EPCTX_ERR_LIMIT, "%s: the path is too long", folder);
        status = read_file(path, inputs->values[i], error);
        if (status != EPCTX_OK) return status;
    }
    return EPCTX_OK;
}

/* "<word> <i> <element type> <d0,d1,... or -> <name>" */
static void write_types(FILE *file, const tensor_list *list, const char *word) {
    size_t i;
    int32_t k;
    for (i = 0; i < list->count; i++) {
        const epctx_value *type = &list->values[i]->type;
        fprintf(file, "%s %zu %" PRId32 " ", word, i, type->elem_type);
        for (k = 0; k < type->rank; k++)
            fprintf(file, "%s%" PRId64, k > 0 ? "," : "", type->dims[k]);
        fputs(type->rank == 0 ? "- " : " ", file);
        cli_put(file, type->name);
        fputc('\n', file);
    }
}

/* What io.txt says, from malloc; NULL: out of memory. */
static char *make_list(const tensor_list *inputs, const tensor_list *outputs, size_t *size) {
    char *text = NULL;
    FILE *file = open_memstream(&text, size);
    bool good;
    if (file == NULL) return NULL;
    write_types(file, inputs, "input");
    write_types(file, outputs, "output");
    good = !ferror(file);
    if (fclose(file) == 0 && good) return text;
    free(text);
    return NULL;
}

enum { NAME_ROOM = 40 };

/* Adds a file for each value, named after its number. */
static void add_values(const tensor_list *list, const char *word, cli_file *files,
                       char (*names)[NAME_ROOM], size_t *used) {
    size_t i;
    for (i = 0; i < list->count; i++, ++*used) {
        snprintf(names[*used], NAME_ROOM, "%s_%zu.bin", word, i);
        files[*used].name = names[*used];
        files[*used].data = list->values[i]->data;
        files[*used].size = list->values[i]->size;
    }
}

/* All values as files have them, and back; an output may be an input, too. */
static void turn_all(const tensor_list *inputs, const tensor_list *outputs) {
    size_t i, k;
    for (i = 0; i < inputs->count; i++) turn(inputs->values[i]);
    for (i = 0; i < outputs->count; i++) {
        for (k = 0; k < inputs->count && inputs->values[k] != outputs->values[i]; k++) continue;
        if (k == inputs->count) turn(outputs->values[i]);
    }
}

epctx_status tensors_write(const tensor_list *inputs, const tensor_list *outputs,
                           const char *folder, bool with_inputs, epctx_error *error) {
    size_t most = inputs->count + outputs->count + 1, used = 1, size = 0;
    cli_file *files = (cli_file *)calloc(most, sizeof *files);
    char(*names)[NAME_ROOM] = (char(*)[NAME_ROOM])calloc(most, sizeof *names);
    char *list = make_list(inputs, outputs, &size);
    epctx_status status = cli_make_folder(folder, error);
    if (files == NULL || names == NULL || list == NULL)
        status = epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    if (status == EPCTX_OK) {
        files[0].name = "io.txt";
        files[0].data = list;
        files[0].size = size;
        if (with_inputs) add_values(inputs, "input", files, names, &used);
        add_values(outputs, "output", files, names, &used);
        turn_all(inputs, outputs);
        status = cli_write_files(folder, files, used, error);
        turn_all(inputs, outputs);
    }
    free(list);
    free(names);
    free(files);
    return status;
}

/* -- lists -- */

bool tensors_make_list(tensor_list *out, size_t count, epctx_arena *arena) {
    session_value *values = (session_value *)epctx_arena_array(arena, count, sizeof *values);
    size_t i;
    out->count = count;
    out->values = (session_value **)epctx_arena_array(arena, count, sizeof *out->values);
    if (values == NULL || out->values == NULL) return false;
    for (i = 0; i < count; i++) out->values[i] = &values[i];
    return true;
}

bool tensors_describe(session_value *value, epctx_str name, int32_t elem_type, const int64_t *dims,
                      size_t rank, epctx_arena *arena) {
    const size_t width = epctx_elem_size(elem_type), alignment = 64;
    int64_t *copy = (int64_t *)epctx_arena_array(arena, rank, sizeof *copy);
    char *text = epctx_arena_copy(arena, name);
    uint8_t *data;
    uint64_t size = width;
    size_t i;
    if (copy == NULL || text == NULL || width == 0 || rank > INT32_MAX) return false;
    for (i = 0; i < rank; i++) {
        if (dims[i] < 0 || (dims[i] > 0 && size > (UINT64_C(1) << 62) / (uint64_t)dims[i]))
            return false;
        copy[i] = dims[i];
        size *= (uint64_t)dims[i];
    }
    if (size > SIZE_MAX - alignment) return false;
    data = (uint8_t *)epctx_arena_alloc(arena, (size_t)size + alignment);
    if (data == NULL) return false;
    value->type.name.data = text;
    value->type.name.size = name.size;
    value->type.elem_type = elem_type;
    value->type.rank = (int32_t)rank;
    value->type.dims = copy;
    value->data = data + (alignment - (uintptr_t)data % alignment) % alignment;
    value->size = (size_t)size;
    return true;
}

/* -- one file for another process: counts; for each value four numbers, dims, name, data -- */

static void save_list(FILE *out, const tensor_list *list) {
    size_t i;
    for (i = 0; i < list->count; i++) {
        const session_value *v = list->values[i];
        const uint64_t head[4] = {(uint64_t)v->type.elem_type, (uint64_t)v->type.rank,
                                  v->type.name.size, v->size};
        fwrite(head, sizeof head, 1, out);
        fwrite(v->type.dims, sizeof *v->type.dims, (size_t)v->type.rank, out);
        fwrite(v->type.name.data, 1, v->type.name.size, out);
        fwrite(v->data, 1, v->size, out);
    }
}

epctx_status tensors_save(const char *path, const tensor_list *inputs, const tensor_list *outputs,
                          epctx_error *error) {
    const uint64_t counts[2] = {inputs->count, outputs->count};
    FILE *out = fopen(path, "wb");
    bool good;
    epctx_error_clear(error);
    if (out == NULL) return io_problem(error, path);
    fwrite(counts, sizeof counts, 1, out);
    save_list(out, inputs);
    save_list(out, outputs);
    good = !ferror(out);
    good = fclose(out) == 0 && good;
    return good ? EPCTX_OK : io_problem(error, path);
}

static bool restore_list(FILE *in, tensor_list *list, uint64_t count, epctx_arena *arena) {
    enum { MOST_VALUES = 1 << 16, MOST_RANK = 64, MOST_NAME = 1 << 20 };
    size_t i;
    if (count > MOST_VALUES || !tensors_make_list(list, (size_t)count, arena)) return false;
    for (i = 0; i < list->count; i++) {
        session_value *v = list->values[i];
        uint64_t head[4];
        int64_t dims[MOST_RANK];
        epctx_str name;
        char *text;
        if (fread(head, sizeof head, 1, in) != 1 || head[0] > INT32_MAX || head[1] > MOST_RANK ||
            head[2] > MOST_NAME || fread(dims, sizeof *dims, (size_t)head[1], in) != head[1])
            return false;
        name.size = (size_t)head[2];
        name.data = text = (char *)epctx_arena_alloc(arena, name.size + 1);
        if (text == NULL || fread(text, 1, name.size, in) != name.size ||
            !tensors_describe(v, name, (int32_t)head[0], dims, (size_t)head[1], arena) ||
            v->size != head[3] || fread(v->data, 1, v->size, in) != v->size)
            return false;
    }
    return true;
}

epctx_status tensors_restore(const char *path, epctx_arena *arena, tensor_list *inputs,
                             tensor_list *outputs, epctx_error *error) {
    uint64_t counts[2];
    FILE *in = fopen(path, "rb");
    bool good;
    epctx_error_clear(error);
    memset(inputs, 0, sizeof *inputs);
    memset(outputs, 0, sizeof *outputs);
    if (in == NULL) return io_problem(error, path);
    good = fread(counts, sizeof counts, 1, in) == 1 && restore_list(in, inputs, counts[0], arena) &&
           restore_list(in, outputs, counts[1], arena);
    fclose(in);
    return good ? EPCTX_OK
                : epctx_fail(error, EPCTX_ERR_IO, "%s: the results of a run are incomplete", path);
}

/* -- summary -- */

static uint64_t load(const uint8_t *from, size_t size) {
    uint64_t bits = 0;
    size_t i;
    for (i = 0; i < size; i++) bits |= (uint64_t)from[big_endian() ? size - 1 - i : i] << 8 * i;
    return bits;
}

bool tensors_element(const session_value *value, size_t index, double *out) {
    size_t size = epctx_elem_size(value->type.elem_type);
    uint64_t bits = load(value->data + index * size, size);
    uint32_t word = (uint32_t)bits;
    float f;
    switch (value->type.elem_type) {
    case EPCTX_ONNX_FLOAT:
        memcpy(&f, &word, sizeof f);
        *out = (double)f;
        return true;
    case FLOAT64: memcpy(out, &bits, sizeof *out); return true;
    case EPCTX_ONNX_FLOAT16: *out = half_number(word); return true;
    case EPCTX_ONNX_BFLOAT16:
        word <<= 16;
        memcpy(&f, &word, sizeof f);
        *out = (double)f;
        return true;
    case EPCTX_ONNX_UINT8:
    case EPCTX_ONNX_BOOL:
    case UINT16:
    case UINT32:
    case UINT64: *out = (double)bits; return true;
    case EPCTX_ONNX_INT8: *out = (double)(int8_t)bits; return true;
    case INT16: *out = (double)(int16_t)bits; return true;
    case EPCTX_ONNX_INT32: *out = (double)(int32_t)bits; return true;
    case EPCTX_ONNX_INT64: *out = (double)(int64_t)bits; return true;
    default: return false;
    }
}

bool tensors_integer(const session_value *value, size_t index, uint64_t *out, bool *negative) {
    const size_t size = epctx_elem_size(value->type.elem_type);
    int64_t number;
    *negative = false;
    *out = load(value->data + index * size, size);
    switch (value->type.elem_type) {
    case EPCTX_ONNX_UINT8:
    case EPCTX_ONNX_BOOL:
    case UINT16:
    case UINT32:
    case UINT64: return true;
    case EPCTX_ONNX_INT8: number = (int8_t)*out; break;
    case INT16: number = (int16_t)*out; break;
    case EPCTX_ONNX_INT32: number = (int32_t)*out; break;
    case EPCTX_ONNX_INT64: number = (int64_t)*out; break;
    default: return false;
    }
    *out = (uint64_t)number;
    *negative = number < 0;
    return true;
}

void tensors_print_type(const epctx_value *type) {
    int32_t i;
    printf(" %s[", epctx_elem_name(type->elem_type));
    for (i = 0; i < type->rank; i++) printf("%s%" PRId64, i > 0 ? "," : "", type->dims[i]);
    putchar(']');
}

typedef struct summary {
    size_t count;       /* 0: the type has no numbers here */
    size_t least, most; /* elements: which is the smallest and the largest */
    double mean;
} summary;

/* Integers that are one number as a double: which is the smaller one. */
static bool is_less(const session_value *value, size_t i, size_t k) {
    uint64_t a, b;
    bool below_a, below_b;
    if (!tensors_integer(value, i, &a, &below_a) || !tensors_integer(value, k, &b, &below_b))
        return false;
    return below_a != below_b ? below_a : a < b; /* two's complement */
}

static summary sum_up(const session_value *value) {
    size_t width = epctx_elem_size(value->type.elem_type);
    size_t count = width > 0 ? value->size / width : 0;
    summary out = {0, 0, 0, 0};
    double least = INFINITY, most = -INFINITY, x = 0;
    size_t i;
    for (i = 0; i < count && tensors_element(value, i, &x); i++) {
        if (x < least || (x <= least && is_less(value, i, out.least))) {
            least = x;
            out.least = i;
        }
        if (x > most || (x >= most && is_less(value, out.most, i))) {
            most = x;
            out.most = i;
        }
        out.mean += x;
        out.count++;
    }
    out.mean /= out.count > 0 ? (double)out.count : 1;
    return out;
}

static size_t shown(const summary *out) {
    return out->count < 4 ? out->count : 4;
}

/* Integers in full. */
static void print_element(const session_value *value, size_t index) {
    uint64_t bits = 0;
    bool negative = false;
    double x = 0;
    if (tensors_integer(value, index, &bits, &negative))
        if (negative)
            printf("%" PRId64, (int64_t)bits);
        else
            printf("%" PRIu64, bits);
    else if (tensors_element(value, index, &x))
        printf("%.6g", x);
}

static void put_element(json_writer *w, const char *key, const session_value *value, size_t index) {
    uint64_t bits = 0;
    bool negative = false;
    double x = 0;
    if (!tensors_integer(value, index, &bits, &negative)) {
        tensors_element(value, index, &x);
        if (value->type.elem_type == FLOAT64)
            json_double(w, key, x);
        else
            json_real(w, key, x);
    } else if (negative) {
        json_int(w, key, (int64_t)bits);
    } else {
        json_uint(w, key, bits);
    }
}

void tensors_print(const session_value *value, size_t index) {
    summary out = sum_up(value);
    size_t i;
    printf("output %-7zu '", index);
    cli_put(stdout, value->type.name);
    putchar('\'');
    tensors_print_type(&value->type);
    if (out.count > 0) {
        fputs(" min ", stdout);
        print_element(value, out.least);
        fputs(", max ", stdout);
        print_element(value, out.most);
        printf(", mean %.6g, first", out.mean);
        for (i = 0; i < shown(&out); i++) {
            putchar(' ');
            print_element(value, i);
        }
    }
    putchar('\n');
}

void tensors_put_json(json_writer *w, const session_value *value) {
    summary out = sum_up(value);
    size_t i;
    int32_t k;
    json_object(w, NULL, JSON_INLINE);
    json_str(w, "name", value->type.name);
    json_int(w, "elem_type", value->type.elem_type);
    json_array(w, "dims", JSON_INLINE);
    for (k = 0; k < value->type.rank; k++) json_int(w, NULL, value->type.dims[k]);
    json_end(w);
    if (out.count > 0) {
        put_element(w, "min", value, out.least);
        put_element(w, "max", value, out.most);
        json_real(w, "mean", out.mean);
        json_array(w, "first", JSON_INLINE);
        for (i = 0; i < shown(&out); i++) put_element(w, NULL, value, i);
        json_end(w);
    }
    json_end(w);
}
