#!/usr/bin/env python3
"""Tests `vram fit`: how much memory programs need, on which cards they fit, and when they are stopped. Usage: test_fit.py VRAM PROGRAM [CLASS]"""
import json
import os
import pathlib
import re
import pickle
import signal
import subprocess
import sys
import tempfile
import time
import unittest

VRAM, PROGRAM = sys.argv[1:3]
HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20
ENVIRONMENT = {name: value for name, value in os.environ.items() if "ALLOC_CONF" not in name and not name.startswith(("VRAM_", "PYTHON"))}

TRAIN = """
import sys, torch
weights, optimizer = torch.empty(64 << 20), torch.optim_class()
for step in range(int(sys.argv[1])):
    batch = [torch.empty(size << 20) for size in (32, 16, 8)]
    [torch.free(one) for one in batch]
    if step == 0: state = torch.empty(128 << 20)
    optimizer.step()
    print("step", step, flush=True)
print("the end")
"""


# Parameters of 64 MiB, activations of 30 GiB, and gradients that the engine makes for its caller.
BATCHES = """
import sys, torch
class Model(torch.nn.Module):
    def forward(self): return torch.empty(30 << 30)
model, optimizer = Model(), torch.optim_class()
weights = torch.empty(64 << 20)
def step():
    loss = model()
    gradients = torch.autograd._engine_run_backward(64 << 20)
    torch.free(loss)
    return gradients
for i in range(int(sys.argv[1])):
    gradients = step()
    optimizer.step()
    [torch.free(one) for one in gradients]
"""


# Asks cuBLASLt which algorithm works with a workspace of 5 MiB.
HEURISTIC = """
import ctypes as c
cuda, lt, context, address, handle, count = c.CDLL('libcuda.so.1'), c.CDLL('libcublasLt.so.12'), c.c_void_p(), c.c_uint64(), c.c_void_p(), c.c_int()
cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0), cuda.cuCtxSetCurrent(context), cuda.cuMemAlloc_v2(c.byref(address), c.c_size_t(1 << 20))
def made(create, *arguments):
    one = c.c_void_p()
    assert create(c.byref(one), *arguments) == 0
    return one
lt.cublasLtCreate(c.byref(handle))
operation, preference = made(lt.cublasLtMatmulDescCreate, 68, 0), made(lt.cublasLtMatmulPreferenceCreate)
layouts = [made(lt.cublasLtMatrixLayoutCreate, 0, c.c_uint64(8), c.c_uint64(8), c.c_int64(8)) for _ in range(4)]
most = c.c_uint64(5 << 20)
assert lt.cublasLtMatmulPreferenceSetAttribute(preference, 1, c.byref(most), c.c_size_t(8)) == 0
assert lt.cublasLtMatmulAlgoGetHeuristic(handle, operation, *layouts, preference, 1, (c.c_char * 4096)(), c.byref(count)) == 0
"""


def fit(*arguments, **variables):
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run([VRAM, "fit", *arguments], capture_output=True, text=True, check=False,
                                env={**ENVIRONMENT, "PYTHONPATH": str(HERE / "fake"), "TMPDIR": folder, **variables})
        assert os.listdir(folder) == [], os.listdir(folder)
    return result


def python(program, *arguments):
    return ("--", sys.executable, "-c", program.replace("torch.optim_class", "torch.Optimizer"), *arguments)


class Driver(unittest.TestCase):
    def test_what_a_program_takes_of_the_driver(self):
        result = fit("--card", "t4", "--json", "--", PROGRAM, "0", "100", "200")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "100 MiB: 0\n200 MiB: 0\n")
        answer = json.loads(result.stdout)
        self.assertEqual((answer["allocated_bytes"], answer["ended"], answer["smallest_card"]), (300 * MIB, "end", "rtx3070"))
        self.assertEqual(answer["holdings"][0]["recorded_by"], "vram run")
        self.assertEqual([card["key"] for card in answer["cards"] if card["asked"]], ["t4"])

    def test_it_does_not_fit(self):
        result = fit("--card", "t4,h100", "--json", "--", PROGRAM, "0", "20000")
        answer = json.loads(result.stdout)
        self.assertEqual((result.returncode, answer["fits"], answer["ran_on"]), (1, False, "h100"))
        self.assertEqual({card["key"]: card["fits"] for card in answer["cards"] if card["asked"]}, {"t4": False, "h100": True})

    def test_the_limit_counts_the_context(self):
        for limit, code in (("800MiB", 1), ("900MiB", 0)):
            self.assertEqual(fit("--memory", limit, "-q", "--", PROGRAM, "0", "300").returncode, code, limit)

    def test_places_that_read_what_kernels_compute(self):
        program = (
            "import ctypes\ncuda, address, context, got = ctypes.CDLL('libcuda.so.1'), ctypes.c_ulonglong(), ctypes.c_void_p(), (ctypes.c_char * 8)()\n"
            "cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)\n"
            "cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1 << 20))\n"
        )
        # A frame of vram fit between the program and PyTorch is not named as the program's line.
        wrapped = "exec(compile('def wrapper(): cuda.cuMemcpyDtoH_v2(got, address, ctypes.c_size_t(8))', '/fit/vram_fit_weights.py', 'exec'))\nwrapper()\n"
        self.assertIn("<string>:6:<module> (1x)", fit("-q", *python(program + wrapped)).stdout)
        program += "cuda.cuMemcpyDtoH_v2(got, address, ctypes.c_size_t(8))\n" * 5
        text = fit("-q", *python(program)).stdout
        told = " ".join(text.split())
        self.assertIn("Values read kernel results, at 5 places; this run used zero or a likely value instead. The answer holds unless one of them determines a size", told)
        self.assertIn("<string>:5:<module> (1x)", told)
        self.assertIn("and 2 more (--json has all)", told)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_a_program_that_fails(self):
        result = fit("--", PROGRAM, "7", "100")
        self.assertEqual(result.returncode, 3)
        self.assertIn("the program failed (exit code 7)", result.stderr)
        self.assertEqual(fit("--", PROGRAM + "-that-is-not-there").returncode, 3)
        self.assertIn("used no device memory", fit("--", "true").stderr)

    def test_what_it_reads_can_be_said(self):
        program = "import ctypes\ncuda, context, count, address = ctypes.CDLL('libcuda.so.1'), ctypes.c_void_p(), ctypes.c_uint32(), ctypes.c_uint64()\n" \
                  "def take(size): return cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size << 20))\n" \
                  "def found(): return cuda.cuMemcpyDtoH_v2(ctypes.byref(count), address, ctypes.c_size_t(4))\n" \
                  "cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context), take(10), found()\n" \
                  "if count.value: take(count.value)\n"
        for options, size in (((), 10), (("--value", "found()=300"), 310)):
            answer = json.loads(fit("--json", *options, *python(program)).stdout)
            self.assertEqual(answer["allocated_bytes"], size * MIB)

    def test_operations_have_rules_and_bytes_at_stake(self):
        for options, size, stake in (((), 10, 0), (("--nonzero", "30"), 40, None), (("--value", "aten::nonzero=5"), 15, 5), (("--value", "aten::unique=5"), 10, 0)):
            result = fit("--json", "-q", *options, "--", PROGRAM, "0", "10", "found")
            answer = json.loads(result.stdout)
            self.assertEqual((answer["allocated_bytes"], [read["operation"] for read in answer["reads"]]), (size * MIB, ["nonzero"]), result.stderr)
            # A share of a count that no PyTorch kernel made is 0.
            self.assertEqual(answer["at_stake"] and answer["at_stake"]["allocated_bytes"] >> 20, stake if stake is None else 10 + stake, options)
            self.assertEqual("running again" in result.stderr, stake is not None)
        self.assertEqual(fit("--nonzero", "x", "--", "true").returncode, 2)
        text = " ".join(fit("-q", "--", PROGRAM, "0", "10", "found").stdout.split())
        self.assertIn("(1x, aten::nonzero)", text)
        self.assertIn("Data-dependent up to 0 B more reserved and 0 B more allocated if nonzero(), masks and unique() find all", text)

    def test_sizes_that_nobody_knows_are_named_with_what_they_may_come_to(self):
        result = fit("--json", *python(HEURISTIC))
        self.assertEqual(json.loads(result.stdout)["not_known"], [{"name": "CUBLASLT_MATMUL_WORKSPACE", "library": "size", "calls": 1, "stake_bytes": 5 * MIB}],
                         result.stderr)
        self.assertIn("Not known scratch memory of cuBLASLt, assumed to be none: up to 5.0 MiB", " ".join(fit("-q", *python(HEURISTIC)).stdout.split()))

    def test_until_and_for(self):
        for options, ended in ((("--until", "^20 MiB"), "FIT_UNTIL"), (("--for", "2s"), "FIT_TIME")):
            result = fit("--json", *options, "--", PROGRAM, "99", "10", "20")
            self.assertEqual(json.loads(result.stdout)["ended"], ended.split("_")[1].lower())

    def test_until_before_the_device(self):
        """The command ended the program: it did not fail."""
        result = fit("--until", "hi", "--", "sh", "-c", "echo hi; sleep 60")
        self.assertEqual((result.returncode, result.stdout), (3, ""))
        self.assertEqual(result.stderr.splitlines()[-1], "vram fit: nothing was recorded: its output matched --until before the program used device memory")

    def test_usage(self):
        for arguments in (("--card", "h1000", "--", "true"), ("--for", "x", "--", "true"), ("--steps", "x", "--", "true"), ("--until", "(", "--", "true"), ("--value", "*=x", "--", "true"), ()):
            self.assertEqual(fit(*arguments).returncode, 2, arguments)

    def test_bad_options_end_before_the_program_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            file = folder + "/file"
            pathlib.Path(file).touch()
            cases = ((("--steps", "0"), "--steps takes a number from 1 on, auto or all"), (("--devices", "0"), "--devices takes 1 to 64"), (("--memory", "0"), "--memory takes 1MiB or more"),
                     (("--set", "x=1"), "--set: unknown simulator option 'x'"), (("-o", folder + "/no/x"), f"--output: {folder}/no/x: No such file or directory"),
                     (("-o", file + "/x"), "Not a directory"), (("--fold", "0,9", "--", "torchrun", "--nproc-per-node", "4"), "--fold: there is no rank 9: the program has ranks 0 to 3"),
                     (("--write-plan", file, "--requests", "prompt=5,output=5"), f"--write-plan: {file}: Not a directory"),
                     (("--write-plan", "", "--requests", "prompt=5,output=5"), "--write-plan takes a folder"),
                     (("--write-plan", file + "/x", "--requests", "prompt=5,output=5"), "Not a directory"),
                     (("--requests", folder), "Is a directory"), (("--requests", "/dev/zero"), "is not a file"), (("--requests", file + "="), "prompt="),
                     (("--requests", "prompt=5,output=5,concurrency=0"), "'concurrency=0' is not one of"), (("--requests", "prompt=5,output=5,prompt=6"), "'prompt=6' is given twice"),
                     (("--write-plan", "/proc/x", "--requests", "prompt=5,output=5"), "--write-plan: /proc/x: Permission denied"), (("-o", "/proc/x"), "--output: /proc/x: Permission denied"),
                     (("--requests", "prompt=5,output=5,count=1000000000"), "count= takes 1 to 10000000 requests"), (("--requests", "prompt=5000000000,output=5"), "prompt= takes at most 100000000 tokens"),
                     (("--search", "--vary", "--x=,,"), "--vary has a value without a character: '--x=,,'"), (("--vary", "--x=1,"), "--vary has a value without a character: '--x=1,'"))
            for options, said in cases:
                result = fit(*options, *(() if "--" in options else ("--", sys.executable, "-c", "print('ran')")))
                self.assertIn(said, result.stderr.splitlines()[0], options)
                self.assertLessEqual(result.stderr.count("\n"), 2, result.stderr)  # with the line that names the help
                self.assertEqual((result.returncode, result.stdout), (2, ""), options)
                self.assertNotIn("ran\n", result.stderr)
            for text, said in (("{" + "1" * (2 << 20) + "\n", "line 1: it is longer than 1048576 characters"), ("{\"prompt_tokens\": 1}\0\n", "line 1: it has a zero byte")):
                pathlib.Path(file).write_text(text)
                self.assertIn(said, fit("--requests", file, "--", "true").stderr)
            self.assertEqual(os.listdir(folder), ["file"])


class Failures(unittest.TestCase):
    """The answer about a program that failed holds up to the failure."""

    FAILS = TRAIN.replace("optimizer.step()", "if step == 3: raise ValueError('a bug \\u00e4')\n    optimizer.step()")

    def test_the_answer_begins_with_the_failure(self):
        result = fit("-q", "--card", "t4,h100", *python(self.FAILS, "9", "--batch-size", "8"))
        self.assertEqual(result.returncode, 3)
        lines = result.stdout.splitlines()
        self.assertEqual(lines[:2], ["The program failed after 3 steps, at <string>:8:<module>: ValueError: a bug \u00e4",
                                     "At least 248.0 MiB on a GPU like h100 until then"])
        self.assertNotIn("Fits", result.stdout)
        self.assertNotIn("Smallest", result.stdout)
        self.assertIn("not known (78.4 GiB to spare until then)", result.stdout)
        self.assertIn("3 steps; the program failed (exit code 1)", result.stdout)
        self.assertLessEqual(max(map(len, lines)), 80)

    def test_in_json_nothing_is_sure(self):
        answer = json.loads(fit("--json", "--card", "h100", *python(self.FAILS, "9")).stdout)
        self.assertEqual((answer["fits"], answer["ended"], answer["steps"], answer["smallest_bytes"], answer["smaller"], answer["smallest_card"]),
                         (None, "failed", 3, None, None, ""))
        self.assertEqual((answer["failure"]["exception"], answer["failure"]["site"], answer["failure"]["try"]), ("ValueError: a bug \u00e4", "<string>:8:<module>", ""))
        self.assertEqual({card["fits"] for card in answer["cards"]}, {None})

    def test_a_card_that_is_too_small_until_then(self):
        program = self.FAILS.replace("128 << 20", "20 << 30")
        result = fit("-q", "--card", "rtx3060,h100", *python(program, "9"))
        self.assertIn("until then, too much for rtx3060\n", result.stdout)
        answer = json.loads(fit("--json", "-q", "--card", "rtx3060,h100", *python(program, "9")).stdout)
        self.assertEqual({card["key"]: card["fits"] for card in answer["cards"] if card["asked"]}, {"rtx3060": False, "h100": None})
        self.assertTrue(fit("-q", "--memory", "2GiB", *python(program, "9")).stdout.splitlines()[1].endswith("until then, more than the limit"))

    def test_before_the_first_step(self):
        program = "import torch\nkept = torch.empty(64 << 20)\ndef load(): raise SystemExit('no data')\nload()\n"
        page = fit("-q", *python(program)).stdout
        self.assertIn("The program failed before its first step ended (exit code 1). Its last line of\noutput: no data\n", page)
        self.assertRegex(page, r"  Ran            \d+\.\d s, the program failed \(exit code 1\)\n")
        self.assertIn("The program failed before its first step ended, at <string>:3:load: IndexError: list index",
                      fit("-q", *python(program.replace("raise SystemExit('no data')", "[][1]"))).stdout.replace("\n", " "))

    def test_children_of_the_program(self):
        """Children of multiprocessing print their own exceptions, and PyTorch's children exit with a code."""
        for way in ("raise KeyError('rank')", "\n    try: {}['rank']\n    except KeyError: sys.exit(3)"):
            program = ("import multiprocessing, sys, torch\ndef work():\n    kept = torch.empty(64 << 20)\n    " + way.replace("\n    ", "\n        ").strip() +
                       "\nchild = multiprocessing.get_context('fork').Process(target=work)\nchild.start(); child.join(); sys.exit(1)\n")
            program = program.replace("        except", "    except")
            result = fit("-q", *python(program))
            self.assertTrue(result.stdout.startswith("The program failed before its first step ended, at <string>:4:work: KeyError:\n'rank'\n"), result.stdout + result.stderr)

    def test_a_program_that_is_killed(self):
        program = "import os, signal\n" + TRAIN.replace("optimizer.step()", "step == 3 and os.kill(os.getpid(), signal.SIGKILL)\n    optimizer.step()")
        for options in ((), ("--json",)):
            result = fit("-q", *options, *python(program, "9"))
            self.assertEqual(result.returncode, 3)
            self.assertIn("nothing was recorded: the program ended before its recording was written", result.stderr)
        answer = json.loads(result.stdout)
        self.assertEqual((answer["fits"], answer["steps"], answer["least_bytes"], answer["failure"]["signal"]), (None, 3, 248 * MIB, 9))
        self.assertIn("The program was killed (signal 9) after 3 steps\nAt least 248.0 MiB reserved until the end of step 3\n", fit("-q", *python(program, "9")).stdout)

    def interrupted(self, number, *options):
        program = "import time\n" + TRAIN.replace("optimizer.step()", "step == 2 and (print('waits', flush=True), time.sleep(60))\n    optimizer.step()")
        command = [VRAM, "fit", "--card", "h100,t4", *options, *python(program, "9")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                              env={**ENVIRONMENT, "PYTHONPATH": str(HERE / "fake")}) as process:
            while "waits" not in process.stderr.readline():
                pass
            os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
            output, errors = process.communicate(timeout=60)
        return process.returncode, output, errors

    def test_an_interrupt_is_called_one(self):
        code, output, errors = self.interrupted(signal.SIGINT)
        self.assertEqual(code, 3, errors)
        self.assertTrue(output.startswith("The program was interrupted after 2 steps, at <string>:"), output)
        self.assertIn("the program was interrupted; the answer covers only what ran before", errors)
        self.assertNotIn("running again", errors)
        code, output, _ = self.interrupted(signal.SIGINT, "--json")
        self.assertEqual((json.loads(output)["fits"], json.loads(output)["ended"], json.loads(output)["failure"]["signal"]), (None, "interrupted", 2))
        code, output, _ = self.interrupted(signal.SIGTERM)
        self.assertEqual((code, output.splitlines()[0]), (3, "The program was terminated (signal 15) after 2 steps"))

    def test_every_run_has_the_signals_that_the_command_had(self):
        program = "import signal\nprint('has', signal.getsignal(signal.SIGINT) is signal.default_int_handler, signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)\n" + TRAIN
        result = fit("--vary", "--a=1,2", *python(program, "3"))
        self.assertEqual(result.stderr.count("has True True\n"), 2, result.stderr)

    def test_the_value_to_try(self):
        program = ("import ctypes, torch\ncuda, address, context, got = ctypes.CDLL('libcuda.so.1'), ctypes.c_ulonglong(), ctypes.c_void_p(), ctypes.c_int64()\n"
                   "cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)\n"
                   "cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1 << 20))\nweights = torch.empty(64 << 20)\n"
                   "cuda.cuMemcpyDtoH_v2(ctypes.byref(got), address, ctypes.c_size_t(8))\nprint(1 / got.value)\n")
        result = fit("-q", "--card", "h100", *python(program))
        told = " ".join(result.stdout.split())
        self.assertIn("ZeroDivisionError", told, result.stderr)
        self.assertIn("Try --value '<string>:6=1': just before it failed, the program read a kernel's result at <string>:6:<module> and got zeros", told)
        answer = json.loads(fit("--json", "-q", "--card", "h100", *python(program)).stdout)
        self.assertEqual(answer["failure"]["try"], "--value '<string>:6=1'")
        # With it the program completes.
        self.assertTrue(json.loads(fit("--json", "-q", "--value", "<string>:6=1", *python(program)).stdout)["fits"])
        # A failure far from a read has another cause.
        answer = json.loads(fit("--json", "-q", *python(program.replace("print(", "def fails():\n    print(") + "fails()\n")).stdout)
        self.assertEqual(answer["failure"]["try"], "")


class WentOn(unittest.TestCase):
    """A program that exits with 0 although a part of it failed, or after a memory error, says less than one that completes."""

    CHILD = "import torch\nkept = torch.empty(64 << 20)\nraise ValueError('no data')\n"
    PARENT = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', " + repr(CHILD) + "], stderr=subprocess.DEVNULL)\n"
    THREAD = "import sys, threading, torch\ndef work():\n    kept = torch.empty(64 << 20)\n    raise ValueError('no data')\n" \
             "sys.stderr = None\nthread = threading.Thread(target=work)\nthread.start(), thread.join()\n"
    SMALLER = "import torch\nkept = []\ntry:\n    while True: kept.append(torch.empty(8 << 30))\nexcept MemoryError: [torch.free(one) for one in kept]\n"

    def test_a_part_that_failed(self):
        for program, who, site in ((self.PARENT, "a child process", "<string>:3:<module>"), (self.THREAD, "a thread", "<string>:4:work")):
            said = f"{who} ended with ValueError: no data, at {site}, and the rest went on: what it would have used later is not covered"
            why = f"{who} raised ValueError: no data, at {site}"
            result = fit("-q", *python(program))
            text = " ".join(result.stdout.split())
            self.assertTrue(text.startswith(f"Might not fit on h100: {why} Needs 64.0 MiB on a GPU like h100 Peak"), result.stdout + result.stderr)
            self.assertLessEqual(max(map(len, result.stdout.splitlines())), 80)
            self.assertIn("Went on " + said, text)
            self.assertNotIn("Smallest", text)
            answer = json.loads(fit("-q", "--json", *python(program)).stdout)
            self.assertEqual((result.returncode, answer["fits"], answer["smallest_bytes"], answer["smallest_card"], answer["went_on"]), (1, None, None, "", said))
            self.assertEqual((answer["unsure_because"], {card["fits"] for card in answer["cards"] if card["asked"]}), (why, {None}))
            page = fit("-q", "--memory", "2GiB", *python(program)).stdout
            self.assertTrue(" ".join(page.split()).startswith(f"Not sure: {why} Needs 64.0 MiB, the limit is 2.0 GiB"), page)

    def test_a_long_exception_is_cut_in_the_first_line(self):
        result = fit("-q", *python(self.PARENT.replace("no data", "\u00e4" * 99)))
        text = result.stdout.replace("\n", " ")
        self.assertIn("a child process raised ValueError: " + "\u00e4" * 24 + "..., at <string>:3:<module> Needs", text, result.stderr)
        self.assertIn("\u00e4" * 99, text.replace("  ", ""))

    def test_what_is_no_failure(self):
        handled = "import os, torch\nkept = torch.empty(64 << 20)\ntry: {}['x']\nexcept KeyError: os._exit(0)\n"
        package = "import sys, threading, torch\nkept, sys.stderr = torch.empty(64 << 20), None\n" \
                  "exec(compile('def work(): raise ValueError()', '/x/site-packages/y.py', 'exec'))\nthread = threading.Thread(target=work)\nthread.start(), thread.join()\n"
        for program in (handled, package):
            answer = json.loads(fit("-q", "--json", *python(program)).stdout)
            self.assertEqual((answer["fits"], answer["went_on"]), (True, None))

    def test_a_memory_error_that_it_caught(self):
        """It may do something else on a card with other memory. It ran on the card itself."""
        said = "the program went on after 1 memory error, so it may do something else where there is more or less memory (--each runs it on each card)"
        options = ("-q", "--card", "a100-40,h100", *python(self.SMALLER))
        text = " ".join(fit(*options, FAKE_MEMORY=str(75 << 30)).stdout.split())
        self.assertTrue(text.startswith("Fits on h100, might not fit on a100-40: the program caught a memory error Needs 72.0 GiB on a GPU like h100"), text)
        self.assertIn("Went on " + said, text)
        self.assertNotIn("Smallest", text)
        answer = json.loads(fit("--json", *options, FAKE_MEMORY=str(75 << 30)).stdout)
        self.assertEqual((answer["went_on"], {card["key"]: card["fits"] for card in answer["cards"] if card["asked"]}), (said, {"a100-40": None, "h100": True}))
        self.assertEqual(fit("-q", *python(self.SMALLER), FAKE_MEMORY=str(75 << 30)).returncode, 0)
        self.assertTrue(fit("-q", "--memory", "40GiB", *python(self.SMALLER), FAKE_MEMORY=str(75 << 30)).stdout.startswith("Not sure: the program caught a memory error\nNeeds 72.0 GiB"))


    def test_a_program_that_reads_how_much_memory_is_free(self):
        program = "import torch\ndef size(): return torch.cuda.mem_get_info()[0] // 2\nkept = torch.empty(size())\n"
        text = " ".join(fit("-q", *python(program)).stdout.split())
        self.assertIn("Free memory the program read how much of it there is, at <string>:2:size: if that decides what it allocates, it needs another amount on another card (--each)", text)
        for source, site in ((program, "<string>:2:size"), (TRAIN, None)):
            self.assertEqual(json.loads(fit("-q", "--json", *python(source, "3")).stdout)["free_memory_read"], site)


class Shared(unittest.TestCase):
    """Processes that use one device need the sum of what they hold at the same time."""

    HOLD = "import sys\nprint(flush=True)\nsys.stdin.read()\n"  # what a process uses, it uses until its input ends
    CHILD = "import torch\nkept = torch.empty({} << 30)\n" + HOLD
    START = ("import subprocess, sys\ndef start(program):\n    one = subprocess.Popen([sys.executable, '-c', program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
             "    return one if one.stdout.readline() else sys.exit(1)\ndef child(gib): return start(" + repr(CHILD) + ".format(gib))\n")
    TOGETHER = START + "both = [child(10), child(12)]\n[one.communicate() for one in both]\n"
    IN_TURN = START + "child(10).communicate(), child(12).communicate()\n"

    def test_at_the_same_time(self):
        result = fit("-q", "--card", "h100,rtx4080,rtx3090", *python(self.TOGETHER))
        text = " ".join(result.stdout.split())
        self.assertIn("Fits on rtx3090 and h100, not on rtx4080: needs 22.5 GiB on a GPU like h100", text)
        self.assertIn("On its device 10.5 GiB of 1 other process at the same time", text)
        self.assertIn("Smallest completes in 22.5 GiB; smallest card: rtx4090", text)
        self.assertIn("rtx4080 15.7 GiB no, 6.8 GiB short", text)
        self.assertIn("Ranks 2 processes on 1 device reserved 10.0 GiB to 12.0 GiB uneven: the highest reserves 1.2 times the lowest How sure", text)
        self.assertEqual(result.returncode, 1)
        for limit, code in (("21GiB", 1), ("23GiB", 0)):
            self.assertEqual(fit("-q", "--memory", limit, *python(self.TOGETHER)).returncode, code, limit)

    def test_in_turn(self):
        answer = json.loads(fit("-q", "--json", "--card", "rtx4080", *python(self.IN_TURN)).stdout)
        self.assertEqual((answer["fits"], answer["need_bytes"], answer["others_bytes"]), (True, 12 << 30, 0))

    CONTEXT = "import ctypes as c, torch\ncuda, context = c.CDLL('libcuda.so.1'), c.c_void_p()\n" \
              "cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0), torch.cuda.mem_get_info()\n"

    def test_a_process_with_only_a_context(self):
        """Its context counts on the device, which another process uses at the same time."""
        program = self.START + "both = [start(" + repr(self.CONTEXT + self.HOLD) + "), child(10)]\n[one.communicate() for one in both]\n"
        answer = json.loads(fit("-q", "--json", "--card", "h100", *python(program)).stdout)
        self.assertEqual((answer["contexts"], len(answer["holdings"])), ([{"rank": 0, "ordinal": 0, "outside_bytes": answer["others_bytes"]}], 1))
        self.assertGreater(answer["others_bytes"], 400 * MIB)
        self.assertEqual(answer["need_bytes"], (10 << 30) + answer["others_bytes"])
        text = " ".join(fit("-q", "--card", "h100", *python(program)).stdout.split())
        self.assertIn("On its device 562.0 MiB of 1 other process at the same time", text)
        self.assertIn("Contexts rank 0 on device 0, 562.0 MiB: without an allocation, counted on that device", text)
        alone = fit("-q", "--json", *python(self.CONTEXT))
        self.assertIn("nothing was recorded: the program made a context on a device and allocated nothing there", alone.stderr)

    def test_more_ranks_than_devices(self):
        rank = "import os, sys, torch\ntorch.distributed.init_process_group(rank=int(sys.argv[1]), world_size=3)\nkept = torch.empty(4 << 20)\n"
        program = "import subprocess, sys\nranks = [subprocess.Popen([sys.executable, '-c', " + repr(rank) + ", str(i)]) for i in range(3)]\nsys.exit(max(one.wait() for one in ranks))\n"
        fails = program.replace("max(", "1 + max(")
        for options, words, devices in (((), program, 3), (("--devices", "3"), program, None), (("--devices", "2"), program, None), ((), fails, 3)):
            with tempfile.TemporaryDirectory() as store:
                answer = json.loads(fit("-q", "--json", *options, *python(words), FAKE_STORE=store).stdout)
            self.assertEqual(answer["more_devices"], devices, options)
        with tempfile.TemporaryDirectory() as store:
            self.assertIn("\n  Try            --devices 3: the job has 3 ranks, and saw fewer devices\n", fit("-q", *python(program), FAKE_STORE=store).stdout)

    def test_ranks_of_one_device(self):
        """Two ranks of a job that use the same device need their sum, however they are scheduled here."""
        ranks = (self.IN_TURN.replace("def child(gib): return", "import os\ndef child(gib):\n    os.environ.update(RANK=str(gib // 12), WORLD_SIZE='2')\n    return"))
        answer = json.loads(fit("-q", "--json", "--card", "h100", *python(ranks)).stdout)
        self.assertEqual(answer["need_bytes"] - answer["others_bytes"], 12 << 30)
        self.assertGreater(answer["others_bytes"], 10 << 30)  # and a context


class PyTorch(unittest.TestCase):
    def test_steps_that_repeat(self):
        result = fit("--json", *python(TRAIN, "1000"))
        self.assertEqual(result.returncode, 0, result.stderr)
        answer = json.loads(result.stdout)
        self.assertEqual((answer["ended"], answer["steps"], answer["allocated_bytes"]), ("repeats", 4, 248 * MIB))
        self.assertEqual((answer["holdings"][0]["torch"], answer["holdings"][0]["recorded_by"]), ("0.0.fake", "pytorch"))
        self.assertEqual(result.stderr.splitlines(), ["step 0", "step 1", "step 2"])

    def test_blocks_that_are_larger_than_what_was_asked_for(self):
        answer = json.loads(fit("--json", *python(TRAIN, "1000"), FAKE_REMAINDER="4096").stdout)
        self.assertEqual((answer["ended"], answer["steps"]), ("repeats", 4))

    def test_expandable_segments(self):
        """PyTorch counts no segments in this case."""
        result = fit("--json", *python(TRAIN, "1000"), PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual((json.loads(result.stdout)["ended"], json.loads(result.stdout)["allocated_bytes"]), ("repeats", 248 * MIB))

    def test_steps_that_are_never_alike(self):
        differs = TRAIN.replace("(32, 16, 8)", "(32, 16, 8 + 2 * (step * 31 % 97))")
        answer = json.loads(fit("--json", *python(differs, "1000")).stdout)
        self.assertEqual((answer["ended"], answer["allocated_bytes"]), ("plateau", 440 * MIB))
        self.assertLess(answer["steps"], 200)

    def test_steps_that_are_not_alike_with_the_same_peak(self):
        """Ten equal peaks suffice; the previous test waits for a later peak."""
        logs = TRAIN.replace("    if step == 0", "    [torch.free(torch.empty(2 << 20)) for _ in range(step * 31 % 7)]\n    if step == 0")
        answer = json.loads(fit("--json", *python(logs, "1000")).stdout)
        self.assertEqual((answer["ended"], answer["allocated_bytes"]), ("plateau", 248 * MIB))
        self.assertLess(answer["steps"], 30)

    def test_workers_end_with_the_program(self):
        start = "import multiprocessing, time\nworker = multiprocessing.get_context('fork').Process(target=time.sleep, args=(60,), daemon=True)\n" \
                "worker.start()\nprint('worker', worker.pid, flush=True)\n"
        result = fit("--json", *python(start + TRAIN, "1000"))
        self.assertEqual(json.loads(result.stdout)["ended"], "repeats")
        worker = int(result.stderr.split("worker ")[1].split()[0])
        for _ in range(50):
            state = pathlib.Path(f"/proc/{worker}/stat")
            if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
                return
            time.sleep(0.1)
        self.fail("the worker lives on")

    def test_as_many_steps_as_asked(self):
        for steps, ended, count in (("2", "steps", 2), ("all", "end", 9)):
            answer = json.loads(fit("--json", "--steps", steps, *python(TRAIN, "9")).stdout)
            self.assertEqual((answer["ended"], answer["steps"]), (ended, count))

    def test_the_same_every_time(self):
        answers = [json.loads(fit("--json", "--all", *python(TRAIN, "9")).stdout) for _ in range(2)]
        for answer in answers:
            del answer["seconds"]
        self.assertEqual(*answers)

    def test_the_users_sitecustomize_is_there(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "sitecustomize.py").write_text("import sys; sys.chained = True")
            program = "import sys, sitecustomize\nassert sys.chained and sitecustomize.sys\nassert not any('adapters/fit' in path for path in sys.path)\n"
            result = fit("--json", *python(program + TRAIN, "9"), PYTHONPATH=f"{folder}:{HERE / 'fake'}")
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_what_the_program_records_itself_goes_on(self):
        program = TRAIN.replace("print(\"the end\")", "") + "torch.cuda.memory._record_memory_history(None)\nassert len(torch._recording) == 1\n"
        answer = json.loads(fit("--json", "--steps", "all", *python(program, "3")).stdout)
        self.assertEqual(answer["ended"], "end")

    def test_peaks_that_the_program_resets(self):
        program = TRAIN.replace("optimizer.step()", "optimizer.step()\n    torch.cuda.reset_peak_memory_stats()") + "assert torch._stats['peak'] < 248 << 20"
        answer = json.loads(fit("--json", "--steps", "all", *python(program, "3")).stdout)
        self.assertEqual((answer["allocated_bytes"], answer["ended"]), (248 * MIB, "end"))

    def test_the_recording_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "kept.pickle.gz")
            self.assertEqual(fit("-q", "-o", path, *python(TRAIN, "9")).returncode, 0)
            report = subprocess.run([VRAM, "report", "--json", path], capture_output=True, text=True, check=True)
            self.assertEqual(json.loads(report.stdout)["devices"]["0"]["allocated"]["peak_bytes"], 248 * MIB)


    def test_what_the_engine_allocates_has_the_stack_of_its_caller(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "kept.pickle")
            self.assertEqual(fit("-q", "-o", path, *python(BATCHES, "9")).returncode, 0)
            with open(path, "rb") as file:
                snapshot = pickle.load(file)
        made = [entry for entry in snapshot["device_traces"][0] if entry["action"] == "alloc" and entry["size"] in (32 * MIB, 64 * MIB)]
        stacks = {tuple((frame["line"], frame["name"]) for frame in entry["frames"] if frame["filename"] == "<string>") for entry in made[1:]}
        self.assertEqual(stacks, {((9, "step"), (13, "<module>"))})
        self.assertNotIn("vram_fit", str([entry["frames"] for entry in made]))

    def test_two_fits_name_the_line_that_took_more(self):
        with tempfile.TemporaryDirectory() as folder:
            before, after = (os.path.join(folder, name) for name in ("before.pickle", "after.pickle"))
            for path, more in ((before, ""), (after, "more = torch.empty(48 << 20)\n")):
                program = TRAIN.replace("for step in", more + "for step in") if more else TRAIN.replace("for step in", "\nfor step in")
                self.assertEqual(fit("-q", "-o", path, *python(program, "9")).returncode, 0)
            told = subprocess.run([VRAM, "diff", "--by", "site", before, after], capture_output=True, text=True, check=False).stdout
        first = next(line for line in told.splitlines() if "<string>" in line)
        self.assertIn("48.0 MiB", first)
        self.assertIn("<string>:4", first)


class Cards(unittest.TestCase):
    """Several cards, ranks and runs."""

    def test_a_card_that_pytorch_has_no_kernels_for(self):
        program = "import ctypes\nctypes.CDLL('libcuda.so.1').cuInit(0)\n" + TRAIN
        for devices, ran_on in (("b200", "h100"), ("b200,h200,t4", "h200")):
            result = fit("--card", devices, "--json", *python(program, "9"), FAKE_KERNELS="sm_70 sm_90")
            self.assertEqual(result.returncode, 0, result.stderr)
            answer = json.loads(result.stdout)
            self.assertEqual((answer["ran_on"], answer["no_kernels"], answer["allocated_bytes"]), (ran_on, "b200", 248 * MIB))
            self.assertEqual({card["key"] for card in answer["cards"] if card["asked"] and card["fits"]}, set(devices.split(",")))
        self.assertIn("This PyTorch has no kernels for b200: it ran on h100.", fit("--card", "b200", *python(program, "9"), FAKE_KERNELS="sm_90").stdout)
        for built in ("sm_90 compute_90", "sm_100", ""):
            answer = json.loads(fit("--card", "b200", "--json", "-q", *python(program + "torch.cuda.get_arch_list()", "9"), FAKE_KERNELS=built, FAKE_RUNS="1").stdout)
            self.assertEqual((answer["ran_on"], answer["no_kernels"]), ("b200", None))

    def test_an_old_card_without_kernels_is_not_tried(self):
        program = "import ctypes\nctypes.CDLL('libcuda.so.1').cuInit(0)\n" + TRAIN
        for built, devices, once_more in (("sm_75 sm_80 sm_90 compute_120", "v100,h100", None), ("sm_75 sm_80 sm_90", "t4,v100,h100", "t4"), ("sm_70 sm_90", "v100,h100", "v100")):
            result = fit("-q", "--card", devices, *python(program, "9"), FAKE_KERNELS=built, FAKE_RUNS="1")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stderr, "" if once_more is None else f"vram fit: running again on {once_more}, whose kernels differ from those of h100\n")
            self.assertEqual("to spare (no kernels for it)" in result.stdout, once_more != "v100")

    def test_an_unknown_card_is_answered_with_the_nearest(self):
        self.assertIn("unknown card 'rtx9090'; did you mean 'rtx4090'? 'vram sim --cards' lists all", fit("--card", "rtx9090", "--", "true").stderr)
        self.assertIn("'mi300x' is an AMD card", fit("--card", "mi300x", "--", "true").stderr)

    def test_a_program_that_falls_back_to_the_cpu_is_told_so(self):
        asks = "import ctypes\nctypes.CDLL('libcuda.so.1').cuGetExportTable(None, None)\n"
        result = fit(*python(asks, "9"))
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("linked statically against NVIDIA's runtime, which only accepts NVIDIA's driver and found no device: the program continued on the CPU, without a device.", result.stderr)
        answer = json.loads(fit("--json", *python(asks, "9")).stdout)
        self.assertEqual((answer["fits"], os.path.isfile(answer["not_reached"])), (None, True))
        # A part of the program falls back to the CPU; the rest uses the device.
        result = fit("-q", *python(asks + TRAIN, "9"))
        self.assertIn("Not reached", result.stdout)
        self.assertIn("the answer does not cover what it does on a GPU", " ".join(result.stdout.split()))
        self.assertIsNone(json.loads(fit("-q", "--json", *python(TRAIN, "9")).stdout)["not_reached"])

    def test_all_cards_in_80_columns_with_what_is_estimated(self):
        result = fit("--all", "-q", *python(TRAIN, "9"))
        self.assertLessEqual(max(map(len, result.stdout.splitlines())), 80)
        self.assertEqual(result.returncode, 0, result.stderr)
        cards = dict(re.findall(r"^ (?: Cards)? +([a-z0-9-]+) +(~?)[0-9.]+ GiB  ", result.stdout, re.M))
        self.assertGreaterEqual(len(cards), 40)
        self.assertEqual((cards["rtx4070s"], cards["rtx4070"]), ("~", ""))
        self.assertIn("~ estimated from a similar card", result.stdout)
        self.assertNotIn("~", fit("--card", "t4,h100", "-q", *python(TRAIN, "9")).stdout)
        answer = json.loads(fit("--all", "-q", "--json", *python(TRAIN, "9")).stdout)
        self.assertEqual({card["key"]: card["memory_estimated"] for card in answer["cards"] if card["key"].startswith("rtx4070")},
                         {"rtx4070": False, "rtx4070s": True, "rtx4070ti": True, "rtx4070tis": False})

    def test_what_is_at_stake_is_in_the_verdict(self):
        """5 MiB is unknown: a limit in between is uncertain."""
        result = fit("-q", "--memory", "1GiB", *python(HEURISTIC))
        self.assertEqual((result.returncode, result.stdout.splitlines()[0]), (0, "Fits: needs 563.0 to 568.0 MiB, the limit is 1.0 GiB"))
        for limit, code, fits in (("562MiB", 1, False), ("565MiB", 1, None), ("570MiB", 0, True)):
            result = fit("--json", "-q", "--memory", limit, *python(HEURISTIC))
            answer = json.loads(result.stdout)
            self.assertEqual((result.returncode, answer["fits"]), (code, fits), limit)
            self.assertEqual(answer["need_most_bytes"] - answer["need_bytes"], 5 * MIB)
        self.assertTrue(fit("-q", "--memory", "565MiB", *python(HEURISTIC)).stdout.startswith("Not sure: sizes that are not known may take 5.0 MiB more\nNeeds 563.0 to 568.0 MiB"))

    def test_json_is_json_where_a_run_fails(self):
        """A program that leaves no recording, or does not exist, also gives JSON."""
        bad = "import sys\nif sys.argv[-1] == '--a=2': sys.exit(3)\nif sys.argv[-1] == '--a=3': import torch; torch.empty(1 << 20); 1 / 0\n" + TRAIN
        for values, fits in (("1,2", [True, None]), ("2,1", [None]), ("1,3", [True, None]), ("3", [None])):
            result = fit("--json", "-q", "--vary", "--a=" + values, *python(bad, "9"))
            self.assertEqual([one["fits"] for one in json.loads(result.stdout)], fits, result.stderr)
            self.assertEqual(result.returncode, 3)
        for program in (("--", PROGRAM + "-that-is-not-there"), ("--", "false"), ("--", "true"), python("import torch; torch.empty(1 << 20); 1 / 0")):
            for options in (("--each", "--card", "t4,h100"), ("--vary", "--a=1,2")):
                answers = json.loads(fit("--json", "-q", *options, *program).stdout)
                self.assertEqual({one["fits"] for one in answers} - {None}, set())
        self.assertIsNone(json.loads(fit("--json", "-q", "--", "false").stdout)["fits"])

    def test_a_few_of_many_ranks_run(self):
        worker = TRAIN.replace("torch.optim_class", "torch.Optimizer").replace("64 << 20", "(256 if os.environ['RANK'] == '63' else 64) << 20")
        worker = "import os; os.environ['CUDA_VISIBLE_DEVICES'] = os.environ['LOCAL_RANK']; print('rank', *[os.environ.get(name) for name in ('RANK', 'WORLD_SIZE', 'LOCAL_WORLD_SIZE', 'LOCAL_RANK')], flush=True)\n" + worker
        launcher = ("import os, subprocess, sys\ncount = int(sys.argv[2] if sys.argv[1][-4:] == 'node' else sys.argv[1].split('=')[1])\n"
                    "ranks = [subprocess.Popen([sys.executable, '-c', " + repr(worker) + ", '9'], env={**os.environ, 'RANK': str(i), 'LOCAL_RANK': str(i),"
                    " 'WORLD_SIZE': str(count)}) for i in range(count)]\nsys.exit(max(rank.wait() for rank in ranks))\n")
        result = fit("--json", *python(launcher, "--nproc-per-node", "8", "--nnodes=8"))
        self.assertEqual(result.returncode, 0, result.stderr)
        answer = json.loads(result.stdout)
        told = sorted(line for line in result.stderr.splitlines() if line.startswith("rank "))
        self.assertEqual(told, ["rank 0 64 8 0", "rank 1 64 8 1", "rank 32 64 8 2", "rank 63 64 8 3"])
        self.assertEqual((answer["ranks"], [one["rank"] for one in answer["holdings"]], answer["allocated_bytes"]), (64, [0, 1, 32, 63], 440 * MIB))
        self.assertIn("vram fit: rank 0 of 64 runs alone first", result.stderr)
        text = " ".join(fit("-q", "--fold", "63,5", *python(launcher, "--nproc_per_node=64")).stdout.split())
        self.assertIn("Ranks 64, of which 3 ran (0, 5, 63); the others are assumed to be like these (--fold)", text)
        self.assertRegex(text, r"uneven: the highest reserves \d\.\d times the lowest ranks 0 to 5 \S+ MiB, rank 63 \S+ MiB")
        self.assertEqual(json.loads(fit("--json", "-q", *python(launcher, "--nproc-per-node", "2")).stdout)["ranks"], 2)
        for wrong in (("--fold", "64"), ("--fold", "x"), ("--fold", "1;2")):
            self.assertEqual(fit(*wrong, *python(launcher, "--nproc-per-node", "64")).returncode, 2)
        self.assertEqual(fit("--fold", "auto", *python("pass")).returncode, 2)

    def test_other_values_of_an_argument(self):
        program = TRAIN.replace("20 << 30", "1").replace("128 << 20", "int(sys.argv[3]) << 30")
        for arguments in (("9", "--batch", "20"), ("9", "--batch=20", "20")):
            result = fit("--json", "-q", "--card", "t4", "--vary", "--batch=20,2", *python(program.replace("sys.argv[3]", "sys.argv[2].split('=')[-1]")
                         if "=" in arguments[1] else program, *arguments[: 3 if arguments[1] == "--batch" else 2]))
            self.assertEqual([(one["varied"], one["fits"]) for one in json.loads(result.stdout)], [("--batch=20", False), ("--batch=2", True)], result.stderr)
            self.assertEqual(result.returncode, 0)
        # A missing argument is added.
        added = TRAIN.replace("128 << 20", "int(sys.argv[2].split('=')[1]) << 30")
        result = fit("--json", "-q", "--card", "t4", "--vary", "--batch=20,2", *python(added, "9"))
        self.assertEqual([(one["varied"], one["fits"]) for one in json.loads(result.stdout)], [("--batch=20", False), ("--batch=2", True)], result.stderr)
        self.assertEqual(fit("--vary", "batch", "--", "true").returncode, 2)

    def test_a_run_for_each_card(self):
        result = fit("--json", "-q", "--each", "--card", "t4,h100", *python(TRAIN, "9"))
        self.assertEqual([(one["ran_on"], one["fits"]) for one in json.loads(result.stdout)], [("t4", True), ("h100", True)])
        self.assertEqual(fit("--each", "--vary", "--a=1", *python(TRAIN, "9")).returncode, 2)

    def test_roles_and_the_next_smaller_card(self):
        answer = json.loads(fit("--json", "-q", "--card", "h100", *python(TRAIN.replace("128 << 20", "20 << 30"), "9")).stdout)
        self.assertEqual(sum(answer["roles"].values()), answer["allocated_bytes"])
        self.assertEqual((answer["smaller"]["card"], answer["smaller"]["tried"], answer["smaller"]["conf"]), ("rtx4080", False, None))
        text = fit("-q", *python(TRAIN.replace("128 << 20", "20 << 30"), "9")).stdout
        self.assertIn("On rtx4080 no allocator setting can make it fit: 20.1 GiB live at once, 15.4 GiB available", " ".join(text.split()))
        self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_where_it_runs_out(self):
        result = fit("--card", "t4", "-q", *python(TRAIN.replace("128 << 20", "20 << 30"), "9"))
        self.assertEqual(result.returncode, 1)
        told = " ".join(result.stdout.split())
        self.assertIn("runs out in step 1: 20.0 GiB requested at <string>:7:<module> 64.0 MiB in use of 14.5 GiB: too much is live at once", told)
        self.assertTrue(told.startswith("Does not fit on t4: needs 20.1 GiB on a GPU like t4"), told)

    def test_a_card_of_another_generation_has_a_run_of_its_own(self):
        program = TRAIN.replace("weights,", "size = 20 << 30 if torch.cuda.get_device_capability(0)[0] < 8 else 1 << 30\nweights,").replace("128 << 20", "size")
        program = "import ctypes\nctypes.CDLL('libcuda.so.1').cuInit(0)\n" + program
        for devices, fits in (("t4,h100", ["h100"]), ("v100,rtx3060", ["rtx3060"]), ("a10,h100", ["a10", "h100"])):
            result = fit("--json", "--card", devices, *python(program, "9"))
            answer = json.loads(result.stdout)
            self.assertEqual([card["key"] for card in answer["cards"] if card["asked"] and card["fits"]], fits, devices)
            self.assertEqual("running again on" in result.stderr, len(fits) == 1)
        result = fit("--card", "t4,h100", *python(program.replace("20 << 30", "sys.exit(5)"), "9"))
        self.assertIn("t4        14.6 GiB  fits, 13.3 GiB to spare (it failed there)", result.stdout, result.stderr)
        # An old card that was not asked for is not mentioned.
        self.assertNotIn(answer["smallest_card"], ("t4", "v100"))
        answer = json.loads(fit("--json", "-q", "--card", "h100", *python(TRAIN.replace("128 << 20", "12 << 30"), "9")).stdout)
        self.assertEqual((answer["smallest_card"], answer["smaller"]["card"]), ("rtx5060ti", "rtx3060"))

    def test_the_first_line_is_the_answer(self):
        program = TRAIN.replace("128 << 20", "20 << 30")
        for devices, line in (("h100", "Fits on h100:"), ("t4,h100", "Fits on h100, not on t4:"), ("t4,v100,h100,h200", "Fits on h100 and h200, not on t4 and v100:"),
                              ("t4,v100", "Does not fit on t4 and v100:"), ("t4,v100,rtx3060,h100,l4", "Fits on 2 of 5 cards:")):
            self.assertTrue(fit("-q", "--card", devices, *python(program, "9")).stdout.startswith(line + " needs 20.1 GiB"), devices)

    def test_a_setting_for_a_recording_of_many_events(self):
        """After 3300 MiB, the rest of a 6 GiB segment cannot serve 3000 MiB unless segments are expandable. A search of many settings would take minutes."""
        program = ("import torch\n[torch.free(torch.empty(2 << 20)) for _ in range(51000)]\ntorch.free(torch.empty(6 << 30))\n"
                   "kept = [torch.empty(size << 20) for size in (3300, 3000, 3000)]\n")
        answer = json.loads(fit("--json", "-q", *python(program), FAKE_IDLE="2844").stdout)
        self.assertEqual((answer["smaller"]["card"], answer["smaller"]["tried"], answer["smaller"]["conf"]), ("rtx3060", True, "expandable_segments:True"))
        told = " ".join(fit("-q", "--card", "rtx3060", *python(program), FAKE_IDLE="2844").stdout.split())
        self.assertRegex(told, "runs out: 2.9 GiB requested at .* 6.2 GiB in use of 11.6 GiB: 2.8 GiB is cached, in pieces of at most 2.8 GiB")

    def test_the_batch_is_the_argument_that_changes_the_peak(self):
        """The argument is found by trying, for the requested card or limit."""
        program = BATCHES.replace("30 << 30", "size << 30").replace("import sys, torch", "import sys, torch\nwords = [word.split('=') for word in ' '.join(sys.argv[2:]).replace('batch ', 'batch=').split()]"
                                  "\nsize = next((int(word[1]) for word in words if 'micro' in word[0]), 30)")
        for arguments, name in ((("--micro_batch", "30", "--eval_batch", "8"), "--micro_batch"), (("train.micro_batch=30", "train.global_batch=512"), "train.micro_batch")):
            result = fit("-q", "--card", "rtx4090", *python(program, "9", *arguments))
            told = " ".join(result.stdout.split())
            self.assertIn(f"{name}=22 might fit, instead of 30: the peak scales with it (check with --vary '{name}=22')", told, result.stderr)
            self.assertIn("On rtx4090 no allocator setting can make it fit", told)
            self.assertEqual(result.stderr.count("running again with"), 2)
            batch = json.loads(fit("-q", "--json", "--memory", "10GiB", *python(program, "9", *arguments)).stdout)["smaller"]
            self.assertEqual((batch["card"], batch["batch"]["argument"], batch["batch"]["tried"]), (None, name, True))
            self.assertIn(batch["batch"]["about"], (8, 9))
        # If no argument changes the peak, none is named. If the program fits, nothing is tried.
        result = fit("-q", "--card", "rtx4090", *python(program, "9", "--eval_batch", "8"))
        self.assertIn("would fit: try a smaller batch or a shorter sequence (--vary)", " ".join(result.stdout.split()))
        self.assertNotIn("running again with", fit("-q", "--card", "h100", *python(program, "9", "--micro_batch", "30")).stderr)
        answer = json.loads(fit("-q", "--json", "--card", "rtx3060,rtx4090,h200", *python(program, "9")).stdout)
        self.assertEqual(answer["smaller"]["card"], "rtx4090")

    def test_what_the_program_could_change(self):
        """The report's remedies for the same peak, if no setting suffices; no batch for a program without passes."""
        result = fit("-q", "--card", "rtx4090", *python(BATCHES, "9"))
        told = " ".join(result.stdout.split())
        self.assertRegex(told, r"Or change (reduce the batch|recompute|compute the largest tensors)", result.stderr)
        smaller = json.loads(fit("-q", "--json", "--card", "rtx4090", *python(BATCHES, "9")).stdout)["smaller"]
        self.assertTrue(smaller["remedies"] and all(one["saved_bytes"] > 0 and one["text"] for one in smaller["remedies"]), smaller)
        self.assertEqual([one["fits"] for one in smaller["remedies"]], sorted((one["fits"] for one in smaller["remedies"]), reverse=True))
        smaller = json.loads(fit("-q", "--json", "--card", "rtx4090", *python("import torch\nfor i in range(9): torch.free(torch.empty(30 << 30))")).stdout)["smaller"]
        self.assertEqual((smaller["conf"], smaller["batch"], smaller["remedies"]), (None, None, []))

    def test_what_is_the_optimizers_goes_by_no_batch(self):
        # If the peak is the optimizer's, its temporaries do not depend on the batch.
        scratch = "exec(compile('def scratch(torch): torch.free(torch.empty(60 << 30))', '/torch/optim/adam.py', 'exec'))\n"
        program = scratch + BATCHES.replace("optimizer.step()", "scratch(torch)\n    optimizer.step()").replace("30 << 30", "64 << 20")
        smaller = json.loads(fit("--json", "-q", "--card", "h100", *python(program, "9", "--batch-size", "16")).stdout)["smaller"]
        self.assertEqual((smaller["card"], smaller["batch"]["fixed_bytes"], smaller["batch"]["share"]), ("a6000", 60 << 30, 0))

    def test_memory_runs_out_in_the_run(self):
        result = fit("--json", *python("import os\nif os.environ['VRAM_SIM'].count('memory=') == 0: os.environ['FAKE_MEMORY'] = str(150 << 20)\n" + TRAIN, "9"))
        answer = json.loads(result.stdout)
        self.assertEqual((answer["steps"], answer["allocated_bytes"], result.returncode), (4, 248 * MIB, 1))
        self.assertEqual([(card["fits"], card["by"]) for card in answer["cards"] if card["asked"]], [(False, "run")])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:4]])
