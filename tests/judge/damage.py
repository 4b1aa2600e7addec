"""Damages ONNX models in the ways in which protobuf parsers tend to differ.

damaged(data, random) yields one damaged copy of a model. Half of the ways work
on bytes and break whatever they hit. The other half take the message apart by
its schema, change one field deep inside and put it together again with the
lengths around it correct, so that a parser has to get as far as the change.
"""
import onnx_schema

MESSAGE, GROUP_TYPE = 11, 10
VARINT, FIXED64, LENGTH, START, END, FIXED32 = 0, 1, 2, 3, 4, 5


def varint(value, width=0):
    """The encoding of value, padded to at least `width` bytes."""
    out = bytearray()
    while True:
        more = value > 0x7f or len(out) + 1 < width
        out.append(value & 0x7f | (0x80 if more else 0))
        value >>= 7
        if not more:
            return bytes(out)


def tag(number, wire, width=0):
    return varint(number << 3 | wire, width)


class Field:
    """One field: its tag, and either children (a message) or bytes."""

    def __init__(self, number, wire, value, children=None, kind=None):
        self.number, self.wire, self.value = number, wire, value
        self.children, self.kind = children, kind
        self.whole = None  # replaces everything, tag and length included

    def encode(self):
        if self.whole is not None:
            return self.whole
        if self.wire != LENGTH:
            return tag(self.number, self.wire) + self.value
        body = encode(self.children) if self.children is not None else self.value
        return tag(self.number, LENGTH) + varint(len(body)) + body


def encode(fields):
    return b"".join(f.encode() for f in fields)


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def decode(data, kind):
    """A sound message as a list of Field."""
    fields, at = [], 0
    while at < len(data):
        key, at = read_varint(data, at)
        number, wire = key >> 3, key & 7
        start = at
        if wire == VARINT:
            at = read_varint(data, at)[1]
        elif wire == LENGTH:
            size, start = read_varint(data, at)
            at = start + size
        else:
            at += 8 if wire == FIXED64 else 4
        known = kind.fields_by_number.get(number)
        if known is not None and known.type == MESSAGE and wire == LENGTH:
            fields.append(Field(number, wire, None, decode(data[start:at], known.message_type),
                                known.message_type))
        else:
            fields.append(Field(number, wire, data[start:at]))
    return fields


def messages(fields, kind, out):
    """All (list of fields, message type) in a tree, outermost first."""
    out.append((fields, kind))
    for field in fields:
        if field.children is not None:
            messages(field.children, field.kind, out)
    return out


# ------------------------------------------------------- damage to bytes

def flip(data, random):
    data = bytearray(data)
    for _ in range(random.randint(1, 4)):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(data)


def replace(data, random):
    data = bytearray(data)
    data[random.randrange(len(data))] = random.choice((0, 1, 0x7f, 0x80, 0xff))
    return bytes(data)


def truncate(data, random):
    return data[:random.randrange(1, len(data))]


def insert(data, random):
    at = random.randrange(len(data) + 1)
    extra = bytes(random.randrange(256) for _ in range(random.randint(1, 8)))
    return data[:at] + extra + data[at:]


def delete(data, random):
    at = random.randrange(len(data))
    return data[:at] + data[at + random.randint(1, 8):] or b"\0"


def trail(data, random):
    """Something behind a sound model."""
    return data + random.choice((b"\0", b"\4", b"\x0c", b"\x0b", b"\x0b\x0c", b"\xff", b"\x08",
                                 b"\x80\x01", b"\x0d\0\0\0", b"\x80" * 10 + b"\x01"))


# ----------------------------------------------------- damage to a field

def group(random, number, depth, end=None):
    inner = b"" if depth <= 1 else group(random, number, depth - 1)
    if random.random() < 0.5:
        inner += tag(15, VARINT) + varint(random.randrange(1 << 20))
    return tag(number, START) + inner + tag(number if end is None else end, END)


def unknown_field(random):
    """A field no ONNX schema has, sound or nearly so."""
    number = random.choice((0, 99, 1000, 18999, 19500, (1 << 29) - 1, 1 << 29, 1 << 31))
    return random.choice((
        lambda: tag(number, VARINT) + varint(random.getrandbits(64)),
        lambda: tag(number, FIXED32) + b"abcd",
        lambda: tag(number, FIXED32) + b"abc",
        lambda: tag(number, FIXED64) + b"abcdefgh",
        lambda: tag(number, LENGTH) + varint(3) + b"abc",
        lambda: tag(number, LENGTH) + varint(4) + b"abc",
        lambda: tag(99, random.choice((6, 7))) + b"abcd",
        lambda: tag(99, END),
        lambda: tag(99, START),
        lambda: group(random, 99, random.randint(1, 5)),
        lambda: group(random, 99, random.choice((80, 90, 95, 96, 97, 98, 99, 100, 101, 102))),
        lambda: group(random, 99, 1, end=98),
        lambda: group(random, 0, 1),
    ))()


def long_varints(field, random):
    """The field with a tag, length or value written longer than need be."""
    width = random.choice((2, 3, 4, 5, 6, 9, 10, 11))
    if random.random() < 0.4:
        head = tag(field.number, field.wire, width)
        if field.wire != LENGTH:
            return head + field.value
        body = field.encode()
        return head + body[len(tag(field.number, LENGTH)):]
    if field.wire == VARINT:
        value = read_varint(field.value, 0)[0]
        value |= random.choice((0, 0, 1 << 31, 1 << 32, 1 << 63, 1 << 64))
        return tag(field.number, VARINT) + varint(value, width)
    if field.wire == LENGTH:
        body = encode(field.children) if field.children is not None else field.value
        return tag(field.number, LENGTH) + varint(len(body), width) + body
    return tag(field.number, field.wire, width) + field.value


def wrong_length(field, random):
    body = encode(field.children) if field.children is not None else field.value
    size = random.choice((len(body) + 1, max(len(body) - 1, 0), len(body) + 1000, 0,
                          (1 << 31) - 17, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32,
                          (1 << 32) + len(body), (1 << 63) + len(body)))
    return tag(field.number, LENGTH) + varint(size) + body


def wrong_wire(field, random):
    wire = random.choice((VARINT, FIXED64, LENGTH, START, END, FIXED32))
    body = {VARINT: varint(random.getrandbits(40)), FIXED64: b"abcdefgh", FIXED32: b"abcd",
            LENGTH: varint(2) + b"\x08\x01", START: tag(field.number, END), END: b""}[wire]
    return tag(field.number, wire) + body


def nested(random):
    """TypeProto.sequence_type upon sequence_type, around the limit of depth."""
    depth = random.choice((10, 40, 44, 45, 46, 47, 48, 49, 50, 51, 52, 60, 200))
    body = b""
    for _ in range(depth):
        body = tag(1, LENGTH) + varint(len(body)) + body  # Sequence.elem_type
        body = tag(4, LENGTH) + varint(len(body)) + body  # TypeProto.sequence_type
    info = tag(1, LENGTH) + varint(1) + b"x" + tag(2, LENGTH) + varint(len(body)) + body
    return tag(13, LENGTH) + varint(len(info)) + info  # GraphProto.value_info


def structured(data, random):
    kind = onnx_schema.ModelProto.DESCRIPTOR
    tree = decode(data, kind)
    everything = messages(tree, kind, [])
    fields, kind = random.choice(everything)
    how = random.randrange(8)
    if how == 0:
        graph = [f for f, k in everything if k.name == "GraphProto"]
        fields = random.choice(graph) if graph else fields
        extra = nested(random)
    elif how in (1, 2) or not fields:
        extra = unknown_field(random)
    else:
        extra = None
    if extra is not None:
        new = Field(0, 0, b"")
        new.whole = extra
        fields.insert(random.randrange(len(fields) + 1), new)
        return encode(tree)
    field = random.choice(fields)
    if how == 3:
        field.whole = long_varints(field, random)
    elif how == 4:
        field.whole = wrong_wire(field, random)
    elif how == 5:
        fields.insert(random.randrange(len(fields) + 1), field)  # a field twice
    elif how == 6:
        lengths = [f for f in fields if f.wire == LENGTH]
        if lengths:
            field = random.choice(lengths)
            field.whole = wrong_length(field, random)
        else:
            field.whole = long_varints(field, random)
    else:
        # A number list in the packed form or with an end that does not fit.
        body = bytes(random.randrange(256) for _ in range(random.randint(0, 9)))
        field.whole = tag(field.number, LENGTH) + varint(len(body)) + body
    return encode(tree)


def damaged(data, random):
    how = random.choice((flip, replace, truncate, insert, delete, trail, structured, structured,
                         structured, structured, structured, structured))
    return how(data, random)
