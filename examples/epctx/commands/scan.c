/* epctx scan: the EPContext nodes of a model in constant memory, from a file of any size or from
 * standard input. */
#define _POSIX_C_SOURCE   200809L
#define _FILE_OFFSET_BITS 64

#include "core/cli.h"

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

static const char *const words[EPCTX_EP_ATTR_COUNT] = {
#define WORD(id, name, type, member) name,
    EPCTX_EPNODE_ATTR_LIST(WORD)
#undef WORD
};

static epctx_str string_of(const epctx_epnode *node, int id) {
    epctx_attr attrs[EPCTX_EP_ATTR_COUNT];
    size_t count = epctx_epnode_attrs(node, attrs), i;
    for (i = 0; i < count; i++)
        if (epctx_str_is(attrs[i].name, words[id])) return attrs[i].s;
    return epctx_str_of(NULL);
}

static bool is_text(int id) {
    return id != EPCTX_EP_MAIN_CONTEXT && id != EPCTX_EP_EMBED_MODE && id != EPCTX_EP_MAX_SIZE;
}

/* A payload is named by its place, whatever its size. */
static bool is_payload(const epctx_scan *scan, int id) {
    return id == EPCTX_EP_EP_CACHE_CONTEXT && scan->node.embed_mode == 1;
}

static void node_text(const epctx_scan *scan) {
    const epctx_epnode *node = &scan->node;
    int id;
    fputs("node '", stdout);
    cli_put(stdout, node->name);
    printf("'%s%s\n    %-22s %" PRId64 "\n    %-22s %" PRId64 "\n",
           scan->depth > 0 ? ", in a body" : "", scan->broken ? ", broken" : "", "main_context",
           node->main_context, "embed_mode", node->embed_mode);
    for (id = 0; id < EPCTX_EP_ATTR_COUNT; id++)
        if (is_text(id) && (node->present & 1u << id) != 0)
            put_text(words[id], is_payload(scan, id) ? epctx_str_of(NULL) : string_of(node, id),
                     scan->ranges[id]);
}

static void node_json(const epctx_scan *scan, bool first) {
    const epctx_epnode *node = &scan->node;
    int id;
    printf("%s\n  {", first ? "" : ",");
    cli_json_str("name", node->name, ", ");
    printf("\"depth\": %" PRIu32 ", \"broken\": %s, \"main_context\": %" PRId64
           ", \"embed_mode\": %" PRId64 ", \"max_size\": %" PRId64,
           scan->depth, scan->broken ? "true" : "false", node->main_context, node->embed_mode,
           node->max_size);
    for (id = 0; id < EPCTX_EP_ATTR_COUNT; id++) {
        epctx_str text = string_of(node, id);
        if (!is_text(id) || (node->present & 1u << id) == 0) continue;
        printf(", \"%s\": ", words[id]);
        if (is_payload(scan, id) || text.data == NULL)
            printf("{\"offset\": %" PRIu64 ", \"length\": %" PRIu64 "}", scan->ranges[id].offset,
                   scan->ranges[id].length);
        else
            cli_put_json(stdout, text);
    }
    putchar('}');
}

/* null: the text was too long to keep. */
static void json_text(const char *key, epctx_str text, epctx_range range, const char *after) {
    if (text.data == NULL && range.length > 0)
        printf("\"%s\": null%s", key, after);
    else
        cli_json_str(key, text, after);
}

static void metadata_json(const epctx_scan *scan) {
    json_text("key", scan->key, scan->ranges[0], ", ");
    json_text("value", scan->value, scan->ranges[1], ", ");
    printf("\"offset\": %" PRIu64 ", \"length\": %" PRIu64, scan->ranges[1].offset,
           scan->ranges[1].length);
}

/* Tensors whose data is in a file. Length UINT64_MAX is the rest of it: left out. */
static void external_text(const epctx_scan *scan) {
    fputs("external '", stdout);
    cli_put(stdout, scan->key);
    fputs(scan->depth > 0 ? "', in a node\n" : "'\n", stdout);
    put_text("location", scan->value, scan->location);
    printf("    %-22s %" PRIu64 "\n", "offset", scan->data.offset);
    if (scan->data.length != UINT64_MAX)
        printf("    %-22s %" PRIu64 "\n", "length", scan->data.length);
}

static void external_json(const epctx_scan *scan) {
    cli_json_str("name", scan->key, ", ");
    json_text("location", scan->value, scan->location, ", ");
    printf("\"offset\": %" PRIu64, scan->data.offset);
    if (scan->data.length != UINT64_MAX) printf(", \"length\": %" PRIu64, scan->data.length);
    printf(", \"depth\": %" PRIu32, scan->depth);
}

/* What a scan finds comes in any order, and nothing is kept: each list wants a pass of its own,
 * which a stream does not give. `scan` has been read to its end. */
static int json_list(epctx_scan *scan, const epctx_source *source, epctx_scan_event wanted,
                     epctx_error *error) {
    const char *name = wanted == EPCTX_SCAN_METADATA ? "metadata" : "external";
    const char *comma = "";
    epctx_scan_event event;
    if (source == NULL) {
        printf("\"%s\": null,\n", name);
        return CLI_OK;
    }
    epctx_scan_begin(scan, source);
    printf("\"%s\": [", name);
    while ((event = epctx_scan_next(scan, error)) != EPCTX_SCAN_END) {
        if (event == EPCTX_SCAN_FAILED) {
            puts("],");
            return CLI_FAILED;
        }
        if (event != wanted) continue;
        printf("%s\n  {", comma);
        comma = ",";
        if (wanted == EPCTX_SCAN_METADATA)
            metadata_json(scan);
        else
            external_json(scan);
        putchar('}');
    }
    puts("],");
    return CLI_OK;
}

static void put_event(const epctx_scan *scan, epctx_scan_event event, bool json, bool *first) {
    if (event == EPCTX_SCAN_EPNODE && json) {
        node_json(scan, *first);
        *first = false;
    } else if (event == EPCTX_SCAN_EPNODE) {
        node_text(scan);
    } else if (event == EPCTX_SCAN_EXTERNAL && !json) {
        external_text(scan);
    } else if (event == EPCTX_SCAN_METADATA && !json) {
        fputs("metadata '", stdout);
        cli_put(stdout, scan->key);
        fputs("'\n", stdout);
        put_text("value", scan->value, scan->ranges[1]);
    }
}

/* `source` NULL: the scan reads a stream. */
static int print_events(epctx_scan *scan, const epctx_source *source, const char *file, bool json) {
    epctx_scan_event event;
    epctx_error error;
    bool first = true;
    int code = CLI_OK;
    cli_progress_begin("scan", source != NULL ? source->size : 0);
    if (json) {
        cli_json_begin(stdout);
        fputs("\"nodes\": [", stdout);
    }
    while ((event = epctx_scan_next(scan, &error)) != EPCTX_SCAN_END) {
        if (event == EPCTX_SCAN_FAILED) {
            cli_progress_end();
            epctx_blame(&error, file, NULL, NULL);
            cli_fail(&error);
            if (json) putchar(']');
            if (json) cli_json_end(stdout);
            return CLI_FAILED;
        }
        cli_progress_hide();
        put_event(scan, event, json, &first);
    }
    cli_progress_end();
    if (json) fputs("],\n", stdout);
    if (json && (json_list(scan, source, EPCTX_SCAN_METADATA, &error) != CLI_OK ||
                 json_list(scan, source, EPCTX_SCAN_EXTERNAL, &error) != CLI_OK))
        code = cli_fail(&error);
    if (json) {
        printf("\"node_count\": %" PRIu32 ",\n\"ep_node_count\": %" PRIu32 ",\n\"size\": %" PRIu64,
               scan->node_count, scan->epnode_count, scan->at);
        cli_json_end(stdout);
    } else
        printf("%" PRIu32 " node%s, %" PRIu32 " of them EPContext, %" PRIu64 " byte%s\n",
               scan->node_count, cli_plural(scan->node_count), scan->epnode_count, scan->at,
               cli_plural(scan->at));
    return code;
}

static int scan_file(const char *file, bool json) {
    epctx_scan scan;
    epctx_source source;
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

static int run(int argc, char **argv) {
    bool json = false;
    const char *file = NULL;
    const cli_option options[] = {{"--json", NULL, &json}, {NULL, NULL, NULL}};
    if (!cli_parse_dash(&cli_scan, argc, argv, options, &file, 1)) return CLI_USAGE;
    if (strcmp(file, "-") == 0) {
        epctx_scan scan;
        pb_istream_t stream;
        memset(&stream, 0, sizeof stream);
        stream.callback = read_input;
        stream.bytes_left = SIZE_MAX;
        epctx_scan_begin_stream(&scan, &stream);
        return print_events(&scan, NULL, file, json);
    }
    return scan_file(file, json);
}

const cli_command cli_scan = {
    "scan",
    "[--json] FILE",
    "list EPContext nodes and data files in constant memory",
    "Reads the model once and keeps only some kilobytes in memory, whatever the size\n"
    "of the model. Skips payloads and prints their offset and length. Also lists\n"
    "tensors with external data. FILE '-' is standard input.\n\n"
    "  --json   print one JSON object; \"metadata\" and \"external\" are null for\n"
    "           standard input\n"
    "\nExample: epctx scan model_ctx.onnx\n",
    run,
};
