/* What the child process does: opens ONNX Runtime and the EP, then the job. */
#include "child.h"

#include "core/vendors.h"

/* The most memory that this process had so far. */
static uint64_t most_memory(void) {
    FILE *in = fopen("/proc/self/status", "r");
    char line[256];
    unsigned long long kib = 0;
    while (in != NULL && fgets(line, sizeof line, in) != NULL)
        if (sscanf(line, "VmHWM: %llu", &kib) == 1) break;
    if (in != NULL) fclose(in);
    return (uint64_t)kib * 1024;
}

static void add_warning(anyep_board *board, epctx_str line) {
    char text[sizeof board->warnings[0]];
    const bool cut = line.size >= sizeof text;
    size_t i;
    snprintf(text, sizeof text, "%.*s%s", (int)(cut ? sizeof text - 4 : line.size), line.data,
             cut ? "..." : "");
    if (line.size == 0 || strstr(text, ORT_LEFT) != NULL || vendor_is_harmless(text)) return;
    for (i = 0; i < board->warning_count; i++)
        if (strcmp(board->warnings[i], text) == 0) return;
    if (board->warning_count == ANYEP_MOST_WARNINGS)
        board->more_warnings++;
    else
        memcpy(board->warnings[board->warning_count++], text, sizeof text);
}

/* What was logged: beside warnings only the lines of -v. */
static void take_warnings(anyep_board *board) {
    epctx_str rest = epctx_str_of(ort_log);
    while (rest.size > 0) add_warning(board, epctx_str_cut(&rest, '\n'));
}

void anyep_child(const anyep_job *job, anyep_board *board) {
    child c;
    bool ok;
    memset(&c, 0, sizeof c);
    c.job = job;
    c.set = job->set;
    c.board = board;
    ok = child_open(&c);
    if (ok) child_describe(&c);
    if (ok && job->work == ANYEP_LIST) ok = child_list(&c);
    if (ok && job->work == ANYEP_COMPILE) ok = child_compile(&c);
    if (job->work == ANYEP_COMPILE) child_note_libraries(&c);
    if (ok && job->work == ANYEP_RUN) ok = child_run(&c);
    if (ort_log[0] != '\0') fputs(ort_log, stderr);
    take_warnings(board);
    board->memory = most_memory();
    board->ok = ok;
    board->returned = true;
}
