"""Prints one calculator's answer for one model's configuration, in bytes, as JSON on the last line.

usage: calculators.py accelerate|fitcheck|vramcalc SETTING-AS-JSON      uses each tool's own functions; its hub calls get the configuration instead"""
import json
import pathlib
import sys
import tempfile

MIB = 1 << 20


def config_of(setting):
    return {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_act": "silu", "tie_word_embeddings": False, "torch_dtype": "float32", **setting["model"]}


def vramcalc(setting):
    from vramcalc import estimate

    answer = estimate(config_of(setting), mode="train" if setting["train"] else "inference", dtype=setting["dtype"], batch=setting["batch"], seq_len=setting["length"],
                      attn_impl=setting.get("attention", "eager"), optimizer="adamw",
                      precision="pure" if setting["dtype"] == "fp32" or "weights" in setting else "amp", grad_checkpoint=setting.get("checkpointing", False))
    return answer.total


def fitcheck(setting):
    import fitcheck.config_parser as parser
    import fitcheck.estimator as tool
    import fitcheck.gpu_db as gpus

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "config.json"
        path.write_text(json.dumps(config_of(setting)))
        parser.hf_hub_download = lambda **_: str(path)
        parser._reported_param_count = lambda *_: None
        config = parser.fetch_model_config("local/model")
    card = dict(gpus.list_gpus())["h100"]
    if setting["train"]:
        report = tool.estimate(config, tool.TrainingConfig(precision=setting["dtype"], batch_size=setting["batch"], seq_len=setting["length"], lora_rank=None,
                                                           grad_checkpoint=setting.get("checkpointing", False), flash_attn=setting.get("attention") == "sdpa"), card)
    else:
        report = tool.estimate_inference(config, tool.ServingConfig(precision=setting["dtype"], seq_len=setting["length"], num_concurrent=setting["batch"]), card)
    return int(report.total_mib * MIB)


def parameters_of(setting):
    if "parameters" in setting:
        return setting["parameters"]
    model = setting["model"]
    width, inner, layers = model["hidden_size"], model["intermediate_size"], model["num_hidden_layers"]
    shared = width * model.get("num_key_value_heads", model["num_attention_heads"]) // model["num_attention_heads"]
    return 2 * model["vocab_size"] * width + layers * (2 * width * width + 2 * width * shared + 3 * width * inner + 2 * width) + width


def accelerate(setting):
    from accelerate.commands.estimate import estimate_training_usage

    parameters = parameters_of(setting)
    if not setting["train"]:
        return (2 if setting.get("weights") == "bf16" else 4) * parameters
    return max(estimate_training_usage(4 * parameters, {"fp32": "float32", "bf16": "bfloat16"}[setting["dtype"]]).values())


if __name__ == "__main__":
    print(json.dumps({"allocated": {"accelerate": accelerate, "fitcheck": fitcheck, "vramcalc": vramcalc}[sys.argv[1]](json.loads(sys.argv[2]))}))
