#!/usr/bin/env python3
"""Tests adapters/fit/vram_fit_fold.py and vram_fit_kinds.py without PyTorch: what the ranks' store answers for ranks that do not run, and which
ranks have to run.

usage: test_fold.py ADAPTERS
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import types
import unittest

sys.path.insert(0, sys.argv.pop(1))
os.environ["VRAM_SIM_RANKS"] = "8:0,5"
sys.modules["_vram_shared"] = types.SimpleNamespace(part=__import__)
import vram_fit_comparisons as comparisons  # noqa: E402
import vram_fit_fold as fold  # noqa: E402
import vram_fit_kinds as kinds  # noqa: E402

ID = b"vram-nccl:" + b"0" * 32


class Store(dict):
    def set(self, key, value):
        self[key] = value

    def get(self, key):
        return self[key]

    def compare_set(self, key, expected, desired):
        assert expected == ""
        return self.setdefault(key, desired)


class UniqueIds(unittest.TestCase):
    def setUp(self):
        self.store, self.made = Store(), 0
        self.groups = fold.Groups(self.make)
        for name, ranks in (("0", range(8)), ("4", [4, 5]), ("hash", [5, 6]), ("5", [0, 5]), ("7", [7, 0, 5])):
            self.groups.add(name, ranks, [0, 5])

    def make(self):
        self.made += 1
        return ID.ljust(128, b"\0")

    def asked(self, key):
        return self.groups.get(self.store, "default_pg/0//" + key).rstrip(b"\0")

    def test_a_member_makes_the_id_of_an_absent_one(self):
        self.assertEqual(self.asked("4//cuda//0"), ID + b":1")
        self.assertEqual(self.asked("4//cuda//0"), ID + b":1")
        self.assertEqual(list(self.store), ["default_pg/0//4//cuda//0"])
        self.assertEqual(self.asked("7//cuda//0:2"), ID + b":1")
        self.assertEqual(self.asked("4//cuda//4/nccl_storekey_0"), ID + b":1")
        self.assertEqual(self.asked("hash//cuda:0//UniqueNCCLID:1"), ID + b":0")
        self.assertEqual(self.asked("hash//cuda//3/nccl_storekey_0_1"), ID + b":0")

    def test_an_id_of_a_running_rank_names_the_members_that_run(self):
        for key, named in (("hash//cuda//0", b":0"), ("7//cuda//1:2", b""), ("hash//cuda//0:1", b":0"), ("0//cuda//5:6", b":0"), ("5//cuda//3", b""), ("hash//cuda//UniqueNCCLID:0", b":0")):
            self.groups.set(self.store, "default_pg/0//" + key, ID.ljust(128, b"\0"))
            self.assertEqual((key, self.asked(key)), (key, ID + named))
        self.groups.set(self.store, "default_pg/0//cuda//0", ID)
        self.assertEqual((self.asked("cuda//0"), self.made), (ID, 0))
        self.assertEqual(os.environ["VRAM_SIM_NCCL_RUNNING"], ID.decode().partition(":")[2] + ":0")  # of the last id that was named

    def test_other_keys_are_left_alone(self):
        for key in ("hash//cpu//0", "hash//cuda//x:0", "hash//cuda//ready", "else//cuda//0", "mine", "4//0"):
            self.groups.set(self.store, "default_pg/0//" + key, b"value")
            self.assertEqual(self.asked(key), b"value")
        self.assertRaises(KeyError, self.asked, "4//cpu//0")
        self.assertEqual(self.made, 0)

    def test_too_many_to_name(self):
        program = "import sys; sys.path.append(sys.argv[1]); import vram_fit_fold as fold; fold.Members(range(1, 65), range(64)).named(b'" + ID.decode() + "')"
        result = subprocess.run([sys.executable, "-c", program, os.path.dirname(fold.__file__)], env={**os.environ, "VRAM_SIM_RANKS": "80:0"},
                                stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((result.returncode, result.stderr.count("\n")), (77, 1))
        self.assertIn("63 of the ranks that run are in one process group", result.stderr)


class Objects(unittest.TestCase):
    def test_objects_of_an_absent_rank_are_refused(self):
        program = ("import sys; sys.path.append(sys.argv[1]); from types import SimpleNamespace as Names; import vram_fit_fold as fold\n"
                   "c10d = Names(recv_object_list=lambda *args: print(args, flush=True), _world=Names(pg_group_ranks={'pair': {4: 0, 5: 1}}),"
                   " get_world_size=lambda: 8, get_rank=lambda: 5)\n"
                   "fold.refuse_objects(Names(distributed=Names()), c10d)\n"
                   "c10d.recv_object_list([], 5, 'pair')\nc10d.recv_object_list([], group='pair', group_src=0)\n")
        result = subprocess.run([sys.executable, "-c", program, os.path.dirname(fold.__file__)], capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stdout), (77, "([], 5, 'pair', None)\n"))
        self.assertIn("rank 5 receives objects from rank 4, which does not run", result.stderr)


class Symmetric(unittest.TestCase):
    def test_symmetric_memory_of_some_ranks_is_refused(self):
        program = ("import sys; sys.path.append(sys.argv[1]); from types import SimpleNamespace as Names; import vram_fit_fold as fold\n"
                   "some, whole = Names(group_name='some', size=lambda: 8), Names(group_name='whole', size=lambda: 2)\n"
                   "memory = Names(c10d=Names(_resolve_process_group=lambda name: {'some': some, 'whole': whole}[name]), rendezvous=lambda *args: print(len(args), flush=True),"
                   " get_symm_mem_workspace=lambda name, min_size: print(name, flush=True))\n"
                   "fold.refuse_symmetric(memory, Names(running_of=lambda name, count: 2))\n"
                   "memory.get_symm_mem_workspace('whole', min_size=1)\nmemory.rendezvous(None, whole)\n")
        for last in ("memory.get_symm_mem_workspace('some', min_size=1)", "memory.rendezvous(None, group=some)", "memory.rendezvous(None, 'some')"):
            result = subprocess.run([sys.executable, "-c", program + last, os.path.dirname(fold.__file__)], capture_output=True, text=True, check=False)
            self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (77, "whole\n2\n", 1), result.stderr)
            self.assertIn("symmetric memory", result.stderr)
            self.assertIn("8 ranks, of which 2 run", result.stderr)


class Barriers(unittest.TestCase):
    def test_a_monitored_barrier_of_some_ranks_is_a_barrier(self):
        calls = []
        work = types.SimpleNamespace(wait=lambda: calls.append("barrier"))
        backend = types.SimpleNamespace(barrier=lambda: work)
        whole, those = (types.SimpleNamespace(_get_backend=lambda device: backend) for _ in range(2))
        ranks = lambda group: range(8) if group is whole else (0, 5)  # noqa: E731
        c10d = types.SimpleNamespace(monitored_barrier=lambda group, *more: calls.append(more), get_world_size=lambda: 8, _get_default_group=lambda: whole,
                                     _world=types.SimpleNamespace(pg_group_ranks=type("Ranks", (), {"__getitem__": lambda self, group: ranks(group)})()))
        torch = types.SimpleNamespace(distributed=types.SimpleNamespace(), device=str)
        fold.replace_monitored_barrier(torch, c10d)
        torch.distributed.monitored_barrier()
        torch.distributed.monitored_barrier(those, timeout=3)
        self.assertEqual(calls, ["barrier", (3, False)])


class Kinds(unittest.TestCase):
    """8,192 ranks in 8 stages of 128 x 8; rank 0 sees one group of each."""

    def setUp(self):
        self.kinds = kinds.Kinds(8192)
        self.stages = range(0, 8192, 1024)
        for ranks, name in ((self.stages, "mesh_pp"), (range(0, 1024, 8), "mesh_dp"), (range(8), "mesh_tp"), ([0, 3, 4], "odd"), ([0], "one")):
            self.kinds.add(list(ranks), name)

    def test_names_of_groups(self):
        for name, short in (("mesh_pp", "pp"), ("PIPELINE_MODEL_PARALLEL_GROUP", "pipeline"), ("DATA_PARALLEL_GROUP", "data"), ("experts", "experts"), ("", "")):
            self.assertEqual(kinds.short_name(name), short)

    def lines(self):
        return list(self.kinds.lines())

    def test_without_messages_a_few_run(self):
        self.assertEqual(self.lines(), ["run 0 1 4096 8191"])
        self.assertEqual(list(kinds.Kinds(2).lines()), ["run 0 1"])

    def test_each_stage_is_a_kind(self):
        self.kinds.talk(self.stages)
        lines = self.lines()
        self.assertEqual(lines[0], "run " + " ".join(map(str, self.stages)))
        self.assertEqual(lines[1:], [f"kind 1024 {first} pp {stage + 1} of 8" for stage, first in enumerate(self.stages)])

    def test_the_last_rank_runs_if_it_is_compared(self):
        self.kinds.talk(self.stages)
        self.kinds.single(8191, "train.py:34")
        lines = self.lines()
        self.assertEqual(lines[0], "run " + " ".join(f"{first} {first + 1023}" for first in self.stages))
        self.assertEqual(lines[1:], [f"kind 1024 {first},{first + 1023} pp {stage + 1} of 8" for stage, first in enumerate(self.stages)])

    def test_a_few_stages_run_twice(self):
        self.kinds.talk(range(0, 8192, 4096))
        self.assertEqual(self.lines()[0], "run 0 4095 4096 8191")

    def test_stages_of_rings(self):
        """The members of each stage's ring also run. There are too many to run those of the last rank."""
        self.kinds.talk(self.stages)
        self.kinds.talk([0, 1])
        lines = self.lines()
        self.assertEqual(lines[0], "run " + " ".join(f"{first} {first + 1}" for first in self.stages))
        self.assertEqual(lines[1], "kind 512 0 pp 1 of 8, group 1 of 2")

    def test_many_stages_are_thinned(self):
        self.kinds.talk(range(0, 8192, 128))
        lines = self.lines()
        self.assertEqual(lines[0], "run 0 127 128 255 4096 4223 8064 8191")
        self.assertEqual(sum(int(line.split()[1]) for line in lines[1:]), 4 * 128)

    def test_a_rank_that_differs_runs_with_its_stages(self):
        self.kinds.talk(self.stages)
        self.kinds.single(5, "/home/me/train.py:33")
        self.kinds.single(8191, "/home/me/train.py:34")
        lines = self.lines()
        self.assertEqual(lines[0], "run " + " ".join(f"{first} {first + 5}" for first in self.stages))
        self.assertEqual(lines[1:3], ["kind 1023 0 pp 1 of 8", "kind 1 5 pp 1 of 8, compared at train.py:33"])

    def test_comparisons_of_ranks(self):
        rank, place = kinds.Rank(0, self.kinds, lambda rank: rank), kinds.Rank(0, self.kinds, kinds.Family(8, 8).place)
        self.assertFalse(rank == 7 or rank % 100 == 9 or rank // 2 == 1 or rank + 1 == 5 or place == 3)
        self.assertTrue(rank != 11 and rank == 0 and rank <= 8 and rank == rank and rank != 100_000 and rank != "x")
        self.assertEqual(sorted(self.kinds.singled), [2, 4, 7, 9, 11, 24])
        self.assertEqual(([1, 2][rank], {rank: 1}[0], type(rank + 0.5), f"{rank}"), (1, 1, float, "0"))

    def test_a_compared_stage_is_no_kind_of_its_own(self):
        """Every place in the group runs already. A group without messages, or with more places than run, has no such kinds."""
        for size, stride, talks, singled in ((8, 1024, True, []), (8, 1024, False, [2048, 3072]), (64, 128, True, [256, 384])):
            self.kinds = kinds.Kinds(8192)
            family = self.kinds.add(list(range(0, size * stride, stride)))
            family.talks = talks
            place = kinds.Rank(0, self.kinds, family.place, family)
            self.assertFalse(place == 3 or place + 1 == 3)
            self.assertEqual(sorted(self.kinds.singled), singled)
        number = kinds.Rank(0, self.kinds, lambda rank: rank)
        self.assertFalse(number == 384)
        self.assertEqual(self.kinds.compared[384][1], None)

    def test_as_few_as_possible(self):
        kinds.FEW = True
        self.addCleanup(setattr, kinds, "FEW", False)
        self.assertEqual(self.lines(), ["run 0 8191"])
        self.kinds.talk(range(0, 8192, 4096))
        self.assertEqual(self.lines()[0], "run 0 4096")
        self.kinds.single(5, "train.py:33")
        self.assertEqual(self.lines()[0], "run 0 5 4096 4101")
        self.kinds.single(8191, "train.py:34")
        self.assertEqual(self.lines()[0], "run 0 5 4095 4096 4101 8191")

    def test_packages_are_not_the_program(self):
        """accelerate's samplers compare the rank with every other one. Packages may be in any folder of sys.path."""
        with tempfile.TemporaryDirectory() as folder:
            for name in ("program", "packages"):
                os.mkdir(f"{folder}/{name}")
                sys.path.append(f"{folder}/{name}")
                self.addCleanup(sys.path.remove, f"{folder}/{name}")
            os.mkdir(folder + "/packages/accelerate-1.0.dist-info")
            own = [kinds.is_own(f"{folder}/{path}") for path in ("program/train.py", "packages/accelerate/state.py", "packages2/state.py", "train.py")]
        self.assertEqual(own, [True, False, True, True])

    def test_comparisons_in_a_file(self):
        text = textwrap.dedent("""
            import os
            import torch.distributed as dist
            LAST = 6
            rank, world = int(os.environ["RANK"]), 8
            other: int = int(os.getenv("RANK", "0"))
            class Trainer:
                def __init__(self):
                    self.rank = dist.get_rank()
                def step(self):
                    return self.rank in (1, 2)
            if rank == 3 or 4 != other or dist.get_rank() == 5 or rank == LAST or rank < 7 or world == 8 or dist.get_rank(group) == 9:
                pass
            """)
        self.assertEqual(sorted(rank for rank, _ in comparisons.of_text(text)), [1, 2, 3, 4, 5, 6])
        self.assertIn((1, 11), comparisons.of_text(text))

    def test_files_that_cannot_be_read(self):
        with tempfile.TemporaryDirectory() as folder:
            for text in (b"rank = (", b"\0", b"("*10000, b"x = " + b"-" * 100000 + b"1", b"\xff = 1"):
                path = pathlib.Path(folder, "a.py")
                path.write_bytes(text)
                self.assertEqual(comparisons.of_file(path), [])
        self.assertEqual(comparisons.of_file("/nonexistent.py"), [])

    def test_the_file(self):
        with tempfile.TemporaryDirectory() as folder:
            self.kinds.talk(self.stages)
            self.kinds.single(5, "a" * 1000)
            self.kinds.write(folder)
            lines = pathlib.Path(folder, "kinds").read_text().splitlines()
            self.assertEqual((os.listdir(folder), lines[0][:10], max(map(len, lines)) <= 400), (["kinds"], "run 0 5 10", True))


class Ranks(unittest.TestCase):
    def test_a_process_takes_its_rank(self):
        launched = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "ROLE_RANK": "1"}
        for given, rank in ((launched, "5"), ({**launched, "WORLD_SIZE": "8"}, "1"), ({**launched, "RANK": "2"}, "2")):
            os.environ.update(given)
            fold.take_rank()
            self.assertEqual(os.environ["RANK"], rank)
            self.assertTrue(os.environ["TRITON_CACHE_DIR"].endswith("/triton/0"))
        for rank, world, local_rank, local_world in fold.LAUNCHERS:
            os.environ.update({rank: "1", world: "2", local_rank: "1", "VRAM_FIT_LOCAL_WORLD": "4"})
            fold.take_rank()
            self.assertEqual([os.environ[name] for name in (rank, world, local_rank, local_world)], ["5", "8", "1", "4"])
            self.assertEqual(fold.own_rank(), "5")
            fold.take_rank()  # a child process
            self.assertEqual(os.environ.pop(rank), "5")
        self.assertEqual(fold.own_rank(), None)
        self.assertEqual(list(fold.running_ranks(8)), [0, 5])
        self.assertEqual(list(fold.running_ranks(3)), [0, 1, 2])


if __name__ == "__main__":
    unittest.main()
