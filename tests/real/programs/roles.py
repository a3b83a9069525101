"""Compares the roles of `vram report --by role` with what the program itself knows about its memory. In each row at least 98 % of the bytes
at the highest moments of the passes must be right."""
import inspect
import os
import pathlib
import sys
import tempfile

import torch
import torch.nn.functional as F
from role_truth import Truth, read_roles
from rows import main, row

CUDA = torch.device("cuda")
STACKS = os.environ.get("ROLE_TRUTH_STACKS", "python")


def train(net, optimizer, batch, loss_of, steps=3, before=None, autocast=False):
    """Training steps, with the truth recorded at the highest moment of each pass."""
    truth = before or Truth(STACKS)
    truth.watch(net, optimizer)
    with truth.saving():
        for _ in range(steps):
            truth.inputs = batch()
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=autocast):
                loss = loss_of(net, *truth.inputs)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    judge(truth)


def judge(truth, least=0.98):
    total = bad = 0
    for name, bytes_of, wrong in truth.compare():
        told = {role: size for role, size in bytes_of.items() if "," not in role}
        total, bad = total + sum(told.values()), bad + sum(wrong.values())
        print(f"{name}: {sum(told.values())} bytes, {100 - 100 * sum(wrong.values()) / max(1, sum(told.values())):.2f} % right", dict(bytes_of))
        for (true, said), size in wrong.most_common():
            print(f"  {size} bytes of {true} were called {said}")
    print(f"all: {total} bytes, {100 - 100 * bad / max(1, total):.2f} % right")
    assert total > 0 and bad <= (1 - least) * total


@row
def roles_mlp():
    truth = Truth(STACKS)
    net = torch.nn.Sequential(*[layer for _ in range(6) for layer in (torch.nn.Linear(1024, 1024), torch.nn.GELU())]).to(CUDA)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    train(net, optimizer, lambda: [torch.randn(512, 1024, device=CUDA), torch.randn(512, 1024, device=CUDA)], lambda n, x, y: F.mse_loss(n(x), y),
          before=truth)


@row
def roles_gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    truth = Truth(STACKS)
    net = GPT2LMHeadModel(GPT2Config(n_layer=6, n_embd=512, n_head=8, vocab_size=20000)).to(CUDA)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
    train(net, optimizer, lambda: [torch.randint(0, 20000, (4, 256), device=CUDA)], lambda n, t: n(input_ids=t, labels=t, use_cache=False).loss,
          before=truth)


def _llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(hidden_size=512, intermediate_size=1408, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=4,
                         vocab_size=16000, eos_token_id=None)
    return LlamaForCausalLM(config).to(CUDA, torch.bfloat16)


@row
def roles_llama_checkpointed():
    truth = Truth(STACKS)
    net = _llama()
    net.gradient_checkpointing_enable()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    train(net, optimizer, lambda: [torch.randint(0, 16000, (8, 512), device=CUDA)], lambda n, t: n(input_ids=t, labels=t).loss, before=truth)


@row
def roles_llama_reentrant():
    truth = Truth(STACKS)
    net = _llama()
    net.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": True})
    net.enable_input_require_grads()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, foreach=False)
    train(net, optimizer, lambda: [torch.randint(0, 16000, (8, 512), device=CUDA)], lambda n, t: n(input_ids=t, labels=t).loss, before=truth)


@row
def roles_adafactor():
    truth = Truth(STACKS)
    net = _llama()
    optimizer = torch.optim.Adafactor(net.parameters(), lr=1e-3)
    train(net, optimizer, lambda: [torch.randint(0, 16000, (2, 512), device=CUDA)], lambda n, t: n(input_ids=t, labels=t, use_cache=False).loss,
          before=truth)


@row
def roles_resnet50():
    from torchvision.models import resnet50 as make

    truth = Truth(STACKS)
    net = make(weights=None).to(CUDA)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    train(net, optimizer, lambda: [torch.randn(16, 3, 224, 224, device=CUDA), torch.randint(0, 1000, (16,), device=CUDA)],
          lambda n, x, y: F.cross_entropy(n(x), y), before=truth)


@row
def roles_vit_autocast():
    from torchvision.models import vit_b_16

    truth = Truth(STACKS)
    net = vit_b_16(weights=None).to(CUDA)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    train(net, optimizer, lambda: [torch.randn(8, 3, 224, 224, device=CUDA), torch.randint(0, 1000, (8,), device=CUDA)],
          lambda n, x, y: F.cross_entropy(n(x), y), before=truth, autocast=True)


@row
def roles_generate():
    truth = Truth(STACKS)
    net = _llama().eval()
    truth.net = net
    from transformers import DynamicCache

    cache = DynamicCache(config=net.config)
    truth.caches.append(lambda: [[getattr(layer, "keys", None), getattr(layer, "values", None)] for layer in cache.layers])
    for module in net.model.layers:
        module.register_forward_hook(lambda *_: truth.ask("forward"))
    truth.inputs = [torch.randint(0, 16000, (8, 256), device=CUDA)]
    net.generate(input_ids=truth.inputs[0], max_new_tokens=20, do_sample=False, past_key_values=cache)
    judge(truth)


@row
def roles_fsdp2():
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard

    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29541")
    dist.init_process_group("nccl", rank=0, world_size=1, device_id=torch.device("cuda", 0))
    truth = Truth(STACKS)
    net = _llama()
    for layer in net.model.layers:
        fully_shard(layer)
    fully_shard(net)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    train(net, optimizer, lambda: [torch.randint(0, 16000, (4, 512), device=CUDA)], lambda n, t: n(input_ids=t, labels=t, use_cache=False).loss,
          before=truth)
    dist.destroy_process_group()


def _begin_rank():
    import torch.distributed as dist

    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    return rank, dist


@row
def roles_ddp_ranks():
    """Checks each of several ranks by itself. The buckets are communication; by default gradients are not in them."""
    rank, dist = _begin_rank()
    truth = Truth(STACKS)
    net = torch.nn.parallel.DistributedDataParallel(_llama(), device_ids=[rank])
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    train(net, optimizer, lambda: [torch.randint(0, 16000, (4, 512), device=CUDA)], lambda n, t: n(input_ids=t, labels=t, use_cache=False).loss,
          before=truth)
    dist.barrier()
    dist.destroy_process_group()


@row
def roles_fsdp2_ranks():
    from torch.distributed.fsdp import fully_shard

    _, dist = _begin_rank()
    truth = Truth(STACKS)
    net = _llama()
    for layer in net.model.layers:
        fully_shard(layer)
    fully_shard(net)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    train(net, optimizer, lambda: [torch.randint(0, 16000, (4, 512), device=CUDA)], lambda n, t: n(input_ids=t, labels=t, use_cache=False).loss,
          before=truth)
    dist.barrier()
    dist.destroy_process_group()


@row
def roles_annotated():
    """A program without useful stacks that states the purpose of its memory itself."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "adapters/torch"))
    import vram_torch

    more = {"global_record_annotations": True} if "global_record_annotations" in str(inspect.signature(torch.cuda.memory._record_memory_history_impl)) else {}
    torch.cuda.memory._record_memory_history(context=None, max_entries=100000, **more)
    net = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 512)).to(CUDA)
    optimizer = torch.optim.Adam(net.parameters())
    annotation = vram_torch.annotate(net, optimizer)
    x = torch.randn(4096, 512, device=CUDA)
    for _ in range(2):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
    annotation.remove()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "annotated.pickle")
        torch.cuda.memory._dump_snapshot(path)
        modules = {(name, role): size for name, role, size in read_roles(path, 0)[1]}
    print(modules)
    weight, bias = 4 * 512 * 2048, 4 * 2048
    assert modules[("0", "parameters")] == weight + bias, modules
    assert modules[("2", "gradients")] == weight, modules
    assert modules[("0", "optimizer_state")] == 2 * (weight + bias), modules
    assert modules[("1", "activations")] == 4 * 4096 * 2048, modules


if __name__ == "__main__":
    main()
