#!/bin/sh
# Builds a firmware for Cortex-M4:
#
#     examples/firmware/build.sh PROGRAM OUT.elf FLASH_FILE [INPUT_FILE [FLAGS...]]
#
# PROGRAM is reader, stream or executor. CROSS (default arm-none-eabi-) and NANOPB_SOURCE, a folder
# with nanopb's .c files, come from the environment.
set -eu
here=$(dirname "$0")
top=$here/../..
program=$1 out=$2 file=$3 input=${4:-$3}
shift 3
[ $# -eq 0 ] || shift
nanopb=${NANOPB_SOURCE:-$(sh "$top/tests/deps.sh" where nanopb-source)}
sources="$here/$program.c $here/board.c $here/flash.S"
case $program in
executor) ;;
*) sources="$sources $nanopb/pb_common.c $nanopb/pb_decode.c $nanopb/pb_encode.c" ;;
esac
# shellcheck disable=SC2086 # a list
exec "${CROSS:-arm-none-eabi-}gcc" --specs=picolibc.specs -nostartfiles -T "$here/board.ld" \
    -mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard -std=c11 -Os \
    -ffunction-sections -fdata-sections -Wl,--gc-sections -Wall -Wextra -Wcast-qual -Werror \
    -DPB_NO_ERRMSG -DFLASH_FILE="\"$file\"" -DINPUT_FILE="\"$input\"" "$@" \
    -I"$top" -isystem "$nanopb" $sources -o "$out"
