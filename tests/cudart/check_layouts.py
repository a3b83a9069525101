#!/usr/bin/env python3
"""Compares the structs of simulator/standins/libcudart with NVIDIA's headers, if any are found: in CUDA_HOME, /usr/local/cuda, or wheels in
the folder VRAM_WHEELS. Skipped otherwise. A program made with NVIDIA's headers prints their sizes and offsets; assertions in our files check them."""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = ROOT / "simulator" / "standins" / "libcudart"
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "abi")]
import api_facts  # noqa: E402
import check_facts  # noqa: E402

ABI = "../../sim/sim_abi.h"
# (our file, our struct, NVIDIA's struct, pairs of members to compare)
STRUCTS = [
    ("runtime.h", "rt_memcpy3d", "struct cudaMemcpy3DParms", [("from", "srcPtr"), ("to_array", "dstArray"), ("kind", "kind")]),
    ("runtime.h", "rt_channel", "struct cudaChannelFormatDesc", [("kind", "f")]),
    ("runtime.h", "rt_location", "struct cudaMemLocation", [("id", "id")]),
    ("runtime.h", "rt_ipc_handle", "cudaIpcMemHandle_t", []),
    ("runtime.h", "rt_pitched", "struct cudaPitchedPtr", [("height", "ysize")]),
    ("runtime.h", "rt_copy", "CUDA_MEMCPY3D", [("to", "dstXInBytes"), ("width_bytes", "WidthInBytes"), ("planes", "Depth")]),
    ("runtime.h", "rt_copy", "CUDA_MEMCPY3D_PEER", [("to", "dstXInBytes"), ("from.context", "srcContext"), ("planes", "Depth")]),
    ("runtime.h", "rt_array_descriptor", "CUDA_ARRAY3D_DESCRIPTOR", [("format", "Format"), ("flags", "Flags")]),
    (ABI, "vr_cu_memcpy2d", "CUDA_MEMCPY2D", [("to", "dstXInBytes"), ("from.pitch_bytes", "srcPitch"), ("rows", "Height")]),
    (ABI, "vr_cu_memcpy_attributes", "CUmemcpyAttributes", [("to", "dstLocHint"), ("flags", "flags")]),
    (ABI, "vr_cu_memcpy3d_batched", "CUDA_MEMCPY3D_BATCH_OP", [("to.array.y", "dst.op.array.offset.y"), ("height", "extent.height")]),
    (ABI, "vr_cu_array_descriptor", "CUDA_ARRAY_DESCRIPTOR", [("format", "Format")]),
    (ABI, "vr_cu_array3d_descriptor", "CUDA_ARRAY3D_DESCRIPTOR", [("format", "Format"), ("flags", "Flags")]),
    (ABI, "vr_cu_array_requirements", "CUDA_ARRAY_MEMORY_REQUIREMENTS", [("alignment", "alignment")]),
    (ABI, "vr_cu_resource", "CUDA_RESOURCE_DESC", [("array", "res.array.hArray"), ("flags", "flags")]),
    (ABI, "vr_cu_texture", "CUDA_TEXTURE_DESC", []),
    (ABI, "vr_cu_resource_view", "CUDA_RESOURCE_VIEW_DESC", []),
    ("cudart_arrays.c", "rt_memcpy3d_peer", "struct cudaMemcpy3DPeerParms", [("to_device", "dstDevice"), ("extent", "extent")]),
    ("cudart_memory.c", "rt_pointer_attributes", "struct cudaPointerAttributes",
     [("device_pointer", "devicePointer"), ("host_pointer", "hostPointer")]),
    ("cudart_kernels.c", "rt_function_attributes", "struct cudaFuncAttributes",
     [("numbers", "maxThreadsPerBlock"), ("numbers[3]", "binaryVersion")]),
    ("cudart_kernels.c", "rt_launch_config", "cudaLaunchConfig_t", [("stream", "stream"), ("attribute_count", "numAttrs")]),
    ("cudart_nodes.c", "rt_kernel_node", "struct cudaKernelNodeParams", [("shared_bytes", "sharedMemBytes"), ("extra", "extra")]),
    ("cudart_nodes.c", "driver_kernel_node", "CUDA_KERNEL_NODE_PARAMS_v2", [("kernel", "kern"), ("context", "ctx")]),
    ("cudart_nodes.c", "rt_memset_node", "struct cudaMemsetParams", [("width", "width")]),
    ("cudart_nodes.c", "rt_node", "struct cudaGraphNodeParams",
     [("memcpy.copy", "memcpy.copyParams"), ("memset.node.width", "memset.width")]),
    ("cudart_nodes.c", "rt_node", "CUgraphNodeParams",
     [("driver_memcpy.copy", "memcpy.copyParams"), ("driver_kernel.kernel", "kernel.kern"), ("memset.context", "memset.ctx"),
      ("conditional.context", "conditional.ctx")]),
    ("cudart_arrays.c", "driver_resource", "CUDA_RESOURCE_DESC",
     [("linear.bytes", "res.linear.sizeInBytes"), ("pitch2d.pitch", "res.pitch2D.pitchInBytes")]),
    ("cudart_arrays.c", "driver_texture", "CUDA_TEXTURE_DESC", [("border", "borderColor")]),
    ("cudart_arrays.c", "rt_view", "CUDA_RESOURCE_VIEW_DESC", [("layers", "firstLayer")]),
]
# Types that are shorter before CUDA 13: (file, our constant, NVIDIA's struct)
SIZES = [
    ("cudart_arrays.c", "RESOURCE_BYTES", "struct cudaResourceDesc"),
    ("cudart_arrays.c", "TEXTURE_BYTES", "struct cudaTextureDesc"),
    ("cudart_arrays.c", "VIEW_BYTES", "struct cudaResourceViewDesc"),
]



def members():
    """Yields (name, bytes, offsets by major version) from device_properties.def."""
    for row in re.findall(r"^P\((.*)\)$", (RUNTIME / "device_properties.def").read_text(), re.M):
        name, one, count, _, *places = [text.strip() for text in row.split(",")]
        yield name, int(one) * int(count), dict(zip((11, 12, 13), places))


def compiled(folder, name, text, options):
    source = Path(folder, name + ".c")
    source.write_text(text)
    done = subprocess.run(["cc", "-w", "-std=gnu11", *options, str(source)], cwd=folder, capture_output=True, text=True)
    return done.stderr if done.returncode != 0 else ""


def theirs(folder, options, major):
    """Returns the headers' facts: expression -> number. Omits structs that they lack."""
    told = {}
    queries = {f"sizeof({struct})" for _, _, struct, _ in STRUCTS} | {f"sizeof({struct})" for _, _, struct in SIZES}
    queries |= {f"offsetof({struct}, {their})" for _, _, struct, pairs in STRUCTS for _, their in pairs}
    queries |= {f"offsetof(struct cudaDeviceProp, {name})" for name, _, places in members() if places[major] != "NO"}
    queries |= {f"sizeof(((struct cudaDeviceProp *)0)->{name})" for name, _, places in members() if places[major] != "NO"}
    head = "#include <stdio.h>\n#include <stddef.h>\n#include <cuda.h>\n#include <cuda_runtime_api.h>\n"
    fine = []
    for query in sorted(queries):
        if "cudaDeviceProp" in query or not compiled(folder, "one", f"{head}enum {{ N = (int)({query}) }};", ["-fsyntax-only", *options]):
            fine.append(query)
    body = "".join(f'printf("%zu\\n", (size_t)({query}));\n' for query in fine)
    wrong = compiled(folder, "all", f"{head}int main(void) {{\n{body}}}\n", ["-o", "all", *options])
    assert not wrong, wrong
    numbers = subprocess.run([str(Path(folder, "all"))], capture_output=True, text=True, check=True).stdout.split()
    told.update(zip(fine, map(int, numbers)))
    return told


def problems(folder, major, told):
    """Returns the assertions in our files that fail."""
    for file in sorted({file for file, *_ in STRUCTS}):
        lines = ['#include <stddef.h>', f'#include "{RUNTIME / file}"']
        for of, ours, struct, pairs in STRUCTS:
            if of != file or f"sizeof({struct})" not in told:
                continue
            lines.append(f'_Static_assert(sizeof(struct {ours}) == {told[f"sizeof({struct})"]}, "{struct}");')
            for our, their in pairs:
                if f"offsetof({struct}, {their})" in told:
                    place = told[f"offsetof({struct}, {their})"]
                    lines.append(f'_Static_assert(offsetof(struct {ours}, {our}) == {place}, "{struct}.{their}");')
        lines += [f'_Static_assert({ours} == {told[f"sizeof({struct})"]}, "{struct}");' for of, ours, struct in SIZES if of == file]
        options = ["-fsyntax-only", f"-DRT_MAJOR={major}", *(f"-I{ROOT / folder}" for folder in ("allocator", "simulator", "allocator/include", "simulator/include"))]
        yield from (line for line in compiled(folder, "ours", "\n".join(lines), options).splitlines() if "error" in line)
    for name, size, places in members():
        place = told.get(f"offsetof(struct cudaDeviceProp, {name})", "NO")
        if str(place) != places[major] or (place != "NO" and told[f"sizeof(((struct cudaDeviceProp *)0)->{name})"] != size):
            yield f"cudaDeviceProp.{name} lies at {place}, not at {places[major]}"


def main():
    wrong = compared = 0
    for given in check_facts.inputs_for("cudart"):
        with tempfile.TemporaryDirectory() as folder:
            headers = api_facts.Headers(given, folder, [])
            options = [f"-I{path}" for path in headers.folders] + [f"-I{Path(folder, 'substitutes')}"]
            for name, text in api_facts.SUBSTITUTES.items():
                Path(folder, "substitutes", name).parent.mkdir(parents=True, exist_ok=True)
                Path(folder, "substitutes", name).write_text(text)
            text = "#include <cuda.h>\nint main(void) { return CUDA_VERSION / 1000; }\n"
            version = compiled(folder, "version", text, ["-o", "version", *options])
            assert not version, version
            major = subprocess.run([str(Path(folder, "version"))]).returncode
            compared += 1
            for line in problems(folder, major, theirs(folder, options, major)):
                wrong += 1
                print(f"{Path(given).name}: {line}")
    if compared == 0:
        print("skipped: no headers of the CUDA runtime were found (set CUDA_HOME, or VRAM_WHEELS to a folder of wheels)")
        return 77
    print(f"{compared} versions compared, {wrong} differences")
    return wrong != 0


sys.exit(main())
