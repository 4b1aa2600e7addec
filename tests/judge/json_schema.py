"""Judges what epctx prints with --json by the schemas of examples/epctx/schema, strictly: a member
that no schema tells is wrong. Tests that read such an object import this, and so does

    json_schema.py SCHEMA < OBJECT     SCHEMA "-": the object names its command

The validator is Debian's python3-jsonschema."""

import glob
import json
import os
import sys
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of newer versions, which have another way to follow $ref
    from jsonschema import Draft202012Validator, RefResolver

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "epctx",
                      "schema")


def strict(schema):
    """The schema without room for members that it does not list."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: strict(value) for key, value in schema.items()}
    if isinstance(made.get("properties"), dict) and made.get("type") == "object":
        made.setdefault("additionalProperties", False)
    return made


def read_all(folder):
    """All schemas by name, strict; each is a schema itself."""
    found = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        with open(path, encoding="utf-8") as file:
            schema = json.load(file)
        Draft202012Validator.check_schema(schema)
        found[os.path.basename(path)] = strict(schema)
    assert found, f"{folder}: no schema"
    return found


SCHEMAS = read_all(FOLDER)
WRITERS = SCHEMAS["changes.json"]["properties"]["command"]["enum"]


def name_of(answer):
    """Which schema an object is of."""
    if "exit_code" in answer:
        return "failed.json"
    return "changes.json" if answer["command"] in WRITERS else answer["command"] + ".json"


def deepest(error):
    """What is wrong in the branch of a oneOf that fits best."""
    while error.context:
        error = max(error.context, key=lambda one: len(one.absolute_path))
    return error


def judge(answer, name=None, schemas=None):
    """Raises an AssertionError that tells what is wrong with the object."""
    schemas = schemas or SCHEMAS
    head = list(answer)[:2] if isinstance(answer, dict) else None
    if schemas is SCHEMAS:
        assert head == ["format_version", "command"], f"begins with {head}"
    name = name or name_of(answer)
    assert name in schemas, f"there is no schema {name}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        resolver = RefResolver(name, schemas[name], store=schemas)
        errors = list(Draft202012Validator(schemas[name], resolver=resolver).iter_errors(answer))
    if errors:
        error = deepest(errors[0])
        where = "/".join(str(part) for part in error.absolute_path)
        raise AssertionError(f"{name}: {where}: {error.message[:300]}")


def refuse_twice(pairs):
    """For json.loads: a name that is there twice is lost to most readers."""
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), f"a member twice: {names}"
    return dict(pairs)


def read(data):
    """The object in bytes that a command printed."""
    return json.loads(data.decode("utf-8"), object_pairs_hook=refuse_twice)


if __name__ == "__main__":
    judge(read(sys.stdin.buffer.read()), None if sys.argv[1] == "-" else sys.argv[1])
