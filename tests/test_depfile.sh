#!/bin/sh
# epctx compile --depfile: make and ninja compile again when the model or a file that it names has
# changed, and only then.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start test_depfile
make_models plain
cd "$work" || exit 1
out=$work/stdout err=$work/stderr
mv plain.onnx first.onnx

# ran NAME COMMAND...: it succeeds
ran() {
    what=$1
    shift
    if "$@" >"$out" 2>"$err"; then ok "$what"; else fail "$what" "exit code $?"; fi
}
# count NAME N: how often the tool has compiled
count() {
    n=$(wc -l <log)
    if [ "$n" -eq "$2" ]; then ok "$1"; else fail "$1" "compiled $n times, expected $2"; fi
}
# later FILE: it has changed, by the clock of the file system, which may be coarse
later() { sleep 0.05 && touch "$1" && sleep 0.05; }

# -- names that need an escape, in folders --
name='a b#c$d'
mkdir "in $" 'out #'
ran "a model with a data file" "$epctx" init --external --threshold 0 --name "w $name.bin" \
    -o "in $/$name.onnx" first.onnx

# A command in the shell and in a makefile: quoted for both.
cat >tool <<END
#!/bin/sh
echo "\$*" >>"$work/log"
exec "$epctx" "\$@"
END
chmod +x tool
cat >Makefile <<'END'
.RECIPEPREFIX = >
MODEL := in $$/a b\#c$$d.onnx
OUT := out \#/a b\#c$$d_ctx.onnx
space := $(subst ,, )
all: out\ \#/a\ b\#c$$d_ctx.onnx
out\ \#/a\ b\#c$$d_ctx.onnx: in\ $$/a\ b\#c$$d.onnx
> ./tool compile -f --depfile model.d -o '$(OUT)' '$(MODEL)'
-include model.d
END
cat >build.ninja <<'END'
rule compile
  command = ./tool compile -f --depfile ninja.d -o $out $in
  depfile = ninja.d
build out$ #/a$ b#c$$d_ctx.onnx: compile in$ $$/a$ b#c$$d.onnx
END

# both TOOL: from nothing, again, after each file that counts and one that does not
both() {
    tool=$1
    rm -rf "out #" && mkdir "out #" && : >log
    ran "$tool: the first time" "$@"
    ran "$tool: again" "$@"
    count "$tool: nothing to do" 1
    later "in $/w $name.bin"
    ran "$tool: after the data file" "$@"
    count "$tool: a data file counts" 2
    ran "$tool: after that" "$@"
    count "$tool: once" 2
    later "in $/$name.onnx"
    ran "$tool: after the model" "$@"
    count "$tool: the model counts" 3
    later first.onnx
    : >"in $/other.bin"
    later "in $/other.bin"
    ran "$tool: after other files" "$@"
    count "$tool: other files do not" 3
}
both make
if command -v ninja >/dev/null; then both ninja
else echo "skip ninja: it is not here"; fi

# A data file that is gone is the command's error, not make's.
mv "in $/w $name.bin" kept.bin
make >"$out" 2>"$err"
if grep -q "No rule to make" "$err"; then fail "a data file that is gone" "make stops"
elif grep -q "w $name.bin" "$err" || grep -q "cannot open" "$err"; then
    ok "a data file that is gone"
else fail "a data file that is gone" "nothing says so"; fi
mv kept.bin "in $/w $name.bin"

# -- a binary is an output of the rule, too --
mkdir group && cd group || exit 1
cp ../first.onnx .
cat >Makefile <<'END'
.RECIPEPREFIX = >
all: first_ctx.onnx first_npu.bin
first_ctx.onnx first_npu.bin &: first.onnx
> ../tool compile -f --depfile m.d first.onnx
-include m.d
END
cat >build.ninja <<'END'
rule compile
  command = ../tool compile -f --depfile n.d $in
  depfile = n.d
build first_ctx.onnx | first_npu.bin: compile first.onnx
END
for tool in make ninja; do
    if [ $tool = make ] && ! make --version | grep -q 'Make \(4\.[3-9]\|[5-9]\)' ||
        ! command -v $tool >/dev/null; then
        echo "skip $tool: it is not here, or too old"
        continue
    fi
    rm -f first_* && : >../log
    ran "$tool: two outputs" $tool
    ran "$tool: two outputs, again" $tool
    later first_npu.bin && rm first_npu.bin
    ran "$tool: without the binary" $tool
    later first.onnx
    ran "$tool: after the model" $tool
    (cd .. && count "$tool: the binary counts" 3)
    [ -e first_npu.bin ] || fail "$tool: the binary counts" "it is not there"
done
cd ..

# -- several models, and what fails --
cp first.onnx second.onnx
epctx compile -f --depfile both.d first.onnx second.onnx
if [ $code -eq 0 ] && [ "$(head -n 1 both.d)" = 'first_ctx.onnx second_ctx.onnx: \' ] &&
    grep -q '^second.onnx:$' both.d; then ok "models that share a binary"
else fail "models that share a binary" "$(cat both.d)"; fi
rm both.d
epctx compile -f --dry-run --depfile both.d first.onnx; result "a dry run" 0
[ ! -e both.d ] || fail "a dry run" "there is a file"
epctx compile -f --depfile both.d missing.onnx; result "a missing model" 1 "missing.onnx"
[ ! -e both.d ] || fail "a missing model" "there is a file"
epctx compile -f --depfile none/both.d first.onnx; result "a missing folder" 1 "none/both.d"
for bad in 'a:b' 'a%b' 'a=b' 'a;b' 'a*b' 'a
b' 'a\b' "a'b"; do
    cp first.onnx "$bad.onnx"
    epctx compile --depfile both.d "$bad.onnx"; result "a name that no rule can have" 1 "--depfile"
    [ ! -e "$bad"_ctx.onnx ] || fail "a name that no rule can have" "compiled"
done

# What make would obey is no prerequisite.
for bad in .IGNORE .SILENT .DELETE_ON_ERROR; do
    epctx init --external --threshold 0 --name "$bad" first.onnx -o special.onnx -f
    epctx compile -f --depfile both.d special.onnx
    result "a data file $bad" 1 "no common form for the name $bad"
    epctx compile -f --depfile both.d ./special.onnx
    result "a data file ./$bad" 1 "no common form for the name ./$bad"
done
epctx init --external --threshold 0 --name .ignore first.onnx -o special.onnx -f
epctx compile -f --depfile both.d special.onnx; result "a hidden data file" 0
rm -f .IGNORE .SILENT .DELETE_ON_ERROR .ignore special*

# -- what is there and no depfile stays --
mkdir stay && cd stay || exit 1
epctx init --external --threshold 0 --name beside.data -o source.onnx ../first.onnx
printf 'a list\n' >notes.txt
cp ../first.onnx third.onnx
ln -s third.onnx link.d
ln -s nowhere.d dangling.d
for bad in source.onnx ./source.onnx beside.data third.onnx link.d dangling.d notes.txt \
    source_ctx.onnx source_npu.bin "$work/stay/source_ctx.onnx"; do
    before=$(state)
    epctx compile --depfile "$bad" source.onnx
    case $bad in
    source_npu.bin) # the binary's name is known only afterwards
        result "a depfile $bad" 1 "$bad"
        epctx lint source_ctx.onnx; result "the binary stays" 0
        rm source_ctx.onnx source_npu.bin ;;
    *) refused "a depfile $bad" 1 "--depfile" ;;
    esac
done
before=$(state)
epctx compile --initializers w.bin --depfile w.bin source.onnx
refused "a depfile that is a data file to be written" 1 "--depfile"
epctx compile --depfile none/x.d source.onnx; refused "its folder, before the work" 1 "none/x.d"
epctx compile --depfile . source.onnx; refused "a folder as a depfile" 1 "folder"
epctx compile --dry-run --depfile third.onnx source.onnx; refused "told by --dry-run" 1 "--depfile"
: >empty.d
epctx compile --depfile empty.d source.onnx; result "an empty file becomes one" 0
epctx compile -f --depfile empty.d source.onnx; result "one of an earlier run is replaced" 0
cd ..

# -- through ONNX Runtime --
ep=$build/libtoy_ep.so
if library=$(sh "$top/tests/deps.sh" where ort) && [ -e "$ep" ]; then
    cp /usr/share/libonnx-testdata/data/node/test_mul/model.onnx mul.onnx
    ln -sf "$library" libort.so
    cp "$ep" libep.so
    cat >ort.mk <<'END'
.RECIPEPREFIX = >
mul_ctx.onnx: mul.onnx
> ./tool compile -f --depfile mul.d --ort ./libort.so --ep ./libep.so mul.onnx
-include mul.d
END
    : >log
    ran "another EP" make -f ort.mk
    ran "another EP: again" make -f ort.mk
    count "another EP: nothing to do" 1
    later libep.so
    ran "another EP: after its library" make -f ort.mk
    count "another EP: its library counts" 2
    if grep -q '^./libort.so:$' mul.d; then ok "another EP: ONNX Runtime counts"
    else fail "another EP: ONNX Runtime counts" "$(cat mul.d)"; fi
    epctx compile -f --depfile mul.d --ort ./libort.so --ep ./libep.so:ToyExecutionProvider mul.onnx
    if grep -q '^./libep.so:$' mul.d; then ok "another EP, by its name"
    else fail "another EP, by its name" "$(cat mul.d)"; fi
    cp mul.onnx twice.onnx
    epctx compile -f --no-share --depfile each.d --ort ./libort.so --ep ./libep.so mul.onnx \
        twice.onnx
    if [ $code -eq 0 ] && [ "$(grep -c '_ctx.onnx: \\$' each.d)" -eq 2 ] &&
        grep -qxF 'mul_ctx.onnx: \' each.d && grep -qxF 'twice_ctx.onnx: \' each.d
    then ok "models that share nothing: a rule for each"
    else fail "models that share nothing: a rule for each" "$(cat each.d)"; fi
else
    echo "skip another EP: ONNX Runtime or the EP is not here"
fi
exit $status
