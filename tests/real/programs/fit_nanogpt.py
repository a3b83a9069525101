"""Tests the answer of `vram fit` about an unmodified public training script, karpathy/nanoGPT: fit_nanogpt.py VRAM SOURCE ROW. Its data set is a file of
random tokens, in the format of its prepare.py."""
import array
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

VRAM, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
GIB, MIB = 1 << 30, 1 << 20
SMALL = ["--n_layer=4", "--n_head=4", "--n_embd=256", "--block_size=256", "--batch_size=8", "--gradient_accumulation_steps=2", "--eval_iters=2"]


def fit(*arguments, devices="h100"):
    """Runs train.py in a copy of its repository. Returns the exit code and the answer."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder, "nanogpt")
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns(".git", "assets", "*.bin", "out"))
        for name in ("train.bin", "val.bin"):
            (copy / "data/openwebtext" / name).write_bytes(array.array("H", random.Random(name).choices(range(50257), k=100_000)).tobytes())
        run = subprocess.run([VRAM, "fit", "--json", "-q", "--card", devices, "--", sys.executable, "train.py", "config/train_gpt2.py", "--wandb_log=False", *arguments],
                             cwd=copy, stdout=subprocess.PIPE, text=True)
    answer = json.loads(run.stdout)
    print(run.returncode, answer["ended"], answer["steps"], answer["seconds"], answer["allocated_bytes"], answer["reserved_bytes"], answer["roles"])
    return run.returncode, answer


def asked(answer):
    return {card["key"]: card["fits"] for card in answer["cards"] if card["asked"]}


def is_named(answer):
    """Returns whether at least 95 % of the live bytes at the peak have a role."""
    return answer["roles"]["unknown"] <= sum(answer["roles"].values()) // 20


def fit_nanogpt():
    """GPT-2 as its README trains it, not compiled. Checks which of four cards fit a rank's part of the batch."""
    code, answer = fit("--compile=False", devices="rtx3060,rtx4090,a100-40,h100")
    assert (code, answer["ended"]) == (1, "repeats") and asked(answer) == {"rtx3060": False, "rtx4090": True, "a100-40": True, "h100": True}
    assert 12.5 * GIB < answer["allocated_bytes"] < 13.5 * GIB and is_named(answer)
    assert answer["roles"]["parameters"] == answer["roles"]["gradients"] and answer["roles"]["optimizer_state"] > 1.99 * answer["roles"]["parameters"]
    out = next(card["out_of_memory"] for card in answer["cards"] if card["key"] == "rtx3060")
    assert "train.py" in out["site"] or "model.py" in out["site"], out  # even if the backward pass makes the request


def fit_nanogpt_old():
    """On a T4 attention does not use PyTorch's fused kernel, and needs more."""
    code, answer = fit(*SMALL, "--block_size=1024", "--compile=False", devices="t4,h100")
    need = {card["key"]: card["need_bytes"] - card["context_bytes"] for card in answer["cards"] if card["asked"]}
    assert code == 0 and asked(answer) == {"t4": True, "h100": True} and need["t4"] > need["h100"] + 256 * MIB, need


def fit_nanogpt_compiled():
    """A smaller model, compiled and not. Compiled it needs less, and the rest of its memory has the same roles."""
    answers = {}
    for compiled in (True, False):
        code, answers[compiled] = fit(*SMALL, f"--compile={compiled}")
        assert (code, answers[compiled]["ended"]) == (0, "repeats") and is_named(answers[compiled])
    assert answers[True]["allocated_bytes"] < answers[False]["allocated_bytes"]
    for role in ("parameters", "optimizer_state"):
        assert answers[True]["roles"][role] == answers[False]["roles"][role], role


if __name__ == "__main__":
    globals()[sys.argv[3]]()
    print("ok")
