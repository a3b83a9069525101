"""Makes the site's menu: the list of docs/README.md in its order, then the commands, the API and the folders' own pages."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LINK = re.compile(r"\]\(([^)#:\s]+\.md)\)")


def title_of(page):
    return re.search(r"^# (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE).group(1).replace("`", "")


def listed(pages, heading):
    """Returns the pages that a part of docs/README.md links to."""
    text = (pages / "docs/README.md").read_text(encoding="utf-8")
    part = re.search(rf"^## {heading}.*?\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL).group(1)
    found = [(pages / "docs" / name).resolve() for name in LINK.findall(part)]
    return list(dict.fromkeys(found))


def entries(pages, chosen):
    return [{title_of(page): page.relative_to(pages).as_posix()} for page in chosen]


def menu(pages):
    """Returns the menu in MkDocs' form."""
    guides, reference, internals = (listed(pages, name) for name in ("Guides", "Reference", "Internals"))
    libraries = sorted((pages / "docs/in").glob("*.md"), key=lambda page: page.name != "README.md")
    rest = [pages / name for name in ("docs/README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    folders = sorted(page for page in pages.rglob("*.md") if page.name in ("README.md", "coverage.md", "fit_measured.md", "SKILL.md") and page.relative_to(pages).parts[0] not in ("docs", "README.md"))
    taken = {*libraries, *folders}
    return [
        {"Home": "README.md"},
        {"Guides": entries(pages, [page for page in guides if page not in taken])},
        {"Libraries": entries(pages, libraries)},
        {"Commands": ["commands/index.md", *(f"commands/{page.name}" for page in sorted((pages / "commands").glob("*.md")) if page.name != "index.md")]},
        {"Live viewer": "live/index.md"},
        {"Reference": entries(pages, [page for page in reference if page not in taken])},
        {"API": ["api/index.md", *(f"api/{page.name}" for page in sorted((pages / "api").glob("*.md")) if page.name != "index.md")]},
        {"Internals": entries(pages, [page for page in internals if page not in taken])},
        {"The tree": entries(pages, folders)},
        {"Project": entries(pages, rest)},
    ]
