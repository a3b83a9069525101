#!/usr/bin/env python3
"""Checks that no expression depends on the order in which the compiler evaluates its parts.

Usage: check_arguments.py [--jobs N] BUILD [PATH...]    (a build folder with compile_commands.json; its C files under these paths, or all)

C does not fix the order of a call's arguments, of an operator's sides, or of an initializer's values, and gcc and clang differ. So the
check refuses two parts of which one writes an object that the other reads or writes: `use(make(&count), count)`. A part writes the objects
that it assigns, increments, or passes by address to a call (`&object`, an array) that may write them (the parameter does not point to
const). Every other mention of an object is a read. Prints each place as FILE:LINE and exits 1 if there is one. The parser is libclang, with
its Python binding (Debian's python3-clang-14). Without it the check exits with 77.
"""
import argparse
import json
import multiprocessing
import os
import re
import sys
from pathlib import Path

sys.path.append("/usr/lib/python3/dist-packages")  # Another Python than Debian's finds its packages there, because the binding is pure Python.
try:
    from clang import cindex
    from clang.cindex import CursorKind, TypeKind
except ImportError:
    cindex = None
else:
    NAMES = (CursorKind.DECL_REF_EXPR, CursorKind.MEMBER_REF_EXPR, CursorKind.ARRAY_SUBSCRIPT_EXPR)

ROOT = Path(__file__).resolve().parent.parent
SEQUENCED = ("&&", "||", ",", "?")
ASSIGNMENTS = ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")
INCREMENTS = ("++", "--")
OPERATOR = re.compile(r"[\s)]*(<<=|>>=|&&|\|\||<<|>>|[=!<>+*/%&|^-]=|[-+*/%<>&|^=,])")
NUMBER = re.compile(r"\s*([0-9]+)u?\s*")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


texts = {}  # of files, by name


def text_of(cursor, start, end):
    """Returns the text between two places of one file, or "" if a macro is between."""
    if start.file is None or end.file is None or start.file.name != end.file.name:
        return ""
    name = start.file.name
    if name not in texts:
        texts[name] = Path(name).read_bytes()
    return texts[name][start.offset:end.offset].decode("utf-8", "replace")


def operator_of(cursor):
    """Returns the operator of a binary, compound or unary expression. The binding lacks it, so it is read from the file. "" inside
    macros."""
    children = list(cursor.get_children())
    extent = cursor.extent
    if cursor.kind == CursorKind.UNARY_OPERATOR:
        text = text_of(cursor, extent.start, extent.end)
        for operator in INCREMENTS:
            if text.startswith(operator) or text.endswith(operator):
                return operator
        return text[:1]
    if len(children) != 2:
        return ""
    between = COMMENT.sub("", text_of(cursor, children[0].extent.end, children[1].extent.start))
    found = OPERATOR.match(between)
    return found.group(1) if found else ""


def stripped(cursor):
    """Returns the expression inside parentheses and conversions."""
    while cursor.kind in (CursorKind.PAREN_EXPR, CursorKind.UNEXPOSED_EXPR, CursorKind.CSTYLE_CAST_EXPR):
        inner = [child for child in cursor.get_children() if child.kind.is_expression()]
        if len(inner) != 1:
            return cursor
        cursor = inner[0]
    return cursor


def is_array(cursor):
    return cursor.type.get_canonical().kind in (TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY)


def path_of(cursor):
    """Returns (declaration, members) of an object named without a pointer: `batch.count`. None for an object behind a pointer."""
    cursor = stripped(cursor)
    if cursor.kind == CursorKind.DECL_REF_EXPR:
        found = cursor.referenced
        if found is None or found.kind not in (CursorKind.VAR_DECL, CursorKind.PARM_DECL):
            return None
        return (found.hash, ())
    children = [child for child in cursor.get_children() if child.kind.is_expression()]
    if cursor.kind == CursorKind.MEMBER_REF_EXPR and children:
        base = path_of(children[0])
        if base is None or children[0].type.get_canonical().kind == TypeKind.POINTER:
            return None
        return (base[0], base[1] + (cursor.spelling,))
    if cursor.kind == CursorKind.ARRAY_SUBSCRIPT_EXPR and children:
        if not is_array(stripped(children[0])):
            return None
        base = path_of(children[0])
        number = NUMBER.fullmatch(text_of(cursor, children[1].extent.start, children[1].extent.end))
        # An unknown index counts as the whole array.
        return base if base is None or number is None else (base[0], base[1] + (f"[{int(number.group(1))}]",))
    return None


def overlap(a, b):
    length = min(len(a[1]), len(b[1]))
    return a[0] == b[0] and a[1][:length] == b[1][:length]


def may_write(type_):
    type_ = type_.get_canonical()
    return type_.kind != TypeKind.POINTER or not type_.get_pointee().is_const_qualified()


class Effects:
    """The named objects that an expression reads and writes."""

    def __init__(self):
        self.reads, self.writes = [], []

    def include(self, other):
        self.reads += other.reads
        self.writes += other.writes


def indices_of(cursor, places):
    """Adds what an object's name also evaluates: the indices of arrays."""
    cursor = stripped(cursor)
    children = [child for child in cursor.get_children() if child.kind.is_expression()]
    effects = Effects()
    if cursor.kind == CursorKind.ARRAY_SUBSCRIPT_EXPR and len(children) == 2:
        effects.include(indices_of(children[0], places))
        effects.include(look(children[1], places))
    elif cursor.kind == CursorKind.MEMBER_REF_EXPR and children:
        effects.include(indices_of(children[0], places))
    return effects


def of_object(cursor, path, written, places):
    effects = indices_of(cursor, places)
    (effects.writes if written else effects.reads).append(path)
    return effects


def of_unary(cursor, places):
    operand = next(iter(cursor.get_children()))
    operator, path = operator_of(cursor), path_of(operand)
    if path is not None and operator in INCREMENTS:
        return of_object(operand, path, True, places)
    if path is not None and operator == "&":
        return indices_of(operand, places)  # taking an address does not read
    return look(operand, places)


def of_binary(cursor, places):
    left, right = list(cursor.get_children())[:2]
    operator = operator_of(cursor)
    path = path_of(left) if operator in ASSIGNMENTS else None
    parts = [of_object(left, path, True, places) if path is not None else look(left, places), look(right, places)]
    if operator not in SEQUENCED + ASSIGNMENTS + ("",):
        compare(cursor, parts, places)
    return joined(parts)


def of_call(call, places):
    function = next(iter(call.get_children()), None)
    types = parameter_types(function)
    parts, handed = [], Effects()
    for number, argument in enumerate(call.get_arguments()):
        target = addressed(argument)
        parts.append(look(argument, places) if target is None else indices_of(target, places))
        if target is not None:  # writes of the call itself, after all arguments
            (handed.writes if number >= len(types) or may_write(types[number]) else handed.reads).append(path_of(target))
    compare(call, parts, places)
    effects = joined(parts + [handed])
    if function is not None and stripped(function).kind != CursorKind.DECL_REF_EXPR:
        effects.include(look(function, places))
    return effects


def joined(parts):
    effects = Effects()
    for part in parts:
        effects.include(part)
    return effects


def compare(cursor, parts, places):
    """Notes a place where one of the parts writes an object that another reads or writes."""
    for i, one in enumerate(parts):
        for k, other in enumerate(parts if one.writes else []):
            if i != k and any(overlap(write, mention) for write in one.writes for mention in other.reads + other.writes):
                places.add((cursor.extent.start.file.name, cursor.extent.start.line))


def look(cursor, places):
    """Returns the effects of an expression, or of a whole statement. Adds the places it finds to `places`."""
    kind = cursor.kind
    if kind == CursorKind.CXX_UNARY_EXPR:
        return Effects()  # sizeof evaluates nothing
    if kind == CursorKind.CALL_EXPR:
        return of_call(cursor, places)
    if kind == CursorKind.UNARY_OPERATOR:
        return of_unary(cursor, places)
    if kind in (CursorKind.BINARY_OPERATOR, CursorKind.COMPOUND_ASSIGNMENT_OPERATOR):
        return of_binary(cursor, places)
    path = path_of(cursor) if kind in NAMES else None
    if path is not None and is_array(cursor):
        return indices_of(cursor, places)  # its address
    if path is not None:
        return of_object(cursor, path, False, places)
    parts = [look(child, places) for child in cursor.get_children()]
    if kind == CursorKind.INIT_LIST_EXPR:
        compare(cursor, parts, places)
    return joined(parts) if kind.is_expression() else Effects()


def parameter_types(function):
    if function is None:
        return []
    type_ = function.type.get_canonical()
    if type_.kind == TypeKind.POINTER:
        type_ = type_.get_pointee().get_canonical()
    return list(type_.argument_types()) if type_.kind == TypeKind.FUNCTIONPROTO else []


def addressed(argument):
    """Returns the named object whose address an argument is (`&object`, or an array), or None."""
    inner = stripped(argument)
    operand = None
    if inner.kind == CursorKind.UNARY_OPERATOR and operator_of(inner) == "&":
        operand = next(iter(inner.get_children()))
    elif is_array(inner):
        operand = inner
    return operand if operand is not None and path_of(operand) is not None else None


seen = set()  # functions of headers


def check_file(job):
    """Returns the places in one file and in the tree's files that it includes, or an error. Each process checks files separately."""
    path, arguments, folder = job
    os.chdir(folder)
    index = cindex.Index.create()
    unit = index.parse(path, args=arguments)
    errors = [str(item) for item in unit.diagnostics if item.severity >= cindex.Diagnostic.Error]
    if errors:
        return set(), errors[:1]
    places = set()
    for declaration in unit.cursor.get_children():
        file = declaration.location.file
        if file is None or declaration.kind != CursorKind.FUNCTION_DECL or not declaration.is_definition():
            continue
        name = os.path.realpath(file.name)
        included = (name, declaration.location.line, declaration.spelling)
        if name != path and (included in seen or not name.startswith(str(ROOT))):
            continue
        seen.add(included)
        look(declaration, places)
    return places, []


def jobs_of(build, only):
    entries = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    jobs = {}
    for entry in entries:
        path = os.path.realpath(os.path.join(entry["directory"], entry["file"]))
        if not path.endswith(".c") or path in jobs or (only and not any(Path(path).is_relative_to(name) for name in only)):
            continue
        words = entry["command"].split()
        keep = [word for i, word in enumerate(words) if word.startswith(("-I", "-D", "-std", "-U")) or words[i - 1] in ("-isystem", "-include")
                or word in ("-isystem", "-include", "-pthread")]
        jobs[path] = (path, [word.replace('\\"', '"') for word in keep], entry["directory"])
    return list(jobs.values())


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--jobs", type=int, default=os.cpu_count())
    options.add_argument("build", type=Path)
    options.add_argument("paths", nargs="*")
    chosen = options.parse_args()
    if cindex is None:
        print("check_arguments: no Python binding of libclang (python3-clang-14)", file=sys.stderr)
        return 77
    jobs = jobs_of(chosen.build, {os.path.realpath(name) for name in chosen.paths})
    places, errors = set(), []
    with multiprocessing.Pool(chosen.jobs) as pool:
        for found, failed in pool.imap_unordered(check_file, jobs, chunksize=4):
            places |= found
            errors += failed
    for name, line in sorted(places):
        print(f"{os.path.relpath(os.path.realpath(name), ROOT)}:{line}: the order of evaluation decides")
    for error in errors:
        print(f"cannot be read: {error}")
    print(f"{len(jobs)} files, {len(places)} places")
    return 1 if places or errors or not jobs else 0


if __name__ == "__main__":
    sys.exit(main())
