"""Calls the functions of HIP's runtime that PyPI's wheels import, using ctypes alone. check_hip_calls.py runs it under `vram sim --hip`.

usage: hip_calls.py MAJOR"""
import ctypes
import pathlib
import sys

MAJOR = int(sys.argv[1])
hip = ctypes.CDLL(f"libamdhip64.so.{MAJOR}")
U64, INT = ctypes.c_uint64, ctypes.c_int
INVALID_VALUE, NOT_FOUND = 1, 500


def good(result):
    assert result == 0, result


class Extent(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint) for name in "xyz"]


class Pointer(ctypes.Structure):
    _fields_ = [("type", INT), ("device", INT), ("device_address", U64), ("host_address", U64), ("managed", INT), ("flags", ctypes.c_uint)]


class Memset(ctypes.Structure):
    _fields_ = [("address", U64), ("element", ctypes.c_uint), ("rows", U64), ("pitch", U64), ("value", ctypes.c_uint), ("width", U64)]


def check_names():
    rows = [line.split("\t")[0] for line in (pathlib.Path(__file__).parent / "wheel_imports.tsv").read_text(encoding="ascii").splitlines()[2:]]
    assert len(rows) > 100
    missing = [name for name in rows if not hasattr(hip, name)]
    assert not missing, missing


def check_device():
    properties, value = ctypes.create_string_buffer(1472), INT()
    new = MAJOR >= 6
    good((hip.hipGetDevicePropertiesR0600 if new else hip.hipGetDeviceProperties)(properties, 0))
    total, warp, units, name = (288, 308, 388, 1160) if new else (256, 276, 336, 396)
    number = lambda at, kind: kind.from_buffer(properties, at).value
    assert properties.value == b"AMD Instinct MI300X", properties.value
    assert properties.raw[name:].split(b"\0")[0] == b"gfx942:sramecc+:xnack-"
    assert (number(total, U64), number(warp, INT), number(units, INT)) == (196592 << 20, 64, 304)
    place = ctypes.create_string_buffer(20)
    good(hip.hipDeviceGetPCIBusId(place, 20, 0))
    good(hip.hipDeviceGetByPCIBusId(ctypes.byref(value), place))
    good(hip.hipDeviceGet(ctypes.byref(value), 0))
    assert value.value == 0 and hip.hipDeviceGet(ctypes.byref(value), 1) == 101


def check_errors():
    text = ctypes.c_char_p()
    for function in (hip.hipDrvGetErrorString, hip.hipDrvGetErrorName):
        good(function(2, ctypes.byref(text)))
        assert text.value == b"hipErrorOutOfMemory"
        assert function(77777, ctypes.byref(text)) == INVALID_VALUE and text.value is None
        assert function(2, None) == INVALID_VALUE


def check_memory():
    block, host = U64(), ctypes.create_string_buffer(64)
    good(hip.hipExtMallocWithFlags(ctypes.byref(block), U64(4096), 1))
    good(hip.hipMemsetD32Async(block, 0x41414141, U64(16), None))
    good(hip.hipMemcpyWithStream(host, block, U64(64), 2, None))
    assert host.raw == b"A" * 64
    # Four rows of 4 bytes, at a pitch of 8.
    good(hip.hipMemcpy2D(block, U64(8), ctypes.c_char_p(b"abcdefghijklmnop"), U64(4), U64(4), U64(4), 1))
    good(hip.hipMemcpyDtoHAsync(host, block, U64(32), None))
    good(hip.hipStreamSynchronize(None))
    assert host.raw[:32] == b"abcdAAAAefghAAAAijklAAAAmnopAAAA", host.raw
    assert hip.hipMemcpyWithStream(host, block, U64(64), 9, None) == 21
    found = Pointer()
    good(hip.hipPointerGetAttributes(ctypes.byref(found), block))
    assert (found.type, found.device, found.device_address) == (2 if MAJOR >= 6 else 1, 0, block.value)
    result = hip.hipPointerGetAttributes(ctypes.byref(found), host)
    assert (result, found.type) == (0, 0) if MAJOR >= 6 else result == INVALID_VALUE
    managed = U64()
    good(hip.hipMallocManaged(ctypes.byref(managed), U64(1 << 20), 1))
    good(hip.hipPointerGetAttributes(ctypes.byref(found), managed))
    assert found.managed == 1 and found.type == (3 if MAJOR >= 6 else 1), found.type
    good(hip.hipMemcpyPeer(block, 0, managed, 0, U64(64)))
    return block


def check_kernels():
    module, function, blocks, grid, block = U64(), U64(), INT(), INT(), INT()
    good(hip.hipModuleLoadData(ctypes.byref(module), b"\x7fELF"))
    good(hip.hipModuleGetFunction(ctypes.byref(function), module, b"kernel"))
    assert hip.hipModuleGetGlobal(None, None, module, b"variable") == NOT_FOUND
    good(hip.hipModuleLaunchKernel(function, 2, 1, 1, 256, 1, 1, 0, None, None, None))
    assert hip.hipModuleLaunchKernel(function, 2, 1, 1, 1024, 2, 1, 0, None, None, None) == INVALID_VALUE
    good(hip.hipLaunchCooperativeKernel(function, Extent(1, 1, 1), Extent(64, 1, 1), None, 0, None))
    good(hip.hipOccupancyMaxActiveBlocksPerMultiprocessor(ctypes.byref(blocks), function, 512, U64(0)))
    assert blocks.value == 4
    good(hip.hipOccupancyMaxPotentialBlockSize(ctypes.byref(grid), ctypes.byref(block), function, U64(0), 0))
    assert (grid.value, block.value) == (608, 1024)
    good(hip.hipModuleUnload(module))
    assert hip.hipModuleUnload(None) != 0


def check_graphs(block):
    graph, node, second, executable, host = U64(), U64(), U64(), U64(), ctypes.create_string_buffer(16)
    good(hip.hipGraphCreate(ctypes.byref(graph), 0))
    kernel = ctypes.create_string_buffer(64)
    good(hip.hipGraphAddKernelNode(ctypes.byref(node), graph, None, U64(0), kernel))
    fill = Memset(block.value, 1, 1, 16, ord("x"), 16)
    good(hip.hipGraphAddMemsetNode(ctypes.byref(node), graph, None, U64(0), ctypes.byref(fill)))
    good(hip.hipGraphAddMemcpyNode1D(ctypes.byref(second), graph, ctypes.byref(node), U64(1), host, block, U64(16), 2))
    good(hip.hipGraphInstantiate(ctypes.byref(executable), graph, None, None, U64(0)))
    good(hip.hipGraphLaunch(executable, None))
    good(hip.hipStreamSynchronize(None))
    assert host.raw == b"x" * 16, host.raw
    fill.value = ord("y")
    good(hip.hipGraphExecMemsetNodeSetParams(executable, node, ctypes.byref(fill)))
    good(hip.hipGraphExecMemcpyNodeSetParams1D(executable, second, host, block, U64(8), 2))
    good(hip.hipGraphLaunch(executable, None))
    good(hip.hipStreamSynchronize(None))
    assert host.raw == b"y" * 8 + b"x" * 8, host.raw


def check_streams():
    stream, flags, priority, status, number, least, greatest = U64(), ctypes.c_uint(), INT(), INT(), U64(), INT(), INT()
    good(hip.hipDeviceGetStreamPriorityRange(ctypes.byref(least), ctypes.byref(greatest)))
    good(hip.hipStreamCreateWithPriority(ctypes.byref(stream), 1, greatest))
    good(hip.hipStreamGetFlags(stream, ctypes.byref(flags)))
    good(hip.hipStreamGetPriority(stream, ctypes.byref(priority)))
    assert (flags.value, priority.value) == (1, greatest.value), priority.value
    assert least.value > greatest.value and hip.hipGetStreamDeviceId(stream) == 0
    good(hip.hipStreamGetCaptureInfo(stream, ctypes.byref(status), ctypes.byref(number)))
    assert status.value == 0
    seen = []
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, INT, ctypes.c_void_p)(lambda stream, result, data: seen.append((result, data)))
    good(hip.hipStreamAddCallback(stream, callback, ctypes.c_void_p(77), 0))
    good(hip.hipStreamSynchronize(stream))
    assert seen == [(0, 77)], seen


check_names()
check_device()
check_errors()
own = check_memory()
check_kernels()
check_graphs(own)
check_streams()
print("agreed")
