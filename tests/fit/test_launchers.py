#!/usr/bin/env python3
"""Tests which ranks run under each launcher (`vram fit --fold`), with launchers that only set the variables that the real ones set.

usage: test_launchers.py VRAM
"""
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
                                env={**ENVIRONMENT, "PYTHONPATH": str(HERE / "fake"), "TMPDIR": folder + "/tmp", "NAMES": " ".join(names)})
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

    def test_options_of_other_programs(self):
        """-n and --ntasks are options of mpirun and srun only."""
        for options in (["-n", "32"], ["--ntasks", "32"]):
            result, _, _ = fit("tool", ["--nproc-per-node=2", *options], TORCHRUN, "-q")
            self.assertEqual(json.loads(result.stdout)["ranks"], 2, options)
        self.assertEqual(fit("tool", ["-n", "32"], TORCHRUN, "--fold", "0,1")[0].returncode, 2)

    def test_a_rank_that_ends_early(self):
        """The others wait for it, with and without device memory, until the time runs out."""
        waits = "import os, sys, time\nif os.environ['RANK'] == '1': sys.exit(0)\nimport torch\nif {0}: torch.empty({0})\ntime.sleep(100)\n"
        for size, code, said in ((1 << 20, 0, "stopped: the time of --for had passed rank 1 had ended before it used a device: the others may have waited for it"),
                                 (0, 3, "The time of --for was over. Rank 1 had ended before it used a device")):
            result, _, _ = fit("torchrun", ["--nproc-per-node=2"], TORCHRUN, "--for", "3s", rank=waits.format(size), form=())
            self.assertIn(said, " ".join(result.stdout.split()))
            self.assertEqual(result.returncode, code)
            self.assertNotIn("this machine may have run out of memory", result.stderr)

    def test_a_rank_that_fails_first_is_named(self):
        """Rank 0 fails later, because rank 1 does not answer."""
        rank = "import os, time, torch\nif os.environ['RANK'] == '1': raise ValueError('no data')\ntorch.empty(1 << 20)\ntime.sleep(2)\nraise RuntimeError('connection lost')\n"
        result, _, _ = fit("torchrun", ["--nproc-per-node=2"], TORCHRUN, "-q", rank=rank)
        self.assertIn("ValueError: no data", json.loads(result.stdout)["failure"]["text"])

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
