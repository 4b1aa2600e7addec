#!/usr/bin/python3
"""A plain application of ONNX Runtime with a vendor's EP, as the vendor documents it: registers the
library, takes the EP's devices, makes a session and runs it; or compiles with ORT's ModelCompiler.

    tests/vendors/app.py JOB.json

JOB.json: {"eps": [{"library": FILE or null, "name": the name to register it with, "ep": the EP's
name, "options": {EP options}}], "session": {session options}, "first": [FILE...] that are loaded
before and kept, "model": FILE, "groups": how many inputs each model had that it was merged from,
then "compile": FILE and "embed", or "run": FILE.npz that gets the outputs, with "sizes": those of
free dimensions that are tried}. Prints one JSON object: {"ok": true, "size": that of free
dimensions} or {"ok": false, "stage": "register", "session" or "run", "text": what was said}. Knows
nothing of epctx. A library of null: the EP is inside ONNX Runtime.
"""
import json
import math
import os
import sys

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before the library is loaded
import numpy  # noqa: E402
import onnxruntime  # noqa: E402

TYPES = {"float": "float32", "float16": "float16", "double": "float64", "int64": "int64",
         "int32": "int32", "int16": "int16", "int8": "int8", "uint64": "uint64",
         "uint32": "uint32", "uint16": "uint16", "uint8": "uint8", "bool": "bool"}


def options_of(job):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    for key, value in job["session"].items():
        options.add_session_config_entry(key, value)
    for one in job["eps"]:
        if one["library"]:
            onnxruntime.register_execution_provider_library(one["name"], one["library"])
        elif one["ep"] == "CPUExecutionProvider":
            continue
        else:
            options.add_provider(one["ep"], one["options"])
            continue
        devices = [d for d in onnxruntime.get_ep_devices() if d.ep_name == one["ep"]]
        if not devices:
            raise RuntimeError(f"{one['ep']} has no device here")
        options.add_provider_for_devices(devices[:1], one["options"])
    return options


# Of free dimensions, the first with which the model runs: some want a window of samples, or an
# image that survives their strides.
SIZES = (1, 64, 2048)
MOST_ELEMENTS = 1 << 26


def inputs_of(session, groups, size):
    """The same for a model and all that was made of it: by names, sorted."""
    values = {}
    firsts = {sum(groups[:i]) for i in range(len(groups))} | {0}
    for i, one in enumerate(sorted(session.get_inputs(), key=lambda i: i.name)):
        if i in firsts:
            random = numpy.random.default_rng(1)
        dims = [d if isinstance(d, int) and d > 0 else size for d in one.shape]
        if size > SIZES[0] and math.prod(dims) > MOST_ELEMENTS:
            raise MemoryError(f"{one.name}: {dims}")
        kind = TYPES[one.type.removeprefix("tensor(").removesuffix(")")]
        if kind.startswith("float"):
            values[one.name] = random.uniform(-1, 1, dims).astype(kind)
        elif kind == "bool":
            values[one.name] = random.integers(0, 2, dims).astype(kind)
        else:
            values[one.name] = random.integers(0, 10, dims).astype(kind)
    return values


def has_free(session):
    return any(not isinstance(d, int) or d <= 0 for i in session.get_inputs() for d in i.shape)


def run(job, options, done):
    """The session and its outputs; what is raised is of the first size. OpenVINO's EP computes
    something else after a run that failed: each size has a session of its own."""
    first = None
    for size in job.get("sizes", SIZES):
        done["stage"] = "session"
        session = onnxruntime.InferenceSession(job["model"], options)
        done["stage"], done["size"] = "run", size
        try:
            return session, session.run(None, inputs_of(session, job["groups"], size))
        except Exception as error:  # pylint: disable=broad-except  # whatever an EP says
            first = first or error
        if not has_free(session):
            break
    raise first


def work(job, done):
    done["stage"] = "register"
    options = options_of(job)
    done["stage"] = "session"
    if job.get("compile"):
        onnxruntime.ModelCompiler(
            options, job["model"],
            embed_compiled_data_into_model=job["embed"]).compile_to_file(job["compile"])
        return
    kept = [onnxruntime.InferenceSession(m, options) for m in job["first"]]
    session, outputs = run(job, options, done)
    del kept
    names = [o.name for o in session.get_outputs()]
    numpy.savez(job["run"], **{f"{i:03} {n}": v for i, (n, v) in enumerate(zip(names, outputs))})


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    done = {"ok": False}
    try:
        work(job, done)
        done["ok"] = True
    except Exception as error:  # pylint: disable=broad-except  # whatever an EP says
        done["text"] = str(error)
    print("\n" + json.dumps(done), flush=True)
    os._exit(0)  # some EPs crash while they are unloaded


main()
