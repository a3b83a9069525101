#!/usr/bin/env python3
"""Tests that `vram fit` finds calls of NCCL that another rank never answers (cli/fit_unanswered.c), and ranks that wait for each other
(cli/fit_circle.c). Ranks are processes of a fake PyTorch that call the stand-in for NCCL by a script, which has a word for each call:

s1   sends to rank 1; S1 sends more than NCCL's buffers hold
r0   receives from rank 0; R0 receives such a message
a b  collectives of two groups of all ranks
o0   a broadcast by rank 0
[ ]  begin and end a group of calls
|    ends a step

A call with `'` behind it is on a second stream.

usage: test_unanswered.py VRAM
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

VRAM = sys.argv.pop(1)
HERE = pathlib.Path(__file__).resolve().parent
ENVIRONMENT = {name: value for name, value in os.environ.items() if "ALLOC_CONF" not in name and not name.startswith(("VRAM_", "PYTHON"))}
COUNT = 100_000  # elements of a message: too many to be transferred, so that no rank waits
MANY = 70_000_000  # 280 MB

RANK = f"""
import ctypes, os, sys, time, torch
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
script, folder = sys.argv[1].split("/")[rank].split(), sys.argv[2]
torch.empty(2 << 20)
optimizer = torch.Optimizer()
cuda, nccl = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnccl.so.2")

class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]

context, comm, memory, own = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64(), Id()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t({4 * MANY})) == 0
path = os.path.join(folder, "id")
if rank == 0:
    assert nccl.ncclGetUniqueId(ctypes.byref(own)) == 0
    with open(path + ".new", "wb") as file:
        file.write(bytes(own))
    os.rename(path + ".new", path)
while not os.path.exists(path):
    time.sleep(0.01)
with open(path, "rb") as file:
    own = Id.from_buffer_copy(file.read())
assert nccl.ncclCommInitRank(ctypes.byref(comm), world, own, rank) == 0
other, second = ctypes.c_void_p(), ctypes.c_void_p()
if "b" in script or "b'" in script:
    assert nccl.ncclCommSplit(comm, 0, rank, ctypes.byref(other), None) == 0
assert cuda.cuStreamCreate(ctypes.byref(second), 1) == 0

def call(word):
    stream, word = (second, word[:-1]) if word[-1] == "'" else (None, word)
    count = ctypes.c_size_t({MANY} if word[0] in "SR" else {COUNT})
    if word in "[]":
        return nccl.ncclGroupStart() if word == "[" else nccl.ncclGroupEnd()
    if word[0] in "sS":
        return nccl.ncclSend(memory, count, 7, int(word[1:]), comm, stream)
    if word[0] in "rR":
        return nccl.ncclRecv(memory, count, 7, int(word[1:]), comm, stream)
    if word[0] == "o":
        return nccl.ncclBroadcast(memory, memory, count, 7, int(word[1:]), comm, stream)
    return nccl.ncclAllReduce(memory, memory, count, 7, 0, other if word == "b" else comm, stream)

for word in script:
    if word == "|":
        optimizer.step()
    else:
        assert call(word) == 0
"""
LAUNCHER = """
import os, subprocess, sys
count = int(sys.argv[2])
ranks = [subprocess.Popen([sys.executable, *sys.argv[3:]], env={**os.environ, "RANK": str(i), "LOCAL_RANK": str(i), "WORLD_SIZE": str(count)}) for i in range(count)]
sys.exit(max(rank.wait() for rank in ranks))
"""


def run(scripts, *options, ranks=None):
    """Runs the ranks' scripts. Returns the output and the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "rank.py").write_text(RANK)
        program = (sys.executable, "-c", LAUNCHER, "--nproc-per-node", str(ranks or len(scripts)), folder + "/rank.py", "/".join(scripts), folder)
        result = subprocess.run([VRAM, "fit", "-q", *options, "--", *program], capture_output=True, text=True, check=False,
                                env={**ENVIRONMENT, "PYTHONPATH": str(HERE / "fake")})
    return result.stdout or result.stderr, result.returncode


def fit(scripts, *options, **more):
    output, code = run(scripts, "--json", *options, **more)
    return json.loads(output) if output.startswith("{") else output, code


def ends(calls):
    """Returns whether ranks that send without waiting receive all messages in the end."""
    calls, sent = [list(words) for words in calls], {}
    while any(calls):
        ready = [rank for rank, words in enumerate(calls) if words and (words[0][0] == "s" or sent.get((int(words[0][1:]), rank), 0))]
        if not ready:
            return False
        rank, word = ready[0], calls[ready[0]].pop(0)
        pair = (rank, int(word[1:])) if word[0] == "s" else (int(word[1:]), rank)
        sent[pair] = sent.get(pair, 0) + (1 if word[0] == "s" else -1)
    return True


class Unanswered(unittest.TestCase):
    def hangs(self, scripts, *options, **more):
        answer, code = fit(scripts, *options, **more)
        self.assertEqual((code, answer["ended"]), (3, "hangs"))
        return answer["failure"]["text"], answer["failure"]["site"]

    def fits(self, scripts, *options, **more):
        answer, code = fit(scripts, *options, **more)
        self.assertEqual((code, answer["failure"]), (0, None))

    def test_a_send_that_no_rank_receives(self):
        text, site = self.hangs(["a s1 a", "a a"])
        self.assertIn(f"rank 0 waits in ncclSend of {COUNT} float32 for rank 1, which never receives them, at ", text)
        self.assertRegex(site, r"rank\.py:\d+:call$")

    def test_the_page(self):
        page, code = run(["a s1 a", "a a"])
        self.assertEqual((code, page.startswith("On GPUs the program would hang: rank 0 waits in ncclSend")), (3, True))
        self.assertRegex(page, r"  Ran            \d+\.\d s, on GPUs a rank would wait forever for another\n")

    def test_a_receive_that_no_rank_sends(self):
        text, _ = self.hangs(["a", "r0 a"])
        self.assertIn("rank 1 waits in ncclRecv of 100000 float32 for rank 0, which never sends them", text)

    def test_a_collective_that_a_rank_does_not_call(self):
        text, _ = self.hangs(["a a", "a", "a a"])
        self.assertRegex(text, "^On GPUs the program would hang: rank [02] waits in ncclAllReduce of 100000 float32 for rank 1, which never calls it, at ")

    def test_the_first_is_named(self):
        text, _ = self.hangs(["s1 " * 40, "r0 " * 30])
        self.assertIn("rank 0 waits in ncclSend", text)

    def test_steps_that_stop_the_program(self):
        self.hangs(["a s1 | a | a | a |", "a | a | a | a |"], "--steps", "3")
        self.fits(["a | a | a | s1 a |", "a | a | a | a | r0"], "--steps", "3")

    def test_what_comes_in_the_next_step_is_no_fault(self):
        self.fits(["a | a s1 | a | a | a |", "a | a | r0 a | a | a |"], "--steps", "2")

    def test_folded_ranks(self):
        scripts = ["a s2 a", "", "a r0 a", ""]
        self.fits(scripts, "--fold", "0,2")
        text, _ = self.hangs(["a s2 a", "", "a a", ""], "--fold", "0,2")
        self.assertIn("rank 0 waits in ncclSend of 100000 float32 for rank 2", text)
        self.fits(["a s1 a", "", "a a", ""], "--fold", "0,2")  # rank 1 does not run

    def test_receives_before_the_sends_that_answer_them(self):
        text, site = self.hangs(["r1 s1", "r0 s0"])
        self.assertRegex(text, r"On GPUs the program would hang: rank ([01]) waits in ncclRecv of 100000 float32 for rank ([01]), "
                               r"which waits in ncclRecv of 100000 float32 for rank \1 \(\S+rank\.py:\d+:call\), at \S+rank\.py:\d+:call$")
        self.assertRegex(site, r"rank\.py:\d+:call$")
        self.fits(["[ r1 s1 ]", "[ r0 s0 ]"])
        self.fits(["s1 r1", "r0 s0"])

    def test_sends_before_receives(self):
        self.fits(["s1 r1", "s0 r0"])  # NCCL's buffers may hold them
        self.hangs(["S1 R1", "S0 R0"])
        self.fits(["[ S1 R1 ]", "[ S0 R0 ]"])

    def test_collectives_of_two_groups_in_opposite_orders(self):
        text, _ = self.hangs(["a b", "b a"])
        self.assertEqual(text.count("waits in ncclAllReduce"), 2)
        self.fits(["a b' a", "b' a a"])  # other streams have no order here
        self.fits(["a b", "a b"])

    def test_a_collective_and_a_message(self):
        self.hangs(["a s1", "r0 a"])
        self.fits(["o0 s1", "r0 o0"])  # the root of a broadcast need not wait
        self.hangs(["o1 s1", "r0 o1"])

    def test_a_circle_of_three(self):
        text, _ = self.hangs(["r2 s1", "r0 s2", "r1 s0"])
        self.assertEqual(text.count("waits in ncclRecv"), 3)
        self.fits(["s1 r2", "r0 s2", "r1 s0"])

    def test_random_orders(self):
        source = random.Random(41)
        found = 0
        for _ in range(8):
            calls = [[], [], []]
            for _ in range(4):
                sender, receiver = source.sample(range(3), 2)
                calls[sender].append(f"s{receiver}")
                calls[receiver].append(f"r{sender}")
            for words in calls:
                source.shuffle(words)
            scripts = [" ".join(words) for words in calls]
            found += not ends(calls)
            with self.subTest(scripts=scripts):
                self.fits(scripts) if ends(calls) else self.hangs(scripts)
        self.assertTrue(0 < found < 8)

    def test_random_scripts(self):
        source = random.Random(40)
        for _ in range(6):
            ranks = source.choice((2, 3))
            calls = [[] for _ in range(ranks)]
            for _ in range(source.randrange(8)):
                sender, receiver = source.sample(range(ranks), 2)
                calls[sender].append(f"s{receiver}")
                calls[receiver].append(f"r{sender}")
            expected = source.random() < 0.5
            if expected:
                lost = source.randrange(ranks)
                calls[lost].append(source.choice((f"s{(lost + 1) % ranks}", f"r{(lost + 1) % ranks}", "a")))
            scripts = [" ".join(words) for words in calls]
            with self.subTest(scripts=scripts):
                self.hangs(scripts) if expected else self.fits(scripts)


if __name__ == "__main__":
    unittest.main()
