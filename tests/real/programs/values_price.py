"""Measures the cost of computing small operations: values_price.py VRAM. Runs a training step of 7 billion parameters under `vram fit`, with and without
`--values none`, in turns, and compares the CPU time of all processes, and of the steps alone. Prints the ratio; the speed of a machine cannot
make it fail."""
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import textwrap

TURNS, STEPS = 3, 20  # the median step of the best turn is compared
PROGRAM = textwrap.dedent("""
    import sys, time
    sys.path.insert(0, {folder!r})
    import torch, torch_7b
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = torch_7b.Llama()
        tokens = torch.randint(0, torch_7b.WORDS, (1, torch_7b.LENGTH))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range({steps}):
        begun = time.process_time()
        loss = torch.nn.functional.cross_entropy(model(tokens, False).flatten(0, 1), tokens.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
        print("step", time.process_time() - begun, flush=True)
    """)


def seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(vram, program, options):
    """Returns the CPU seconds of the whole run and of a step."""
    before = seconds()
    done = subprocess.run([vram, "fit", "--card", "b200", "--steps", str(STEPS), *options, "--", sys.executable, program], capture_output=True, text=True)
    steps = [float(found) for found in re.findall(r"^step (\S+)", done.stdout + done.stderr, re.M)]
    if done.returncode != 0 or len(steps) < STEPS - 1:
        sys.exit(done.stdout + done.stderr)
    return seconds() - before, statistics.median(steps[2:])


def main():
    vram = sys.argv[1]
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(PROGRAM.format(folder=str(sys.path[0]), steps=STEPS))
        file.flush()
        runs = [(run(vram, file.name, ["--values", "none"]), run(vram, file.name, [])) for _ in range(TURNS)]
    without, computed = ([min(turn[i][j] for turn in runs) for j in (0, 1)] for i in (0, 1))
    print(f"whole: {without[0]:.1f} s of processors without, {computed[0]:.1f} s with, {computed[0] / without[0]:.2f} times")
    print(f"a step: {1000 * without[1]:.0f} ms without, {1000 * computed[1]:.0f} ms with, {computed[1] / without[1]:.2f} times")
    print("ok")


if __name__ == "__main__":
    main()
