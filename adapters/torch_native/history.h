// history.h: the adapter's history, for its other files.
#ifndef VRAM_TORCH_NATIVE_HISTORY_H
#define VRAM_TORCH_NATIVE_HISTORY_H

#include <algorithm>

#include <c10/util/ApproximateClock.h>

#include "native.h"

namespace vram_native {

// Keeps the newest `most` items.
template <typename Item> class Ring {
  public:
    void put(Item &&item) {
        if (items.size() < most)
            items.push_back(std::move(item));
        else {
            items[next] = std::move(item);
            next = (next + 1) % items.size();
        }
    }
    void set_most(size_t count) { most = std::max<size_t>(1, count); }
    void clear() {
        items.clear();
        items.shrink_to_fit();
        next = 0;
    }
    std::vector<Item> oldest_first() const {
        std::vector<Item> all(items.begin() + static_cast<ptrdiff_t>(next), items.end());
        all.insert(all.end(), items.begin(), items.begin() + static_cast<ptrdiff_t>(next));
        return all;
    }

  private:
    std::vector<Item> items;
    size_t next = 0; // the oldest, if full
    size_t most = 1;
};

// Measures the processor's clock since the library was loaded.
extern c10::ApproximateClockToUnixTimeConverter clock_converter;

// Converts times of entries and annotations, when they are read, from the processor's clock to microseconds since 1970.
template <typename Made> void set_times(std::vector<Made> *entries) {
    const auto nanoseconds = clock_converter.makeConverter();
    for (Made &entry : *entries) entry.time_.t_ = nanoseconds(entry.time_.approx_t_) / 1000;
}

// Starts a history that was requested before the allocator existed.
void begin_listening();
// Return a device's events, oldest first, and all annotations.
Trace events_of(Device device);
std::vector<Annotation> annotations();
// Adds a snapshot event to the device's history.
void note_snapshot(Device device, size_t active_bytes, PoolId id);
// Returns the stack behind vram's `void *` (vram/events.h), which may be NULL.
Context context_of(void *held);

} // namespace vram_native

#endif
