#!/usr/bin/env python3
"""Tests `vram fit --vary` with several arguments, and `--search`: which variants run, what their command lines are, and what the answer says.

usage: test_search.py VRAM
"""
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

VRAM = sys.argv.pop(1)
HERE = pathlib.Path(__file__).resolve().parent
GIB = 1 << 30
ENVIRONMENT = {name: value for name, value in os.environ.items() if "ALLOC_CONF" not in name and not name.startswith(("VRAM_", "PYTHON"))}

# 2 GiB divided by tp, and 1 GiB for each of mbs; a third with --ckpt.
PROGRAM = """
import os, sys, torch
values = dict(word.lstrip("-").split("=") for word in sys.argv[1:] if "=" in word)
tp, mbs = int(values["tp"]), int(values["mbs"])
if tp == 3: raise ValueError("3 does not divide 8 heads")
if mbs == 7: sys.exit("error: no data")
with open(os.environ["RAN"], "a") as file: print(*sys.argv[1:], file=file)
optimizer, weights = torch.Optimizer(), torch.empty((6 << 30) // tp)
for step in range(9):
    rows = torch.empty(mbs * (1 if "--ckpt" in sys.argv else 3) << 30)
    optimizer.step()
    torch.free(rows)
    print("tokens per step:", mbs * 1024, flush=True)
"""


def fit(*arguments, program=PROGRAM, words=()):
    """Returns the finished command, and the arguments of the programs that ran."""
    with tempfile.TemporaryDirectory() as folder:
        ran = pathlib.Path(folder, "ran")
        os.mkdir(folder + "/tmp")
        result = subprocess.run([VRAM, "fit", *arguments, "--", sys.executable, "-c", program, *words], capture_output=True, text=True, check=False,
                                env={**ENVIRONMENT, "PYTHONPATH": str(HERE / "fake"), "TMPDIR": folder + "/tmp", "RAN": str(ran)})
        assert os.listdir(folder + "/tmp") == [], os.listdir(folder + "/tmp")
        return result, ran.read_text().splitlines() if ran.exists() else []


def search(*arguments, **more):
    result, ran = fit("--search", "--json", *arguments, **more)
    assert result.stdout.startswith("{"), result.stderr
    return json.loads(result.stdout), ran, result


class Variants(unittest.TestCase):
    def test_every_combination_that_holds(self):
        answer, ran, _ = search("--vary", "--tp=1,2,4", "--vary", "--mbs=1,2,4", "--where", "tp*mbs = 4", "--where", "not tp=4")
        self.assertEqual([one["values"] for one in answer["variants"]], [{"tp": "1", "mbs": "4"}, {"tp": "2", "mbs": "2"}])
        self.assertEqual(ran, ["--tp=1 --mbs=4", "--tp=2 --mbs=2"])

    def test_where_a_value_goes(self):
        """In braces, instead of a value, or at the end. Expressions in braces are computed; other braces stay."""
        cases = ((("--mbs=1", "--tp=9"), "--mbs=2 --tp=1"), (("--x", "{mbs*tp+0.5}"), "--x 2.5 --tp=1 --mbs=2"), (("a{mbs}b{tp}", "{other}", '{"mbs": 1}'), 'a2b1 {other} {"mbs": 1}'),
                 (("--tp", "9"), "--tp 1 --mbs=2"), (("{mbs", "}"), "{mbs } --tp=1 --mbs=2"))
        for words, expected in cases:
            result, ran = fit("--vary", "--tp=1", "--vary", "--mbs=2", words=words, program="import os, sys; open(os.environ['RAN'], 'w').write(' '.join(sys.argv[1:]))")
            self.assertEqual(ran, [expected], result.stderr)

    def test_a_flag(self):
        for words, expected in (((), ["--tp=1 --mbs=1", "--tp=1 --mbs=1 --ckpt"]), (("--ckpt", "--tp=1", "--mbs=1"), ["--tp=1 --mbs=1", "--ckpt --tp=1 --mbs=1"])):
            answer, ran, _ = search("--vary", "--tp=1", "--vary", "--mbs=1", "--vary", "--ckpt", words=words)
            self.assertEqual(ran, expected)
            self.assertEqual([one["values"]["ckpt"] for one in answer["variants"]], ["0", "1"])
        answer, ran, _ = search("--vary", "--tp=1", "--vary", "--mbs=1", "--vary", "--ckpt", "--where", "ckpt")
        self.assertEqual(ran, ["--tp=1 --mbs=1 --ckpt"])

    def test_a_variable_of_the_environment(self):
        program = "import os, sys; open(os.environ['RAN'], 'a').write(os.environ['SIZE'] + '\\n')"
        result, ran = fit("--vary", "SIZE=4,8", "--search", program="import os, sys; os.execvp('env', ['env', *sys.argv[1:], sys.executable, '-c', " + repr(program) + "])", words=("SIZE=1",))
        self.assertEqual(ran, ["4", "8"], result.stderr)

    def test_equal_command_lines_run_once(self):
        answer, ran, _ = search("--vary", "--tp=1,1", "--vary", "--mbs=1,2,2", "--work", "mbs")
        self.assertEqual(sorted(ran), ["--tp=1 --mbs=1", "--tp=1 --mbs=2"])
        self.assertEqual([(one["work"], one["need_bytes"] // GIB, one["same"]) for one in answer["variants"]],
                         [(2, 12, False), (2, 12, True), (2, 12, True), (2, 12, True), (1, 9, False), (1, 9, True)])

    def test_without_a_search_each_has_an_answer(self):
        result, ran = fit("--json", "-q", "--vary", "--tp=1,2", "--vary", "--mbs=1,2", "--where", "tp != mbs")
        self.assertEqual([(one["varied"], one["fits"]) for one in json.loads(result.stdout)], [("--tp=1 --mbs=2", True), ("--tp=2 --mbs=1", True)])


class Answers(unittest.TestCase):
    def test_the_best_is_the_best_of_all_run_alone(self):
        arguments = [(tp, mbs, ckpt) for tp, mbs, ckpt in itertools.product((1, 2, 4), (1, 2, 4, 8, 16), (False, True))]
        alone = {}
        for tp, mbs, ckpt in arguments:
            words = (f"--tp={tp}", f"--mbs={mbs}", *["--ckpt"] * ckpt)
            one = json.loads(fit("-q", "--json", "--card", "rtx4090", words=words)[0].stdout)
            alone[tp, mbs, ckpt] = one["fits"], one["need_bytes"]
        answer, ran, result = search("--card", "rtx4090", "--vary", "--tp=1,2,4", "--vary", "--mbs=1,2,4,8,16", "--vary", "--ckpt", "--work", "mbs*tp")
        self.assertEqual((len(ran), len(answer["variants"]), answer["complete"], result.returncode), (30, 30, True, 0))
        for one in answer["variants"]:
            values = int(one["values"]["tp"]), int(one["values"]["mbs"]), one["values"]["ckpt"] == "1"
            fits, need = alone[values]
            self.assertEqual((one["outcome"], one["fits_on"]), ("fits", ["rtx4090"]) if fits else ("does_not_fit", []), values)
            self.assertEqual(one["work"], values[0] * values[1])
            if fits:
                self.assertEqual(one["need_bytes"], need, values)
        best = max((values[0] * values[1], -need) for values, (fits, need) in alone.items() if fits)
        found = answer["variants"][answer["best"][0]["variant"]]
        self.assertEqual((answer["best"][0]["card"], found["work"], -found["need_bytes"]), ("rtx4090", *best))
        points = [(one["work"], one["need_bytes"]) for one in answer["variants"] if one["outcome"] == "fits"]
        for one in answer["variants"]:
            point = one["work"], one["need_bytes"]
            beaten = any(work >= point[0] and need <= point[1] and (work, need) != point for work, need in points)
            self.assertEqual(one["frontier"], one["outcome"] == "fits" and not beaten, one["values"])

    def test_the_most_work_runs_first(self):
        _, ran, _ = search("--vary", "--tp=1,2", "--vary", "--mbs=1,4,2", "--work", "mbs*10 + tp")
        self.assertEqual(ran, ["--tp=2 --mbs=4", "--tp=1 --mbs=4", "--tp=2 --mbs=2", "--tp=1 --mbs=2", "--tp=2 --mbs=1", "--tp=1 --mbs=1"])

    def test_the_work_that_is_printed(self):
        answer, _, _ = search("--vary", "--tp=1", "--vary", "--mbs=1,2", "--printed", "step: ([0-9]+)")
        self.assertEqual([one["work"] for one in answer["variants"]], [1024, 2048])
        answer, _, _ = search("--vary", "--tp=1,2", "--vary", "--mbs=1", "--printed", "step: ([0-9]+)", "--work", "printed*tp")
        self.assertEqual([one["work"] for one in answer["variants"]], [1024, 2048])
        answer, _, _ = search("--vary", "--tp=1", "--vary", "--mbs=1", "--printed", "nothing ([0-9]+)")
        self.assertEqual([(one["work"], one["outcome"]) for one in answer["variants"]], [(None, "fits")])

    def test_several_cards(self):
        answer, _, result = search("--card", "rtx4090,h100", "--vary", "--tp=1", "--vary", "--mbs=1,8,40", "--work", "mbs")
        self.assertEqual([(one["values"]["mbs"], one["outcome"], one["fits_on"]) for one in answer["variants"]],
                         [("40", "does_not_fit", []), ("8", "does_not_fit", ["h100"]), ("1", "fits", ["h100", "rtx4090"])])
        self.assertEqual({one["card"]: answer["variants"][one["variant"]]["work"] for one in answer["best"]}, {"h100": 8, "rtx4090": 1})
        text = fit("--search", "--card", "rtx4090,h100", "--vary", "--tp=1", "--vary", "--mbs=1,8,40", "--work", "mbs")[0].stdout
        for line in ("Most work on h100: --tp=1 --mbs=8\n", "Most work on rtx4090: --tp=1 --mbs=1\n", "  Needs          30.0 GiB\n",
                     "  Ran            3 of 3 variants in"):
            self.assertIn(line, text)
        self.assertTrue(max(map(len, text.splitlines())) <= 80, text)

    def test_a_limit(self):
        answer, _, result = search("--memory", "12GiB", "--vary", "--tp=1", "--vary", "--mbs=1,4", "--work", "mbs")
        self.assertEqual([(one["work"], one["outcome"]) for one in answer["variants"]], [(4, "does_not_fit"), (1, "fits")])
        self.assertEqual((answer["best"], answer["limit_bytes"], result.returncode), ([{"card": None, "variant": 1}], 12 * GIB, 0))
        text = fit("--search", "--memory", "12GiB", "--vary", "--tp=1", "--vary", "--mbs=1,4", "--work", "mbs")[0].stdout
        self.assertTrue(text.startswith("Most work in 12.0 GiB: --tp=1 --mbs=1\n"), text)

    def test_a_card_with_less_memory_than_the_need(self):
        """The program holds 12 and then 16 GiB. With less memory than it reserves, it releases what is idle; a note says so. It is absent otherwise."""
        program = "import os\nos.environ['FAKE_IDLE'] = '40960'\nimport torch\noptimizer = torch.Optimizer()\nfor step in range(5):\n    for size in 12, 16:\n        torch.free(torch.empty(size << 30))\n    optimizer.step()"
        note = "fits if it completes after the allocator"
        result, _ = fit("--search", "--vary", "--tp=1", "--card", "rtx4090,h100", program=program)
        self.assertIn("h100, rtx4090\n", result.stdout)
        self.assertIn(note, result.stdout)
        result, _ = fit("--search", "--vary", "--tp=1", "--card", "h100", program=program)
        self.assertNotIn(note, result.stdout)

    def test_failures_do_not_end_the_search(self):
        answer, _, result = search("--vary", "--tp=3,1", "--vary", "--mbs=7,1")
        self.assertEqual([one["outcome"] for one in answer["variants"]], ["failed", "failed", "failed", "fits"])
        self.assertIn("ValueError: 3 does not divide 8 heads", answer["variants"][0]["failure"])
        self.assertIn("Its last line of output: error: no data", answer["variants"][2]["failure"])
        self.assertEqual(result.returncode, 0)
        text = " ".join(fit("--search", "--vary", "--tp=3,1", "--vary", "--mbs=7,1")[0].stdout.split())
        self.assertEqual(text.count("ValueError: 3 does not divide 8 heads"), 1)
        self.assertIn("4 of 4 variants in", text)
        self.assertIn(": 1 fits, 0 do not, 3 failed", text)

    def test_exit_codes(self):
        for values, code in (("--mbs=1", 0), ("--mbs=40", 1), ("--mbs=40,1", 0), ("--mbs=7", 3)):
            self.assertEqual(fit("--search", "--vary", "--tp=1", "--vary", values)[0].returncode, code, values)

    def test_a_program_that_is_not_there(self):
        result = subprocess.run([VRAM, "fit", "--search", "--json", "--vary", "--a=1,2", "--", "./no-such-program"], capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stdout), (3, ""))
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)

    def test_an_argument_that_the_program_does_not_use(self):
        answer, _, _ = search("--vary", "--tp=1,2", "--vary", "--mbs=1", "--vary", "--unused=1,2,3")
        self.assertEqual(answer["without_effect"], ["unused"])
        result, _ = fit("--search", "--vary", "--tp=1,2", "--vary", "--mbs=1", "--vary", "--unused=1,2,3")
        self.assertIn("No effect --unused: variants that differ only in it have the same peaks; does the program use it?", " ".join(result.stdout.split()))
        # A single value, or no two variants that ran, are no grounds.
        answer, _, _ = search("--vary", "--tp=1,3", "--vary", "--mbs=1")
        self.assertEqual(answer["without_effect"], [])

    def test_all_fail(self):
        """A failed run is a failure first, not one that does not fit."""
        for values, said in (("--tp=3", "The variant failed"), ("--tp=3,03", "All 2 variants failed")):
            result, _ = fit("--search", "--vary", values, "--vary", "--mbs=1")
            self.assertEqual((result.returncode, result.stdout.splitlines()[0]), (3, said))


class Budget(unittest.TestCase):
    SLOW = PROGRAM.replace("optimizer, weights", "import time; time.sleep(100 if mbs < 4 else 0); optimizer, weights")

    def test_it_is_kept_and_said(self):
        begin = time.monotonic()
        answer, ran, result = search("--vary", "--tp=1", "--vary", "--mbs=8,4,2,1", "--work", "mbs", "--budget", "15s", program=self.SLOW)
        self.assertLess(time.monotonic() - begin, 80)
        self.assertEqual([one["outcome"] for one in answer["variants"]], ["fits", "fits", "not_run", "not_run"])
        self.assertEqual((answer["complete"], answer["best"][0]["variant"], result.returncode), (False, 0, 0))

    def test_what_is_proven(self):
        text = " ".join(fit("--search", "--vary", "--tp=1", "--vary", "--mbs=8,4,2", "--work", "mbs", "--budget", "15s", program=self.SLOW)[0].stdout.split())
        self.assertIn("all variants with more work ran, and none of them fits", text)
        self.assertIn("2 of 3 variants in", text)
        self.assertIn("then the time of --budget was over", text)
        text = " ".join(fit("--search", "--vary", "--tp=1", "--vary", "--mbs=8,2", "--budget", "15s", program=self.SLOW)[0].stdout.split())
        self.assertIn("1 of the variants did not run, and may need less memory", text)

    def test_what_the_time_ended(self):
        """A variant that --for ended before it used device memory failed for that reason. Without work, variants that did not run may need less memory, not do more."""
        waits = "import sys, time\nif sys.argv[1] == '--tp=1': time.sleep(60)\n" + PROGRAM
        result, _ = fit("--search", "--vary", "--tp=1,2", "--vary", "--mbs=1", "--for", "4s", program=waits)
        self.assertIn("The time of --for was over", result.stdout)
        self.assertNotIn("used no device memory", result.stdout)
        result, _ = fit("--search", "--vary", "--tp=2,1", "--vary", "--mbs=1", "--budget", "6s", program=waits)
        self.assertIn("1 of the variants did not run, and may need less memory", " ".join(result.stdout.split()))


class Mistakes(unittest.TestCase):
    def test_one_line_and_nothing_runs(self):
        two = ("--vary", "--tp=1,2", "--vary", "--mbs=1")
        cases = ((("--search",), "--search needs --vary"), (("--where", "1"), "--where needs --vary"), ((*two, "--work", "mbs"), "--work needs --search"),
                 ((*two, "--budget", "1m"), "--budget needs --search"), ((*two, "--printed", "(x)"), "--printed needs --search"),
                 ((*two, "--search", "--budget", "soon"), "--budget takes a time"), ((*two, "--search", "--budget", "-1"), "--budget takes a time"),
                 ((*two, "--search", "-o", "x"), "--search keeps no recording"), ((*two, "--each"), "--each and --vary cannot be used together"),
                 ((*two, "--where", "tp*"), "--where 'tp*': it ends where a value is expected"), ((*two, "--where", "pp"), "--where 'pp': there is no 'pp'"),
                 ((*two, "--where", "tp > 5"), "--where holds for none of the combinations"), ((*two, "--search", "--work", "8/(tp-1)"), "--work '8/(tp-1)': it divides by 0"),
                 ((*two, "--search", "--work", "'a'"), "it is a text, not a number"), ((*two, "--search", "--work", "printed"), "there is no 'printed'"),
                 ((*two, "--search", "--printed", "x"), "has no group in parentheses"), ((*two, "--search", "--printed", "("), "invalid regular expression"),
                 (("--vary", "=1"), "--vary takes an argument"), (("--vary", "batch"), "--vary takes an argument"), (("--vary", "--"), "--vary takes an argument"),
                 (("--vary", "--a=1", "--vary", "-a=2"), "--vary has 'a' twice"), (("--vary", "--a=" + ",".join("1" * 65)), "at most 64 values"),
                 ([word for i in range(17) for word in ("--vary", f"--a{i}=1")], "--vary can be given at most 16 times"),
                 ([word for i in range(4) for word in ("--vary", f"--a{i}=" + ",".join("1" * 50))], "--vary makes more than 1000000 combinations"),
                 ([word for i in range(3) for word in ("--vary", f"--a{i}=" + ",".join("1" * 25))], "--vary makes more than 10000 variants"))
        for options, said in cases:
            result, ran = fit(*options)
            first = result.stderr.splitlines()[0] if result.stderr else ""
            self.assertEqual((result.returncode, result.stdout, ran), (2, "", []), (options, result.stderr))
            self.assertIn(said, first, options)
        result, _ = fit(*two, words=("{tp*}",))
        self.assertIn("'{tp*}' in the program's arguments: it ends where a value is expected", result.stderr)
        self.assertEqual(result.returncode, 2)


# A launcher whose rank 0 notes which ranks are alike, as adapters/fit/vram_fit_kinds.py does: a rank of each of pp stages.
LAUNCHER = """
import os, pathlib, subprocess, sys
values = dict(word.lstrip("-").split("=") for word in sys.argv[1:] if "=" in word)
pp, count, folder = int(values["pp"]), int(values["nproc-per-node"]), pathlib.Path(os.environ["VRAM_FIT"])
running = os.environ.get("VRAM_SIM_RANKS", "8:0,1,2,3,4,5,6,7").partition(":")[2].split(",")
with open(os.environ["RAN"], "a") as file: print("pp", pp, "mbs", values["mbs"], "ranks", *running, file=file)
if os.environ.get("VRAM_FIT_SCOUTS") == "1":
    ranks = [stage * 8 // pp for stage in range(pp)]
    (folder / "kinds").write_text("run " + " ".join(map(str, ranks)) + "\\n" + "".join(f"kind {8 // pp} {rank} pp {rank} of {pp}\\n" for rank in ranks))
rank = "import os, torch\\noptimizer = torch.Optimizer()\\nweights = torch.empty(int(os.environ['GIB']) << 30)\\nfor step in range(9): optimizer.step()\\n"
ranks = [subprocess.Popen([sys.executable, "-c", rank], env={**os.environ, "RANK": str(i), "LOCAL_RANK": str(i), "CUDA_VISIBLE_DEVICES": str(i), "WORLD_SIZE": str(count), "GIB": values["mbs"]}) for i in range(count)]
sys.exit(max(rank.wait() for rank in ranks))
"""


class Ranks(unittest.TestCase):
    OPTIONS = ("--vary", "--pp=1,2", "--vary", "--mbs=1,2,4", "--work", "mbs*10 - pp", "--where", "ranks == 8")

    def test_what_was_found_about_ranks_is_used_again(self):
        """One rank of each stage runs. Rank 0 runs alone for a number of stages that is new, and the best runs with all of its ranks."""
        answer, ran, _ = search(*self.OPTIONS, program=LAUNCHER, words=("--nproc-per-node=8",))
        self.assertEqual(ran, ["pp 1 mbs 4 ranks 0", "pp 1 mbs 4 ranks 0",  # rank 0 alone, then its kind
                               "pp 2 mbs 4 ranks 0",  # as for pp 1, which is wrong
                               "pp 2 mbs 4 ranks 0", "pp 2 mbs 4 ranks 0 4", "pp 1 mbs 2 ranks 0", "pp 2 mbs 2 ranks 0 4", "pp 1 mbs 1 ranks 0",
                               "pp 2 mbs 1 ranks 0 4", "pp 1 mbs 4 ranks 0 1 2 3 4 5 6 7"])
        self.assertEqual([(one["ranks"], one["ran"], one["checked"]) for one in answer["variants"]], [(8, 8, True), (8, 2, False)] + [(8, 1, False), (8, 2, False)] * 2)
        self.assertEqual([one["need_bytes"] // GIB for one in answer["variants"]], [4, 4, 2, 2, 1, 1])

    def test_a_best_that_does_not_fit_with_all_ranks(self):
        differs = LAUNCHER.replace('"GIB": values["mbs"]', '"GIB": "90" if values["mbs"] == "4" and running[i] == "3" else values["mbs"]')
        answer, _, _ = search(*self.OPTIONS, program=differs, words=("--nproc-per-node=8",))
        found = answer["variants"][answer["best"][0]["variant"]]
        self.assertEqual((found["work"], found["checked"]), (19, True))
        self.assertEqual([(one["work"], one["outcome"], one["checked"]) for one in answer["variants"]][:3], [(39, "does_not_fit", True), (38, "does_not_fit", True), (19, "fits", True)])


if __name__ == "__main__":
    unittest.main()
