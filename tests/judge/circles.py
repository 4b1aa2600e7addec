#!/usr/bin/python3
"""circles.py FOLDER OBJECTS: prints the circles between the sources of FOLDER, files that need each
other, and between its subfolders, with the symbols that make them: what one object leaves
undefined, and another has.

OBJECTS is the folder in which there is FOLDER's tree, built. Archives are not looked at.
"""
import os
import subprocess
import sys

HELD = "TDBRCVWGS"  # of nm: symbols that an object has for others


def objects(folder, built):
    """The objects of a folder's sources, and these."""
    for path, _, files in os.walk(os.path.join(built, folder)):
        for name in sorted(files):
            source = os.path.relpath(os.path.join(path, name), built)[:-2] + ".c"
            if name.endswith(".o") and os.path.exists(source):  # else it is gone or has moved
                yield os.path.join(path, name), source


def symbols(path):
    """The names that an object needs, and those that it has."""
    listed = subprocess.run(["nm", "-g", "-P", path], capture_output=True, text=True, check=True)
    rows = [line.split()[:2] for line in listed.stdout.splitlines()]
    return ({name for name, kind in rows if kind == "U"},
            {name for name, kind in rows if kind in HELD})


def edges_of(folder, built):
    """For each source with an object the sources that it needs: {source: {source: [symbol]}}."""
    needs, home = {}, {}
    for path, source in objects(folder, built):
        needs[source], held = symbols(path)
        home.update(dict.fromkeys(held, source))
    edges = {source: {} for source in needs}
    for source, names in needs.items():
        for name in sorted(names):
            if home.get(name, source) != source:
                edges[source].setdefault(home[name], []).append(name)
    return edges


def reached(edges, start):
    """All that `start` needs, itself or through others."""
    found, left = set(), [start]
    while left:
        for source in edges[left.pop()]:
            if source not in found:
                found.add(source)
                left.append(source)
    return found


def circles(edges):
    """Sources that reach each other, each set once."""
    below = {source: reached(edges, source) for source in edges}
    sets = {frozenset(other for other in below[source] if source in below[other])
            for source in edges if source in below[source]}
    return sorted(map(sorted, sets))


def of_folders(edges):
    """The same between the folders of the sources."""
    folders = {os.path.dirname(source): {} for source in edges}
    for source, others in edges.items():
        for other, names in others.items():
            here, there = os.path.dirname(source), os.path.dirname(other)
            if here != there:
                folders[here].setdefault(there, []).extend(names)
    return folders


def tell(folder, edges):
    for circle in circles(edges):
        print(f"{folder}: these need each other: {' '.join(circle)}")
        for source in circle:
            for other in circle:
                if other in edges[source]:
                    print(f"  {source} needs {' '.join(edges[source][other])} of {other}")


def main():
    folder, built = sys.argv[1:]
    edges = edges_of(folder, built)
    if not edges:
        sys.exit(f"{folder}: expected objects in {built}, found none")
    tell(folder, edges)
    tell(folder, of_folders(edges))


if __name__ == "__main__":
    main()
