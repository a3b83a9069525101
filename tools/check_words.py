#!/usr/bin/env python3
"""Refuses words that a native engineer would not write, sentences that are too long, and counts like `1 blocks`.

Usage: check_words.py SOURCE_DIR               checks messages, help texts, the viewer's strings and expected outputs
       check_words.py SOURCE_DIR --comments    checks the comments of all sources
       check_words.py SOURCE_DIR --pages [PATH...]   checks all pages (*.md), or those at or below these paths of the tree

Messages are string literals with a space in them, of C, Python and TypeScript code that users run. The check is a floor, not the goal: docs/glossary.md has the words of the field.
"""
import ast
import pathlib
import re
import sys

import prose

ROOMS = ("allocator", "recordings", "replay", "simulator", "cli", "adapters", "packaging/wheel/vram")
OUT = re.compile(r"\b(beside|whoever|nobody|somebody|anew|is none|at hand|as wanted|is told|has none|lay free|would have fitted|are wanted|is wanted|so much|"
                 r"in place of|goes by|go by|all the same|once more|is no (?:regular|plain|process|recording|page|text|size))\b")
# Out in messages and in the viewer.
HOUSE = re.compile(r"\b(?:a|an|the|or) share (?:from|such)\b|(?<!such as )\bnor a share\b|\bname (?:it|the file|its path) in [A-Z]|\bthat nothing wrote\b|\bbrought no\b|"
                   r"\bma(?:de|kes?)(?: up|-up) (?:the )?weights\b|\bcomes? again\b|\bmistakes in the use\b|\bprocessor time\b|\bmends\b|\bgives the grounds\b|"
                   r"%s are (?:live|free|held|left)\b|\bmemory ends\b|\bmust be one(?:$|[.;,])")
# Out in the viewer only: what was clicked is selected, memory is held by code, and an allocation has a lifetime.
RIDDLES = re.compile(r"\b[Ll]et go\b|\b[Pp]icked\b|\bchosen (?:moment|event|step)\b|\b[Ww]alk\b|\bto do with\b|\beach for itself\b|\bsays nothing\b|\b[Ww]ho (?:held|holds)\b|"
                     r"\b[Bb]y whom\b|\b(?:made|lived) (?:at|before|in) \b|\bthat is what\b|\bthis is (?:that|another) one\b|\bthe next that\b|\b(?:step|one|event) before\b(?! )")
# Out in messages only: a comment may quote them.
STIFF = re.compile(r"(?<!there )\bis no (?!longer\b)\w+|\b(?:no|out of) host memory\b|\bis none of\b|\bunder way\b|\bnot? (?:to )?be had\b|\bas asked for\b|\bends too early\b|"
                   r"\bcould not be made\b|\bplain file\b|\bgiven? back\b|\b(?:that|which|who) (?:has|have) not\b|\bmay not\b|\bdoes not tell\b|\bis of (?:no|another)\b")
ONE = re.compile(r"(?<![\d.,\w])1 (?:more |other |live )?(blocks|allocations|events|segments|gaps|steps|frames|devices|streams|calls|replays|settings|times)\b")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
TEMPLATE = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')


# --- prose: comments and pages --------------------------------------------------------------------------------------------------------------

# Patterns that are out, and what to write instead. `(?! ...)` excludes good uses.
PROSE = {
    r"beside\b": "with, next to, in addition to",
    r"whoever\b": "the name of the program, thread or caller",
    r"(?:no|some|any)body\b": "the name of the program, thread or caller; no program",
    r"anew\b": "again",
    r"(?<!there )is none\b": "is not one",
    r"has none\b": "has no ...",
    r"at hand\b": "available",
    r"as wanted\b": "as requested",
    r"(?:is|are|was|were|be) told\b": "receives, reports",
    r"stands\b(?! (?:in )?for| out)": "is, contains",
    r"lay free\b": "was free",
    r"so many\b(?! that| \w+ that)|so much\b": "this many, this much",
    r"in place of\b": "instead of",
    r"goes by\b|go by\b": "uses, follows",
    r"all the same\b": "nevertheless",
    r"once more\b": "again",
    r"the same of\b": "the subject of the sentence again",
    r"for want of\b": "without",
    r"(?:may|can|could|is|are|to) be had\b": "is available",
    r"hand-out\b": "allocation",
    r"on its way\b": "in progress",
    r"where there (?:is|are) none\b": "if there is none",
    r"(?:begins?|comes?|lies?|rest|remainder|hole|redzone|[KMGT]iB) behind (?:it|them|the (?:first|last|block|end))\b": "after",
    r"with a sentence\b": "with a message",
    r"(?:is|are|was) over(?=[.,;:)]|$)": "has ended, completes",
    r"(?:the|of|whose|their|all) lives\b": "lifetimes",
    r"memory (?:is|stays|was) away\b": "was released",
    r"processor time\b": "CPU time",
    r"auditor(?:s| of the dynamic linker)\b": "an LD_AUDIT library",
    r"wrong (?:writes?|frees?)\b": "invalid",
    r"exactly (?:these|those)(?=[.,;:)]|$)": "exactly as many bytes, exactly those given",
    r"and their number\b": "and their count",
    r"(?:page|block)(?:'s)? borders?\b": "boundary",
    r"(?:that|what) nothing wrote\b": "uninitialized",
    r"ma(?:de|kes?|king)(?: up|-up) (?:the )?weights\b": "dummy weights",
    r"mistakes in the use\b": "races, use after free",
    r"mends\b": "fixes",
    r"(?<!to )(?<!an )(?<!of )(?<!nd )(?<!or )(?<!low )(?<!ove )(?<!ost )(?<!ast )(?<![,.\d])\d[\d.,]* [KMGT]iB (?:are|were) (?!mult|pow|small|map)": "is, was: an amount is singular",
}
# Beginnings of comments that lack a subject or verb. Pages have them in headings.
FRAGMENTS = {
    r"What (?!if\b)": "begin with a verb, or with a noun and its verb",
    r"Who\b": "name the program, thread or caller",
    r"Of (?!course|[^.]{3,60}, (?:the|one|only|both|all|each)\b)": "begin with a noun",
    r"That (?:a|an|the|something|nothing) ": "begin with a verb: Checks that ...",
    r"The same (?:of|for|as)\b": "Like f(), but ...",
    r"Says ": "Prints, returns",
    r"Gives whether ": "Checks whether",
}
MOST_WORDS = 35  # of a sentence; colons and semicolons end one, too
PLURAL = re.compile(r"(?<![\d.,\w/-])(?<!- )1 (?:more |other |live )?(?:allocations|blocks|bytes|calls|cards|devices|events|files|frames|gaps|pages|pools|processes|ranks|replays|"
                    r"requests|rows|segments|settings|steps|streams|threads|times|words)\b")
# Uses that are allowed: (file, words of the piece with the use): the reason.
ALLOWED = {
    ("docs/reference/formats/queries.md", "freed by the program before the recording"): "a list of a result's columns, with their values in brackets",
    ("docs/reference/formats/queries.md", "if it was only pending"): "the same",
}


def compiled(patterns, prefix):
    """Returns (expression, better words) of each row. With a prefix the case does not matter."""
    return [(re.compile(prefix + pattern, re.IGNORECASE if prefix else 0), better) for pattern, better in patterns.items()]


WORDS, BEGINNINGS = compiled(PROSE, r"\b"), compiled(FRAGMENTS, "")


def faults_of(piece, is_comment):
    """Yields what is wrong with a comment or a paragraph."""
    text = prose.words_of(piece)
    for pattern, better in WORDS:
        for match in pattern.finditer(text):
            yield f"'{match[0]}': {better}"
    for pattern, better in BEGINNINGS if is_comment else ():
        if match := pattern.match(text):
            yield f"'{match[0].strip()} ...': {better}"
    if match := PLURAL.search(text):
        yield f"'{match[0]}'"
    if (words := prose.longest_sentence(piece)) > MOST_WORDS:
        yield f"a sentence of {words} words: at most {MOST_WORDS}"


def check_prose(root, is_comment, paths):
    """Prints the faults of all comments, or of the pages at or below these paths (none: all). Returns whether there is one."""
    count = faults = 0
    pieces = prose.comments_of if is_comment else prose.paragraphs_of
    for path in prose.files(root, prose.COMMENTED if is_comment else prose.PAGES):
        name = path.relative_to(root).as_posix()
        if paths and not any(name == wanted or name.startswith(wanted.rstrip("/") + "/") for wanted in paths):
            continue
        for line, piece in pieces(path, path.read_text(encoding="utf-8", errors="replace")):
            count += 1
            found = [] if any(name == file and part in piece for file, part in ALLOWED) else list(faults_of(piece, is_comment))
            faults += len(found)
            for fault in found:
                print(f"{name}:{line}: {fault}")
    print(f"{count} {'comments' if is_comment else 'paragraphs'}, {faults} faults")
    return faults != 0


# --- messages -------------------------------------------------------------------------------------------------------------------------------

def lines_of(path):
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").split("\n"), 1):
        code = line.partition("//")[0]
        if '"' in code and not code.lstrip().startswith(("#include", "*")):
            yield number, " ".join(text for text in LITERAL.findall(line) if " " in text)


def messages_of_python(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documents = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # and other strings without a use
    return [(node.lineno, node.value) for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value and node not in documents]


def messages_of_page(path):
    """Yields (line, text) of the viewer's strings with a space in them. Markup and lists of classes have no word that is out."""
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if not line.lstrip().startswith(("//", "import ", "*")):
            yield number, " ".join(text for pair in TEMPLATE.findall(line) for text in pair if " " in text)


def sources(root, *suffixes):
    return sorted(path for room in ROOMS for path in (root / room).rglob("*") if path.suffix in suffixes)


def check_messages(root):
    """Prints the words that should be others. Returns whether there is one."""
    messages = [(path, number, text) for path in sources(root, ".c", ".cpp", ".h", ".def") for number, text in lines_of(path)]
    messages += [(path, number, text) for path in sources(root, ".py") for number, text in messages_of_python(path)]
    page = [(path, number, text) for path in sorted((root / "viewer/web/src").rglob("*.ts")) for number, text in messages_of_page(path)]
    found = [f"{path.relative_to(root)}:{number}: '{word}'" for path, number, text in messages for word in OUT.findall(text) + STIFF.findall(text) + HOUSE.findall(text)]
    found += [f"{path.relative_to(root)}:{number}: '{word}'" for path, number, text in page for word in OUT.findall(text) + HOUSE.findall(text) + RIDDLES.findall(text)]
    for path in sorted((root / "tests").glob("*/golden/*.txt")):
        found += [f"{path.relative_to(root)}:{number}: '{match[0]}'" for number, line in enumerate(path.read_text(errors="replace").split("\n"), 1)
                  for match in [ONE.search(line)] if match]
    print("\n".join([*found, f"{len(found)} words that should be others"]))
    return bool(found)


def main():
    root, *rest = sys.argv[1:]
    root, kind = pathlib.Path(root), rest[0] if rest else ""
    if kind in ("--comments", "--pages"):
        sys.exit(check_prose(root, kind == "--comments", rest[1:]))
    sys.exit(check_messages(root))


if __name__ == "__main__":
    main()
