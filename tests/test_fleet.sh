#!/bin/sh
# examples/fleet: many models by ninja, and by a real Slurm on the loopback of this machine.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start fleet
make_models plain partly digits
cd "$work" || exit 1
fleet() {
    "$python" "$top/examples/fleet/fleet.py" "$@" >"$out" 2>"$err"
    code=$?
}
mkdir models
mv ./*.onnx models
"$plain" init --external --threshold 1 --name w.data models/plain.onnx -o models/data.onnx >log 2>&1
echo "no model" >models/broken.onnx
cat >fleet.toml <<END
epctx = "$plain"
timeout = 60
[[model]]
path = "models/*.onnx"
[[ep]]
name = "npu"
[[ep]]
name = "embedded"
options = ["--embed"]
END

# -- ninja --
fleet plan fleet.toml -o plan; said "a plan" 0 "10 jobs, 5 models"
fleet report plan; said "nothing is done yet" 1 "10 pending"
ninja -C plan -k 0 >log 2>&1 && fail "ninja tells of the broken model" "exit code 0"
fleet report plan; said "one model fails, the others go on" 1 "8 done, 0 cached, 2 failed"
if grep -q '^npu/broken *failed.*not an ONNX' out; then ok "the report says why"
else fail "the report says why" "expected 'not an ONNX'"; fi
if [ -e plan/out/npu/digits/digits_ctx.onnx ] && [ -e plan/out/npu/digits/digits_npu.bin ] &&
    "$plain" run plan/out/npu/digits/digits_ctx.onnx --seed 1 >log 2>&1; then ok "results run"
else fail "results run" "out/npu/digits is not complete"; fi
if [ -e plan/out/npu/broken ] || find . -name '.new-*' -o -name '.old-*' | grep -q .
then fail "nothing is half-written" "$(find . -name '.new-*' -o -name '.old-*')"
else ok "nothing is half-written"; fi
rm models/broken.onnx
fleet plan fleet.toml -o plan; said "without it" 0 "8 jobs"
ninja -C plan -k 0 >log 2>&1 || fail "all others" "ninja fails"
fleet report plan; said "are there" 0 "0 failed, 0 pending"
ninja -C plan -k 0 >log 2>&1
if grep -q "no work to do" log; then ok "again: no work"
else fail "again: no work" "$(tail -n 2 log)"; fi
printf x >>models/w.data
ninja -C plan -k 0 -n >log 2>&1
if grep -q "npu/data" log && ! grep -q "npu/plain" log; then ok "a data file changed: its jobs"
else fail "a data file changed: its jobs" "$(cat log)"; fi

# -- the cache, on another machine: another plan --
cp plan/out/npu/plain/plain_ctx.onnx before.onnx
fleet plan fleet.toml -o other
ninja -C other -k 0 >log 2>&1
fleet report other; said "the cache has what did not change" 0 "2 done, 6 cached"
if cmp -s before.onnx other/out/npu/plain/plain_ctx.onnx; then ok "the same bytes"
else fail "the same bytes" "they differ"; fi
fleet report other --json
if "$python" -c 'import json; print(json.load(open("out"))["counts"])' >log 2>&1 &&
    grep -q "'cached': 6" log; then ok "as JSON"; else fail "as JSON" "$(cat log)"; fi

# A result is edited in place; the cache keeps what it had.
printf x >>other/out/npu/plain/plain_ctx.onnx
rm -r plan/out/npu/plain plan/state/*.done
ninja -C plan -k 0 >log 2>&1
if cmp -s before.onnx plan/out/npu/plain/plain_ctx.onnx; then ok "no result is the cache's file"
else fail "no result is the cache's file" "writing one result changed the other"; fi

# -- names that ninja has no form for, and names that are not text --
odd=$(printf 'l\351 #$')
mkdir "$odd"
cp models/plain.onnx "$odd/m.onnx"
printf 'epctx = "%s"\nmodel = [{path = "l*/m.onnx"}]\nep = [{name = "npu"}]\n' "$plain" >odd.toml
fleet plan odd.toml -o odd; said "a folder whose name is no UTF-8" 0 "1 jobs"
ninja -C odd -k 0 >log 2>&1
fleet report odd; said "is compiled" 0 "1 done"
ninja -C odd -k 0 >log 2>&1
if grep -q "no work to do" log; then ok "once"; else fail "once" "$(tail -n 2 log)"; fi
lines=$(printf 'two\nlines')
mkdir "$lines"
cp models/plain.onnx "$lines/m.onnx"
sed 's|l\*/m|two*/m|' odd.toml >lines.toml
fleet plan lines.toml -o lines; said "a folder whose name has two lines" 2 "has a control character"
fleet plan odd.toml -o "$lines"; said "a plan of such a name" 2 "has a control character"

# -- a model that changes while it is compiled is not kept under the name of what it was --
cat >slow <<END
#!/bin/sh
case "\$*" in compile*) printf x >>"$work/models/w.data" ;; esac
exec "$plain" "\$@"
END
chmod +x slow
sed 's|^epctx = .*|epctx = "slow"|; s|\*.onnx|data.onnx|; s|^timeout|cache = "slow_cache"\ntimeout|' \
    fleet.toml >slow.toml
fleet plan slow.toml -o slowed
fleet job slowed 0; said "a data file changes meanwhile" 1 "changed meanwhile"
if find slow_cache -type f | grep -q .; then fail "nothing is kept of it" "$(find slow_cache)"
else ok "nothing is kept of it"; fi

# -- a tool that hangs, and one that crashes --
cat >hangs <<END
#!/bin/sh
case "\$*" in
ls*) exec "$plain" "\$@" ;;
*/plain.onnx*) sleep 100 ;;
*/digits.onnx*) kill -SEGV \$\$ ;;
*) exec "$plain" "\$@" ;;
esac
END
chmod +x hangs
sed 's|^epctx = .*|epctx = "hangs"|; s/^timeout = .*/timeout = 1/' fleet.toml >hangs.toml
fleet plan hangs.toml -o hung
ninja -C hung -k 0 >log 2>&1
fleet report hung; said "a hanging tool is ended" 1 "npu/plain        failed"
if grep -q "did not end within 1 s" out && grep -q "killed by SIGSEGV" out; then ok "and said so"
else fail "and said so" "expected a time limit and a signal"; fi
said "the others went on" 1 "4 done, 0 cached, 4 failed"

# -- an EP in a library, through ONNX Runtime --
if library=$(sh "$top/tests/deps.sh" where ort) && [ -e "$build/libtoy_ep.so" ]; then
    cp /usr/share/libonnx-testdata/data/node/test_mul/model.onnx mul.onnx
    cat >library.toml <<END
epctx = "$plain"
model = [{path = "mul.onnx"}]
[[ep]]
name = "toy"
library = "$build/libtoy_ep.so"
ort = "$library"
END
    fleet plan library.toml -o by_ort
    ninja -C by_ort -k 0 >log 2>&1
    fleet report by_ort; said "an EP in a library" 0 "1 done, 0 cached, 0 failed"
    if [ -e by_ort/out/toy/mul/mul_ctx.onnx ]; then ok "its model"; else fail "its model" "none"; fi
    # What an EP's folder has, and the ONNX Runtime that the environment names, decide too.
    mkdir eplib
    cp "$build/libtoy_ep.so" eplib
    sed "/^ort = /d; s|^library = .*|library = \"eplib/libtoy_ep.so\"|;
        s|^model|cache = \"beside_cache\"\nmodel|" library.toml >beside.toml
    fleet plan beside.toml -o beside
    EPCTX_ORT_LIBRARY=$library fleet job beside 0
    fleet report beside; said "ONNX Runtime by the environment" 0 "1 done, 0 cached"
    EPCTX_ORT_LIBRARY=$library fleet job beside 0
    fleet report beside; said "the same again" 0 "0 done, 1 cached"
    echo "a backend" >eplib/libbackend.so
    EPCTX_ORT_LIBRARY=$library fleet job beside 0
    fleet report beside; said "another library beside the EP" 0 "1 done, 0 cached"
    cp "$library" ./libother.so
    printf x >>libother.so
    EPCTX_ORT_LIBRARY=$work/libother.so fleet job beside 0
    fleet report beside; said "another ONNX Runtime" 0 "1 done, 0 cached"
    # The name is part of what is asked for, and an EP inside ONNX Runtime has no file.
    sed "s|^library = .*|library = \"$build/libtoy_ep.so:ToyExecutionProvider\"|" library.toml \
        >named.toml
    fleet plan named.toml -o named
    ninja -C named -k 0 >log 2>&1
    fleet report named; said "a library with a name" 0 "1 done, 0 cached, 0 failed"
    sed 's|^library = .*|library = "CPUExecutionProvider"|' library.toml >inside.toml
    fleet plan inside.toml -o inside
    ninja -C inside -k 0 >log 2>&1
    fleet report inside; said "an EP inside ONNX Runtime" 1 "writes no EPContext models"
    sed "s|^library = .*|library = \"$build/libnone.so:Acme\"|" library.toml >absent.toml
    fleet plan absent.toml -o absent
    fleet job absent 0; said "a library that is not there" 1 "libnone.so'"
else
    fail "an EP in a library" "ONNX Runtime or libtoy_ep.so is not there"
fi

# -- mistakes --
mistake() { # NAME TEXT LINE...
    name=$1 text=$2
    shift 2
    printf '%s\n' "$@" >bad.toml
    fleet plan bad.toml -o bad; said "$name" 2 "$text"
}
model='model = [{path = "models/plain.onnx"}]'
mistake "no TOML" "bad.toml" "model = ["
mistake "an unknown key" "unknown key 'modell'" 'modell = []'
mistake "no such file" "no file is" 'model = [{path = "none*.onnx"}]' "epctx = \"$plain\"" \
    'ep = [{name = "npu"}]'
mistake "two results of one name" "two models would be" \
    'model = [{path = "models/plain.onnx"}, {path = "models/plain.onnx"}]' "epctx = \"$plain\"" \
    'ep = [{name = "npu"}]'
mistake "a folder that leads out" "cannot be a folder" "$model" "epctx = \"$plain\"" \
    'ep = [{name = "../x"}]'
mistake "no such tool" "is no program" "$model" 'epctx = "./none"' 'ep = [{name = "npu"}]'
fleet job plan 99; said "no such job" 2 "there is no job 99"
fleet report none; said "no plan" 2 "no plan is there"

# -- Slurm --
if quick; then
    [ $status -eq 0 ] || exit $status
    echo "skip slurm: \`make check\` installs it and runs the test"
    exit 0
fi
if ! command -v slurmctld >/dev/null || [ "$(id -u)" -ne 0 ]; then
    echo "skip slurm: it is not here, or this is not root"
    exit $status
fi
host=$(hostname -s)
slurm=$work/slurm
mkdir -p "$slurm/ctld" "$slurm/d" "$slurm/munge"
dd if=/dev/urandom of="$slurm/munge/key" bs=128 count=1 2>log
chmod 700 "$slurm/munge"
chmod 600 "$slurm/munge/key"
# The socket's folder has to be open to all users, and its path short.
short=$(mktemp -d /tmp/fleet.XXXXXX)
chmod 755 "$short"
cat >"$slurm/slurm.conf" <<END
ClusterName=loopback
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$short/munge.socket
CredType=cred/munge
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
StateSaveLocation=$slurm/ctld
SlurmdSpoolDir=$slurm/d
SlurmctldPidFile=$slurm/ctld.pid
SlurmdPidFile=$slurm/d.pid
SlurmctldLogFile=$slurm/ctld.log
SlurmdLogFile=$slurm/d.log
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
SLURM_CONF=$slurm/slurm.conf
export SLURM_CONF
munged --foreground --force --key-file="$slurm/munge/key" --socket="$short/munge.socket" \
    --pid-file="$slurm/munge/pid" --seed-file="$slurm/munge/seed" --log-file="$slurm/munge/log" \
    >"$slurm/munge.out" 2>&1 &
daemons=$!
slurmctld -D >"$slurm/ctld.out" 2>&1 &
daemons="$daemons $!"
slurmd -D -N "$host" >"$slurm/d.out" 2>&1 &
daemons="$daemons $!"
# shellcheck disable=SC2086 # a list of numbers
trap 'kill $daemons; rm -rf "$short"' EXIT
waited=0
until sinfo -h -o %t 2>/dev/null | grep -q idle || [ $waited -ge 40 ]; do
    sleep 0.5
    waited=$((waited + 1))
done
echo "no model" >models/broken.onnx
sed 's|^timeout|cache = "slurm_cache"\nslurm = ["--time=10"]\ntimeout|' fleet.toml >slurm.toml
fleet plan slurm.toml -o cluster; said "a plan for the cluster" 0 "10 jobs"
if timeout 300 sbatch --wait cluster/array.sbatch >log 2>&1; then
    fail "sbatch tells of the broken model" "exit code 0"
else
    ok "sbatch tells of the broken model"
fi
fleet report cluster; said "all the others by Slurm" 1 "8 done, 0 cached, 2 failed, 0 pending"
rm models/broken.onnx
fleet plan slurm.toml -o cluster
if timeout 300 sbatch --wait cluster/array.sbatch >log 2>&1; then ok "the array again"
else fail "the array again" "$(cat log "$slurm/ctld.out" | tail -n 5)"; fi
fleet report cluster; said "all is there, nothing compiled twice" 0 "0 done, 8 cached"
if cmp -s before.onnx cluster/out/npu/plain/plain_ctx.onnx; then ok "the same bytes by Slurm"
else fail "the same bytes by Slurm" "they differ"; fi
exit $status
