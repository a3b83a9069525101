// blocks.cpp: the allocator in C++: blocks that free themselves, a pool, a memory resource, and out of memory as an exception.
#include <cstdio>
#include <utility>
#include <vector>

#include <vram/sim.h>
#include <vram/vram.hpp>

int main() {
    vram_driver *made = nullptr;
    vram_sim_options options{};
    options.memory_bytes = 1ull << 30;
    vram::check(vram_sim_create(&options, &made)); // a simulated device; otherwise vram::allocator loads NVIDIA's driver
    const vram::driver driver(made);
    vram::allocator gpu("max_split_size_mb:200", driver);

    // A block is freed at the end of its scope, and its memory serves the stream's next request.
    void *first = nullptr;
    {
        const vram::block scratch = gpu.allocate(0, 3 << 20);
        first = scratch.as();
        std::printf("%zu bytes at %p\n", scratch.size_bytes(), first);
    }
    vram::block again = gpu.allocate(0, 3 << 20);
    const bool reused = again.as() == first;

    // Blocks are movable. A pool's blocks come from its own segments.
    std::vector<vram::block> kept;
    kept.push_back(std::move(again));
    vram::pool weights(gpu);
    kept.push_back(weights.allocate(5 << 20));

    // A resource allocates and deallocates like std::pmr's, with a stream.
    vram::resource memory(gpu);
    void *buffer = memory.allocate(1 << 20);
    memory.deallocate(buffer, 1 << 20);

    bool ran_out = false;
    try {
        (void)gpu.allocate(0, 2ull << 30);
    } catch (const vram::out_of_memory &failure) {
        ran_out = failure.facts().requested_bytes == 2ull << 30;
        std::puts(failure.what());
    }
    bool refused = false;
    try {
        gpu.configure("no_such_option:1");
    } catch (const vram::error &failure) {
        refused = failure.status() == VRAM_BAD_OPTION;
        std::puts(failure.what());
    }
    kept.clear();
    gpu.empty_cache();
    const auto stats = gpu.stats();
    const bool empty = stats.allocated_bytes[VRAM_STAT_ALL].current == 0;
    return reused && ran_out && refused && empty && !again ? 0 : 1;
}
