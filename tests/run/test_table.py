#!/usr/bin/env python3
"""Compares the table of doors with the driver API's names, versions and argument widths, as listed in simulator/standins/facts/cuda.def."""
import re
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tools"))
import api_facts  # noqa: E402

FACTS = api_facts.read_committed(HERE.parents[1] / "simulator/standins/facts/cuda.def")
TWIN = re.compile("_pt[sd][sz]$")
ROW = re.compile(r"^X\((\w+), (\w+), (\w+), (\d+), (\d),\s*\((.*?)\),\s*\((.*?)\)\)$", re.M | re.S)
# Bytes of a parameter on a 64-bit system, by the words that end its type. A pointer, a handle or a size has 8.
NARROW = r"unsigned int|uint32_t|int32_t|CUdevice_v1|CUdevice|CUdeviceptr_v1|int"


def widths(parameters):
    result = []
    for parameter in re.sub(r"/\*.*?\*/", "", parameters).split(","):
        parameter = " ".join(parameter.replace("*", " * ").split())
        if "*" in parameter:
            # A pointed-to value counts if it is a number that is written.
            pointed = re.match(rf"(?:const )?(?:{NARROW}) \*", parameter)
            result.append("p4" if pointed else "8")
        else:
            result.append("4" if re.match(rf"(?:{NARROW})\b", parameter) else "8")
    return result


class Table(unittest.TestCase):
    def setUp(self):
        self.rows = ROW.findall((HERE.parents[1] / "adapters/preload/doors.def").read_text())

    def versions(self, symbol):
        """Returns (version, per thread) -> (exported name, parameters) of a base name."""
        return {(int(row.group(3)), bool(TWIN.search(name))): (name, row.group(6)) for name, row in FACTS.items() if row.group(2) == symbol}

    def test_every_interface_of_a_name_is_there(self):
        self.assertGreater(len(self.rows), 40)
        for symbol in {row[1] for row in self.rows}:
            ours = {(int(row[3]), row[4] == "1") for row in self.rows if row[1] == symbol}
            self.assertEqual(ours, set(self.versions(symbol)), symbol)

    def test_arguments_and_exported_names(self):
        for _, symbol, exported, version, twin, parameters, arguments in self.rows:
            name, theirs = self.versions(symbol)[int(version), twin == "1"]
            self.assertEqual(exported, name)
            self.assertEqual(widths(parameters), widths(theirs), exported)
            self.assertEqual(len(arguments.split(",")), len(parameters.split(",")), exported)

    def test_whatever_takes_device_memory_has_a_door(self):
        """A function whose name looks as if it allocates must be a door, or be listed here with the reason."""
        taking = re.compile(r"cu(Mem|Array|Array3D|MipmappedArray|Ctx|Module|Library)\w*(Alloc|Create|Load|Import|Open|Register)")
        others = {
            "cuMemGetAllocationGranularity", "cuMemGetAllocationPropertiesFromHandle", "cuModuleGetLoadingMode",  # these only query
            "cuMemPoolCreate", "cuMemPoolImportFromShareableHandle",  # a pool takes memory on later requests
            "cuMemPoolImportPointer", "cuMemImportFromShareableHandle",  # the exporter's memory
        }
        doors = {row[2] for row in self.rows}
        self.assertEqual({name for name in FACTS if taking.match(name)} - doors, others)


if __name__ == "__main__":
    unittest.main()
