"""Tests sleeping memory in the Python module, on the simulated driver, and the stand-ins for other libraries' modules. No PyTorch."""
import ctypes
import os
import unittest

os.environ["VRAM_SIM"] = "memory=1GiB,backed"

import vram_torch

MIB = 1 << 20


def write(address, data):
    ctypes.memmove(address, data, len(data))


class Sleep(unittest.TestCase):
    def setUp(self):
        self.made = vram_torch.allocator()

    def test_tags_sleep_and_wake(self):
        free = vram_torch.mem_get_info(0)[0]
        with vram_torch.tagged("weights"):
            weights = self.made.malloc(50 * MIB)
            with vram_torch.tagged("kv_cache"):
                cache = self.made.malloc(30 * MIB)
            with vram_torch.untagged():
                other = self.made.malloc(10 * MIB)
        outside = self.made.malloc(MIB)
        data = bytes(range(256)) * 1000
        write(weights, data)
        write(cache, data)
        self.assertEqual(vram_torch.sleep("weights"), 50 * MIB)
        self.assertEqual([(s.tag, s.level, s.live_bytes, s.host_bytes) for s in vram_torch.sleepers()], [("weights", "keep", 50 * MIB, 50 * MIB)])
        self.assertEqual(self.made.kept(weights, len(data)), data)
        self.assertGreaterEqual(vram_torch.sleepers()[0].pool[1], 1 << 24)  # PyTorch numbers its own pools from 1
        self.assertEqual(vram_torch.sleep({"weights": "zero", "kv_cache": "zero"}), 30 * MIB)  # sleeping memory does not change
        self.assertEqual(vram_torch.memory_allocated(0), 91 * MIB)
        with self.assertRaisesRegex(vram_torch.Error, "asleep"), vram_torch.tagged("weights"):
            self.made.malloc(MIB)
        self.assertEqual(vram_torch.wake(), 80 * MIB)
        self.assertEqual(ctypes.string_at(weights, len(data)), data)
        self.assertEqual(ctypes.string_at(cache, 1000), bytes(1000))
        self.assertEqual(vram_torch.sleepers(), [])
        vram_torch.sleep("weights", on_request="wake")
        with vram_torch.tagged("weights"):
            more = self.made.malloc(MIB)
        self.assertEqual(ctypes.string_at(weights, len(data)), data)
        for address in (weights, cache, other, outside, more):
            self.made.free(address)
        vram_torch.sleep(("weights", "kv_cache"))
        vram_torch.wake()
        vram_torch.empty_cache()
        self.assertGreaterEqual(vram_torch.mem_get_info(0)[0], free - 20 * MIB)
        self.made.check()

    def test_mistakes_are_named(self):
        for function in (lambda: vram_torch.sleep("nobody"), lambda: vram_torch.sleep({"nobody": "keep"})):
            with self.assertRaisesRegex(vram_torch.Error, "nobody"):
                function()
        for function in (lambda: vram_torch.sleep("x", level="deep"), lambda: vram_torch.sleep("x", on_request="ask")):
            with self.assertRaises(ValueError):
                function()
        with self.assertRaises(ValueError), vram_torch.tagged(""):
            pass
        block = self.made.malloc(MIB)
        with self.assertRaisesRegex(vram_torch.Error, "cuMemAlloc allocated it"):
            vram_torch.sleep()
        self.made.free(block)

    def test_a_full_device_is_told(self):
        with vram_torch.tagged("big"):
            big = self.made.malloc(600 * MIB)
        vram_torch.sleep("big", level="discard")
        guest = self.made.malloc(700 * MIB)
        with self.assertRaisesRegex(vram_torch.OutOfMemory, "waking needs"):
            vram_torch.wake("big")
        self.assertEqual(len(vram_torch.sleepers()), 1)
        self.made.free(guest)
        vram_torch.wake("big")
        self.made.free(big)

    def test_as_torch_memory_saver(self):
        from vram_memory_saver import torch_memory_saver as saver

        saver._enable = lambda: None
        with saver.region("a", enable_cpu_backup=True):
            kept = self.made.malloc(20 * MIB)
        with saver.region("a"):
            lost = self.made.malloc(20 * MIB)
            with saver.disable():
                stays = self.made.malloc(4 * MIB)
        write(kept, b"abc")
        write(stays, b"def")
        saver.pause("never used")
        saver.pause("a")
        self.assertEqual({(s.tag, s.level) for s in vram_torch.sleepers()}, {("a/keep", "keep"), ("a/discard", "discard")})
        self.assertEqual(ctypes.string_at(stays, 3), b"def")
        saver.pause()
        saver.resume()
        self.assertEqual(ctypes.string_at(kept, 3), b"abc")
        with self.assertRaises(NotImplementedError), saver.region("b", enable_disk_backup=True):
            pass
        for address in (kept, lost, stays):
            self.made.free(address)

    def test_as_vllms_allocator(self):
        from vram_cumem import CuMemAllocator

        enable, vram_torch.enable = vram_torch.enable, lambda: None
        allocator = CuMemAllocator.get_instance()
        self.assertIs(allocator, CuMemAllocator.get_instance())
        vram_torch.enable = enable
        vram_torch.empty_cache()
        before = allocator.get_current_usage()
        self.assertEqual(before, 0)
        with allocator.use_memory_pool(tag="weights"):
            weights = self.made.malloc(40 * MIB)
        with allocator.use_memory_pool(tag="kv_cache"):
            cache = self.made.malloc(60 * MIB)
        write(weights, b"weights")
        self.assertGreaterEqual(allocator.get_current_usage() - before, 100 * MIB)
        allocator.sleep(offload_tags="weights")
        self.assertEqual({s.tag: s.level for s in vram_torch.sleepers()}["weights"], "keep")
        self.assertEqual({s.tag: s.level for s in vram_torch.sleepers()}["kv_cache"], "discard")
        self.assertGreaterEqual(allocator.get_current_usage() - before, 100 * MIB)
        allocator.wake_up(tags=["weights"])
        self.assertEqual(ctypes.string_at(weights, 7), b"weights")
        self.assertEqual([s.tag for s in vram_torch.sleepers()], ["kv_cache"])
        allocator.wake_up()
        self.assertEqual(vram_torch.sleepers(), [])
        allocator.discard("kv_cache")
        allocator.wake_up(["kv_cache"])
        for address in (weights, cache):
            self.made.free(address)
        allocator.close()


if __name__ == "__main__":
    unittest.main()
