#!/usr/bin/python3
"""What releases of ORT GenAI take in genai_config.json, asked of the packages themselves.

    tests/judge/genai_keys.py facts KEYS...     the table of facts of several releases, oldest first
    tests/judge/genai_keys.py keys FOLDER TABLE the keys of the release in a folder (an unpacked
                                                wheel for Linux on x86-64)
    tests/judge/genai_keys.py compare FOLDER TABLE
                                                whether the table says the same of this release, the
                                                newest in it

The words come from the library: the strings that its code refers to, and the numbers in its code
that are pieces of short keys; and from the table that is there. Each is offered to the release's
own parser at every place, with every kind of value; what the parser says makes the table. Nothing
else of the package is kept.
"""
import collections
import glob
import json
import os
import re
import struct
import sys
import tempfile

LETTERS = rb"[a-z0-9_]"
WORD = re.compile(rb"[A-Za-z][A-Za-z0-9_-]{1,47}")
NOBODY = "no_such_key"
SEEDS = {"context_length", "vocab_size", "tokenizer_dir", "num_hidden_layers",
         "num_key_value_heads", "past_key_names", "present_value_names", "intra_op_num_threads",
         "early_stopping"}
WINDOW = 0x40000  # bytes of code
# Objects with the same keys wherever they are.
SHARED = ("session_options", "run_options")
INT32 = (-2**31, 2**31 - 1)

# -- the words of a library --


def sections(data):
    """Of an ELF file: name -> address, offset, size."""
    start, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3a)
    rows = [struct.unpack_from("<IIQQQQIIQQ", data, start + i * size) for i in range(count)]
    table = rows[names][4]
    return {data[table + row[0]:data.index(b"\0", table + row[0])]: row[3:6] for row in rows}


def referred(data):
    """The strings whose address the code takes, with where it does."""
    text, rodata = sections(data)[b".text"], sections(data)[b".rodata"]
    code = data[text[1]:text[1] + text[2]]
    for found in re.finditer(rb"(?=[\x48\x4c]\x8d[\x05\x0d\x15\x1d\x25\x2d\x35\x3d](....))", code,
                             re.S):
        at = text[0] + found.start() + 7 + struct.unpack("<i", found.group(1))[0] - rodata[0]
        if not 0 <= at < rodata[2]:
            continue
        word = data[rodata[1] + at:rodata[1] + at + 60].split(b"\0")[0]
        if WORD.fullmatch(word):
            yield text[0] + found.start(), word.decode()


def pieces(code):
    """Numbers in comparisons that are text: address, place in the key, text."""
    for found in re.finditer(rb"(?=[\x48\x49][\xb8-\xbf](%s{8}))" % LETTERS, code):
        at = found.start()
        use = re.search(rb"[\x48-\x4f][\x31\x33\x39\x3b](?:[\x00-\x3f]|[\x40-\x7f](.))",
                        code[at + 10:at + 30], re.S)
        if use:
            yield at, use.group(1)[0] if use.group(1) else 0, found.group(1)
    for size, form in ((4, rb"\x81"), (2, rb"\x66\x81"), (1, rb"\x80")):
        for found in re.finditer(rb"(?=%s(?:[\x38-\x3f]|[\x78-\x7f](.))(%s{%d}))" %
                                 (form, LETTERS, size), code, re.S):
            yield found.start(), found.group(1)[0] if found.group(1) else 0, found.group(2)


def joined(code):
    """Words made of pieces that are near each other and fit."""
    every = sorted(pieces(code))
    for i, (at, offset, text) in enumerate(every):
        if offset:
            continue
        words = {text}
        for other, place, more in every[i + 1:i + 40]:
            if other - at > 500 or len(words) > 64:
                break
            words |= {word + more[len(word) - place:] for word in words
                      if 0 < place <= len(word) < place + len(more) and
                      more.startswith(word[place:])}
        yield from (word.decode() for word in words if WORD.fullmatch(word))


def words_of(folder):
    """Those of the code around the parser, which is where most of SEEDS are."""
    library, = glob.glob(os.path.join(folder, "onnxruntime_genai", "libonnxruntime-genai.so"))
    with open(library, "rb") as file:
        data = file.read()
    every = list(referred(data))
    seeds = [at for at, word in every if word in SEEDS]
    first = max(seeds, key=lambda at: sum(at <= other < at + WINDOW for other in seeds))
    first, after = first - WINDOW // 2, first + WINDOW * 3 // 2
    text = sections(data)[b".text"]
    start = text[1] + max(first - text[0], 0)
    code = data[start:min(start + after - first, text[1] + text[2])]
    return sorted({word for at, word in every if first <= at < after} | set(joined(code)))


# -- what the parser says --


class Parser:
    """The parser of a release. ask() returns why it refuses a text, "" if it takes it. What else a
    whole configuration must be is not asked."""

    def __init__(self, folder):
        sys.path.insert(0, folder)
        import onnxruntime_genai  # pylint: disable=import-outside-toplevel
        if hasattr(onnxruntime_genai, "disable_telemetry_events"):
            onnxruntime_genai.disable_telemetry_events()
        self.release = onnxruntime_genai.__version__
        self.make = onnxruntime_genai.Config
        self.folder = tempfile.TemporaryDirectory()
        with open(os.path.join(self.folder.name, "genai_config.json"), "w",
                  encoding="utf-8") as file:
            file.write('{"model": {"context_length": 64}}')
        self.config = self.make(self.folder.name)

    def survives(self, text):
        """Releases up to 0.14 end with a failed assertion at what they do not know in "engine"."""
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            try:
                self.config.overlay(text)
            except Exception:  # pylint: disable=broad-except
                pass
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    def ask(self, text):
        if text.startswith('{"engine"') and not self.survives(text):
            return "JSON Error: it crashes"
        refused = ""
        try:
            self.config.overlay(text)
        except Exception as error:  # pylint: disable=broad-except
            refused = str(error)
            if "JSON Error" in refused:
                return refused
        self.config = self.make(self.folder.name)  # what was taken must not count for the next
        return ""


class Place:
    """An object: its path from the top, where "[]" is a list of objects."""

    def __init__(self, path):
        self.before = self.after = ""
        for key in path:
            if key == "[]":
                self.before, self.after = self.before + "[", "]" + self.after
            else:
                self.before, self.after = self.before + '{"%s":' % key, "}" + self.after

    def with_member(self, key, value):
        return '%s{"%s":%s}%s' % (self.before, key, value, self.after)


def is_unknown(answer, key):
    return 'Unknown value "%s"' % key in answer


def edge(ask, taken, refused, integer):
    """The last number that is taken on the way to one that is refused."""
    for _ in range(300):
        middle = (taken + refused) // 2 if integer else (taken + refused) / 2
        if middle in (taken, refused) or not integer and abs(taken - refused) < 1e-7:
            break
        if ask(repr(middle)):
            refused = middle
        else:
            taken = middle
    return round(taken) if abs(taken - round(taken)) < 1e-5 else float("%.6g" % taken)


def limits(ask, integer):
    """How the range of a number differs from that of its type: {"least": 1}, or {"above": 0}."""
    first, last = INT32 if integer else (-1e30, 1e30)
    taken = [step for step in (first, -1, 0, 1, 2, 100, last) if not ask(repr(step))]
    if not taken:
        return None
    found = {}
    if min(taken) > first:
        least = edge(ask, min(taken), first, integer)
        found["above" if not integer and least == 0 and ask("0") else "least"] = least
    if max(taken) < last:
        found["most"] = edge(ask, max(taken), last, integer)
    return found


def scalar(ask, words):
    """What a key takes that is no list and no object: a type and its limits."""
    answers = {value: ask(value) for value in ("1", '"x"', "true")}
    if not any(answers.values()):
        return "anything", {}
    if not answers["true"]:
        return "boolean", {}
    if not answers['"x"']:
        return "text", {}
    if "Expected a string" in answers["1"]:
        taken = [word for word in words if not ask('"%s"' % word)]
        # Of one word the others may be written in a way that is not found here.
        return ("text", {"words": taken} if len(taken) > 1 else {}) if taken else None
    integer = "not an integer" in ask("1.5")
    bounds = limits(ask, integer)
    return ("integer" if integer else "number", bounds) if bounds is not None else None


def elements(ask):
    """What the elements of a list are; "[" for objects."""
    kinds = [kind for value, kind in (('"x"', "texts"), ("1", "numbers"), ("{}", "["))
             if not ask("[%s]" % value)]
    if "numbers" in kinds and "not an integer" in ask("[1.5]"):
        kinds[kinds.index("numbers")] = "integers"
    return kinds


def explore(parser, words):
    """Every key of every object: path -> {key: (kinds, limits)}."""
    places = collections.OrderedDict()
    waiting = [()]
    while waiting:
        path = waiting.pop(0)
        if path and path[-1] in SHARED and any(other[-1:] == path[-1:] for other in places):
            continue
        place, found = Place(path), places.setdefault(path, {})

        def ask(key, value, place=place):
            return parser.ask(place.with_member(key, value))

        for key in [NOBODY] + words:
            kinds, bounds = [], {}
            of_key = lambda value, key=key: ask(key, value)  # noqa: E731
            if not is_unknown(ask(key, "1"), key):
                one = scalar(of_key, words)
                # What is refused whatever it holds is no key.
                if one:
                    kinds.append(one[0])
                    bounds = one[1]
            if not is_unknown(ask(key, "[]"), key):
                kinds += elements(of_key)
            if not ask(key, "{}"):
                kinds.append("{")
            if not kinds or found.get("*", (None,))[0] == kinds:
                continue
            found["*" if key == NOBODY else key] = (kinds, bounds)
            if len(path) < 12:
                waiting += [path + ((key, "[]") if kind == "[" else (key,))
                            for kind in kinds if kind in "[{"]
    return places


def read_release(folder, table):
    with open(table, encoding="utf-8") as file:
        known = set(re.findall(r"^genai: \w+\.(\w+)", file.read(), re.M))
    parser = Parser(folder)
    places = explore(parser, sorted(known | set(words_of(folder))))
    return {"release": parser.release,
            "places": {"/".join(path): keys for path, keys in places.items()}}


# -- the table --

# Objects by their place. Those that are alike have one name; "*" is any key.
NAMES = {
    "": "root", "model": "model", "search": "search", "speculative": "speculative",
    "engine": "engine", "engine/dynamic_batching": "dynamic", "engine/static_batching": "static",
    "model/decoder": "decoder", "model/decoder/inputs": "decoder_inputs",
    "model/decoder/outputs": "decoder_outputs", "model/decoder/sliding_window": "window",
    "model/decoder/pipeline/[]": "stages", "model/decoder/pipeline/[]/*": "stage",
    "model/decoder/session_options": "session", "model/decoder/run_options": "texts",
    "model/decoder/session_options/provider_options/[]": "providers",
    "model/decoder/session_options/provider_options/[]/*": "provider",
    "model/decoder/session_options/provider_options/[]/*/device_filtering_options": "filter",
    "model/decoder/shared_initializers/[]": "shared",
    "model/decoder/state_groups/[]": "state_group",
    "model/decoder/state_groups/[]/state_update": "state_update",
    "model/vision/pipeline/[]": "vision_stages", "model/vision/pipeline/[]/*": "vision_stage",
}


# Facts that stand above the table: what the parser takes as any other option of a session.
BY_HAND = [("model/decoder/session_options", key) for key in (
    "log_id", "enable_profiling", "graph_optimization_level", "custom_ops_library")]
# Limits that no parser asks for, but every generator.
LATER = {("search", "num_beams"): "; least: 1; most: 32", ("search", "batch_size"): "; least: 1",
         ("search", "num_return_sequences"): "; least: 1"}


def spans(releases, there):
    """When something was there, as since and until; in the words of facts."""
    text, before = "", None
    runs = []
    for release in releases:
        if release in there and before not in there:
            runs.append([release, None])
        if release not in there and before in there:
            runs[-1][1] = release
        before = release
    for since, until in runs:
        text = "" if since == releases[0] else "; since: genai " + since
        yield text + ("; until: genai " + until if until else "")


class Table:
    """The facts of several releases, oldest first."""

    def __init__(self, releases):
        self.versions = [one["release"].rpartition(".")[0] for one in releases]
        self.places = collections.defaultdict(dict)  # path -> release -> keys
        for one in releases:
            for path, keys in one["places"].items():
                version = one["release"].rpartition(".")[0]
                self.places[path.replace(NOBODY, "*")][version] = keys
        self.names, self.rows = {}, {}  # path -> name; name -> its lines

    def name_of(self, path):
        """Its name, after its lines are made; one that is the same has the same name."""
        if path in self.names:
            return self.names[path]
        for other, name in list(self.names.items()):
            if path not in NAMES and self.is_same(path, other):
                self.names[path] = name
                return name
        name = self.names[path] = NAMES.get(path) or self.new_name(path)
        self.rows[name] = []
        self.rows[name] = list(self.lines(path))
        return name

    def is_same(self, path, other):
        """Whether all releases that have `path` know there what they know at `other`."""
        for version, keys in self.places[path].items():
            if self.places[other].get(version) != keys:
                return False
            for key, (kinds, _) in keys.items():
                for tail in ("[", "/[]"), ("{", ""):
                    one, two = (self.below(at, key + tail[1]) for at in (path, other))
                    if tail[0] in kinds and one != two and not (
                            key in SHARED or self.is_same(one, two)):
                        return False
        return True

    @staticmethod
    def below(path, key):
        return path + "/" * bool(path) + key

    def new_name(self, path):
        """The last key, behind that of the object around if it alone would say little."""
        words = [word for word in path.split("/") if word not in ("[]", "*")]
        few = ("inputs", "outputs", "embedding", "encoder")
        short = "_".join(words[1:] if words[-1] in few else words[-1:])
        return "_".join(words) if short in self.rows or short in NAMES.values() else short

    def lines(self, path):
        there = self.places[path]
        versions = [one for one in self.versions if one in there]
        for key in sorted({key for keys in there.values() for key in keys}):
            forms = collections.OrderedDict()  # what it holds -> releases
            for version in versions:
                if key in there[version] and (path, key) not in BY_HAND:
                    forms.setdefault(json.dumps(there[version][key]), []).append(version)
            for form, releases in forms.items():
                for span in spans(versions, releases):
                    yield key, self.holds(path, key, *json.loads(form)) + span

    def holds(self, path, key, kinds, limits):
        below = self.below(path, key)
        words = []
        for kind in kinds:
            if kind == "[":
                words.append("[%s]" % self.name_of(below + "/[]"))
            elif kind == "{":
                same = below + "/[]" if below + "/[]" in self.places else below
                if key in SHARED and below not in self.places:
                    same = "model/decoder/" + key
                words.append("{%s}" % self.name_of(same))
            else:
                words.append(kind)
        text = "holds: " + ", ".join(words)
        for limit in ("least", "above", "most"):
            if limit in limits:
                number = limits[limit]
                text += "; %s: %s" % (limit, int(number) if number == int(number) else number)
        if "words" in limits:
            text += "; words: " + ", ".join(limits["words"])
        return text + LATER.get((path, key), "")


def print_table(files):
    releases = []
    for name in files:
        with open(name, encoding="utf-8") as file:
            releases.append(json.load(file))
    table = Table(releases)
    table.name_of("")
    for name, lines in table.rows.items():
        print()
        for key, text in lines:
            # Facts have names of their own: an older form that of the version that ended it, too.
            ended = text.partition("; until: genai ")[2]
            row = "genai: %s.%s%s; %s" % (name, key, ended and " " + ended, text)
            print(row if len(row) <= 100 else "\n%s\n" % row.replace("; ", "\n"))


def compare(folder, table):
    """Whether the table says of this release, its newest, what the package does."""
    own = read_release(folder, table)
    fresh = Table([own])
    fresh.name_of("")
    with open(table, encoding="utf-8") as file:
        known = file.read()
    ended = r"; until: genai [0-9.]+|\nuntil: genai [0-9.]+"
    rows = {}
    for block in re.findall(r"^genai: .*(?:\n[a-z]+: .*)*", known, re.M):
        row = re.sub(r"\n(?!genai)", "; ", block)
        for one in row.split("\n") if "\ngenai" in block else [row]:
            name, _, rest = one.partition("; ")
            if not re.search(ended, one):
                rows[name] = re.sub(r"; since: .*", "", rest)
    wanted = {"genai: %s.%s" % (name, key): text
              for name, lines in fresh.rows.items() for key, text in lines}
    by_hand = {"genai: session." + key for _, key in BY_HAND}
    wrong = [name for name in set(wanted) | set(rows) - by_hand
             if wanted.get(name) != rows.get(name) and name[7:].split(".")[0] in fresh.rows]
    for name in sorted(wrong)[:20]:
        print("FAIL keys: %s: the package: %s; the table: %s" %
              (name, wanted.get(name), rows.get(name)))
    if not wrong:
        print("ok keys: %d of release %s" % (len(wanted), own["release"]))


def main():
    task, *rest = sys.argv[1:]
    if task == "facts":
        print_table(rest)
    if task == "compare":
        compare(*rest)
    if task == "keys":
        json.dump(read_release(*rest), sys.stdout, indent=1, sort_keys=True)


if __name__ == "__main__":
    main()
