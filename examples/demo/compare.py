#!/usr/bin/env python3
"""Compares the outputs of two runs of a model.

    compare.py REFERENCE_DIR DIR [--tolerance T] [--allow-zero]

Both folders hold io.txt and output_<i>.bin, as `epctx run --dump` writes them. An output passes
when type and dimensions agree and

    max|difference| <= T * max|reference|          (T is 1e-4 by default)

with no NaN on either side. Empty outputs and references that are zero throughout prove nothing, so
they fail; --allow-zero lets the latter pass. Infinities have to be equal, and count no further.
"""
import argparse
import math
import os
import re
import struct
import sys

# ONNX element type -> letter of Python's struct. bfloat16 (16) is the upper half of a float.
LETTERS = {1: "f", 2: "B", 3: "b", 4: "H", 5: "h", 6: "i", 7: "q", 9: "B", 10: "e", 11: "d",
           12: "I", 13: "Q"}
LINE = re.compile(r"output (\d+) (\d+) (\S+) (.*)")


def read(folder, name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def outputs(folder):
    """Index -> element type, dimensions and name."""
    lines = read(folder, "io.txt").decode("utf-8", "backslashreplace").split("\n")
    found = [LINE.fullmatch(line) for line in lines]
    return {int(m.group(1)): (int(m.group(2)), m.group(3), m.group(4)) for m in found if m}


def elements(data, elem_type):
    if elem_type == 16:
        halves = struct.iter_unpack("2s", data)
        data, elem_type = b"".join(b"\0\0" + half for half, in halves), 1
    return [value for value, in struct.iter_unpack("<" + LETTERS[elem_type], data)]


def short(number):
    """1.23e-4"""
    digits, _, exponent = f"{number:.2e}".partition("e")
    return f"{digits}e{int(exponent):+d}" if exponent else digits


def compare(reference, got, elem_type, tolerance, allow_zero):
    """Whether an output passes, and the text for it."""
    if elem_type != 16 and elem_type not in LETTERS:
        return False, f"elements of type {elem_type} cannot be compared"
    if len(reference) != len(got):
        return False, f"{len(got)} bytes, expected {len(reference)}"
    if len(reference) == 0:
        return False, "empty"
    if len(reference) % (2 if elem_type == 16 else struct.calcsize("<" + LETTERS[elem_type])) != 0:
        return False, f"{len(reference)} bytes, which are no whole elements"
    largest = difference = 0
    for at, (r, g) in enumerate(zip(elements(reference, elem_type), elements(got, elem_type))):
        if math.isnan(r) or math.isnan(g):
            return False, f"NaN at element {at}"
        if math.isinf(r) or math.isinf(g):  # anything is a small part of infinity
            if r != g:
                return False, f"{g} at element {at}, expected {r}"
            continue
        largest, difference = max(largest, abs(r)), max(difference, abs(r - g))
    ratio = difference / largest if largest else 0
    text = f"max|d| {short(difference)}  max|ref| {short(largest)}  ratio {short(ratio)}"
    if largest == 0 and not allow_zero:
        return False, f"{text}  (the reference is all zero)"
    return difference <= tolerance * largest, text


def compare_files(options, index, want, have):
    if have is None:
        return False, "missing"
    if have[:2] != want[:2]:
        return False, (f"type {have[0]}, dimensions {have[1]}, "
                       f"expected type {want[0]}, dimensions {want[1]}")
    name = f"output_{index}.bin"
    return compare(read(options.reference, name), read(options.folder, name), want[0],
                   options.tolerance, options.allow_zero)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("reference", metavar="REFERENCE_DIR")
    parser.add_argument("folder", metavar="DIR")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    parser.add_argument("--allow-zero", action="store_true")
    options = parser.parse_args()
    if not options.tolerance >= 0:
        parser.error("--tolerance: expected a number that is not negative")
    reference, got = outputs(options.reference), outputs(options.folder)
    good = len(reference) > 0 and len(reference) == len(got)
    if not good:
        print(f"  {len(got)} outputs, expected {len(reference)} and at least one")
    for index, want in reference.items():
        passed, text = compare_files(options, index, want, got.get(index))
        print(f"  {'same ' if passed else 'WRONG'}  {want[2]:16} {text}")
        good = good and passed
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
