#!/bin/sh
# Builds a firmware for Cortex-M4, or with CPU=cortex-m3 or CPU=cortex-m33 for that one:
#
#     examples/firmware/build.sh PROGRAM OUT.elf FLASH_FILE [INPUT_FILE [FLAGS...]]
#
# PROGRAM is reader, stream or executor. Boards: MPS2 with AN385 (M3), AN386 (M4) or AN505 (M33,
# which starts in the secure state, so in the secure half of the memory map). CROSS (default
# arm-none-eabi-) and NANOPB_SOURCE, a folder with nanopb's .c files, come from the environment.
set -eu
here=$(dirname "$0")
top=$here/../..
[ $# -ge 3 ] || {
    echo "usage: build.sh PROGRAM OUT.elf FLASH_FILE [INPUT_FILE [FLAGS...]]" >&2
    exit 2
}
program=$1 out=$2 file=$3 input=${4:-$3}
shift 3
[ $# -eq 0 ] || shift
nanopb=${NANOPB_SOURCE:-$(sh "$top/tests/deps.sh" where nanopb-source)}
sources="$here/$program.c $here/board.c $here/flash.S"
case $program in
executor) ;;
*) sources="$sources $nanopb/pb_common.c $nanopb/pb_decode.c $nanopb/pb_encode.c" ;;
esac
float=hard
case ${CPU:-cortex-m4} in
cortex-m4) cpu="-mcpu=cortex-m4 -mfpu=fpv4-sp-d16" flash_at=0x00000000 ram_at=0x20000000 clock=25 ;;
cortex-m3) cpu="-mcpu=cortex-m3" flash_at=0x00000000 ram_at=0x20000000 clock=25 float=soft ;;
cortex-m33) cpu="-mcpu=cortex-m33 -mfpu=fpv5-sp-d16" \
    flash_at=0x10000000 ram_at=0x38000000 clock=20 ;;
*) echo "CPU: cortex-m3, cortex-m4 or cortex-m33" >&2; exit 2 ;;
esac
# shellcheck disable=SC2086 # lists
exec "${CROSS:-arm-none-eabi-}gcc" --specs=picolibc.specs -nostartfiles -T "$here/board.ld" \
    -Wl,--defsym=board_flash=$flash_at -Wl,--defsym=board_ram=$ram_at -DBOARD_MHZ=$clock \
    $cpu -mthumb -mfloat-abi=$float -std=c11 -Os \
    -ffunction-sections -fdata-sections -Wl,--gc-sections -Wall -Wextra -Wcast-qual -Werror \
    -DPB_NO_ERRMSG -DFLASH_FILE="\"$file\"" -DINPUT_FILE="\"$input\"" "$@" \
    -I"$top" -isystem "$nanopb" $sources -o "$out"
