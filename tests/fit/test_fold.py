#!/usr/bin/env python3
"""Tests adapters/fit/vram_fit_fold.py without PyTorch: what the ranks' store answers for ranks that do not run.

usage: test_fold.py ADAPTERS
"""
import os
import subprocess
import sys
import unittest

sys.path.insert(0, sys.argv.pop(1))
os.environ["VRAM_SIM_RANKS"] = "8:0,5"
import vram_fit_fold as fold  # noqa: E402

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

    def test_an_id_of_a_running_rank_names_the_members_that_run(self):
        for key, named in (("hash//cuda//0", b":0"), ("7//cuda//1:2", b""), ("hash//cuda//0:1", b":0"), ("0//cuda//5:6", b":0"), ("5//cuda//3", b""), ("hash//cuda//UniqueNCCLID:0", b":0")):
            self.groups.set(self.store, "default_pg/0//" + key, ID.ljust(128, b"\0"))
            self.assertEqual((key, self.asked(key)), (key, ID + named))
        self.groups.set(self.store, "default_pg/0//cuda//0", ID)
        self.assertEqual((self.asked("cuda//0"), self.made), (ID, 0))

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


class Ranks(unittest.TestCase):
    def test_a_process_takes_its_rank(self):
        launched = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "ROLE_RANK": "1"}
        for given, rank in ((launched, "5"), ({**launched, "WORLD_SIZE": "8"}, "1"), ({**launched, "RANK": "2"}, "2")):
            os.environ.update(given)
            fold.take_rank()
            self.assertEqual(os.environ["RANK"], rank)
        self.assertEqual(list(fold.running_ranks(8)), [0, 5])
        self.assertEqual(list(fold.running_ranks(3)), [0, 1, 2])


if __name__ == "__main__":
    unittest.main()
