#!/usr/bin/env python3
"""Tests the checkers themselves: they accept a good tree and find each kind of mistake.

Usage: test_checkers.py TOOLS CC      (the folder of the checkers, a C compiler)
"""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS, CC = Path(sys.argv[1]), sys.argv[2]


def run(*arguments):
    result = subprocess.run([str(a) for a in arguments], capture_output=True, text=True)
    return result.returncode, result.stdout + result.stderr


class Floors(unittest.TestCase):
    GOOD = {
        "allocator/include/vram/vram.h": '#include "vram/status.h"\n',
        "allocator/include/vram/status.h": "#include <stdint.h>\n",
        "allocator/include/vram/plug.hpp": "#include <new>\n",
        "allocator/base/base.h": '#include "vram/status.h"\n#include <string.h>\n',
        "allocator/os/os.h": "",
        "allocator/os/posix/threads.c": '#include <pthread.h>\n#include "os/os.h"\n',
        "recordings/model/model.h": '#include "base/base.h"\n',
        "allocator/config/options.c": '#include "config/options.h"\n#include "os/os.h"\n',
        "allocator/config/options.h": '#include "base/base.h"\n',
        "allocator/core/index.c": '#include "index.h"\n#include "config/options.h"\n',
        "allocator/core/index.h": "",
        "recordings/snapshot/read.c": '#include "model/model.h"\n',
        "replay/replay.c": '#include "core/index.h"\n',
        "cli/main.c": '#include "args.h"\n#include "vram/vram.h"\n#include <unistd.h>\n',
        "cli/args.h": "",
        "allocator/driver/driver.h": "",
        "simulator/standins/libcuda/exports.c": '#include "libcuda.h"\n#include <fcntl.h>\n',
        "simulator/standins/libcuda/libcuda.h": '#include "driver/driver.h"\n#include "os/os.h"\n',
    }
    BAD = {
        "up": ("allocator/base/base.c", '#include "os/os.h"\n', "base may not look at os"),
        "sideways": ("allocator/core/core.c", '#include "model/model.h"\n', "core may not look at model"),
        "relative path": ("allocator/base/base.c", '#include "../config/options.h"\n', "base may not look at config"),
        "core floor": ("recordings/snapshot/x.c", '#include "core/index.h"\n', "snapshot may not look at core"),
        "internal header in the command": ("cli/x.c", '#include "../allocator/base/base.h"\n', "cli may include public headers only"),
        "internal header in an example": ("examples/x.c", '#  include "../allocator/base/base.h"\n', "examples may include public"),
        "internal header in a public one": ("allocator/include/vram/x.h", '#include "../../base/base.h"\n', "a public header may"),
        "system header": ("allocator/core/x.c", "#include <unistd.h>\n", "belong into allocator/os/posix"),
        "system header in a public one": ("allocator/include/vram/x.h", "#include <sys/mman.h>\n", "belong into allocator/os/posix"),
        "header of C++ in one of C": ("allocator/include/vram/x.h", '#include "vram/plug.hpp"\n', "a header of C++"),
        "time": ("allocator/core/x.c", "#include <time.h>\n", "reached through os/os.h"),
        "missing file": ("allocator/core/x.c", '#include "core/none.h"\n', "no such file"),
        "stand-in above the driver": ("simulator/standins/libcuda/x.c", '#include "core/index.h"\n', "standins/libcuda may not look at core"),
        "stand-in beside a stand-in": ("simulator/standins/libcudart/x.c", '#include "../libcuda/libcuda.h"\n', "may not look at standins/libcuda"),
        "room above a stand-in": ("allocator/core/x.c", '#include "../../simulator/standins/libcuda/libcuda.h"\n', "core may not look at standins/libcuda"),
        "unknown stand-in": ("simulator/standins/libnew/x.c", '#include "base/base.h"\n', "no room that this script knows"),
        "unknown room": ("allocator/attic/x.c", '#include "base/base.h"\n', "no room that this script knows"),
    }

    def tree(self, extra=None):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        files = dict(self.GOOD)
        if extra:
            files[extra[0]] = extra[1]
        for name, text in files.items():
            path = Path(folder.name) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return run(sys.executable, TOOLS / "check_floors.py", folder.name)

    def test_a_good_tree_passes(self):
        code, text = self.tree()
        self.assertEqual(code, 0, text)
        self.assertIn(f"{len(self.GOOD)} files", text)

    def test_every_bad_include_is_found(self):
        for name, bad in self.BAD.items():
            with self.subTest(name):
                code, text = self.tree(bad)
                self.assertEqual(code, 1, text)
                self.assertIn(bad[2], text)
                self.assertIn(f"{bad[0]}:1:", text)

    def test_an_empty_tree_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(run(sys.executable, TOOLS / "check_floors.py", folder)[0], 1)


class Names(unittest.TestCase):
    """Each name in the products must mean one thing."""

    GOOD = {
        "allocator/include/vram/pool.h": "#ifndef VRAM_POOL_H\n#define VRAM_POOL_H\nstruct vram_pool;\n#endif\n",
        "allocator/base/json.h": "#ifndef VR_BASE_JSON_H\n#define VR_BASE_JSON_H\nstruct vr_json {\n    int at;\n};\n#endif\n",
        "allocator/base/json.c": '#include "base/json.h"\nstruct vr_json *vr_json_find(struct vr_json *json);\n',
        "allocator/os/posix/map.c": "struct mapping { int at; };\n",
        "allocator/os/wasm/map.c": "struct mapping { int at; };\n",
        "allocator/core/slots.def": "X(one)\n",
        "cli/slots.c": "// a lot of what was seen: struct vr_json { }\nint slots(void) { return puts(\"vr_lot\"); }\n",
    }
    BAD = {
        "a guard of another path": ("allocator/core/json_text.h", "#ifndef VR_JSON_H\n#define VR_JSON_H\n#endif\n", 1,
                                    "guard VR_JSON_H, expected VR_CORE_JSON_TEXT_H"),
        "a guard of a public header": ("allocator/include/vram/x.h", "// x\n\n#ifndef VR_X_H\n#define VR_X_H\n#endif\n", 3, "expected VRAM_X_H"),
        "no guard": ("allocator/core/x.h", "int vr_x(void);\n", 1, "no guard; VR_CORE_X_H is expected"),
        "a tag twice": ("allocator/core/x.c", "int a;\nstruct vr_json {\n    int b;\n};\n", 2, "tag vr_json also stands at allocator/base/json.h:3"),
        "a tag of another kind": ("allocator/core/x.c", "enum vr_json { VR_A };\n", 1, "tag vr_json also stands"),
        "a file name twice": ("recordings/snapshot/json.c", "", 1, "file name json also stands at allocator/base/json.c:1"),
        "a file name below a folder": ("allocator/core/share/json.def", "", 1, "file name json also stands"),
        "a vague word": ("allocator/core/x.c", "\nint vr_lot_count;\n", 2, "vr_lot_count: 'lot'"),
        "a vague constant": ("cli/x.c", "/* here\n */ int VR_SEEN;\n", 2, "VR_SEEN: 'seen'"),
        "a vague file name": ("allocator/core/hunt.c", "", 1, "hunt: 'hunt'"),
    }

    def check(self, extra=None):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**self.GOOD, **dict([extra[:2]] if extra else [])}.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return run(sys.executable, TOOLS / "check_names.py", folder)

    def test_a_good_tree_passes(self):
        code, text = self.check()
        self.assertEqual(code, 0, text)

    def test_every_bad_name_is_found(self):
        for name, bad in self.BAD.items():
            with self.subTest(name):
                code, text = self.check(bad)
                self.assertEqual(code, 1, text)
                self.assertIn(bad[3], text)
                self.assertIn(f"{bad[0]}:{bad[2]}: ", text)

    def test_an_empty_tree_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(run(sys.executable, TOOLS / "check_names.py", folder)[0], 1)


class Seam(unittest.TestCase):
    COUNTED = ("int a; // of paged memory\n", "struct vr_sleeper *a;\n", "#include \"core/sleep/sleepers.h\"\n")
    NOT_COUNTED = ("return VRAM_ASLEEP;\n", "print(\"more sleep\");\n", "#include \"vram/sleep.h\"\n", "if (device->options.paged) a();\n")

    def check(self, text, path="allocator/core/a.c"):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / path
            file.parent.mkdir(parents=True)
            file.write_text(text)
            return run(sys.executable, TOOLS / "check_seam.py", folder)[0]

    def test_ten_lines_may_and_eleven_may_not(self):
        for line in self.COUNTED:
            with self.subTest(line):
                self.assertEqual((self.check(10 * line), self.check(11 * line)), (0, 1))

    def test_public_names_and_the_folders_behind_the_seam_are_not_counted(self):
        self.assertEqual(self.check(11 * "".join(self.NOT_COUNTED)), 0)
        self.assertEqual(self.check(11 * self.COUNTED[1], "allocator/core/sleep/a.c"), 0)



class Locks(unittest.TestCase):
    def exit_of(self, comment, body):
        with tempfile.TemporaryDirectory() as folder:
            core = Path(folder, "allocator/core")
            core.mkdir(parents=True)
            core.joinpath("a.h").write_text(f"// {comment}\nvoid vr_a(struct vr_device *device);\n")
            core.joinpath("a.c").write_text(f"void vr_a(struct vr_device *device) {{\n    {body}\n}}\n")
            return run(sys.executable, TOOLS / "check_locks.py", folder)

    def test_a_promise_needs_an_assertion(self):
        for comment in ("Ends it. Under all locks.", "Ends it. Under the device's lock.", "Called with the device locked."):
            code, output = self.exit_of(comment, "end(device);")
            self.assertEqual(1, code, comment)
            self.assertIn("vr_a() does not assert its lock", output)

    def test_assertions_and_functions_without_a_promise_pass(self):
        for name in ("VR_ASSERT_ALL_LOCKED", "VR_ASSERT_LOCKED", "VR_ASSERT_SETTLED"):
            self.assertEqual(0, self.exit_of("Ends it. Under all locks.", f"{name}(device);")[0], name)
        self.assertEqual(0, self.exit_of("Ends it. Takes all locks.", "end(device);")[0])

class Citations(unittest.TestCase):
    GOOD = {
        "README.md": "# Read me\n[the allocator](docs/internals/allocator.md), https://example.org/elsewhere.md\n",
        "docs/internals/allocator.md": "# The allocator\n\n## Best fit\n\n```\n# no heading\n```\n",
        "docs/formats/recording.md": "# The file\n\nSee [the allocator](../internals/allocator.md), `allocator.md` §best-fit.\n",
        "allocator/core/a.c": "// As in allocator.md §best-fit and docs/formats/recording.md; formats/recording.md §the-file.\n// 2.6 MiB, best-fit 3\n",
    }
    BAD = {
        "a section that is not there": ("allocator/a.c", "\n// allocator.md §no-heading\n", 2, "allocator.md has no section §no-heading"),
        "a page that is not there": ("cli/a.h", "// docs/convert.md\n", 1, "there is no page docs/convert.md"),
        "a page of another folder": ("tests/a.py", "# docs/allocator.md\n", 1, "there is no page docs/allocator.md"),
        "a page without a path that is not there": ("docs/x.md", "see `hot-path.md`\n", 1, "there is no page hot-path.md"),
        "a section of nothing": ("allocator/a.c", "// x\n// the hot path §3\n", 2, "a section of which page?"),
        "a number of a document elsewhere": ("allocator/a.c", "// (allocator-behaviour 3.1.6)\n", 1, "'allocator-behaviour 3.1.6' is not in the tree"),
        "a chapter of a document elsewhere": ("allocator/a.c", "// (exact-replay 1)\n", 1, "'exact-replay' is not in the tree"),
    }

    def check(self, extra=None):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**self.GOOD, **dict([extra[:2]] if extra else [])}.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            (Path(folder) / "Makefile").touch()
            (Path(folder) / "CMakeLists.txt").touch()
            return run(sys.executable, TOOLS / "check_citations.py", folder)

    def test_a_good_tree_passes(self):
        code, text = self.check()
        self.assertEqual(code, 0, text)

    def test_every_dead_citation_is_found(self):
        for name, bad in self.BAD.items():
            with self.subTest(name):
                code, text = self.check(bad)
                self.assertEqual(code, 1, text)
                self.assertIn(f"{bad[0]}:{bad[2]}: {bad[3]}", text)


class Assertions(unittest.TestCase):
    GOOD = {
        "docs/internals/assertions.md": "# Assertions\n\n| kind | rooms |\n|---|---|\n| an argument | `allocator/os` |\n",
        "allocator/os/os.c": "static_assert(1); _Static_assert(1, \"\");\nvoid f(int a) { assert(a == 1 && a <= 2 && a != 3); } // assert(a = 1)\n",
        "cli/main.c": "int main(void) { return 0; }\n",
    }
    BAD = {
        "an assignment": ("allocator/os/a.c", "\nassert(a = 1);\n", "allocator/os/a.c:2: an assertion changes something"),
        "a step": ("allocator/os/a.c", "assert(a++ == 1);\n", "allocator/os/a.c:1: an assertion changes something"),
        "a room that the page does not name": ("allocator/core/a.c", "assert(a);\n", "docs/internals/assertions.md:1: core has assertions and is in no row of the page"),
        "a room that has none": ("allocator/os/os.c", "\n", "docs/internals/assertions.md:1: os has no assertion"),
        "the command": ("cli/main.c", "\n\nassert(argc > 0);\n", "cli/main.c:3: an assertion where only input is met"),
        "a page without a table": ("docs/internals/assertions.md", "# Assertions\n", "docs/internals/assertions.md:1: os has assertions and is in no row"),
    }

    def check(self, extra=None):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**self.GOOD, **dict([extra[:2]] if extra else [])}.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return run(sys.executable, TOOLS / "check_assertions.py", folder)

    def test_a_good_tree_passes(self):
        code, text = self.check()
        self.assertEqual(code, 0, text)

    def test_every_offence_is_found(self):
        for name, bad in self.BAD.items():
            with self.subTest(name):
                code, text = self.check(bad)
                self.assertEqual(code, 1, text)
                self.assertIn(bad[2], text)


class Circles(unittest.TestCase):
    def check(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root, objects = Path(folder), Path(folder) / "objects"
            for name, text in files.items():
                source, target = root / "allocator" / name, objects / "products/allocator/CMakeFiles/vram_objects.dir" / (name + ".o")
                for path in (source, target):
                    path.parent.mkdir(parents=True, exist_ok=True)
                source.write_text(text)
                code, output = run(CC, "-c", source, "-o", target)
                self.assertEqual(code, 0, output)
            (objects / "products/allocator/CMakeFiles/vram_objects.dir/core/gone.c.o").write_bytes(b"no object, and no source")
            return run(sys.executable, TOOLS / "check_circles.py", root, objects)

    GOOD = {
        "core/low.c": "int vr_low(void) { return 1; }\n",
        "core/source/high.c": "int vr_low(void); int vr_high(void) { return vr_low(); }\n",
        "live/other.c": "int vr_high(void); int vr_other(void) { return vr_high(); }\n",
    }

    def test_files_that_stand_on_each_other_pass(self):
        code, text = self.check(self.GOOD)
        self.assertNotIn("a circle of", text)
        self.assertIn("3 files of 2 rooms", text)

    def test_a_circle_is_found(self):
        code, text = self.check({**self.GOOD, "core/low.c": "int vr_high(void); int vr_low(void) { return vr_high(); }\n"})
        self.assertEqual(code, 1, text)
        self.assertIn("core: a circle of 2 files: low source/high", text)

    def test_an_empty_folder_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(run(sys.executable, TOOLS / "check_circles.py", folder, folder)[0], 1)


class Symbols(unittest.TestCase):
    def build(self, source):
        """Compiles one file into a shared library and an archive; returns their paths."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        base = Path(folder.name)
        (base / "x.c").write_text(source)
        flags = ["-O1", "-fPIC", "-fno-builtin", "-fno-stack-protector"]
        for command in (
            [CC, *flags, "-c", base / "x.c", "-o", base / "x.o"],
            [CC, "-shared", base / "x.o", "-o", base / "x.so"],
            ["ar", "rcs", base / "x.a", base / "x.o"],
        ):
            code, text = run(*command)
            self.assertEqual(code, 0, text)
        return base / "x.so", base / "x.a"

    def check(self, source, option):
        shared, static = self.build(source)
        return run(sys.executable, TOOLS / "check_symbols.py", option, shared if option == "--shared" else static)

    def test_a_good_library_passes(self):
        source = "#include <stdlib.h>\nvoid *vram_get(void) { return malloc(8); }\n"
        self.assertEqual(self.check(source, "--shared")[0], 0)
        self.assertEqual(self.check(source + "int vr_inner(void) { return 1; }\n", "--static")[0], 0)

    def test_foreign_exports_are_found(self):
        for name in ("helper", "vr_inner"):
            code, text = self.check(f"int vram_a(void) {{ return 0; }} int {name}(void) {{ return 1; }}\n", "--shared")
            self.assertEqual(code, 1)
            self.assertIn(f"exported, but not vram_*: {name}", text)

    def test_foreign_global_names_are_found(self):
        code, text = self.check("int vram_a(void) { return 0; } int counter = 3; int helper(void) { return 1; }\n", "--static")
        self.assertEqual(code, 1)
        self.assertIn("neither vr_* nor vram_*: counter", text)
        self.assertIn("neither vr_* nor vram_*: helper", text)

    def test_printing_and_exiting_are_found(self):
        for call in ('printf("x")', 'puts("x")', "exit(1)", "abort()", 'system("x")', 'perror("x")'):
            with self.subTest(call):
                code, text = self.check(
                    f"#include <stdio.h>\n#include <stdlib.h>\nvoid vram_a(void) {{ (void){call}; }}\n", "--static")
                self.assertEqual(code, 1, text)
                self.assertIn("imported, but not in the list: " + call[: call.index("(")], text)

    def test_an_empty_library_fails(self):
        self.assertEqual(self.check("static int x; int *vram(void);\n", "--shared")[0], 1)
        self.assertEqual(self.check("extern int x;\n", "--static")[0], 1)


class Coverage(unittest.TestCase):
    """A docs/coverage.md of a small tree, with one test of each kind and one name in each list."""

    FILES = {
        "allocator/config/options.def": "VR_OPTION(speed, SIZE, speed, 0, KEEP, \"MiB\", \"how fast\")\n",
        "allocator/include/vram/stats.h": "#define VRAM_STAT_FAMILIES(X) \\\n    X(count, 0, \"things\")\n\nstruct vram_stats {\n",
        "allocator/include/vram/history.h": "struct vram_history_options {\n    bool loud; // hear it\n};\n",
        "allocator/include/vram/snapshot.h": "struct vram_snapshot_options {\n    const struct vram_pool *pool; // its own\n};\n",
        "tests/unit/test_one.c": "static void runs(void **state) {}\nstatic void idle(void **state) {}\ncmocka_unit_test(runs)\n",
        "tests/two/test_two.py": "class Two:\n    def test_it(self):\n",
        "viewer/web/tests/page.test.mjs": "",
        "tests/real/rows.toml": '[[rows]]\nenvironments = ["torch"]\nnames = ["real"]\n\n[[rows]]\nenvironments = ["older"]\nnames = ["late"]\n',
        "tests/two/CMakeLists.txt": "foreach(name IN ITEMS left right)\n  add_test(NAME two.${name} COMMAND x)\nendforeach()\n",
    }
    PAGE = ("`speed` `count` `loud` `pool`\n\n| claim | test |\n|---|---|\n| a | `test_one:runs` |\n| b | `test_two:test_it`, `two.right` |\n"
            "| `c\\|d` | - nobody can say, so nobody does |\n| e | `unit.test_one`, `viewer.page`, and `torch/real` |\n")

    def check(self, page):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**self.FILES, "tests/coverage.md": page}.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return run(sys.executable, TOOLS / "check_coverage.py", folder)

    def test_a_good_page_passes(self):
        code, text = self.check(self.PAGE)
        self.assertEqual((code, text), (0, "4 rows, 0 problems\n"))

    def test_every_mistake_is_found(self):
        for row, wanted in (
            ("`test_one:gone`", "there is no test test_one:gone"),
            ("`test_one:idle`", "there is no test test_one:idle"),  # defined but not run
            ("`test_none:runs`", "there is no test test_none:runs"),
            ("`test_two:test_other`", "there is no test test_two:test_other"),
            ("`test_one:runs`, `two.middle`", "ctest knows no two.middle"),
            ("`viewer.none`", "ctest knows no viewer.none"),
            ("`test_one:runs`, `torch/none`", "no program of make check-real is torch/none"),
            ("`test_one:runs`, `torch/late`", "no program of make check-real is torch/late"),
            ("", "neither a test nor a reason"),
            ("- so", "neither a test nor a reason"),
            ("of course it does", "neither a test nor a reason"),
        ):
            with self.subTest(row):
                code, text = self.check(self.PAGE + f"| f | {row} |\n")
                self.assertEqual(code, 1, text)
                self.assertIn(f"tests/coverage.md:9: {wanted}", text)

    def test_what_the_page_leaves_out_is_found(self):
        for name in ("speed", "count", "loud", "pool"):
            code, text = self.check(self.PAGE.replace(f"`{name}`", name))
            self.assertEqual(code, 1, text)
            self.assertIn(f"{name} of ", text)

    def test_a_page_without_rows_fails(self):
        self.assertEqual(self.check("`speed` `count` `loud` `pool`\n")[0], 1)


class Wheel(unittest.TestCase):
    """Tests the lines that check_wheel.py prints if an answer differs from the native command's."""

    def told(self, got, want):
        sys.path.insert(0, str(TOOLS.parent / "tests/packages"))
        import check_wheel

        found = []
        check_wheel.same(found, "vram view", got, want)
        return found

    def test_the_same_is_nothing_to_tell(self):
        self.assertEqual(self.told((0, b"page", b""), (0, b"page", b"")), [])

    def test_a_page_that_differs_is_a_short_line_with_the_first_difference(self):
        page = b"<html>" + b"x" * 1_000_000
        told, = self.told((0, page + b"NEW" + page, b""), (0, page + b"old" + page, b""))
        self.assertLess(len(told), 300)
        self.assertNotIn("\n", told)
        for wanted in ("vram view: output: byte 1000006 of 2000015:", "NEW", "old"):
            self.assertIn(wanted, told)

    def test_every_part_is_looked_at(self):
        for got, wanted in (((3, b"page", b""), "code: 3, not 0"), ((0, b"pag", b""), "output: byte 3 of 3"), ((0, b"page", b"no such file"), "errors: byte 0 of 12")):
            told, = self.told(got, (0, b"page", b""))
            self.assertIn(wanted, told)
        told, = self.told(b"2", b"1")
        self.assertIn("byte 0 of 1", told)


class Arguments(unittest.TestCase):
    """The checker must name exactly the lines whose result depends on the order of evaluation."""

    BEGIN = """#include <stdbool.h>
bool make(int *count);
int use(bool made, int count), look(const int *count), two(int a, int b);
struct pair { int a, b; };
#define BOTH(a, b) ((a) && (b))
"""
    BAD = [
        "int f(void) { int count = 0; return use(make(&count), count); }",
        "int f(void) { int count = 0; return use(count, make(&count)); }",
        "int f(void) { int i = 0; return two(i++, i); }",
        "int f(void) { int i = 0; return two(i, i += 2); }",
        "int f(void) { int i = 0; return two(1, two(i = 2, i)); }",
        "int f(void) { int i = 0; return two(make(&i), make(&i)); }",
        "int f(void) { int i = 0; return make(&i) + i; }",
        "int f(void) { int i = 0; struct pair p = {make(&i), i}; return p.a; }",
        "int f(void) { struct pair p = {0}; return two(make(&p.a), p.a); }",
        "struct pair g(struct pair p); int f(void) { struct pair p = {0}; return two(make(&p.a), g(p).b); }",
        "int f(void) { int list[2] = {0}; return two(make(list), list[1]); }",
        "int f(void) { int i = 0, list[2] = {0}; return two(make(&list[i++]), i); }",
        "int f(int n) { int list[2] = {0}; return two(make(&list[n]), list[1]); }",
        "int f(int (*call)(int *, int)) { int i = 0; return two(call(&i, 2), i); }",
    ]
    GOOD = [
        "int f(void) { int count = 0; const bool made = make(&count); return use(made, count); }",
        "int f(void) { int i = 0; return two(look(&i), i); }",
        "int f(void) { int i = 0; return make(&i) && i; }",
        "int f(void) { int i = 0; return BOTH(make(&i), i); }",
        "int f(void) { int i = 0; return make(&i) ? i : 2; }",
        "int f(void) { int i = 0; return two(1, (make(&i), i)); }",
        "int f(void) { int i = 0; return two(make(&i), sizeof i); }",
        "int f(void) { int i = 0, k = 0; return two(make(&i), make(&k)); }",
        "int f(void) { int i = 0; i = make(&i); return i; }",
        "int f(void) { struct pair p = {0}; return two(make(&p.a), p.b); }",
        "int f(void) { int list[2] = {0}; return two(make(&list[0]), list[1]); }",
        "int f(void) { int list[2] = {0}; return *(list + make(list)); }",
    ]

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = Path(cls.folder.name)
        (folder / "all.c").write_text(cls.BEGIN + "".join(f"{line.replace(' f(', f' f{n}(').replace(' g(', f' g{n}(')}\n" for n, line in enumerate(cls.BAD + cls.GOOD)))
        command = {"directory": str(folder), "file": "all.c", "command": "cc -std=c11 -c all.c"}
        (folder / "compile_commands.json").write_text(json.dumps([command]))
        cls.code, cls.output = run(sys.executable, TOOLS / "check_arguments.py", folder)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        if self.code == 77:
            self.skipTest("no Python binding of libclang")

    def lines(self):
        return {int(line.split(":")[1]) - self.BEGIN.count("\n") - 1 for line in self.output.splitlines() if "order of evaluation" in line}

    def test_each_way_is_found(self):
        self.assertEqual(self.code, 1, self.output)
        self.assertEqual([self.BAD[n] for n in range(len(self.BAD)) if n not in self.lines()], [])

    def test_what_is_in_order_is_good(self):
        self.assertEqual([self.GOOD[n - len(self.BAD)] for n in sorted(self.lines()) if n >= len(self.BAD)], [])

    def test_what_does_not_compile_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "bad.c").write_text("int f(void) { return nothing; }\n")
            command = {"directory": folder, "file": "bad.c", "command": "cc -c bad.c"}
            (Path(folder) / "compile_commands.json").write_text(json.dumps([command]))
            code, output = run(sys.executable, TOOLS / "check_arguments.py", folder)
        self.assertEqual(code, 1, output)
        self.assertIn("cannot be read", output)


class Words(unittest.TestCase):
    LONG = "word " * 36
    COMMENTS = {  # file -> (text, the line and the words of its fault; None: no fault)
        "allocator/core/good.c": ('// Returns whether nothing is left. Two blocks, 1 block.\nchar *text = "beside // anew";\n', None),
        "allocator/core/word.c": ("\n// Locks the device\n// beside the pool.\n", "2: 'beside'"),
        "allocator/core/block.h": ("/* First.\n *\n * Nobody waits. */\n", "3: 'Nobody'"),
        "allocator/core/trailing.c": ("int a; // what nobody has\n", "1: 'nobody'"),
        "allocator/core/fragment.c": ("// What a block has.\n", "1: 'What ...'"),
        "allocator/core/plural.h": ("// Takes 1 blocks.\n", "1: '1 blocks'"),
        "allocator/core/long.h": (f"// {LONG}end.\n", "1: a sentence of 37 words"),
        "allocator/core/list.h": (f"// {LONG[:100]}; {LONG[:100]}.\n", None),
        "adapters/doc.py": ('"""Lists."""\n\n\ndef f():\n    """Makes it\n    anew."""\n    return "anew"\n', "5: 'anew'"),
        "adapters/hash.py": ("text = 'beside # anew'  # as wanted\n", "1: 'as wanted'"),
        "tools/run.sh": ("#!/bin/sh\n# Runs all the same.\n", "2: 'all the same'"),
        "cli/CMakeLists.txt": ("# Whoever links it.\n", "1: 'Whoever'"),
        "viewer/web/src/a.ts": ("const a = `beside // anew`; // so much\n", "1: 'so much'"),
        "allocator/core/after.c": ("// Cuts the block, and the hole behind it.\n", "1: 'hole behind it'"),
        "allocator/core/backed.c": ("// Unmaps the memory behind the addresses. Sizes up to 2 MiB are powers of two.\n", None),
        "allocator/core/message.h": ("// INVALID_ARGUMENT with a sentence.\n", "1: 'with a sentence'"),
        "simulator/check/ended.c": ("// Waits until the copy is over.\n", "1: 'is over'"),
        "simulator/check/lives.c": ("// Compares the lives of both.\n", "1: 'the lives'"),
        "simulator/check/written.c": ("// Finds bytes that nothing wrote.\n", "1: 'that nothing wrote'"),
        "allocator/core/asleep.h": ("int a; // its memory is away\n", "1: 'memory is away'"),
        "allocator/core/pages.c": ("// Rounds to a page's borders.\n", "1: 'page's borders'"),
        "allocator/core/returns.c": ("// Gives whether it can.\n", "1: 'Gives whether ...'"),
        "cli/prints.c": ("// Says where it was.\n", "1: 'Says ...'"),
        "cli/amount.c": ("// The rest: 17.5 MiB are left.\n", "1: '17.5 MiB are '"),
    }
    PAGES = {
        "README.md": ("# What it does\n\nUse `beside`.\n\n```\nanew\n```\n\n    anew\n", None),
        "docs/cell.md": ("| a | b |\n|---|---|\n| one | none at\thand |\n| two | at hand |\n", "4: 'at hand'"),
        "docs/link.md": ("Text [goes by](beside.md)\nthe clock.\n", "1: 'goes by'"),
        "docs/item.md": (f"- short\n- {LONG}end\n", "2: a sentence of 37 words"),
        "docs/time.md": ("It takes a second of processor\ntime.\n", "1: 'processor time'"),
        "docs/verify.md": ("It finds wrong frees.\n", "1: 'wrong frees'"),
        "docs/weights.md": ("The engine makes up weights.\n", "1: 'makes up weights'"),
    }
    MESSAGES = {
        "cli/good.c": ('say("vram: %s is not a percentage, such as 5%%"); // name it in PATH\n', None),
        "cli/share.c": ('say("vram: %s is neither a size nor a share, such as 5%%");\n', "1: 'nor a share'"),
        "cli/name.c": ('say("not found; name it in PATH");\n', "1: 'name it in P'"),
        "cli/number.c": ('say("%s are live at the peak");\n', "1: '%s are live'"),
        "adapters/fit/weights.py": ('print(f"{size} GB of made-up weights")\n', "1: 'made-up weights'"),
        "viewer/web/src/good.ts": ("// picked\nsay(`Selected ${label}`, \"picked\");\n", None),
        "viewer/web/src/pick.ts": ("say(`Picked ${label}`);\n", "1: 'Picked'"),
        "viewer/web/src/who.ts": ('say("Who held it");\n', "1: 'Who held'"),
        "viewer/web/src/share.ts": ('say("a number or a share such as 5 %");\n', "1: 'a share such'"),
        "tests/cli/golden/a.txt": ("1 blocks\n", "1: '1 blocks'"),
    }

    def check(self, files, kind):
        with tempfile.TemporaryDirectory() as folder:
            for name, (text, _) in files.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return run(sys.executable, TOOLS / "check_words.py", folder, *kind)

    def found(self, files, kind):
        code, text = self.check(files, kind)
        expected = sorted(f"{name}:{fault}" for name, (_, fault) in files.items() if fault)
        faults = sorted(text.splitlines()[:-1])
        self.assertEqual(len(faults), len(expected), text)
        for fault, start in zip(faults, expected):
            self.assertTrue(fault.startswith(start), fault)
        self.assertEqual(code, 1)

    def test_faults_of_comments_are_found(self):
        self.found(self.COMMENTS, ["--comments"])

    def test_faults_of_pages_are_found(self):
        self.found(self.PAGES, ["--pages"])
        self.found({"docs/item.md": self.PAGES["docs/item.md"], "docs2.md": ("beside\n", None)}, ["--pages", "docs"])

    def test_faults_of_messages_are_found(self):
        self.found(self.MESSAGES, [])

    def test_good_prose_passes(self):
        for files, kind in ((self.COMMENTS, ["--comments"]), (self.PAGES, ["--pages"]), (self.MESSAGES, [])):
            self.assertEqual(self.check({name: row for name, row in files.items() if row[1] is None}, kind)[0], 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
