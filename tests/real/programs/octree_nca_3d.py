"""Runs a training step's forward pass of HugePandaCoder/octree-nca-groupeq in three dimensions, from setup_prostate5's configuration only: random volumes, fresh
weights. The published model differs from the recorded one (a day's work between them); the differences are made up here, from the recording's stacks and sizes.

usage: octree_nca_3d.py SOURCES"""
import sys

import torch

STEPS = [((320, 320, 24), 5), ((160, 160, 12), 5), ((80, 80, 6), 5), ((40, 40, 6), 5), ((20, 20, 6), 20)]
PATCHES = [(80, 80, 6), (80, 80, 6), None, None, (12, 12, 5)]
BATCH, TIMES = 3, 2


def main():
    sys.path.insert(0, sys.argv[1])
    from src.models.Model_OctreeNCA_3d_patching2 import OctreeNCA3DPatch2

    class Recorded(OctreeNCA3DPatch2):
        def compute_probabilities_matrix(self, loss, level):
            """Only the lowest level is weighted by its loss."""
            matrix = super().compute_probabilities_matrix(loss, level)
            self.loss_weighted_patching = False
            return matrix

        def forward(self, x, y):
            x = torch.cat([x] * TIMES, dim=0)
            y = torch.cat([y] * TIMES, dim=0)
            x, y = self.forward_train(x, y)
            torch.cuda.memory._dump_snapshot("my_snapshot.pickle")
            return x, y

    model = Recorded(16, 0.5, device="cuda:0", hidden_size=64, input_channels=1, output_channels=1, steps=64, octree_res_and_steps=STEPS,
                     separate_models=True, patch_sizes=PATCHES, kernel_size=[3] * 5, loss_weighted_patching=True).train()
    inputs, targets = torch.rand(BATCH, 1, *STEPS[0][0]).cuda(), torch.rand(BATCH, *STEPS[0][0], 1).cuda()
    torch.cuda.memory._record_memory_history()
    model(inputs.permute(0, 2, 3, 4, 1), targets)


if __name__ == "__main__":
    main()
