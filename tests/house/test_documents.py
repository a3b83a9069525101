#!/usr/bin/env python3
"""Tests that the documents mention every option, command and make target, and mention no file, heading, function, variable or make target that does
not exist.

Usage: test_documents.py ROOT"""
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "tools"))
import rooms  # noqa: E402: the checkers are in the tree under test
from check_citations import anchors_of  # noqa: E402


PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *sorted((ROOT / "docs").rglob("*.md")),
         *(ROOT / folder / "README.md" for folder in (*rooms.PRODUCTS, "cli", "adapters", "packaging", "tests"))]
LINK = re.compile(r"\]\(([^)#:]*)(?:#([^)]*))?\)")


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def words_of(*folders):
    """Returns all words of the sources in the folders."""
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*")) if path.suffix in (".h", ".c", ".def", ".py", ".ts", ".rs", ".go")]
    return {word for path in files if "node_modules" not in path.parts for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}


class Documents(unittest.TestCase):
    def test_every_option_is_described(self):
        rows = text("allocator/config/options.def")
        keys = re.findall(r"^VR_OPTION(?:_ALIAS)?\((\w+),", rows, re.MULTILINE)
        self.assertGreater(len(keys), 20)
        page = text("docs/reference/options.md")
        self.assertEqual([key for key in keys if f"`{key}`" not in page], [])

    def test_every_variable_is_described(self):
        files = [path for folder in ("allocator", "recordings", "simulator", "replay", "adapters", "cli") for path in (ROOT / folder).rglob("*") if path.suffix in (".c", ".h", ".py")]
        read = {name for path in files
                for name in re.findall(r'"((?:VRAM|TORCH|PYTORCH|CUBLAS|CUBLASLT)_[A-Z_]+)"', path.read_text(encoding="utf-8"))}
        # Words of a message and statuses are not variables, and users do not set VRAM_RUN_*.
        names = {name for name in read if not name.startswith(("VRAM_RUN_", "CUBLAS_STATUS_"))} - {"VRAM_OUT_OF_MEMORY", "VRAM_UNKNOWN"}
        self.assertGreater(len(names), 15)
        page = text("docs/reference/options.md")
        self.assertEqual([name for name in sorted(names) if f"`{name}`" not in page], [])

    def test_the_tables_of_other_peoples_figures_are_current(self):
        page = text("docs/fit.md").splitlines()
        for name in ("start_logs", "start_llama", "start_versions", "train_figures"):
            script, results = ROOT / f"tests/real/{name}.py", ROOT / f"tests/real/{name}.tsv"
            tables = subprocess.run([sys.executable, script, "table", results], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
            self.assertGreater(len(tables), 3)
            self.assertEqual([line for line in tables if line not in page], [])

    def test_every_header_is_described(self):
        rows = re.findall(r"^\| (`vram/.*?) \|", text("docs/reference/headers.md"), re.MULTILINE)
        named = sorted(name for row in rows for name in re.findall(r"`vram/(\w+\.h(?:pp)?)`", row))
        headers = rooms.headers(ROOT)
        self.assertEqual(named, sorted(path.name for path in headers if path.name not in ("vram.h", "recordings.h")))
        self.assertEqual([path.name for path in headers if path.suffix == ".hpp" and path.name != "vram.hpp" and path.read_text(encoding="utf-8").count("\n") > 100], [])

    def test_no_function_hides_a_struct(self):
        everything = "".join(re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8")) for path in rooms.headers(ROOT))
        types = set(re.findall(r"\b(?:struct|enum|union) (vram_\w+)\s*\{", everything))
        functions = set(re.findall(r"VRAM_API[^;{]*?\b(vram_\w+)\s*\(", everything))
        self.assertGreater(min(len(types), len(functions)), 100)
        self.assertEqual(sorted(types & functions), [], "C++ could not say the struct without its keyword")

    def test_experimental_functions_warn_where_that_is_wanted(self):
        includes = [f"-I{ROOT / folder}" for folder in rooms.HEADERS]
        for function, header, warned in (("vram_sleep", "sleep.h", True), ("vram_malloc", "allocator.h", False)):
            program = f"#include <vram/{header}>\nint main(void) {{ return {function} == 0; }}\n"
            command = ["cc", "-Werror=deprecated-declarations", "-DVRAM_WARN_EXPERIMENTAL", "-fsyntax-only", *includes, "-x", "c", "-"]
            compiled = subprocess.run(command, input=program, capture_output=True, text=True, check=False)
            self.assertEqual("experimental" in compiled.stderr, warned, compiled.stderr)

    def test_every_counter_is_described(self):
        rows = re.findall(r"^ +X\((\w+), ", text("allocator/include/vram/stats.h"), re.MULTILINE)
        self.assertGreater(len(rows), 15)
        page = text("docs/reference/stats.md")
        self.assertEqual([name for name in rows if f"`{name}`" not in page], [])

    def test_every_command_is_described(self):
        commands = re.findall(r"^COMMAND\((\w+),", text("cli/commands.def"), re.MULTILINE)
        self.assertGreater(len(commands), 0)
        manual = text("docs/reference/man/vram.1")
        for command in commands:
            self.assertIn(f".B {command}\n", manual)
            self.assertIn(f"| `vram {command}` |", text("docs/README.md"))

    def test_every_card_is_described_with_its_memory(self):
        rows = re.findall(r'^X\(([\w-]+), *"[^"]*", *\d+, *\d+, *\d+, *(\d+),', text("simulator/sim/device/devices.def"), re.MULTILINE)
        self.assertGreater(len(rows), 50)
        page = text("docs/guides/simulator.md")
        self.assertEqual([key for key, total in rows if f"`{key}` {int(total) / 2**30:.1f}" not in page], [])

    def test_every_query_is_described(self):
        queries = re.findall(r"^QUERY\((\w+)\)", text("recordings/explore/queries.def"), re.MULTILINE)
        self.assertGreater(len(queries), 20)
        self.assertEqual(sorted(queries), sorted(re.findall(r"^### (\w+)$", text("docs/reference/formats/queries.md"), re.MULTILINE)))

    def test_every_make_target_is_described_and_there(self):
        makefile = text("Makefile")
        described = set(re.findall(r"^#   make (\w[\w-]*) ", makefile, re.MULTILINE))
        targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE)) - {"all", "setup", "clean"}
        self.assertEqual(described, targets)

    def test_scripts_of_the_makefile_exist(self):
        scripts = set(re.findall(r"tools/[\w.-]+", text("Makefile")))
        self.assertGreater(len(scripts), 3)
        self.assertEqual([name for name in sorted(scripts) if not (ROOT / name).exists()], [])

    def test_paths_in_documents_exist(self):
        missing = []
        for page in PAGES:
            body = page.read_text(encoding="utf-8")
            links = [(page.parent, name) for name, _ in LINK.findall(body) if name]
            quoted = [(ROOT, name) for name in re.findall(
                r"`((?:allocator|recordings|simulator|replay|tests|tools|docs|cli|examples|packaging)/[\w./-]+)`", body)]
            missing += [f"{page.relative_to(ROOT)}: {name}" for base, name in links + quoted if not (base / name).exists()]
        self.assertEqual(missing, [])

    def test_headings_of_links_exist(self):
        missing, count = [], 0
        for page in PAGES:
            for name, anchor in LINK.findall(page.read_text(encoding="utf-8")):
                target = (page.parent / name).resolve() if name else page
                if anchor and target.suffix == ".md":
                    count += 1
                    missing += [] if anchor in anchors_of(target) else [f"{page.relative_to(ROOT)}: {name}#{anchor}"]
        self.assertGreaterEqual(count, 10)
        self.assertEqual(missing, [])

    def test_every_page_is_reached_from_the_readme(self):
        reached, open_pages = set(), [ROOT / "README.md"]
        while open_pages:
            page = open_pages.pop()
            if page not in reached and page.suffix == ".md":
                reached.add(page)
                open_pages += [(page.parent / name).resolve() for name, _ in LINK.findall(page.read_text(encoding="utf-8")) if name]
        self.assertEqual([str(page.relative_to(ROOT)) for page in PAGES if page not in reached], [])

    def test_every_picture_is_shown(self):
        shown = {(page.parent / name).resolve() for page in PAGES for name, _ in LINK.findall(page.read_text(encoding="utf-8")) if name}
        pictures = sorted((ROOT / "docs/pictures").iterdir())
        self.assertGreater(len(pictures), 3)
        self.assertEqual([path.name for path in pictures if path not in shown], [])

    def test_the_architecture_knows_every_room_and_every_test(self):
        page = text("docs/architecture.md")
        described = set(re.findall(r"^((?:allocator|recordings|simulator)/\w+/|replay/) ", page, re.MULTILINE))
        folders = [path for product in ("allocator", "recordings", "simulator") for path in (ROOT / product).iterdir() if path.is_dir()]
        self.assertEqual(described, {f"{path.relative_to(ROOT)}/" for path in folders if path.name != "include"} | {"replay/"})
        rows = re.findall(r"^\| .* \| (`tests/.*) \|$", text("tests/README.md"), re.MULTILINE)
        described = {name for row in rows for name in re.findall(r"`tests/(\w+)`", row)}
        folders = {path.parent.name for path in (ROOT / "tests").glob("*/*") if path.parent.name not in ("support",)}
        self.assertEqual(described, folders)

    def test_rooms_have_sources_only(self):
        names = [path.relative_to(ROOT) for product in rooms.PRODUCTS for path in (ROOT / product).rglob("*") if path.is_file()]
        strange = [str(name) for name in names if rooms.is_of_products(name) and len(name.parts) > 2 and name.suffix not in (".c", ".h", ".def")]
        self.assertEqual(strange, [])

    def test_paths_into_the_build_are_those_of_a_preset(self):
        presets = set(re.findall(r'^ +"name": "(\w+)"', text("CMakePresets.json"), re.MULTILINE))
        found = {(page.name, name) for page in PAGES for name in re.findall(r"(?<![\w./-])build/(\w*)", page.read_text(encoding="utf-8"))}
        self.assertGreater(len(found), 3)
        self.assertEqual(sorted(pair for pair in found if pair[1] not in presets | {"packages", "site"}), [])

    def names_missing(self, pattern, words):
        return [f"{page.relative_to(ROOT)}: {name}" for page in PAGES
                for name in re.findall(pattern, page.read_text(encoding="utf-8")) if name not in words]

    def test_functions_in_documents_exist(self):
        words = words_of(*rooms.PRODUCTS, "adapters", "examples")
        self.assertEqual(self.names_missing(r"\b(v(?:ram|r)_\w+)\(", words), [])

    def test_variables_and_constants_in_documents_exist(self):
        words = words_of(*rooms.PRODUCTS, "adapters", "cli", "viewer", "tests")
        words |= set(re.findall(r"\w+", text("CMakeLists.txt") + text("CMakePresets.json")))
        self.assertEqual(self.names_missing(r"\b(VR(?:AM)?_[A-Z][A-Z0-9_]*[A-Z0-9])\b", words), [])

    def test_programs_in_pages_are_the_examples(self):
        shown = [(page, name, block) for page in PAGES
                 for block, name in re.findall(r"^```c\n(// (\w+\.c): .*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)]
        self.assertGreaterEqual(len(shown), 2)
        self.assertEqual([f"{page.relative_to(ROOT)}: {name}" for page, name, block in shown if block != text(f"examples/{name}")], [])

    def test_make_targets_in_documents_exist(self):
        targets = set(re.findall(r"^([\w-]+):", text("Makefile"), re.MULTILINE))
        named = {name for page in PAGES for name in re.findall(r"(?:`|\n {4}|\n)make ([\w-]+)(?=[`\s])", page.read_text(encoding="utf-8"))}
        self.assertGreater(len(named), 3)
        self.assertEqual(named - targets, set())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
