// Keeps the memory history in PyTorch's own entries, with the stacks that PyTorch gathers.
#include "native.h"

#include <c10/cuda/CUDAFunctions.h>

#include <atomic>
#include <mutex>

#include "history.h"

namespace vram_native {

c10::ApproximateClockToUnixTimeConverter clock_converter;

namespace {

// A gathered stack, as vram holds it for blocks, segments and entries.
struct Held {
    std::atomic<long> references{1};
    Context context;
};

// `mutex` guards a device's entries. Lock order: after the allocator's locks.
struct DeviceHistory {
    std::mutex mutex;
    Ring<Entry> ring;
};
DeviceHistory histories[VRAM_MAX_DEVICES];

std::mutex annotations_mutex;
Ring<Annotation> annotation_ring;

// The settings of the history. Written under `settings_mutex`, which is taken before the allocator's locks; read anywhere.
std::mutex settings_mutex;
std::atomic<bool> recording;
std::atomic<int> level; // RecordContext
std::atomic<MakeContext> make_context;
std::atomic<uint32_t> skipped;                           // a bit for each action that is not stored
std::vector<torch_cuda::AllocatorTraceTracker> trackers; // grows only while the listener is off
bool ever_recorded;                                      // live blocks may have stacks

thread_local std::vector<std::string> compile_contexts;
thread_local std::string user_metadata;
const std::string no_context = "N/A";

void *take_context(void *user) {
    (void)user;
    const MakeContext make = make_context.load();
    if (make == nullptr) return nullptr;
    try {
        Context context = make();
        if (context == nullptr) return nullptr;
        auto *held = new Held;
        held->context = std::move(context);
        return held;
    } catch (const std::exception &) { // continue without a stack
        return nullptr;
    }
}

void retain_context(void *context, void *user) {
    (void)user;
    static_cast<Held *>(context)->references.fetch_add(1, std::memory_order_relaxed);
}

void release_context(void *context, void *user) {
    (void)user;
    auto *held = static_cast<Held *>(context);
    if (held->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete held;
}

// Returns PyTorch's number for one of vram's actions; -1 if this version lacks it.
int action_of(enum vram_event_action action) {
    switch (action) {
    case VRAM_EVENT_ALLOC: return Entry::ALLOC;
    case VRAM_EVENT_FREE_REQUESTED: return Entry::FREE_REQUESTED;
    case VRAM_EVENT_FREE_COMPLETED: return Entry::FREE_COMPLETED;
    case VRAM_EVENT_SEGMENT_ALLOC: return Entry::SEGMENT_ALLOC;
    case VRAM_EVENT_SEGMENT_FREE: return Entry::SEGMENT_FREE;
    case VRAM_EVENT_SEGMENT_MAP: return Entry::SEGMENT_MAP;
    case VRAM_EVENT_SEGMENT_UNMAP: return Entry::SEGMENT_UNMAP;
    case VRAM_EVENT_OOM: return Entry::OOM;
    case VRAM_EVENT_ANNOTATE: return annotate_action<Entry>();
    default: return -1; // note_snapshot() adds snapshots
    }
}

// Calls the trackers. Exceptions must not pass through the allocator's C code.
void notify_trackers(const Entry &entry) {
    for (const auto &tracker : trackers) {
        try {
            tracker(entry);
        } catch (const std::exception &error) {
            TORCH_WARN("vram: an allocator trace tracker failed: ", error.what());
        }
    }
}

void put(EntryFacts &&facts) {
    const auto device = static_cast<size_t>(facts.device);
    const bool stored = recording.load(std::memory_order_relaxed) && (skipped.load(std::memory_order_relaxed) >> facts.action & 1) == 0;
    facts.compile_context = compile_contexts.empty() ? &no_context : &compile_contexts.back();
    if (level.load(std::memory_order_relaxed) < static_cast<int>(RecordContext::ALLOC)) facts.context = nullptr;
    const std::lock_guard<std::mutex> lock(histories[device].mutex);
    Entry entry = make_entry<Entry>(std::move(facts));
    notify_trackers(entry);
    if (stored) histories[device].ring.put(std::move(entry));
}

void on_event(const struct vram_event *event, void *user) {
    (void)user;
    const int action = action_of(event->action);
    if (action < 0) return;
    const std::string name = event->name == nullptr ? std::string() : std::string(event->name);
    put({action, static_cast<Device>(event->device), event->address, event->size_bytes, event->stream, id_of(event->pool),
         context_of(event->context), nullptr, event->name == nullptr ? &user_metadata : &name});
}

uint32_t bits_of(const std::vector<std::string> &actions) {
    static const char *const names[] = {"alloc",       "free_requested", "free_completed", "segment_alloc", "segment_free",
                                        "segment_map", "segment_unmap",  "snapshot",       "oom",           "annotate"};
    uint32_t bits = 0;
    for (const std::string &action : actions)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) bits |= static_cast<uint32_t>(action == names[i]) << i;
    return bits;
}

void clear_all() {
    for (DeviceHistory &history : histories) {
        const std::lock_guard<std::mutex> lock(history.mutex);
        history.ring.clear();
    }
    const std::lock_guard<std::mutex> lock(annotations_mutex);
    annotation_ring.clear();
}

void set_most(size_t count) {
    for (DeviceHistory &history : histories) {
        const std::lock_guard<std::mutex> lock(history.mutex);
        history.ring.set_most(count);
    }
    const std::lock_guard<std::mutex> lock(annotations_mutex);
    annotation_ring.set_most(count);
}

void listen_locked() {
    if (made == nullptr) return;
    vram_event_listener listener = {};
    const bool stacks = recording && level > static_cast<int>(RecordContext::NEVER);
    listener.event = recording || !trackers.empty() ? on_event : nullptr;
    listener.take_context = stacks ? take_context : nullptr;
    listener.retain_context = retain_context;
    listener.release_context = release_context;
    listener.level = stacks ? static_cast<enum vram_context_level>(level.load()) : VRAM_CONTEXT_NEVER;
    // Blocks that have a stack keep it even when the history ends.
    const bool needed = listener.event != nullptr || ever_recorded;
    check(vram_set_event_listener(made, needed ? &listener : nullptr), "memory history");
}

} // namespace

Context context_of(void *held) { return held == nullptr ? Context() : static_cast<Held *>(held)->context; }

void begin_listening() {
    const std::lock_guard<std::mutex> lock(settings_mutex);
    if (recording || !trackers.empty()) listen_locked();
}

void note_snapshot(Device device, size_t active_bytes, PoolId id) {
    if (!recording && trackers.empty()) return;
    // PyTorch sets neither device nor stream here.
    EntryFacts facts = {Entry::SNAPSHOT, 0, 0, active_bytes, 0, id, nullptr, nullptr, &user_metadata};
    facts.compile_context = compile_contexts.empty() ? &no_context : &compile_contexts.back();
    const std::lock_guard<std::mutex> lock(histories[device].mutex);
    Entry entry = make_entry<Entry>(std::move(facts));
    notify_trackers(entry);
    if (recording && (skipped >> Entry::SNAPSHOT & 1) == 0) histories[device].ring.put(std::move(entry));
}

Trace events_of(Device device) {
    std::unique_lock<std::mutex> lock(histories[device].mutex);
    Trace trace = histories[device].ring.oldest_first();
    lock.unlock();
    set_times(&trace);
    return trace;
}

std::vector<Annotation> annotations() {
    std::unique_lock<std::mutex> lock(annotations_mutex);
    std::vector<Annotation> all = annotation_ring.oldest_first();
    lock.unlock();
    set_times(&all);
    return all;
}

// --- PyTorch's methods ------------------------------------------------------------------------------------------------------------------

bool Native::isHistoryEnabled() { return recording; }

void Native::recordHistory(bool enabled, MakeContext make, size_t most, RecordContext when) {
    recordHistory(enabled, make, most, when, false, {});
}

void Native::recordHistory(bool enabled, MakeContext make, size_t most, RecordContext when, bool clear) {
    recordHistory(enabled, make, most, when, clear, {});
}

void Native::recordHistory(bool enabled, MakeContext make, size_t most, RecordContext when, bool clear,
                           const std::vector<std::string> &skip_actions) {
    TORCH_CHECK(when == RecordContext::NEVER || make != nullptr, "vram: recording stacks needs a function that gathers them");
    const std::lock_guard<std::mutex> lock(settings_mutex);
    make_context = enabled ? make : nullptr;
    level = enabled ? static_cast<int>(when) : static_cast<int>(RecordContext::NEVER);
    skipped = bits_of(skip_actions);
    set_most(most);
    recording = enabled;
    ever_recorded = ever_recorded || enabled;
    if (!enabled || clear) clear_all();
    listen_locked();
}

void Native::recordAnnotation(const std::vector<std::pair<std::string, std::string>> &words) {
    if (!recording) return;
    Device device = 0;
    if (c10::cuda::GetDevice(&device) != cudaSuccess) return;
    Annotation annotation(device, c10::getApproximateTime());
    for (const auto &[name, value] : words) annotation.recordUserMetadata(name, value);
    const std::lock_guard<std::mutex> lock(annotations_mutex);
    annotation_ring.put(std::move(annotation));
}

void Native::attachAllocatorTraceTracker(torch_cuda::AllocatorTraceTracker tracker) {
    const std::lock_guard<std::mutex> lock(settings_mutex);
    if (made != nullptr) { // the listener must be off while the list grows
        vram_event_listener silent = {};
        silent.retain_context = retain_context;
        silent.release_context = release_context;
        check(vram_set_event_listener(made, &silent), "allocator trace trackers");
    }
    trackers.push_back(std::move(tracker));
    listen_locked();
}

void Native::pushCompileContext(std::string &name) {
    compile_contexts.push_back(name);
    (void)!vram_push_context(name.c_str());
}

void Native::popCompileContext() {
    if (compile_contexts.empty()) return;
    compile_contexts.pop_back();
    vram_pop_context();
}

bool Native::supportsUserMetadata() { return true; }

void Native::setUserMetadata(const std::string &metadata) {
    user_metadata = metadata;
    (void)!vram_set_metadata(metadata.c_str());
}

std::string Native::getUserMetadata() { return user_metadata; }

// Refuses annotations for freed memory or memory of another allocator.
void Native::annotateMemory(const void *pointer, const std::string &metadata) {
    const vram_status status = vram_annotate(made, address_of(pointer), metadata.c_str());
    TORCH_CHECK(status != VRAM_INVALID_POINTER, "annotateMemory: no live allocation found at pointer ", pointer);
    TORCH_CHECK(status == VRAM_OK, "vram: ", vram_status_text(status));
}

Context Native::getContextForPointer(const void *pointer) {
    void *held = nullptr;
    if (vram_block_context(made, address_of(pointer), &held) != VRAM_OK || held == nullptr) return nullptr;
    Context context = context_of(held);
    release_context(held, nullptr);
    return context;
}

} // namespace vram_native
