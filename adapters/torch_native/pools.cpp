// Implements private pools, by PyTorch's ids: references, routes, captures, checkpoints.
#include "native.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <deque>
#include <map>
#include <mutex>

namespace vram_native {

std::atomic<uint32_t> filters_threw;
thread_local std::exception_ptr thrown_by_filter;

namespace {

using Filter = std::function<bool(cudaStream_t)>;

// A pool, which exists while PyTorch refers to it.
struct Pool {
    struct vram_pool *pool = nullptr; // holds one reference
    int references = 0;               // from PyTorch
    std::deque<Filter> routes;        // open, oldest first; a deque, because the allocator has their addresses
};
using Key = std::pair<Device, PoolId>;

// Guards the table and the marks. Lock order: before the allocator's locks.
std::mutex pools_mutex;
std::map<Key, Pool> pools;
std::map<Device, std::vector<uint64_t>> marked; // capturing streams, by device

// Other PyTorch allocators that supply a pool's memory (torch.cuda.MemPool(allocator)). They are kept, because the memory may outlive its
// pool.
using Own = std::shared_ptr<torch_cuda::CUDAAllocator>;
std::deque<Own> owners;

// Allocates. An exception, which must not pass through C, counts as out of memory.
uint64_t allocate_own(uint64_t size_bytes, uint32_t device, uint64_t stream, void *user) {
    (void)stream;
    try {
        const c10::cuda::CUDAGuard guard(static_cast<Device>(device));
        return address_of((*static_cast<Own *>(user))->raw_alloc(size_bytes));
    } catch (const std::exception &error) {
        TORCH_WARN("vram: the custom allocator of a pool failed: ", error.what());
        return 0;
    }
}

void deallocate_own(uint64_t address, uint64_t size_bytes, uint32_t device, uint64_t stream, void *user) {
    (void)size_bytes, (void)stream;
    try {
        const c10::cuda::CUDAGuard guard(static_cast<Device>(device));
        (*static_cast<Own *>(user))->raw_delete(pointer_to(address));
    } catch (const std::exception &error) {
        TORCH_WARN("vram: the custom allocator of a pool failed: ", error.what());
    }
}

// Calls the filter of a route. An exception must not pass through C or the allocator's locks: the request continues as if refused, and its
// caller rethrows it.
bool accepts(uint64_t stream, void *user) {
    try {
        return (*static_cast<const Filter *>(user))(reinterpret_cast<cudaStream_t>(stream));
    } catch (...) {
        thrown_by_filter = std::current_exception();
        filters_threw.fetch_add(1, std::memory_order_relaxed);
        return false;
    }
}

vram_route route_of(Filter &filter) {
    vram_route route = {};
    route.kind = VRAM_ROUTE_FILTER;
    route.accepts = accepts;
    route.user = &filter;
    return route;
}

Pool &find_locked(Device device, PoolId id) {
    const auto found = pools.find({device, id});
    TORCH_CHECK(found != pools.end(), "Could not find private pool id");
    return found->second;
}

// Adds a reference to the pool, creating it if necessary.
Pool &refer_locked(Device device, PoolId id, Own own) {
    check_device(device);
    Pool &pool = pools[{device, id}];
    if (pool.pool == nullptr) {
        vram_pool_options options = {};
        options.for_graph = id.first != 0;
        options.keep_cache = true; // PyTorch empties the pool itself, by its id
        options.id = id_of(id);
        if (own != nullptr) {
            owners.push_back(std::move(own));
            options.allocate = allocate_own;
            options.deallocate = deallocate_own;
            options.user = &owners.back();
        }
        const vram_status status = vram_pool_create(made, static_cast<uint32_t>(device), &options, &pool.pool);
        if (status != VRAM_OK) {
            pools.erase({device, id});
            refuse(status, "a private pool");
        }
    }
    pool.references++;
    return pool;
}

void release_locked(Device device, PoolId id) {
    const auto found = pools.find({device, id});
    if (found == pools.end() || --found->second.references > 0 || !found->second.routes.empty()) return;
    vram_pool_release(found->second.pool);
    pools.erase(found);
}

// The state to which setCheckpointPoolState() returns.
struct Checkpoint final : torch_cuda::AllocatorState {
    struct vram_checkpoint *checkpoint = nullptr;
    PoolId id;
    ~Checkpoint() override { vram_checkpoint_destroy(checkpoint); }
};

struct Restored {
    torch_cuda::CheckpointDelta *delta;
    c10::DeleterFnPtr deleter;
    Device device;
};

void note_freed(uint64_t address, void *user) { static_cast<Restored *>(user)->delta->ptrs_freed.push_back(pointer_to(address)); }

void note_created(uint64_t address, uint64_t size_bytes, void *user) {
    (void)size_bytes;
    const auto *restored = static_cast<Restored *>(user);
    void *const pointer = pointer_to(address);
    restored->delta->dataptrs_allocd.emplace_back(pointer, pointer, restored->deleter,
                                                  c10::Device(c10::DeviceType::CUDA, restored->device));
}

} // namespace

// --- references and routes -----------------------------------------------------------------------------------------------------------

void Native::beginAllocateToPool(Device device, PoolId id, std::function<bool(cudaStream_t)> filter) {
    const std::lock_guard<std::mutex> lock(pools_mutex);
    Pool &pool = refer_locked(device, id, nullptr);
    pool.routes.push_back(std::move(filter));
    const vram_route route = route_of(pool.routes.back());
    vram_status status = vram_pool_begin(pool.pool, &route);
    if (status == VRAM_OK && !VRAM_TORCH_CAPTURES_ARE_MARKED) {
        status = vram_capture_mark_begin(made, static_cast<uint32_t>(device), 0);
        if (status != VRAM_OK) (void)!vram_pool_end(pool.pool, &route);
    }
    if (status == VRAM_OK) return;
    pool.routes.pop_back();
    release_locked(device, id);
    refuse(status, "starting the use of a private pool");
}

void Native::endAllocateToPool(Device device, PoolId id) {
    const std::lock_guard<std::mutex> lock(pools_mutex);
    const auto found = pools.find({device, id});
    TORCH_CHECK(found != pools.end() && !found->second.routes.empty(), "endAllocatePool: not currently recording to mempool_id");
    const vram_route route = route_of(found->second.routes.back());
    const vram_status status = vram_pool_end(found->second.pool, &route);
    found->second.routes.pop_back();
    const vram_status marked_end = VRAM_TORCH_CAPTURES_ARE_MARKED ? VRAM_OK : vram_capture_mark_end(made, static_cast<uint32_t>(device), 0);
    if (found->second.references <= 0) release_locked(device, id);
    check(status != VRAM_OK ? status : marked_end, "ending the use of a private pool");
}

void Native::releasePool(Device device, PoolId id) {
    const std::lock_guard<std::mutex> lock(pools_mutex);
    release_locked(device, id);
}

int Native::getPoolUseCount(Device device, PoolId id) {
    const std::lock_guard<std::mutex> lock(pools_mutex);
    const auto found = pools.find({device, id});
    return found == pools.end() ? 0 : found->second.references;
}

void Native::ensureExistsAndIncrefPool(Device device, PoolId id) { createOrIncrefPool(device, id, Own()); }

void Native::createOrIncrefPool(Device device, PoolId id, torch_cuda::CUDAAllocator *own) {
    // Borrows the allocator, which lives as long as the program.
    createOrIncrefPool(device, id, own == nullptr ? Own() : Own(own, [](torch_cuda::CUDAAllocator *) {}));
}

void Native::createOrIncrefPool(Device device, PoolId id, std::shared_ptr<torch_cuda::CUDAAllocator> own) {
    const std::lock_guard<std::mutex> lock(pools_mutex);
    (void)refer_locked(device, id, std::move(own));
}

void Native::setUseOnOOM(Device device, PoolId id) { setUseOnOOM(device, id, true); }

void Native::setUseOnOOM(Device device, PoolId id, bool use) {
    const std::lock_guard<std::mutex> lock(pools_mutex);
    vram_pool_set_use_on_oom(find_locked(device, id).pool, use);
}

void Native::setNoSplit(Device device, PoolId id) {
    const std::lock_guard<std::mutex> lock(pools_mutex);
    vram_pool_set_no_split(find_locked(device, id).pool, true);
}

// --- captures ---------------------------------------------------------------------------------------------------------------------------

void Native::markCaptureBegin(Device device) {
    const uint64_t stream = VRAM_STREAM(c10::cuda::getCurrentCUDAStream(device).stream());
    const std::lock_guard<std::mutex> lock(pools_mutex);
    check(vram_capture_mark_begin(made, static_cast<uint32_t>(device), stream), "beginning of a capture");
    marked[device].push_back(stream);
}

// Ends the capture on its stream, which need not be the newest one.
void Native::markCaptureEnd(Device device) {
    const uint64_t stream = VRAM_STREAM(c10::cuda::getCurrentCUDAStream(device).stream());
    const std::lock_guard<std::mutex> lock(pools_mutex);
    std::vector<uint64_t> &streams = marked[device];
    TORCH_CHECK(!streams.empty(), "vram: no capture is in progress on device ", static_cast<int>(device));
    auto found = std::find(streams.rbegin(), streams.rend(), stream);
    if (found == streams.rend()) found = streams.rbegin();
    const uint64_t ended = *found;
    streams.erase(std::next(found).base());
    check(vram_capture_mark_end(made, static_cast<uint32_t>(device), ended), "end of a capture");
}

// --- checkpoints ----------------------------------------------------------------------------------------------------------------------

bool Native::checkPoolLiveAllocations(Device device, PoolId id, const std::unordered_set<void *> &expected) {
    std::vector<uint64_t> addresses;
    addresses.reserve(expected.size());
    for (void *pointer : expected) addresses.push_back(address_of(pointer));
    const std::lock_guard<std::mutex> lock(pools_mutex);
    bool equal = false;
    check(vram_pool_holds_exactly(find_locked(device, id).pool, addresses.data(), addresses.size(), &equal), "live blocks of a pool");
    return equal;
}

std::shared_ptr<torch_cuda::AllocatorState> Native::getCheckpointState(Device device, PoolId id) {
    auto state = std::make_shared<Checkpoint>();
    state->id = id;
    const std::lock_guard<std::mutex> lock(pools_mutex);
    check(vram_pool_checkpoint(find_locked(device, id).pool, &state->checkpoint), "checkpoint of a pool");
    return state;
}

torch_cuda::CheckpointDelta Native::setCheckpointPoolState(Device device, std::shared_ptr<torch_cuda::AllocatorState> state) {
    const auto checkpoint = std::dynamic_pointer_cast<Checkpoint>(state);
    TORCH_CHECK(checkpoint != nullptr, "vram: the checkpoint belongs to another allocator");
    torch_cuda::CheckpointDelta delta;
    Restored restored = {&delta, raw_deleter(), device};
    const vram_restore_observer observer = {note_freed, note_created, &restored};
    const std::lock_guard<std::mutex> lock(pools_mutex);
    check(vram_pool_restore(find_locked(device, checkpoint->id).pool, checkpoint->checkpoint, &observer), "restoring a checkpoint");
    return delta;
}

} // namespace vram_native
