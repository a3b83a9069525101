#!/usr/bin/env python3
"""`vram sim` runs programs on the simulated driver; `vram doctor` reports which one a program gets.

Usage: test_sim.py VRAM TINY WANTS
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

VRAM, TINY, WANTS = sys.argv[1:4]
ENVIRONMENT = {name: value for name, value in os.environ.items() if "ALLOC_CONF" not in name and not name.startswith("VRAM_")}


def run(*arguments, **variables):
    return subprocess.run([VRAM, *arguments], capture_output=True, text=True, env={**ENVIRONMENT, **variables}, check=False)


def is_ours(path):
    """Returns whether a file exists and belongs to this user."""
    try:
        return path.stat().st_uid == os.getuid()
    except FileNotFoundError:
        return False


class Sim(unittest.TestCase):
    def test_a_program_finds_the_simulated_devices(self):
        result = run("sim", "--devices", "3", "--memory", "16GiB", "--", TINY)
        self.assertEqual((result.stdout, result.returncode), ("init 0, 3 devices of 16384 MiB\n", 0))

    def test_devices_have_names(self):
        result = run("sim", "--card", "t4,rtx4090", "--", VRAM, "doctor", "--json")
        checks = {(check["area"], check["name"]): check for check in json.loads(result.stdout)["checks"]}
        self.assertTrue(checks["device 0", "name"]["value"].startswith("Tesla T4, compute capability 7.5, 40 "))
        self.assertTrue(checks["device 1", "name"]["value"].startswith("NVIDIA GeForce RTX 4090, compute capability 8.9, 128 "))
        self.assertEqual(checks["driver", "peer access"]["value"], "0 of 2 pairs")
        self.assertEqual(run("sim", "--card", "t4,t4", "--", TINY).stdout, "init 0, 2 devices of 14912 MiB\n")
        self.assertEqual(run("sim", "--card", "t4", "--memory", "1GiB", "--devices", "3", "--", TINY).stdout, "init 0, 3 devices of 1024 MiB\n")

    def test_the_list_has_what_each_device_has(self):
        cuda, amd = (re.findall(r"^([a-z0-9-]+) +([0-9.]+) +\d", part, re.M) for part in run("sim", "--cards").stdout.split("AMD cards"))
        self.assertGreaterEqual((len(cuda), len(amd)), (40, 2))
        for options, rows in (((), cuda), (("--hip",), amd)):
            for key, total in rows:
                mebibytes = int(re.search(r" (\d+) MiB", run("sim", *options, "--card", key, "--", TINY).stdout)[1])
                self.assertAlmostEqual(mebibytes / 1024, float(total), delta=0.051, msg=key)

    def test_the_list_of_devices_is_readable(self):
        result = run("sim", "--cards")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertLessEqual(max(len(line) for line in result.stdout.splitlines()), 80)
        rows = dict(re.findall(r"^([a-z0-9-]+) +[0-9.]+ +\d+\.\d (\S+)", result.stdout, re.M))
        self.assertEqual((rows["t4"], rows["rtx4070s"], rows["mi300x"]), ("-", "MPLCBE", "CBE"))

    def test_an_unknown_device_is_answered_with_the_nearest(self):
        for name, near in (("h1000", "h100"), ("", None), ("t4,", None), ("t4+t4", None), ("rtx4909", "rtx4090")):
            result = run("sim", "--card", name, "--", TINY)
            self.assertEqual(result.returncode, 2, name)
            self.assertIn("'vram sim --cards' lists", result.stderr)
            if near is not None:
                self.assertIn(f"did you mean '{near}'?", result.stderr)
        self.assertIn("'mi300x' is an AMD card and needs --hip", run("sim", "--card", "mi300x", "--", TINY).stderr)
        self.assertEqual(run("sim").stderr.splitlines()[0], "vram: sim needs a program")

    def test_the_doctor_says_the_same_inside_and_outside(self):
        inside = json.loads(run("sim", "--", VRAM, "doctor", "--json").stdout)["checks"]
        outside = json.loads(run("doctor", "--sim", "--json").stdout)["checks"]
        self.assertEqual([c for c in inside if c["area"].startswith("device")], [c for c in outside if c["area"].startswith("device")])

    def test_streams_have_the_priorities_that_were_asked_for(self):
        program = """
import ctypes
cuda, context, least, greatest, stream, told = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), *(ctypes.c_int() for _ in range(2)), ctypes.c_void_p(), ctypes.c_int()
assert cuda.cuInit(0) == cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuCtxGetStreamPriorityRange(ctypes.byref(least), ctypes.byref(greatest)) == 0
assert cuda.cuStreamCreateWithPriority(ctypes.byref(stream), 1, -3) == cuda.cuStreamGetPriority(stream, ctypes.byref(told)) == 0
print(least.value, greatest.value, told.value, stream.value % 16)
assert cuda.cuDevicePrimaryCtxReset_v2(0) == cuda.cuDevicePrimaryCtxRelease_v2(0) == 0
"""
        result = run("sim", "--", sys.executable, "-c", program)
        self.assertEqual(result.stdout, "0 -5 -3 0\n", result.stderr)

    def test_pools_are_found_by_their_place(self):
        program = """
import ctypes
cuda, context, first, second = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
device, host = (ctypes.c_int * 2)(1, 1), (ctypes.c_int * 2)(2, 0)
assert cuda.cuInit(0) == cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 1) == cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemGetDefaultMemPool(ctypes.byref(first), device, 1) == cuda.cuDeviceGetDefaultMemPool(ctypes.byref(second), 1) == 0
assert first.value == second.value
assert cuda.cuMemGetMemPool(ctypes.byref(first), device, 1) == cuda.cuMemSetMemPool(device, 1, first) == 0
print(first.value == second.value, cuda.cuMemGetMemPool(ctypes.byref(first), host, 1), cuda.cuMemGetMemPool(ctypes.byref(first), None, 1))
"""
        result = run("sim", "--devices", "2", "--", sys.executable, "-c", program)
        self.assertEqual(result.stdout, "True 801 1\n", result.stderr)

    def test_a_program_sees_the_devices_that_are_visible(self):
        program = pathlib.Path(__file__).parent / "visible.py"
        uuid = "GPU-7672616d-2073-696d-756c-617465642001"
        for visible, seen in (
            ("2", "0 2 NVIDIA A10"),
            ("2,0", "0 2 NVIDIA A10, 0 Tesla T4"),
            (" 1 , 0 ", "0 1 NVIDIA L4, 0 Tesla T4"),
            (uuid, "0 1 NVIDIA L4"),
            (f"{uuid},2", "0 1 NVIDIA L4, 2 NVIDIA A10"),
            ("0,7,1", "0 0 Tesla T4"),  # devices after one that does not exist are hidden
            ("", "100 "),
            ("-1", "100 "),
            ("GPU-7672", "100 "),  # a prefix of three devices
            ("1,1", "100 "),
            ("99999999999999999999", "100 "),
        ):
            result = run("sim", "--card", "t4,l4,a10", "--", sys.executable, str(program), CUDA_VISIBLE_DEVICES=visible)
            self.assertEqual(result.stdout, seen + "\n", (visible, result.stderr))

    def test_nvml_tells_of_the_same_devices(self):
        reader = pathlib.Path(__file__).parent / "nvml_reader.py"
        for options, argument in (
            (("--card", "h100,t4"), "use"),
            (("--devices", "3", "--memory", "8GiB"), "use"),
            (("--card", "rtx4090", "--set", "context=0"), "look"),
        ):
            result = run("sim", *options, "--", sys.executable, str(reader), argument)
            self.assertEqual((result.stdout, result.returncode), ("agreed\n", 0), result.stderr)
        without = subprocess.run([sys.executable, str(reader), "look"], capture_output=True, text=True, check=False, env={
            **ENVIRONMENT, "LD_LIBRARY_PATH": str(pathlib.Path(VRAM).parents[1] / "simcuda"), "VRAM_SIM": "memory=1GiB"})
        self.assertEqual(without.stdout, "agreed\n", without.stderr)  # without a session it sees no other process

    def test_pools_are_shared_by_two_processes(self):
        program = pathlib.Path(__file__).parent / "pool_pair.py"
        for settings in ("bytes=sparse", "bytes=all", "bytes=none"):
            result = run("sim", "--set", settings, "--", sys.executable, str(program))
            self.assertEqual(result.stdout, "43\n", result.stderr)
        for call in range(1, 10, 2):  # at most an assertion of one of the two fails
            result = run("sim", "--", sys.executable, str(program), VRAM_SIM_FAIL=str(call))
            self.assertIn(result.returncode, (0, 1), result.stderr)
            self.assertIn("VRAM_SIM_FAIL: cu", result.stderr)

    def test_what_sessions_leave_behind_goes_with_the_next(self):
        run("sim", "--", TINY)
        first = {path for path in pathlib.Path("/dev/shm").glob("vram-session-*") if is_ours(path)}
        run("sim", "--", TINY)
        self.assertFalse([path for path in first if path.exists() and not pathlib.Path(f"/proc/{path.name.split('-')[2]}").exists()])

    @unittest.skipUnless(os.getuid() == 0, "only root can give a file to another user")
    def test_what_another_user_left_behind_stays(self):
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        path = pathlib.Path(f"/dev/shm/vram-session-{ended.pid}-test{os.getpid()}")
        path.touch()
        self.addCleanup(path.unlink)
        os.chown(path, 65534, -1)
        self.assertEqual(run("sim", "--", TINY, "5").returncode, 5)
        self.assertTrue(path.exists())
        self.assertFalse(is_ours(path))

    def test_files_that_a_program_wrote_over_are_read(self):
        """The files that `vram sim` shares with a program may contain anything, at its end and while it runs."""
        program = str(pathlib.Path(__file__).parent / "scribble.py")
        for seed in range(5):
            result = run("sim", "--missing", "--reads", "--", sys.executable, program, str(seed), TINY)
            self.assertEqual(result.returncode, 7, result.stderr)
            self.assertNotRegex(result.stderr, r"[\x00-\x08\x0b-\x1f\x7f]")

    def test_the_exit_code_is_the_programs(self):
        self.assertEqual(run("sim", "--", TINY, "5").returncode, 5)

    def test_further_settings_reach_the_simulator(self):
        result = run("sim", "--set", "no_such_key=1", "--", TINY)
        self.assertEqual((result.stdout, result.returncode), ("", 2))
        self.assertTrue(result.stderr.startswith("vram: --set: unknown simulator option 'no_such_key'\n"), result.stderr)
        for wrong in ("devices=65", "memory=2000TiB", "bytes=some", "bytes", "context=1PiB"):
            result = run("sim", "--set", wrong, "--", TINY)
            self.assertEqual((result.stdout, result.returncode), ("", 2), wrong)
            self.assertTrue(result.stderr.startswith("vram: --set"), result.stderr)
        self.assertIn("init 0,", run("sim", "--set", "manual=1", "--", TINY).stdout)

    def test_a_large_fill_takes_no_memory_of_the_host(self):
        """Makes the driver calls of PyTorch's zeros and of a copy of them, and reads the right values back."""
        program = """if True:
            import ctypes, resource
            cuda = ctypes.CDLL("libcuda.so.1")
            context, one, two, bytes = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_uint64(), (ctypes.c_uint16 * 4)()
            size = 30 << 30
            calls = [cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)]
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            calls += [cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)) for address in (one, two)]
            calls += [cuda.cuMemsetD8_v2(one, 0x51, ctypes.c_size_t(size)), cuda.cuMemcpyDtoD_v2(two, one, ctypes.c_size_t(size))]
            calls += [cuda.cuMemcpyDtoH_v2(bytes, ctypes.c_uint64(two.value + size - 8), ctypes.c_size_t(8))]
            print(any(calls), [hex(word) for word in bytes], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8192)
        """
        for settings in ((), ("--set", "bytes=none")):
            result = run("sim", "--memory", "64GiB", *settings, "--", sys.executable, "-c", program)
            self.assertEqual(result.stdout, "False ['0x5151', '0x5151', '0x5151', '0x5151'] True\n", result.stderr)

    def test_mistakes_are_one_line(self):
        for arguments, code in (
            (("sim", "--devices", "0", "--", TINY), 2),
            (("sim", "--devices", "65", "--", TINY), 2),
            (("sim", "--memory", "1KiB", "--", TINY), 2),
            (("sim",), 2),
            (("sim", "--", "/no/such/program"), 127),
            (("sim", "--", "/"), 126),
        ):
            result = run(*arguments)
            self.assertEqual(result.returncode, code, arguments)
            self.assertTrue(result.stderr.startswith("vram"), result.stderr)

    def test_what_the_dynamic_linker_searched_is_kept(self):
        result = run("sim", "--", "sh", "-c", "echo $LD_LIBRARY_PATH", LD_LIBRARY_PATH="/some/where")
        self.assertTrue(result.stdout.rstrip().endswith(":/some/where"), result.stdout)


class Reads(unittest.TestCase):
    PROGRAM = """if True:
        import ctypes, os
        cuda = ctypes.CDLL("libcuda.so.1")
        context, address, bytes = ctypes.c_void_p(), ctypes.c_uint64(), (ctypes.c_char * 16)()
        def read(count):
            return cuda.cuMemcpyDtoH_v2(bytes, address, ctypes.c_size_t(count))
        calls = [cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)]
        calls += [cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1000)), cuda.cuMemsetD8_v2(address, 1, ctypes.c_size_t(8))]
        calls += [read(8)]
        calls += [read(16) for _ in range(3)]
        if os.fork() == 0:
            read(12)
            os.abort()
        os.wait()
        print(any(calls))
    """

    def test_a_read_of_unwritten_memory_is_told_with_its_place(self):
        result = run("sim", "--reads", "--", sys.executable, "-c", self.PROGRAM)
        self.assertEqual((result.stdout, result.returncode), ("False\n", 0), result.stderr)
        said = [line for line in result.stderr.splitlines() if not line.startswith("qemu: ")]  # from the emulator, about the child's end
        self.assertTrue(said[0].startswith("vram sim: reads that differ"), said)
        self.assertEqual([line.strip() for line in said[1:3]], ["3 reads", "24 B that no copy or fill wrote"])
        self.assertIn("1 read", [line.strip() for line in said])  # by the child, from another line
        self.assertIn("4 B that no copy or fill wrote", [line.strip() for line in said])

    def test_what_a_collective_sends_is_not_read_by_the_program(self):
        library = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(VRAM))), "standins", "libnccl.so.2")
        if not os.path.exists(library):
            self.skipTest("no stand-in for NCCL")
        program = f"""import ctypes
class Id(ctypes.Structure): _fields_ = [("bytes", ctypes.c_char * 128)]
cuda, nccl = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL({library!r})
context, address, comm, got, id = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p(), ctypes.create_string_buffer(4), Id()
cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context), cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4096))
assert nccl.ncclGetUniqueId(ctypes.byref(id)) == 0 and nccl.ncclCommInitRank(ctypes.byref(comm), 1, id, 0) == 0
def reduce(): return nccl.ncclAllReduce(address, address, ctypes.c_size_t(4), 7, 0, comm, None)
assert reduce() == reduce() == 0
cuda.cuMemcpyDtoH_v2(got, ctypes.c_uint64(address.value + 1024), ctypes.c_size_t(4))
"""
        for stacks in ({}, {"VRAM_SIM_STACKS": "/none"}):
            result = run("sim", "--reads", "--", sys.executable, "-c", program, **stacks)
            self.assertEqual(result.returncode, 0, result.stderr)
            if not stacks:
                self.assertNotIn("in reduce", result.stderr)
                self.assertEqual(result.stderr.count("that no copy or fill wrote"), 1, result.stderr)
                self.assertIn("<module> at <string>:9", result.stderr)

    def test_a_replaced_kernel_is_not_the_place(self):
        """vram's own replacements of kernels, and PyTorch's method by which they call the kernel, are between the program and its read."""
        program = """import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, address, got = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.create_string_buffer(4)
cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context), cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(64))
def define(text, file): exec(compile(text, file, "exec"), globals())
define("def redispatch(): cuda.cuMemcpyDtoH_v2(got, address, ctypes.c_size_t(4))", "/library/torch/_ops.py")
define("def run(): redispatch()", "/library/vram_values.py")
define("def other(): run()", "/library/torch/_ops.py")
def model(): other()
model()
"""
        told = run("sim", "--reads", "--", sys.executable, "-c", program).stderr
        self.assertIn("model at <string>", told)
        self.assertIn("other at /library/torch/_ops.py", told)
        for hidden in ("vram_values", "redispatch"):
            self.assertNotIn(hidden, told)

    def test_without_libvram_a_place_is_a_module_and_an_offset(self):
        result = run("sim", "--reads", "--", sys.executable, "-c", self.PROGRAM, VRAM_SIM_STACKS="/none")
        self.assertEqual((result.stdout, result.returncode), ("False\n", 0), result.stderr)
        self.assertRegex(result.stderr, r"\n    28 B that no copy or fill wrote\n +\S*.*\+0x[0-9a-f]+\n")
        self.assertNotIn("libcuda.so.1+", result.stderr)

    def test_all_can_be_right(self):
        result = run("sim", "--reads", "--missing", "--", TINY)
        self.assertIn("vram sim: every read returned what a GPU would have returned\n", result.stderr)
        self.assertIn("vram sim: every function the program called is simulated", result.stderr)
        result = run("sim", "--reads", "--", "/no/such/program")
        self.assertEqual((result.returncode, result.stderr), (127, "vram sim: /no/such/program: No such file or directory\n"))


class Values(unittest.TestCase):
    """Reads of a program from memory that a kernel would have written."""

    PROGRAM = """
        import ctypes
        cuda, bytes = ctypes.CDLL("libcuda.so.1"), (ctypes.c_ubyte * 16)()
        context, address = ctypes.c_void_p(), ctypes.c_uint64()
        code = cuda.cuInit(0)
        if code: raise SystemExit(code)
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        cuda.cuCtxSetCurrent(context)
        cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1000))
        cuda.cuMemsetD8_v2(address, 9, ctypes.c_size_t(4))
        def look(first, count):
            cuda.cuMemcpyDtoH_v2(bytes, ctypes.c_uint64(address.value + first), ctypes.c_size_t(count))
            return bytes[:count]
        def count():
            return look(8, 4)
        print(look(0, 8), look(8, 1), [count()[0] for _ in range(3)])
    """
    PROGRAM = "\n".join(line[8:] for line in PROGRAM.split("\n"))

    def said(self, *options, **variables):
        result = run("sim", *options, "--", sys.executable, "-c", self.PROGRAM, **variables)
        return result.returncode, (result.stdout or result.stderr).strip()

    def test_reads_give_what_the_rules_say(self):
        self.assertEqual(self.said(), (0, "[9, 9, 9, 9, 0, 0, 0, 0] [0] [0, 0, 0]"))
        known = "[9, 9, 9, 9, 5, 0, 0, 0]"  # written values stay
        self.assertEqual(self.said("--value", "count()=1,2", "--value", "*=5"), (0, f"{known} [5] [1, 2, 2]"))
        with tempfile.NamedTemporaryFile("w", suffix=".rules") as file:
            file.write("# of the counts\n<string>:15=7\n")
            file.flush()
            self.assertEqual(self.said("--values", file.name), (0, "[9, 9, 9, 9, 0, 0, 0, 0] [0] [7, 7, 7]"))
            file.write("count()=x\n")
            file.flush()
            code, said = self.said("--values", file.name)
            self.assertEqual((code, f"--values {file.name}: line 3: 'x' is not an integer" in said), (2, True), said)

    def test_they_are_counted_all_the_same(self):
        result = run("sim", "--reads", "--value", "*=1", "--", sys.executable, "-c", self.PROGRAM)
        self.assertIn("B that no copy or fill wrote", result.stderr)

    def test_what_is_no_rule(self):
        for options in (("--value", "count()"), ("--value", "*=0.5"), ("--values", "/no/such/file")):
            result = run("sim", *options, "--", "true")
            self.assertEqual((result.returncode, result.stderr.startswith("vram: " + options[0])), (2, True), result.stderr)
        self.assertEqual(self.said(VRAM_SIM_VALUES="*=x")[0], 1)  # the exit code of cuInit


class Missing(unittest.TestCase):
    def wanted(self, *names):
        """Returns the exit code, and {(function, library, module): calls}."""
        result = run("sim", "--missing", "--", WANTS, "libcuda.so.1", *names)
        said = result.stderr.splitlines()
        self.assertTrue(said[0].startswith("vram sim: "), said)
        rows = [line.split() for line in said[1:]]
        self.assertEqual([int(row[0]) for row in rows], sorted((int(row[0]) for row in rows), reverse=True))
        return result.returncode, {tuple(row[1:]): int(row[0]) for row in rows}, said[0]

    def test_all_is_there(self):
        code, rows, said = self.wanted("cuInit", "cuCtxGetCurrent")
        self.assertEqual((code, rows, said), (0, {}, "vram sim: every function the program called is simulated"))

    def test_calls_are_counted_by_function_and_caller(self):
        names = ["cuTexRefCreate", "cuTexRefDestroy", "cuTexRefCreate", "cuTexRefCreate"]
        code, rows, _ = self.wanted(*names)
        self.assertEqual((code, rows), (0, {("cuTexRefCreate", "libcuda", "wants"): 3, ("cuTexRefDestroy", "libcuda", "wants"): 1}))

    def test_children_and_the_killed_are_counted(self):
        code, rows, _ = self.wanted("cuTexRefCreate", "fork", "cuTexRefCreate", "cuTexRefDestroy", "die")
        self.assertEqual((code, rows), (0, {("cuTexRefCreate", "libcuda", "wants"): 2, ("cuTexRefDestroy", "libcuda", "wants"): 1}))
        self.assertEqual(self.wanted("cuTexRefCreate", "die")[:2], (137, {("cuTexRefCreate", "libcuda", "wants"): 1}))

    def test_a_program_that_is_not_there(self):
        result = run("sim", "--missing", "--", "/no/such/program")
        self.assertEqual((result.returncode, result.stderr), (127, "vram sim: /no/such/program: No such file or directory\n"))

    def test_whoever_asks_for_nvidias_driver_is_named(self):
        result = run("sim", "--", WANTS, "libcuda.so.1", "cuGetExportTable", "cuGetExportTable")
        self.assertEqual(result.stdout, "cuGetExportTable 801\n" * 2)
        self.assertEqual(result.stderr.count("\n"), 1)
        self.assertIn(f"vram sim: {WANTS} contains NVIDIA's CUDA runtime", result.stderr)
        self.assertIn("finds no device. Build it with the shared runtime (nvcc -cudart shared", result.stderr)

    def test_of_a_wheel_the_versions_that_run_are_named(self):
        for path, advice in (("cupy_backends/cuda/api/runtime.so", "CuPy: use cupy-cuda12x 12.3.0"), ("xgboost/lib/libxgboost.so", "XGBoost: no wheel runs (tested: 1.7.6"),
                             ("ctranslate2.libs/libctranslate2-a7a6.so", "CTranslate2: no wheel"), ("other/one.so", "Try another version of its wheel")):
            with tempfile.TemporaryDirectory() as folder:
                asks = pathlib.Path(folder, "site-packages", path)
                asks.parent.mkdir(parents=True)
                shutil.copy(WANTS, asks)
                said = run("sim", "--", str(asks), "libcuda.so.1", "cuGetExportTable").stderr
                self.assertIn(f"finds no device. {advice}", said)
                self.assertNotIn("nvcc", said)

    def test_a_compiler_that_asks_is_not(self):
        """NVRTC and nvJitLink ask for the tables, but do not need them."""
        with tempfile.TemporaryDirectory() as folder:
            for name in ("libnvrtc.so.13", "libnvJitLink.so.12"):
                asks = shutil.copy(WANTS, f"{folder}/{name}")
                result = run("sim", "--", asks, "libcuda.so.1", "cuGetExportTable")
                self.assertEqual((result.stdout, result.stderr), ("cuGetExportTable 801\n", ""))

    def test_a_static_program_is_named(self):
        if not os.path.exists("/sbin/ldconfig.real") and not os.path.exists("/sbin/ldconfig"):
            self.skipTest("no static program is known here")
        path = "/sbin/ldconfig.real" if os.path.exists("/sbin/ldconfig.real") else "/sbin/ldconfig"
        result = run("sim", "--", path, "--version")
        self.assertEqual(result.returncode, 0)
        self.assertIn(f"vram sim: {path} cannot use the simulated driver: it is linked statically", result.stderr)


class Doctor(unittest.TestCase):
    def checks(self, *arguments, code=None, **variables):
        result = run("doctor", "--json", *arguments, **variables)
        if code is not None:
            self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return {(check["area"], check["name"]): check for check in json.loads(result.stdout)["checks"]}

    def test_the_simulated_driver_can_do_everything_vram_uses(self):
        checks = self.checks("--sim", code=0)
        self.assertEqual(checks["device 0", "virtual memory"]["state"], "ok")
        self.assertEqual(checks["device 0", "memory"]["value"], "79.2 GiB, 78.6 GiB free")  # the context takes 562 MiB
        self.assertTrue(checks["device 0", "name"]["value"].startswith("NVIDIA H100 80GB HBM3, compute capability 9.0, 132 "))
        self.assertEqual(checks["device 0", "page size"]["value"], "2.0 MiB")

    def test_options_are_told_with_their_defaults(self):
        checks = self.checks("--sim", code=0, PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb:64", PYTORCH_ALLOC_CONF="x")
        self.assertEqual(checks["settings", "max_split_size_mb"]["value"], "64 (default unlimited)")
        self.assertIn("PYTORCH_CUDA_ALLOC_CONF takes precedence", checks["settings", "PYTORCH_ALLOC_CONF"]["text"])

    def test_a_wrong_option_is_a_finding(self):
        checks = self.checks("--sim", code=1, VRAM_ALLOC_CONF="expandable_segment:True")
        self.assertEqual(checks["settings", "VRAM_ALLOC_CONF"]["state"], "wrong")
        self.assertIn("did you mean 'expandable_segments'", checks["settings", "VRAM_ALLOC_CONF"]["text"])

    def test_no_driver_is_said(self):
        checks = self.checks(code=4, VRAM_LIBCUDA="/no/such/libcuda.so")
        self.assertEqual(checks["driver", "CUDA driver"]["state"], "off")

    def test_under_vram_sim_the_driver_is_the_simulated_one(self):
        result = run("sim", "--devices", "2", "--", VRAM, "doctor", "--json")
        checks = {(check["area"], check["name"]): check for check in json.loads(result.stdout)["checks"]}
        self.assertEqual(checks["driver", "devices"]["value"], "2")
        self.assertEqual(checks["driver", "peer access"]["value"], "2 of 2 pairs")
        self.assertEqual(checks["device 1", "file handles"]["state"], "ok")

    def test_both_ways_to_the_simulated_driver_agree(self):
        asked = self.checks("--sim", code=0)
        under = run("sim", "--", VRAM, "doctor", "--json")
        found = {(check["area"], check["name"]): check for check in json.loads(under.stdout)["checks"]}
        self.assertIn("device=", found.pop(("settings", "VRAM_SIM"))["value"])
        self.assertEqual(found, asked)

    def test_people_get_the_same(self):
        result = run("doctor", "--sim", VRAM_STYLE="plain")
        self.assertIn("\ndevice 0\n", result.stdout)
        self.assertIn("expandable_segments:True is supported", result.stdout)
        self.assertTrue(all(len(line) <= 100 or "/" in line for line in result.stdout.splitlines()))


unittest.main(argv=[sys.argv[0]])
