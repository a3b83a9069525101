#!/usr/bin/env python3
"""Makes the wheels: build/packages/vram-VERSION-py3-none-*.whl.

usage: build.py native PREFIX PLATFORM | any WASM_FOLDER, then LICENSES and the folder for the wheel
native: PREFIX is what `cmake --install` made for the platform (manylinux_2_28_x86_64, manylinux_2_28_aarch64); any: WebAssembly, run by PyPI's wasmtime.
Files have the date 1980-01-01, so that the same input gives the same bytes."""
import base64
import hashlib
import pathlib
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PLUGIN = ROOT / "adapters" / "fit" / "pytest" / "vram_pytest.py"
# The parts of an installation that Python programs do not need.
LEFT_OUT = ("share/doc", "share/man", "share/bash-completion", "share/zsh", "share/fish", "lib/cmake", "lib/pkgconfig", "lib/libvram.a", "lib/libvram-sim", "lib/libvram-recordings.a")
ENTRY_POINTS = {"console_scripts": "vram = vram:main", "pytest11": "vram_pytest = vram_pytest"}
# Needs the adapters, which the wheel of WebAssembly lacks.
NATIVE_ENTRY_POINTS = {**ENTRY_POINTS, "vllm.general_plugins": "vram = vram_vllm:register"}
# The licenses of vram and of the libraries linked into it: zstd, cJSON, zlib, SQLite, liblzma, and the C library of WebAssembly.
LICENSES = "Apache-2.0 AND BSD-3-Clause AND MIT AND Zlib AND blessing AND LicenseRef-Public-Domain"
KEYWORDS = ("pytorch", "cuda", "gpu", "memory", "snapshot", "profiler", "out-of-memory", "allocator")
CLASSIFIERS = ("Development Status :: 4 - Beta", "Environment :: Console", "Environment :: GPU :: NVIDIA CUDA", "Framework :: Jupyter", "Framework :: Pytest",
               "Intended Audience :: Developers", "Intended Audience :: Science/Research", "Programming Language :: C", "Programming Language :: Python :: 3",
               "Topic :: Scientific/Engineering :: Artificial Intelligence", "Topic :: Software Development :: Debuggers", "Topic :: System :: Hardware")
SUMMARY = "Recordings of GPU memory: read, explained, viewed, made; PyTorch's caching allocator for any program"


def version():
    text = (ROOT / "CMakeLists.txt").read_text()
    return text.split("project(vram VERSION ")[1].split()[0]


def metadata(requires, licenses):
    lines = ["Metadata-Version: 2.4", "Name: vram", f"Version: {version()}", f"Summary: {SUMMARY}", f"License-Expression: {licenses}", "License-File: LICENSES.txt",
             "Keywords: " + ",".join(KEYWORDS), "Requires-Python: >=3.9"]
    lines += [f"Classifier: {name}" for name in CLASSIFIERS]
    lines += [f"Requires-Dist: {name}" for name in requires]
    lines += ["Provides-Extra: frames", "Requires-Dist: numpy; extra == 'frames'", "Requires-Dist: pyarrow; extra == 'frames'",
              "Description-Content-Type: text/markdown", "", (HERE / "README.md").read_text()]
    return "\n".join(lines)


def installed(prefix):
    """Lists the files of an installation: (name in the wheel, bytes, whether it is executable). A library with several names is stored
    once, under its SONAME."""
    prefix = pathlib.Path(prefix).resolve()
    for path in sorted(prefix.rglob("*")):
        name = path.relative_to(prefix).as_posix()
        if path.is_dir() or name.startswith(LEFT_OUT) or (path.is_symlink() and not name.endswith(".so.0.1") and "/sim/" not in name):
            continue
        if path.is_file() and not (name.startswith(("lib/libvram.so", "lib/libvram-recordings.so")) and not path.is_symlink()):
            yield f"vram/_native/{name}", path.read_bytes(), name.startswith("bin/")


def package():
    for path in sorted((HERE / "vram").glob("*.py")):
        yield f"vram/{path.name}", path.read_bytes(), False
    yield "vram/_version.py", f'__version__ = "{version()}"\n'.encode(), False
    yield "vram_pytest.py", PLUGIN.read_bytes(), False


def entry_points_text(points):
    return "\n".join(f"[{group}]\n{point}\n" for group, point in points.items())


def write(folder, tag, files, requires, licenses, expression, points):
    info = f"vram-{version()}.dist-info"
    files = list(files) + list(package())
    files += [(f"{info}/METADATA", metadata(requires, expression).encode(), False),
              (f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: vram\nRoot-Is-Purelib: {str(tag.endswith('any')).lower()}\nTag: {tag}\n".encode(), False),
              (f"{info}/entry_points.txt", entry_points_text(points).encode(), False),
              (f"{info}/licenses/LICENSES.txt", pathlib.Path(licenses).read_bytes(), False)]
    record = [f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}" for name, data, _ in files]
    files.append((f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,", ""]).encode(), False))
    place = pathlib.Path(folder) / f"vram-{version()}-{tag}.whl"
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data, runs in files:
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o100755 if runs else 0o100644) << 16
            wheel.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)
    print(f"{place}: {place.stat().st_size:,} bytes")


def main():
    kind, source, *more = sys.argv[1:]
    if kind == "native":
        platform, licenses, folder = more
        # Makes `import vram_torch` find the installed adapters.
        files = [*installed(source), ("vram_adapters.pth", b"vram/_native/lib/vram/torch\n", False)]
        write(folder, f"py3-none-{platform}", files, [], licenses, LICENSES, NATIVE_ENTRY_POINTS)
    else:
        licenses, folder = more
        files = [(f"vram/_wasm/{name}", (pathlib.Path(source) / name).read_bytes(), False) for name in ("vram.wasm", "vram_library.wasm")]
        write(folder, "py3-none-any", files, ["wasmtime>=20"], licenses, LICENSES + " AND BSD-2-Clause AND CC0-1.0", ENTRY_POINTS)


if __name__ == "__main__":
    main()
