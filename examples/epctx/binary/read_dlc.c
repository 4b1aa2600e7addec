/* QNN's DLC, a ZIP file (QAIRT 2.51, 2026): its directory says for which chips it has a context
 * ("htp.cache.sm8750.0") and what they share ("htp.shared.weights.<...>"). Entries are stored, so
 * what stands in the contexts as text can be read in place. */
#include "reader.h"

enum {
    END = 22, /* records without their names */
    END64 = 56,
    LOCATOR = 20,
    ENTRY = 46,
    LOCAL = 30,
    MOST_COMMENT = 65535,
    MOST_ENTRIES = 65536,
    MOST_CONTEXTS = 32 /* that are searched for text */
};

typedef struct directory {
    uint64_t at, size, count;
} directory;

typedef struct entry {
    epctx_str name;
    uint32_t method;
    uint64_t size, at; /* as stored; of its local header */
} entry;

static uint32_t u16(epctx_span file, uint64_t at) {
    epctx_span p;
    return binary_part(file, at, 2, &p) ? (uint32_t)p.data[0] | (uint32_t)p.data[1] << 8 : 0;
}

/* The last record of the file. A comment may follow it, and what was appended by accident. */
static bool find_end(epctx_span file, uint64_t *at) {
    uint64_t back;
    for (back = END; back <= file.size && back <= END + MOST_COMMENT; back++) {
        epctx_span end;
        if (!binary_part(file, file.size - back, back, &end) || memcmp(end.data, "PK\5\6", 4) != 0)
            continue;
        *at = file.size - back;
        return true;
    }
    return false;
}

static bool find_directory(epctx_span file, directory *out) {
    uint64_t end, end64;
    epctx_span record;
    if (!find_end(file, &end)) return false;
    out->count = u16(file, end + 10);
    out->size = binary_u32(file, end + 12);
    out->at = binary_u32(file, end + 16);
    if (out->count < 0xffff && out->size < UINT32_MAX && out->at < UINT32_MAX) return true;
    if (end < LOCATOR || !binary_part(file, end - LOCATOR, LOCATOR, &record) ||
        memcmp(record.data, "PK\6\7", 4) != 0)
        return false;
    end64 = binary_u64(record, 8);
    if (!binary_part(file, end64, END64, &record) || memcmp(record.data, "PK\6\6", 4) != 0)
        return false;
    out->count = binary_u64(record, 32);
    out->size = binary_u64(record, 40);
    out->at = binary_u64(record, 48);
    return true;
}

/* Sizes that do not fit 32 bits stand in an extra field, in this order. */
static void wide_sizes(epctx_span extra, uint64_t *whole, uint64_t *stored, uint64_t *at) {
    uint64_t *const fields[3] = {whole, stored, at};
    uint64_t place = 0;
    while (place + 4 <= extra.size) {
        const uint64_t size = u16(extra, place + 2);
        epctx_span field;
        uint64_t next = 0;
        size_t i;
        if (!binary_part(extra, place + 4, size, &field)) return;
        for (i = 0; u16(extra, place) == 1 && i < 3; i++) {
            if (*fields[i] != UINT32_MAX || next + 8 > field.size) continue;
            *fields[i] = binary_u64(field, next);
            next += 8;
        }
        place += 4 + size;
    }
}

/* Reads the entry at the beginning of `*rest` and takes it off. */
static bool next_entry(epctx_span *rest, entry *out) {
    epctx_span part;
    uint64_t whole, name_size, extra_size, size;
    if (rest->size < ENTRY || memcmp(rest->data, "PK\1\2", 4) != 0) return false;
    name_size = u16(*rest, 28);
    extra_size = u16(*rest, 30);
    size = ENTRY + name_size + extra_size + u16(*rest, 32);
    if (size > rest->size) return false;
    out->method = u16(*rest, 10);
    out->size = binary_u32(*rest, 20);
    whole = binary_u32(*rest, 24);
    out->at = binary_u32(*rest, 42);
    out->name.data = (const char *)rest->data + ENTRY;
    out->name.size = (size_t)name_size;
    if (binary_part(*rest, ENTRY + name_size, extra_size, &part))
        wide_sizes(part, &whole, &out->size, &out->at);
    rest->data += size;
    rest->size -= (size_t)size;
    return true;
}

static bool contents_of(epctx_span file, const entry *e, epctx_span *out) {
    epctx_span local;
    uint64_t at;
    if (!binary_part(file, e->at, LOCAL, &local) || memcmp(local.data, "PK\3\4", 4) != 0)
        return false;
    at = e->at + LOCAL + u16(local, 26) + u16(local, 28);
    return binary_part(file, at, e->size, out);
}

/* "htp.cache.sm8750.0": the chip; empty for other entries. */
static epctx_str chip_of(epctx_str name) {
    static const char start[] = "htp.cache.";
    epctx_str rest = name, chip;
    if (!epctx_str_starts(name, start)) return epctx_str_of(NULL);
    rest.data += sizeof start - 1;
    rest.size -= sizeof start - 1;
    chip = epctx_str_cut(&rest, '.');
    return rest.data != NULL ? chip : epctx_str_of(NULL);
}

/* "dlc.metadata2.3.0": the version of the container. */
static void note_version(binary_reading *r, epctx_str name) {
    static const char start[] = "dlc.metadata";
    if (!epctx_str_starts(name, start) || name.size > BINARY_MOST_NAME) return;
    name.data += sizeof start - 1;
    name.size -= sizeof start - 1;
    if (r->facts->format_version.size == 0) r->facts->format_version = name;
}

void binary_read_dlc(binary_reading *r) {
    directory d;
    epctx_span rest;
    uint64_t i, contexts = 0;
    if (!find_directory(r->file, &d)) {
        binary_damage(r, "is cut off: the directory at its end is missing");
        return;
    }
    if (!binary_part(r->file, d.at, d.size, &rest) || d.count > MOST_ENTRIES ||
        d.count > d.size / ENTRY) {
        binary_damage(r, "is damaged: its directory lies outside of the file");
        return;
    }
    for (i = 0; i < d.count && !r->no_memory; i++) {
        entry e;
        epctx_span contents;
        epctx_str chip;
        if (!next_entry(&rest, &e)) {
            binary_damage(r, "is damaged: entry %u of %u of its directory is damaged", i + 1,
                          d.count);
            return;
        }
        if (!contents_of(r->file, &e, &contents)) {
            binary_damage(r, "is damaged: '%S' lies outside of the file", &e.name);
            continue;
        }
        chip = chip_of(e.name);
        note_version(r, e.name);
        if (chip.size == 0) continue;
        binary_add_chip(r, chip);
        if (e.method == 0 && contexts++ < MOST_CONTEXTS) binary_qnn_text(r, contents);
    }
}
