"""The programs whose memory other people published, for train_figures.py: each class knows which rows of the table are its own, how to start the
program with the row's settings and dummy weights, and which of the answers of `vram fit` the published figure is."""
import base64
import itertools
import json
import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).parent
GB, GIB, MIB = 10**9, 1 << 30, 1 << 20


class Obstacle(Exception):
    """Returns why a row cannot run here."""


def word_after(text, pattern, default=None):
    found = re.search(pattern, text)
    return found[1] if found else default


class LitGpt:
    """The scripts of LitGPT at 8641822, with which its tables of October 2023 were made."""

    source, packages = "lit-gpt-2023", ("torch", "lightning", "bitsandbytes")
    variables = {"BNB_CUDA_VERSION": "121"}  # the newest CUDA of bitsandbytes 0.41
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
        # The longest example comes first. The optimizer's step, after many micro batches, adds some MB to less than that peak.
        # A generation of many tokens needs no values but one: the check of the probabilities passes.
        ends = ["--until", "^iter 3 "] if self.kind == "finetune_lora" else ["--values", "none", "--value", "aten::multinomial=1"]
        return [*ends, "--dummy-weights", "--", python, script, *options]

    def _script(self, source, folder):
        """The size of a micro batch is a constant of the script, as are the passes and tokens of a validation, whose memory does not depend on
        their number."""
        text = (source / self.SCRIPTS[self.kind]).read_text()
        text = text.replace("wd = Path(__file__).parent.parent.resolve()", f"wd = Path({str(source)!r})")
        text, count = re.subn(r"^micro_batch_size = \d+", f"micro_batch_size = {self.micro_batch}", text, flags=re.M)
        text = re.sub(r"^(eval_iters|eval_max_new_tokens) = \d+", r"\1 = 2", text, flags=re.M)
        assert count == (self.kind == "finetune_lora"), "the script has another form"
        script = folder / pathlib.Path(self.SCRIPTS[self.kind]).name
        # bitsandbytes 0.41 uses a part of Triton that newer ones lack, but does without Triton.
        script.write_text('import sys\nsys.modules["triton"] = None\n' + text)
        return script


class BertTrainer:
    """The runs of transformers' page about training on one GPU. NVML's figure includes the context, which the page also gives: with one small tensor."""

    source, packages = None, ("torch", "transformers", "bitsandbytes")
    variables = LitGpt.variables
    SMALLEST_SEGMENT = 2  # MiB, of that small tensor

    @staticmethod
    def has(row):
        return row["flags"].startswith("Trainer, 512 sequences of 512")

    def __init__(self, row):
        self.flags = row["flags"].partition("1 epoch: ")[2]
        self.context = int(word_after(row["figures"], r"context (\d+) MB")) - self.SMALLEST_SEGMENT
        self.card = "v100"

    def arguments(self):
        found = {"per_device_train_batch_size": int(word_after(self.flags, r"batch(?:_size=| )(\d+)"))}
        accumulation = word_after(self.flags, r"accumulation(?:_steps=| )(\d+)")
        optimizer = "adafactor" if "adafactor" in self.flags else "adamw_hf"  # AdamW of that time
        options = {"gradient_accumulation_steps": int(accumulation or 1), "gradient_checkpointing": "checkpointing" in self.flags, "fp16": "fp16" in self.flags}
        return {**found, **options, "optim": optimizer}

    def setting(self):
        return f"transformers Trainer: {self.flags}"

    def published(self, figures):
        return float(word_after(figures, r"(\d+) MB by NVML")), "MiB"

    def predicted(self, answer):
        return answer["reserved_bytes"] / MIB + self.context

    def command(self, vram, python, source, folder):
        optimizer = "8-bit Adam" if "8-bit" in self.flags else ""
        return ["--dummy-weights", "--", python, HERE / "programs/bert_trainer.py", folder / "model", json.dumps(self.arguments()), optimizer]


class TorchTitan:
    """torchtitan of December 2024 with Llama 3.1. Without a pipeline one rank runs for all. It prints what its allocator reserves. Where two figures are
    published, the first is that of the schedule 1F1B."""

    source, packages, variables = "torchtitan-2024", ("torch", "torchao"), {}
    WORDS, TEXTS = 128000, 400  # of the tokenizer without its special tokens; of the data
    OF_MACHINE = 8  # ranks
    CONFIGS = {f"Llama 3.1 {size.upper()}": f"llama3_{size}.toml" for size in ("8b", "70b", "405b")}

    @staticmethod
    def has(row):
        return "llama3_h100_202412" in row["source"] and row["model"] in TorchTitan.CONFIGS and row["flags"].startswith(("FSDP", "2D FSDP", "3D FSDP"))

    def __init__(self, row):
        self.flags = row["flags"]
        self.ranks = word_after(row["card_and_count"], r"^(\d+) x")
        self.config = self.CONFIGS[row["model"]]
        self.card = "h200"  # a Hopper with enough memory that nothing is tried again

    def setting(self):
        return f"torchtitan {self.flags}"

    def published(self, figures):
        return float(word_after(figures, r"memory ([\d.]+) GiB")), "GiB"

    def predicted(self, answer):
        return answer["reserved_bytes"] / GIB

    def options(self):
        options = ["--training.batch_size", word_after(self.flags, r"local batch (\d+)")]
        for name, pattern in (("training.seq_len", r"seq (\d{5,})"), ("experimental.context_parallel_degree", r"CP (\d+)"),
                              ("training.tensor_parallel_degree", r"TP (\d+)"), ("training.data_parallel_shard_degree", r"[23]D FSDP (\d+)"), ("experimental.pipeline_parallel_degree", r"PP (\d+)")):
            if word_after(self.flags, pattern):
                options += [f"--{name}", word_after(self.flags, pattern)]
        if "full AC" in self.flags:
            options += ["--activation_checkpoint.mode", "full"]
        if "compile" in self.flags:
            options += ["--training.compile"]
        if "AsyncTP" in self.flags:
            options += ["--experimental.enable_async_tensor_parallel"]
        if "Float8" in self.flags:
            options += ["--float8.enable_float8_linear", "--float8.enable_fsdp_float8_all_gather", "--float8.precompute_float8_dynamic_scale_for_fsdp"]
        return options

    def command(self, vram, python, source, folder):
        words = itertools.chain.from_iterable(itertools.product(range(256), repeat=length) for length in (1, 2, 3))
        lines = [f"{base64.b64encode(bytes(word)).decode()} {rank}\n" for rank, word in enumerate(itertools.islice(words, self.WORDS))]
        (folder / "tokenizer.model").write_text("".join(lines))
        (folder / "data").mkdir()
        (folder / "data/data.json").write_text((json.dumps({"text": "so many words of no meaning " * 400}) + "\n") * self.TEXTS)
        machines = max(1, int(self.ranks) // self.OF_MACHINE)
        launcher = [python, "-m", "torch.distributed.run", "--nproc_per_node", str(int(self.ranks) // machines), "--nnodes", str(machines)]
        job = ["--job.config_file", source / "train_configs" / self.config, "--job.dump_folder", folder / "out", "--model.tokenizer_path", folder / "tokenizer.model",
               "--training.dataset", "c4_test", "--training.dataset_path", folder / "data", "--metrics.log_freq", "1"]
        return ["--fold", "auto" if "PP" in self.flags else "0", "--", *launcher, source / "train.py", *job, *self.options()]


class LlamaReference:
    """Meta's code for Llama 2, whose 70B ends on eight V100 with a message of a memory error; one rank runs for all. Its README has the options."""

    source, packages, variables, card = "llama-2023", ("torch", "fairscale"), {}, "v100"
    RANKS, SEQUENCE, BATCH = "8", "512", "6"

    @staticmethod
    def has(row):
        return row["program_version"].startswith("llama reference code") and row["model"].startswith("llama-2-70b") and "V100 16GB" in row["card_and_count"]

    def __init__(self, row):
        pass

    def setting(self):
        return f"reference code on {self.RANKS} GPUs, batch {self.BATCH}: allocated when memory ran out"

    def published(self, figures):
        return float(word_after(figures, r"; allocated ([\d.]+) GiB")), "GiB"

    def predicted(self, answer):
        return next(card["out_of_memory"]["allocated_bytes"] for card in answer["cards"] if card["key"] == self.card) / GIB

    def command(self, vram, python, source, folder):
        launcher = [python, "-m", "torch.distributed.run", "--nproc_per_node", self.RANKS]
        return ["--devices", self.RANKS, "--fold", "0", "--", *launcher, HERE / "programs/llama_reference.py", source, self.SEQUENCE, self.BATCH]


PROGRAMS = (LitGpt, BertTrainer, TorchTitan, LlamaReference)
