#!/usr/bin/env python3
"""Reads the functions and values of a CUDA library from the headers of several of its versions, and writes them as tables:
simulator/standins/facts/NAME.def.

    tools/api_facts.py cuda   WHEEL|FOLDER...           writes simulator/standins/facts/cuda.def (and cuda_values.def)
    tools/api_facts.py cublas WHEEL=12.9 FOLDER=13.1    a version may be told where the headers do not say it
    tools/api_facts.py --check cuda WHEEL...            compares instead: 1 where a name of these headers is missing or is otherwise
    tools/api_facts.py --list                           the libraries it knows

An input is a wheel or a folder, in which the headers are found (and the shared library, for names without a declaration). `--with INPUT`
adds an input whose headers are only included (for cuBLAS: the wheel of the CUDA runtime). The parser is clang's (`-ast-dump=json`). Names,
numbers, parameter lists and versions are facts; nothing else is taken from the headers.

A row:  X(exported name, base name, first version, last version, return type, (parameters))
        V(enumeration, name, value, first version, last version)
        T(error, "what cudaGetErrorString() answers")   cudart_texts.def, asked of the newest runtime among the inputs
        EXPORTED(name, first version, last version)     exported by the library, declared by no header
The first version of a function of the driver or runtime is what the driver's own table (cudaTypedefs.h) says, else the oldest headers
that have it; the last is the newest headers that have it. An older declaration is kept where a newer one differs only by its types' names.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
FACTS = os.path.join(HERE, "..", "simulator", "standins", "facts")

# Declarations that headers include but no wheel has. Without them the parser stops.
SUBSTITUTES = {
    "crt/host_defines.h": """
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cudart_builtin__
#define __host__
#define __device__
#define __global__
#define __shared__
#define __constant__
#define __managed__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __forceinline__
#define __noinline__
#define CUDARTAPI
#define CUDARTAPI_CDECL
#define CUDAAPI
#define __NV_ATOMIC
#define __specialization_static static
#define __location__(a)
#define __no_return__
#define __inline_hint__
""",
    "cudaProfiler.h": "#pragma once\n#include <cuda.h>\ntypedef enum CUoutput_mode_enum { CU_OUT_KEY_VALUE_PAIR, CU_OUT_CSV } CUoutput_mode;\n"
                      "CUresult cuProfilerInitialize(const char *configFile, const char *outputFile, CUoutput_mode outputMode);\n"
                      "CUresult cuProfilerStart(void);\nCUresult cuProfilerStop(void);\n",
    "cuda_profiler_api.h": "#pragma once\n#include <driver_types.h>\ncudaError_t cudaProfilerStart(void);\ncudaError_t cudaProfilerStop(void);\n",
    "crt/host_config.h": "",
    "crt/common_functions.h": "",
    "GL/gl.h": "typedef unsigned GLenum, GLuint; typedef int GLint, GLsizei;\n",
    "EGL/egl.h": "typedef unsigned EGLint; typedef void *EGLDisplay;\n",
    "EGL/eglext.h": "typedef void *EGLStreamKHR, *EGLImageKHR, *EGLSyncKHR; typedef unsigned EGLint;\n",
    "vdpau/vdpau.h": "#include <stdint.h>\ntypedef uint32_t VdpDevice, VdpVideoSurface, VdpOutputSurface, VdpStatus, VdpFuncId;\n"
                     "typedef VdpStatus VdpGetProcAddress(VdpDevice, VdpFuncId, void **);\n",
}

# modes: sets of macros under which headers declare different names; the union counts. version: an expression of the headers' macros.
# prefix: the beginning of the library's function names. values: enumerations whose members are written too.
LIBRARIES = {
    "cuda": {
        "before": ["GL/gl.h", "vdpau/vdpau.h", "cudaProfiler.h"], "headers": ["cuda.h", "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h"],
        "modes": [[], ["CUDA_API_PER_THREAD_DEFAULT_STREAM"], ["__CUDA_API_VERSION_INTERNAL"]],
        "version": "CUDA_VERSION", "prefix": "cu", "soname": "libcuda.so.1", 
        "typedefs": ["cudaTypedefs.h", "cudaProfilerTypedefs.h", "cudaGLTypedefs.h", "cudaEGLTypedefs.h", "cudaVDPAUTypedefs.h"],
        "values": "CUresult|cudaError_enum|CUdevice_attribute(_enum)?|CUfunction_attribute(_enum)?|CUpointer_attribute(_enum)?|CUlimit(_enum)?|"
                  "CUjit_option(_enum)?|CUgraphNodeType(_enum)?|CUmemPool_attribute(_enum)?|CUgraphMem_attribute(_enum)?|"
                  "CUlaunchAttributeID(_enum)?|CUarray_format(_enum)?|CUdevice_P2PAttribute(_enum)?|CUmem_range_attribute(_enum)?|CUmem_advise(_enum)?",
    },
    "cudart": {
        "before": ["GL/gl.h", "vdpau/vdpau.h", "cuda_profiler_api.h"], "headers": ["cuda_runtime_api.h", "cuda_gl_interop.h", "cuda_egl_interop.h", "cuda_vdpau_interop.h"],
        "modes": [[], ["CUDA_API_PER_THREAD_DEFAULT_STREAM"], ["__CUDA_API_VERSION_INTERNAL"]],
        "version": "CUDART_VERSION", "prefix": "cuda", "soname": "libcudart.so",
        "values": "cudaError|cudaDeviceAttr|cudaFuncAttribute|cudaLimit|cudaGraphNodeType|cudaMemPoolAttr|cudaGraphMemAttributeType|"
                  "cudaLaunchAttributeID|cudaChannelFormatKind|cudaDeviceP2PAttr|cudaMemRangeAttribute|cudaMemoryAdvise|cudaMemoryType",
    },
    "nvml": {"headers": ["nvml.h"], "modes": [[], ["NVML_NO_UNVERSIONED_FUNC_DEFS"]], "version": "NVML_API_VERSION * 1000", "prefix": "nvml",
             "soname": "libnvidia-ml.so.1", "values": "nvmlReturn_enum|nvmlReturn_t"},
    "cublas": {"headers": ["cublas_v2.h", "cublas.h"], "apart": True, "modes": [[]],
               "version": "CUBLAS_VER_MAJOR * 1000 + CUBLAS_VER_MINOR * 10", "prefix": "cublas", "soname": "libcublas.so", "values": "cublasStatus_t"},
    "cublasLt": {"headers": ["cublasLt.h"], "modes": [[]], "version": "CUBLAS_VER_MAJOR * 1000 + CUBLAS_VER_MINOR * 10", "prefix": "cublasLt",
                 "soname": "libcublasLt.so"},
    "cufft": {"headers": ["cufft.h", "cufftXt.h"], "modes": [[]], "version": "CUFFT_VER_MAJOR * 1000 + CUFFT_VER_MINOR * 10", "prefix": "cufft",
              "soname": "libcufft.so", "values": "cufftResult_t"},
    "curand": {"headers": ["curand.h"], "modes": [[]], "version": "CURAND_VER_MAJOR * 1000 + CURAND_VER_MINOR * 10", "prefix": "curand",
               "soname": "libcurand.so", "values": "curandStatus"},
    "cusolver": {"headers": ["cusolverDn.h", "cusolverSp.h", "cusolverRf.h", "cusolverSp_LOWLEVEL_PREVIEW.h"], "modes": [[]],
                 "version": "CUSOLVER_VER_MAJOR * 1000 + CUSOLVER_VER_MINOR * 10", "prefix": "cusolver", "soname": "libcusolver.so"},
    "cusolverMg": {"headers": ["cusolverMg.h"], "modes": [[]], "version": "CUSOLVER_VER_MAJOR * 1000 + CUSOLVER_VER_MINOR * 10",
                   "prefix": "cusolverMg", "soname": "libcusolverMg.so"},
    "cusparse": {"headers": ["cusparse.h"], "modes": [[]], "version": "CUSPARSE_VER_MAJOR * 1000 + CUSPARSE_VER_MINOR * 10", "prefix": "cusparse",
                 "soname": "libcusparse.so"},
    "cusparseLt": {"headers": ["cusparseLt.h"], "modes": [[]], "version": "CUSPARSELT_VER_MAJOR * 1000 + CUSPARSELT_VER_MINOR * 10",
                   "prefix": "cusparseLt", "soname": "libcusparseLt.so"},
    "cudnn": {"headers": ["cudnn.h"], "modes": [[]], "version": "CUDNN_MAJOR * 10000 + CUDNN_MINOR * 100 + CUDNN_PATCHLEVEL", "prefix": "cudnn",
              "soname": "libcudnn.so", "values": "cudnnStatus_t|cudnnBackendAttributeName_t|cudnnBackendDescriptorType_t|cudnnBackendAttributeType_t"},
    "nccl": {"headers": ["nccl.h"], "modes": [[]], "version": "NCCL_VERSION_CODE", "prefix": "(p)?nccl", "soname": "libnccl.so",
             "values": "ncclResult_t"},
    "cupti": {"headers": ["cupti.h"], "modes": [[]], "version": "CUPTI_API_VERSION", "prefix": "cupti", "soname": "libcupti.so"},
    "nvjitlink": {"headers": ["nvJitLink.h"], "modes": [[]], "version": "0", "prefix": "nvJitLink|__nvJitLink", "soname": "libnvJitLink.so"},
    "cufile": {"headers": ["cufile.h"], "modes": [[]], "version": "0", "prefix": "cuFile", "soname": "libcufile.so"},
    "nvshmem": {"headers": ["nvshmem_host.h", "host/nvshmem_api.h"], "modes": [[]], "version": "0", "prefix": "nvshmem",
                "soname": "libnvshmem_host.so"},
}

# Enumerations whose type is not named like their tag without _enum.
ENUM_NAMES = {"cudaError_enum": "CUresult"}

SUFFIX = re.compile(r"(_v\d+)?(_pt[sd][sz])?$")


class Headers:
    """One version of the library: the folders to search, and its shared library, if there is one."""

    def __init__(self, given, scratch, others):
        match = re.match(r"(.*)=([\d.]+)$", given)
        self.where, self.told = (match.group(1), match.group(2)) if match else (given, None)
        self.root = unpack(self.where, scratch)
        self.others = [include_folders(unpack(other, scratch)) for other in others]
        self.folders = include_folders(self.root) + [folder for folders in self.others for folder in folders]

    def has(self, header):
        return any(os.path.exists(os.path.join(folder, header)) for folder in self.folders)


def unpack(path, scratch):
    """Returns a folder with a wheel's headers and shared libraries; returns a folder as it is."""
    if os.path.isdir(path):
        return path
    target = os.path.join(scratch, os.path.basename(path))
    if not os.path.isdir(target):
        with zipfile.ZipFile(path) as wheel:
            for name in wheel.namelist():
                if re.search(r"\.(h|hpp|inl)$|\.so(\.|$)", name) and ".." not in name:
                    wheel.extract(name, target)
    return target


def include_folders(root):
    """Returns every folder from which headers are included: those named include, and the root if it contains headers."""
    found = [root] if any(name.endswith(".h") for name in os.listdir(root)) else []
    for folder, _, names in os.walk(root):
        if os.path.basename(folder) == "include" and folder != root:
            found.append(folder)
    return found


def clang(arguments, text=None):
    done = subprocess.run([os.environ.get("CLANG", "clang"), *arguments], input=text, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit("api_facts: the headers do not parse:\n" + done.stderr[:3000])
    return done.stdout


def preprocess(library, headers, names, macros, scratch, tail=""):
    flags = ["-D" + macro for macro in macros] + ["-I" + folder for folder in headers.folders] + ["-idirafter", substitutes(scratch)]
    text = "#include <stddef.h>\n#include <stdint.h>\n" + "".join(f"#include <{name}>\n" for name in library.get("before", []) + names) + tail
    return clang(["-E", "-P", "-x", "c", "-w", *flags, "-"], text)


def substitutes(scratch):
    folder = os.path.join(scratch, "substitutes")
    for name, text in SUBSTITUTES.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
    return folder


def parse(text):
    """Returns the declarations of the file in clang's tree."""
    return json.loads(clang(["-x", "c", "-w", "-fsyntax-only", "-Xclang", "-ast-dump=json", "-"], text))["inner"]


def version_of(library, headers, names, scratch):
    if headers.told:
        parts = [int(part) for part in headers.told.split(".")] + [0]
        return parts[0] * 1000 + parts[1] * 10
    text = preprocess(library, headers, names, [], scratch, "\nvram_version: " + library["version"] + "\n")
    expression = text.rsplit("vram_version:", 1)[1].strip()
    if not re.fullmatch(r"[\d\s()*+]+", expression):
        raise SystemExit(f"api_facts: {headers.where}: no version ({expression}); tell it: INPUT=13.0")
    return eval(expression)  # only digits and operators


def spelled(kind):
    """Returns clang's spelling of a type without its notes."""
    return re.sub(r"\s+", " ", kind["qualType"]).strip()


def declare(kind, name):
    """Returns a parameter as written in C."""
    if not name:
        return kind
    for opening in ("(*)", "(*"):
        if opening in kind:
            at = kind.index("(*") + 2
            return kind[:at] + name + kind[at:]
    array = kind.find("[")
    if array >= 0:
        return kind[:array].rstrip() + " " + name + kind[array:]
    return kind + ("" if kind.endswith("*") else " ") + name


def function_of(node):
    parameters = [child for child in node.get("inner", []) if child["kind"] == "ParmVarDecl"]
    whole = spelled(node["type"])
    depth, at = 0, len(whole)  # the parameter list is the last pair of parentheses
    for at in range(len(whole) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(whole[at], 0)
        if depth == 0 and whole[at] == "(":
            break
    result = whole[:at].strip()
    listed = ", ".join(declare(spelled(p["type"]), p.get("name", "")) for p in parameters)
    return result, listed or "void"


def enumerators(node):
    value = -1
    for child in node.get("inner", []):
        if child["kind"] != "EnumConstantDecl":
            continue
        value += 1
        for inner in child.get("inner", []):
            if "value" in inner:
                value = int(inner["value"])
        yield child["name"], value


def read_values(library, nodes, into):
    wanted = re.compile(library["values"])
    for node in nodes:
        name = node.get("name", "")
        if node["kind"] == "EnumDecl" and wanted.fullmatch(name):
            for member, value in enumerators(node):
                into[(ENUM_NAMES.get(name, name.replace("_enum", "")), member)] = value
        if node["kind"] == "TypedefDecl" and wanted.fullmatch(name):  # an enumeration whose only name is its typedef's
            owner = find_enum(node)
            for child in nodes:
                if owner and child.get("id") == owner and not child.get("name"):
                    for member, value in enumerators(child):
                        into[(name, member)] = value


def find_enum(node):
    for child in node.get("inner", []):
        owner = child.get("ownedTagDecl") or child.get("decl")
        if owner and owner.get("kind") == "EnumDecl":
            return owner["id"]
        deeper = find_enum(child)
        if deeper:
            return deeper
    return None


def read_functions(library, headers, scratch):
    """Returns {name: (return type, parameters)} and {(enumeration, name): value} of one version."""
    functions, values = {}, {}
    names = [name for name in library["headers"] if headers.has(name)]
    groups = [[name] for name in names] if library.get("apart") else [names]
    prefix = re.compile(rf"(?:{library['prefix']})[A-Z_]?\w*$")
    for group in groups:
        for macros in library["modes"]:
            nodes = parse(preprocess(library, headers, group, macros, scratch))
            for node in nodes:
                body = any(child["kind"] == "CompoundStmt" for child in node.get("inner", []))
                if node["kind"] == "FunctionDecl" and not body and node.get("storageClass") != "static" and prefix.match(node["name"]):
                    functions.setdefault(node["name"], function_of(node))
            if "values" in library:
                read_values(library, nodes, values)
    return names, functions, values


def exports_of(headers, soname):
    """Returns the exports of the shared library in the headers' input."""
    for folder, _, names in os.walk(headers.root):
        for name in names:
            if name.startswith(soname):
                done = subprocess.run(["nm", "-D", "--defined-only", os.path.join(folder, name)], capture_output=True, text=True)
                return {line.split()[-1].split("@")[0] for line in done.stdout.splitlines() if line.split()[-2] in "TWti"}
    return set()


def introduced(library, headers, scratch):
    """Returns {base name: {parameters: version}} from the driver's own table of function pointers. A per-thread variant has its suffix
    in the name."""
    table = {}
    names = [name for name in library.get("typedefs", []) if headers.has(name)]
    if not names:
        return table
    for macros in ([], ["CUDA_API_PER_THREAD_DEFAULT_STREAM"], ["__CUDA_API_VERSION_INTERNAL"]):
        for node in parse(preprocess(library, headers, names, macros, scratch)):
            match = re.fullmatch(r"PFN_(\w+?)_v(\d+)(_pt[ds][sz])?", node.get("name", ""))
            if node["kind"] == "TypedefDecl" and match:
                kind = spelled(node["type"])
                table.setdefault((match.group(1), match.group(3) or ""), {})[int(match.group(2))] = kind
    return table


def first_versions(rows, table):
    """Returns {exported name: the version that introduced it}. The n-th newest binary interface of a name is the n-th newest in the
    table."""
    groups, first = {}, {}
    for name in rows:
        suffix = SUFFIX.search(name)
        groups.setdefault((name[: suffix.start()], suffix.group(2) or ""), []).append((int((suffix.group(1) or "_v1")[2:]), name))
    for (base, twin), names in groups.items():
        versions = sorted(table.get((base, twin), {}), reverse=True)
        for (_, name), version in zip(sorted(names, reverse=True), versions):
            first[name] = version
    return first


def gather(library, inputs, scratch):
    rows, values, exported, table, seen = {}, {}, {}, {}, []
    for headers in inputs:
        names, functions, found = read_functions(library, headers, scratch)
        if not names:
            raise SystemExit(f"api_facts: {headers.where}: none of {', '.join(library['headers'])}")
        version = version_of(library, headers, names[:1], scratch)
        seen.append(version)
        for into, what in ((rows, functions), (values, found), (exported, {name: None for name in exports_of(headers, library["soname"])})):
            for key, value in what.items():
                old = into.get(key)
                newer = old is None or version >= old[1]
                into[key] = (min(version, old[0]) if old else version, max(version, old[1]) if old else version, value if newer else old[2])
        for key, versions in introduced(library, headers, scratch).items():
            table.setdefault(key, {}).update(versions)
    for name, version in first_versions(rows, table).items():
        rows[name] = (version, *rows[name][1:])
    hidden = {name: row for name, row in exported.items() if name not in rows and not name.startswith("_init") and name != "_fini"}
    return sorted(seen), rows, values, hidden


def heading(name, seen):
    return (f"// Made by tools/api_facts.py out of the headers of {name} {', '.join(str(version) for version in seen)}; not edited by hand.\n")


def wrap(text):
    """Returns lines of at most 140 columns, broken after commas."""
    lines, rest = [], text
    while len(rest) > 140:
        cut = rest.rfind(", ", 0, 139)
        if cut < 0:
            break
        lines.append(rest[: cut + 1])
        rest = "  " + rest[cut + 2:]
    return "\n".join([*lines, rest])


def functions_text(name, seen, rows, hidden):
    text = heading(name, seen) + "// X(exported name, base name, first version, last version, return type, (parameters)). No include guard.\n"
    for function in sorted(rows, key=lambda row: (SUFFIX.sub("", row), row)):
        first, last, (result, parameters) = rows[function]
        text += wrap(f"X({function}, {SUFFIX.sub('', function)}, {first}, {last}, {result}, ({parameters}))") + "\n"
    if hidden:
        text += "#ifdef EXPORTED // what no header declares: EXPORTED(name, first version, last version)\n"
        text += "".join(f"EXPORTED({function}, {hidden[function][0]}, {hidden[function][1]})\n" for function in sorted(hidden))
        text += "#endif\n"
    return text


def values_text(name, seen, values):
    text = heading(name, seen) + "// V(enumeration, name, value, first version, last version). No include guard.\n"
    for (kind, member), (first, last, value) in sorted(values.items(), key=lambda item: (item[0][0], item[1][2], item[0][1])):
        text += f"V({kind}, {member}, {value}, {first}, {last})\n"
    return text


def ask_texts(inputs, values):
    """Returns {error: text} as given by the runtime among the inputs. Queried in a separate process, because it is third-party code."""
    script = ("import ctypes, sys\nlibrary = ctypes.CDLL(sys.argv[1])\nlibrary.cudaGetErrorString.restype = ctypes.c_char_p\n"
              "for number in sys.argv[2:]: print(library.cudaGetErrorString(int(number)).decode())")
    numbers = sorted({row[2] for (kind, _), row in values.items() if kind == "cudaError"})
    texts = {}
    for headers in inputs:
        for folder, _, names in os.walk(headers.root):
            for name in names:
                if name.startswith("libcudart.so"):
                    asked = subprocess.run([sys.executable, "-c", script, os.path.join(folder, name), *map(str, numbers)],
                                           capture_output=True, text=True, check=True)
                    answers = dict(zip(numbers, asked.stdout.splitlines()))
                    texts.update({number: text for number, text in answers.items() if text != "unrecognized error code"})
    return texts


def texts_text(name, seen, texts):
    text = heading(name, seen) + "// T(error, what cudaGetErrorString() answers). No include guard.\n"
    return text + "".join(f'T({number}, "{texts[number]}")\n' for number in sorted(texts))


def write(path, text):
    with open(path, "w") as file:
        file.write(text)
    print(f"{os.path.relpath(path)}: {text.count(chr(10) + 'X(')} functions, {text.count('EXPORTED(')} more exported, "
          f"{text.count(chr(10) + 'V(')} values")


ROW = re.compile(r"X\((\w+), (\w+), (\d+), (\d+), ([^(]*?), \((.*)\)\)$")


def read_committed(path):
    with open(path) as file:
        text = re.sub(r",\n  ", ", ", file.read())
    return {m.group(1): m for m in map(ROW.match, text.splitlines()) if m}


def check(name, seen, rows):
    """Checks that every function of these headers is in the committed table, with its newest declaration."""
    committed, wrong = read_committed(os.path.join(FACTS, name + ".def")), []
    for function, (first, last, (result, parameters)) in rows.items():
        row = committed.get(function)
        if row is None:
            wrong.append(f"{function}: not in {name}.def")
        elif int(row.group(4)) == last and (row.group(5), row.group(6)) != (result, parameters):
            wrong.append(f"{function}: {name}.def has {row.group(5)} ({row.group(6)}), the headers {result} ({parameters})")
        elif not int(row.group(3)) <= max(first, int(row.group(3))) or int(row.group(4)) < last <= max(int(r.group(4)) for r in committed.values()):
            wrong.append(f"{function}: {name}.def says {row.group(3)} to {row.group(4)}, the headers {first} to {last}")
    print("\n".join(wrong) or f"{name}: {len(rows)} functions of {', '.join(map(str, seen))} are as in {name}.def")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--with", dest="others", action="append", default=[], metavar="INPUT")
    parser.add_argument("library", nargs="?", choices=sorted(LIBRARIES))
    parser.add_argument("inputs", nargs="*")
    given = parser.parse_args()
    if given.list:
        print("\n".join(sorted(LIBRARIES)))
        return 0
    if not given.library or not given.inputs:
        parser.error("a library and its headers are needed")
    library = LIBRARIES[given.library]
    with tempfile.TemporaryDirectory() as scratch:
        inputs = [Headers(one, scratch, given.others) for one in given.inputs]
        seen, rows, values, hidden = gather(library, inputs, scratch)
        texts = ask_texts(inputs, values) if given.library == "cudart" and not given.check else {}
    if given.check:
        return check(given.library, seen, rows)
    write(os.path.join(FACTS, given.library + ".def"), functions_text(given.library, seen, rows, hidden))
    if values:
        write(os.path.join(FACTS, given.library + "_values.def"), values_text(given.library, seen, values))
    if texts:
        write(os.path.join(FACTS, given.library + "_texts.def"), texts_text(given.library, seen, texts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
