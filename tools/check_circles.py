#!/usr/bin/env python3
"""Checks from the symbols of the library's objects which files of a room call each other in a circle.

Usage: check_circles.py [--nm NM] [--list ROOM] ROOT OBJECTS (the project; its build folder)

File a needs file b if an object of a leaves a name undefined that an object of b defines. Within a room these needs should have no circle,
so that a file can be read after the files it is built on. Calls through a table of functions do not count: tables exist to avoid the need.
Prints each circle (a strongly connected component of more than one file) that is not allowed, and each allowance that is no longer needed;
exits 1 if there is one. --list prints a room's files from the lowest to the highest, each with its needs.
"""
import argparse
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import rooms

# Circles that are allowed: the room, its files (without .c; a smaller circle among them is allowed too; * for any file), and the reason.
ALLOWED = []


def read_names(nm, objects):
    """Returns, for each object, the names it defines for others, and those it needs."""
    defines, needs = {path: set() for path in objects}, {path: set() for path in objects}
    by_text = {str(path): path for path in objects}
    text = subprocess.run([nm, "-A", "-P", *by_text], capture_output=True, text=True, check=True).stdout if objects else ""
    for line in text.splitlines():
        file, rest = line.split(": ", 1)
        name, kind = rest.split()[:2]
        if kind == "U":
            needs[by_text[file]].add(name)
        elif kind.isupper():
            defines[by_text[file]].add(name)
    return defines, needs


def read_rooms(nm, root, folder):
    """Returns {room: {file: set of files of the room that it needs}}. A file is named by its path in the room, without .c.o."""
    # A folder that was built before may contain objects of deleted files.
    source_of = {}
    for path in sorted(folder.glob("products/*/CMakeFiles/*_objects.dir/**/*.c.o")):
        _, product, _, _, *rest = path.relative_to(folder).parts
        # "__" is CMake's replacement for "..": a file of another product.
        source = Path(*rest[1:] if rest[0] == "__" else (product, *rest)).with_suffix("")
        if (root / source).is_file():
            source_of[path] = source
    defines, needs = read_names(nm, sorted(source_of))
    owner = {name: source_of[path] for path, names in defines.items() for name in names}
    graphs = defaultdict(dict)
    for path, source in source_of.items():
        room = rooms.room_of(source)
        others = {owner[name] for name in needs[path] if name in owner} - {source}
        graphs[room][rooms.below_room(source).split(".")[0]] = {
            rooms.below_room(other).split(".")[0] for other in others if rooms.room_of(other) == room}
    return graphs


def circles_of(graph):
    """Returns the strongly connected components with more than one file, by Tarjan's algorithm, and every file's height."""
    order, low, stack, found, on_stack = {}, {}, [], [], set()

    def visit(node):
        order[node] = low[node] = len(order)
        stack.append(node)
        on_stack.add(node)
        for other in sorted(graph[node]):
            if other not in order:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            component = []
            while not component or component[-1] != node:
                component.append(stack.pop())
                on_stack.discard(component[-1])
            found.append(sorted(component))

    for node in sorted(graph):
        if node not in order:
            visit(node)
    return found  # the lowest files come first


def print_room(graph):
    height = {}
    for component in circles_of(graph):
        below = {height[other] for node in component for other in graph[node] if other not in component}
        for node in component:
            height[node] = 1 + max(below, default=-1)
    for node in sorted(graph, key=lambda n: (height[n], n)):
        print(f"{height[node]:3} {node}: {' '.join(sorted(graph[node]))}")


def covers(files, component):
    return files == "*" or set(component) <= set(files.split())


def check(graphs, allowed):
    problems = []
    used = set()
    for room, graph in sorted(graphs.items()):
        for component in (c for c in circles_of(graph) if len(c) > 1):
            fits = [entry for entry in allowed if entry[0] == room and covers(entry[1], component)]
            used.update(fits)
            if not fits:
                problems.append(f"{room}: a circle of {len(component)} files: {' '.join(component)}")
    for room, files in sorted(entry for entry in set(allowed) - used if entry[1] != "*"):
        problems.append(f"{room}: no such circle any more, take it from the list: {files}")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--list", metavar="ROOM")
    parser.add_argument("root", type=Path)
    parser.add_argument("objects", type=Path)
    arguments = parser.parse_args()
    graphs = read_rooms(arguments.nm, arguments.root, arguments.objects)
    if arguments.list:
        print_room(graphs[arguments.list])
        return 0
    allowed = [(room, files) for room, files, reason in ALLOWED if reason]
    problems = check(graphs, allowed)
    for problem in problems:
        print(problem)
    print(f"{sum(map(len, graphs.values()))} files of {len(graphs)} rooms, {len(allowed)} circles allowed, {len(problems)} problems")
    return 1 if problems or not graphs else 0


if __name__ == "__main__":
    sys.exit(main())
