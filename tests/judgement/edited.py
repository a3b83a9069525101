"""Changes the recordings of advice.py and causes.py as if made on other platforms, with those platforms' frames and settings."""
import advice
import causes

ROCM = {"filename": "/src/pytorch/c10/hip/HIPCachingAllocator.cpp", "line": 10, "name": "c10::hip::HIPCachingAllocator::Native::malloc(unsigned long)"}
ASCEND = {"filename": "/usr/lib/python3/site-packages/torch_npu/npu/memory.py", "line": 100, "name": "caching_allocator_alloc"}


def below(device, frame):
    """Adds an innermost frame of the platform's allocator to each event."""
    for event in device.events:
        event["frames"] = [frame, *event["frames"]]
    for block in device.blocks.values():
        block[2] = [frame, *block[2]]
    return device


def on_windows(device):
    for frames in [event["frames"] for event in device.events] + [block[2] for block in device.blocks.values()]:
        for frame in frames:
            frame["filename"] = "C:\\work\\" + frame["filename"].rsplit("/", 1)[-1] if frame["filename"].endswith("train.py") else "C:\\Python\\Lib\\site-packages" + frame["filename"].removeprefix("/usr/lib/python3/site-packages").replace("/", "\\")
    return device


def rocm_in_pieces():
    return below(advice.in_pieces(), ROCM)


def rocm_with_others():
    return below(advice.unknown_holder(), ROCM)


def rocm_training():
    return below(advice.training(), ROCM)


def rocm_under_a_limit():
    return below(causes.a_fraction(), ROCM)


def ascend_in_pieces():
    return below(advice.in_pieces(PYTORCH_NPU_ALLOC_CONF=""), ASCEND)


def ascend_with_others():
    return below(advice.unknown_holder(), ASCEND)


def ascend_training():
    return below(advice.training(), ASCEND)


def ascend_that_leaks():
    return below(causes.a_list_that_grows(), ASCEND)


def windows_training():
    return on_windows(advice.training())


def windows_that_leaks():
    return on_windows(causes.a_list_that_grows())


def windows_with_others():
    return on_windows(advice.unknown_holder())


def windows_in_pieces():
    """A device of 1.5 GiB; the recording does not say so."""
    return on_windows(advice.in_pieces())
