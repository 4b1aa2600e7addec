#!/usr/bin/python3
"""Whether the threads of ONNX Runtime share the runs of the plugin EP.

    tests/judge/threads.py LIBRARY FOLDER

A convolution runs in sessions with one and with two intra-op threads. By processor time, not by the
clock: other programs may be under way. Prints the lines that tests/run reads.
"""
import array
import os
import random
import sys
import time

import numpy
import onnxruntime

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from graphs import Graph  # noqa: E402

EP = "EpctxNpuExecutionProvider"
DIMS = [1, 64, 48, 48]


def model(folder):
    graph = Graph(random.Random(1), "image")
    x, w = graph.input(DIMS), graph.floats([64, 64, 3, 3])
    graph.node("Conv", [x, w], DIMS, pads=[1, 1, 1, 1], kernel_shape=[3, 3])
    graph.finish().write(folder)
    return os.path.join(folder, "model.onnx"), x, graph.given[0][1]


def run(path, name, values, threads, options):
    """(outputs as bytes, the part of the processor time that other threads took)"""
    session_options = onnxruntime.SessionOptions()
    session_options.intra_op_num_threads = threads
    session_options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    devices = [d for d in onnxruntime.get_ep_devices() if d.ep_name == EP]
    session_options.add_provider_for_devices(devices[:1], options)
    session = onnxruntime.InferenceSession(path, session_options, enable_fallback=0)
    x = numpy.frombuffer(array.array("f", values), numpy.float32).reshape(DIMS)
    session.run(None, {name: x})
    all_before, own_before = time.process_time(), time.thread_time()
    for _ in range(100):
        out = session.run(None, {name: x})[0].tobytes()
    spent, own = time.process_time() - all_before, time.thread_time() - own_before
    return out, 1 - own / spent


def main():
    onnxruntime.register_execution_provider_library("npu", os.path.abspath(sys.argv[1]))
    given = model(sys.argv[2])
    want = run(*given, 1, {})[0]
    for name, threads, options, low, high in (
            ("one thread", 1, {}, -1, 0.005), ("two threads", 2, {}, 0.02, 0.8),
            ("two threads by option", 2, {"threads": "2"}, 0.02, 0.8),
            ("one of two threads", 2, {"threads": "1"}, -1, 0.005)):
        out, others = run(*given, threads, options)
        if out != want:
            print(f"FAIL {name}: expected the bits of one thread, found others")
        elif not low <= others <= high:
            print(f"FAIL {name}: expected that other threads take {low} to {high} of the processor "
                  f"time, found {others:.2f}")
        else:
            print(f"ok {name}")
    for value in ("0", "65", "two"):
        try:
            run(*given, 1, {"threads": value})
            print(f"FAIL threads={value}: expected a refusal")
        except Exception as error:  # noqa: BLE001
            good = f"expected a number from 1 to 64, found '{value}'" in str(error)
            print(f"ok threads={value}" if good else f"FAIL threads={value}: {error}")


main()
