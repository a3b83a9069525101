#!/usr/bin/env python3
"""Compares the product's numbers and structures of HIP (allocator/driver/hip/hip_abi.h) with HIP's headers. Skipped (77) if they are not
installed.

usage: check_hip_abi.py SRC"""
import os
import re
import subprocess
import sys
import tempfile

SRC = sys.argv[1]
# The product's name: HIP's name, and the first release that has it.
NAMES = {"MAX_THREADS_PER_MULTIPROCESSOR": ("hipDeviceAttributeMaxThreadsPerMultiProcessor", 5), "MEMCPY_DEFAULT": ("hipMemcpyDefault", 5),
         "MEMORY_TYPE_HOST": ("hipMemoryTypeHost", 6), "MEMORY_TYPE_DEVICE": ("hipMemoryTypeDevice", 6), "MEMORY_TYPE_ARRAY": ("hipMemoryTypeArray", 6),
         "MEMORY_TYPE_UNIFIED": ("hipMemoryTypeUnified", 6), "VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED": ("hipDeviceAttributeVirtualMemoryManagementSupported", 6),
         "HOST_REGISTER_SUPPORTED": ("hipDeviceAttributeHostRegisterSupported", 6)}
ours = re.findall(r"VR_HIP_([A-Z_]+) = \d+", open(os.path.join(SRC, "driver/hip/hip_abi.h"), encoding="utf-8").read())
asserts = []
for name in ours:
    theirs, since = NAMES.get(name, ("hipDeviceAttribute" + "".join(word.capitalize() for word in name.split("_")), 5))
    asserts.append("#if HIP_VERSION_MAJOR >= %d\nstatic_assert((int)VR_HIP_%s == (int)%s, \"%s\");\n#endif" % (since, name, theirs, theirs))
assert len(asserts) > 15
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "abi.cpp")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#define __HIP_PLATFORM_AMD__ 1\n#include <cstddef>\n#include <hip/hip_version.h>\n#include <hip/hip_runtime_api.h>\n#include \"driver/abi.h\"\n"
                   "#include \"driver/hip/hip_abi.h\"\n%s\n" % "\n".join(asserts) +
                   "static_assert(sizeof(vr_cu_ipc_handle) == sizeof(hipIpcMemHandle_t) && sizeof(vr_cu_access_desc) == sizeof(hipMemAccessDesc)"
                   " && sizeof(vr_cu_pool_props) == sizeof(hipMemPoolProps), \"the same in both\");\n"
                   "static_assert(sizeof(vr_hip_memset) == sizeof(hipMemsetParams) && offsetof(vr_hip_memset, rows) == offsetof(hipMemsetParams, height)"
                   " && offsetof(vr_hip_memset, width_elements) == offsetof(hipMemsetParams, width), \"a set\");\n"
                   "#if HIP_VERSION_MAJOR >= 6\n" "static_assert(sizeof(vr_hip_memcpy3d) == sizeof(HIP_MEMCPY3D) && offsetof(vr_hip_memcpy3d, to) == offsetof(HIP_MEMCPY3D, dstXInBytes)"
                   " && offsetof(vr_hip_memcpy3d, width_bytes) == offsetof(HIP_MEMCPY3D, WidthInBytes), \"a copy\");\n"
                   "static_assert(offsetof(vr_cu_allocation_prop, requested_handle_types) == offsetof(hipMemAllocationProp, "
                   "requestedHandleType) && offsetof(vr_cu_allocation_prop, location) == offsetof(hipMemAllocationProp, location)"
                   " && sizeof(vr_cu_allocation_prop) == sizeof(hipMemAllocationProp), \"pages\");\n#endif\nint main() {}\n")
    include = [word for folder in os.environ.get("HIP_PATH", "").split(":") if folder for word in ("-I", os.path.join(folder, "include"))]
    if subprocess.run(["g++", "-E", *include, "-D__HIP_PLATFORM_AMD__=1", "-xc++", "-"], input=b"#include <hip/hip_version.h>\n", capture_output=True, check=False).returncode != 0:
        print("skipped: no headers of HIP")
        sys.exit(77)
    done = subprocess.run(["g++", "-w", "-fsyntax-only", *include, "-I", SRC, path], capture_output=True, text=True, check=False)
    print(done.stderr[-2000:] or "%d numbers as in the headers" % len(asserts))
    sys.exit(done.returncode != 0)
