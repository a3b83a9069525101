"""Tests vram.nccl on the simulated device and the stand-in for NCCL, with two ranks, each a process, and buffers in registered segments.

usage: vram sim --devices 2 -- python3 nccl_plug.py"""
import ctypes
import gc
import os
import subprocess
import sys
import weakref

MIB = 1 << 20


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


def communicator(nccl, rank, unique):
    nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, UniqueId, ctypes.c_int]
    comm = ctypes.c_void_p()
    assert nccl.ncclCommInitRank(ctypes.byref(comm), 2, unique, rank) == 0
    return comm


def count(calls, name):
    return sum(1 for call in calls if call == name)


def watched(memory, calls):
    """Records the plug's calls to NCCL."""
    must = memory._must

    def note(name, *arguments):
        calls.append(name)
        if name == "ncclMemAlloc":
            gc.collect()  # Python may collect at any moment, also here, under the allocator's locks
        return must(name, *arguments)

    memory._must = note


def rank_main(rank, text):
    import vram
    import vram.nccl

    nccl, driver = ctypes.CDLL("libnccl.so.2"), ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    assert driver.cuInit(0) == 0 and driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), rank) == 0 and driver.cuCtxSetCurrent(context) == 0
    comm = communicator(nccl, rank, UniqueId.from_buffer_copy(bytes.fromhex(text)))
    memory, calls = vram.nccl.Memory(rank), []
    watched(memory, calls)

    first = memory.malloc(4 * MIB)
    memory.register(comm.value)  # the existing segments
    assert (count(calls, "ncclMemAlloc"), count(calls, "ncclCommRegister")) == (1, 1) and len(memory.segments()) == 1
    second = memory.malloc(4 * MIB)
    assert len(memory.segments()) == 1  # part of the same segment
    third = memory.malloc(64 * MIB, rank)  # registered when it is allocated
    assert (count(calls, "ncclMemAlloc"), count(calls, "ncclCommRegister")) == (2, 2), calls
    assert all(any(start <= address < start + size for start, size in memory.segments()) for address in (first, second, third))

    send, receive = ctypes.create_string_buffer(bytes([1 + rank] * 16)), ctypes.create_string_buffer(16)
    assert driver.cuMemcpyHtoD_v2(ctypes.c_uint64(first), send, ctypes.c_size_t(16)) == 0
    assert nccl.ncclAllReduce(ctypes.c_void_p(first), ctypes.c_void_p(second), ctypes.c_size_t(16), 1, 0, comm, None) == 0  # uint8, sum
    assert driver.cuCtxSynchronize() == 0 and driver.cuMemcpyDtoH_v2(receive, ctypes.c_uint64(second), ctypes.c_size_t(16)) == 0
    assert receive.raw[:16] == bytes([3] * 16), receive.raw

    block = vram._allocator.Block(MIB, rank, None, memory)  # as plugs for libraries create one
    assert any(start <= block.address < start + size for start, size in memory.segments())
    block.release()
    assert driver.cuCtxSynchronize() == 0
    for address in (first, second, third):
        memory.free(address)
    memory.trim()
    assert memory.segments() == [] and all(count(calls, name) == 3 for name in ("ncclCommDeregister", "ncclMemFree")), calls  # including the block's

    # Garbage found while the allocator's locks are held waits for the end of the call.
    class Owner:
        pass

    owner, address = Owner(), memory.malloc(MIB)
    weakref.finalize(owner, memory.free, address)
    owner.itself = owner
    gc.disable()
    del owner
    assert vram.allocator().size_of(address) == MIB
    big = memory.malloc(64 * MIB)
    assert vram.allocator().size_of(address) == 0
    gc.enable()
    memory.free(big)

    none = ctypes.create_string_buffer(4096)
    for wrong in (lambda: memory.malloc(MIB, 1 - rank), lambda: memory.register(ctypes.addressof(none)), lambda: memory.malloc(1 << 40)):
        try:
            wrong()
            raise AssertionError("not refused")
        except vram.Error as error:
            assert str(error).startswith("vram.nccl: ") or isinstance(error, MemoryError), error
    assert "ncclMemAlloc" in str(memory.last_error)
    memory.deregister(comm.value)
    memory.trim()
    assert memory.segments() == [] and count(calls, "ncclCommDeregister") == count(calls, "ncclCommRegister") - 1, calls  # one registration was refused
    vram.allocator().check()
    assert nccl.ncclCommDestroy(comm) == 0
    print("ok")


def main():
    if len(sys.argv) > 1:
        return rank_main(int(sys.argv[1]), sys.argv[2])
    unique = UniqueId()
    assert ctypes.CDLL("libnccl.so.2").ncclGetUniqueId(ctypes.byref(unique)) == 0
    text = ctypes.string_at(ctypes.byref(unique), 128).hex()
    ranks = [subprocess.Popen([sys.executable, os.path.abspath(__file__), str(rank), text]) for rank in range(2)]
    return max(abs(rank.wait()) for rank in ranks)


sys.exit(main())
