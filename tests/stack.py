#!/usr/bin/python3
"""How deep the stack can get below each public function, from gcc's call graph.

    tests/stack.py MOST FILE.ci...

FILE.ci come from gcc -fcallgraph-info=su. Not counted: the C library, and what the application
hands in (allocator, io, backend, hooks). stack_known.txt says whom a function pointer calls, and
what bounds each recursion. Fails for a pointer, a cycle or a target that is not in that list, for
an entry that fits nothing, and when a public function may need more than MOST bytes.
"""
import collections
import os
import re
import sys

sys.setrecursionlimit(10000)
HERE = os.path.dirname(os.path.abspath(__file__))
KEYWORDS = {"if", "while", "for", "switch", "return", "sizeof"}
faults = []


def fault(text):
    faults.append(text)
    print(f"FAIL call chains: {text}")


class Known:
    """stack_known.txt: lines `recursion FUNCTION BOUND WHY`, `pointer IN CALLED TARGETS` and
    `library FUNCTION TARGETS`."""

    def __init__(self):
        self.recursion, self.pointers, self.library, self.used = {}, [], {}, set()
        with open(os.path.join(HERE, "stack_known.txt"), encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("#") or not line.strip():
                    continue
                kind, *words = line.split()
                if kind == "recursion":
                    self.recursion[words[0]] = int(words[1])
                elif kind == "library":
                    self.library[words[0]] = words[1:]
                else:
                    self.pointers.append((words[0], words[1], tuple(words[2:])))

    def bound(self, function):
        """Of the recursion through a function, or 0."""
        for name, bound in self.recursion.items():
            if re.fullmatch(name, base(function)):
                self.used.add(name)
                return bound
        return 0

    def targets(self, function, expression):
        for entry in self.pointers:
            match = re.fullmatch(entry[1], expression)
            if match and re.fullmatch(entry[0], function):
                self.used.add(entry)
                return [match.expand(t) for t in entry[2]]
        return None


def source_lines(name, cache={}):
    if name not in cache:
        with open(name, encoding="utf-8") as text:
            cache[name] = text.read().split("\n")
    return cache[name]


def enclosing(name, number):
    """The function of the source that a line belongs to, whoever it was inlined into."""
    lines = source_lines(name)
    for i in range(number - 1, -1, -1):
        match = re.match(r"(?:static|EPCTX_API)\b.*?\b(epctx_\w+)\(", lines[i])
        if match and not lines[i].rstrip().endswith(";"):
            return match[1]
    return ""


def called(name, number, column):
    """What is called through a pointer at a place: as it is written there."""
    line = source_lines(name)[number - 1]
    choice = re.search(r"\? (epctx_\w+) : (epctx_\w+)\)\(", line)
    if choice:
        return list(choice.groups()), ""
    names = [n for n in re.findall(r"([\w.>\[\]-]*\w)\(", line[column - 1:] + line)
             if n not in KEYWORDS and (not n.startswith("epctx_") or n.endswith("_fn"))]
    ends = [n for n in names if n.endswith("_fn")]
    return None, (ends or names or [""])[0]


def base(name):
    return re.sub(r"\.(part|isra|constprop|cold)\b.*", "", name)


def read(files):
    """Frames by function, who calls whom, and calls through pointers as (caller, place)."""
    frames, calls, pointers = {}, collections.defaultdict(set), []
    for file in files:
        with open(file, encoding="utf-8") as lines:
            for line in lines:
                titles = [t.split(":")[-1] for t in re.findall(r'(?:title|name): "([^"]*)"', line)]
                label = re.search(r'label: "([^"]*)"', line)
                if line.startswith("node:") and label:
                    size = re.search(r"(\d+) bytes", label[1])
                    if size:
                        frames[titles[0]] = int(size[1])
                elif line.startswith("edge:") and titles[1] == "__indirect_call":
                    name, number, column = label[1].rsplit(":", 2)
                    pointers.append((titles[0], name, int(number), int(column)))
                elif line.startswith("edge:"):
                    calls[titles[0]].add(titles[1])
    return frames, calls, pointers


def resolve(frames, calls, pointers, known):
    """Adds the targets of pointers to the calls."""
    direct = set().union(*calls.values())
    by_base = collections.defaultdict(list)
    for name in frames:
        by_base[base(name)].append(name)
    reached = {n for targets in known.library.values() for n in targets}
    calls.update(known.library)
    for caller, name, number, column in pointers:
        targets, expression = called(name, number, column)
        function = enclosing(name, number)
        if targets is None:
            targets = known.targets(function, expression)
        if targets is None:
            fault(f"{name}:{number}: {function} calls {expression or 'a pointer'}: "
                  "stack_known.txt should say whom")
            continue
        for target in targets:
            if target == "-":
                continue
            pattern = target[:-1] if target.endswith("*") and target[-2:] != ".*" else target
            found = [n for b, names in by_base.items() if re.fullmatch(pattern, b) for n in names
                     if pattern == target or n not in direct]
            reached.update(found)
            calls[caller].update(found)
    for name in frames:
        if "__" in name and not {name, base(name)} & (direct | reached):
            fault(f"{name} is called by nobody: whose pointer leads to it?")


def components(calls):
    """Strongly connected components, callees first (Tarjan)."""
    index, low, stack, out = {}, {}, [], []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in sorted(calls.get(v, ())):
            if w not in index:
                visit(w)
            if w in low:
                low[v] = min(low[v], low[w])
        if low[v] == index[v]:
            at = stack.index(v)
            out.append(stack[at:])
            for w in stack[at:]:
                del low[w]
            del stack[at:]

    for v in sorted(calls):
        if v not in index:
            visit(v)
    return out


def bound_of(members, calls, known):
    """How often a cycle turns at most. Without its listed functions no cycle may be left."""
    inside = set(members)
    gates = {m for m in members if known.bound(m)}
    rest = {m: (calls[m] & inside) - gates for m in inside - gates}
    if any(len(c) > 1 or c[0] in rest.get(c[0], ()) for c in components(rest)):
        fault("a recursion that stack_known.txt does not bound: " + ", ".join(sorted(inside)))
        return 1
    return max(known.bound(m) for m in gates)


def main():
    most, files = int(sys.argv[1]), sys.argv[2:]
    known = Known()
    frames, calls, pointers = read(files)
    resolve(frames, calls, pointers, known)
    depth, chain, cycles = {}, {}, 0
    for members in components(calls):
        recursive = len(members) > 1 or members[0] in calls.get(members[0], ())
        bound = bound_of(members, calls, known) if recursive else 1
        cycles += recursive
        below = [(depth[w], w) for m in members for w in calls.get(m, ()) if w not in members]
        next_depth, next_name = max(below, default=(0, ""))
        own = bound * sum(frames.get(m, 0) for m in members)
        label = f"{bound} x ({' '.join(sorted(map(base, members)))})" if recursive \
            else base(members[0])
        for m in members:
            depth[m] = own + next_depth
            chain[m] = [f"{label} {own}"] + (chain[next_name] if next_depth else [])
    for entry in known.pointers:
        if entry not in known.used:
            fault(f"stack_known.txt: 'pointer {entry[0]} {entry[1]}' fits no call")
    for name in known.recursion:
        if name not in known.used:
            fault(f"stack_known.txt: {name} is in no recursion")
    public = sorted((n for n in frames if n.startswith("epctx_") and "__" not in n),
                    key=lambda n: (-depth.get(n, frames[n]), n))
    # The deepest ones, and those that a firmware calls.
    wanted = public[:5] + ["epctx_model_open_file", "epctx_load", "epctx_scan_next",
                           "epctx_npu_load",
                          "epctx_npu_run"]
    for name in wanted:
        if name in frames:
            print(f"note call chain of {name}: {depth.get(name, frames[name])} bytes: "
                  + ", ".join(chain.get(name, [""])[:12]))
    for name in public:
        if depth.get(name, 0) > most:
            fault(f"{name} may need {depth[name]} bytes of stack, expected at most {most}")
    if not faults:
        print(f"ok call chains: at most {max(depth.values())} bytes of stack, {len(public)} public "
              f"functions, {cycles} recursions with bounds, {len(pointers)} calls of pointers")
    sys.exit(bool(faults))


main()
