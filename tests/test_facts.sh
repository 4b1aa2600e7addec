#!/bin/sh
# Facts about vendors: each has an origin, none stands once more in C, epctx.h has what they say;
# one more of each kind is one more line, when building and at run time; what is no facts is
# refused.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/script.sh
start facts
folder=examples/epctx/facts
judge=$top/tests/judge/facts_values.awk
out=$work/out err=$work/err

# -- the files

epctx profiles --check $folder
count=$(sed -n 's/.*: \([0-9]*\) facts, nothing wrong$/\1/p' "$out")
said "the built-in facts" 0 "nothing wrong"
rows=$(sed -n '/^static const fact built_in_facts/,/^};/p' build/facts_table.h | grep -c '^    {')
if [ "${count:-0}" -gt 600 ] && [ "$count" -eq "$rows" ]; then ok "as many are in the tool"; else
    fail "as many are in the tool" "expected $rows, found ${count:-none}"
fi
awk -v MODE=header -f $folder/facts.awk $folder/*.facts epctx.h >"$work/epctx.h"
same "epctx.h is what 'make facts' writes" epctx.h "$work/epctx.h"
grep -v '/\* -- facts: ' epctx.h >"$work/without.h"
if awk -v MODE=header -f $folder/facts.awk $folder/*.facts "$work/without.h" >"$out" 2>"$err"; then
    fail "an epctx.h without marks" "expected a failure"
else
    code=1
    said "an epctx.h without marks" 1 "expected four marks"
fi

# -- C says nothing of it once more

# repeats FOLDER: how often a value is in a source of the tool, or in epctx.h outside of its marks
repeats() (
    sed '/^\/\* -- facts: /,/^\/\* -- end of facts -- /d' "$1/epctx.h" >"$work/rest.h"
    awk -f "$judge" "$top/$folder"/*.facts | LC_ALL=C sort -u >"$work/values"
    cd "$1" || exit 1
    find examples/epctx -name '*.[ch]' ! -path "*/facts/*" -exec grep -noFwHf "$work/values" {} + |
        sed 's/:[0-9]*:/ /'
    grep -noFwf "$work/values" "$work/rest.h" | sed 's/^[0-9]*:/epctx.h /'
)
counted() { LC_ALL=C sort | uniq -c | sed 's/^ *//'; }
repeats . | counted >"$work/found"
grep -v '^#' tests/facts_known.txt >"$work/known"
if diff "$work/known" "$work/found" >"$out"; then ok "nothing in C repeats a fact"; else
    fail "nothing in C repeats a fact" "expected what tests/facts_known.txt lists"
fi
mkdir -p "$work/twice/examples/epctx"
cp epctx.h "$work/twice"
echo 'static const char library[] = "libonnxruntime_providers_qnn.so";' \
    >"$work/twice/examples/epctx/a.c"
echo '/* the SM8850L */' >>"$work/twice/epctx.h"
repeats "$work/twice" | counted >"$out"
printf '1 %s\n' "epctx.h SM8850L" "examples/epctx/a.c libonnxruntime_providers_qnn.so" >"$work/new"
grep ' epctx.h ' "$work/known" | cat - "$work/new" | LC_ALL=C sort >"$work/expected"
LC_ALL=C sort "$out" >"$work/repeated"
same "one that does is found" "$work/repeated" "$work/expected"

# -- C tells no EP by its name

# names FOLDER: texts with the name of a vendor in the sources of the tool, and in epctx.h outside
# of its marks
names() (
    awk -v MODE=names -f "$top/$folder/facts.awk" "$top/$folder"/*.facts | LC_ALL=C sort -u \
        >"$work/vendors"
    cd "$1" || exit 1
    # shellcheck disable=SC2046 # names without blanks
    awk -f "$top/tests/judge/facts_names.awk" "$work/vendors" "$work/rest.h" \
        $(find examples/epctx -name '*.[ch]') | sed "s|^$work/rest.h |epctx.h |" | LC_ALL=C sort -u
)
repeats . >/dev/null
sed -n 's/^\([^#].*\) | .*/\1/p' tests/facts_names_known.txt | LC_ALL=C sort >"$work/known"
names . >"$work/found"
if diff "$work/known" "$work/found" >"$out"; then ok "C tells no EP by its name"; else
    fail "C tells no EP by its name" "expected what tests/facts_names_known.txt lists"
fi
if grep '^[^#]' tests/facts_names_known.txt | grep -v ' | [a-zA-Z]'; then
    fail "each known name has its reason" "none"
fi
cat >"$work/twice/examples/epctx/a.c" <<'END'
/* "telum" in a comment
   and "telum" in its second line */
bool a = strcmp(name, "x") == 0 || strcmp(name, "telum") == 0;
bool b = strncmp(name, "qnn ", 4) == 0;
snprintf(name, sizeof name, "qnn %u", number);
if (strncasecmp(text, "Snapdragon 8", 12) == 0) text += 11;
say("the EP of Intel");
static const char *const providers[] = {"MyRyzenAI", "CPU"};
END
names "$work/twice" >"$out"
printf 'examples/epctx/a.c %s\n' MyRyzenAI 'Snapdragon 8' 'qnn ' 'qnn %u' telum >"$work/new"
grep '^epctx.h ' "$work/known" | cat - "$work/new" | LC_ALL=C sort >"$work/expected"
same "each way to do it is found" "$out" "$work/expected"

# -- one line more, when building

mkdir -p "$work/more/build" "$work/more/facts"
cp $folder/*.facts "$work/more/facts"
origin='who: W; seen: bench; from: F; date: 2026-11'
acme='sources: AcmeEP, ACME; traits: any_case, each_context; key: partition_name'
files='required: source, notes; binary: {stem}.acme; sidecars: a*.json'
cat >"$work/more/facts/a.facts" <<END
facts: 1

profile: acme; $acme; $files; $origin
chip: SM9999; soc_model: 999; htp: 90; vtcm: 8; $origin
message: acme broke | broken ... code; cause: It broke.; cure: Mend it.; $origin
option: session.acme; id: ACME; type: switch; default: 0; phase: load; text: as Acme does; $origin
END
cat >"$work/more/main.c" <<'END'
#define EPCTX_IMPLEMENTATION
#define EPCTX_PROFILES facts_profiles
#include "epctx.h"
#include "examples/epctx/facts/facts.h"
int main(void) {
    const epctx_profile *p = epctx_profile_of(epctx_str_of("acme"));
    const char *at = "message";
    size_t count;
    printf("%s %s %s %x %d %x %s %s\n", p->name, p->sources[0], p->sources[1], (unsigned)p->traits,
           (int)p->key, (unsigned)p->required, p->binary, p->sidecars[0]);
    (void)epctx_option_list(&count);
    printf("%s\n", epctx_option_list(NULL)[EPCTX_OPTION_ACME].text);
    printf("%u\n", (unsigned)fact_number(facts_find("chip", "SM9999"), "vtcm"));
    printf("%s\n", fact_get(facts_find(at, "acme broke | broken ... code"), "cure"));
    return 0;
}
END
cd "$work/more" || exit 1
# shellcheck disable=SC2086 # lists
build_more() {
    awk -v MODE=table -f "$top/$folder/facts.awk" facts/*.facts >build/facts_table.h &&
        awk -v MODE=header -f "$top/$folder/facts.awk" facts/*.facts "$top/epctx.h" >epctx.h &&
        ${CC:-gcc} -std=c11 -O0 -I. -I"$top" ${NANOPB_CFLAGS:-} main.c "$top/$folder"/facts*.c \
            ${NANOPB_LIBS:--lprotobuf-nanopb} -lm -o main
}
if build_more 2>"$err" && ./main >"$out"; then
    cat >expected <<'END'
acme AcmeEP ACME 20001 2 180 {stem}.acme a*.json
as Acme does
8
Mend it.
END
    same "an EP, a chip, a message and an option, each by a line" "$out" expected
else
    fail "an EP, a chip, a message and an option, each by a line" "it does not build"
fi
# What has no origin, or breaks the format, ends the build.
while IFS='|' read -r line says; do
    printf 'facts: 1\n\n%b\n' "$line" >facts/z.facts
    awk -v MODE=table -f "$top/$folder/facts.awk" facts/*.facts >"$out" 2>"$err"
    code=$?
    said "build: $says" 1 "facts/z.facts:3: $says"
done <<'END'
chip: A; soc_model: 1; htp: 60; seen: bench; from: F; date: 2026-11|'chip: A' has no 'who'
chip: A; soc_model: 1; htp: 60; who: W; seen: bench; from: F|'chip: A' has no 'date'
chip: A; soc_model: 1; htp: 60; who: W; from: F; date: 2026-11|'chip: A' has no 'seen'
chip: A; soc_model: 1; htp: 60; who: W; seen: bench; date: 2026-11|'chip: A' has no 'from'
chip: SM9999; who: W; seen: bench; from: F; date: 2026-11|'chip: SM9999' is in line 4, too
chip: A; chip: B|'chip' stands twice in a block
chip|expected 'key: value', found 'chip'
END

# Without Python, and with any awk that there is: make needs nothing else for the table.
mkdir -p bin tree/tests tree/examples/epctx
ln -sf /bin/* /usr/bin/* bin
rm -f bin/*python* bin/py*
cp "$top/Makefile" "$top"/epctx*.h tree
cp "$top/tests/deps.sh" "$top/tests/build.mk" tree/tests
cp -r "$top/$folder" tree/examples/epctx
PATH=$PWD/bin EPCTX_OFFLINE=1 make -s -C tree build/facts_table.h >"$out" 2>"$err"
code=$?
said "make without Python" 0
same "the same table" tree/build/facts_table.h "$top/build/facts_table.h"
touch -d '2001-01-01' tree/build/facts_table.h
PATH=$PWD/bin EPCTX_OFFLINE=1 make -s -q -C tree build/facts_table.h >"$out" 2>"$err"
code=$?
said "make again after a change" 1
for other in mawk gawk 'busybox awk' original-awk; do
    command -v "${other%% *}" >/dev/null || continue
    $other -v MODE=table -f "$top/$folder/facts.awk" "$top/$folder"/*.facts >"$work/by" 2>"$err"
    same "the same table by $other" "$work/by" "$top/build/facts_table.h"
done

# -- one line more, at run time

cd "$work" || exit 1
cat >my.facts <<END
facts: 1

default: all
who: W
seen: bench
from: F
date: 2026-11

profile: acme
sources: AcmeExecutionProvider, ACME
traits: no_dots
key: node_name
required: hardware_architecture
binary: {stem}.acme
library: libacme.so
packages: PyPI acme
needs: an Acme

brand: Acmon;
chip: SM9999; soc_model: 999; htp: 90; vtcm: 8; also: 9 Gen 9
chip: SM8550; soc_model: 43; htp: 99

message: acme broke | broken ... code
cause: It broke.
cure: Mend it.

option: ep.context_acme; type: switch; default: 0; phase: load; text: as Acme does
code: qnn 5999; meaning: an Acme error
code: acme 77; meaning: no coyote; names: ACME_ERROR_NO_COYOTE
code: acme 5005; meaning: no anvil
genai: model.acme; holds: number

attribute: acme grade; profiles: acme; when: notes seconds; words: b, c
attribute: acme wires; profiles: acme; renames: Acme stops
attribute: acme lot; profiles: acme; source: ACME; why: Acme counts them
END
epctx profiles --check my.facts; result "my facts" 0 "my.facts: 13 facts, nothing wrong"
epctx profiles acme; result "no EP without them" 2 "unknown EP or profile 'acme'"
epctx profiles --facts my.facts acme; result "an EP" 0 "PyPI acme"
epctx profiles acme --facts=my.facts --json; result "an EP, JSON" 0 '"library": "libacme.so"'
EPCTX_FACTS=my.facts
export EPCTX_FACTS
epctx profiles acme; result "an EP, by the environment" 0 "libacme.so"
epctx compile --options; result "an option listed" 0 "ep.context_acme"
unset EPCTX_FACTS
epctx profiles --chips --facts my.facts; result "a chip" 0 "999  v90   8 MiB  SM9999/9 Gen 9"
said "a chip that is replaced" 0 "43  v99  ?       SM8550"
epctx profiles --errors --facts my.facts; result "an error number" 0 " 5999  an Acme error"
epctx explain "E: acme is BROKEN, code 5"; result "no message without them" 1 "nothing is known"
epctx explain --facts my.facts "E: acme is BROKEN, code 5"; result "a message" 0 "Mend it."
epctx explain --facts my.facts ep.context_acme; result "an option" 0 "as Acme does"
epctx explain --facts my.facts 5999; result "an error number explained" 0 "an Acme error"
epctx explain --facts my.facts 77; result "a number of Acme" 0 "ACME error 77: no coyote"
epctx explain --facts my.facts "E: ACME_ERROR_NO_COYOTE"; result "its name" 0 "ACME error 77"
epctx explain --facts my.facts "acme err 5005"; result "a number of two EPs" 0 "ACME error 5005"
epctx explain --facts my.facts "qnn err 5005"; result "the other one" 0 "QNN error 5005"
epctx explain --facts my.facts 5005; result "a number alone: the first" 0 "QNN error 5005"
epctx explain --facts my.facts "err: acme 5001"; result "no number of it" 1 "nothing is known"
epctx explain --facts my.facts AcmeExecutionProvider; result "an EP explained" 0 "needs an Acme"

printf blob >m.acme
wrap="wrap --inputs x:float32[1,4] --outputs y:float32[1,4] -o m.onnx m.acme"
# shellcheck disable=SC2086 # a list
epctx $wrap --profile acme; result "no wrap without them" 2 "acme"
# shellcheck disable=SC2086
epctx $wrap --profile acme --facts my.facts; result "wrap: what the EP requires" 1 "E041"
# shellcheck disable=SC2086
epctx $wrap --profile acme --arch v90 --facts my.facts; result "wrap" 0
epctx lint --facts my.facts m.onnx; said "lint" 0
epctx unset m.onnx hardware_architecture -o u.onnx; result "unset" 0
epctx lint u.onnx; said "lint without them" 0
epctx lint --facts my.facts u.onnx; said "lint: what the EP requires" 1 "hardware_architecture"
epctx lint --facts my.facts --ep acme u.onnx; said "lint --ep" 1 "hardware_architecture"
epctx prefix --dry-run -o p.onnx m.onnx p_; result "prefix without them" 0
epctx prefix --facts my.facts --dry-run -o p.onnx m.onnx p_
result "prefix: the library knows the EP, too" 1 "acme"

# -- what an EP wants of attributes that only it knows, and whose binaries it reads

# acme ATTRIBUTE=VALUE...: what lint says of such a node of Acme
acme() {
    rm -f m.onnx
    # shellcheck disable=SC2086 # a list
    "$epctx" $wrap --profile acme --arch v90 --facts my.facts >/dev/null || fail acme wrap
    for pair; do "$epctx" set m.onnx "$pair" --in-place >/dev/null || fail acme "$pair"; done
    epctx lint --hints --facts my.facts m.onnx
}
acme wires:string='x=a;y=b;'; said "names that the node has" 0 "0 errors"
grep -q I011 "$out" && fail "names that the node has" "no override-unused"
acme grade:string=a; said "a word, where nothing is wanted" 0 "0 errors"
acme notes=seconds grade:string=b; said "a word that may be" 0 "0 errors"
acme notes=seconds grade:string=a; said "another word" 1 "grade is 'a', expected one of: b, c"
acme wires:string='x=a;z=b'
said "a name that is none" 0 "wires has 'z', which is neither an input nor"
said "what happens then" 0 "of the node: Acme stops"
acme source=ACME; said "an attribute that must be there" 1 "lot is missing: Acme counts them"
acme source=ACME lot:int=1; said "one that is there" 0 "0 errors"
sed 's/key: node_name/key: partition_name/' my.facts >key.facts
"$epctx" unset m.onnx partition_name -o u.onnx --overwrite replace >/dev/null
epctx lint --facts key.facts u.onnx
said "a key that is missing" 1 "EP 'acme' finds the graph in the container by this name"

epctx set m.onnx embed_mode=1 -o u.onnx --overwrite replace
epctx lint --facts my.facts u.onnx; said "a name as Acme's binaries have" "$code" "a file name?"
printf 'ftrt of TensorRT' >m.acme
epctx lint --facts my.facts m.onnx
said "a binary of another EP" 1 "is a TensorRT engine, but the node is for EP 'acme'"
sed 's/^library: /binaries_of: tensorrt\n&/' my.facts >reads.facts
grep -q '^binaries_of' reads.facts || fail "a binary that it reads, too" "no fact"
epctx lint --facts reads.facts m.onnx; said "a binary that it reads, too" 0
printf blob >m.acme
sed 's/^traits: no_dots$/architecture: htp\ncompat_rule: qnn/' my.facts >qnn.facts
epctx check --facts qnn.facts --chip "Acmon 9 Gen 9" m.onnx
said "check --chip with the brand" "$code" "EP_SUPPORTED_OPTIMAL"
epctx check --facts qnn.facts --chip "9 Gen 9" m.onnx
said "check --chip" "$code" "EP_SUPPORTED_OPTIMAL"

# -- what is refused; test_facts.c has the rest

mkdir empty many
mkfifo pipe
ln -s loop.facts loop.facts
head -c 3000000 /dev/zero | tr '\0' x >huge.facts
head -c 4096 /dev/zero >zeros.facts
printf 'facts: 2\n\nnew: thing\n' >newer.facts
{ printf 'facts: 1\n\n' && yes x | head -n 1000000; } >lines.facts
{ cat my.facts && printf '\nchip: A\0B; soc_model: 1; htp: 1; %s\n' "$origin"; } >nul.facts
mkdir folder.facts
cp my.facts locked.facts
chmod 000 locked.facts
sed 's/^htp: .*//; s/htp: 90; //' my.facts >lies.facts
for i in $(seq 65); do echo 'facts: 1' >many/$i.facts; done
while read -r file says; do
    epctx profiles --check "$file"; said "--check $file" 1 "$says"
    grep -q "^$file" "$out" || fail "--check $file" "the file is not named"
    epctx profiles --facts "$file" qnn; result "--facts $file" 2 "--facts: $file"
    said "$file: says so" 2 "$says"
    EPCTX_FACTS=$file "$epctx" profiles qnn >"$out" 2>"$err"
    code=$?
    said "EPCTX_FACTS $file: the built-in ones" 0 "libonnxruntime_providers_qnn.so"
    said "EPCTX_FACTS $file: says so" 0 "epctx: warning: EPCTX_FACTS: $file"
done <<'END'
empty this folder has no file *.facts
many has more than 64 files *.facts
pipe is neither a file nor a folder
loop.facts loop.facts
huge.facts has more than 2097152 bytes
zeros.facts has a character that is no text
newer.facts :1: this is format '2' of facts, but this epctx reads format 1
lies.facts :20: 'chip: SM9999' has no 'htp'
missing.facts does not exist
lines.facts :3: expected 'key: value', found 'x'
nul.facts :37: has a character that is no text
folder.facts this folder has no file *.facts
END
if [ -r locked.facts ]; then
    echo "skip a file that may not be read: this user may read every file"
else
    epctx profiles --check locked.facts; said "a file that may not be read" 1 "locked.facts"
    epctx profiles --facts locked.facts qnn; result "--facts of such a file" 2 "locked.facts"
fi
sed 's/$/\r/' my.facts >dos.facts
epctx profiles --check dos.facts; result "lines that end as on Windows" 0 "13 facts, nothing wrong"
epctx profiles --check newer.facts --json; said "--check, JSON" 1 '"line": 1'
epctx profiles --check newer.facts --chips; result "--check and --chips" 2 "exclude each other"
i=0
while [ $i -lt 150 ]; do
    echo "chip: A$i; soc_model: x; htp: 1; $origin"
    i=$((i + 1))
done | { printf 'facts: 1\n\n' && cat; } >more.facts
epctx profiles --check more.facts; said "many problems" 1 "50 more problems"
exit $status
