/* compile -v and --json: why nodes stay on the CPU. */
#define _POSIX_C_SOURCE 200809L

#include "compile.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LINES = 20 };

/* The message without the name of the node, which is told apart from it. */
static epctx_str reason_of(const epctx_error *why) {
    char prefix[sizeof why->node + 16];
    epctx_str text = epctx_str_of(why->message);
    size_t size = (size_t)snprintf(prefix, sizeof prefix, "node '%s': ", why->node);
    if (why->node[0] == '\0' || text.size <= size || memcmp(text.data, prefix, size) != 0)
        return text;
    text.data += size;
    text.size -= size;
    return text;
}

/* The same without what stands in quotes: names of values differ from node to node. */
static epctx_str kind_of(epctx_arena *arena, epctx_str reason) {
    char *text = (char *)epctx_arena_alloc(arena, reason.size + 1);
    epctx_str kind = {text, 0};
    bool quoted = false;
    size_t i;
    for (i = 0; i < reason.size && text != NULL; i++) {
        quoted = quoted != (reason.data[i] == '\'');
        if (!quoted) text[kind.size++] = reason.data[i];
    }
    return kind;
}

void left_note(void *user, const epctx_node *node, const epctx_error *why) {
    left_nodes *left = (left_nodes *)user;
    epctx_str reason = reason_of(why);
    epctx_str kind = kind_of(&left->arena, reason);
    uint32_t at = epctx_map_get(&left->kinds, kind);
    left_reason *one;
    if (at != EPCTX_MAP_NONE) {
        left->reasons[at].count++;
        return;
    }
    if (left->count == left->room) {
        size_t room = left->room * 2 + 16;
        left_reason *more = (left_reason *)epctx_arena_array(&left->arena, room, sizeof *more);
        if (more == NULL) return; /* a line less */
        if (left->count > 0) memcpy(more, left->reasons, left->count * sizeof *more);
        left->reasons = more;
        left->room = room;
    }
    one = &left->reasons[left->count];
    one->text = epctx_arena_copy(&left->arena, reason);
    one->op_type = epctx_arena_copy(&left->arena, node->op_type);
    one->node = epctx_arena_copy(&left->arena, node->name.size > 0 || node->output_count == 0
                                                   ? node->name
                                                   : node->outputs[0]);
    one->count = 1;
    if (one->text != NULL && one->op_type != NULL && one->node != NULL &&
        epctx_map_put(&left->kinds, kind, (uint32_t)left->count) == EPCTX_OK)
        left->count++;
}

void left_begin(left_nodes *left) {
    memset(left, 0, sizeof *left);
    epctx_arena_init(&left->arena, NULL);
    epctx_map_init(&left->kinds, &left->arena);
}

void left_end(left_nodes *left) {
    epctx_arena_free(&left->arena);
}

/* Most frequent first. */
static void sort(left_nodes *left) {
    size_t i, k;
    for (i = 1; i < left->count; i++) {
        left_reason one = left->reasons[i];
        for (k = i; k > 0 && left->reasons[k - 1].count < one.count; k--)
            left->reasons[k] = left->reasons[k - 1];
        left->reasons[k] = one;
    }
}

void left_print(FILE *out, left_nodes *left) {
    size_t i;
    sort(left);
    for (i = 0; i < left->count && i < MOST_LINES; i++) {
        const left_reason *one = &left->reasons[i];
        fprintf(out, "%-14s %zu node%s, e.g. ", "left", one->count, cli_plural(one->count));
        cli_put(out, epctx_str_of(one->op_type));
        fputs(" '", out);
        cli_put(out, epctx_str_of(one->node));
        fputs("': ", out);
        cli_put(out, epctx_str_of(one->text));
        fputc('\n', out);
    }
    if (left->count > MOST_LINES)
        fprintf(out, "%-14s %zu more reasons (--json has all)\n", "left", left->count - MOST_LINES);
}

void left_json(json_writer *w, left_nodes *left) {
    size_t i;
    sort(left);
    json_array(w, "left", JSON_HANGING);
    for (i = 0; i < left->count; i++) {
        const left_reason *one = &left->reasons[i];
        json_object(w, NULL, JSON_INLINE);
        json_uint(w, "nodes", one->count);
        json_text(w, "op_type", one->op_type);
        json_text(w, "example", one->node);
        json_text(w, "reason", one->text);
        json_end(w);
    }
    json_end(w);
}
