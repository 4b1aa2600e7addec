"""Outputs of two runs beside each other; None: the run failed."""
import numpy

FAR = 0.9  # cosine similarity to the CPU EP; these EPs compute in float16 and 8 bits


def same(a, b):
    return a is not None and b is not None and len(a) == len(b) and all(
        x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
        for x, y in zip(a, b))


def near(a, b):
    if a is None or b is None:
        return False
    if [x.shape for x in a] != [y.shape for y in b]:
        return False
    for x, y in zip(a, b):
        x, y = x.astype("float64").ravel(), y.astype("float64").ravel()
        size = numpy.linalg.norm(x) * numpy.linalg.norm(y)
        if size > 0 and float(x @ y) / size < FAR:
            return False
    return True
