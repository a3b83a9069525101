"""What a recording says, as text and as data; the page, in Jupyter."""
import functools
import html
import json
import os

from . import _command


class Report:
    """What `vram report` says. str() and print() give its text, .data the same as `vram report --json` has it."""

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
    """What a recording says; `options` are the command's own ("--top", "5")."""
    return Report(os.fspath(path), [str(option) for option in options])


class Page:
    """The viewer's page with recordings inside: shown as it is by Jupyter, .save() writes it."""

    def __init__(self, paths, height):
        self.html, self.height = _command.run("view", *paths, "-o", "-").decode(), height

    def save(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def _repr_html_(self):
        return f'<iframe srcdoc="{html.escape(self.html)}" style="width: 100%; height: {int(self.height)}px; border: 0" allow="fullscreen"></iframe>'


def show(*paths, height=800):
    """The page with these recordings. In Jupyter the last value of a cell is shown."""
    return Page([os.fspath(path) for path in paths], height)
