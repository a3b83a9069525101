"""Tests that recordings of PyTorch for ROCm are recognized, and their settings are those of PYTORCH_HIP_ALLOC_CONF. Made here, because no real
one was found.
usage: check_rocm.py VRAM"""
import json
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest

VRAM = sys.argv.pop(1)
MIB = 1 << 20
ROCM = [{"filename": "/src/pytorch/c10/hip/HIPCachingAllocator.cpp", "name": "c10::hip::HIPCachingAllocator::Native::malloc(unsigned long)", "line": 10}]
CUDA = [{"filename": "/src/pytorch/c10/cuda/CUDACachingAllocator.cpp", "name": "c10::cuda::CUDACachingAllocator::Native::malloc(unsigned long)", "line": 10}]
PYTHON = [{"filename": "/home/me/train.py", "name": "step", "line": 7}]


def history(frames, settings=None):
    """Four blocks of 200 MiB are freed, four of 120 MiB take their segments, and a request of another 200 MiB then finds the free memory in four pieces."""
    events, segments = [], []

    def event(action, address, mebibytes):
        events.append({"action": action, "addr": address, "size": mebibytes * MIB, "stream": 0, "time_us": 1000 + len(events), "frames": frames + PYTHON})
    places = [0x7f0000000000 + i * 256 * MIB for i in range(4)]
    for place in places:
        event("segment_alloc", place, 200)
        event("alloc", place, 200)
    for place in places:
        event("free_requested", place, 200)
        event("free_completed", place, 200)
    for place in places:
        event("alloc", place, 120)
    events.append({"action": "oom", "device_free": 6 * MIB, "size": 200 * MIB, "stream": 0, "time_us": 9000, "frames": frames + PYTHON})
    for place in places:
        blocks = [{"address": place, "size": 120 * MIB, "requested_size": 120 * MIB, "state": "active_allocated", "frames": []},
                  {"address": place + 120 * MIB, "size": 80 * MIB, "requested_size": 0, "state": "inactive", "frames": []}]
        segments.append({"device": 0, "address": place, "total_size": 200 * MIB, "allocated_size": 120 * MIB, "active_size": 120 * MIB,
                         "requested_size": 120 * MIB, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False,
                         "frames": [], "blocks": blocks})
    return {"segments": segments, "device_traces": [events], "external_annotations": [], "allocator_settings": settings or {}}


class Rocm(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def vram(self, snapshot, *arguments):
        path = pathlib.Path(self.folder.name) / "r.pickle"
        path.write_bytes(pickle.dumps(snapshot))
        done = subprocess.run([VRAM, *arguments, path], capture_output=True, text=True, timeout=100)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.stdout

    def test_it_is_named(self):
        self.assertIn(" for ROCm, ", self.vram(history(ROCM), "report"))
        for frames, platform in ((ROCM, "ROCm"), (CUDA, "CUDA"), (CUDA + ROCM, "ROCm"), ([], None)):
            text = self.vram(history(frames), "report", "--json")
            self.assertEqual(json.loads(text)["platform"], platform)
        for frames in (CUDA, []):
            self.assertNotIn("ROCm", self.vram(history(frames), "report"))

    def test_settings_are_its_own(self):
        for frames, variable, other in ((ROCM, "PYTORCH_HIP_ALLOC_CONF", "CUDA_ALLOC"), (CUDA, "PYTORCH_CUDA_ALLOC_CONF", "HIP_ALLOC")):
            for command in (("report",), ("tune",)):
                said = self.vram(history(frames), *command)
                self.assertRegex(said, rf"\n +(cure +)?{variable}=\S", command)
                self.assertNotIn(other, said)
            self.assertEqual(json.loads(self.vram(history(frames), "report", "--json"))["cures"][0]["variable"], variable)

    def test_its_option_string_is_replayed(self):
        said = self.vram(history([], {"PYTORCH_HIP_ALLOC_CONF": "expandable_segments:True"}), "replay")
        self.assertIn("expandable_segments:True", said)
        self.assertIn(" for ROCm, ", self.vram(history([], {"PYTORCH_HIP_ALLOC_CONF": ""}), "report"))


if __name__ == "__main__":
    unittest.main()
