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


def write_texts(folder, count):
    """Writes a data set of texts without meaning."""
    folder.mkdir()
    (folder / "data.json").write_text((json.dumps({"text": "so many words of no meaning " * 400}) + "\n") * count)


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
        write_texts(folder / "data", self.TEXTS)
        machines = max(1, int(self.ranks) // self.OF_MACHINE)
        launcher = [python, "-m", "torch.distributed.run", "--nproc_per_node", str(int(self.ranks) // machines), "--nnodes", str(machines)]
        job = ["--job.config_file", source / "train_configs" / self.config, "--job.dump_folder", folder / "out", "--model.tokenizer_path", folder / "tokenizer.model",
               "--training.dataset", "c4_test", "--training.dataset_path", folder / "data", "--metrics.log_freq", "1"]
        return ["--fold", "auto" if "PP" in self.flags else "0", "--", *launcher, source / "train.py", *job, *self.options()]


class TorchTitan2026:
    """torchtitan of August 2026, whose page about NVFP4 has figures of Llama 3 8B; one rank runs for all. PYTHONPATH has what it imports."""

    source, packages, card = "torchtitan-2026", ("torch", "torchao"), "gb200"
    variables = {"HF_HUB_OFFLINE": "1"}
    CONFIGS = {"BF16": "llama3_8b", "MXFP8": "llama3_8b_mxfp8", "NVFP4": "llama3_8b_first_85_pct_layers_nvfp4"}
    TEXTS = 4000  # enough for a batch of 32 sequences

    @staticmethod
    def has(row):
        return row["source"].startswith("pytorch/torchtitan:torchtitan/components/quantization/nvfp4.md")

    def __init__(self, row):
        self.flags = row["flags"]

    def setting(self):
        return "torchtitan FSDP 4, " + self.flags.partition("context 2048; ")[2]

    def published(self, figures):
        return float(word_after(figures, r"memory ([\d.]+) GiB")), "GiB"

    def predicted(self, answer):
        return answer["reserved_bytes"] / GIB

    def command(self, vram, python, source, folder):
        (folder / "torchtitan").symlink_to(source / "torchtitan")
        write_texts(folder / "data", self.TEXTS)
        config = self.CONFIGS[word_after(self.flags, r"(BF16|MXFP8|NVFP4)")]
        options = {"module": "llama3", "config": config, "parallelism.data_parallel_shard_degree": 4, "training.seq_len": word_after(self.flags, r"context (\d+)"),
                   "training.local_batch_size": word_after(self.flags, r"local batch (\d+)"), "compile.components": "model", "dataloader.dataset": "c4_test",
                   "dataloader.dataset_path": folder / "data", "hf-assets-path": source / "tests/assets/tokenizer", "dump_folder": folder / "out", "metrics.log_freq": 1}
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        switches = ["--compile.enable", "--metrics.no-enable-tensorboard", "--profiler.no-enable-profiling"]
        return ["--fold", "0", "--", python, "-m", "torch.distributed.run", "--nproc_per_node", "4", "-m", "torchtitan.train", *words, *switches]


class TorchTune:
    """The recipes for one GPU whose memory is in torchtune's README: batches of two packed sequences of 2,048 tokens, compiled. Of the two figures of a
    recipe, the larger one is without checkpointing of activations. PYTHONPATH has torchtune."""

    source, packages, variables, card = None, ("torch", "torchtune", "torchao"), {}, "h100"  # a card on which all fit
    TEXTS = 60

    @staticmethod
    def has(row):
        return row["source"].startswith("pytorch/torchtune:README") and row["card_and_count"].startswith("1 x")

    def __init__(self, row):
        self.checkpointing = "4090" in row["card_and_count"]
        self.kind = "qlora" if "QLoRA" in row["flags"] else "lora" if row["flags"].startswith("lora") else "full"

    def setting(self):
        return f"torchtune {self.kind}_finetune_single_device" + ("" if self.checkpointing else ", activations kept")

    def published(self, figures):
        return float(word_after(figures, r"GPU ([\d.]+) GiB")), "GiB"

    def predicted(self, answer):
        return answer["reserved_bytes"] / GIB

    def command(self, vram, python, source, folder):
        make = [vram, "sim", "--", python, HERE / "programs/torchtune_folder.py", "llama3_1_8b", folder / "model", self.TEXTS]
        subprocess.run([str(word) for word in make], check=True)
        code = "import importlib.util as u; print(u.find_spec('torchtune').submodule_search_locations[0])"
        recipes = pathlib.Path(subprocess.run([python, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()).parent / "recipes"
        script = "full_finetune_single_device.py" if self.kind == "full" else "lora_finetune_single_device.py"
        config = recipes / f"configs/llama3_1/8B_{self.kind}_single_device.yaml"
        data = {"_component_": "torchtune.datasets.text_completion_dataset", "source": "json", "data_files": folder / "model/data.json", "split": "train", "packed": "True"}
        load = {"_component_": "torchtune.training.FullModelTorchTuneCheckpointer", "checkpoint_dir": folder / "model", "checkpoint_files": "[model.pt]",
                "output_dir": folder / "out"}
        options = {**{f"dataset.{name}": value for name, value in data.items()}, **{f"checkpointer.{name}": value for name, value in load.items()},
                   "tokenizer.path": folder / "model/tokenizer.model", "tokenizer.max_seq_len": 2048, "batch_size": 2, "gradient_accumulation_steps": 1, "compile": "True",
                   "enable_activation_checkpointing": self.checkpointing, "output_dir": folder / "out"}
        return ["--dummy-weights", "--", python, recipes / script, "--config", config, *(f"{name}={value}" for name, value in options.items())]


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


PROGRAMS = (LitGpt, BertTrainer, TorchTitan, TorchTitan2026, TorchTune, LlamaReference)
