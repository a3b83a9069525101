"""Splits the tree's prose into pieces: the comments of its sources, and the paragraphs of its pages."""
import re

COMMENTED = {  # suffix or name of a file -> the mark of its comments
    **dict.fromkeys((".c", ".h", ".def", ".cpp", ".hpp", ".cu", ".S", ".rs", ".go", ".ts", ".mjs", ".js"), "//"),
    **dict.fromkeys((".py", ".sh", ".cmake", ".toml", ".yml", "CMakeLists.txt", "Makefile"), "#"),
}
TEMPLATED = {".ts", ".mjs", ".js", ".go"}  # have strings in backquotes, over several lines
PAGES = {".md"}
FOLDERS = ("adapters", "allocator", "cli", "docs", "examples", "packaging", "recordings", "replay", "simulator", "tests", "tools", "viewer")
SKIPPED = {"node_modules", "build", "dist", "corpus", "golden", "target", "recordings.d"}

QUOTED = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
SCANNERS = {
    "//": re.compile(rf"{QUOTED}|/\*(.*?)\*/|//+[/!]?([^\n]*)", re.DOTALL),
    "// with templates": re.compile(rf"{QUOTED}|`(?:\\.|[^`\\])*`|/\*(.*?)\*/|//+[/!]?([^\n]*)", re.DOTALL),
    "#": re.compile(rf'"""(.*?)"""|\'\'\'.*?\'\'\'|{QUOTED}|(?<!\S)#+(?!!)([^\n]*)', re.DOTALL),
}
FENCED = re.compile(r"^ *(```|~~~).*?^ *\1[^\n]*$", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"(?:^|(?<=\n\n))(?: {4,}[^\n]*\n)+", re.MULTILINE)
CODE = re.compile(r"``.*?``|`[^`]*`")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
ITEM = re.compile(r"^(?:(?:[-*+]|\d+\.) |#+ |> )")
COLUMNS = re.compile(r"\S {3,}\S")
SEPARATE = re.compile(r" {4}|\s*- |.*\S {3,}\S")  # a line of a program or table, or an item
# A stop ends a sentence before the beginning of another word, but not within a name or a number.
STOP = re.compile(r"(?<=[.!?;:])\)?\s+(?=[\"'(\[\w*`])|\s*-{3,}\s*")


def files(root, wanted):
    """Returns the files whose suffix or name is wanted, sorted; without built and generated ones."""
    inside = (path for folder in FOLDERS for path in (root / folder).rglob("*"))
    for path in sorted([*inside, *root.glob("*")]):
        if (path.suffix in wanted or path.name in wanted) and SKIPPED.isdisjoint(path.relative_to(root).parts) and path.is_file():
            yield path


def is_docstring(before):
    """Returns whether a triple-quoted string after this text documents a module, a class or a function."""
    code = [line for line in before[-2000:].split("\n") if line.strip() and not line.lstrip().startswith("#")]
    return before.rstrip(" \t")[-1:] in ("\n", "") and (not code or code[-1].rstrip().endswith(":"))


def paragraphs(text, line):
    """Splits a block comment at empty lines. Leaves out paragraphs with a deeper indentation or columns, which are tables or programs."""
    for part in re.split(r"(\n[ \t]*\*?[ \t]*\n)", text):
        if part.strip() and "   " not in re.sub(r"\n\s*(?:\* ?)?", "\n", part.strip()):
            yield line, " ".join(re.sub(r"^\s*\*(?:\s|$)", "", row).strip() for row in part.split("\n")).strip()
        line += part.count("\n")


def comments_of(path, text):
    """Yields (line, piece) for each comment of a source; comment lines in sequence are one piece."""
    mark = COMMENTED.get(path.suffix) or COMMENTED[path.name]
    scanner = SCANNERS["// with templates" if path.suffix in TEMPLATED else mark]
    line, seen, pending = 1, 0, None
    for match in scanner.finditer(text):
        block, rest = match.groups()
        if rest is None and (block is None or (mark == "#" and not is_docstring(text[:match.start()]))):
            continue
        line += text.count("\n", seen, match.start())
        seen = match.start()
        if rest is None:
            yield from paragraphs(FENCED.sub("", block), line)
            continue
        alone = not text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
        goes_on = pending and alone and pending[2] == line - 1 and rest.strip() and not SEPARATE.match(rest)
        if goes_on:
            pending = (pending[0], f"{pending[1]} {rest.strip()}", line)
            continue
        if pending:
            yield pending[:2]
        pending = (line, rest.strip(), line if alone and not COLUMNS.search(rest) else -1)
    if pending:
        yield pending[:2]


def paragraphs_of(path, text):
    """Yields (line, piece) for each paragraph, item, heading and cell of a page, without its code."""
    blank = lambda match: "\n" * match[0].count("\n")  # noqa: E731: keeps the numbers of the lines
    text = INDENTED.sub(blank, FENCED.sub(blank, re.sub(r"\A---\n.*?^---\n|<!--.*?-->", blank, text, flags=re.DOTALL | re.MULTILINE)))
    begun, rows = 0, []
    for number, row in enumerate([*text.split("\n"), ""], 1):
        row = row.strip()
        if rows and (not row or row.startswith("|") or ITEM.match(row)):
            yield begun, " ".join(rows)
            rows = []
        if row.startswith("|"):
            yield from ((number, cell.strip()) for cell in re.split(r"(?<!\\)\|", row) if cell.strip(" -:"))
        elif row:
            begun = begun if rows else number
            rows.append(ITEM.sub("", row, count=1) if not rows else row)


def words_of(piece):
    """Returns the piece without its code, and with the text of its links."""
    return LINK.sub(r"\1", CODE.sub("", piece))


def longest_sentence(piece):
    """Returns the number of words in the longest sentence of a piece. Colons and semicolons end a sentence, too; code is not counted."""
    return max(sum(any(c.isalnum() for c in word) for word in sentence.split()) for sentence in STOP.split(words_of(piece)))
