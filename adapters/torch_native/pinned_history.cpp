// Records the history of pinned host memory: PyTorch's entries, and the stacks of live blocks.
#include "torch_versions.h"

#if VRAM_TORCH_HAS_HOST_ALLOCATOR

#include <atomic>
#include <map>
#include <mutex>

#include "history.h"
#include "pinned_history.h"

namespace vram_native {

namespace {

// A live, recorded block: its stack and, if the program pinned it, its size.
struct PinnedBlock {
    Context context;
    size_t registered_size = 0;
};

// Guards the ring and the blocks. Lock order: after the host allocator's lock.
std::mutex pinned_history_mutex;
Ring<Entry> pinned_ring;
std::map<uint64_t, PinnedBlock> pinned_blocks;
std::atomic<bool> pinned_recording;
std::atomic<int> pinned_level; // RecordContext
std::atomic<MakeContext> pinned_make;

thread_local Context pinned_call;

Context pinned_context(RecordContext level) {
    const MakeContext make = pinned_make.load();
    if (pinned_level.load() < static_cast<int>(level) || make == nullptr) return nullptr;
    try {
        return make();
    } catch (const std::exception &) { // continue without a stack
        return nullptr;
    }
}

void put_pinned_locked(Entry::Action action, uint64_t address, size_t size, PoolId pool, Context context) {
    if (pinned_level.load() < static_cast<int>(RecordContext::ALLOC)) context = nullptr;
    static const std::string none;
    pinned_ring.put(make_entry<Entry>({action, -1, address, size, 0, pool, std::move(context), &none, &none}));
}

void on_pinned_event(const struct vram_event *event, void *user) {
    (void)user;
    const std::lock_guard<std::mutex> lock(pinned_history_mutex);
    const auto put = [event](Entry::Action action, const Context &context) {
        put_pinned_locked(action, event->address, event->size_bytes, id_of(event->pool), context);
    };
    const auto found = pinned_blocks.find(event->address);
    const Context kept = found == pinned_blocks.end() ? Context() : found->second.context;
    const Context &context = pinned_call != nullptr ? pinned_call : kept;
    switch (event->action) {
    case VRAM_EVENT_SEGMENT_ALLOC: return put(Entry::SEGMENT_ALLOC, pinned_call);
    case VRAM_EVENT_ALLOC: pinned_blocks[event->address].context = pinned_call; return put(Entry::ALLOC, pinned_call);
    case VRAM_EVENT_FREE_REQUESTED: return put(Entry::FREE_REQUESTED, context);
    case VRAM_EVENT_FREE_COMPLETED: put(Entry::FREE_COMPLETED, context); break;
    case VRAM_EVENT_SEGMENT_FREE: put(Entry::SEGMENT_FREE, nullptr); break;
    default: return;
    }
    pinned_blocks.erase(event->address);
}

struct PinnedGathered {
    HostSegments *segments;
    std::map<uint64_t, PinnedBlock> blocks;
};

template <typename List> void add_pinned_segment(PinnedGathered *gathered, List *list, const struct vram_host_block_view &view) {
    using HostSegment = typename List::value_type;
    if constexpr (requires(HostSegment segment) { segment.context_when_allocated; }) {
        HostSegment segment;
        const auto found = gathered->blocks.find(address_of(view.pointer));
        segment.address = address_of(view.pointer);
        segment.size = view.size_bytes;
        segment.owner_private_pool_id = id_of(view.pool);
        segment.allocated = view.state == VRAM_BLOCK_ALLOCATED;
        segment.active = view.state != VRAM_BLOCK_FREE;
        if (segment.active && found != gathered->blocks.end()) segment.context_when_allocated = found->second.context;
        list->push_back(std::move(segment));
    }
}

bool visit_pinned(const struct vram_host_block_view *view, void *user) {
    auto *gathered = static_cast<PinnedGathered *>(user);
    add_pinned_segment(gathered, gathered->segments, *view);
    return true;
}

} // namespace

// Sets the stack of the thread's call. Without recording it is empty, so that events do not take another call's stack.
PinnedCall::PinnedCall(RecordContext level) {
    pinned_call = pinned_recording.load(std::memory_order_acquire) ? pinned_context(level) : Context();
}

PinnedCall::~PinnedCall() { pinned_call = nullptr; }

void listen_to_pinned(struct vram_host *host) {
    if (host != nullptr && pinned_recording.load()) vram_host_set_event_listener(host, on_pinned_event, nullptr);
}

void record_pinned_history(struct vram_host *host, bool enabled, MakeContext make, size_t most, RecordContext when, bool clear) {
    if (enabled) pinned_make = make;
    pinned_level = static_cast<int>(enabled ? when : RecordContext::NEVER);
    pinned_recording = enabled;
    // No event is in progress after this returns.
    if (host != nullptr) vram_host_set_event_listener(host, enabled ? on_pinned_event : nullptr, nullptr);
    const std::lock_guard<std::mutex> lock(pinned_history_mutex);
    if (enabled) pinned_ring.set_most(most);
    if (clear) pinned_ring.clear();
    if (!enabled) pinned_blocks.clear(); // their frees would not be noticed
}

bool pinned_history_is_enabled() { return pinned_recording; }

HostSegments pinned_segments(struct vram_host *host) {
    HostSegments segments;
    PinnedGathered gathered = {&segments, {}};
    std::unique_lock<std::mutex> lock(pinned_history_mutex);
    gathered.blocks = pinned_blocks;
    lock.unlock();
    if (host != nullptr) TORCH_CHECK(vram_host_walk(host, visit_pinned, &gathered) == VRAM_OK, "vram: cannot list the segments of pinned memory");
    for (const auto &[address, block] : gathered.blocks)
        if (block.registered_size != 0)
            add_pinned_segment(&gathered, &segments,
                               {pointer_to(address), block.registered_size, block.registered_size, VRAM_BLOCK_ALLOCATED, {0, 0}});
    return segments;
}

Trace pinned_traces() {
    std::unique_lock<std::mutex> lock(pinned_history_mutex);
    Trace trace = pinned_ring.oldest_first();
    lock.unlock();
    set_times(&trace);
    return trace;
}

// Records memory pinned by the program, as a segment with one block that is not in the allocator's list of segments.
void note_registered(void *pointer, size_t size) {
    if (!pinned_recording) return;
    Context context = pinned_context(RecordContext::STATE);
    const std::lock_guard<std::mutex> lock(pinned_history_mutex);
    pinned_blocks[address_of(pointer)] = {context, size};
    put_pinned_locked(Entry::SEGMENT_ALLOC, address_of(pointer), size, {0, 0}, nullptr);
    put_pinned_locked(Entry::ALLOC, address_of(pointer), size, {0, 0}, std::move(context));
}

void note_unregistered(void *pointer) {
    Context context = pinned_context(RecordContext::ALL);
    const std::lock_guard<std::mutex> lock(pinned_history_mutex);
    const auto found = pinned_blocks.find(address_of(pointer));
    if (found == pinned_blocks.end() || found->second.registered_size == 0) return;
    const PinnedBlock block = std::move(found->second);
    pinned_blocks.erase(found);
    if (!pinned_recording) return;
    put_pinned_locked(Entry::FREE_REQUESTED, address_of(pointer), block.registered_size, {0, 0}, std::move(context));
    put_pinned_locked(Entry::FREE_COMPLETED, address_of(pointer), block.registered_size, {0, 0}, block.context);
    put_pinned_locked(Entry::SEGMENT_FREE, address_of(pointer), block.registered_size, {0, 0}, nullptr);
}

} // namespace vram_native

#endif
