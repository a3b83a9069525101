"""The programs whose memory other people published, for train_figures.py: each class knows which rows of the table are its own, how to start the
program with the row's settings and made-up weights, and which of the answers of `vram fit` the published figure is."""
import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).parent
GB, GIB, MIB = 10**9, 1 << 30, 1 << 20


class Obstacle(Exception):
    """Says why a row cannot run here."""


def word_after(text, pattern, default=None):
    found = re.search(pattern, text)
    return found[1] if found else default


class LitGpt:
    """The scripts of LitGPT at 8641822, with which its tables of October 2023 were made."""

    source, packages = "lit-gpt-2023", ("torch", "lightning", "bitsandbytes")
    SCRIPTS = {"finetune_lora": "finetune/lora.py", "generate": "generate/base.py"}

    @staticmethod
    def has(row):
        return row["flags"].startswith("litgpt ") and row["figures"].startswith(("Max GPU RAM", "Memory used"))

    def __init__(self, row):
        flags = row["flags"]
        self.kind = flags.split()[1]
        self.model = row["model"].rpartition("/")[2]
        self.precision = word_after(flags, r"--precision (\S+?)(?:;|\s|$)")
        self.quantize = word_after(flags, r"(?:quantization|--quantize) (\S+?)(?:;|\s|$)")
        self.micro_batch = word_after(flags, r"micro batch (\d+)", "1")
        self.new_tokens = word_after(flags, r"--max_new_tokens (\d+)")
        family = "phi" if "phi" in self.model else "StableLM" if "stablelm" in self.model else "Falcon" if "falcon" in self.model else "Llama 2"
        self.longest = word_after(flags, rf"{family} (\d+)", "1000")
        self.card = "a100-40"

    def setting(self):
        quantized = "" if self.quantize in (None, "none") else f" {self.quantize}"
        return f"LitGPT {self.kind}{quantized} {self.precision}" + (f", micro batch {self.micro_batch}" if self.kind == "finetune_lora" else "")

    def published(self, figures):
        return float(re.search(r"([\d.]+) GB", figures)[1]), "GB"

    def predicted(self, answer):
        return answer["allocated_bytes"] / GB

    def command(self, vram, python, source, folder):
        checkpoint, data = folder / "checkpoints" / self.model, folder / "data"
        make = [vram, "sim", "--", python, HERE / "programs/litgpt_folder.py", source, checkpoint, data, self.longest]
        subprocess.run([str(word) for word in make], check=True)
        script = self._script(source, folder)
        options = ["--checkpoint_dir", checkpoint, "--precision", self.precision]
        if self.quantize not in (None, "none"):
            options += ["--quantize", self.quantize]
        if self.kind == "finetune_lora":
            options += ["--data_dir", data, "--out_dir", folder / "out"]
        elif self.new_tokens:
            options += ["--max_new_tokens", self.new_tokens]
        return ["--", python, script, *options]

    def _script(self, source, folder):
        """The size of a micro batch is a constant of the script."""
        text = (source / self.SCRIPTS[self.kind]).read_text()
        text = text.replace("wd = Path(__file__).parent.parent.resolve()", f"wd = Path({str(source)!r})")
        text, count = re.subn(r"^micro_batch_size = \d+", f"micro_batch_size = {self.micro_batch}", text, flags=re.M)
        assert count == (self.kind == "finetune_lora"), "the script has another form"
        script = folder / pathlib.Path(self.SCRIPTS[self.kind]).name
        script.write_text(text)
        return script


PROGRAMS = (LitGpt,)
