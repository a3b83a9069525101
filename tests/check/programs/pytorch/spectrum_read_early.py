"""A Fourier transform runs on a side stream, and its result is read on the main stream."""
import torch

side = torch.cuda.Stream()
signal = torch.ones(4096, dtype=torch.complex64, device="cuda")
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    spectrum = torch.fft.fft(signal)  # use
#+ torch.cuda.current_stream().wait_stream(side)
power = spectrum * 2  # conflict
torch.cuda.synchronize()
