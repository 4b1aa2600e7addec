#!/usr/bin/python3
"""What commands that write leave on the disk, whoever interferes.

    tests/judge/files.py EPCTX FOLDER AREA...

Runs every command that writes, again and again in a folder of its own, and
looks at that folder and at what lies outside of it afterwards:

    modes     no set-uid or set-gid file; bits of the group only with the group
    links     outputs that the tool names itself never lead out of the folder
    races     the same when a name becomes a link while the command runs
    kills     SIGKILL at every system call that changes something
    signals   SIGINT, SIGTERM and SIGHUP there: no temporary files, either
    errors    every such call failing once, and the disk full from there on
    swaps     the same by chance
    full      a full disk that is really full; wants to mount one
    pairs     two commands, one stopped at every system call of its own
    at-once   two compilations into one output
    in-place  eight changes of one model at once
    names     outputs whose names are as long as the file system allows
    real      through a link to a model its files go beside the real one

Prints the lines of tests/run. Areas that stop a command at a system call need
strace.
"""
import contextlib
import ctypes
import glob
import multiprocessing
import os
import re
import resource
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make_model  # noqa: E402
from effort import rounds, some  # noqa: E402
import onnx_schema  # noqa: E402

TOOL = ""
OPENER = os.environ.get("FILES_OPENER")  # opener.c: the library without the tool
PRELOAD = os.environ.get("FILES_PRELOAD")  # no_tmpfile.c
# Names of what is unfinished, as the README gives them.
UNFINISHED = re.compile(r"\.tmp$|\.part-[^/]*(/|$)|\.lock$")
# Further names of new files, which a new model uses while the old files still have the names.
SECOND = re.compile(r"\.new\d*$")
SECOND_QUOTED = re.compile(r"\.new\d*\"")
LIMIT = 10  # seconds for one command
LINK, FOLDER = "link", "folder"


# -- folders as they are --

def snapshot(root):
    """Everything below a folder: bytes of a file, or what else it is."""
    found = {}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            short = os.path.relpath(path, root)
            if os.path.islink(path):
                found[short] = (LINK, os.readlink(path))
            elif os.path.isdir(path):
                found[short] = FOLDER
            else:
                with open(path, "rb") as data:
                    found[short] = data.read()
    return found


def files_of(state):
    return {name: data for name, data in state.items() if isinstance(data, bytes)}


def place(files, root="now"):
    """A fresh folder with these files."""
    shutil.rmtree(root, ignore_errors=True)
    os.mkdir(root)
    for name, data in files.items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if data == FOLDER:
            os.makedirs(path, exist_ok=True)
        elif isinstance(data, tuple):
            os.symlink(data[1], path)
        else:
            with open(path, "wb") as out:
                out.write(data)


def words_of(args, before=()):
    """A whole command line, which may run under something else."""
    program = OPENER if args[0] == "open-or-compile" else TOOL
    inside = [] if not PRELOAD else ["-E" if before else "env", "LD_PRELOAD=" + PRELOAD]
    return [*before, *inside, program, *args]


def run(args, before=(), **more):
    words = words_of(args, before)
    try:
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT,
                              check=False, **more)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 99, b"", b"does not end\n")


def said(result, long_stem=None):
    text = (result.stderr or result.stdout).decode("utf-8", "replace").strip()
    if long_stem:
        text = text.replace(long_stem, "NAME")
    return f"exit code {result.returncode}: {text.partition(chr(10))[0][:200]}"


# -- the commands --

class Command:
    """One command line, with the folder before and after it.

    `files` are what it reads, `older` the same of another generation: what the
    command makes of those is there already when it runs. `typed` are outputs
    whose names stand on the command line, all others are the tool's own.
    """

    def __init__(self, name, files, args, older=None, typed=(), extra=(), good=(0,)):
        self.name = name
        self.args = [a if not a.startswith("@") else "now/" + a[1:] for a in args.split()]
        self.typed = set(typed)
        self.good = good
        self.models = [n for n in files if n.endswith(".onnx")]
        self.before = dict(files)
        if older is not None:
            place(older)
            self.check(run(self.args))
            made = snapshot("now")
            self.before.update({n: d for n, d in made.items() if n not in files})
        self.before.update(dict(extra))
        place(self.before)
        self.needs_before = self.needs()
        self.check(run(self.args))
        self.after = snapshot("now")
        self.needs_after = self.needs()
        self.outputs = [n for n, d in self.after.items()
                        if isinstance(d, bytes) and self.before.get(n) != d]
        if not self.outputs:
            raise RuntimeError(f"{name}: nothing is written")
        self.before = self.begin()

    def check(self, result):
        if result.returncode not in self.good:
            raise RuntimeError(f"{self.name}: {said(result)}")

    def begin(self, changes=None):
        place({**self.before, **(changes or {})})
        return snapshot("now")

    def needs(self):
        """The files that each model needs, itself included."""
        needs = {}
        for name in files_of(snapshot("now")):
            if not name.endswith(".onnx"):
                continue
            listed = run(["ls", "-0", "now/" + name]).stdout.decode().split("\0")
            needs[name] = {name} | {os.path.relpath(p, "now") for p in listed if p}
        return needs

    def own_names(self):
        """Outputs that the tool named itself."""
        return [n for n in self.outputs if n not in self.typed]

    def wrong(self, state, unfinished):
        """What is neither the old set nor the new one, nor binaries without a model; or None."""
        state = dict(state)
        for name in list(state):
            if SECOND.search(name) and unfinished:
                if state[name] != self.after.get(SECOND.sub("", name)):
                    return f"{name} is not complete"
                continue  # whether something needs it is seen below
            if UNFINISHED.search(name) or SECOND.search(name):
                if not unfinished:
                    return f"{name} is left behind"
                del state[name]
        for name in self.models:
            if state.get(name) not in (self.before[name], self.after.get(name)):
                return f"the model {name} is gone" if name not in state else f"{name} is broken"
        for name, data in files_of(state).items():
            if data not in (self.before.get(name), self.after.get(name)) and \
                    not SECOND.search(name) and not self.is_detour(name, state):
                return f"{name} is neither the old nor the new one"
        for name, data in state.items():
            if not name.endswith(".onnx") or not isinstance(data, bytes):
                continue
            good = data not in (self.before.get(name), self.after.get(name))  # on a detour
            for whole, needs in ((self.before, self.needs_before), (self.after, self.needs_after)):
                good = good or (data == whole.get(name) and
                                all(state.get(n) == whole[n] for n in needs[name]))
            if not good:
                return f"{name} stands beside files of another generation"
        return None

    def is_detour(self, name, state):
        """A new model that finds its new files under second names, until they have their own."""
        if not name.endswith(".onnx") or name in self.models or name not in self.after:
            return False
        texts = [SECOND_QUOTED.sub('"', str(onnx_schema.parse(data)))
                 for data in (state[name], self.after[name])]
        listed = run(["ls", "-0", "now/" + name])
        needs = [os.path.relpath(p, "now") for p in listed.stdout.decode().split("\0") if p]
        return texts[0] == texts[1] and listed.returncode == 0 and any(
            SECOND.search(n) for n in needs) and all(
                state.get(n) == self.after.get(SECOND.sub("", n)) for n in needs if n != name)

    def is_old(self, state):
        return without_folders(state) == without_folders(self.before)

    def is_new(self, state):
        return without_folders(state) == without_folders(self.after)


def without_folders(state):
    """Folders may stay, but for those that are not finished."""
    return {n: d for n, d in state.items() if d != FOLDER or UNFINISHED.search(n)}


def made(files, args):
    """What a command makes: for the models to test with."""
    place(files)
    result = run([a if not a.startswith("@") else "now/" + a[1:] for a in args.split()])
    if result.returncode not in (0, 3):
        raise RuntimeError(f"{args}: {said(result)}")
    return snapshot("now")


def model(kind, change=None):
    message = make_model.make(kind)
    if change:
        change(message)
    return message.SerializeToString()


def other_weights(message):
    for tensor in message.graph.initializer:
        for i, number in enumerate(tensor.float_data):
            tensor.float_data[i] = number + 0.5


def keeps_weights(message):
    """A node that stays on the CPU and has an initializer."""
    for node in message.graph.node:
        if node.op_type == "Strange":
            node.input.append("kept")
    message.graph.initializer.add(name="kept", data_type=1, dims=(1024,), raw_data=bytes(4096))


def keeps_others(message):
    keeps_weights(message)
    other_weights(message)
    message.graph.initializer[-1].raw_data = b"\1" * 4096


def takes_weights(plain):
    return make_model.takes_weights(onnx_schema.parse(plain)).SerializeToString()


def make_commands():
    plain, other = model("plain"), model("plain", other_weights)
    partly = model("partly")
    kept, kept_other = model("partly", keeps_weights), model("partly", keeps_others)

    def pick(state, *names):
        return {n: state[n] for n in names}

    def context(source, name, more=""):
        """A context model and its binary, under a name."""
        state = made({"s.onnx": source}, f"compile {more} @s.onnx -o @{name}_ctx.onnx")
        return {n: d for n, d in state.items() if n != "s.onnx"}

    c, d = context(plain, "c"), context(other, "c")
    inside = {"in.onnx": context(plain, "in", "--embed")["in_ctx.onnx"]}
    inside_other = {"in.onnx": context(other, "in", "--embed")["in_ctx.onnx"]}
    deep = made({**context(plain, "a"), "sub/keep": b""}, "mv @a_npu.bin @sub/a.bin")
    deep_other = made({**context(other, "a"), "sub/keep": b""}, "mv @a_npu.bin @sub/a.bin")
    for state in (deep, deep_other):
        del state["sub/keep"]
    second = context(partly, "b", "--prefix b_")
    second_other = context(model("partly", other_weights), "b", "--prefix b_")
    outside = made({"e.onnx": plain}, "init --external --threshold 0 --in-place @e.onnx")
    outside_other = made({"e.onnx": other}, "init --external --threshold 0 --in-place @e.onnx")
    weightless = {**made({"source.onnx": plain},
                         "init --external --threshold 0 --in-place @source.onnx"),
                  "w.onnx": takes_weights(plain)}
    broken = onnx_schema.parse(c["c_ctx.onnx"])
    broken.graph.node.add().CopyFrom(broken.graph.node[0])  # lint finds: the same name again
    values = "--inputs x:float32[1,1,6,6] --outputs y:float32[1,2,1,1]"
    source = {"p.onnx": plain}
    old = {"p.onnx": other}
    out = ("o.onnx",)
    noise = b"of somebody else" * 50
    everything = [
        ("compile", source, "compile @p.onnx"),
        ("compile -f", source, "compile -f @p.onnx", old),
        ("compile --embed", source, "compile -f --embed @p.onnx", old),
        ("compile --weightless", source, "compile -f --weightless @p.onnx", old),
        ("compile -o", source, "compile -f @p.onnx -o @sub/o_ctx.onnx", old, ("sub/o_ctx.onnx",),
         {"sub": FOLDER}),
        ("compile two", {**source, "q.onnx": partly}, "compile -f @p.onnx @q.onnx",
         {**old, "q.onnx": model("partly", other_weights)}),
        ("compile --initializers", {"p.onnx": kept}, "compile -f --initializers k.data @p.onnx",
         {"p.onnx": kept_other}),
        ("copy", source, "copy -f @p.onnx @o.onnx", old, out),
        ("copy --overwrite backup", source, "copy --overwrite backup @p.onnx @o.onnx", old, out),
        ("embed --in-place", c, "embed --in-place @c_ctx.onnx", None, ("c_ctx.onnx",)),
        ("embed -o", c, "embed -f @c_ctx.onnx -o @o.onnx", d, out),
        ("extract --in-place", inside, "extract --in-place @in.onnx", None, ("in.onnx",)),
        ("extract --in-place -f", inside, "extract --in-place -f @in.onnx", None, ("in.onnx",),
         {"in_npu.bin": noise}),
        ("extract -o", inside, "extract -f @in.onnx -o @o.onnx", inside_other, out),
        ("extract --name", inside, "extract -f @in.onnx -o @o.onnx --name sub/x.bin",
         inside_other, out, {"sub": FOLDER}),
        ("extract --overwrite backup", inside, "extract --overwrite backup @in.onnx -o @o.onnx",
         inside_other, out),
        ("mv", c, "mv @c_npu.bin @n.bin", None, ("n.bin",)),
        ("mv to a folder", {**c, "sub": FOLDER}, "mv @c_npu.bin @sub/n.bin", None,
         ("sub/n.bin",)),
        ("init --external", source, "init --external --threshold 0 --in-place @p.onnx", None,
         ("p.onnx",)),
        ("init --external -f", source,
         "init --external --threshold 0 --in-place --overwrite replace @p.onnx", None,
         ("p.onnx",), {"p.onnx.data": noise}),
        ("init --external -o", source, "init --external --threshold 0 -f @p.onnx -o @o.onnx", old,
         out),
        ("init --inline", outside, "init --inline --in-place @e.onnx", None, ("e.onnx",)),
        ("weightless", weightless, "weightless --in-place @w.onnx", None, ("w.onnx",)),
        ("merge", {**c, **second},
         "merge -f --allow-stale @c_ctx.onnx @b_ctx.onnx -o @to/o.onnx",
         {**d, **second_other}, ("to/o.onnx",), {"to": FOLDER}),
        ("merge sub", {**deep, **second},
         "merge -f --allow-stale @a_ctx.onnx @b_ctx.onnx -o @to/o.onnx",
         {**deep_other, **second_other}, ("to/o.onnx",), {"to/sub": FOLDER}),
        ("merge data", {**outside, **c}, "merge -f --allow-stale @e.onnx @c_ctx.onnx -o @to/o.onnx",
         {**outside_other, **d}, ("to/o.onnx",), {"to": FOLDER}),
        ("split", outside, "split -f --inputs x --outputs c @e.onnx -o @to/o.onnx", outside_other,
         ("to/o.onnx",), {"to": FOLDER}),
        ("wrap", {"v.bin": b"vendor" * 99}, f"wrap --profile qnn {values} -f @v.bin -o @to/o.onnx",
         {"v.bin": b"former" * 99}, ("to/o.onnx",), {"to": FOLDER}),
        ("repair", {"r.onnx": broken.SerializeToString(), "c_npu.bin": c["c_npu.bin"]},
         "repair --in-place @r.onnx", None, ("r.onnx",)),
        ("package", {**c, **source}, "package -o @pack --source @p.onnx @c_ctx.onnx", None,
         ("pack",)),
        ("set", c, "set --in-place @c_ctx.onnx --all notes=changed", None, ("c_ctx.onnx",)),
        ("set --overwrite backup", c,
         "set --in-place --overwrite backup @c_ctx.onnx --all notes=changed", None,
         ("c_ctx.onnx",)),
        ("unset", c, "unset --in-place @c_ctx.onnx --all ep_sdk_version", None, ("c_ctx.onnx",)),
        ("rename", c, "rename --in-place --any-io @c_ctx.onnx x renamed", None, ("c_ctx.onnx",)),
        ("prefix", c, "prefix --in-place --all-nodes --one-graph @c_ctx.onnx p_", None,
         ("c_ctx.onnx",)),
        ("get -o", c, "get -f @c_ctx.onnx context -o @o.bin", d, ("o.bin",)),
        ("open_or_compile", source, "open-or-compile @p.onnx", old),
        ("run --dump", source, "run --dump @to/d @p.onnx", old, ("to/d",), {"to": FOLDER}),
        ("run --output-dir", source, "run --output-dir @to @p.onnx", old, ("to",), {"to": FOLDER}),
    ]
    commands = []
    for row in everything:
        if row[0] == "open_or_compile" and not OPENER:
            continue
        row = list(row) + [None] * (6 - len(row))
        extra = row[5] or {}
        folders = {n: v for n, v in extra.items() if v == FOLDER}
        older = {**row[3], **folders} if row[3] is not None else None
        good = (0, 3) if row[0] == "repair" else (0,)
        commands.append(Command(row[0], {**row[1], **folders}, row[2], older, row[4] or (), extra,
                                good))
    return commands


# -- reports --

class Report:
    def __init__(self, area):
        self.area, self.count, self.problems = area, 0, []

    def tried(self):
        self.count += 1

    def wrong(self, text):
        self.problems.append(text)

    def end(self, name, least=1):
        label = f"{self.area}{' of named files' if PRELOAD else ''}: {name}"
        if self.problems:
            more = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
            print(f"FAIL {label}: {self.problems[0]}{more}", flush=True)
        elif self.count < least:
            print(f"FAIL {label}: tried {self.count} times only", flush=True)
        else:
            print(f"ok {label} ({self.count})", flush=True)


# -- modes --

def rights_too_many(name, old, new):
    """What a file that replaced another may not allow, or None; `old` and `new` as from os.stat."""
    if new.st_mode & 0o7000:
        return f"{name} has mode {new.st_mode & 0o7777:o} after {old.st_mode & 0o7777:o}"
    group = old.st_mode >> 3 if new.st_gid == old.st_gid else old.st_mode
    if new.st_mode & 0o707 & ~old.st_mode or new.st_mode >> 3 & 7 & ~group:
        return (f"{name} has mode {new.st_mode & 0o7777:o} and group {new.st_gid} after "
                f"{old.st_mode & 0o7777:o} and group {old.st_gid}")
    return None


def check_modes(command):
    """Whatever mode a replaced file has: who becomes its owner lends nobody any rights."""
    report = Report("modes")
    replaced = [n for n in command.outputs if n in command.before]
    root = os.getuid() == 0
    tries = [(mode, {}) for mode in some((0o6755, 0o2711, 0o4640, 0o1777, 0o660), 2)]
    if root:  # somebody who cannot give files to the group
        tries.append((0o6770, {"user": 65534, "group": 65534, "extra_groups": []}))
    for mode, who in tries:
        command.begin()
        if who:
            for folder, folders, files in os.walk("now"):
                for entry in [folder] + [os.path.join(folder, n) for n in folders + files]:
                    os.chown(entry, 65534, 65534, follow_symlinks=False)
        for name in replaced:
            path = os.path.join("now", name)
            if root:
                os.chown(path, 65534 if who else 1, 33)
            os.chmod(path, mode)
        os.chmod("now", 0o1777)
        before = {n: os.stat(os.path.join("now", n)) for n in replaced}
        result = run(command.args, **who)
        report.tried()
        if result.returncode not in command.good:
            report.wrong(f"mode {mode:o}: {said(result)}")
        kept = {(s.st_dev, s.st_ino) for s in before.values()}
        for name in files_of(snapshot("now")):
            after = os.stat(os.path.join("now", name))
            if (after.st_dev, after.st_ino) in kept or name not in command.outputs:
                continue  # the former file itself, under its own name or as a backup
            wrong = rights_too_many(name, before.get(name, after), after)
            if wrong:
                report.wrong(wrong)
    report.end(command.name, len(tries))


# -- links --

def outside_folder():
    place({"victim": b"precious" * 40, "deep/inner": b"also"}, "out")
    os.chmod("out/victim", 0o600)
    return (snapshot("out"), os.stat("out/victim").st_mode)


def outside_now():
    return (snapshot("out"), os.stat("out/victim").st_mode if os.path.exists("out/victim") else 0)


def inner_folders(command, name):
    """The folders in a name that the tool made or took from a model: below the model's."""
    typed = {os.path.dirname(n) for n in command.typed} | command.typed
    parts = name.split("/")[:-1]
    for i in range(1, len(parts) + 1):
        folder = "/".join(parts[:i])
        if folder not in typed and not any(t.startswith(folder + "/") for t in typed):
            yield folder


def bait(name, folder):
    """Makes of out/deep what a link in place of `folder` leads to: `name` stands there, too."""
    base = os.path.join("out/deep", os.path.relpath(name, folder))
    os.makedirs(os.path.dirname(base), exist_ok=True)
    with open(base, "wb") as file:
        file.write(b"a victim, too")


def ways_out(command, name):
    """(place, what is put there): links that lead out, or to something else inside."""
    up = "../" * (name.count("/") + 1)
    for target in (up + "out/victim", up + "out/new", os.path.abspath("out/victim"), "/dev/null/x",
                   os.path.basename(name), up + "out/same", "inner"):
        yield name, (LINK, target)
    yield name, "hard"
    yield name + ".lock", (LINK, up + "out/victim")
    for folder in inner_folders(command, name):
        for target in ("out/deep", "out/none"):
            yield folder, (LINK, "../" * (folder.count("/") + 1) + target)


def check_links(command):
    """Each name of the tool's own is a link that leads out when the command starts."""
    report = Report("links")
    for name in command.own_names():
        for where, what in ways_out(command, name):
            rest = {n: d for n, d in command.before.items()
                    if n != where and not n.startswith(where + "/")}
            if what == (LINK, "inner"):
                rest[os.path.join(os.path.dirname(name), "inner")] = b"inner"
            place(rest)
            outside_folder()
            text = f"{where} -> {what[1]}"
            with open("out/same", "wb") as file:  # what is written is there already
                file.write(command.after[name])
            path = os.path.join("now", where)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if what == "hard":
                os.link("out/victim", path)
                text = f"{where} has a second name"
            else:
                os.symlink(what[1], path)
            if where != name:
                bait(name, where)
            outside, start = outside_now(), snapshot("now")
            result = run(command.args)
            report.tried()
            if outside_now() != outside:
                report.wrong(f"{text}: changed outside of the folder ({said(result)})")
            elif result.returncode in command.good:
                for model in command.needs_after:
                    listed = run(["ls", "now/" + model])
                    if listed.returncode != 0:
                        report.wrong(f"{text}: {model} is not whole: {said(listed)}")
            elif snapshot("now") != start:
                report.wrong(f"{text}: refused, but something changed: {differences(start)}")
            elif result.returncode != 1 or not result.stderr.startswith(b"epctx: "):
                report.wrong(f"{text}: {said(result)}")
    report.end(command.name, 0)


def differences(before):
    now = snapshot("now")
    return " ".join(sorted(n for n in {**before, **now} if before.get(n) != now.get(n)))


def check_neighbours():
    """mv looks for models itself: one that is a link to another folder is not the user's."""
    report = Report("links")
    files = made({"p.onnx": model("plain")}, "compile @p.onnx")
    for target in ("../out/m.onnx", os.path.abspath("out/m.onnx")):
        place({**files, "other.onnx": (LINK, target)})
        outside_folder()
        with open("out/m.onnx", "wb") as file:
            file.write(files["p_ctx.onnx"])
        outside, start = outside_now(), snapshot("now")
        result = run(["mv", "now/p_npu.bin", "now/n.bin"])
        report.tried()
        if outside_now() != outside:
            report.wrong(f"other.onnx -> {target}: changed outside of the folder")
        elif result.returncode != 0 and snapshot("now") != start:
            report.wrong(f"refused, but something changed: {differences(start)}")
    report.end("mv beside a model elsewhere")


# -- races --

CALLS = ("openat,newfstatat,stat,lstat,readlink,readlinkat,rename,renameat,renameat2,link,linkat,"
         "unlink,unlinkat,mkdir,mkdirat,symlink,symlinkat,chmod,fchmodat,fchownat,statx,access,"
         "faccessat,faccessat2")
CHANGES = ("openat,write,pwrite64,writev,fsync,fdatasync,fchmod,fchown,fchownat,ftruncate,rename,"
           "renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir,"
           "utimensat,copy_file_range,sendfile,fallocate")
LINE = re.compile(r"^(\w+)\((.*)")


def optional(calls):
    return ",".join("?" + call for call in calls.split(","))


def trace(command, calls):
    """The system calls of a command on its folder: (name, number, arguments)."""
    command.begin()
    run(command.args, ["strace", "-qq", "-s", "999", "-o", "trace", "-e",
                       "trace=" + optional(calls)])
    counts, found = {}, []
    with open("trace", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            match = LINE.match(line)
            if match is None:
                continue
            name, rest = match.groups()
            counts[name] = counts.get(name, 0) + 1
            found.append((name, counts[name], rest))
    return found


def changing(command):
    """The calls that change something on the disk."""
    for name, number, rest in trace(command, CHANGES):
        if name == "openat" and "O_CREAT" not in rest:
            continue
        if name in ("write", "writev") and re.match(r"[12],", rest):
            continue
        yield name, number


def on_paths(command):
    """The calls that name something in the folder; of equal ones in a row first and last."""
    here = os.path.abspath("now")
    calls = [(name, number) for name, number, rest in trace(command, CALLS)
             if '"now' in rest or f'"{here}' in rest]
    for i, (name, number) in enumerate(calls):
        if 0 < i < len(calls) - 1 and calls[i - 1][0] == name == calls[i + 1][0]:
            continue
        yield name, number


@contextlib.contextmanager
def stopped(command, call, number):
    """The command, stopped before a system call; afterwards it goes on and ends."""
    process = subprocess.Popen(words_of(command.args,
                                        ["strace", "-D", "-qq", "-e", "trace=" + call, "-e",
                                         f"inject={call}:signal=STOP:when={number}"]),
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    try:
        for line in process.stderr:
            if b"stopped by SIGSTOP" in line:
                break
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
        try:
            process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


MOST_RACES = rounds(150, 6)  # of one command


def race_places(command):
    """(name, what becomes a link, where to)"""
    for name in command.own_names():
        yield name, name, "../" * (name.count("/") + 1) + "out/victim"
        for folder in inner_folders(command, name):
            yield name, folder, "../" * (folder.count("/") + 1) + "out/deep"
    if command.name == "package":  # all of it is written under another name first
        for name in command.own_names():
            yield name, "pack.part-*", "../out/deep"


def check_races(command):
    """A name of the tool's own becomes a link at a system call that looks at the folder."""
    report = Report("races")
    calls = list(on_paths(command))
    tries = [(where, call) for where in race_places(command) for call in calls]
    for (name, where, target), (call, number) in tries[::len(tries) // MOST_RACES + 1]:
        command.begin()
        outside_folder()
        if where != name:
            bait(name, "pack" if "*" in where else where)
        outside = outside_now()
        with stopped(command, call, number):
            path = (glob.glob("now/" + where) or ["now/" + where.replace("*", "0")])[0]
            if os.path.lexists(path):
                os.rename(path, "aside")
            with contextlib.suppress(OSError):
                os.symlink(target, path)
        report.tried()
        if os.path.isdir("aside") and not os.path.islink("aside"):
            shutil.rmtree("aside")
        elif os.path.lexists("aside"):
            os.unlink("aside")
        if outside_now() != outside:
            report.wrong(f"{where} -> {target} from {call} {number} on: changed outside of the "
                         "folder")
    report.end(command.name, 0)


def exchange(a, b):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, a.encode(), -100, b.encode(), 2) != 0:
        raise OSError(ctypes.get_errno(), "renameat2", a)


def swap(path, spare):
    with contextlib.suppress(OSError):
        while True:
            exchange(path, spare)


def check_swaps(command, times):
    """The same by chance: another process swaps file and link as fast as it can."""
    report = Report("swaps")
    for name in command.own_names():
        for number in range(times):
            command.begin()
            outside_folder()
            folders = list(inner_folders(command, name))
            victim = folders[0] if folders and number % 2 else name
            path = os.path.join("now", victim)
            if not os.path.isdir(os.path.dirname(path)):
                break  # it is made by the command
            spare = os.path.join(os.path.dirname(path), ".spare")
            os.symlink("../" * (victim.count("/") + 1) +
                       ("out/deep" if victim != name else "out/victim"), spare)
            if victim != name:
                bait(name, victim)
            elif not os.path.lexists(path):
                with open(path, "wb") as file:
                    file.write(b"bait")
            outside = outside_now()
            other = multiprocessing.Process(target=swap, args=(path, spare))
            other.start()
            run(command.args)
            other.kill()
            other.join()
            report.tried()
            if outside_now() != outside:
                report.wrong(f"round {number}: {victim} was swapped, changed outside of the folder")
    report.end(command.name, 0)


# -- kills, signals, errors --

MOST_CALLS = 5  # of one command in a quick run


def injected(command, *injections):
    command.begin()
    calls = ",".join(i.partition(":")[0] for i in injections)
    options = [o for i in injections for o in ("-e", "inject=" + i)]
    result = run(command.args, ["strace", "-qq", "-o", "trace", "-e", "trace=" + calls, *options])
    return result, snapshot("now")


def check_kills(command):
    report = Report("kills")
    for call, number in some(changing(command), MOST_CALLS):
        result, state = injected(command, f"{call}:signal=KILL:when={number}")
        report.tried()
        wrong = command.wrong(state, True)
        if wrong:
            report.wrong(f"{call} {number}: {wrong} ({' '.join(sorted(state))})")
        elif result.returncode not in (-signal.SIGKILL, 128 + signal.SIGKILL):
            report.wrong(f"{call} {number}: {said(result)}")
    report.end(command.name, 3)
    return report.count


def check_signals(command):
    if command.args[0] == "open-or-compile":
        return  # that is the application's
    report = Report("signals")
    for i, (call, number) in enumerate(some(changing(command), MOST_CALLS)):
        name = ("INT", "TERM", "HUP")[i % 3]
        result, state = injected(command, f"{call}:signal={name}:when={number}")
        report.tried()
        code = getattr(signal, "SIG" + name)
        if not (command.is_old(state) or command.is_new(state)):
            wrong = command.wrong(state, False) or "neither the old nor the new set"
            report.wrong(f"SIG{name} at {call} {number}: {wrong}")
        elif result.returncode not in (-code, 128 + code):
            report.wrong(f"SIG{name} at {call} {number}: {said(result)}")
    # Who started it with the signal ignored (nohup) wants it to go on.
    command.begin()
    result = run(command.args, ["sh", "-c", 'trap "" INT HUP; exec "$@"', "sh", "strace", "-qq",
                                "-o", "trace", "-e", "trace=write", "-e",
                                "inject=write:signal=HUP:when=1"])
    report.tried()
    if result.returncode not in command.good or not command.is_new(snapshot("now")):
        report.wrong(f"with SIGHUP ignored: {said(result)}")
    report.end(command.name, 3)


def check_waiting():
    """A signal also ends who waits for a lock, and takes nothing away from who has it."""
    report = Report("signals")
    files = made({"p.onnx": model("plain")}, "compile @p.onnx -o @c_ctx.onnx")
    first, second = (arguments(f"set --in-place @c_ctx.onnx metadata:{n}=1") for n in "ab")
    whole = Pair(files, first)
    calls = [c for c in trace(whole, "rename,renameat,renameat2") if "c_ctx.onnx" in c[2]]
    for call, number, _ in calls:
        for name in ("INT", "TERM", "HUP"):
            whole.begin()
            with stopped(whole, call, number) as process:
                before = snapshot("now")
                other = subprocess.Popen(words_of(second), stdin=subprocess.DEVNULL,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    other.wait(2 * PATIENCE)
                other.send_signal(getattr(signal, "SIG" + name))
                with contextlib.suppress(subprocess.TimeoutExpired):
                    other.wait(LIMIT)
                report.tried()
                if other.poll() != -getattr(signal, "SIG" + name):
                    report.wrong(f"SIG{name}: exit code {other.poll()} while it waits")
                    other.kill()
                if snapshot("now") != before:
                    report.wrong(f"SIG{name}: something changed: {differences(before)}")
            other.communicate()
            if process.returncode != 0 or set(snapshot("now")) != set(files):
                report.wrong(f"SIG{name}: the other one ended with {process.returncode}")
    report.end("while it waits for a lock", 3)


def honest(command, result, state, told=True):
    """What is wrong with exit code and folder together, or None."""
    if result.returncode in command.good:
        return None if command.is_new(state) else \
            f"exit code {result.returncode}, but not the new set"
    if result.returncode != 1:
        return said(result)
    if told and b"epctx: " not in result.stderr:
        return "exit code 1 without a message"
    if command.is_old(state):
        return None
    rest = [n for n in state if UNFINISHED.search(n)]
    return f"exit code 1, but {'the new set' if command.is_new(state) else 'not the old set'}" \
        f" ({' '.join(sorted(rest or state))})"


def unreported():
    """Whether it is the report to standard output that could not be written."""
    with open("trace", encoding="utf-8", errors="replace") as lines:
        return any(line.startswith("write(1,") and "INJECTED" in line for line in lines)


def check_errors(command):
    report = Report("errors")
    calls, writes = [], 0
    for call, number in changing(command):
        writes += call == "write"
        if not call.startswith(("unlink", "rmdir", "fchmod", "fchown", "utimens")):
            calls.append((call, number, writes))
    for call, number, writes in some(calls, MOST_CALLS):
        ways = {"EIO": (f"{call}:error=EIO:when={number}",)}
        if not call.startswith(("rename", "openat")):  # what is undone is renamed, and opened
            ways["ENOSPC for good"] = (f"{call}:error=ENOSPC:when={number}+",)
        if call != "write":
            ways["ENOSPC, nothing is written any more"] = (
                f"{call}:error=ENOSPC:when={number}", f"write:error=ENOSPC:when={writes + 1}+")
        for name, injections in ways.items():
            result, state = injected(command, *injections)
            report.tried()
            silent = "write" in injections[-1]  # messages and reports cannot be written, either
            wrong = honest(command, result, state, not silent)
            if wrong and silent and command.is_new(state) and unreported():
                wrong = None
            if wrong:
                report.wrong(f"{call} {number}, {name}: {wrong}")
    if command.args[0] == "open-or-compile":
        report.end(command.name, 3)
        return  # what the next signal does is the application's
    # Files of so many bytes are too big: the signal that says so ends nothing.
    least = min(len(command.after[n]) for n in command.outputs)
    command.begin()
    result = run(command.args, preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_FSIZE, (max(least - 1, 0), resource.RLIM_INFINITY)))
    report.tried()
    wrong = honest(command, result, snapshot("now"))
    if wrong or result.returncode == 0:
        report.wrong(f"files of {least - 1} bytes at most: {wrong or said(result)}")
    report.end(command.name, 3)


# -- a full disk --

def check_full(command):
    """A file system of 512 KB with so much room, and so many files, that it does or does not do."""
    report = Report("full")
    command.begin()
    kept = snapshot("now")
    need = sum((len(d) + 4095) // 4096 for d in files_of(command.after).values())
    shutil.rmtree("now")
    rooms, counts = some((0, 1, 2, need + 8), 2), some((0, 1, 64), 2)
    for room in rooms:
        for inodes in counts:
            os.mkdir("now")
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", "now"], check=True)
            try:
                for name, data in kept.items():
                    path = os.path.join("now", name)
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    if isinstance(data, bytes):
                        with open(path, "wb") as out:
                            out.write(data)
                    elif data == FOLDER:
                        os.makedirs(path, exist_ok=True)
                disk = os.statvfs("now")
                subprocess.run(["mount", "-o", "remount,"
                                f"nr_inodes={disk.f_files - disk.f_ffree + inodes},size="
                                f"{(disk.f_blocks - disk.f_bfree + room) * disk.f_frsize}", "now"],
                               check=True)
                result = run(command.args)
                state = snapshot("now")
            finally:
                subprocess.run(["umount", "now"], check=True)
                os.rmdir("now")
            report.tried()
            wrong = honest(command, result, state)
            if wrong is None and result.returncode == 1 and b"No space left" not in result.stderr:
                wrong = said(result)
            if wrong:
                report.wrong(f"room for {room} blocks and {inodes} files: {wrong}")
    report.end(command.name, len(rooms) * len(counts))


# -- two commands at once --

PATIENCE = 0.05  # seconds that a command may wait for another's lock before that goes on


def arguments(text):
    return [a if not a.startswith("@") else "now/" + a[1:] for a in text.split()]


def make_pairs():
    plain, other, partly = model("plain"), model("plain", other_weights), model("partly")
    two = {"p.onnx": plain, "q.onnx": other}
    older = {**two, **made({"r.onnx": partly}, "compile @r.onnx -o @o_ctx.onnx")}
    old_inside = made({"r.onnx": partly}, "compile --embed @r.onnx -o @o_ctx.onnx")
    inside = {**made({"p.onnx": plain}, "compile --embed @p.onnx -o @a.onnx"),
              **made({"q.onnx": other}, "compile --embed @q.onnx -o @b.onnx")}
    c = made({"p.onnx": plain}, "compile @p.onnx -o @c_ctx.onnx")
    d = made({"q.onnx": other}, "compile @q.onnx -o @d_ctx.onnx")
    wide = made({"p.onnx": plain}, "init --external --threshold 0 --in-place @p.onnx")
    data = {"v.bin": b"first" * 99, "w.bin": b"second" * 99}
    wrap = "--profile qnn --inputs x:float32[1] --outputs y:float32[1] --binary o.bin -o @o.onnx"
    a_set = "set --in-place @c_ctx.onnx metadata:first=1"
    b_set = "set --in-place @c_ctx.onnx metadata:second=2"
    pairs = [
        (older, "compile -f @p.onnx -o @o_ctx.onnx", "compile -f @q.onnx -o @o_ctx.onnx"),
        (two, "compile -f @p.onnx -o @o_ctx.onnx", "compile -f @q.onnx -o @o_ctx.onnx"),
        (two, "compile @p.onnx -o @o_ctx.onnx", "compile @q.onnx -o @o_ctx.onnx"),
        *([(two, "open-or-compile @p.onnx", "compile -f @q.onnx -o @p_ctx.onnx"),
           (two, "open-or-compile @p.onnx", "open-or-compile @p.onnx")] if OPENER else []),
        (old_inside, "compile -f --embed @r.onnx -o @o_ctx.onnx",
         "compile -f @r.onnx -o @o_ctx.onnx"),
        ({**older, "here": (LINK, ".")}, "compile -f @p.onnx -o @o_ctx.onnx",
         "compile -f @q.onnx -o @here/o_ctx.onnx"),
        ({**older, "l_ctx.onnx": (LINK, "o_ctx.onnx")}, "compile -f @p.onnx -o @o_ctx.onnx",
         "compile -f @q.onnx -o @l_ctx.onnx"),
        (older, "compile -f @p.onnx -o @o_ctx.onnx", "set --in-place @o_ctx.onnx metadata:a=1"),
        ({**two, "s.onnx": partly}, "compile -f @p.onnx @s.onnx",
         "compile -f @q.onnx -o @p_ctx.onnx"),
        ({"p.onnx": plain, "s.onnx": partly, "t.onnx": model("partly", other_weights)},
         "compile -f @p.onnx @s.onnx", "compile -f @p.onnx @t.onnx"),
        (inside, "extract -f @a.onnx -o @o.onnx", "extract -f @b.onnx -o @o.onnx"),
        ({**inside, **two}, "extract -f @a.onnx -o @o_ctx.onnx",
         "compile -f @q.onnx -o @o_ctx.onnx"),
        (two, "init --external --threshold 0 -f @p.onnx -o @o.onnx",
         "init --external --threshold 0 -f @q.onnx -o @o.onnx"),
        ({**data}, f"wrap -f @v.bin {wrap}", f"wrap -f @w.bin {wrap}"),
        ({**c, **d, **inside}, "merge -f --allow-stale @c_ctx.onnx @a.onnx -o @o.onnx",
         "merge -f --allow-stale @d_ctx.onnx @b.onnx -o @o.onnx"),
        (c, a_set, b_set),
        ({**c, "l.onnx": (LINK, "c_ctx.onnx")}, a_set, "set --in-place @l.onnx metadata:second=2"),
        (c, a_set, "set --in-place --overwrite backup @c_ctx.onnx metadata:second=2"),
        (c, a_set, "set -f @c_ctx.onnx metadata:second=2 -o @c_ctx.onnx"),
        (c, a_set, "unset --in-place @c_ctx.onnx --all notes"),
        (c, a_set, "rename --in-place --any-io @c_ctx.onnx x renamed"),
        (c, a_set, "prefix --in-place --all-nodes --one-graph @c_ctx.onnx p_"),
        (c, a_set, "embed --in-place @c_ctx.onnx"),
        (c, a_set, "repair --in-place @c_ctx.onnx"),
        (c, a_set, "mv @c_npu.bin @n.bin"),
        (c, "mv @c_npu.bin @n.bin", "mv @c_npu.bin @m.bin"),
        (c, "mv @c_npu.bin @n.bin", "embed --in-place @c_ctx.onnx"),
        (inside, "extract --in-place @a.onnx", "set --in-place @a.onnx metadata:second=2"),
        ({**wide}, "init --inline --in-place @p.onnx", "set --in-place @p.onnx metadata:second=2"),
        (two, "init --external --threshold 0 --in-place @p.onnx",
         "set --in-place @p.onnx metadata:second=2"),
        ({**two, "w.onnx": takes_weights(plain), "source.onnx": wide["p.onnx"],
          "p.onnx.data": wide["p.onnx.data"]}, "weightless --in-place @w.onnx",
         "set --in-place @w.onnx metadata:second=2"),
    ]
    return [(files, arguments(a), arguments(b)) for files, a, b in pairs]


def in_order(files, first, second):
    """Exit codes and folder when one runs after the other."""
    place(files)
    codes = [run(args).returncode for args in (first, second)]
    return codes, snapshot("now")


def check_pair(files, first, second):
    report = Report("pairs")
    one_two = in_order(files, first, second)
    codes, state = in_order(files, second, first)
    orders = [one_two, (codes[::-1], state)]
    place(files)
    whole = Pair(files, first)
    for call, number in some(on_paths(whole), MOST_CALLS):
        whole.begin()
        with stopped(whole, call, number) as process:
            other = subprocess.Popen(words_of(second), stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            with contextlib.suppress(subprocess.TimeoutExpired):
                other.wait(PATIENCE)
        text = other.communicate(timeout=LIMIT)[1].decode("utf-8", "replace").strip()
        report.tried()
        found = ([process.returncode, other.returncode], snapshot("now"))
        if found not in orders:
            codes = " and ".join(str(c) for c in found[0])
            what = ("a mixture" if found[0] in (orders[0][0], orders[1][0]) else
                    f"exit codes {codes} ({text[:160]})")
            report.wrong(f"the first stopped at {call} {number}: {what}: no order of the two gives "
                         "that")
    report.end(f"{' '.join(first)} and {' '.join(second)}", 3)


class Pair:
    """What `stopped` and `trace` want of a command."""

    def __init__(self, files, args):
        self.files, self.args = files, args

    def begin(self):
        place(self.files)


def check_at_once(times):
    """Two compilations into one output, without any order."""
    report = Report("pairs")
    files = {"p.onnx": model("plain"), "q.onnx": model("plain", other_weights)}
    first, second = (arguments(f"compile -f @{n}.onnx -o @o_ctx.onnx") for n in "pq")
    wanted = []
    for order in ((first, second), (second, first)):
        wanted.append(in_order(files, *order)[1])
    place(files)
    for number in range(times):
        both = [subprocess.Popen([TOOL, *args], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                for args in (first, second)]
        texts = [p.communicate(timeout=LIMIT)[1] for p in both]
        report.tried()
        if any(p.returncode != 0 for p in both):
            report.wrong(f"pair {number}: {b''.join(texts).decode('utf-8', 'replace').strip()}")
        elif snapshot("now") not in wanted:
            report.wrong(f"pair {number}: neither the one nor the other, both exit codes 0")
    report.end("two compilations at once", times)


# -- changes at once --

def check_in_place(times):
    report = Report("in-place")
    files = made({"p.onnx": model("plain")}, "compile --embed @p.onnx -o @m.onnx")
    files["l.onnx"] = (LINK, "m.onnx")
    for number in range(times):
        place(files)
        changes = [subprocess.Popen([TOOL, "set", "--in-place",
                                     "now/m.onnx" if i % 2 else "now/l.onnx",
                                     f"metadata:key{i}=value"],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                   for i in range(8)]
        texts = [p.communicate(timeout=LIMIT)[1].decode("utf-8", "replace") for p in changes]
        report.tried()
        with open("now/m.onnx", "rb") as data:
            there = {m.key for m in onnx_schema.parse(data.read()).metadata_props}
        for i, process in enumerate(changes):
            if process.returncode not in (0, 1) or (process.returncode == 1 and
                                                    not texts[i].startswith("epctx: ")):
                report.wrong(f"round {number}: exit code {process.returncode}: {texts[i][:200]}")
            elif (process.returncode == 0) != (f"key{i}" in there):
                report.wrong(f"round {number}: change {i} ended with {process.returncode} and is "
                             f"{'there' if process.returncode else 'lost'}")
        if set(os.listdir("now")) != {n.split("/")[0] for n in files}:
            report.wrong(f"round {number}: left behind: {' '.join(sorted(os.listdir('now')))}")
    report.end("eight changes at once", times)


# -- long names --

def long_name(size, suffix, letter):
    """A name of so many bytes of such letters."""
    room = size - len(suffix)
    fill = letter * (room // len(letter.encode()))
    return "a" * (room - len(fill.encode())) + fill + suffix


def check_names():
    """NAME stands for a stem so long that the longest name has the bytes that are asked for."""
    plain = model("plain")
    c = made({"p.onnx": plain}, "compile @p.onnx -o @c_ctx.onnx")
    inside = made({"p.onnx": plain}, "compile --embed @p.onnx -o @in.onnx")
    wide = made({"p.onnx": plain}, "init --external --threshold 0 --in-place @p.onnx")
    source = {"p.onnx": plain}
    rows = [
        ("copy", source, "copy -f @p.onnx @NAME.onnx", ".onnx"),
        ("copy --overwrite backup", source, "copy --overwrite backup @p.onnx @NAME.onnx", ".onnx~"),
        ("compile", source, "compile -f @p.onnx -o @NAME_ctx.onnx", "_ctx.onnx"),
        ("compile MODEL", {"NAME.onnx": plain}, "compile -f @NAME.onnx", "_ctx.onnx"),
        ("compile --embed", source, "compile -f --embed @p.onnx -o @NAME.onnx", ".onnx"),
        ("compile two", {"NAME.onnx": plain, "q.onnx": plain}, "compile -f @NAME.onnx @q.onnx",
         "_ctx.onnx"),
        ("compile --initializers", {"p.onnx": model("partly", keeps_weights)},
         "compile -f --initializers NAME.data @p.onnx", ".data"),
        ("embed", c, "embed -f @c_ctx.onnx -o @NAME.onnx", ".onnx"),
        ("extract", inside, "extract -f @in.onnx -o @NAME.onnx", "_npu.bin"),
        ("extract --name", inside, "extract -f @in.onnx -o @o.onnx --name NAME.bin", ".bin"),
        ("extract --in-place", {"NAME.onnx": inside["in.onnx"]}, "extract --in-place -f @NAME.onnx",
         "_npu.bin"),
        ("mv", c, "mv @c_npu.bin @NAME.bin", ".bin"),
        ("init", source, "init --external --threshold 0 -f @p.onnx -o @NAME.onnx", ".onnx.data"),
        ("init --in-place", {"NAME.onnx": plain},
         "init --external --threshold 0 --in-place @NAME.onnx",
         ".onnx.data"),
        ("merge", {**c, **inside}, "merge -f --allow-stale @in.onnx @c_ctx.onnx -o @NAME.onnx",
         ".onnx"),
        ("split", wide, "split -f --inputs x --outputs c @p.onnx -o @NAME.onnx", ".onnx"),
        ("wrap", {"v.bin": b"vendor"},
         "wrap --profile qnn --inputs x:float32[1] --outputs y:float32[1] "
         "-f @v.bin -o @o.onnx --binary NAME.bin", ".bin"),
        ("package", c, "package -o @NAME @c_ctx.onnx", ""),
        ("set", {"NAME.onnx": plain}, "set --in-place @NAME.onnx metadata:a=1", ".onnx"),
        ("rename", {"NAME.onnx": plain}, "rename --in-place --any-io @NAME.onnx x z", ".onnx"),
        ("get", c, "get -f @c_ctx.onnx context -o @NAME", ""),
        ("run --output-dir", source, "run --output-dir @NAME @p.onnx", ""),
    ]
    for name, files, args, suffix in rows:
        report = Report("names")
        for size in some((240, 250, 255), 2):
            for letter in some(("a", "\u00e9", "\u6f22", "\U0001f600"), 2):
                full = long_name(size, suffix, letter)
                stem = full[:len(full) - len(suffix)]
                place({n.replace("NAME", stem): d for n, d in files.items()})
                words = [w.replace("NAME", stem) for w in arguments(args)]
                for again in range(2 if " -f " in args or "backup" in args else 1):
                    result = run(words)
                    report.tried()
                    found = snapshot("now")
                    text = f"{size} bytes of '{letter}'{', again' if again else ''}"
                    backed_up = suffix.endswith("~") and not again
                    if result.returncode != 0:
                        report.wrong(f"{text}: {said(result, stem)}")
                    elif not backed_up and not any(f.startswith(full) for f in found):
                        report.wrong(f"{text}: there is no file of that name")
                    elif any(UNFINISHED.search(f) for f in found):
                        report.wrong(f"{text}: something is left behind")
        report.end(name, rounds(12, 4))
    # One byte more than the file system takes is an error that leaves nothing.
    report = Report("names")
    for name, files, args, suffix in rows:
        if suffix.endswith("~"):
            continue  # what is cut is the name of the backup
        if "NAME" in "".join(files) and suffix in ("", ".onnx"):
            continue  # the input could not have that name
        full = long_name(256, suffix, "a")
        stem = full[:len(full) - len(suffix)]
        place({n.replace("NAME", stem): d for n, d in files.items()})
        before = snapshot("now")
        words = [w.replace("NAME", stem) for w in arguments(args)]
        result = run(words)
        report.tried()
        if result.returncode != 1 or not result.stderr.startswith(b"epctx: "):
            report.wrong(f"{name}: {said(result, stem)}")
        elif snapshot("now") != before:
            report.wrong(f"{name}: refused, but something changed")
    report.end("one byte too many", 10)


# -- through links --

def check_real():
    """The model's name is a link to another folder: what comes along goes where the model is."""
    plain, other = model("plain"), model("plain", other_weights)
    c = made({"p.onnx": plain}, "compile @p.onnx -o @c_ctx.onnx")
    del c["p.onnx"]
    d = made({"p.onnx": other}, "compile @p.onnx -o @o_ctx.onnx")
    inside = made({"p.onnx": plain}, "compile --embed @p.onnx -o @in.onnx")["in.onnx"]
    wide = made({"p.onnx": plain}, "init --external --threshold 0 --in-place @p.onnx")
    values = "--inputs x:float32[1,1,6,6] --outputs y:float32[1,2,1,1]"
    old = {"real/o.onnx": other}

    def real(files):
        return {"real/" + n: d for n, d in files.items()}

    rows = [
        ("init --in-place", real({"m.onnx": plain}),
         "init --external --threshold 0 --in-place @a/m.onnx", "m.onnx"),
        ("extract --in-place", real({"m.onnx": inside}), "extract --in-place @a/m.onnx", "m.onnx"),
        ("set --in-place", real({"m.onnx": plain}), "set --in-place @a/m.onnx metadata:a=1",
         "m.onnx"),
        ("rename --in-place", real({"m.onnx": plain}), "rename --in-place @a/m.onnx x z --any-io",
         "m.onnx"),
        ("init -o", {**old, "p.onnx": plain},
         "init --external --threshold 0 -f @p.onnx -o @a/o.onnx", "o.onnx"),
        ("extract -o", {**old, "m.onnx": inside}, "extract -f @m.onnx -o @a/o.onnx", "o.onnx"),
        ("compile -o", {**real({n: d[n] for n in ("o_ctx.onnx", "o_npu.bin")}), "p.onnx": plain},
         "compile -f @p.onnx -o @a/o_ctx.onnx", "o_ctx.onnx"),
        ("compile -o, weights outside", {**real({"o_ctx.onnx": d["o_ctx.onnx"]}),
                                         "p.onnx": model("partly", keeps_weights)},
         "compile -f --initializers k.data @p.onnx -o @a/o_ctx.onnx", "o_ctx.onnx"),
        ("copy", {**old, "p.onnx": plain}, "copy -f @p.onnx @a/o.onnx", "o.onnx"),
        ("embed -o", {**old, **c}, "embed -f @c_ctx.onnx -o @a/o.onnx", "o.onnx"),
        ("merge", {**old, **c, "i.onnx": inside},
         "merge -f --allow-stale @c_ctx.onnx @i.onnx -o @a/o.onnx", "o.onnx"),
        ("split", {**old, **wide}, "split -f --inputs x --outputs c @p.onnx -o @a/o.onnx",
         "o.onnx"),
        ("wrap", {**old, "v.bin": b"vendor"}, f"wrap --profile qnn {values} -f @v.bin -o @a/o.onnx",
         "o.onnx"),
        ("mv", real(c), "mv @real/c_npu.bin @real/n.bin @a/c_ctx.onnx", "c_ctx.onnx"),
        ("mv of a link", {**real(c), "a/c_npu.bin": (LINK, "../real/c_npu.bin")},
         "mv @a/c_npu.bin @a/n.bin", "c_ctx.onnx"),
        ("mv of a link, model named", {**real(c), "a/c_npu.bin": (LINK, "../real/c_npu.bin")},
         "mv @a/c_npu.bin @a/n.bin @a/c_ctx.onnx", "c_ctx.onnx"),
    ]
    for name, files, args, target in rows:
        report = Report("real")
        for how in ("link", "absolute", "chain", "folder"):
            links = {"link": {"a/" + target: (LINK, "../real/" + target)},
                     "absolute": {"a/" + target: (LINK, os.path.abspath("now/real/" + target))},
                     "chain": {"a/" + target: (LINK, "../b/x"), "b/x": (LINK, "../real/" + target)},
                     "folder": {"a": (LINK, "real")}}[how]
            kept = {n: d for n, d in files.items() if how != "folder" or not n.startswith("a/")}
            place({**kept, **links})
            before = snapshot("now")
            result = run(arguments(args))
            found = snapshot("now")
            report.tried()
            new = {n for n in found if n not in before}
            listed = run(["ls", "now/real/" + target])
            checked = run(["lint", "now/real/" + target])
            if result.returncode != 0:
                if name.startswith("mv") and found == before and result.returncode == 1:
                    continue  # refused, and nothing has changed: nobody is misled
                report.wrong(f"{how}: {said(result)}")
            elif any(found.get(n) != d for n, d in links.items()):
                report.wrong(f"{how}: the link is gone")
            elif any(not n.startswith("real/") for n in new):
                report.wrong(f"{how}: {' '.join(sorted(new))}: not beside the model")
            elif listed.returncode != 0:
                report.wrong(f"{how}: {said(listed)}")
            elif checked.returncode not in (0, 1) or b" E014" in checked.stdout:
                report.wrong(f"{how}: {said(checked)}")
            elif target.endswith("_ctx.onnx") and "partly" not in name and \
                    run(["run", "now/real/" + target]).returncode != 0 and "weights" not in name:
                report.wrong(f"{how}: {said(run(['run', 'now/real/' + target]))}")
            elif found["real/" + target] == before["real/" + target]:
                report.wrong(f"{how}: the model did not change")
        report.end(name, 4)


# -- the tests, area by area --

def each(commands, check, *arguments):
    for command in commands:
        check(command, *arguments)


def main():
    # Whoever runs the tests in the background may have switched these off for his children.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    global TOOL
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    tool = os.path.abspath(sys.argv[1])
    os.makedirs(sys.argv[2], exist_ok=True)
    os.chdir(sys.argv[2])
    os.chmod(".", 0o755)
    TOOL = shutil.copy(tool, os.path.abspath("epctx"))  # where anybody may run it
    os.chmod(TOOL, 0o755)  # whatever the umask was when it was built
    os.umask(0o022)
    only = os.environ.get("FILES_ONLY")
    try:
        commands = make_commands()
    except (RuntimeError, OSError) as problem:
        print(f"FAIL models: {problem}")
        return 1
    if only:
        commands = [c for c in commands if re.search(only, c.name)]
    checks = {"modes": check_modes, "links": check_links, "races": check_races,
              "kills": check_kills, "signals": check_signals, "errors": check_errors,
              "full": check_full}
    for area in sys.argv[3:]:
        if area in checks:
            each(commands, checks[area])
            if area == "links":
                check_neighbours()
            if area == "signals" and not PRELOAD:
                check_waiting()
        elif area == "swaps":
            each(commands, check_swaps, rounds(16, 2))
        elif area == "pairs":
            for pair in make_pairs():
                check_pair(*pair)
        elif area == "at-once":
            check_at_once(rounds(100, 10))
        elif area == "in-place":
            check_in_place(rounds(12, 2))
        elif area == "names":
            check_names()
        elif area == "real":
            check_real()
        else:
            sys.exit(f"there is no area {area}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
