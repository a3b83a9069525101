"""Prints NVML's values for the device of a run, as lines of `name=value`, and for the links between the devices. test_nvml.py runs it under
`vram sim`, using ctypes alone. Rounds MiB up, as nvidia-smi does."""
import ctypes
import json

nvml = ctypes.CDLL("libnvidia-ml.so.1")
MIB = 1 << 20
NOT_SUPPORTED, DEPRECATED = 3, 26


class MemoryV2(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint)] + [(name, ctypes.c_ulonglong) for name in ("total", "reserved", "free", "used")]


class Pci(ctypes.Structure):
    _fields_ = [("legacy", ctypes.c_char * 16)] + [(name, ctypes.c_uint) for name in ("domain", "bus", "device", "id", "subsystem")] + [("text", ctypes.c_char * 32)]


class Field(ctypes.Structure):
    _fields_ = [("field", ctypes.c_uint), ("scope", ctypes.c_uint), ("at", ctypes.c_longlong), ("took", ctypes.c_longlong), ("type", ctypes.c_int),
                ("result", ctypes.c_int), ("value", ctypes.c_ulonglong)]


def good(result):
    assert result == 0, result


def handle(index):
    found = ctypes.c_void_p()
    good(nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(found)))
    return found


def text(function, *arguments):
    found = ctypes.create_string_buffer(96)
    good(getattr(nvml, function)(*arguments, found, 96))
    return found.value.decode()


def number(function, *arguments, kind=ctypes.c_uint):
    """Returns a number, "-" if it is not supported, or "deprecated"."""
    found = kind()
    result = getattr(nvml, function)(*arguments, ctypes.byref(found))
    if result in (NOT_SUPPORTED, DEPRECATED):
        return "-" if result == NOT_SUPPORTED else "deprecated"
    good(result)
    return found.value


def up(size):
    return -(-size // MIB)


def mode(function, device):
    now, later = ctypes.c_int(), ctypes.c_int()
    result = getattr(nvml, function)(device, ctypes.byref(now), ctypes.byref(later))
    return "-" if result == NOT_SUPPORTED else ["off", "on"][now.value]


def watts(value):
    return value // 1000 if isinstance(value, int) else value


def card(device):
    memory, bar, pci = MemoryV2(version=ctypes.sizeof(MemoryV2) | 2 << 24), (ctypes.c_ulonglong * 3)(), Pci()
    least, most = ctypes.c_uint(), ctypes.c_uint()
    good(nvml.nvmlDeviceGetMemoryInfo_v2(device, ctypes.byref(memory)))
    window = nvml.nvmlDeviceGetBAR1MemoryInfo(device, bar)
    limits = nvml.nvmlDeviceGetPowerManagementLimitConstraints(device, ctypes.byref(least), ctypes.byref(most))
    good(nvml.nvmlDeviceGetPciInfo_v3(device, ctypes.byref(pci)))
    assert bar[0] == bar[1] + bar[2] and memory.used == 0
    usual = {number(name, device) for name in ("nvmlDeviceGetPowerManagementLimit", "nvmlDeviceGetPowerManagementDefaultLimit", "nvmlDeviceGetEnforcedPowerLimit")}
    assert len(usual) == 1, usual
    clocks = {name: number("nvmlDeviceGetMaxClockInfo", device, kind) for kind, name in enumerate(("graphics", "sm", "memory", "video"))}
    assert clocks == {name: number("nvmlDeviceGetClock", device, kind, 0) for kind, name in enumerate(clocks)}
    application = [number("nvmlDeviceGetApplicationsClock", device, kind) for kind in (0, 2)]
    assert application == [number("nvmlDeviceGetClock", device, kind, 1) for kind in (0, 2)]
    assert number("nvmlDeviceGetClock", device, 0, 3) == number("nvmlDeviceGetMaxCustomerBoostClock", device, 0)
    for reasons in ("Event", "Throttle"):
        assert number(f"nvmlDeviceGetCurrentClocks{reasons}Reasons", device, kind=ctypes.c_ulonglong) == 1  # it is idle
        assert number(f"nvmlDeviceGetSupportedClocks{reasons}Reasons", device, kind=ctypes.c_ulonglong) == 0x1ff
    assert number("nvmlDeviceGetPerformanceState", device) == 0
    return {"driver": text("nvmlSystemGetDriverVersion"), "library": text("nvmlSystemGetNVMLVersion"), "name": text("nvmlDeviceGetName", device),
            "total": up(memory.total), "reserved": up(memory.reserved), "free": up(memory.free), "bar1": "-" if window == NOT_SUPPORTED else bar[0] // MIB,
            "least_watts": "-" if limits == NOT_SUPPORTED else least.value // 1000, "watts": watts(usual.pop()),
            "most_watts": "-" if limits == NOT_SUPPORTED else most.value // 1000, **clocks, "boost": number("nvmlDeviceGetMaxCustomerBoostClock", device, 0),
            "application": application[0], "application_memory": application[1], "pcie": number("nvmlDeviceGetMaxPcieLinkGeneration", device),
            "lanes": number("nvmlDeviceGetMaxPcieLinkWidth", device), "ecc": mode("nvmlDeviceGetEccMode", device), "mig": mode("nvmlDeviceGetMigMode", device),
            "pci": f"{pci.id:08x}"}


def ends(device):
    """Returns the devices at the other end of the links, and their buses."""
    found = []
    for link in range(18):
        kind, pci = ctypes.c_int(), Pci()
        if nvml.nvmlDeviceGetNvLinkRemoteDeviceType(device, link, ctypes.byref(kind)) != 0:
            continue
        good(nvml.nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, ctypes.byref(pci)))
        assert pci.text.decode() == f"00000000:{pci.bus:02X}:00.0"
        found.append([kind.value, pci.bus])
    return found


def links(index, count):
    device, active, field, status = handle(index), ctypes.c_int(), Field(field=91), ctypes.c_int()
    good(nvml.nvmlDeviceGetFieldValues(device, 1, ctypes.byref(field)))
    states = []
    for link in range(19):
        result = nvml.nvmlDeviceGetNvLinkState(device, link, ctypes.byref(active))
        states.append(active.value if result == 0 else -result)
        if result == 0:
            assert number("nvmlDeviceGetNvLinkCapability", device, link, 0) == active.value and number("nvmlDeviceGetNvLinkErrorCounter", device, link, 0, kind=ctypes.c_ulonglong) == 0
    assert nvml.nvmlDeviceGetNvLinkState(device, 0, None) == 2
    good(nvml.nvmlDeviceGetP2PStatus(device, handle((index + 1) % count), 2, ctypes.byref(status)))
    return {"count": field.value if field.result == 0 else "-", "states": states, "ends": ends(device), "version": number("nvmlDeviceGetNvLinkVersion", device, 0), "reaches": status.value == 0}


good(nvml.nvmlInit_v2())
devices = ctypes.c_uint()
good(nvml.nvmlDeviceGetCount_v2(ctypes.byref(devices)))
answer = card(handle(0))
print(json.dumps({**answer, "links": [links(index, devices.value) for index in range(devices.value)]}))
