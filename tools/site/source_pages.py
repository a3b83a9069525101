"""Copies the project's own pages for the site's generator: in the folders of the tree, with the files that they link to."""
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# Folders whose pages are in the site. README.md and similar pages are in the root.
FOLDERS = ("docs", "allocator", "recordings", "simulator", "replay", "cli", "adapters", "packaging", "tests")
LINK = re.compile(r"(?<!`)\]\(([^)#:\s]+)(#[^)]*)?\)")


def sources():
    """Returns every page of the tree that the site has, by path."""
    own = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    for folder in FOLDERS:
        own += sorted((ROOT / folder).rglob("*.md")) if folder == "docs" else sorted((ROOT / folder).glob("*.md"))
    return own + [ROOT / "tests/real/fit_measured.md", ROOT / "packaging/skills/vram/SKILL.md"]


def for_python_markdown(text):
    """Indents text that follows a list item by four columns, where GitHub accepts two or three."""
    lines, shift, fence = [], 0, False
    for line in text.splitlines():
        item = None if fence else re.match(r"(- |\d+\. )", line)
        if item:
            shift = 4 - len(item.group(1))
        elif line and not line.startswith(" ") and not fence:
            shift = 0
        stripped = line.lstrip()
        inside = shift and line.startswith(" ") and not item
        lines.append(" " * shift + line if inside else line)
        if stripped.startswith("```"):
            fence = not fence
    return "\n".join(lines) + "\n"


def with_titles(page, text):
    """Shows a page's title in links that show its file name."""
    def titled(match):
        target = page.parent / match.group(2)
        title = re.search(r"^# (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE) if target.is_file() else None
        return f"[{title.group(1).replace('`', '')}]({match.group(2)}{match.group(3)})" if title else match.group()
    return re.sub(r"\[([\w./-]+\.md)\]\(([^)#:\s]+)((?:#[^)]*)?)\)", titled, text)


def linked_files(page, text):
    """Returns the files, other than pages, that a page links to or shows as pictures."""
    for name, _ in LINK.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        target = (page.parent / name).resolve()
        if target.suffix != ".md" and target.is_file() and target.is_relative_to(ROOT):
            yield target


def write(pages):
    """Copies the pages, and the files that they link to, into a folder."""
    known = set(sources())
    for page in known:
        text = page.read_text(encoding="utf-8")
        place = pages / page.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(for_python_markdown(with_titles(page, text)), encoding="utf-8")
        for target in linked_files(page, text):
            copy = pages / target.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(target, copy)
    return known
