#!/usr/bin/env python3
"""Tests the allocator in Python and its plugs for other libraries, on the simulated driver. The libraries are replaced here by stand-ins
with the part of their documented interface that a plug calls; `make check-real` runs the libraries themselves
(tests/real/programs/plugs.py)."""
import ctypes
import gc
import os
import subprocess
import sys
import types
import unittest

os.environ["VRAM_SIM"] = "manual=1,memory=1GiB"  # events stay pending until a synchronization

import vram
import vram_torch
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
        with self.assertRaisesRegex(vram.Error, "^vram: .*not from this allocator"):
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
        mine.set_option("max_split_size_mb", 64)
        mine.set_option("garbage_collection_threshold", 0.5)
        mine.set_option("max_split_size_mb", None)
        with self.assertRaisesRegex(vram.Error, "did you mean 'paged'"):
            mine.set_option("pagd", True)
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
            self.assertEqual((live(), live("active")), (0, MIB))  # until all streams have reached its end
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
            del block  # the parent's block is unaffected
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


class Plugs(unittest.TestCase):
    def test_each_is_short(self):
        folder = os.path.dirname(vram.__file__)
        lines = {name: sum(1 for _ in open(os.path.join(folder, name), encoding="utf-8")) for name in (
            "cupy.py", "numba.py", "cuda_core.py", "rmm.py", "onnxruntime.py", "tensorrt.py", "nccl.py")}
        self.assertLessEqual(max(lines.values()), 100, lines)


def module(name, **content):
    made = sys.modules[name] = types.ModuleType(name)
    made.__dict__.update(content)
    return made


class OutOfMemoryError(MemoryError):
    """Stands in for cupy.cuda.memory.OutOfMemoryError."""

    def __init__(self, size, total, limit=0):
        super().__init__(f"{size} {total} {limit}")


class CuPy(Base):
    """Stands in for cupy.cuda.set_allocator(), UnownedMemory, MemoryPointer and the current stream."""

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
        for other in vram.Allocator(), vram_torch.Allocator():  # the second is PyTorch's in a program that has it
            self.plug.enable(other)
            pointer = self.put[-1](MIB)
            self.assertEqual((live(), other.memory_stats()["allocated_bytes.all.current"]), (0, MIB))
            self.assertRaises(OutOfMemoryError, self.put[-1], TOO_MUCH)
            type(self).stream = 2
            del pointer
            self.assertNotEqual(self.put[-1](MIB).ptr, 0)
            type(self).stream = 0
            self.assertEqual(other.memory_stats()["allocated_bytes.all.current"], 0)


class OnnxRuntime(Base):
    """The options of the CUDA provider hold addresses of functions."""

    def functions(self, **options):
        import vram.onnxruntime as plug
        told = plug.provider_options(**options)
        self.assertTrue(all(isinstance(value, str) for value in told.values()))
        kinds = (ctypes.c_void_p, ctypes.c_size_t), (None, ctypes.c_void_p), (None,)
        names = ("gpu_external_alloc", "gpu_external_free", "gpu_external_empty_cache")
        return told, *(ctypes.CFUNCTYPE(*kind)(int(told[name])) for kind, name in zip(kinds, names))

    def test_functions(self):
        told, allocate, free, empty = self.functions(cudnn_conv_algo_search="HEURISTIC")
        self.assertEqual((told["device_id"], told["cudnn_conv_algo_search"], told["use_ep_level_unified_stream"]), ("0", "HEURISTIC", "1"))
        address = allocate(MIB)
        self.assertEqual(live(), MIB)
        free(address)
        _, allocate_other, free_other, empty_other = self.functions()
        other = allocate_other(MIB)
        self.assertNotEqual(other, address)  # belongs to another session
        free_other(other)
        self.assertEqual(allocate(MIB), address)
        free(address)
        free(None)
        empty()
        empty_other()
        self.assertEqual(live("reserved"), 0)

    def test_failures(self):
        import vram.onnxruntime as plug
        told, allocate, free, _ = self.functions()
        self.assertIsNone(allocate(TOO_MUCH))
        self.assertIsInstance(plug.last_error(), MemoryError)
        free(12345)
        self.assertIn("not from this allocator", str(plug.last_error()))
        self.assertRaisesRegex(ValueError, "user_compute_stream", plug.provider_options, user_compute_stream="1")


class Stream:
    """An object with a stream's handle by CUDA's protocol for Python."""

    def __init__(self, handle):
        self.handle = handle

    def __cuda_stream__(self):
        return 0, self.handle


def stream():
    made = ctypes.c_void_p()
    synchronize()
    assert driver.cuStreamCreate(ctypes.byref(made), 1) == 0  # non-blocking
    return made.value


class Rmm(Base):
    """Stands in for rmm.mr.CallbackMemoryResource and set_per_device_resource()."""

    @classmethod
    def setUpClass(cls):
        cls.resources = {}
        made = module("rmm.mr", CallbackMemoryResource=lambda allocate, deallocate: types.SimpleNamespace(allocate=allocate, deallocate=deallocate),
                      set_per_device_resource=cls.resources.__setitem__)
        module("rmm", mr=made)
        import vram.rmm
        vram.rmm.enable()

    def test_streams(self):
        self.assertEqual(list(self.resources), [0])
        resource, first, second = self.resources[0], Stream(stream()), Stream(stream())
        address = resource.allocate(MIB, first)
        resource.deallocate(address, MIB, first)
        self.assertEqual(resource.allocate(MIB, first), address)  # reused at once, in the order of its stream
        resource.deallocate(address, MIB, second)
        self.assertEqual((live(), live("active")), (0, MIB))
        other = resource.allocate(MIB, first)
        self.assertNotEqual(other, address)
        synchronize()
        again = resource.allocate(MIB, first)
        self.assertEqual(again, address)
        resource.deallocate(other, MIB, first)
        resource.deallocate(again, MIB, first)
        self.assertRaises(MemoryError, resource.allocate, TOO_MUCH, first)

    def test_default_streams(self):
        resource = self.resources[0]
        address = resource.allocate(MIB, Stream(0))
        resource.deallocate(address, MIB, Stream(1))  # another handle of the same stream
        self.assertEqual(live("active"), 0)
        self.assertEqual(resource.allocate(MIB, Stream(1)), address)
        resource.deallocate(address, MIB, Stream(2))
        synchronize()
        self.assertEqual(resource.allocate(0, Stream(0)), 0)
        resource.deallocate(0, 0, Stream(2))


class TensorRT(Base):
    """Stands in for IGpuAsyncAllocator and IGpuAllocator of TensorRT 10 and 11."""

    @classmethod
    def setUpClass(cls):
        module("tensorrt", IGpuAsyncAllocator=type("IGpuAsyncAllocator", (), {}))
        import vram.tensorrt
        cls.plug = vram.tensorrt.GpuAllocator()

    def test_streams(self):
        plug, first, second = self.plug, stream(), stream()
        address = plug.allocate_async(MIB, 256, first, 0)  # as its bindings call it
        self.assertIs(plug.deallocate_async(address, first), True)
        self.assertEqual(plug.allocate_async(size=MIB, alignment=256, flags=1, stream=first), address)  # the call its documentation shows
        self.assertIs(plug.deallocate_async(address, second), True)
        self.assertEqual((live(), live("active")), (0, MIB))
        synchronize()
        for flags, handle in (0, 0), (1, 0), (0, 1), (1, 1):  # different names of the legacy default stream
            address = plug.allocate_async(MIB, 256, handle, flags)
            plug.deallocate_async(address, 0)
            self.assertEqual(live("active"), 0)

    def test_without_streams(self):
        address = self.plug.allocate(MIB, 256, 0)
        self.assertIs(self.plug.deallocate(address), True)
        self.assertEqual(live("active"), MIB)
        synchronize()

    def test_failures(self):
        self.assertEqual(self.plug.allocate_async(TOO_MUCH, 256, 0, 0), 0)
        self.assertIn("4.00 GiB", str(self.plug.last_error))
        self.assertEqual(self.plug.allocate(MIB, 4096, 0), 0)
        self.assertIn("4096", str(self.plug.last_error))
        self.assertIs(self.plug.deallocate(12345), False)
        self.assertEqual(self.plug.reallocate(12345, 256, MIB), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
