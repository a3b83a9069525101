"""A view made from a raw pointer has twice the elements of the tensor, and the fill writes past the end of the block."""
import torch

COUNT = 1 << 20


class Pointer:
    def __init__(self, tensor, count):
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "<f4", "data": (tensor.data_ptr(), False), "version": 2}
        self.owner = tensor


x, other = torch.ones(COUNT, device="cuda"), torch.ones(COUNT, device="cuda")
view = torch.as_tensor(Pointer(x, 2 * COUNT), device="cuda")  #-
#+ view = torch.as_tensor(Pointer(x, COUNT), device="cuda")
view.zero_()  # use
torch.cuda.synchronize()
