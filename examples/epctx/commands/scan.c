/* epctx scan: the EPContext nodes of a model in constant memory, from a file of any size or from
 * standard input. */
#define _POSIX_C_SOURCE   200809L
#define _FILE_OFFSET_BITS 64

#include "core/options.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool read_at(void *user, uint64_t offset, void *out, size_t size) {
    int fd = *(const int *)user;
    char *to = (char *)out;
    while (size > 0) {
        ssize_t n = pread(fd, to, size, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        cli_progress_set(offset + (uint64_t)n);
        to += n;
        offset += (uint64_t)n;
        size -= (size_t)n;
    }
    return true;
}

/* nanopb's contract: at the end of the input the stream has no bytes left. */
static bool read_input(pb_istream_t *stream, pb_byte_t *out, size_t count) {
    size_t done = fread(out, 1, count, stdin);
    cli_progress_add(done);
    if (done < count) stream->bytes_left = 0;
    return done == count;
}

static void put_text(const char *word, epctx_str text, epctx_range range) {
    printf("    %-22s ", word);
    if (text.data == NULL && range.length > 0)
        printf("%" PRIu64 " bytes at %" PRIu64, range.length, range.offset);
    else
        cli_put(stdout, text);
    putchar('\n');
}

static const char *const words[EPCTX_EPNODE_ATTR_COUNT] = {
#define WORD(id, name, type, member) name,
    EPCTX_EPNODE_ATTR_LIST(WORD)
#undef WORD
};

static epctx_str string_of(const epctx_epnode *node, int id) {
    epctx_attr attrs[EPCTX_EPNODE_ATTR_COUNT];
    size_t count = epctx_epnode_attrs(node, attrs), i;
    for (i = 0; i < count; i++)
        if (epctx_str_is(attrs[i].name, words[id])) return attrs[i].s;
    return epctx_str_of(NULL);
}

static bool is_text(int id) {
    return id != EPCTX_EPNODE_MAIN_CONTEXT && id != EPCTX_EPNODE_EMBED_MODE &&
           id != EPCTX_EPNODE_MAX_SIZE;
}

/* A payload is named by its place, whatever its size. */
static bool is_payload(const epctx_scan *scan, int id) {
    return id == EPCTX_EPNODE_EP_CACHE_CONTEXT && scan->node.embed_mode == 1;
}

static void node_text(const epctx_scan *scan) {
    const epctx_epnode *node = &scan->node;
    int id;
    fputs("node '", stdout);
    cli_put(stdout, node->name);
    printf("'%s%s\n    %-22s %" PRId64 "\n    %-22s %" PRId64 "\n",
           scan->depth > 0 ? ", in a body" : "", scan->broken ? ", broken" : "", "main_context",
           node->main_context, "embed_mode", node->embed_mode);
    for (id = 0; id < EPCTX_EPNODE_ATTR_COUNT; id++)
        if (is_text(id) && (node->present & 1u << id) != 0)
            put_text(words[id], is_payload(scan, id) ? epctx_str_of(NULL) : string_of(node, id),
                     scan->ranges[id]);
}

static void json_range(json_writer *w, epctx_range range) {
    json_uint(w, "offset", range.offset);
    json_uint(w, "length", range.length);
}

static void node_json(json_writer *w, const epctx_scan *scan) {
    const epctx_epnode *node = &scan->node;
    int id;
    json_object(w, NULL, JSON_INLINE);
    json_str(w, "name", node->name);
    json_uint(w, "depth", scan->depth);
    json_bool(w, "broken", scan->broken);
    json_int(w, "main_context", node->main_context);
    json_int(w, "embed_mode", node->embed_mode);
    json_int(w, "max_size", node->max_size);
    for (id = 0; id < EPCTX_EPNODE_ATTR_COUNT; id++) {
        epctx_str text = string_of(node, id);
        if (!is_text(id) || (node->present & 1u << id) == 0) continue;
        if (!is_payload(scan, id) && text.data != NULL) {
            json_str(w, words[id], text);
            continue;
        }
        json_object(w, words[id], JSON_INLINE);
        json_range(w, scan->ranges[id]);
        json_end(w);
    }
    json_end(w);
}

/* null: the text was too long to keep. */
static void json_kept(json_writer *w, const char *key, epctx_str text, epctx_range range) {
    if (text.data == NULL && range.length > 0)
        json_null(w, key);
    else
        json_str(w, key, text);
}

static void metadata_json(json_writer *w, const epctx_scan *scan) {
    json_kept(w, "key", scan->key, scan->ranges[0]);
    json_kept(w, "value", scan->value, scan->ranges[1]);
    json_range(w, scan->ranges[1]);
}

/* Tensors whose data is in a file. Length UINT64_MAX is the rest of it: left out. */
static void external_text(const epctx_scan *scan) {
    fputs("external '", stdout);
    cli_put(stdout, scan->key);
    fputs(scan->depth > 0 ? "', in a node\n" : "'\n", stdout);
    put_text("location", scan->value, scan->location);
    if (scan->data.offset != UINT64_MAX)
        printf("    %-22s %" PRIu64 "\n", "offset", scan->data.offset);
    if (scan->data.length != UINT64_MAX)
        printf("    %-22s %" PRIu64 "\n", "length", scan->data.length);
}

static void external_json(json_writer *w, const epctx_scan *scan) {
    json_str(w, "name", scan->key);
    json_kept(w, "location", scan->value, scan->location);
    json_extent(w, "offset", scan->data.offset);
    if (scan->data.length != UINT64_MAX) json_uint(w, "length", scan->data.length);
    json_uint(w, "depth", scan->depth);
}

/* What a scan finds comes in any order, and nothing is kept: each list wants a pass of its own,
 * which a stream does not give. `scan` has been read to its end. */
static bool json_list(json_writer *w, epctx_scan *scan, const epctx_reader *source,
                      epctx_scan_event wanted, epctx_error *error) {
    const char *name = wanted == EPCTX_SCAN_METADATA ? "metadata" : "external";
    epctx_scan_event event;
    if (source == NULL) {
        json_null(w, name);
        return true;
    }
    epctx_scan_begin(scan, source);
    json_array(w, name, JSON_HANGING);
    while ((event = epctx_scan_next(scan, error)) != EPCTX_SCAN_END && event != EPCTX_SCAN_FAILED) {
        if (event != wanted) continue;
        json_object(w, NULL, JSON_INLINE);
        if (wanted == EPCTX_SCAN_METADATA)
            metadata_json(w, scan);
        else
            external_json(w, scan);
        json_end(w);
    }
    json_end(w);
    return event == EPCTX_SCAN_END;
}

/* `w` NULL: for people. */
static void put_event(json_writer *w, const epctx_scan *scan, epctx_scan_event event) {
    if (event == EPCTX_SCAN_EPNODE && w != NULL) {
        node_json(w, scan);
    } else if (event == EPCTX_SCAN_EPNODE) {
        node_text(scan);
    } else if (event == EPCTX_SCAN_EXTERNAL && w == NULL) {
        external_text(scan);
    } else if (event == EPCTX_SCAN_METADATA && w == NULL) {
        fputs("metadata '", stdout);
        cli_put(stdout, scan->key);
        fputs("'\n", stdout);
        put_text("value", scan->value, scan->ranges[1]);
    }
}

/* The other lists, and the counts of the scan that came last. */
static int json_rest(json_writer *w, epctx_scan *scan, const epctx_reader *source) {
    epctx_error error;
    int code = CLI_OK;
    if (!json_list(w, scan, source, EPCTX_SCAN_METADATA, &error) ||
        !json_list(w, scan, source, EPCTX_SCAN_EXTERNAL, &error))
        code = cli_fail(&error);
    json_uint(w, "node_count", scan->node_count);
    json_uint(w, "ep_node_count", scan->epnode_count);
    json_uint(w, "size", scan->at);
    return code;
}

/* `source` NULL: the scan reads a stream. */
static int print_events(epctx_scan *scan, const epctx_reader *source, const char *file, bool json) {
    json_writer *w = NULL;
    epctx_scan_event event;
    epctx_error error;
    int code = CLI_OK;
    cli_progress_begin("scan", source != NULL ? source->size : 0);
    if (json) {
        w = cli_json_begin(stdout);
        json_array(w, "nodes", JSON_HANGING);
    }
    while ((event = epctx_scan_next(scan, &error)) != EPCTX_SCAN_END &&
           event != EPCTX_SCAN_FAILED) {
        cli_progress_hide();
        put_event(w, scan, event);
    }
    cli_progress_end();
    if (event == EPCTX_SCAN_FAILED) {
        epctx_blame(&error, file, NULL, NULL);
        code = cli_fail(&error);
    }
    if (json) {
        json_end(w);
        if (code == CLI_OK) code = json_rest(w, scan, source);
        cli_json_end();
    } else if (code == CLI_OK) {
        printf("%" PRIu32 " node%s, %" PRIu32 " of them EPContext, %" PRIu64 " byte%s\n",
               scan->node_count, cli_plural(scan->node_count), scan->epnode_count, scan->at,
               cli_plural(scan->at));
    }
    return code;
}

static int scan_file(const char *file, bool json) {
    epctx_scan scan;
    epctx_reader source;
    struct stat info;
    int code, fd = open(file, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return cli_fail_text("%s: %s", file[0] != '\0' ? file : "an empty path", strerror(errno));
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        close(fd);
        return cli_fail_text("%s: not a regular file; '-' reads standard input", file);
    }
    source.user = &fd;
    source.read_fn = read_at;
    source.size = (uint64_t)info.st_size;
    epctx_scan_begin(&scan, &source);
    code = print_events(&scan, &source, file, json);
    close(fd);
    return code;
}

static int run(const cli_args *args) {
    const char *file = args->operands[0];
    if (strcmp(file, "-") == 0) {
        epctx_scan scan;
        pb_istream_t stream;
        memset(&stream, 0, sizeof stream);
        stream.callback = read_input;
        stream.bytes_left = SIZE_MAX;
        epctx_scan_begin_stream(&scan, &stream);
        return print_events(&scan, NULL, file, args->json);
    }
    return scan_file(file, args->json);
}

const cli_command cli_scan = {
    .name = "scan",
    .group = CLI_LOOK,
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .dash = true,
    .summary = "list EPContext nodes and data files in constant memory",
    .about = "Reads the model once and keeps only some kilobytes in memory, whatever the size\n"
             "of the model. Skips payloads and prints their offset and length. Also lists\n"
             "tensors with external data. FILE '-' is standard input.\n",
    .more = "Example: epctx scan model_ctx.onnx\n",
    .run = run,
};
