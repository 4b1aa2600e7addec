#!/usr/bin/python3
"""Device configurations, read by the library and by libprotobuf.

    tests/judge/devices.py PROGRAM FILE

PROGRAM is tests/test_sharding, FILE is written and removed. Makes 200 models at
random with libprotobuf, some of them with fields that occur twice, and
compares what `PROGRAM --print FILE` says with libprotobuf's values. Prints the
lines that tests/run reads.
"""
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from onnx_schema import ModelProto, parse  # noqa: E402

NAMES = ("", "a", "mesh", "x", "y", "npu:0")
GRAPH = 5


def number(rng):
    return rng.choice((0, 1, -1, 7, 300, 2**31, -2**63, 2**63 - 1))


def small(rng):
    return rng.choice((0, 1, -1, 7, 2**31 - 1, -2**31))


def fill_sharding(rng, sharding):
    sharding.tensor_name = rng.choice(NAMES)
    sharding.device.extend(number(rng) for _ in range(rng.randrange(4)))
    for _ in range(rng.randrange(3)):
        sharding.index_to_device_group_map.add(
            key=number(rng), value=[number(rng) for _ in range(rng.randrange(4))])
    for _ in range(rng.randrange(3)):
        dim = sharding.sharded_dim.add()
        if rng.randrange(2):
            dim.axis = number(rng)
        for _ in range(rng.randrange(3)):
            part = dim.simple_sharding.add(num_shards=number(rng))
            kind = rng.randrange(3)
            if kind == 1:
                part.dim_value = number(rng)
            elif kind == 2:
                part.dim_param = rng.choice(NAMES)


def fill_node(rng, node):
    node.name = rng.choice(NAMES)
    for _ in range(rng.randrange(3)):
        on = node.device_configurations.add(configuration_id=rng.choice(NAMES))
        if rng.randrange(2):
            on.pipeline_stage = small(rng)
        for _ in range(rng.randrange(3)):
            fill_sharding(rng, on.sharding_spec.add())


def make(rng):
    model = ModelProto(ir_version=13)
    for _ in range(rng.randrange(3)):
        model.configuration.add(name=rng.choice(NAMES), num_devices=small(rng),
                                device=[rng.choice(NAMES) for _ in range(rng.randrange(3))])
    for _ in range(rng.randrange(4)):
        node = model.graph.node.add(op_type="Relu")
        fill_node(rng, node)
        if rng.randrange(4) == 0:
            body = node.attribute.add(name="body", type=GRAPH)
            fill_node(rng, body.g.node.add(op_type="Relu"))
    data = model.SerializeToString()
    # A configuration whose name and number occur twice: the last ones count.
    if rng.randrange(2):
        data += bytes((26 << 3 & 0x7f | 0x82, 26 >> 4)) + b"\x0a\x0a\x01p\x10\x03\x0a\x01q\x10\x04"
    return data


def text(value):
    return f"'{value}'"


def ints(values):
    return "[" + ",".join(map(str, values)) + "]"


def sharding_lines(sharding):
    yield f"  sharding {text(sharding.tensor_name)} devices {ints(sharding.device)}"
    for group in sharding.index_to_device_group_map:
        yield f"    group {group.key} {ints(group.value)}"
    for dim in sharding.sharded_dim:
        yield f"    axis {dim.axis}"
        for part in dim.simple_sharding:
            kind = part.WhichOneof("dim")
            what = part.dim_value if kind == "dim_value" else \
                text(part.dim_param) if kind == "dim_param" else "?"
            yield f"      {what} in {part.num_shards}"


def node_lines(nodes):
    for node in nodes:
        for on in node.device_configurations:
            stage = f" stage {on.pipeline_stage}" if on.HasField("pipeline_stage") else ""
            yield f"node {text(node.name)} in {text(on.configuration_id)}{stage}"
            for sharding in on.sharding_spec:
                yield from sharding_lines(sharding)
        for attribute in node.attribute:
            yield from node_lines(attribute.g.node)


def lines(model):
    for config in model.configuration:
        yield " ".join(["configuration", text(config.name), str(config.num_devices),
                        *map(text, config.device)])
    yield from node_lines(model.graph.node)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    program, path = sys.argv[1:]
    rng = random.Random(1)
    compared = 0
    for index in range(200):
        data = make(rng)
        with open(path, "wb") as out:
            out.write(data)
        done = subprocess.run([program, "--print", path], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        want = list(lines(parse(data)))
        got = done.stdout.decode().splitlines()
        if done.returncode != 0 or got != want:
            wrong = next((f"'{g}', libprotobuf has '{w}'" for g, w in zip(got, want) if g != w),
                         f"{len(got)} lines, libprotobuf has {len(want)}")
            print(f"FAIL device configurations: model {index}, kept in {path}: {wrong}; "
                  f"exit code {done.returncode} {done.stderr.decode()}")
            sys.exit(1)
        compared += len(want)
    os.remove(path)
    print("ok device configurations")
    print(f"note {compared} lines on devices equal to libprotobuf's")


if __name__ == "__main__":
    main()
