/* A firmware that runs a network from a context binary in flash. Weights and input are used in
 * place, working memory is static, there is no heap. */
#define EPCTX_IMPLEMENTATION
#define EPCTX_NPU_IMPLEMENTATION
#define EPCTX_STATIC
#define EPCTX_NO_MALLOC
#define EPCTX_NO_STDIO
#define EPCTX_NO_WIRE
#define EPCTX_NPU_NO_COMPILER
#include "epctx_npu.h"

#include "board.h"

extern const uint8_t flash_file[], flash_file_end[], flash_input[], flash_input_end[];

#if !defined(MEMORY_SIZE) || !defined(SCRATCH_SIZE)
#error "executor.c: set -DMEMORY_SIZE and -DSCRATCH_SIZE, which `epctx info x_npu.bin` prints"
#endif
static uint64_t memory[MEMORY_SIZE / 8];
static uint8_t scratch[SCRATCH_SIZE] __attribute__((aligned(EPCTX_NPU_ALIGN)));
#ifndef SCORE_TYPE
#define SCORE_TYPE uint32_t /* of a float: its bits */
#endif
#ifndef SCORE_COUNT
#define SCORE_COUNT 10
#endif
static SCORE_TYPE scores[SCORE_COUNT];

static int run(void) {
    static epctx_npu_context context;
    epctx_span blob, input;
    epctx_memory output;
    epctx_status status;
    blob.data = flash_file;
    blob.size = (size_t)(flash_file_end - flash_file);
    input.data = flash_input;
    input.size = (size_t)(flash_input_end - flash_input);
    output.data = scores;
    output.size = sizeof scores;
    status = epctx_npu_load(&context, blob, memory, sizeof memory, NULL);
    if (status == EPCTX_OK)
        status = epctx_npu_run(&context.graphs[0], &input, &output, scratch, sizeof scratch, NULL);
    return (int)status;
}

int main(void) {
    int status = run();
    size_t i;
    board_print(status == 0 ? "scores" : "status");
    for (i = 0; status == 0 && i < sizeof scores / sizeof *scores; i++) {
        board_print(" ");
        board_number(scores[i]);
    }
    if (status != 0) {
        board_print(" ");
        board_number((uint64_t)status);
    }
    board_print("\n");
    return status;
}
