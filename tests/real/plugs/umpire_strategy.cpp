// Tests vram::umpire_strategy in Umpire's own manager: its records, copies, and pools on top.
#include <umpire/ResourceManager.hpp>
#include <umpire/strategy/QuickPool.hpp>
#include <vram/umpire.hpp>

#include <cstring>

#include "expect.h"

int main() {
    auto &manager = umpire::ResourceManager::getInstance();
    auto allocator = manager.makeAllocator<vram::umpire_strategy>("vram", 0u);
    EXPECT(allocator.getStrategyName() == "vram" && allocator.getPlatform() == umpire::Platform::cuda);

    void *device = allocator.allocate(1 << 20);
    EXPECT(vram_allocated_size(vram::process_allocator(), VRAM_STREAM(device)) == 1 << 20);
    EXPECT(allocator.getCurrentSize() == 1 << 20 && allocator.getSize(device) == 1 << 20 && manager.hasAllocator(device));
    EXPECT(allocator.getActualSize() >= 1 << 20);

    // Umpire knows its location, so its operations can access it.
    auto host = manager.getAllocator("HOST");
    char *out = static_cast<char *>(host.allocate(1 << 20)), *back = static_cast<char *>(host.allocate(1 << 20));
    std::memset(out, 5, 1 << 20);
    manager.copy(device, out);
    manager.copy(back, device);
    EXPECT(std::memcmp(out, back, 1 << 20) == 0);
    manager.memset(device, 7);
    manager.copy(back, device);
    EXPECT(back[12345] == 7);

    allocator.deallocate(device);
    EXPECT(allocator.getCurrentSize() == 0 && allocator.allocate(1 << 20) == device);
    allocator.deallocate(device);

    auto pool = manager.makeAllocator<umpire::strategy::QuickPool>("pool", allocator);
    void *small = pool.allocate(100);
    EXPECT(manager.findAllocationRecord(small)->strategy->getName() == "pool");
    pool.deallocate(small);
    pool.release();
    allocator.release();
    EXPECT(allocator.getActualSize() == 0);

    bool ran_out = false;
    try {
        (void)allocator.allocate((size_t)1 << 50);
    } catch (const umpire::out_of_memory_error &) {
        ran_out = true;
    }
    EXPECT(ran_out);
    host.deallocate(out);
    host.deallocate(back);
    return OK();
}
