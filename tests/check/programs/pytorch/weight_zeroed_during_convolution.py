"""The weight of a convolution on a side stream is overwritten on the main stream before the convolution has read it."""
import torch

side = torch.cuda.Stream()
convolution = torch.nn.Conv2d(8, 8, 3, bias=False, device="cuda")
image = torch.ones(1, 8, 32, 32, device="cuda")
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side), torch.no_grad():
    features = convolution(image)  # use
#+ torch.cuda.current_stream().wait_stream(side)
with torch.no_grad():
    convolution.weight.zero_()  # conflict
torch.cuda.synchronize()
