#!/usr/bin/env python3
"""Tests which ranks run under each launcher (`vram fit --fold`), with launchers that only set the variables that the real ones set.

usage: test_launchers.py VRAM
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

VRAM = sys.argv.pop(1)
HERE = pathlib.Path(__file__).resolve().parent
ENVIRONMENT = {name: value for name, value in os.environ.items() if "ALLOC_CONF" not in name and not name.startswith(("VRAM_", "PYTHON"))}
TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
OPEN_MPI = tuple("OMPI_COMM_WORLD_" + name for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE"))
SLURM = ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE")
PMI = ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS")

# Starts the words after "--" as often as the first number among its options says, with the variables of NAMES.
LAUNCHER = """#!/usr/bin/env python3
import os, re, subprocess, sys
names, words = os.environ["NAMES"].split(), sys.argv[1:]
options, program = words[:words.index("--")], words[words.index("--") + 1:]
count = re.search("[0-9]+", " ".join(options)).group()
print("options", *options, flush=True)
ranks = [subprocess.Popen(program, env={**os.environ, **dict(zip(names, (str(i), count, str(i), count)))}) for i in range(int(count))]
sys.exit(max(rank.wait() for rank in ranks))
"""
RANK = """
import os, torch
print("rank", *[os.environ.get(name) for name in os.environ["NAMES"].split()], flush=True)
optimizer, weights = torch.Optimizer(), torch.empty((8 if os.environ[os.environ["NAMES"].split()[0]] == "5" else 4) << 20)
for step in range(9): optimizer.step()
"""


def fit(launcher, options, names, *more, rank=RANK, form=("--json",)):
    """Returns the finished command, the launcher's options as it saw them, and the variables of the ranks."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, launcher)
        path.write_text(LAUNCHER)
        path.chmod(0o755)
        os.mkdir(folder + "/tmp")
        result = subprocess.run([VRAM, "fit", *form, *more, "--", path, *options, "--", sys.executable, "-c", rank], capture_output=True, text=True, check=False,
                                env={**ENVIRONMENT, "PYTHONPATH": str(HERE / "fake"), "TMPDIR": folder + "/tmp", "FAKE_STORE": folder, "NAMES": " ".join(names)})
    said = [line.split(" ", 1) for line in result.stderr.splitlines()]
    return result, [words[1] for words in said if words[0] == "options"], sorted(words[1] for words in said if words[0] == "rank")


class Launchers(unittest.TestCase):
    def test_the_ranks_that_run(self):
        cases = (("torchrun", ["--nproc-per-node", "4", "--nnodes=2"], TORCHRUN, "--nproc-per-node 2 --nnodes=1", 4),
                 ("accelerate", ["--num_processes", "8", "--num_machines", "2"], TORCHRUN, "--num_processes 2 --num_machines 1", 4),
                 ("deepspeed", ["--num_gpus", "4", "--num_nodes", "2"], TORCHRUN, "--num_gpus 2 --num_nodes 1", 4),
                 ("mpirun", ["-np", "8", "--bind-to", "none"], OPEN_MPI, "-np 2 --bind-to none", 8), ("mpirun", ["-n", "8"], OPEN_MPI, "-n 2", 8),
                 ("mpiexec", ["-n", "8"], PMI, "-n 2", 8), ("srun", ["-n8"], SLURM, "-n2", 8), ("srun", ["--ntasks=8", "-N", "2"], SLURM, "--ntasks=2 -N 1", 4),
                 ("srun", ["--ntasks-per-node=4", "--nodes=2"], SLURM, "--ntasks-per-node=2 --nodes=1", 4))
        for launcher, options, names, changed, of_machine in cases:
            result, seen, ranks = fit(launcher, options, names, "--fold", "0,5")
            self.assertEqual(result.returncode, 0, result.stderr)
            answer = json.loads(result.stdout)
            self.assertEqual((seen, ranks), ([changed], [f"0 8 0 {of_machine}", f"5 8 {5 % of_machine} {of_machine}"]), (launcher, options))
            self.assertEqual((answer["ranks"], [one["reserved_bytes"] >> 20 for one in answer["holdings"]]), (8, [4, 8]), (launcher, options))

    def test_devices(self):
        """A rank has the device of its place on its machine, unless two would share one, or the number of devices is given."""
        for options, ranks, local in (("--nproc-per-node=8", "0,3,7", "0 3 7"), ("--nproc-per-node=4 --nnodes=4", "0,5,14", "0 1 2"),
                                      ("--nproc-per-node=4 --nnodes=4", "0,4,8", "0 1 2"), ("--nproc-per-node=8 --nnodes=4", "0,9,8", "0 1 2")):
            result, _, seen = fit("torchrun", options.split(), TORCHRUN, "--fold", ranks)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(sorted(line.split()[2] for line in seen), local.split(), (options, ranks))
        _, _, seen = fit("torchrun", ["--nproc-per-node=8"], TORCHRUN, "--fold", "0,3,7", "--devices", "3")
        self.assertEqual(sorted(line.split()[2] for line in seen), ["0", "1", "2"])

    def test_all_ranks_of_several_machines(self):
        """A few ranks all run, on this machine: the launcher would wait for the others."""
        for options in ((), ("--fold", "none")):
            result, seen, ranks = fit("torchrun", ["--nproc-per-node=4", "--nnodes=2"], TORCHRUN, *options)
            self.assertEqual(seen, ["--nproc-per-node=8 --nnodes=1"], result.stderr)
            self.assertEqual([line.split()[:2] for line in ranks], [[str(rank), "8"] for rank in range(8)])
            self.assertEqual((json.loads(result.stdout)["ranks"], json.loads(result.stdout)["machines_range"]), (8, None))
        page = " ".join(fit("torchrun", ["--nproc-per-node=4", "--nnodes=2"], TORCHRUN, "-q", form=())[0].stdout.split())
        self.assertIn("Ranks 8 on 2 machines; all ran on this one host memory", page)

    def test_a_range_of_machines(self):
        """torchrun's --nnodes 1:4 is from one machine on. The least number decides: ranks of more machines need less, if any shares their state."""
        for options, changed, ranks in (("--nproc-per-node 2 --nnodes 1:4", "--nproc-per-node 2 --nnodes 1", 2), ("--nproc_per_node=2 --nnodes=3:9", "--nproc_per_node=6 --nnodes=1", 6)):
            result, seen, _ = fit("torchrun", options.split(), TORCHRUN)
            least, most = options.split("nnodes")[1][1:].split(":")
            said = f"--nnodes {least}:{most}: judged for {least}, the least; for another number give --nnodes N"
            self.assertEqual((seen, json.loads(result.stdout)["ranks"], json.loads(result.stdout)["machines_range"]), ([changed], ranks, said), result.stderr)
            page = fit("torchrun", options.split(), TORCHRUN, "-q", form=())[0].stdout
            self.assertIn("Machines " + said, " ".join(page.split()))
            self.assertLessEqual(max(map(len, page.splitlines())), 80)
        for options in ("--nproc-per-node 2 --nnodes 4:1", "--nproc-per-node 2 --nnodes 1:x"):  # torchrun refuses these
            self.assertEqual(fit("torchrun", options.split(), TORCHRUN)[1], [options])

    def test_options_of_other_programs(self):
        """-n and --ntasks are options of mpirun and srun only."""
        for options in (["-n", "32"], ["--ntasks", "32"]):
            result, _, _ = fit("tool", ["--nproc-per-node=2", *options], TORCHRUN, "-q")
            self.assertEqual(json.loads(result.stdout)["ranks"], 2, options)
        self.assertEqual(fit("tool", ["-n", "32"], TORCHRUN, "--fold", "0,1")[0].returncode, 2)

    def test_a_rank_that_ends_early(self):
        """The others wait for it, with and without device memory, until the time runs out."""
        waits = "import os, sys, time\nif os.environ['RANK'] == '1': sys.exit(0)\nimport torch\nif {0}: torch.empty({0})\ntime.sleep(100)\n"
        for size, code, said in ((1 << 20, 1, "Might not fit on h100: rank 1 had ended before it used a device, and the others may have waited for it Needs"),
                                 (0, 3, "The time of --for was over. Rank 1 had ended before it used a device")):
            result, _, _ = fit("torchrun", ["--nproc-per-node=2"], TORCHRUN, "--for", "3s", rank=waits.format(size), form=())
            self.assertTrue(" ".join(result.stdout.split()).startswith(said), result.stdout)
            self.assertEqual(result.returncode, code)
            self.assertNotIn("this machine may have run out of memory", result.stderr)

    HANGS = """
import os, time, torch
optimizer, rank = torch.Optimizer(), int(os.environ["RANK"])
if rank == {rank} and {at} == -1: time.sleep(99)
weights = torch.empty(4 << 20)
for step in range(99):
    if rank == {rank} and step == {at}: time.sleep(99)
    torch.free(torch.empty(2 << 20))
    optimizer.step()
"""

    def test_a_rank_that_hangs(self):
        """The others wait for it at the ends of their steps."""
        cases = (1, -1, "rank 1 had used no device when the time of --for had passed"), (1, 0, "rank 1 fell behind: it ended no step in the last"), (0, 2, "rank 0 fell behind:")
        runs = [("--nproc-per-node=8", self.HANGS.format(rank=rank, at=step), ("--for", "14s", "--fold", "0,1")) for rank, step, _ in cases]
        for (rank, step, said), result in zip(cases, self.together(runs)):
            answer = json.loads(result.stdout)
            self.assertEqual((result.returncode, answer["fits"], answer["failure"], answer["smallest_bytes"]), (1, None, None, None), result.stderr)
            self.assertTrue(answer["unsure_because"].startswith(said), answer["unsure_because"])
            if step >= 0:
                self.assertTrue(answer["unsure_because"].endswith(f"; it had ended {step}, and rank {1 - rank} 4"), answer["unsure_because"])
        result, _, _ = fit("tool", ["--nproc-per-node=8"], TORCHRUN, *runs[1][2], rank=runs[1][1], form=("-q",))
        self.assertTrue(result.stdout.startswith("Might not fit on h100: rank 1 fell behind: it ended no step in the last "), result.stdout)

    def test_ranks_that_are_only_slow(self):
        rank = "import os, time, torch\noptimizer, rank = torch.Optimizer(), int(os.environ['RANK'])\nweights = torch.empty(4 << 20)\n" \
               "for step in range(99):\n    torch.empty(2 << 20)\n    time.sleep(1.5 * rank + 0.1)\n    optimizer.step()\n"
        result, _, _ = fit("tool", ["--nproc-per-node=2"], TORCHRUN, "-q", "--for", "8s", rank=rank)
        self.assertEqual((json.loads(result.stdout)["unsure_because"], json.loads(result.stdout)["ended"]), (None, "time"), result.stderr)

    def test_a_rank_that_fails_first_is_named(self):
        """Rank 0 fails later, because rank 1 does not answer."""
        rank = "import os, time, torch\nif os.environ['RANK'] == '1': raise ValueError('no data')\ntorch.empty(1 << 20)\ntime.sleep(2)\nraise RuntimeError('connection lost')\n"
        result, _, _ = fit("torchrun", ["--nproc-per-node=2"], TORCHRUN, "-q", rank=rank)
        self.assertRegex(json.loads(result.stdout)["failure"]["text"], "^The program failed on rank 1 before its first step ended, at .*: ValueError: no data$")

    # Rank 1 does the words in the braces before it joins the others.
    JOINS = """
import os, subprocess, sys, time, torch
optimizer, rank = torch.Optimizer(), os.environ["RANK"]
if rank == "1":
    {}
torch.distributed.init_process_group()
weights = torch.empty(4 << 20)
for step in range(9): optimizer.step()
"""

    @staticmethod
    def together(runs):
        """Runs jobs that mostly wait at the same time: for each an option of the launcher, the rank's program and options."""
        with concurrent.futures.ThreadPoolExecutor(len(runs)) as pool:
            return list(pool.map(lambda run: fit("tool", [run[0]], TORCHRUN, "-q", *run[2], rank=run[1])[0], runs))

    def test_a_rank_that_never_joins(self):
        """The others would wait for it for ever. Folded, the ranks that do not run are not waited for."""
        ways = (("raise ValueError('no data')", "failed", "ValueError: no data"), ("sys.exit(0)", "exited without an exception", ""),
                ("os.kill(os.getpid(), 9)", "was killed, or called os._exit(),", ""))
        cases = [(*way, *ranks) for way in ways for ranks in ((2, ()), (8, ("--fold", "0,1")))]
        runs = [(f"--nproc-per-node={ranks}", self.JOINS.format(words), options) for words, _, _, ranks, options in cases]
        for (_, how, exception, ranks, _), result in zip(cases, self.together(runs)):
            self.assertEqual(result.returncode, 3, result.stderr)
            failure = json.loads(result.stdout)["failure"]
            self.assertTrue(failure["text"].startswith(f"Rank 1 {how} before it joined the job's {ranks} ranks, which wait for it"), failure)
            self.assertEqual((failure["exception"], json.loads(result.stdout)["ended"]), (exception, "absent"))

    def test_the_page_of_a_rank_that_never_joins(self):
        result, _, _ = fit("tool", ["--nproc-per-node=2"], TORCHRUN, "-q", rank=self.JOINS.format("raise ValueError('no data')"), form=())
        self.assertEqual(result.stdout.splitlines()[:2], ["Rank 1 failed before it joined the job's 2 ranks, which wait for it, at", "<string>:5:<module>: ValueError: no data"])
        self.assertNotIn("exit code", result.stdout + result.stderr)

    def test_a_launcher_that_does_not_end(self):
        """It is killed in the end, which is not a lack of host memory."""
        with tempfile.TemporaryDirectory() as folder:
            start = ("import os, signal, subprocess, sys, time\nranks = [subprocess.Popen([sys.executable, '-c', sys.argv[2]], env={**os.environ, 'RANK': str(i), 'WORLD_SIZE': '2'})"
                     " for i in range(2)]\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(90)\n")
            program = ("--", sys.executable, "-c", start, "--nproc-per-node=2", self.JOINS.format("sys.exit(0)"))
            result = subprocess.run([VRAM, "fit", "--json", *program], capture_output=True, text=True, check=False,
                                    env={**ENVIRONMENT, "PYTHONPATH": str(HERE / "fake"), "FAKE_STORE": folder})
        self.assertEqual(json.loads(result.stdout)["ended"], "absent", result.stderr)
        self.assertNotIn("may have run out of memory", result.stderr)

    def test_ranks_that_join_late(self):
        """A slow rank ends nothing, nor does its child, nor the first program of a script, nor a rank of ranks that never join each other."""
        child = "subprocess.run([sys.executable, '-c', 'pass'], check=True); time.sleep(9)"
        script = f"import os\nif os.environ['RANK'] == '1': os.execvp('sh', ['sh', '-c', '{{0}} -c pass; sleep 9; {{0}} -c \"$1\"', 'sh', {{1!r}}])\nexec({{1!r}})"
        own = self.JOINS.format("sys.exit(0)").replace("torch.distributed.init_process_group()", "time.sleep(9)")
        programs = self.JOINS.format("time.sleep(9)"), self.JOINS.format(child), script.format(sys.executable, self.JOINS.format("pass")), own
        for result in self.together([("--nproc-per-node=2", program, ()) for program in programs]):
            self.assertEqual((result.returncode, json.loads(result.stdout)["failure"]), (0, None), result.stderr)

    def test_a_rank_that_is_started_again(self):
        """Its launcher starts both ranks again when one fails."""
        once = ("import os, pathlib, subprocess, sys\nwords = [sys.executable, '-c', sys.argv[2]]\n"
                "def start(fails): return [subprocess.Popen(words, env={**os.environ, 'RANK': str(i), 'WORLD_SIZE': '2', 'FAILS': fails}) for i in range(2)]\n"
                "first = start('1')\nfirst[1].wait(), first[0].terminate(), first[0].wait()\npathlib.Path(os.environ['FAKE_STORE'], 'rank0').unlink()\n"
                "sys.exit(max(one.wait() for one in start('0')))")
        rank = self.JOINS.format("time.sleep(2 if os.environ['FAILS'] == '1' else 9); os.environ['FAILS'] == '1' and sys.exit(1)")
        with tempfile.TemporaryDirectory() as folder:
            result = subprocess.run([VRAM, "fit", "--json", "--", sys.executable, "-c", once, "--nproc-per-node=2", rank], capture_output=True, text=True, check=False,
                                    env={**ENVIRONMENT, "PYTHONPATH": str(HERE / "fake"), "FAKE_STORE": folder})
        self.assertEqual((result.returncode, json.loads(result.stdout)["failure"]), (0, None), result.stderr)

    def test_what_torchrun_says_of_a_rank_that_is_killed(self):
        """It ends the other ranks, and says which failed first."""
        says = ("import os, subprocess, sys\nprint('W1 torch/distributed/run.py:982] Setting OMP_NUM_THREADS', file=sys.stderr)\n"
                "ranks = [subprocess.Popen([sys.executable, '-c', sys.argv[3]], env={**os.environ, 'RANK': str(i), 'WORLD_SIZE': '2'}) for i in range(2)]\n"
                "code = ranks[1].wait()\nranks[0].kill(), ranks[0].wait()\n"
                "print(f'E1 torch/distributed/elastic/multiprocessing/api.py:9] failed (exitcode: {code}) local_rank: 1 (pid: {ranks[1].pid}) of binary: x')\nsys.exit(1)\n")
        for words, said in (("os.kill(os.getpid(), 9)", "rank 1 was killed (signal 9)"), ("os._exit(7)", "rank 1 ended with exit code 7")):
            rank = "import os, time\nif os.environ['RANK'] == '1': " + words + "\ntime.sleep(60)\n"
            result = subprocess.run([VRAM, "fit", "--json", "--", sys.executable, "-c", says, "--nproc-per-node", "2", rank], capture_output=True, text=True, check=False, env=ENVIRONMENT)
            self.assertEqual(json.loads(result.stdout)["failure"]["text"], "The program failed: " + said)

    def test_ranks_of_mpi_itself(self):
        """mpi4py asks the library, which knows only the processes that run."""
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(folder + "/mpi4py")
            pathlib.Path(folder, "mpi4py/__init__.py").touch()
            pathlib.Path(folder, "mpi4py/MPI.py").touch()
            result, _, _ = fit("mpirun", ["-np", "8"], OPEN_MPI, "--fold", "0,5", "-q", rank=f"import sys; sys.path.append({folder!r}); from mpi4py import MPI")
        self.assertEqual(result.returncode, 3)
        self.assertEqual(json.loads(result.stdout)["ended"], "refused")
        self.assertIn("vram fit: the program asks MPI for its rank, and MPI knows only the ranks that run", result.stderr.splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
