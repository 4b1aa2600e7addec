"""What merge, chain and split make, run by ONNX Runtime without optimizations: the same bytes."""
import random
import struct

import onnxruntime

import ort_run

LETTERS = {1: "f", 2: "B", 3: "b", 4: "H", 5: "h", 6: "i", 7: "q", 9: "?", 10: "e", 11: "d",
           12: "I", 13: "Q"}
FLOATS, WIDE, BOOL = (1, 10, 11), (7, 13), 9


def inline(source, out):
    """The model as ONNX Runtime writes it, its functions in the place of their calls."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.optimized_model_filepath = out
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def make_input(seed, elem_type, dims):
    """The same numbers for the same seed and size, whatever the model."""
    if elem_type not in LETTERS:
        raise ort_run.Failure(f"inputs of element type {elem_type} are not made here")
    r, count = random.Random(seed), ort_run.count_of(dims)
    if elem_type in FLOATS:
        numbers = [r.uniform(-1, 1) for _ in range(count)]
    else:  # those of 64 bits may be indices
        numbers = [r.randrange(2 if elem_type in (*WIDE, BOOL) else 100) for _ in range(count)]
    return ort_run.Tensor(elem_type, dims, struct.pack(f"<{count}{LETTERS[elem_type]}", *numbers))


def load(file):
    return ort_run.session(file, plain=True)


def run(made, given, seed):
    """Inputs and outputs; inputs that `given` does not have are made from `seed` and the name."""
    feeds = {name: given.get(name) or make_input(seed + name, elem_type, dims)
             for name, elem_type, dims in ort_run.inputs_of(made)}
    return feeds, ort_run.run(made, feeds)


def compare(what, got, want):
    if got is None:
        raise ort_run.Failure(f"{what}: there is no such output")
    if got[:2] != want[:2]:
        raise ort_run.Failure(f"{what}: element type {got.elem_type} {got.dims}, expected "
                              f"{want.elem_type} {want.dims}")
    if got.data != want.data:
        at = next(i for i, pair in enumerate(zip(got.data, want.data)) if pair[0] != pair[1])
        raise ort_run.Failure(f"{what}: byte {at} of {len(want.data)} differs")


def shape_of(file, value):
    """NAME:TYPE[DIMS] of an output, for split --inputs."""
    tensor = run(load(file), {}, "x")[1][value]
    name = {1: "float32", 11: "float64"}.get(tensor.elem_type, ort_run.TYPES[tensor.elem_type][0])
    return f"{value}:{name}[{','.join(map(str, tensor.dims))}]"


def side_by_side(merged, files):
    """The merged model gives what its parts give."""
    made, given, wanted = load(merged), {}, []
    inputs = {value.name for value in made.get_inputs()}
    outputs = {value.name for value in made.get_outputs()}
    for number, file in enumerate(files, 1):
        def now(name, names):
            new = f"m{number}_{name}"
            return new if new in names else name
        feeds, results = run(load(file), {}, str(number))
        given.update((now(name, inputs), tensor) for name, tensor in feeds.items())
        wanted += [(now(name, outputs), tensor) for name, tensor in results.items()]
    if given.keys() != inputs:
        raise ort_run.Failure(f"{merged}: inputs {sorted(inputs)}, expected {sorted(given)}")
    if len(wanted) != len(outputs):
        raise ort_run.Failure(f"{merged}: {len(outputs)} outputs, expected {len(wanted)}")
    results = run(made, given, "")[1]
    for name, tensor in wanted:
        compare(f"{merged}: {name}", results.get(name), tensor)


def in_a_row(chained, files):
    """y of each file feeds x of the next."""
    feeds, results = run(load(chained), {}, "x")
    x = feeds["x"]
    for file in files:
        x = run(load(file), {"x": x}, "")[1]["y"]
    (name, last), = results.items()
    compare(f"{chained}: {name}", last, x)


def halves(model, first, second, whole):
    """`first`, then `second`, and `whole` give what `model` gives."""
    feeds, results = run(load(model), {}, "x")
    head = run(load(first), feeds, "x")[1]
    tail = run(load(second), {**feeds, **head}, "x")[1]
    both = run(load(whole), feeds, "x")[1]
    for name, tensor in results.items():
        compare(f"{second}: {name}", tail.get(name), tensor)
        compare(f"{whole}: {name}", both.get(name), tensor)
