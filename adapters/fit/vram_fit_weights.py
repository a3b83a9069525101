"""Avoids reading weights whose values do not matter (`vram fit --dummy-weights`), and notes files that the program looked for and did not
find.

A model of `transformers` or `diffusers` loaded by `from_pretrained` gets a checkpoint with the names, shapes and type of its
configuration, whose data is a hole in the file. The library loads it as usual and the host reads nothing, because the simulated device
ignores the data copied to it. Tensors that programs fill with random numbers on the CPU before copying them to the device are left
uninitialised.

Files that `torch.load` and safetensors do not find are listed in PID.wanted, one per line: the function called, and the path."""
import contextlib
import functools
import json
import os
import sys
import tempfile
import time

FOLDER = os.environ.get("VRAM_FIT", "")
WANTED = os.environ.get("VRAM_FIT_DUMMY") == "1"
LARGE = 1 << 20  # bytes of a CPU tensor above which filling it is counted
TYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "int64": "I64",
         "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL"}


def want(what, path):
    with contextlib.suppress(Exception), open(os.path.join(FOLDER, f"{os.getpid()}.wanted"), "a") as file:
        file.write(f"{what} {path}".replace("\n", " ") + "\n")


# --- filling on the CPU ----------------------------------------------------------------------------------------------------------------

FILLS = ("uniform_", "normal_", "trunc_normal_", "ones_", "zeros_", "constant_", "eye_", "dirac_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_",
         "kaiming_normal_", "orthogonal_", "sparse_")
RANDOM = ("normal_", "uniform_", "exponential_", "log_normal_", "cauchy_", "bernoulli_", "geometric_")  # methods of a tensor


def watch_fill(recorder, owner, name, under_way):
    fill = getattr(owner, name, None)
    if not callable(fill):
        return

    @functools.wraps(fill)
    def wrapper(tensor, *args, **kwargs):
        device = getattr(tensor, "device", None)
        size = tensor.numel() * tensor.element_size() if getattr(device, "type", "") == "cpu" and not under_way else 0
        if size < LARGE:
            return fill(tensor, *args, **kwargs)
        recorder.initialised[1] += size
        if WANTED:
            recorder.initialised[2] += size
            return tensor
        begun = time.monotonic()
        under_way.append(name)
        try:
            return fill(tensor, *args, **kwargs)
        finally:
            under_way.pop()
            recorder.initialised[0] += time.monotonic() - begun

    setattr(owner, name, wrapper)


def watch_fills(recorder, torch):
    under_way, init = [], sys.modules.get("torch.nn.init")
    for name in FILLS if init is not None else ():
        watch_fill(recorder, init, name, under_way)
    for name in RANDOM if hasattr(torch, "Tensor") else ():
        watch_fill(recorder, torch.Tensor, name, under_way)


def watch_load(torch):
    load = getattr(torch, "load", None)
    if load is None:
        return

    @functools.wraps(load)
    def wrapper(f, *args, **kwargs):
        try:
            return load(f, *args, **kwargs)
        except FileNotFoundError:
            want("torch.load", f)
            raise

    torch.load = wrapper
    if getattr(sys.modules.get("torch.serialization"), "load", None) is load:
        sys.modules["torch.serialization"].load = wrapper


def watch_torch(recorder, torch):
    watch_fills(recorder, torch)
    watch_load(torch)


def watch_safetensors(module):
    for name in ("load_file", "load_model"):
        load = getattr(module, name, None)
        if load is None:
            continue

        @functools.wraps(load)
        def wrapper(*args, load=load, name=name, **kwargs):
            path = kwargs.get("filename", args[0 if name == "load_file" else 1] if len(args) > (name == "load_model") else "")
            try:
                return load(*args, **kwargs)
            except FileNotFoundError:
                want(f"safetensors.torch.{name}", path)
                raise

        setattr(module, name, wrapper)


# --- checkpoints without data ------------------------------------------------------------------------------------------------------------


def write_file(path, tensors):
    """Writes a safetensors file: a length, a header with names, types, shapes and offsets, and a hole."""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, (kind, shape, size) in tensors.items():
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + at)
    return at


def host_bytes():
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def shards_of(tensors, most):
    """Divides the tensors, in order, into parts of at most `most` bytes, or of one tensor."""
    shards, held = [{}], 0
    for name, tensor in tensors.items():
        if shards[-1] and held + tensor[2] > most:
            shards.append({})
            held = 0
        shards[-1][name] = tensor
        held += tensor[2]
    return shards


def write_checkpoint(folder, stem, tensors):
    """Writes one file under the name that the library expects. If that would exceed half the host's memory, writes shards with an index,
    because the kernel refuses to map a file larger than memory. Returns the bytes."""
    size, host = sum(tensor[2] for tensor in tensors.values()), host_bytes()
    if size <= host // 2:
        return write_file(os.path.join(folder, f"{stem}.safetensors"), tensors)
    shards, places = shards_of(tensors, host // 8), {}
    for number, shard in enumerate(shards, 1):
        name = f"{stem}-{number:05}-of-{len(shards):05}.safetensors"
        write_file(os.path.join(folder, name), shard)
        places.update(dict.fromkeys(shard, name))
    with open(os.path.join(folder, f"{stem}.safetensors.index.json"), "w") as file:
        json.dump({"metadata": {"total_size": size}, "weight_map": places}, file)
    return size


def tensors_of(torch, model, dtype):
    """Returns a checkpoint's tensors for the model: each parameter once, and the saved buffers; floating-point ones in the checkpoint's
    type."""
    tensors, seen = {}, set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if not isinstance(tensor, torch.Tensor) or id(tensor) in seen:
            continue
        seen.add(id(tensor))
        kind = dtype if dtype is not None and tensor.dtype.is_floating_point and tensor.dtype.itemsize > 1 else tensor.dtype
        word = TYPES.get(str(kind).rpartition(".")[2])
        if word is None:
            raise TypeError(f"{name} has the unsupported type {kind}")
        tensors[name] = (word, tensor.shape, tensor.numel() * kind.itemsize)
    return tensors


def stand_in(source, skip=()):
    """Creates a folder with all small files of `source`, if that is a folder."""
    folder = tempfile.mkdtemp(prefix="weights-", dir=FOLDER or None)
    source = str(source)
    for name in os.listdir(source) if os.path.isdir(source) else ():
        if not name.endswith((".safetensors", ".bin", ".index.json", ".pt", ".pth", ".msgpack", ".h5", *skip)):
            os.symlink(os.path.abspath(os.path.join(source, name)), os.path.join(folder, name))
    return folder


def weights_in(folder):
    """Returns whether the folder has files of weights; None if it is not a folder."""
    folder = str(folder)
    return any(name.endswith((".safetensors", ".bin", ".pt", ".pth", ".msgpack", ".h5")) for name in os.listdir(folder)) if os.path.isdir(folder) else None


def are_there(name, kwargs):
    """Returns whether weights exist in the folder, or in the hub's cache under the name."""
    subfolder = kwargs.get("subfolder") or ""
    here = weights_in(os.path.join(str(name), subfolder))
    with contextlib.suppress(Exception):
        from huggingface_hub import try_to_load_from_cache

        for file in ("model.safetensors", "diffusion_pytorch_model.safetensors", "pytorch_model.bin") if here is None else ():
            for ending in ("", ".index.json"):
                found = try_to_load_from_cache(str(name), os.path.join(subfolder, file + ending), cache_dir=kwargs.get("cache_dir"), revision=kwargs.get("revision"))
                here = here or isinstance(found, str)
    return here


def wanted_dtype(torch, config, kwargs, usual):
    dtype = kwargs.get("dtype", kwargs.get("torch_dtype"))
    if isinstance(dtype, str) and dtype != "auto":
        dtype = getattr(torch, dtype.rpartition(".")[2], None)
    own = getattr(config, "dtype", None) or getattr(config, "torch_dtype", None)
    if isinstance(own, str):
        own = getattr(torch, own, None)
    for choice in (dtype, own if dtype == "auto" or usual == "auto" else None):
        if isinstance(choice, torch.dtype):
            return choice
    return own if isinstance(own, torch.dtype) and dtype == "auto" else torch.get_default_dtype()


HUB = ("cache_dir", "force_download", "local_files_only", "token", "revision", "subfolder", "trust_remote_code")


def model_without_data(torch, kind, config):
    """Builds the modules that weights are loaded into, quantized if the checkpoint is."""
    import copy

    config = copy.deepcopy(config)
    with torch.device("meta"):
        model = kind(config)
    with contextlib.suppress(Exception):
        model.tie_weights()
    if getattr(config, "quantization_config", None) is not None:
        from transformers.quantizers import AutoHfQuantizer

        quantizer = AutoHfQuantizer.from_config(config.quantization_config, pre_quantized=True)
        with torch.device("meta"):
            quantizer.preprocess_model(model=model, device_map=None)
    return model


def transformers_checkpoint(recorder, kind, name, config, kwargs):
    torch, hub = recorder.torch, {key: kwargs[key] for key in HUB if key in kwargs}
    if isinstance(config, (str, os.PathLike)) or config is None:
        config = kind.config_class.from_pretrained(config or name, **hub)
    usual = "auto" if int(sys.modules["transformers"].__version__.split(".")[0]) >= 5 else None
    subfolder = kwargs.get("subfolder") or ""
    source = os.path.join(str(name), subfolder) if os.path.isdir(str(name)) else name
    folder = stand_in(source)
    size = write_checkpoint(folder, "model", tensors_of(torch, model_without_data(torch, kind, config), wanted_dtype(torch, config, kwargs, usual)))
    if not os.path.exists(os.path.join(folder, "config.json")):
        config.save_pretrained(folder)
    recorder.say(f"{name}: {size / 1e9:.2f} GB of weights was generated from its configuration")
    return folder


def watch_transformers(recorder, module):
    kind = module.PreTrainedModel
    load = kind.from_pretrained.__func__

    @functools.wraps(load)
    def from_pretrained(cls, pretrained_model_name_or_path=None, *args, config=None, **kwargs):
        name = pretrained_model_name_or_path
        usable = name is not None and kwargs.get("state_dict") is None and kwargs.get("gguf_file") is None
        there = are_there(name, kwargs) if usable else None
        if not usable or not WANTED or there:
            if there is False:
                want("from_pretrained", os.path.join(str(name), "model.safetensors"))
            return load(cls, name, *args, config=config, **kwargs)
        folder = transformers_checkpoint(recorder, cls, name, config, kwargs)
        for key in ("subfolder", "revision", "variant", "use_safetensors", "force_download", "_commit_hash"):
            kwargs.pop(key, None)
        model = load(cls, folder, *args, config=config, **kwargs)
        for one in (model[0] if isinstance(model, tuple) else model, getattr(model, "config", None)):
            if hasattr(one, "name_or_path"):
                one.name_or_path = str(name)
        return model

    kind.from_pretrained = classmethod(from_pretrained)


def watch_diffusers(recorder, module):
    kind = module.ModelMixin
    load = kind.from_pretrained.__func__

    @functools.wraps(load)
    def from_pretrained(cls, pretrained_model_name_or_path, **kwargs):
        name = pretrained_model_name_or_path
        if not WANTED or are_there(name, kwargs):
            return load(cls, name, **kwargs)
        hub = {key: kwargs[key] for key in HUB if key in kwargs and key != "trust_remote_code"}
        config = cls.load_config(name, **hub)
        torch = recorder.torch
        with torch.device("meta"):
            model = cls.from_config(config)
        dtype = kwargs.get("torch_dtype")
        subfolder = kwargs.pop("subfolder", None) or ""
        folder = stand_in(os.path.join(str(name), subfolder) if os.path.isdir(str(name)) else name)
        size = write_checkpoint(folder, "diffusion_pytorch_model", tensors_of(torch, model, dtype if isinstance(dtype, torch.dtype) else None))
        if not os.path.exists(os.path.join(folder, "config.json")):
            model.save_config(folder)
        for key in ("variant", "revision", "use_safetensors", "force_download"):
            kwargs.pop(key, None)
        recorder.say(f"{name} {subfolder}: {size / 1e9:.2f} GB of weights was generated from its configuration")
        return load(cls, folder, **kwargs)

    kind.from_pretrained = classmethod(from_pretrained)


def modules(recorder):
    """Maps each module to the function to call after its import."""
    return {"safetensors.torch": watch_safetensors, "transformers.modeling_utils": functools.partial(watch_transformers, recorder),
            "diffusers.models.modeling_utils": functools.partial(watch_diffusers, recorder)}
