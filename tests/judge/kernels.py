#!/usr/bin/python3
"""Models of one operator each, for tests/bench_models.sh --kernels.

    tests/judge/kernels.py FOLDER

Sizes are those of networks: some 100,000 elements, rows, columns and planes of them.
"""
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from operators import BOOL, FLOAT, INT32, INT64, UINT8, Case, floats, product  # noqa: E402

R = random.Random(1)
FULL, ROW, COLUMN, PLANE, ONE = [1, 32, 56, 56], [56], [32, 1, 1], [1, 1, 56, 56], [1]


def given(elem_type, dims, low=-4, high=4, constant=False):
    if elem_type == FLOAT:
        return floats(R, dims, constant, 0.0, low, high)
    if elem_type == BOOL:
        low, high = 0, 1
    return elem_type, dims, [R.randint(low, high) for _ in range(product(dims))], constant


def x(dims=None, elem_type=FLOAT, **limits):
    return given(elem_type, dims or FULL, **limits)


def c(*values, elem_type=FLOAT):
    return elem_type, [len(values)], list(values), True


def cases():
    for op in ("Abs Neg Floor Ceil Round Sign Reciprocal Exp Sigmoid Tanh Erf Softplus Softsign "
               "Sin Cos Tan Atan LeakyRelu Relu HardSwish HardSigmoid Elu Selu ThresholdedRelu "
               "Mish").split():
        yield op, Case(op, 22, [x()], [FLOAT])
    for op in "Sqrt Log".split():
        yield op, Case(op, 13, [x(low=0.01)], [FLOAT])
    yield "Gelu", Case("Gelu", 20, [x()], [FLOAT])
    yield "Clip", Case("Clip", 13, [x(), (FLOAT, [], [-1.0], True), (FLOAT, [], [1.0], True)],
                       [FLOAT])
    for op in "Add Mul Div Max PRelu".split():
        for name, dims in (("full", FULL), ("row", ROW), ("column", COLUMN), ("plane", PLANE),
                           ("one", ONE)):
            if op in ("Add", "Div") or name in ("full", "column"):
                version = 16 if op == "PRelu" else 14
                yield f"{op}_{name}", Case(op, version, [x(), x(dims, low=0.5)], [FLOAT])
    for power in (2.0, 3.0, 0.5, -1.0, 1.7):
        yield f"Pow_{power}", Case("Pow", 15, [x(low=0.1), c(power)], [FLOAT])
    yield "Pow_full", Case("Pow", 15, [x(low=0.1), x()], [FLOAT])
    for op in "Equal Less GreaterOrEqual".split():
        for name, dims in (("full", FULL), ("column", COLUMN), ("one", ONE)):
            yield f"{op}_{name}", Case(op, 16 if op[0] == "G" else 13, [x(), x(dims)], [BOOL])
    yield "Equal_int64", Case("Equal", 13, [x(elem_type=INT64), x(ONE, INT64)], [BOOL])
    yield "And_full", Case("And", 7, [x(elem_type=BOOL), x(elem_type=BOOL)], [BOOL])
    yield "Or_row", Case("Or", 7, [x(elem_type=BOOL), x(ROW, BOOL)], [BOOL])
    yield "Not", Case("Not", 1, [x(elem_type=BOOL)], [BOOL])
    for kind, name in ((INT64, "int64"), (INT32, "int32")):
        for op in "Add Mul Div".split():
            yield f"{op}_{name}", Case(op, 14, [x(elem_type=kind), x(ONE, kind, low=1)], [kind])
        yield f"Sub_{name}", Case("Sub", 14, [x(elem_type=kind), x(elem_type=kind)], [kind])
    yield "Mod_int64", Case("Mod", 13, [x(elem_type=INT64), x(ONE, INT64, low=3)], [INT64])
    for name, condition, a, b in (("full", FULL, FULL, FULL), ("one", FULL, FULL, ONE),
                                  ("mask", PLANE, FULL, ONE), ("column", COLUMN, FULL, FULL)):
        yield f"Where_{name}", Case("Where", 16, [x(condition, BOOL), x(a), x(b)], [FLOAT])
    yield "Where_int64", Case("Where", 16, [x(elem_type=BOOL), x(elem_type=INT64), x(ONE, INT64)],
                              [INT64])
    for source, to in ((FLOAT, INT32), (FLOAT, INT64), (FLOAT, BOOL), (FLOAT, UINT8),
                       (INT32, FLOAT), (INT64, FLOAT), (BOOL, FLOAT), (UINT8, FLOAT),
                       (INT64, INT32), (INT32, INT64), (BOOL, INT64)):
        low = 0 if UINT8 in (source, to) else -4
        yield f"Cast_{source}_{to}", Case("Cast", 13, [x(elem_type=source, low=low)], [to], to=to)
    for name, dims in (("row", ROW), ("column", COLUMN), ("one", ONE)):
        yield f"Expand_{name}", Case("Expand", 13, [x(dims), c(*FULL, elem_type=INT64)], [FLOAT])
    yield "Tile", Case("Tile", 13, [x([1, 8, 56, 56]), c(1, 4, 1, 1, elem_type=INT64)], [FLOAT])
    yield "Tile_inner", Case("Tile", 13, [x([1, 32, 56, 14]), c(1, 1, 1, 4, elem_type=INT64)],
                             [FLOAT])
    yield "Pad", Case("Pad", 13, [x(), c(0, 0, 1, 1, 0, 0, 1, 1, elem_type=INT64)], [FLOAT])
    yield "Gather", Case("Gather", 13, [x([1000, 128]), (INT64, [512], [R.randrange(1000)
                                                                   for _ in range(512)], False)],
                         [FLOAT])
    for axis, name in ((1, "channels"), (3, "row")):
        yield f"ArgMax_{name}", Case("ArgMax", 13, [x()], [INT64], axis=axis)
        yield f"Softmax_{name}", Case("Softmax", 13, [x()], [FLOAT], axis=axis)
        for op in "ReduceMax ReduceMean ReduceL2 ReduceProd".split():
            yield f"{op}_{name}", Case(op, 13, [x()], [FLOAT], axes=[axis])
    yield "ReduceMean_hw", Case("ReduceMean", 13, [x()], [FLOAT], axes=[2, 3])
    yield "Softmax_160x32", Case("Softmax", 13, [x([160, 32])], [FLOAT], axis=-1)
    yield "LayerNorm", Case("LayerNormalization", 17,
                            [x([196, 512]), x([512], constant=True), x([512], constant=True)],
                            [FLOAT])
    yield "InstanceNorm", Case("InstanceNormalization", 6,
                               [x(), x([32], constant=True), x([32], constant=True)], [FLOAT])
    yield "BatchNorm", Case("BatchNormalization", 15,
                            [x(), *(x([32], constant=True, low=0.5) for _ in range(4))], [FLOAT])
    yield "Resize_nearest", Case("Resize", 13, [x(), None, c(1.0, 1.0, 2.0, 2.0)], [FLOAT],
                                 coordinate_transformation_mode="asymmetric", mode="nearest",
                                 nearest_mode="floor")
    for size, stride, group, channels in ((2, 2, 1, 32), (4, 2, 1, 32), (3, 1, 1, 32),
                                          (3, 2, 16, 1)):
        yield f"ConvTranspose_{size}x{size}_s{stride}_g{group}", Case(
            "ConvTranspose", 11, [x([1, channels * group, 28, 28]),
                                  x([channels * group, channels, size, size], constant=True)],
            [FLOAT], strides=[stride] * 2, group=group, kernel_shape=[size] * 2)
    yield "CumSum", Case("CumSum", 14, [x(), (INT64, [], [3], True)], [FLOAT])


def main():
    for name, case in cases():
        with open(os.path.join(sys.argv[1], name + ".onnx"), "wb") as out:
            out.write(case.model())


main()
