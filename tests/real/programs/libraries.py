"""Libraries for training and generating on top of PyTorch, used as documented: models from configurations, data made on the spot."""
import os
import tempfile

import torch
from rows import main, peak_is, row

CUDA = torch.device("cuda")
MIB = 1 << 20
LLAMA = {"hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 8000}


def llama(**more):
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(LlamaConfig(**LLAMA, **more))


class Tokens(torch.utils.data.Dataset):
    """Token sequences for a language model, as a data set."""

    def __init__(self, count, length):
        self.rows = torch.randint(0, LLAMA["vocab_size"], (count, length))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {"input_ids": self.rows[index], "labels": self.rows[index]}


@row
def trainer_lora():
    """Transformers' Trainer over peft's LoRA: bfloat16, activation checkpoints, gradient accumulation, evaluation, a checkpoint on disk."""
    from peft import LoraConfig, get_peft_model
    from transformers import Trainer, TrainingArguments

    net = get_peft_model(llama(), LoraConfig(r=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(folder, per_device_train_batch_size=4, gradient_accumulation_steps=2, max_steps=4, bf16=True, gradient_checkpointing=True,
                                      logging_steps=1, save_steps=2, eval_strategy="steps", eval_steps=2, report_to=[])
        trainer = Trainer(net, arguments, train_dataset=Tokens(64, 128), eval_dataset=Tokens(8, 128))
        trainer.train()
        assert trainer.state.global_step == 4 and os.path.exists(f"{folder}/checkpoint-4/adapter_model.safetensors"), os.listdir(folder)
    peak_is(torch, 4 * sum(p.numel() for p in net.parameters()))


@row
def lightning_fit():
    import lightning

    class Net(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10))

        def training_step(self, batch, _):
            loss = torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])
            self.log("loss", loss, prog_bar=True)
            return loss

        validation_step = training_step

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())

    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(256, 256), torch.randint(0, 10, (256,))), batch_size=32, num_workers=2)
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(accelerator="gpu", devices=1, max_epochs=2, precision="16-mixed", logger=False, default_root_dir=folder, accumulate_grad_batches=2,
                                    gradient_clip_val=1.0)
        trainer.fit(Net(), data, data)
        assert trainer.current_epoch == 2
    peak_is(torch, 4 * 256 * 1024)


@row
def timm_vit():
    """Trains timm's ViT with its own scaler, optimizer and moving average, and a ConvNeXt with channels last and torch.compile."""
    import timm
    from timm.optim import create_optimizer_v2
    from timm.utils import ModelEmaV3, NativeScaler

    net = timm.create_model("vit_small_patch16_224", pretrained=False, drop_path_rate=0.1).to(CUDA)
    optimizer, scaler, average = create_optimizer_v2(net, opt="lamb", lr=1e-3), NativeScaler(), ModelEmaV3(net)
    for _ in range(2):
        with torch.autocast("cuda"):
            loss = net(torch.randn(8, 3, 224, 224, device=CUDA)).square().mean()
        scaler(loss, optimizer, clip_grad=1.0, parameters=net.parameters())
        optimizer.zero_grad()
        average.update(net)
    peak_is(torch, 5 * 4 * sum(p.numel() for p in net.parameters()))
    small = timm.create_model("convnext_atto", pretrained=False).to(CUDA, memory_format=torch.channels_last).eval()
    with torch.no_grad():
        assert small(torch.randn(4, 3, 224, 224, device=CUDA).contiguous(memory_format=torch.channels_last)).shape == (4, 1000)


@row
def detector():
    """torchvision's Faster R-CNN: proposals, non-maximum suppression, RoI pooling, losses, and its inference."""
    from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn as make

    net = make(weights=None, weights_backbone=None, num_classes=5).to(CUDA)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    images = [torch.rand(3, 240, 320, device=CUDA) for _ in range(2)]
    target = {"boxes": torch.tensor([[10.0, 10, 60, 60]], device=CUDA), "labels": torch.ones(1, dtype=torch.long, device=CUDA)}
    for _ in range(2):
        losses = net(images, [target, target])
        sum(losses.values()).backward()
        optimizer.step()
        optimizer.zero_grad()
    net.eval()
    with torch.no_grad():
        assert len(net(images)) == 2
    peak_is(torch, 3 * 4 * sum(p.numel() for p in net.parameters()))


if __name__ == "__main__":
    main()
