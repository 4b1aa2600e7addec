#!/usr/bin/python3
"""libprotobuf's verdict on ONNX models.

    tests/judge/parse.py                             file names on standard input;
                                                     prints "ok NAME" or "bad NAME"
    tests/judge/parse.py --damage DIR SEED COUNT FILE...
                                                     writes COUNT damaged copies of
                                                     the files into DIR (00000.onnx,
                                                     ...), prints their verdicts

The same SEED and files give the same copies.
"""
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import damage  # noqa: E402
import onnx_schema  # noqa: E402


def verdict(data):
    return "ok" if onnx_schema.parse(data) is not None else "bad"


def make_damaged(sources, seed, count):
    """Yields count damaged models. None is empty, and none is left as it was."""
    generator = random.Random(seed)
    made = 0
    while made < count:
        source = sources[made % len(sources)]
        data = damage.damaged(source, generator)
        if data and data != source:
            made += 1
            yield data


def main():
    if len(sys.argv) == 1:
        for name in sys.stdin.read().splitlines():
            with open(name, "rb") as source:
                print(verdict(source.read()), name)
        return
    if sys.argv[1] != "--damage" or len(sys.argv) < 6:
        sys.exit(__doc__)
    folder, seed, count = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    sources = []
    for name in sys.argv[5:]:
        with open(name, "rb") as source:
            sources.append(source.read())
    os.makedirs(folder, exist_ok=True)
    for i, data in enumerate(make_damaged(sources, seed, count)):
        path = os.path.join(folder, f"{i:05}.onnx")
        with open(path, "wb") as out:
            out.write(data)
        print(verdict(data), path)


if __name__ == "__main__":
    main()
