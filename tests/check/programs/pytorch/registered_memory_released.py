"""Memory that was registered for copies is unregistered before the copy from it completes."""
import torch

runtime = torch.cuda.cudart()
host = torch.ones(1 << 20)
device = torch.empty(1 << 20, device="cuda")
torch.cuda.check_error(runtime.cudaHostRegister(host.data_ptr(), host.nbytes, 0))
device.copy_(host, non_blocking=True)  # use
#+ torch.cuda.current_stream().synchronize()
torch.cuda.check_error(runtime.cudaHostUnregister(host.data_ptr()))  # free
torch.cuda.synchronize()
