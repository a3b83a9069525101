"""Prints the devices that the driver shows, with bus number and name. test_sim.py runs it under `vram sim`."""
import ctypes

cuda = ctypes.CDLL("libcuda.so.1")
count, bus, result = ctypes.c_int(), ctypes.c_int(), cuda.cuInit(0)
seen = []
if result == 0:
    assert cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
    for device in range(count.value):
        name = ctypes.create_string_buffer(64)
        assert cuda.cuDeviceGetName(name, 64, device) == 0 and cuda.cuDeviceGetAttribute(ctypes.byref(bus), 33, device) == 0
        seen.append(f"{bus.value - 1} {name.value.decode()}")
print(result, ", ".join(seen))
