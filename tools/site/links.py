"""Finds dead links: in the pages before they are built (Markdown), and in the site (HTML)."""
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from check_citations import anchors_of  # noqa: E402

MARKDOWN = re.compile(r"(?<!`)\]\(([^)#:\s]*)(?:#([^)\s]*))?\)")


def plain(text):
    """Returns a page without its code."""
    return re.sub(r"`[^`\n]*`", "``", re.sub(r"^( *)```.*?^\1```", "", text, flags=re.MULTILINE | re.DOTALL))


def in_markdown(pages):
    """Returns the dead links of the pages of a folder, as 'PAGE: LINK', and the pages that no other page links to."""
    everything, dead, reached = sorted(pages.rglob("*.md")), [], {pages / "README.md"}
    for page in everything:
        for name, anchor in MARKDOWN.findall(plain(page.read_text(encoding="utf-8"))):
            target = (page.parent / name).resolve() if name else page
            reached.add(target) if target != page else None
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors_of(target)):
                dead.append(f"{page.relative_to(pages)}: {name}{'#' + anchor if anchor else ''}")
    return dead, [str(page.relative_to(pages)) for page in everything if page not in reached]


class Page(HTMLParser):
    """The links and the anchors of a page of the site."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.fetched = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        for name in ("href", "src"):
            if given.get(name) is not None:
                self.links.append(given[name])
                if tag != "a" and given.get("rel") != "canonical":
                    self.fetched.append(given[name])


def in_html(site):
    """Returns the dead links of a site, as 'PAGE: LINK', the content it would fetch from other hosts, and the pages that no page links
    to."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html")) if "live" not in path.parts or path.name == "index.html"}
    dead, elsewhere, reached = [], [], {site / "index.html", site / "404.html"}
    for path, page in pages.items():
        elsewhere += [f"{path.relative_to(site)}: {link}" for link in page.fetched if re.match(r"(https?:)?//", link)]
        for link in page.links:
            if re.match(r"[a-z]+:|//", link) or path.name == "404.html":
                continue
            name, _, anchor = unquote(link).partition("#")
            target = (path.parent / name.partition("?")[0]).resolve() if name else path
            target = target / "index.html" if target.is_dir() else target
            reached.add(target) if target != path else None
            if not target.exists() or (anchor and target in pages and anchor not in pages[target].anchors):
                dead.append(f"{path.relative_to(site)}: {link}")
    return dead, elsewhere, [str(path.relative_to(site)) for path in pages if path not in reached]
