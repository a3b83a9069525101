#!/usr/bin/env python3
"""Writes adapters/bindings/rust/vram-sys/src/lib.rs: the declarations of vram/vram.h and vram/sim.h in Rust. Needs clang, whose syntax tree
it reads.

usage: rust_bindings.py [--check]   --check: writes nothing; 1 when the file is not what would be written"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PLACE = ROOT / "adapters/bindings/rust/vram-sys/src/lib.rs"
SCALARS = {"void": "c_void", "char": "c_char", "bool": "bool", "_Bool": "bool", "int": "c_int", "unsigned int": "c_uint", "double": "f64", "float": "f32",
           "unsigned char": "u8", "size_t": "usize", "uintptr_t": "usize", "long long": "i64", "unsigned long long": "u64",
           **{f"{sign}int{bits}_t": f"{sign and 'u' or 'i'}{bits}" for sign in ("u", "") for bits in (8, 16, 32, 64)}}
HEAD = """//! The functions of vram/vram.h and vram/sim.h, as C has them: written by tools/rust_bindings.py. The crate `vram` is what programs use.
#![allow(non_camel_case_types, clippy::missing_safety_doc)]
use std::os::raw::{c_char, c_int, c_uint, c_void};

"""


def rust_type(text, typedefs):
    text = text.strip()
    array = re.fullmatch(r"(.*?)\s*\[(\d+)\](.*)", text)
    if array:
        return f"[{rust_type(array[1] + array[3], typedefs)}; {array[2]}]"
    text = re.sub(r"\*\s*(const|restrict)\b", r"*", text)
    if text.endswith("*"):
        inner = text[:-1].strip()
        constant = inner.startswith("const ") and not inner.endswith("*")
        return f"*{'const' if constant else 'mut'} {rust_type(inner.removeprefix('const ') if constant else inner, typedefs)}"
    text = text.removeprefix("const ")
    named = re.fullmatch(r"(?:struct|enum|union) (\w+)", text)
    if named or text in typedefs:
        return named[1] if named else text
    return SCALARS[text]


def function_pointer(text, typedefs):
    """Returns an optional function of type `result (*)(parameters)`."""
    found = re.fullmatch(r"(.*?)\(\*\)\((.*)\)", text)
    parameters = [] if found[2].strip() in ("", "void") else [rust_type(part, typedefs) for part in found[2].split(",")]
    result = "" if found[1].strip() == "void" else f" -> {rust_type(found[1], typedefs)}"
    return f"Option<unsafe extern \"C\" fn({', '.join(parameters)}){result}>"


def field_type(node, typedefs):
    text = node["type"]["qualType"]
    return function_pointer(text, typedefs) if "(*)" in text else rust_type(text, typedefs)


def safe(name):
    return f"r#{name}" if name in ("type", "move", "ref", "match", "use", "fn", "in", "where", "loop", "mod") else name


def value_of(node):
    for inner in node.get("inner", []):
        if "value" in inner:
            return int(inner["value"])
        found = value_of(inner)
        if found is not None:
            return found
    return None


def enum(node):
    lines, value = [], -1
    for item in node.get("inner", []):
        if item["kind"] == "EnumConstantDecl":
            given = value_of(item)
            value = value + 1 if given is None else given
            lines.append(f"pub const {item['name']}: {node.get('name') or 'c_int'} = {value};")
    return ([f"pub type {node['name']} = c_uint;"] if node.get("name") else []) + lines


def record(node, typedefs, name=None):
    """Returns a struct. An unnamed union in it becomes a separate type, named after both."""
    fields, before, name = [], [], name or node["name"]
    for item in node.get("inner", []):
        if item["kind"] == "RecordDecl":
            before += record(item, typedefs, f"{name}_union")
        elif item["kind"] == "FieldDecl" and "name" not in item:
            fields.append(f"    pub either: {name}_union,")
        elif item["kind"] == "FieldDecl":
            fields.append(f"    pub {safe(item['name'])}: {field_type(item, typedefs)},")
    return [*before, "#[repr(C)]", "#[derive(Clone, Copy)]", f"pub {node['tagUsed']} {name} {{", *fields, "}"]


def function(node, typedefs):
    parameters = [item for item in node.get("inner", []) if item["kind"] == "ParmVarDecl"]
    told = ", ".join(f"{safe(item['name'])}: {field_type(item, typedefs)}" for item in parameters)
    result = node["type"]["qualType"].partition("(")[0].strip()
    return f"    pub fn {node['name']}({told}){'' if result == 'void' else ' -> ' + rust_type(result, typedefs)};"


def constants():
    """Returns the numbers that are macros."""
    text = "".join(path.read_text() for path in sorted(ROOT.glob("*/include/vram/*.h")))
    names = re.findall(r"^#define (VRAM_\w+)\s+(\d+)\s*(?://.*)?$", text, re.M)
    wide = re.findall(r"^#define (VRAM_\w+)\s+UINT64_MAX\s*$", text, re.M)
    return [f"pub const {name}: usize = {value};" for name, value in names] + [f"pub const {name}: u64 = u64::MAX;" for name in wide]


def written():
    command = ["clang", "-std=c11", "-fsyntax-only", "-Xclang", "-ast-dump=json", *(f"-I{folder}" for folder in sorted(ROOT.glob("*/include"))), "-x", "c", "-"]
    tree = json.loads(subprocess.run(command, input="#include <vram/sim.h>\n#include <vram/vram.h>\n", capture_output=True, text=True, check=True).stdout)
    own = [node for node in tree["inner"] if node.get("name", "").startswith(("vram_", "VRAM_")) or node["kind"] == "EnumDecl" and not node.get("name")]
    typedefs = {node["name"]: node["type"]["qualType"] for node in own if node["kind"] == "TypedefDecl"}
    records, functions, lines = {}, {}, []
    for node in own:
        if node["kind"] == "EnumDecl":
            if any(item.get("name", "").startswith("VRAM_") for item in node.get("inner", [])):
                lines += enum(node)
        elif node["kind"] == "TypedefDecl":
            lines.append(f"pub type {node['name']} = {function_pointer(typedefs[node['name']], typedefs)};")
        elif node["kind"] == "RecordDecl":
            if node.get("completeDefinition") or node["name"] not in records:
                records[node["name"]] = node
        elif node["kind"] == "FunctionDecl":
            functions[node["name"]] = node
    for name, node in records.items():
        opaque = ["#[repr(C)]", f"pub struct {name} {{", "    _private: [u8; 0],", "}"]
        lines += record(node, typedefs) if node.get("completeDefinition") else opaque
    return HEAD + "\n".join([*constants(), *lines, "", 'extern "C" {', *(function(node, typedefs) for node in functions.values()), "}", ""])


def main():
    text = written()
    if sys.argv[1:] == ["--check"]:
        if PLACE.read_text() != text:
            sys.exit(f"{PLACE.relative_to(ROOT)} is not what vram/vram.h says: run tools/rust_bindings.py")
    elif sys.argv[1:]:
        sys.exit(__doc__.partition("usage: ")[2])
    else:
        PLACE.write_text(text)


if __name__ == "__main__":
    main()
