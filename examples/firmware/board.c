#include "board.h"

#include <string.h>

/* From board.ld. */
extern uint32_t board_data_from[], board_data_begin[], board_data_end[];
extern uint32_t board_bss_begin[], board_bss_end[];
extern uint32_t board_stack_bottom[], board_stack_top[];

#define UNUSED_STACK 0x5aa5c33cu

static uint32_t semihost(uint32_t operation, const void *argument) {
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void board_write(const char *text, size_t size) {
    char part[33]; /* SYS_WRITE0 takes terminated strings */
    while (size > 0) {
        size_t n = size < sizeof part - 1 ? size : sizeof part - 1;
        memcpy(part, text, n);
        part[n] = '\0';
        semihost(4, part);
        text += n;
        size -= n;
    }
}

void board_print(const char *text) {
    semihost(4, text);
}

/* Divides 16 bits at a time: the processor cannot divide 64 bits, the compiler's way is large. */
void board_number(uint64_t number) {
    char digits[21];
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do {
        uint64_t quotient = 0;
        uint32_t rest = 0;
        int shift;
        for (shift = 48; shift >= 0; shift -= 16) {
            rest = rest << 16 | (uint32_t)(number >> shift & 0xffff);
            quotient = quotient << 16 | rest / 10;
            rest %= 10;
        }
        digits[--at] = (char)('0' + rest);
        number = quotient;
    } while (number > 0);
    semihost(4, digits + at);
}

/* Bytes of stack used so far, at the deepest. */
static size_t stack_used(void) {
    const uint32_t *low = board_stack_bottom;
    while (*low == UNUSED_STACK) low++;
    return (size_t)((const char *)board_stack_top - (const char *)low);
}

/* SysTick counts 24 bits down at 25 MHz, or what else the board has. QEMU with -icount shift=0
 * executes an instruction in a nanosecond, so at 25 MHz 40 of them are a tick. */
#define SYSTICK_CONTROL (*(volatile uint32_t *)0xe000e010u)
#define SYSTICK_RELOAD  (*(volatile uint32_t *)0xe000e014u)
#define SYSTICK_VALUE   (*(volatile uint32_t *)0xe000e018u)
#define PER_TICK        (1000u / BOARD_MHZ)

static void end(int code) {
    uint32_t block[2];
    block[0] = 0x20026; /* ADP_Stopped_ApplicationExit */
    block[1] = (uint32_t)code;
    semihost(0x20, block);
    for (;;) {
    }
}

static void reset(void) {
    uint32_t *to;
    uint32_t *here = __builtin_frame_address(0);
    uint32_t ticks;
    int code;
    for (to = board_stack_bottom; to < here - 16; to++) *to = UNUSED_STACK;
    memcpy(board_data_begin, board_data_from,
           (size_t)((char *)board_data_end - (char *)board_data_begin));
    memset(board_bss_begin, 0, (size_t)((char *)board_bss_end - (char *)board_bss_begin));
#if defined(__ARM_FP)
    *(volatile uint32_t *)0xe000ed88u |= 0xfu << 20; /* CPACR: the floating-point unit */
    __asm__ volatile("dsb\n isb" ::: "memory");
#endif
    SYSTICK_RELOAD = 0xffffffu;
    SYSTICK_VALUE = 0;
    SYSTICK_CONTROL = 5; /* on, at the processor's clock, no interrupt */
    code = main();
    ticks = 0xffffffu - SYSTICK_VALUE;
    board_print("stack ");
    board_number(stack_used());
    board_print("\ninstructions ");
    board_number((uint64_t)ticks * PER_TICK);
    board_print("\n");
    end(code);
}

static void fault(void) {
    board_print("fault\n");
    end(1);
}

typedef void (*handler)(void);

extern const handler vectors[16];
__attribute__((section(".vectors"), used))
const handler vectors[16] = {(handler)(uintptr_t)board_stack_top,
                             reset,
                             fault,
                             fault,
                             fault,
                             fault,
                             fault,
                             NULL,
                             NULL,
                             NULL,
                             NULL,
                             fault,
                             fault,
                             NULL,
                             fault,
                             fault};
