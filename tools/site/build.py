#!/usr/bin/env python3
"""Builds the site: docs/ and the folders' pages, a page per command with its output, the API from the headers, and the live viewer.

Usage: build.py VRAM OUT [--pages]

VRAM is the command of a build that has the viewer's page. OUT/pages gets the pages, OUT/html the site, built by MkDocs with its theme
Material (`pip install mkdocs-material`, in the Python that runs this). --pages makes only the pages and needs no other package.
Exits 1 for dead links, for pages that no page links to, and for content that the site would fetch from other hosts.
"""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import command_pages
import header_pages
import links
import navigation
import source_pages

HERE = Path(__file__).resolve().parent
SHIM = "https://unpkg.com/iframe-worker/shim"  # the theme would fetch this so that the search works on files; file_worker.js replaces it
ROOT = HERE.parent.parent


def live_page(vram, pages):
    """Adds the viewer with the recording of a program that ran out of memory, and a page that shows it."""
    folder = pages / "live"
    folder.mkdir()
    recording = ROOT / "examples/recordings/oom.pickle.gz"
    subprocess.run([vram, "view", "--no-open", "-o", folder / "viewer.html", recording], check=True, stdout=subprocess.DEVNULL)
    (folder / "index.md").write_text(
        "---\nhide: [navigation, toc]\n---\n\n# The viewer, live\n\nA language model's server that ran out of memory with gigabytes free (`examples/serve_sim.c`), in the page that `vram view` writes. "
        "[Open it alone](viewer.html), or read [what is where](../docs/guides/view.md).\n\n"
        '<iframe class="viewer" src="viewer.html" title="The viewer with an example recording" loading="lazy"></iframe>\n', encoding="utf-8")


def make_site(out):
    """Runs MkDocs, and removes content that pages would fetch from other hosts."""
    site = out / "html"
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-f", out / "mkdocs.yml"], check=True,
                   env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    shutil.copyfile(HERE / "file_worker.js", site / "assets/file_worker.js")
    for path in site.rglob("*.html"):
        up = "../" * (len(path.relative_to(site).parts) - 1)
        text = path.read_text(encoding="utf-8")
        if SHIM in text:
            path.write_text(text.replace(SHIM, f"{up}assets/file_worker.js"), encoding="utf-8")
    return site


def report(title, found):
    for line in found:
        print(f"{title}: {line}")
    return len(found)


def write_pages(vram, out):
    pages = out / "pages"
    for name in ("pages", "html", "job"):
        shutil.rmtree(out / name, ignore_errors=True)
    pages.mkdir(parents=True)
    source_pages.write(pages)
    command_pages.write(vram, pages, out / "job")
    header_pages.write(pages)
    live_page(vram, pages)
    shutil.copyfile(HERE / "site.css", pages / "site.css")
    return pages


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    if len(words) != 2:
        sys.exit(__doc__)
    vram, out = Path(words[0]).resolve(), Path(words[1]).resolve()
    pages = write_pages(vram, out)
    dead, alone = links.in_markdown(pages)
    wrong = report("dead link", dead) + report("nothing leads to", [name for name in alone if not name.startswith(("commands/", "api/", "live/"))])
    settings = (HERE / "mkdocs.yml").read_text(encoding="utf-8") + f"docs_dir: {pages}\nsite_dir: {out / 'html'}\nnav: {json.dumps(navigation.menu(pages))}\n"
    (out / "mkdocs.yml").write_text(settings, encoding="utf-8")
    if "--pages" not in sys.argv:
        site = make_site(out)
        dead, elsewhere, alone = links.in_html(site)
        wrong += report("dead link", dead) + report("fetched from elsewhere", elsewhere) + report("nothing leads to", alone)
        print(f"{site / 'index.html'}: {sum(1 for _ in site.rglob('*.html'))} pages")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
