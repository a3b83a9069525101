"""Compares ranks that run with all others and with few: fit_folds.py VRAM fold_ROW. Every action of their allocators is the same."""
import json
import pathlib
import subprocess
import sys
import tempfile

from rows import say_ok

PROGRAMS = pathlib.Path(__file__).parent
RANKS = 4
ONE_OF_EACH_PAIR = (0, 3)  # in the second pair the first rank is absent
PIPELINE = (0, 1)  # each stage is a kind of its own


def run(vram, name, fold):
    """Returns what the ranks wrote, by rank."""
    with tempfile.TemporaryDirectory() as folder:
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS)]
        command = [vram, "fit", "-q", "--steps", "0", "--fold", fold, "--", *launcher, PROGRAMS / "torch_folds.py", name, folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return {int(path.stem): json.loads(path.read_text()) for path in pathlib.Path(folder).glob("*.json")}


def compare(vram, name):
    running = PIPELINE if name in ("gpipe", "one_forward_one_backward") else ONE_OF_EACH_PAIR
    whole, folded = run(vram, name, "none"), run(vram, name, ",".join(map(str, running)))
    assert (sorted(whole), sorted(folded)) == (list(range(RANKS)), list(running))
    for rank in running:
        print(f"rank {rank}: {len(whole[rank]['actions'])} actions, {whole[rank]['peak']} bytes reserved")
        assert len(whole[rank]["actions"]) > 100
        assert folded[rank] == whole[rank], (rank, folded[rank]["peak"], folded[rank]["free"])


if __name__ == "__main__":
    compare(sys.argv[1], sys.argv[2].removeprefix("fold_"))
    say_ok()
