#!/usr/bin/env python3
"""The allocator in Python and the plugs for other libraries, on the simulated driver. The libraries are stand-ins here, with as much of their documented
interface as a plug calls; the libraries themselves run in `make check-real` (tests/real/programs/plugs.py)."""
import ctypes
import gc
import os
import subprocess
import sys
import types
import unittest

os.environ["VRAM_SIM"] = "manual=1,memory=1GiB"  # events wait until somebody synchronizes

import vram
from vram._allocator import Block

MIB = 1 << 20
TOO_MUCH = 4 << 30
driver = ctypes.CDLL(os.environ["VRAM_LIBCUDA"])


def synchronize():
    context, device = ctypes.c_void_p(), 0
    assert driver.cuInit(0) == 0
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0 and driver.cuCtxSetCurrent(context) == 0
    assert driver.cuCtxSynchronize() == 0
    assert driver.cuDevicePrimaryCtxRelease_v2(device) == 0


def live(kind="allocated"):
    return vram.allocator().memory_stats()[kind + "_bytes.all.current"]


class Base(unittest.TestCase):
    def setUp(self):
        synchronize()
        vram.allocator().empty_cache()
        self.assertEqual((live(), live("reserved")), (0, 0))

    def tearDown(self):
        gc.collect()
        self.assertEqual(live(), 0)
        vram.allocator().check()


class Allocator(Base):
    def test_memory(self):
        mine = vram.allocator()
        self.assertIs(mine, vram.allocator())
        address = mine.malloc(3 * MIB)
        self.assertEqual((mine.size_of(address), mine.malloc(0), mine.device_count(), mine.mem_get_info()[1]), (3 * MIB, 0, 1, 1 << 30))
        mine.free(address)
        self.assertEqual(mine.malloc(3 * MIB), address)
        mine.free(address)
        with self.assertRaisesRegex(vram.Error, "^vram: .*given out"):
            mine.free(address)
        with self.assertRaisesRegex(MemoryError, "4.00 GiB"):
            mine.malloc(TOO_MUCH)

    def test_limit_and_options(self):
        mine = vram.allocator()
        mine.set_memory_limit(8 * MIB)
        with self.assertRaises(vram.OutOfMemory):
            mine.malloc(64 * MIB)
        mine.set_memory_limit(None)
        mine.free(mine.malloc(64 * MIB))
        with self.assertRaisesRegex(vram.Error, "no_such_option"):
            mine.configure("no_such_option:1")
        with self.assertRaisesRegex(vram.Error, "expandable_segments"):
            vram.Allocator("expandable_segments:maybe")
        other = vram.Allocator("max_split_size_mb:64")
        other.free(other.malloc(MIB))

    def test_pool(self):
        mine = vram.allocator()
        pool = mine.pool()
        address = pool.malloc(MIB)
        mine.free(address)
        other = mine.malloc(MIB)
        self.assertNotEqual(other, address)
        mine.free(other)
        self.assertEqual(pool.malloc(MIB), address)
        mine.free(address)
        held = live("reserved")
        pool.trim()
        self.assertLess(live("reserved"), held)
        pool.release()
        pool.release()

    def test_block_of_no_stream(self):
        for stream in (None, 2):  # 2: another stream in each thread
            block = Block(MIB, stream=stream)
            address = block.address
            block.release()
            block.release()
            self.assertEqual((live(), live("active")), (0, MIB))  # until all streams have passed its end
            other = Block(MIB)
            self.assertNotEqual(other.address, address)
            synchronize()
            again = Block(MIB)
            self.assertEqual(again.address, address)
            del other, again
            synchronize()
        self.assertEqual(Block(0).address, 0)

    def test_block_of_a_stream(self):
        address = Block(MIB, stream=0).address
        self.assertEqual(live("active"), 0)
        self.assertEqual(Block(MIB, stream=0).address, address)
        block = Block(MIB, stream=0)
        self.assertRaises(MemoryError, Block, TOO_MUCH)
        self.assertEqual(live(), MIB)
        del block

    def test_after_fork(self):
        block = Block(MIB)
        child = os.fork()
        if child == 0:
            del block  # of the parent: nothing happens to it
            os._exit(0)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(live(), MIB)

    def test_report(self):
        mine = vram.allocator()
        mine.record("all,stacks=python")
        mine.free(mine.malloc(5 * MIB))
        mine.snapshot("plugs.pickle")
        mine.record("off")
        done = subprocess.run([os.environ["VRAM_COMMAND"], "report", "plugs.pickle"], capture_output=True, check=True, text=True)
        os.unlink("plugs.pickle")
        self.assertRegex(done.stdout, r"5\.0 MiB .*test_plugs\.py:\d+:test_report")
        with self.assertRaisesRegex(vram.Error, "wrongly"):
            mine.record("wrongly")

    def test_without_a_library(self):
        env = {**os.environ, "VRAM_LIBRARY": ""}
        done = subprocess.run([sys.executable, "-c", "import vram; vram.allocator()"], capture_output=True, text=True, env=env, check=False)
        self.assertRegex(done.stderr.splitlines()[-1], "no native code.*VRAM_LIBRARY")


def module(name, **content):
    made = sys.modules[name] = types.ModuleType(name)
    made.__dict__.update(content)
    return made


class OutOfMemoryError(MemoryError):
    """cupy.cuda.memory.OutOfMemoryError"""

    def __init__(self, size, total, limit=0):
        super().__init__(f"{size} {total} {limit}")


class CuPy(Base):
    """cupy.cuda.set_allocator(), UnownedMemory, MemoryPointer and the current stream."""

    @classmethod
    def setUpClass(cls):
        Pointer = types.SimpleNamespace
        cls.stream, cls.put = 0, []
        cuda = module("cupy.cuda", set_allocator=cls.put.append, device=types.SimpleNamespace(get_device_id=lambda: 0),
                      get_current_stream=lambda: types.SimpleNamespace(ptr=cls.stream), memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
                      UnownedMemory=lambda ptr, size, owner, device_id=-1: Pointer(ptr=ptr, size=size, owner=owner, device_id=device_id),
                      MemoryPointer=lambda mem, offset: Pointer(mem=mem, ptr=mem.ptr + offset))
        module("cupy", cuda=cuda, get_default_memory_pool=lambda: types.SimpleNamespace(malloc="its own"))
        import vram.cupy
        cls.plug = vram.cupy

    def test_arrays(self):
        self.plug.enable()
        pointer = self.put[-1](MIB)
        self.assertEqual((pointer.mem.size, pointer.mem.device_id, live()), (MIB, 0, MIB))
        address = pointer.ptr
        del pointer
        self.assertEqual((live(), live("active")), (0, 0))
        self.assertEqual(self.put[-1](MIB).ptr, address)
        type(self).stream = 2
        pointer = self.put[-1](MIB)
        self.assertNotEqual(pointer.ptr, address)
        type(self).stream = 0
        with self.assertRaisesRegex(OutOfMemoryError, str(TOO_MUCH)) as caught:
            self.put[-1](TOO_MUCH)
        self.assertIn("4.00 GiB", str(caught.exception.__cause__))
        self.plug.disable()
        self.assertEqual(self.put[-1], "its own")

    def test_another_allocator(self):
        other = vram.Allocator()
        self.plug.enable(other)
        pointer = self.put[-1](MIB)
        self.assertEqual((live(), other.memory_stats()["allocated_bytes.all.current"]), (0, MIB))
        del pointer
        self.assertEqual(other.memory_stats()["allocated_bytes.all.current"], 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
