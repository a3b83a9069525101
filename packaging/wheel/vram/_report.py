"""The report of a recording as text and as data, and the page in Jupyter."""
import functools
import html
import json
import os

from . import _command


class Report:
    """A report. str() and print() give the text of `vram report`; .data is its --json output."""

    def __init__(self, path, options):
        self.path, self._options = path, options
        self.text = _command.run("report", *options, path).decode("utf-8", "replace")

    @functools.cached_property
    def data(self):
        return json.loads(_command.run("report", "--json", *self._options, self.path))

    def __str__(self):
        return self.text

    __repr__ = __str__

    def _repr_html_(self):
        return f"<pre>{html.escape(self.text)}</pre>"


def report(path, *options):
    """Reports on a recording. `options` are the command's own ("--top", "5")."""
    return Report(os.fspath(path), [str(option) for option in options])


class Page:
    """The viewer's page with recordings inside. Jupyter displays it; .save() writes it."""

    def __init__(self, paths, height):
        self.html, self.height = _command.run("view", *paths, "-o", "-").decode(), height

    def save(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def _repr_html_(self):
        return f'<iframe srcdoc="{html.escape(self.html)}" style="width: 100%; height: {int(self.height)}px; border: 0" allow="fullscreen"></iframe>'


def show(*paths, height=800):
    """Returns the page with these recordings. Jupyter displays the last value of a cell."""
    return Page([os.fspath(path) for path in paths], height)
