"""Every command that changes a context model. Each gets a copy in a folder of its own and returns
(model that is loaded then, what was printed, function that says which outputs are wanted or None);
the model is None when the tool refused, the whole None when there is nothing to do here."""
import os
import re
import shutil


def done(result, made, wanted=None):
    code, text = result
    return (made if code == 0 else None, text, wanted)


def beside(context, name):
    return os.path.join(os.path.dirname(context), name)


def binaries(bench, context):
    """The names of its context binaries."""
    _, text = bench.epctx("info", context)
    return sorted(set(re.findall(r"main, in the file '([^']*)'", text)))


def embed(bench, ep, model, context, mode):
    if mode == "embedded":
        return None
    made = beside(context, "made_ctx.onnx")
    result = bench.epctx("embed", context, "-o", made)
    for name in binaries(bench, context):
        os.remove(beside(context, name))
    return done(result, made)


def extract(bench, ep, model, context, mode):
    if mode != "embedded":
        return None
    made = beside(context, "made_ctx.onnx")
    return done(bench.epctx("extract", context, "-o", made), made)


def mv(bench, ep, model, context, mode):
    if mode == "embedded":
        return None
    name = binaries(bench, context)[0]
    return done(bench.epctx("mv", beside(context, name), beside(context, "moved.bin")), context)


def prefix(bench, ep, model, context, mode):
    made = beside(context, "made_ctx.onnx")
    stamped = beside(context, "stamped_ctx.onnx")
    bench.epctx("stamp", context, "--graphs", "1", "-o", stamped)
    return done(bench.epctx("prefix", stamped, "p_", "-o", made), made)


def rename(bench, ep, model, context, mode):
    _, text = bench.epctx("info", context)
    name = re.search(r"^output +'([^']*)'", text, re.M).group(1)
    made = beside(context, "made_ctx.onnx")
    return done(bench.epctx("rename", context, name, "another/name.1", "-o", made), made)


def set_unset(bench, ep, model, context, mode):
    made, last = beside(context, "made_ctx.onnx"), beside(context, "last_ctx.onnx")
    result = bench.epctx("set", context, "--all", "notes=a note", "metadata:k=v", "-o", made)
    if result[0] != 0:
        return done(result, made)
    return done(bench.epctx("unset", made, "--all", "notes", "-o", last), last)


def stamp(bench, ep, model, context, mode):
    made = beside(context, "made_ctx.onnx")
    return done(bench.epctx("stamp", context, "--source", model, "-o", made), made)


def package(bench, ep, model, context, mode):
    folder = beside(context, "pack")
    result = bench.epctx("package", context, "-o", folder)
    found = [os.path.join(at, f) for at, _, files in os.walk(folder) for f in files
             if f.endswith(".onnx")]
    return done(result, found[0] if found else None)


def copy(bench, ep, model, context, mode):
    made = beside(context, "made_ctx.onnx")
    return done(bench.epctx("copy", "--rebuild", context, made), made)


def init(bench, ep, model, context, mode):
    made, last = beside(context, "made_ctx.onnx"), beside(context, "last_ctx.onnx")
    result = bench.epctx("init", context, "--external", "--threshold", "0", "-o", made)
    if result[0] != 0:
        return done(result, made)
    return done(bench.epctx("init", made, "--inline", "-o", last), last)


def repair(bench, ep, model, context, mode):
    made = beside(context, "made_ctx.onnx")
    bench.epctx("set", context, "--all", "embed_mode=" + str(int(mode == "embedded")), "-o", made)
    last = beside(context, "last_ctx.onnx")
    result = bench.epctx("repair", context, "--source", model, "-o", last)
    if result[0] == 0 and not os.path.exists(last):  # nothing to repair
        return done(result, context)
    return done(result, last)


def split(bench, ep, model, context, mode):
    """All of it, by its outputs."""
    made = beside(context, "made_ctx.onnx")
    _, text = bench.epctx("info", context)
    names = re.findall(r"^output +'([^']*)'", text, re.M)
    return done(bench.epctx("split", context, "--outputs", ",".join(names), "-o", made), made)


def merge(bench, ep, model, context, mode):
    """Twice the same: each half computes what it did. A stamp says that the name of the node is
    free; a binary of its own, that it is none that two nodes share."""
    made, parts = beside(context, "made_ctx.onnx"), []
    for part in ("first", "second"):
        parts.append(beside(context, part + "_ctx.onnx"))
        shutil.copy(context, parts[-1])
        for i, name in enumerate(binaries(bench, parts[-1]) if mode == "file" else []):
            shutil.copy(beside(context, name), beside(context, f"{part}{i}.bin"))
            bench.epctx("set", parts[-1], "--node", f"#{i + 1}",
                        f"ep_cache_context={part}{i}.bin", "--in-place")
        result = bench.epctx("stamp", parts[-1], "--graphs", "1", "--in-place")
        if result[0] != 0:
            return done(result, made)
    result = bench.epctx("merge", *parts, "--prefix", "a_,b_", "-o", made)
    return done(result, made, lambda outputs: outputs + outputs)


EDITS = [embed, extract, mv, prefix, rename, set_unset, stamp, package, copy, init, repair, split,
         merge]
