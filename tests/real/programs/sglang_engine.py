"""SGLang with dummy weights: its engine starts and generates."""
import json
import os
import sys
import tempfile

from cuda_toolkit import use_toolkit
from rows import main, row
from small_llama import CONFIG


# CuTe's kernels, FlashInfer's default here, are launched by a runtime of NVIDIA's linked into CuTe, which accepts only NVIDIA's driver.
os.environ["FLASHINFER_USE_CUDA_NORM"] = "1"
# Cache the kernels that SGLang compiles at start-up in the virtual environment: compiling takes minutes of CPU time.
os.environ["SGLANG_JIT_CACHE_DIR"] = os.path.join(sys.prefix, "jit")


@row
def compile_kernels():
    """Checks FlashInfer's norm, and the engine's needs until it has generated."""
    use_toolkit()
    from flashinfer.norm import get_norm_module

    get_norm_module()
    generate()


@row
def sglang_generates():
    use_toolkit()
    generate()


def write(files):
    folder = tempfile.mkdtemp(prefix="model.")
    for name, content in files.items():
        with open(os.path.join(folder, name), "w") as file:
            json.dump(content, file)
    return folder


def model_with_tokenizer():
    """Returns a folder, and prepares SGLang's kernels for it."""
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    from start_logs import tokenizer_of

    use_toolkit()
    return write({"config.json": CONFIG, **tokenizer_of({}, CONFIG["vocab_size"])})


def generate():
    import sglang

    folder = write({"config.json": CONFIG})
    engine = sglang.Engine(model_path=folder, load_format="dummy", skip_tokenizer_init=True, context_length=1024)
    out = engine.generate(input_ids=[[1, 5, 9, 11]], sampling_params={"max_new_tokens": 8, "temperature": 0, "ignore_eos": True})
    print(out)
    assert len(out[0]["output_ids"]) == 8, out
    engine.shutdown()


if __name__ == "__main__":
    main()
