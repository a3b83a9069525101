"""A view made from a raw pointer outlives the tensor that owns the memory."""
import torch


class Pointer:
    def __init__(self, tensor):
        self.__cuda_array_interface__ = {"shape": tuple(tensor.shape), "typestr": "<f4", "data": (tensor.data_ptr(), False), "version": 2}
        #+ self.owner = tensor


x = torch.ones(1 << 20, device="cuda")
view = torch.as_tensor(Pointer(x), device="cuda")
del x  # free
view.add_(1)  # use
torch.cuda.synchronize()
