#!/usr/bin/env python3
"""The table of doors against NVIDIA's own headers: names, versions, and the width of every argument. Skipped where there is no toolkit."""
import os
import re
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
INCLUDE = Path(os.environ.get("VRAM_CUDA_INCLUDE", "/usr/local/cuda/include"))
ROW = re.compile(r"^X\((\w+), (\w+), (\w+), (\d+), (\d),\s*\((.*?)\),\s*\((.*?)\)\)$", re.M | re.S)
# Bytes of a parameter on a 64-bit system by the words that end its type; a pointer, a handle or a size has 8.
NARROW = r"unsigned int|uint32_t|int32_t|CUdevice_v1|CUdevice|CUdeviceptr_v1|int"


def widths(parameters):
    result = []
    for parameter in re.sub(r"/\*.*?\*/", "", parameters).split(","):
        parameter = " ".join(parameter.replace("*", " * ").split())
        if "*" in parameter:
            # What it points to counts where it is a number that is written.
            pointed = re.match(rf"(?:const )?(?:{NARROW}) \*", parameter)
            result.append("p4" if pointed else "8")
        else:
            result.append("4" if re.match(rf"(?:{NARROW})\b", parameter) else "8")
    return result


class Table(unittest.TestCase):
    def setUp(self):
        self.typedefs = (INCLUDE / "cudaTypedefs.h").read_text()
        self.rows = ROW.findall((HERE.parents[1] / "adapters/preload/doors.def").read_text())

    def versions(self, symbol):
        """(version, per thread) -> parameters, of a base name."""
        found = re.findall(rf"\*PFN_{symbol}_v(\d+)(_pt[sd][sz])?\)\((.*?)\);", self.typedefs)
        return {(int(version), bool(twin)): parameters for version, twin, parameters in found}

    def test_every_interface_of_a_name_is_there(self):
        self.assertGreater(len(self.rows), 40)
        for symbol in {row[1] for row in self.rows}:
            ours = {(int(row[3]), row[4] == "1") for row in self.rows if row[1] == symbol}
            self.assertEqual(ours, set(self.versions(symbol)), symbol)

    def test_arguments(self):
        for _, symbol, exported, version, twin, parameters, arguments in self.rows:
            theirs = self.versions(symbol)[int(version), twin == "1"]
            self.assertEqual(widths(parameters), widths(theirs), exported)
            self.assertEqual(len(arguments.split(",")), len(parameters.split(",")), exported)

    def test_exported_names(self):
        header = (INCLUDE / "cuda.h").read_text()
        for _, symbol, exported, version, twin, *_ in self.rows:
            newest = max(number for number, per_thread in self.versions(symbol) if not per_thread)
            defined = re.search(rf"#define {symbol} +(?:__CUDA_API_PT[SD][SZ]\()?(\w+)\)?", header)
            if int(version) == newest and twin == "0":
                self.assertEqual(exported, defined.group(1) if defined else symbol)
            if twin == "1":
                self.assertIn("__CUDA_API_PTSZ(" + symbol + ")", header)


if __name__ == "__main__":
    if not (INCLUDE / "cudaTypedefs.h").exists():
        print("no CUDA toolkit here")
        sys.exit(77)
    unittest.main()
