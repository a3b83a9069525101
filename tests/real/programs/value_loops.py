"""Libraries whose loops and sizes depend on computed values, each run to its end: value_loops.py ROW. Models from configurations."""
import pathlib
import tempfile

import torch
import torch.nn.functional as F
from rows import main, row
from torch import nn

CUDA = torch.device("cuda")


def train(net, loss_of, turns=3):
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(turns):
        loss_of().backward()
        optimizer.step()
        optimizer.zero_grad()


def pictures(folder):
    """A data set for YOLO: pictures and their boxes."""
    import cv2
    import numpy

    for part in ("train", "val"):
        for kind in ("images", "labels"):
            (folder / kind / part).mkdir(parents=True)
        for i in range(4):
            cv2.imwrite(str(folder / "images" / part / f"{i}.jpg"), numpy.random.randint(0, 255, (128, 128, 3), dtype=numpy.uint8))
            (folder / "labels" / part / f"{i}.txt").write_text("0 0.5 0.5 0.3 0.3\n1 0.2 0.2 0.1 0.1\n")
    (folder / "data.yaml").write_text(f"path: {folder}\ntrain: images/train\nval: images/val\nnames:\n  0: a\n  1: b\n")
    return str(folder / "data.yaml")


@row
def yolo_trains():
    from ultralytics import YOLO

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        net = YOLO("yolov8n.yaml")
        net.train(data=pictures(folder), epochs=2, imgsz=64, batch=2, device=0, workers=0, plots=False, verbose=False, amp=False, project=str(folder / "out"))
        assert net.trainer.epoch == 1


@row
def boxes_are_suppressed():
    """torchvision's detectors; suppression keeps all boxes that do not overlap."""
    from torchvision import ops
    from torchvision.models import detection

    boxes = torch.arange(40.0, device=CUDA).view(10, 4)
    boxes[:, 2:] = boxes[:, :2] + 1
    assert ops.nms(boxes, torch.rand(10, device=CUDA), 0.5).shape == (10,)
    assert ops.batched_nms(boxes, torch.rand(10, device=CUDA), torch.zeros(10, dtype=torch.long, device=CUDA), 0.5).shape == (10,)
    for make in (detection.retinanet_resnet50_fpn, detection.fcos_resnet50_fpn, detection.maskrcnn_resnet50_fpn):
        net = make(weights=None, weights_backbone=None, num_classes=3).to(CUDA)
        target = {"boxes": torch.tensor([[10.0, 10, 60, 60], [20, 30, 100, 120]], device=CUDA), "labels": torch.ones(2, dtype=torch.long, device=CUDA),
                  "masks": torch.zeros(2, 160, 160, dtype=torch.uint8, device=CUDA)}
        sum(net([torch.rand(3, 160, 160, device=CUDA)] * 2, [target, target]).values()).backward()
        net.eval()
        with torch.no_grad():
            assert len(net([torch.rand(3, 160, 160, device=CUDA)])) == 1


@row
def experts_are_routed():
    """Mixtral, and a hand-written router whose experts get the tokens it counts."""
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(vocab_size=1000, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, num_local_experts=4,
                           output_router_logits=True)
    net, tokens = MixtralForCausalLM(config).to(CUDA), torch.randint(5, 900, (2, 32), device=CUDA)
    train(net, lambda: net(tokens, labels=tokens).loss)
    assert net.generate(tokens[:, :5], max_new_tokens=6, do_sample=False, eos_token_id=None).shape == (2, 11)
    gate, x = nn.Linear(32, 8).to(CUDA), torch.randn(64, 32, device=CUDA)
    chosen = gate(x).softmax(-1).topk(2, -1).indices
    counts = torch.bincount(chosen.flatten(), minlength=8)
    assert counts.sum().item() == 128 and len(x.repeat(2, 1).split(counts.tolist())) == 8
    mask = F.one_hot(chosen, 8).permute(2, 1, 0)
    assert sum(len(torch.where(mask[expert])[1]) for expert in range(8)) == 128


@row
def graphs_of_pyg():
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader
    from torch_geometric.nn import GATConv, GCNConv, TopKPooling, global_mean_pool
    from torch_geometric.utils import coalesce, degree, negative_sampling, to_dense_batch, to_undirected

    first, second, pool, last = nets = nn.ModuleList([GCNConv(16, 32), GATConv(32, 32), TopKPooling(32, 0.5), nn.Linear(32, 3)]).to(CUDA)
    graphs = [Data(x=torch.randn(20, 16), edge_index=torch.randint(0, 20, (2, 60)), y=torch.randint(0, 3, (1,))) for _ in range(8)]

    def loss_of(data):
        x, edges, _, batch, _, _ = pool(second(first(data.x, data.edge_index).relu(), data.edge_index), data.edge_index, None, data.batch)
        return F.cross_entropy(last(global_mean_pool(x, batch)), data.y)

    for data in DataLoader(graphs, 4, shuffle=True):
        data = data.to(CUDA)
        train(nets, lambda data=data: loss_of(data), 1)
        assert degree(data.edge_index[0], data.num_nodes).sum() == 240
        coalesce(to_undirected(data.edge_index))
        dense, mask = to_dense_batch(data.x, data.batch)
        assert dense.shape == (4, 20, 16) and mask.all()
        assert negative_sampling(data.edge_index, num_nodes=data.num_nodes).shape[1] > 0


@row
def monai_segments():
    from monai.inferers import sliding_window_inference
    from monai.losses import DiceCELoss
    from monai.metrics import DiceMetric
    from monai.networks.nets import UNet
    from monai.transforms import AsDiscrete

    net, loss = UNet(3, 1, 2, (8, 16, 32), (2, 2)).to(CUDA), DiceCELoss(to_onehot_y=True, softmax=True)
    train(net, lambda: loss(net(torch.rand(2, 1, 16, 16, 16, device=CUDA)), torch.randint(0, 2, (2, 1, 16, 16, 16), device=CUDA)))
    metric, decided = DiceMetric(include_background=False, reduction="mean"), AsDiscrete(argmax=True, to_onehot=2)
    with torch.no_grad():
        made = sliding_window_inference(torch.rand(1, 1, 24, 24, 24, device=CUDA), (16, 16, 16), 2, net)
        metric([decided(one) for one in made], [AsDiscrete(to_onehot=2)(torch.randint(0, 2, (1, 24, 24, 24), device=CUDA))])
    assert 0 <= metric.aggregate().item() <= 1


@row
def scaler_of_accelerate():
    """No step is skipped for a gradient that is not finite, and each sample is gathered once."""
    from accelerate import Accelerator

    helper = Accelerator(mixed_precision="fp16", gradient_accumulation_steps=2)
    net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4))
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(34, 32), torch.randint(0, 4, (34,))), 4)
    net, optimizer, data = helper.prepare(net, torch.optim.AdamW(net.parameters()), data)
    seen = 0
    for x, wanted in data:
        with helper.accumulate(net):
            helper.backward(F.cross_entropy(net(x), wanted))
            if helper.sync_gradients:
                helper.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            assert not optimizer.step_was_skipped
        seen += len(helper.gather_for_metrics((net(x).argmax(-1), wanted))[0])
    assert seen == 34, seen


@row
def lightning_stops_early():
    import lightning
    import torchmetrics
    from lightning.pytorch.callbacks import EarlyStopping, LearningRateFinder

    class Net(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net, self.lr, self.accuracy = nn.Linear(16, 4), 1e-2, torchmetrics.Accuracy("multiclass", num_classes=4)

        def training_step(self, batch, _):
            return F.cross_entropy(self.net(batch[0]), batch[1])

        def validation_step(self, batch, _):
            made = self.net(batch[0])
            self.accuracy(made, batch[1])
            self.log_dict({"accuracy": self.accuracy, "loss": F.cross_entropy(made, batch[1])})

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), self.lr)

    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(64, 16), torch.randint(0, 4, (64,))), 8)
    with tempfile.TemporaryDirectory() as folder:
        watches = [EarlyStopping("loss", patience=2, check_finite=True), LearningRateFinder(num_training_steps=10)]
        trainer = lightning.Trainer(accelerator="gpu", devices=1, max_epochs=4, logger=False, default_root_dir=folder, callbacks=watches, enable_progress_bar=False)
        trainer.fit(Net(), data, data)
        assert 1 <= trainer.current_epoch <= 4


@row
def processes_of_gpytorch():
    import gpytorch

    class Process(gpytorch.models.ExactGP):
        def __init__(self, x, y):
            super().__init__(x, y, gpytorch.likelihoods.GaussianLikelihood())
            self.mean, self.kernel = gpytorch.means.ConstantMean(), gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    x = torch.linspace(0, 1, 50, device=CUDA)
    y = (x * 6).sin()
    net = Process(x, y).to(CUDA)
    likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(net.likelihood, net)
    train(net, lambda: -likelihood(net(x), y))
    net.eval()
    with torch.no_grad():
        assert net.likelihood(net(torch.linspace(0, 1, 20, device=CUDA))).sample().shape == (20,)


@row
def chains_of_pyro():
    import pyro
    from pyro import distributions
    from pyro.infer import MCMC, NUTS

    def model(data):
        mean = pyro.sample("mean", distributions.Normal(0.0, 10.0))
        with pyro.plate("data", len(data)):
            pyro.sample("x", distributions.Normal(mean, 1.0), obs=data)

    torch.set_default_device("cuda")
    chain = MCMC(NUTS(model), num_samples=3, warmup_steps=3, disable_progbar=True)
    chain.run(torch.randn(100) + 2)
    assert chain.get_samples()["mean"].shape == (3,)


@row
def beams_of_speechbrain():
    from speechbrain.decoders.seq2seq import S2SRNNBeamSearcher, S2SRNNGreedySearcher
    from speechbrain.nnet.linear import Linear
    from speechbrain.nnet.RNN import AttentionalRNNDecoder

    decoder = AttentionalRNNDecoder(rnn_type="gru", attn_type="location", hidden_size=16, attn_dim=8, num_layers=1, enc_dim=12, input_size=8, channels=4, kernel_size=5).to(CUDA)
    parts = {"embedding": nn.Embedding(20, 8).to(CUDA), "decoder": decoder, "linear": Linear(n_neurons=20, input_size=16).to(CUDA)}
    ends = {"bos_index": 1, "eos_index": 2, "min_decode_ratio": 0, "max_decode_ratio": 1}
    heard, lengths = torch.rand(2, 15, 12, device=CUDA), torch.ones(2, device=CUDA)
    for searcher in (S2SRNNGreedySearcher(**parts, **ends), S2SRNNBeamSearcher(**parts, **ends, beam_size=4)):
        assert len(searcher(heard, lengths)[0]) == 2


@row
def codebooks():
    """Vector quantization by k-means that replaces dead codes, a moving average, and token-by-token generation."""
    from ema_pytorch import EMA
    from vector_quantize_pytorch import VectorQuantize
    from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

    codes = VectorQuantize(dim=32, codebook_size=64, kmeans_init=True, kmeans_iters=3, threshold_ema_dead_code=2).to(CUDA)
    for _ in range(3):
        assert codes(torch.randn(1, 256, 32, device=CUDA))[1].shape == (1, 256)
    net = AutoregressiveWrapper(TransformerWrapper(num_tokens=500, max_seq_len=64, attn_layers=Decoder(dim=32, depth=2, heads=2, rotary_pos_emb=True))).to(CUDA)
    average = EMA(net, update_after_step=1, update_every=1)
    train(net, lambda: net(torch.randint(0, 500, (2, 33), device=CUDA)))
    average.update()
    assert net.generate(torch.randint(0, 500, (2, 5), device=CUDA), 20).shape == (2, 20)


if __name__ == "__main__":
    main()
