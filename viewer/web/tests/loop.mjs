// Makes a recording of a training loop: weights, then steps of a forward pass, a backward pass and an optimizer step, with PyTorch's stacks
// including C++ frames.
const native = (name) => ({ filename: "??", line: 0, name });
const python = (filename, line, name) => ({ filename, line, name });
const allocator = [native("torch::unwind::unwind()"), native("torch::CapturedTraceback::gather(bool, bool, bool)"), native("c10::cuda::CUDACachingAllocator::Native::malloc(void**)")];
const interpreter = [native("_PyEval_EvalFrameDefault"), native("PyObject_Vectorcall")];
const main = [...interpreter, python("/home/me/train.py", 9, "main"), native("Py_BytesMain"), native("__libc_start_main")];
const call = python("/opt/v/lib/python3.11/site-packages/torch/nn/modules/module.py", 1751, "_call_impl");

export const stacks = {
    weights: [...allocator, native("at::_ops::empty::call(long)"), python("/opt/v/lib/python3.11/site-packages/torch/nn/modules/linear.py", 99, "__init__"), python("/home/me/model.py", 5, "__init__"), ...main],
    forward: (layer) => [...allocator, native("at::_ops::addmm::call(at::Tensor const&)"), ...interpreter, call, python("/home/me/model.py", 20 + layer, "forward"), ...interpreter, call, ...main],
    backward: [...allocator, native("at::_ops::mm::call(at::Tensor const&)"), native("torch::autograd::generated::AddmmBackward0::apply(std::vector<at::Tensor>&&)"), native("torch::autograd::Engine::evaluate_function(int)"), native("start_thread"), native("clone")],
    optimizer: [...allocator, native("at::_ops::zeros_like::call(at::Tensor const&)"), python("/opt/v/lib/python3.11/site-packages/torch/optim/adam.py", 117, "_init_group"), python("/opt/v/lib/python3.11/site-packages/torch/optim/adam.py", 200, "step"), ...main],
};

export const MIB = 1 << 20;
export const address = (i) => 0x7f0000000000 + i * 64 * MIB;

// { recording, starts (of steps), events }: `layers` activations of 8 MiB each, gradients of 4 MiB, and an optimizer state of 2 MiB made in
// the first step. A private pool has 64 MiB, of which 16 are used.
export function loop({ steps = 4, layers = 4, marked = true } = {}) {
    const events = [];
    const starts = [];
    const live = new Map();
    const push = (action, addr, size, frames, more = {}) => events.push({ action, addr, size, stream: 0, time_us: 10 * events.length, frames, ...more });
    const alloc = (i, size, frames, more) => {
        live.set(i, size);
        push("alloc", address(i), size, frames, more);
    };
    const free = (i, frames) => {
        for (const action of ["free_requested", "free_completed"]) push(action, address(i), live.get(i), frames);
        live.delete(i);
    };
    push("segment_alloc", address(500), 64 * MIB, stacks.weights, { pool_id: [0, 1] });
    push("alloc", address(500), 16 * MIB, stacks.weights, { pool_id: [0, 1] });
    for (let i = 0; i < layers; i++) alloc(i, 4 * MIB, stacks.weights);
    for (let step = 0; step < steps; step++) {
        if (marked) push("user_defined", 0, 0, [python("train step", 0, "")]);
        starts.push(events.length - (marked ? 1 : 0));
        for (let i = 0; i < layers; i++) alloc(100 + i, 8 * MIB, stacks.forward(i));
        for (let i = layers - 1; i >= 0; i--) {
            alloc(200 + i, 4 * MIB, stacks.backward);
            free(100 + i, stacks.backward);
        }
        if (step === 0) for (let i = 0; i < layers; i++) alloc(300 + i, 2 * MIB, stacks.optimizer);
        for (let i = 0; i < layers; i++) free(200 + i, stacks.optimizer);
    }
    const block = (size, state) => ({ size, requested_size: size, state, frames: [] });
    const segment = (i, total, used, pool) => ({ device: 0, address: address(i), total_size: total, allocated_size: used, active_size: used, stream: 0, segment_type: "large", segment_pool_id: pool, is_expandable: false, frames: [], blocks: [{ address: address(i), ...block(used, "active_allocated") }, ...(total > used ? [{ address: address(i) + used, ...block(total - used, "inactive") }] : [])] });
    return { recording: { segments: [segment(500, 64 * MIB, 16 * MIB, [0, 1]), ...[...live].map(([i, size]) => segment(i, size, size, [0, 0]))].sort((a, b) => a.address - b.address), device_traces: [events], allocator_settings: {} }, starts, events };
}
