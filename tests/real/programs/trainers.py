"""Runs other people's trainers whose course depends on computed values: trainers.py ROW. TRL's for sentences, preferences and rewards, stable-baselines3's PPO, and
Whisper's decoding. All inputs are made up here: models from configurations, a vocabulary, sentences."""
import random
import tempfile

import torch
from rows import main, peak_is, row

WORDS, STEPS = 1000, 3


def tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = ["<pad>", "<s>", "</s>", "<unk>"]
    words = {word: i for i, word in enumerate(special + [f"w{i}" for i in range(WORDS - len(special))])}
    made = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def model():
    from transformers import Qwen2Config, Qwen2ForCausalLM

    return Qwen2ForCausalLM(Qwen2Config(vocab_size=WORDS, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                                        bos_token_id=1, eos_token_id=2, pad_token_id=0))


def sentences(*columns):
    from datasets import Dataset

    chance = random.Random(0)
    return Dataset.from_list([{column: " ".join(f"w{chance.randrange(900)}" for _ in range(chance.randrange(8, 24))) for column in columns} for _ in range(16)])


def train(trainer, kind, rows, **more):
    with tempfile.TemporaryDirectory() as folder:
        batch = more.pop("batch", 2)
        options = {name: more.pop(name) for name in list(more) if name in ("ref_model", "reward_funcs")}
        arguments = kind(output_dir=folder, per_device_train_batch_size=batch, max_steps=STEPS, report_to=[], logging_steps=1, save_strategy="no", **more)
        made = trainer(model=model(), args=arguments, train_dataset=rows, processing_class=tokenizer(), **options)
        made.train()
        assert made.state.global_step == STEPS
    peak_is(torch, 1 << 20)


@row
def trl_sft():
    from trl import SFTConfig, SFTTrainer

    train(SFTTrainer, SFTConfig, sentences("text"), max_length=64)


@row
def trl_dpo():
    from trl import DPOConfig, DPOTrainer

    train(DPOTrainer, DPOConfig, sentences("prompt", "chosen", "rejected"), ref_model=model())


@row
def trl_grpo():
    from trl import GRPOConfig, GRPOTrainer

    def reward(completions, **kwargs):
        return [float(len(completion)) for completion in completions]

    train(GRPOTrainer, GRPOConfig, sentences("prompt"), reward_funcs=reward, batch=4, num_generations=4, max_completion_length=16)


@row
def sb3_ppo():
    from stable_baselines3 import PPO

    learner = PPO("MlpPolicy", "CartPole-v1", device="cuda", n_steps=128, batch_size=64, n_epochs=2, seed=0)
    learner.learn(512)
    assert learner.num_timesteps == 512


@row
def whisper_decodes():
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128)
    net = WhisperForConditionalGeneration(config).cuda().eval()
    heard = torch.randn(2, 80, 3000, device="cuda")
    for options in ({"num_beams": 1}, {"num_beams": 3}, {"do_sample": True, "temperature": 0.7}):
        assert net.generate(heard, max_new_tokens=20, **options).shape == (2, 20)


if __name__ == "__main__":
    main()
