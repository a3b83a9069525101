"""Names a program's tensors and modules in recordings. vram_torch.annotate() is implemented here."""
import threading

import vram_torch


class Annotation:
    """The hooks that annotate() installed; remove() removes them."""

    def __init__(self):
        self._handles = []

    def remove(self):
        """Stops naming; earlier names stay in the recording."""
        while self._handles:
            self._handles.pop().remove()


class _Speaker:
    """Writes roles and modules into this allocator's history or PyTorch's; if neither takes them, uses record_function(), which recordings
    contain with global_record_annotations=True."""

    def __init__(self, torch):
        self._torch, self._own = torch, vram_torch.allocator() if vram_torch.is_enabled() else None
        self._memory = torch.cuda.memory
        self._open = {}  # without metadata: the open record_function() of each thread

    def role(self, role, tensor, name):
        tensor = getattr(tensor, "_local_tensor", tensor)  # this process's part of a DTensor
        if not tensor.is_cuda or not (address := tensor.untyped_storage().data_ptr()):
            return
        if self._own is not None:
            try:
                self._own.annotate_memory(address, f"vram.role {role} {name}")
            except vram_torch.Error:
                pass  # memory of another allocator
        elif hasattr(self._memory, "_annotate_tensor"):
            self._memory._annotate_tensor(tensor, f"vram.role {role} {name}")
        else:
            with self._torch.autograd.profiler.record_function(f"vram.role {role} {address:#x} {name}"):
                pass

    def begin(self, module, name):
        """Labels the thread's allocations with the module's name until end()."""
        stack = self._open.setdefault(threading.get_ident(), [])
        if self._own is not None:
            self._own.set_memory_metadata(f"vram.module {name}")
            stack.append((module, name, None))
        elif hasattr(self._memory, "_set_memory_metadata"):
            stack.append((module, name, self._memory._get_memory_metadata()))
            self._memory._set_memory_metadata(f"vram.module {name}")
        else:
            record = self._torch.autograd.profiler.record_function(f"vram.module {name}")
            record.__enter__()
            stack.append((module, name, record))

    def end(self, module):
        """Ends the module, and modules inside it that a failure left open."""
        stack = self._open.get(threading.get_ident(), [])
        if all(entry[0] is not module for entry in stack):
            return
        while stack:
            opened, _, before = stack.pop()
            if self._own is not None:
                self._own.set_memory_metadata(f"vram.module {stack[-1][1]}" if stack else "")
            elif isinstance(before, str):
                self._memory._set_memory_metadata(before)
            else:
                before.__exit__(None, None, None)
            if opened is module:
                return


def annotate(model=None, optimizer=None):
    """Names memory for recordings: `vram report --by role` and `--by module` prefer these names over their own conclusions.

    For a model (torch.nn.Module): its present parameters and buffers, gradients when they are stored, and the module whose forward()
    makes an allocation. For an optimizer: its state once created. Start the history first. Returns an Annotation, whose remove() ends
    it. Works with any allocator.
    """
    import torch

    speaker, made, names = _Speaker(torch), Annotation(), {}
    keep = made._handles.append
    for name, tensor in (*model.named_parameters(), *model.named_buffers()) if model is not None else ():
        speaker.role("parameters", tensor, name)
        names[tensor] = name
    for name, parameter in model.named_parameters() if model is not None else ():
        if parameter.requires_grad and hasattr(parameter, "register_post_accumulate_grad_hook"):
            keep(parameter.register_post_accumulate_grad_hook(
                lambda p, name=name: speaker.role("gradients", p.grad, name) if p.grad is not None else None))
    for name, module in model.named_modules() if model is not None else ():
        shown = name or type(module).__name__
        keep(module.register_forward_pre_hook(lambda m, _, shown=shown: speaker.begin(m, shown)))
        keep(module.register_forward_hook(lambda m, *_: speaker.end(m)))
    if optimizer is not None:
        keep(optimizer.register_step_post_hook(_state_hook(speaker, names)))
    return made


def _state_hook(speaker, names):
    said = set()  # addresses: state is created once

    def after_step(optimizer, *_):
        for parameter, state in optimizer.state.items():
            for value in state.values() if isinstance(state, dict) else ():
                if not hasattr(value, "untyped_storage") or not value.is_cuda or value.data_ptr() in said:
                    continue
                said.add(value.data_ptr())
                speaker.role("optimizer_state", value, names.get(parameter, "parameter"))

    return after_step
