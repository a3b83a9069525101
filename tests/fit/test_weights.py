#!/usr/bin/env python3
"""Tests the checkpoints made by `vram fit --dummy-weights`: files with holes, in several shards if one file would exceed half the host's memory; existing
files stay.

usage: test_weights.py ADAPTERS
"""
import json
import os
import sys
import tempfile
import unittest

ADAPTERS = sys.argv.pop(1)
sys.path.insert(0, ADAPTERS)
import vram_fit_weights as weights  # noqa: E402

GIB = 1 << 30
TENSORS = {f"layers.{i}.weight": ("BF16", (GIB // 4, 2), GIB) for i in range(10)} | {"head.weight": ("F32", (4,), 16)}


def header_of(path):
    with open(path, "rb") as file:
        return json.loads(file.read(int.from_bytes(file.read(8), "little")))


class Checkpoints(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        host = weights.host_bytes
        self.addCleanup(setattr, weights, "host_bytes", host)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def check_file(self, name, tensors):
        header, at = header_of(self.path(name)), 0
        self.assertEqual(list(header), ["__metadata__", *tensors])
        for tensor in tensors:
            self.assertEqual(header[tensor], {"dtype": TENSORS[tensor][0], "shape": list(TENSORS[tensor][1]), "data_offsets": [at, at + TENSORS[tensor][2]]})
            at += TENSORS[tensor][2]
        facts = os.stat(self.path(name))
        self.assertGreater(facts.st_size, at)
        self.assertLess(facts.st_blocks * 512, 1 << 20)  # a hole

    def test_one_file_where_the_host_has_room(self):
        weights.host_bytes = lambda: 64 * GIB
        self.assertEqual(weights.write_checkpoint(self.folder.name, "model", TENSORS), 10 * GIB + 16)
        self.assertEqual(os.listdir(self.folder.name), ["model.safetensors"])
        self.check_file("model.safetensors", list(TENSORS))

    def test_shards_where_it_has_not(self):
        weights.host_bytes = lambda: 16 * GIB
        self.assertEqual(weights.write_checkpoint(self.folder.name, "model", TENSORS), 10 * GIB + 16)
        with open(self.path("model.safetensors.index.json"), encoding="utf-8") as file:
            index = json.load(file)
        self.assertEqual(index["metadata"]["total_size"], 10 * GIB + 16)
        self.assertEqual(list(index["weight_map"]), list(TENSORS))
        files = sorted(set(index["weight_map"].values()))
        self.assertEqual(files, [f"model-{i:05}-of-00006.safetensors" for i in range(1, 7)])
        for name in files:
            self.check_file(name, [tensor for tensor in TENSORS if index["weight_map"][tensor] == name])

    def test_a_tensor_larger_than_a_shard_has_one_of_its_own(self):
        self.assertEqual([list(shard) for shard in weights.shards_of({"a": ("F32", (), 1), "b": ("F32", (), 9), "c": ("F32", (), 1)}, 4)], [["a"], ["b"], ["c"]])

    def test_files_that_are_there_are_seen(self):
        self.assertIs(weights.are_there(self.folder.name, {}), False)
        self.assertIsNone(weights.are_there("owner/a-model-that-no-cache-has", {}))
        os.mkdir(self.path("unet"))
        open(self.path("unet/diffusion_pytorch_model.safetensors"), "w").close()
        self.assertIs(weights.are_there(self.folder.name, {}), False)
        self.assertIs(weights.are_there(self.folder.name, {"subfolder": "unet"}), True)


if __name__ == "__main__":
    unittest.main()
