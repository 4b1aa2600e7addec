/* What the child process does: opens ONNX Runtime and the EP, then the job. */
#include "child.h"

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
    if (ok && job->work == ANYEP_RUN) ok = child_run(&c);
    if (ort_log[0] != '\0') fputs(ort_log, stderr);
    board->memory = most_memory();
    board->ok = ok;
    board->returned = true;
}
