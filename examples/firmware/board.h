/* The least a Cortex-M program needs: a vector table, a way to print, a way to end. Printing goes
 * by semihosting, which QEMU and every debugger understand. Replace board.c by your own. */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

/* Prints `size` bytes. */
void board_write(const char *text, size_t size);
/* Prints a terminated string, a number. */
void board_print(const char *text);
void board_number(uint64_t number);

/* After main the board prints the stack that was used and, under QEMU with -icount shift=0, the
 * instructions that were executed. */
int main(void);

#endif
