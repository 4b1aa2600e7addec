#!/usr/bin/env python3
"""Compiles many models for many EPs: on one machine by ninja, on many by Slurm.

    fleet.py plan MANIFEST -o DIR     reads the manifest; writes DIR/jobs.json, DIR/build.ninja and
                                      DIR/array.sbatch
    fleet.py job DIR N                does job N: what ninja and Slurm call
    fleet.py report DIR [--json]      what became of each job; exit code 1 unless all are done

    ninja -C DIR -k 0                 all jobs here; again after a failure or a change: what is left
    sbatch DIR/array.sbatch           all jobs on a cluster, which sees DIR, models and cache

A job compiles one model with one EP into DIR/out/EP/NAME/. Its result is kept in the cache under a
key of everything that decides about it: the tool, the model and its data files, the EP's library,
the options. The same key is never compiled twice, whoever asks, on whatever machine. A job that
fails writes nothing but its log and does not stop the others. README.md has the manifest.
"""
import argparse
import contextlib
import glob
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib

MOST_BESIDE = 128  # libraries in an EP's folder; more are a system's
DONE, CACHED, FAILED, PENDING = "done", "cached", "failed", "pending"


class Mistake(Exception):
    """Of the manifest or the command line: nothing was done."""


# -- the manifest --

def read_manifest(path):
    try:
        with open(path, "rb") as source:
            return tomllib.load(source)
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise Mistake(f"{path}: {error}") from error


TABLES = "tables"


def take(table, where, **kinds):
    """The values of a table; what is not in `kinds` (name=(type, default)) is a mistake."""
    unknown = sorted(set(table) - set(kinds))
    if unknown:
        raise Mistake(f"{where}: unknown key '{unknown[0]}'; known are {', '.join(kinds)}")
    found = {}
    for name, (kind, default) in kinds.items():
        value = table.get(name, default)
        if value is None:
            raise Mistake(f"{where}: '{name}' is missing")
        inner = {list: str, TABLES: dict}.get(kind)
        if not isinstance(value, list if inner else kind) or \
                (inner and not all(isinstance(one, inner) for one in value)):
            raise Mistake(f"{where}: '{name}' is not of the right type: {value!r}")
        found[name] = value
    return found


def find_models(table, folder, where):
    pattern = os.path.join(folder, table["path"])
    found = sorted(glob.glob(pattern, recursive=True))
    if not found:
        raise Mistake(f"{where}: no file is '{pattern}'")
    return [os.path.abspath(path) for path in found if not path.endswith("_ctx.onnx")]


def jobs_of(manifest, folder):
    """Every model with every EP, in the order of the manifest."""
    top = take(manifest, "manifest", cache=(str, "cache"), epctx=(str, "epctx"),
               model=(TABLES, None), ep=(TABLES, None), timeout=(int, 3600), slurm=(list, []))
    jobs, names = [], set()
    for number, table in enumerate(top["model"]):
        where = f"model {number + 1}"
        model = take(table, where, path=(str, None), options=(list, []), eps=(list, []))
        for path in find_models(model, folder, where):
            for index, ep_table in enumerate(top["ep"]):
                ep = take(ep_table, f"ep {index + 1}", name=(str, None), library=(str, ""),
                          ort=(str, ""), options=(list, []))
                if model["eps"] and ep["name"] not in model["eps"]:
                    continue
                if "/" in ep["name"] or ep["name"] in ("", ".", ".."):
                    raise Mistake(f"ep {index + 1}: '{ep['name']}' cannot be a folder's name")
                stem = os.path.splitext(os.path.basename(path))[0]
                name = f"{ep['name']}/{stem}"
                if name in names:
                    raise Mistake(f"{where}: two models would be '{name}': rename {path}")
                names.add(name)
                library, given = place_ep(ep["library"], folder)
                for used in (path, library, ep["ort"], ep["name"]):
                    check_name(used, where)
                jobs.append({"name": name, "model": path, "ep": ep["name"],
                             "library": library, "given": given,
                             "ort": place(ep["ort"], folder),
                             "options": ep["options"] + model["options"]})
    if not jobs:
        raise Mistake("manifest: no model, or no EP")
    return top, jobs


def check_name(path, where):
    """ninja's files have lines, and no way to write such a name."""
    if any(character < " " for character in path):
        raise Mistake(f"{where}: {path!r} has a control character in its name")


def place(path, folder):
    return os.path.abspath(os.path.join(folder, path)) if path else ""


def place_ep(text, folder):
    """The file of the EP, "" if it is one inside ONNX Runtime, and what `epctx --ep` gets: a
    LIBRARY, LIBRARY:NAME or a name, as that reads it."""
    path, (head, colon, _) = place(text, folder), text.rpartition(":")
    if colon and not os.path.exists(path):
        return place(head, folder), path
    if not os.path.exists(path) and "/" not in text and ".so" not in text:
        return "", text
    return path, path


# -- planning --

def ninja_path(path):
    return path.replace("$", "$$").replace(" ", "$ ").replace(":", "$:")


def depfile_path(path):
    return path.replace("$", "$$").replace(" ", "\\ ").replace("#", "\\#")


def write_if_new(path, text):
    """Leaves an equal file alone, so that ninja does not start again."""
    with contextlib.suppress(OSError), open(path, "rb") as old:
        if old.read() == os.fsencode(text):
            return
    with open(path + "~", "wb") as out:
        out.write(os.fsencode(text))
    os.replace(path + "~", path)


def plan(manifest_path, folder):
    base = os.path.dirname(os.path.abspath(manifest_path))
    top, jobs = jobs_of(read_manifest(manifest_path), base)
    epctx = shutil.which(top["epctx"]) or place(top["epctx"], base)
    if not os.access(epctx, os.X_OK):
        raise Mistake(f"manifest: epctx: '{top['epctx']}' is no program")
    for path in (epctx, sys.executable, os.path.abspath(folder)):
        check_name(path, "plan")
    os.makedirs(folder, exist_ok=True)
    settings = {"epctx": os.path.abspath(epctx), "cache": place(top["cache"], base),
                "timeout": top["timeout"], "jobs": jobs}
    write_if_new(os.path.join(folder, "jobs.json"), json.dumps(settings, indent=1) + "\n")
    me = f"{shlex.quote(sys.executable)} {shlex.quote(os.path.abspath(__file__))}"
    lines = ["# Written by fleet.py plan: ninja -k 0", "rule job",
             f"  command = {me.replace('$', '$$')} job . $number", "  description = $name",
             "  depfile = state/$number.d", "  deps = gcc", ""]
    for number, job in enumerate(jobs):
        inputs = " ".join(ninja_path(path) for path in (job["model"], job["library"], job["ort"])
                          if path)
        lines += [f"build state/{number}.done: job {inputs} | jobs.json {ninja_path(epctx)}",
                  f"  number = {number}", f"  name = {job['name'].replace('$', '$$')}"]
    write_if_new(os.path.join(folder, "build.ninja"), "\n".join(lines) + "\n")
    here = os.path.abspath(folder)
    extra = "".join(f"#SBATCH {line}\n" for line in top["slurm"])
    write_if_new(os.path.join(folder, "array.sbatch"),
                 "#!/bin/sh\n# Written by fleet.py plan.\n#SBATCH --job-name=epctx-fleet\n"
                 f"#SBATCH --array=0-{len(jobs) - 1}\n"
                 f"#SBATCH --output={here}/state/slurm-%a.log\n{extra}"
                 f"exec {me} job {shlex.quote(here)} \"$SLURM_ARRAY_TASK_ID\"\n")
    os.makedirs(os.path.join(folder, "state"), exist_ok=True)
    print(f"{len(jobs)} jobs, {len({job['model'] for job in jobs})} models: {folder}")


def load_plan(folder):
    try:
        with open(os.path.join(folder, "jobs.json"), encoding="utf-8") as source:
            return json.load(source)
    except (OSError, ValueError) as error:
        raise Mistake(f"{folder}: no plan is there: {error}") from error


# -- one job --

def digest_of(path):
    with open(path, "rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def ask(epctx, wanted, *words):
    """What the tool tells as JSON, of that what is wanted."""
    done = subprocess.run([epctx, *words], capture_output=True, check=False)
    try:
        return json.loads(done.stdout)[wanted]
    except (KeyError, ValueError):
        said = os.fsdecode(done.stderr).strip()
        raise Mistake(said or f"epctx {words[0]} tells nothing") from None


def sources_of(epctx, model):
    """The model and its data files, with the names under which the model finds them."""
    listed = ask(epctx, "files", "ls", "--json", model)
    return [("", model)] + [(file["name"], file["path"]) for file in listed if file.get("path")]


def find_ort(settings, job):
    """The ONNX Runtime that the job uses, so that the key has it and the job gets no other."""
    if job["ort"] or not job["given"]:
        return job["ort"]
    return ask(settings["epctx"], "library", "devices", "--json") or ""


def libraries_of(job):
    """The EP's library, and those in its folder, of which only the EP knows which it loads; but not
    all that is in /usr/lib."""
    path = job["library"]
    if not path:
        return []
    folder = os.path.dirname(path)
    beside = [os.path.join(folder, name) for name in sorted(os.listdir(folder))
              if ".so" in name or name.endswith((".dll", ".dylib"))]
    if len(beside) > MOST_BESIDE:
        return [path]
    return [path] + [other for other in beside if other != path and os.path.isfile(other)]


def files_given(options):
    """Options, "NAME=PATH" too, that are files: a backend's library, a table."""
    texts = [text for option in options for text in (option, option.partition("=")[2])]
    return [text for text in texts if os.path.isfile(text)]


def key_of(settings, job):
    """Of all that decides about the result; the tool itself among it, by its version and bytes.
    And the files by which it is told."""
    sources = sources_of(settings["epctx"], job["model"])
    inputs = [(f"source {name or os.path.basename(path)}", path) for name, path in sources]
    inputs += [(f"library {os.path.basename(path)}", path) for path in libraries_of(job)]
    inputs += [("ort", path) for path in (job["ort"],) if path]
    inputs += [(f"given {path}", path) for path in files_given(job["options"])]
    parts = [("tool", digest_of(settings["epctx"])), ("options", json.dumps(job["options"])),
             ("ep", job["ep"])]
    if job["given"] != job["library"]:
        parts.append(("name", os.path.basename(job["given"])))
    parts += [(name, digest_of(path)) for name, path in inputs]
    text = "".join(f"{name}\0{value}\0" for name, value in parts)
    return hashlib.sha256(os.fsencode(text)).hexdigest(), [path for _, path in inputs]


def command_of(settings, job, output):
    words = [settings["epctx"], "compile", "--no-progress", "-o", output, *job["options"]]
    if job["given"]:
        words += ["--ep", job["given"]]
    if job["ort"]:
        words += ["--ort", job["ort"]]
    return words + [job["model"]]


def run_limited(words, log, seconds):
    """The exit code, or why there is none. A whole process group ends with its time."""
    with subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                          start_new_session=True) as process:
        try:
            code = process.wait(seconds)
        except BaseException as error:  # also an interrupt: nothing is left running
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                return f"did not end within {seconds} s"
            raise
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return None if code == 0 else f"exit code {code}"


def files_in(folder):
    return sorted(os.path.relpath(os.path.join(where, name), folder)
                  for where, _, names in os.walk(folder) for name in names)


def copy_tree(source, target):
    """In place of what was there, in one step."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    fresh = tempfile.mkdtemp(prefix=".new-", dir=os.path.dirname(target))
    try:
        for name in files_in(source):
            place_at = os.path.join(fresh, name)
            os.makedirs(os.path.dirname(place_at), exist_ok=True)
            shutil.copy2(os.path.join(source, name), place_at)  # no link: results are edited
        os.chmod(fresh, 0o755)
        old = None
        if os.path.lexists(target):
            old = tempfile.mkdtemp(prefix=".old-", dir=os.path.dirname(target))
            os.rename(target, os.path.join(old, "old"))
        os.rename(fresh, target)
        if old:
            shutil.rmtree(old)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def compile_into(settings, job, key, entry, log):
    """Compiles beside the cache entry and makes it appear whole. Returns why it failed, or None."""
    os.makedirs(os.path.dirname(entry), exist_ok=True)
    folder = tempfile.mkdtemp(prefix=".new-", dir=os.path.dirname(entry))
    try:
        stem = os.path.splitext(os.path.basename(job["model"]))[0]
        words = command_of(settings, job, os.path.join(folder, f"{stem}_ctx.onnx"))
        log.write(os.fsencode(shlex.join(words) + "\n"))
        log.flush()
        why = run_limited(words, log, settings["timeout"])
        if why is None and not files_in(folder):
            why = "no node was compiled, nothing was written"
        if why is not None:
            return why
        if key_of(settings, job)[0] != key:
            raise Mistake("a file that it is made from changed meanwhile: run the job again")
        os.chmod(folder, 0o755)
        try:
            os.rename(folder, entry)
        except OSError:  # another machine was faster
            if not os.path.isdir(entry):
                raise
        return None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def last_line(path):
    with open(path, "rb") as log:
        lines = os.fsdecode(log.read()[-4096:]).split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def run_job(folder, number):
    settings = load_plan(folder)
    if not 0 <= number < len(settings["jobs"]):
        raise Mistake(f"there is no job {number}: 0 to {len(settings['jobs']) - 1}")
    job = settings["jobs"][number]
    state = os.path.join(folder, "state", str(number))
    os.makedirs(os.path.dirname(state), exist_ok=True)
    start, why, how, key, sources = time.monotonic(), None, DONE, "", []
    with open(state + ".log", "wb") as log:
        try:
            job["ort"] = find_ort(settings, job)
            key, sources = key_of(settings, job)
            entry = os.path.join(settings["cache"], key[:2], key)
            if os.path.isdir(entry):
                how = CACHED
            else:
                why = compile_into(settings, job, key, entry, log)
            if why is None:
                copy_tree(entry, os.path.join(folder, "out", job["name"]))
        except (Mistake, OSError) as error:
            why = str(error)
            log.write(os.fsencode(why + "\n"))
    said = last_line(state + ".log") if why else ""
    result = {"name": job["name"], "state": FAILED if why else how, "key": key,
              "seconds": round(time.monotonic() - start, 3),
              "why": why if not said or said == why else f"{why}: {said}"}
    write_if_new(state + ".json", json.dumps(result, indent=1) + "\n")
    if why:
        with contextlib.suppress(FileNotFoundError):
            os.remove(state + ".done")
        print(f"{job['name']}: {result['why']}", file=sys.stderr)
        return 1
    with open(state + ".d", "wb") as out:
        out.write(os.fsencode(f"state/{number}.done: " + " ".join(map(depfile_path, sources))
                              + "\n"))
    with open(state + ".done", "w", encoding="utf-8") as out:
        out.write(key + "\n")
    return 0


# -- the report --

def report(folder, as_json):
    settings = load_plan(folder)
    rows = []
    for number, job in enumerate(settings["jobs"]):
        row = {"name": job["name"], "state": PENDING, "seconds": 0, "why": None}
        with contextlib.suppress(OSError, ValueError):
            with open(os.path.join(folder, "state", f"{number}.json"), encoding="utf-8") as source:
                found = json.load(source)
            if found.get("name") == job["name"]:
                row.update(found)
        out = os.path.join(folder, "out", job["name"])
        row["bytes"] = sum(os.path.getsize(os.path.join(out, name)) for name in files_in(out))
        rows.append(row)
    counts = {state: sum(row["state"] == state for row in rows)
              for state in (DONE, CACHED, FAILED, PENDING)}
    if as_json:
        print(json.dumps({"jobs": rows, "counts": counts}, indent=1))
    else:
        width = max(len(row["name"]) for row in rows)
        for row in rows:
            print(f"{row['name']:<{width}}  {row['state']:<7} {row['seconds']:>9.1f} s "
                  f"{row['bytes']:>13,} bytes{'  ' + row['why'] if row['why'] else ''}")
        print(", ".join(f"{count} {state}" for state, count in counts.items()))
    return 0 if counts[FAILED] + counts[PENDING] == 0 else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("plan")
    command.add_argument("manifest")
    command.add_argument("-o", dest="folder", required=True)
    command = commands.add_parser("job")
    command.add_argument("folder")
    command.add_argument("number", type=int)
    command = commands.add_parser("report")
    command.add_argument("folder")
    command.add_argument("--json", action="store_true")
    given = parser.parse_args()
    for stream in (sys.stdout, sys.stderr):  # names of files are bytes
        stream.reconfigure(errors="surrogateescape")
    try:
        if given.command == "plan":
            return plan(given.manifest, given.folder) or 0
        if given.command == "job":
            return run_job(given.folder, given.number)
        return report(given.folder, given.json)
    except Mistake as error:
        print(f"fleet: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
