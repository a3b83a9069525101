"""Checks that NVML reports the same about the simulated devices as the driver. test_sim.py runs it under `vram sim`, using ctypes alone.

With `use`, this process first takes memory of device 0, and a child takes memory of device 1 and is killed.
"""
import ctypes
import os
import signal
import subprocess
import sys

nvml = ctypes.CDLL("libnvidia-ml.so.1")
cuda = ctypes.CDLL("libcuda.so.1")
MIB = 1 << 20


class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class MemoryV2(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint)] + [(name, ctypes.c_ulonglong) for name in ("total", "reserved", "free", "used")]


class FieldValue(ctypes.Structure):
    _fields_ = [("field", ctypes.c_uint), ("scope", ctypes.c_uint), ("at", ctypes.c_longlong), ("took", ctypes.c_longlong), ("type", ctypes.c_int),
                ("result", ctypes.c_int), ("value", ctypes.c_ulonglong)]


class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gpu", ctypes.c_uint), ("compute", ctypes.c_uint)]


def good(result):
    assert result == 0, result


def use(device):
    context = ctypes.c_void_p()
    good(cuda.cuInit(0))
    good(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    good(cuda.cuCtxSetCurrent(context))


def left():
    available, total = ctypes.c_size_t(), ctypes.c_size_t()
    good(cuda.cuMemGetInfo_v2(ctypes.byref(available), ctypes.byref(total)))
    return available.value


def take(device, mib):
    address = ctypes.c_ulonglong()
    use(device)
    good(cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(mib * MIB)))


def handle(index):
    found = ctypes.c_void_p()
    good(nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(found)))
    return found


def memory(index):
    found = Memory()
    good(nvml.nvmlDeviceGetMemoryInfo(handle(index), ctypes.byref(found)))
    return found


def processes(index, version="_v3"):
    count, entries = ctypes.c_uint(8), (Process * 8)()
    good(getattr(nvml, "nvmlDeviceGetComputeRunningProcesses" + version)(handle(index), ctypes.byref(count), entries))
    return {entries[i].pid: entries[i].used // MIB for i in range(count.value)}


def text(function, index, length=96):
    found = ctypes.create_string_buffer(length)
    good(function(handle(index), found, length))
    return found.value.decode()


def check_identity():
    """All ways to find a device lead to the same one, which is the driver's."""
    count, total, uuid, found = ctypes.c_uint(), ctypes.c_size_t(), ctypes.create_string_buffer(16), ctypes.c_void_p()
    assert nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 1  # nvmlInit must come first
    good(nvml.nvmlInit_v2())
    good(nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)))
    good(cuda.cuInit(0))
    for index in range(count.value):
        name = ctypes.create_string_buffer(96)
        good(cuda.cuDeviceGetName(name, 96, index))
        assert text(nvml.nvmlDeviceGetName, index) == name.value.decode()
        good(cuda.cuDeviceGetUuid_v2(uuid, index))
        told = text(nvml.nvmlDeviceGetUUID, index)
        assert told.replace("-", "") == "GPU" + uuid.raw.hex(), told
        good(nvml.nvmlDeviceGetHandleByUUID(told.encode(), ctypes.byref(found)))
        assert found.value == handle(index).value
        bus = ctypes.c_int()
        good(cuda.cuDeviceGetAttribute(ctypes.byref(bus), 33, index))
        for form in ("%08x:%02x:00.0", "%04X:%02X:00.0"):
            good(nvml.nvmlDeviceGetHandleByPciBusId_v2((form % (0, bus.value)).encode(), ctypes.byref(found)))
            assert found.value == handle(index).value
        good(cuda.cuDeviceTotalMem_v2(ctypes.byref(total), index))
        assert memory(index).free <= total.value <= memory(index).total
    driver, told = ctypes.c_int(), ctypes.c_int()
    good(cuda.cuDriverGetVersion(ctypes.byref(driver)))
    good(nvml.nvmlSystemGetCudaDriverVersion_v2(ctypes.byref(told)))
    assert driver.value == told.value
    for wrong in (b"", b"GPU-", b"0000:7f:00.0", b"zz"):
        assert nvml.nvmlDeviceGetHandleByPciBusId_v2(wrong, ctypes.byref(found)) != 0
        assert nvml.nvmlDeviceGetHandleByUUID(wrong, ctypes.byref(found)) != 0
    assert nvml.nvmlDeviceGetHandleByIndex_v2(count, ctypes.byref(found)) == 2
    assert nvml.nvmlDeviceGetName(ctypes.c_void_p(12345), uuid, 16) == 2
    assert nvml.nvmlDeviceGetName(handle(0), uuid, 3) == 7  # the buffer is too small
    assert nvml.nvmlDeviceGetFanSpeed(handle(0), ctypes.byref(count)) == 3  # not supported
    confidential, fields = (ctypes.c_uint * 3)(1, 1, 1), (FieldValue * 2)()
    good(nvml.nvmlSystemGetConfComputeState(confidential))
    assert list(confidential) == [0, 0, 0] and nvml.nvmlSystemGetConfComputeState(None) == 2
    good(nvml.nvmlDeviceGetFieldValues(handle(0), 2, fields))
    assert [field.result for field in fields] == [3, 3] and nvml.nvmlDeviceGetFieldValues(handle(0), 2, None) == 2
    assert MemoryV2(version=1).version == 1 and nvml.nvmlDeviceGetMemoryInfo_v2(handle(0), ctypes.byref(MemoryV2(version=1))) == 25


def check_rest():
    """An idle device is cool, uses no power, and has its highest clocks."""
    now, highest = ctypes.c_uint(), ctypes.c_uint()
    good(nvml.nvmlDeviceGetTemperature(handle(0), 0, ctypes.byref(now)))
    assert now.value == 25 and nvml.nvmlDeviceGetTemperature(handle(0), 1, ctypes.byref(now)) == 2
    good(nvml.nvmlDeviceGetPowerUsage(handle(0), ctypes.byref(now)))
    assert now.value == 0
    for kind in range(3):
        good(nvml.nvmlDeviceGetClockInfo(handle(0), kind, ctypes.byref(now)))
        good(nvml.nvmlDeviceGetMaxClockInfo(handle(0), kind, ctypes.byref(highest)))
        assert now.value == highest.value > 0
    major, minor = ctypes.c_int(), ctypes.c_int()
    good(nvml.nvmlDeviceGetCudaComputeCapability(handle(0), ctypes.byref(major), ctypes.byref(minor)))
    for name in ("CurrPcieLink", "MaxPcieLink"):
        result = getattr(nvml, f"nvmlDeviceGet{name}Generation")(handle(0), ctypes.byref(now))
        if result == 3:  # a device that is not a real card has no link
            continue
        assert result == 0 and now.value == {7: 3, 8: 4}.get(major.value, 5), (name, now.value)
        good(getattr(nvml, f"nvmlDeviceGet{name}Width")(handle(0), ctypes.byref(now)))
        assert now.value == 16, (name, now.value)


def check_use():
    """Counts the memory of all processes, except that of a killed process."""
    before = [memory(0), memory(1)]
    assert not processes(0) and not processes(1)
    take(0, 1000)
    available, total = ctypes.c_size_t(), ctypes.c_size_t()
    good(cuda.cuMemGetInfo_v2(ctypes.byref(available), ctypes.byref(total)))
    assert memory(0).free == available.value and memory(0).used - before[0].used == total.value - available.value
    # The child sees device 1 only, as its number 0.
    child = subprocess.Popen([sys.executable, __file__, "child"], stdout=subprocess.PIPE, env={**os.environ, "CUDA_VISIBLE_DEVICES": "1"})
    child.stdout.readline()
    used = {1: processes(1)[child.pid]}
    assert processes(0) == {os.getpid(): (total.value - available.value) // MIB} and used[1] >= 500, (processes(0), used)
    assert processes(1, "_v2") == processes(1)
    assert memory(1).used - before[1].used == used[1] * MIB
    whole = MemoryV2(version=ctypes.sizeof(MemoryV2) | 2 << 24)
    good(nvml.nvmlDeviceGetMemoryInfo_v2(handle(1), ctypes.byref(whole)))
    assert whole.used == used[1] * MIB and whole.total == whole.reserved + whole.used + whole.free
    # All processes share the device: this one cannot have the memory of another.
    use(1)
    address = ctypes.c_ulonglong()
    assert left() == memory(1).free, (left(), memory(1).free)
    mine = memory(1).used - before[1].used - used[1] * MIB
    assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(left() + 1)) == 2
    count = ctypes.c_uint(0)
    assert nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle(1), ctypes.byref(count), None) == 7 and count.value >= 1
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert child.pid not in processes(1) and memory(1).used == before[1].used + mine
    good(cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(left())))
    assert left() == memory(1).free == 0
    good(cuda.cuDevicePrimaryCtxReset_v2(1))
    forked = os.fork()  # a child that uses no device changes nothing
    if forked == 0:
        os._exit(0)
    os.waitpid(forked, 0)
    assert list(processes(0)) == [os.getpid()]


if sys.argv[1:] == ["child"]:
    take(0, 500)
    print("taken", flush=True)
    signal.pause()
check_identity()
check_rest()
if sys.argv[1:] == ["use"]:
    check_use()
good(nvml.nvmlShutdown())
assert nvml.nvmlShutdown() == 1
print("agreed")
