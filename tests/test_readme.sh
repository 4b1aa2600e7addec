#!/bin/sh
# The README's C quick start, exactly as printed: its first ```c block goes into
# the file that the first compiler command after it names; then every command
# of that ```sh block runs, with a model of the test's own under the .onnx name
# that the commands use. The last one has to say something.
set -u
cd "$(dirname "$0")/.."
root=$PWD
work=$root/build/readme
if ! [ -e README.md ]; then
    echo "skip quick start: there is no README.md"
    exit 0
fi
rm -rf "$work"
mkdir -p "$work"

awk '/^```c$/ && !done { on = 1; next } /^```/ && on { on = 0; done = 1 } on' README.md \
    >"$work/code"
# The commands: of the first shell block behind the code; with "$ " in front of
# them when the block shows their output, too.
awk '/^```c$/ { code = 1 } code && /^```(sh|console|shell)$/ && !done { on = 1; next }
     /^```/ && on { on = 0; done = 1 } on' README.md >"$work/block"
if grep -q '^\$ ' "$work/block"; then
    sed -n 's/^\$ //p' "$work/block" >"$work/commands"
else
    cp "$work/block" "$work/commands"
fi
source=$(tr ' ' '\n' <"$work/commands" | grep -m 1 '\.c$')
model=$(tr ' ' '\n' <"$work/commands" | grep -m 1 '\.onnx$')
if ! [ -s "$work/code" ] || [ -z "$source" ] || [ -z "$model" ]; then
    echo "FAIL quick start: expected a c block and a sh block with a .c and a .onnx file name, \
found '$source' and '$model'"
    exit 1
fi
cd "$work" || exit 1
mv code "$source"
cp "$root"/epctx*.h .
"${PYTHON:-/usr/bin/python3}" "$root/tests/judge/make_model.py" plain plain.onnx &&
    "$root/build/epctx" compile plain.onnx -o "$model" || {
    echo "FAIL quick start: the model for it could not be made"
    exit 1
}
if sh -e commands >log 2>&1 && [ -s log ]; then
    echo "ok quick start"
else
    echo "FAIL quick start: expected its commands to run and print, found: $(tail -n 1 log)"
    cat log
    exit 1
fi
