"""Finds where a C file can be changed, and how. Each site is an expression in a function's body with one replacement, found in clang's
tree."""
import bisect
import collections
import re
import sys

sys.path.insert(1, "/usr/lib/python3/dist-packages")  # the folder of Debian's python3-clang-14, for a Python installed elsewhere
from clang import cindex  # noqa: E402

Kind = cindex.CursorKind
Site = collections.namedtuple("Site", "file function line begin end operator before after")

# Each operator and its replacement.
SWAPS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "+", "/": "*", "%": "*",
    "&": "|", "|": "&", "^": "|", "<<": ">>", ">>": "<<", "&&": "||", "||": "&&",
}  # fmt: skip
ASSIGNING = {"+=": "-=", "-=": "+=", "*=": "+=", "/=": "*=", "|=": "&=", "&=": "|=", "<<=": ">>=", ">>=": "<<="}
CONDITIONS = {Kind.IF_STMT: 0, Kind.WHILE_STMT: 0, Kind.CONDITIONAL_OPERATOR: 0}
COMMENT = re.compile(rb"/\*.*?\*/|//[^\n]*", re.S)


class File:
    """The bytes of a source file, and the ranges that come from macros."""

    def __init__(self, path, unit):
        self.path = path
        with open(path, "rb") as source:
            self.bytes = source.read()
        spans = [
            (cursor.extent.start.offset, cursor.extent.end.offset)
            for cursor in unit.cursor.get_children()
            if cursor.kind == Kind.MACRO_INSTANTIATION and cursor.location.file and cursor.location.file.name == path
        ]
        self.macros = sorted(spans)
        self.starts = [begin for begin, _ in self.macros]

    def inside_macro(self, begin, end):
        """Returns whether [begin, end) is part of one macro's expansion, arguments included. A macro inside the range does not count."""
        at = bisect.bisect_right(self.starts, begin)
        return any(low <= begin and end <= high for low, high in self.macros[max(0, at - 6) : at])

    def text(self, begin, end):
        return self.bytes[begin:end].decode()


class Finder:
    def __init__(self, file):
        self.file = file
        self.sites = []
        self.function = ""

    def add(self, cursor, operator, template, before, after):
        """Adds a site. `template` is the new text, with $ for the mutant's number."""
        begin, end = cursor.extent.start.offset, cursor.extent.end.offset
        if begin >= end or self.file.inside_macro(begin, end) or b"\n#" in self.file.bytes[begin:end].replace(b" ", b""):
            return
        self.sites.append(Site(self.file.path, self.function, cursor.extent.start.line, begin, end, operator, before, after)._asdict() | {"template": template})

    def text(self, cursor):
        return self.file.text(cursor.extent.start.offset, cursor.extent.end.offset)

    def operator(self, left, right):
        return COMMENT.sub(b"", self.file.bytes[left.extent.end.offset : right.extent.start.offset]).decode().strip()

    def binary(self, cursor):
        left, right = cursor.get_children()
        sign = self.operator(left, right)
        if sign in SWAPS:
            a, b, whole = self.text(left), self.text(right), self.text(cursor)
            self.add(cursor, "operator", f"(VR_MUTANT($) ? ({a}) {SWAPS[sign]} ({b}) : ({whole}))", whole, f"{a} {SWAPS[sign]} {b}")

    def assigning(self, cursor):
        left, right = cursor.get_children()
        sign = self.operator(left, right)
        if sign in ASSIGNING:
            a, b, whole = self.text(left), self.text(right), self.text(cursor)
            self.add(cursor, "operator", f"(VR_MUTANT($) ? (void)({a} {ASSIGNING[sign]} {b}) : (void)({whole}))", whole, f"{a} {ASSIGNING[sign]} {b}")

    def condition(self, cursor, child):
        whole = self.text(child)
        self.add(child, "condition", f"(VR_MUTANT($) ? !({whole}) : !!({whole}))", whole, f"!({whole})")

    def result(self, cursor):
        values = list(cursor.get_children())
        if not values:
            return
        kind = values[0].type.get_canonical().kind
        whole = self.text(values[0])
        if whole in ("0", "NULL", "false", "VRAM_OK") or kind in (cindex.TypeKind.RECORD, cindex.TypeKind.VOID):
            return
        other = f"!({whole})" if self.result_is_bool or whole == "true" else "0"
        self.add(values[0], "result", f"(VR_MUTANT($) ? {other} : ({whole}))", f"return {whole}", f"return {other}")

    def statement(self, cursor):
        """Adds a site that leaves out an expression whose value is not used."""
        called = cursor.kind == Kind.CALL_EXPR
        if called or cursor.kind in (Kind.COMPOUND_ASSIGNMENT_OPERATOR, Kind.UNARY_OPERATOR) or self.is_assignment(cursor):
            whole = self.text(cursor)
            self.add(cursor, "left out", f"(VR_MUTANT($) ? (void)0 : (void)({whole}))", whole, "")

    def is_assignment(self, cursor):
        if cursor.kind != Kind.BINARY_OPERATOR:
            return False
        left, right = cursor.get_children()
        return self.operator(left, right) == "="

    def literal(self, cursor):
        whole = self.text(cursor)
        if re.fullmatch(r"(0[xX][0-9a-fA-F]+|[0-9]+)[uUlL]*", whole):
            self.add(cursor, "constant", f"(VR_MUTANT($) ? {whole} + 1 : {whole})", whole, f"{whole} + 1")

    def walk_function(self, function):
        self.function = function.spelling
        self.result_is_bool = function.result_type.spelling == "bool"
        for child in function.get_children():
            if child.kind == Kind.COMPOUND_STMT:
                self.walk(child)

    def walk(self, cursor):
        kind = cursor.kind
        children = list(cursor.get_children())
        if kind in (Kind.STATIC_ASSERT, Kind.CXX_UNARY_EXPR, Kind.StmtExpr, Kind.INIT_LIST_EXPR, Kind.GENERIC_SELECTION_EXPR):
            return
        if kind == Kind.VAR_DECL and (cursor.storage_class == cindex.StorageClass.STATIC or cursor.type.kind == cindex.TypeKind.CONSTANTARRAY):
            return
        if kind == Kind.CASE_STMT:
            children = children[1:]
        if kind == Kind.BINARY_OPERATOR:
            self.binary(cursor)
        elif kind == Kind.COMPOUND_ASSIGNMENT_OPERATOR:
            self.assigning(cursor)
        elif kind == Kind.INTEGER_LITERAL:
            self.literal(cursor)
        elif kind == Kind.RETURN_STMT:
            self.result(cursor)
        elif kind in CONDITIONS and children:
            self.condition(cursor, children[0])
        elif kind == Kind.COMPOUND_STMT:
            for child in children:
                self.statement(child)
        for child in children:
            self.walk(child)


def sites_of_unit(path, arguments, wanted):
    """Returns the sites of all functions defined in files accepted by wanted(path), as {path: [site, ...]}, each site a dict."""
    unit = cindex.Index.create().parse(path, args=arguments, options=cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
    found, files = {}, {}
    for cursor in unit.cursor.get_children():
        if cursor.kind != Kind.FUNCTION_DECL or not cursor.is_definition() or not cursor.location.file:
            continue
        name = cursor.location.file.name
        if not wanted(name):
            continue
        if name not in files:
            files[name] = File(name, unit)
        finder = Finder(files[name])
        finder.walk_function(cursor)
        found.setdefault(name, []).extend(finder.sites)
    return found
