"""Programs that were built from public sources (build_sources.py): python3 built.py ROW FOLDER."""
import os
import pathlib
import re
import subprocess
import sys

from rows import main, row


def output_of(*command, codes=(0,), **variables):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **variables}, stdin=subprocess.DEVNULL)
    sys.stdout.write(done.stdout)
    assert done.returncode in codes, f"{command[0]}: exit {done.returncode}"
    return done.stdout


@row
def hwloc_devices(folder):
    """lstopo shows both devices with their memory and multiprocessors, by the runtime and by NVML."""
    text = output_of(f"{folder}/hwloc/utils/lstopo/lstopo-no-graphics", "-v", "--of", "console")
    found = {kind: re.findall(rf'\({kind}\).* "({kind.lower()}\d+)"', text) for kind in ("CUDA", "NVML")}
    assert found == {"CUDA": ["cuda0", "cuda1"], "NVML": ["nvml0", "nvml1"]}, found
    assert re.findall(r"CUDAMultiProcessors=(\d+)", text) == ["132", "132"], text
    assert re.findall(r"CUDAGlobalMemorySize=(\d+)", text) == ["83025152"] * 2, text


def starpu(folder, program, codes=(0,), **variables):
    """StarPU's performance models of devices and buses stay with the row."""
    home = pathlib.Path("starpu").resolve()
    home.mkdir(exist_ok=True)
    return output_of(f"{folder}/starpu/programs/{program}", codes=codes, STARPU_HOME=str(home), STARPU_NCUDA="1", STARPU_CALIBRATE="0", **variables)


@row
def starpu_allocate(folder):
    """Data is copied to the device until its limit evicts others."""
    starpu(folder, "allocate")


@row
def starpu_vector_scal(folder):
    """A codelet with a kernel; the device's worker is the only one. It reports wrong values with exit code 1."""
    assert re.search(r"^\[AFTER\] Computation is", starpu(folder, "vector_scal", codes=(0, 1), STARPU_NCPU="0"), re.M)


main()
