"""Makes the API reference: a page per public header, from its comments and declarations, and one that lists all functions."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import rooms  # noqa: E402

LEFT_OUT = re.compile(r"^(#(ifndef|define) VR(AM)?_\w+_HP{0,2}|#ifdef __cplusplus|extern \"C\" \{|\}|#endif.*|#pragma once)$")
NAMES = re.compile(r"^(?:VRAM_API.*?\b(vram_\w+)\(|(?:struct|enum|union) (vram_\w+) \{|#define (VRAM_\w+)|typedef .*?\(\*(vram_\w+)\)|(?:class|struct) (\w+)\b.*\{)", re.MULTILINE)


def chunks(text):
    """Splits a header at blank lines, but not inside braces. Returns each part's comment lines and code lines."""
    part, depth = [], 0
    for line in text.splitlines() + [""]:
        if line.strip() or depth > 0:
            part.append(line)
            code = line.partition("//")[0]
            depth += 0 if code.strip() == 'extern "C" {' else code.count("{") - code.count("}")
            depth = max(depth, 0)
        elif part:
            yield part
            part = []


def pieces(part):
    """Returns each comment of whole lines in a part, with the code that follows it."""
    found = []
    for line in part:
        comment = line.startswith("//")
        if not found or comment and found[-1][1]:
            found.append(([], []))
        found[-1][0 if comment else 1].append(line)
    return found


def prose(lines):
    """Returns a comment as Markdown, with its paragraphs."""
    return "\n\n".join(paragraph(text) for text in re.split(r"\n\n+", "\n".join(line.removeprefix("//").strip() for line in lines)) if text)


def paragraph(text):
    """Returns a paragraph of a comment as Markdown. A rule of dashes with a title is a heading."""
    text = text.replace("\n", " ")
    title = re.fullmatch(r"-+ (.*?) -+", text)
    if title:
        return f"## {title.group(1)[0].upper()}{title.group(1)[1:]}"
    text = re.sub(r"(?<![`\w/])((?:vram|VRAM|CU|cu)_?\w*\(\)|VRAM_[A-Z_]+|[A-Z]{2,}_[A-Z_]+)(?![`\w])", r"`\1`", text)
    parts = text.split("`") if text.count("`") % 2 == 0 else [text]  # every other one is code
    return "`".join(part if number % 2 else part.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_") for number, part in enumerate(parts))


def names_of(code):
    return ["".join(match.groups(default="")) for match in NAMES.finditer(re.sub(r"\\\n", "", code))]


def page(path):
    """Returns the page of a header, and its functions, each with its first comment line."""
    body, functions, first = [], [], True
    for part in chunks(path.read_text(encoding="utf-8")):
        for comment, code in pieces([line for line in part if not LEFT_OUT.match(line)]):
            code = [line for line in code if not line.startswith("#include")]
            text = "\n".join(code).strip("\n")
            names = names_of(text)
            if names and not first:
                shown = ", ".join(f"{name}()" if f"{name}(" in text else name for name in dict.fromkeys(names[:3])) + (", ..." if len(names) > 3 else "")
                body.append(f"### {shown}")
            if comment:
                body.append(prose(comment))
                first = False
            if text:
                body.append(f"```{'cpp' if path.suffix == '.hpp' else 'c'}\n{text}\n```")
            functions += [name for name in names if f"{name}(" in text and name.startswith("vram_")]
    title = f"vram/{path.name}"
    opening = re.sub(rf"^vram/{re.escape(path.name)}: ", "", body[0]) if body else ""
    opening = opening[:1].upper() + opening[1:]
    return f"# {title}\n\n`#include <{title}>`\n\n" + "\n\n".join([opening, *body[1:]]) + "\n", functions


def write(pages):
    """Writes api/NAME.md for every public header, and api/index.md."""
    (pages / "api").mkdir()
    rows, index = [], []
    for path in sorted(rooms.headers(ROOT)):
        text, functions = page(path)
        (pages / "api" / f"{path.name}.md").write_text(text, encoding="utf-8")
        rows.append(f"| [vram/{path.name}]({path.name}.md) | {len(functions)} |")
        index += [f"[`{name}()`]({path.name}.md)" for name in functions]
    assert len(index) > 300, "the headers have functions"
    listed = "\n".join(f"- {entry}" for entry in sorted(dict.fromkeys(index)))
    (pages / "api/index.md").write_text(
        "# API reference\n\nA page per public header, made of its comments and declarations. By subject: [headers](../docs/reference/headers.md).\n\n"
        "| header | functions |\n|---|--:|\n" + "\n".join(rows) + f"\n\n## All functions\n\n{listed}\n", encoding="utf-8")
