#!/usr/bin/env python3
"""Checks the programs of cases.tsv as texts: each has a row and each row a file, and they are small, with marks, and close to their twins."""
import ast
import difflib
import unittest

import check_programs as sources

KINDS = {"freed-in-use", "race", "host-race", "stale-graph", "use-after-free", "out-of-bounds", "never-written", "collective", "sharing", "misuse"}
MOST_LINES, MOST_LINES_REBUILT, MOST_CHANGED = 40, 60, 2
LEAST, LEAST_REBUILT = 80, 10


class Sources(unittest.TestCase):
    def setUp(self):
        self.programs = sources.programs()

    def test_table_and_files_agree(self):
        files = {path.relative_to(sources.HERE / "programs").with_suffix("").as_posix() for path in (sources.HERE / "programs").glob("*/*.*")}
        rows = [f"{program.language}/{program.name}" for program in self.programs]
        self.assertEqual(sorted(files), sorted(rows))
        self.assertEqual(len(rows), len({program.name for program in self.programs}))

    def test_known_misses_are_programs(self):
        self.assertLessEqual(sources.known_misses().keys(), {program.name for program in self.programs})

    def test_there_are_enough_of_all_kinds(self):
        rebuilt = [program for program in self.programs if program.thread]
        self.assertGreaterEqual(len(self.programs) - len(rebuilt), LEAST)
        self.assertGreaterEqual(len(rebuilt), LEAST_REBUILT)
        self.assertEqual({kind for program in self.programs for kind in program.kinds}, KINDS)

    def test_programs_are_small_and_marked(self):
        for program in self.programs:
            with self.subTest(program.name):
                self.assertLessEqual(program.source().count("\n"), MOST_LINES_REBUILT if program.thread else MOST_LINES)
                self.assertTrue({"use", "launch"} & set(program.marks()))

    def test_twins_differ_in_the_lines_that_mend_the_mistake(self):
        for program in self.programs:
            with self.subTest(program.name):
                self.assertEqual(len(program.source().splitlines()), len(program.twin().splitlines()))
                changed = [line for line in difflib.ndiff(program.source().splitlines(), program.twin().splitlines()) if line.startswith("+ ")]
                self.assertIn(len(changed), range(1, MOST_CHANGED + 1))
                if program.language not in sources.C_LANGUAGES:
                    ast.parse(program.twin())

    def test_reports_are_named_in_the_programs(self):
        for program in filter(lambda program: program.thread, self.programs):
            repository, number = program.thread.rsplit("/", 1)[1].split("#")
            with self.subTest(program.name):
                self.assertIn(f"{repository} #{number}:", program.source().splitlines()[0])


if __name__ == "__main__":
    unittest.main()
