"""How much a judge tries: `make test` sets EPCTX_TEST_QUICK=1 and wants fewer rounds of the
same cases."""
import os

QUICK = os.environ.get("EPCTX_TEST_QUICK") == "1"


def rounds(every, few):
    return few if QUICK else every


def some(things, most):
    """A quick run takes at most so many, spread evenly, the first and the last among them."""
    things = list(things)
    if not QUICK or len(things) <= most:
        return things
    return [things[i * (len(things) - 1) // (most - 1)] for i in range(most)]
