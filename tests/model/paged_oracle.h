// paged_oracle.h: what must hold of memory in pages (paged:True), told from outside: from the driver's calls that make, map and unmap
// pages, and from the blocks that were handed out. Lists and sums, no thought of speed, nothing of how the allocator does it.
#ifndef VR_TEST_PAGED_ORACLE_H
#define VR_TEST_PAGED_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vram/driver.h"

enum { ORACLE_PAGES = 2048, ORACLE_MAPPINGS = 16384, ORACLE_BLOCKS = 128, ORACLE_STREAMS = 4 };

// Memory of the driver, by its handle.
struct oracle_page {
    uint64_t handle, size_bytes;
    uint64_t free_at_ns[ORACLE_STREAMS]; // when the work of each stream that had it is over
};

struct oracle_mapping {
    uint64_t address, size_bytes, handle;
};

struct oracle_block {
    uint64_t address, size_bytes;
    unsigned stream;
};

struct paged_oracle {
    struct oracle_page pages[ORACLE_PAGES];
    size_t page_count;
    struct oracle_mapping mappings[ORACLE_MAPPINGS];
    size_t mapping_count;
    struct oracle_block live[ORACLE_BLOCKS];
    size_t live_count;
    const char *wrong; // the first rule that was broken; NULL: none
};

// Watches the simulator's calls from now on; one oracle at a time. oracle_leave() ends that.
void oracle_watch(struct paged_oracle *oracle, struct vram_driver *sim);
void oracle_leave(struct vram_driver *sim);
// A block was handed out: its bytes are there, and no other live block's. *not_before_ns: when the last work of another stream on its pages
// is over.
void oracle_take(struct paged_oracle *oracle, const struct oracle_block *block, uint64_t *not_before_ns);
// Its stream's work so far ends at end_ns.
void oracle_give(struct paged_oracle *oracle, size_t index, uint64_t end_ns);
// Each live block lies on pages that are there.
void oracle_check_mapped(struct paged_oracle *oracle);
// Each page holds a byte of a live block: nothing that could go back was kept.
void oracle_check_used(struct paged_oracle *oracle);
uint64_t oracle_live_bytes(const struct paged_oracle *oracle);
uint64_t oracle_page_bytes(const struct paged_oracle *oracle);

#endif
