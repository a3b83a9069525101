"""Writes the header of a GGUF file of a Llama with 7 billion parameters, Q4_0 and F32, without tensors: gguf_header.py FILE"""
import struct
import sys

UINT32, INT32, FLOAT32, STRING, ARRAY = 4, 5, 6, 8, 9
F32, Q4_0 = 0, 2
BYTES = {F32: (1, 4), Q4_0: (32, 18)}
ALIGNMENT = 32
LAYERS, EMBEDDING, HEADS, FEED_FORWARD, CONTEXT, WORDS = 32, 4096, 32, 11008, 4096, 300


def text(value):
    value = value.encode()
    return struct.pack("<Q", len(value)) + value


def scalar(kind, value):
    return text(value) if kind == STRING else struct.pack({UINT32: "<I", INT32: "<i", FLOAT32: "<f"}[kind], value)


def entry(key, kind, value):
    return text(key) + struct.pack("<I", kind) + scalar(kind, value)


def entries(key, kind, values):
    return text(key) + struct.pack("<IIQ", ARRAY, kind, len(values)) + b"".join(scalar(kind, value) for value in values)


def metadata():
    pieces = [f"<0x{byte:02X}>" for byte in range(256)]
    words = [f"w{i}" for i in range(WORDS - 259)]
    tokens, types = ["<unk>", "<s>", "</s>", *pieces, *words], [2, 3, 3, *[6] * 256, *[1] * len(words)]
    return [entry("general.architecture", STRING, "llama"), entry("general.alignment", UINT32, ALIGNMENT), entry("llama.context_length", UINT32, CONTEXT),
            entry("llama.embedding_length", UINT32, EMBEDDING), entry("llama.block_count", UINT32, LAYERS),
            entry("llama.feed_forward_length", UINT32, FEED_FORWARD), entry("llama.attention.head_count", UINT32, HEADS),
            entry("llama.attention.head_count_kv", UINT32, HEADS), entry("llama.attention.layer_norm_rms_epsilon", FLOAT32, 1e-5),
            entry("llama.rope.dimension_count", UINT32, EMBEDDING // HEADS), entry("tokenizer.ggml.model", STRING, "llama"),
            entries("tokenizer.ggml.tokens", STRING, tokens), entries("tokenizer.ggml.scores", FLOAT32, [0.0] * len(tokens)),
            entries("tokenizer.ggml.token_type", INT32, types), entry("tokenizer.ggml.bos_token_id", UINT32, 1),
            entry("tokenizer.ggml.eos_token_id", UINT32, 2)]


def tensors():
    shapes = {"token_embd.weight": (EMBEDDING, WORDS), "output_norm.weight": (EMBEDDING,), "output.weight": (EMBEDDING, WORDS)}
    for i in range(LAYERS):
        shapes |= {f"blk.{i}.attn_norm.weight": (EMBEDDING,), f"blk.{i}.ffn_norm.weight": (EMBEDDING,)}
        shapes |= {f"blk.{i}.attn_{name}.weight": (EMBEDDING, EMBEDDING) for name in ("q", "k", "v", "output")}
        shapes |= {f"blk.{i}.ffn_gate.weight": (EMBEDDING, FEED_FORWARD), f"blk.{i}.ffn_up.weight": (EMBEDDING, FEED_FORWARD),
                   f"blk.{i}.ffn_down.weight": (FEED_FORWARD, EMBEDDING)}
    return shapes


def write(path):
    infos, offset = [], 0
    for name, shape in tensors().items():
        kind, elements = (F32 if len(shape) == 1 else Q4_0), 1
        for size in shape:
            elements *= size
        infos.append(text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset))
        block, size = BYTES[kind]
        offset += -(-elements // block * size // ALIGNMENT) * ALIGNMENT
    pairs = metadata()
    with open(path, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(pairs)) + b"".join(pairs) + b"".join(infos))
    return offset


if __name__ == "__main__":
    print(write(sys.argv[1]))
