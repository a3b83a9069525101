"""Writes a GGUF file of a GPT-NeoX model (pythia) whose weights are a hole: gguf_gptneox.py FILE f16|q8_0|q4_0"""
import sys

from gguf_header import ALIGNMENT, F32, FLOAT32, INT32, STRING, UINT32, entries, entry, text
import struct

BOOL = 7
F16, Q4_0, Q8_0, Q6_K = 1, 2, 8, 14
BYTES = {F32: (1, 4), F16: (1, 2), Q4_0: (32, 18), Q8_0: (32, 34), Q6_K: (256, 210)}
KINDS = {"f16": (F16, F16), "q8_0": (Q8_0, Q8_0), "q4_0": (Q4_0, Q6_K)}  # of the matrices, and of the output
PYTHIA_2_8B = {"layers": 32, "embedding": 2560, "heads": 32, "feed_forward": 10240, "context": 2048, "words": 50304, "rotary": 20}


def metadata(shape):
    words = [f"w{i}" for i in range(shape["words"])]
    name = "gptneox."
    return [entry("general.architecture", STRING, "gptneox"), entry(name + "context_length", UINT32, shape["context"]),
            entry(name + "embedding_length", UINT32, shape["embedding"]), entry(name + "block_count", UINT32, shape["layers"]),
            entry(name + "feed_forward_length", UINT32, shape["feed_forward"]), entry(name + "rope.dimension_count", UINT32, shape["rotary"]),
            entry(name + "attention.head_count", UINT32, shape["heads"]), entry(name + "attention.layer_norm_epsilon", FLOAT32, 1e-5),
            text(name + "use_parallel_residual") + struct.pack("<IB", BOOL, 1), entry("tokenizer.ggml.model", STRING, "gpt2"),
            entry("tokenizer.ggml.pre", STRING, "olmo"), entries("tokenizer.ggml.tokens", STRING, words),
            entries("tokenizer.ggml.token_type", INT32, [1] * len(words)), entries("tokenizer.ggml.merges", STRING, ["w 0"]),
            entry("tokenizer.ggml.bos_token_id", UINT32, 0), entry("tokenizer.ggml.eos_token_id", UINT32, 0)]


def tensors(shape, matrix, output):
    """Returns (name, shape, kind) of each tensor."""
    wide, high, words = shape["embedding"], shape["feed_forward"], shape["words"]
    found = [("token_embd.weight", (wide, words), matrix), ("output_norm.weight", (wide,), F32), ("output_norm.bias", (wide,), F32),
             ("output.weight", (wide, words), output)]
    for i in range(shape["layers"]):
        for name, rows in (("attn_norm", 0), ("attn_qkv", 3 * wide), ("attn_output", wide), ("ffn_norm", 0), ("ffn_up", high)):
            weight = ((wide, rows), matrix) if rows else ((wide,), F32)
            found += [(f"blk.{i}.{name}.weight", *weight), (f"blk.{i}.{name}.bias", (rows or wide,), F32)]
        found += [(f"blk.{i}.ffn_down.weight", (high, wide), matrix), (f"blk.{i}.ffn_down.bias", (wide,), F32)]
    return found


def write(path, kind, shape=PYTHIA_2_8B):
    infos, offset = [], 0
    for name, sizes, of in tensors(shape, *KINDS[kind]):
        elements = 1
        for size in sizes:
            elements *= size
        infos.append(text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, of, offset))
        block, size = BYTES[of]
        offset += -(-elements // block * size // ALIGNMENT) * ALIGNMENT
    pairs = metadata(shape)
    with open(path, "wb") as file:
        head = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(pairs)) + b"".join(pairs) + b"".join(infos)
        file.write(head)
        file.truncate(-(-len(head) // ALIGNMENT) * ALIGNMENT + offset)


if __name__ == "__main__":
    write(*sys.argv[1:])
