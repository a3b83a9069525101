// paged_oracle.h: checks paged memory (paged:True) from outside, by the driver calls that create, map and unmap pages and by the allocated
// blocks. Uses simple lists, and no code of the allocator.
#ifndef VR_TEST_PAGED_ORACLE_H
#define VR_TEST_PAGED_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vram/driver.h"

enum { ORACLE_PAGES = 2048, ORACLE_MAPPINGS = 16384, ORACLE_BLOCKS = 128, ORACLE_STREAMS = 4 };

// A page of driver memory, by its handle.
struct oracle_page {
    uint64_t handle, size_bytes;
    uint64_t free_at_ns[ORACLE_STREAMS]; // when the work of each stream that used it ends
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
    const char *wrong; // the first violated rule; NULL: none
};

// Watches the simulator's calls, until oracle_leave(). One oracle at a time.
void oracle_watch(struct paged_oracle *oracle, struct vram_driver *sim);
void oracle_leave(struct vram_driver *sim);
// Checks a new block: its bytes exist and belong to no other live block. Sets *not_before_ns to the end of other streams' work on its
// pages.
void oracle_take(struct paged_oracle *oracle, const struct oracle_block *block, uint64_t *not_before_ns);
// Frees a block whose stream's work ends at end_ns.
void oracle_give(struct paged_oracle *oracle, size_t index, uint64_t end_ns);
// Checks that each live block is on existing pages.
void oracle_check_mapped(struct paged_oracle *oracle);
// Checks that each page contains a byte of a live block, so that nothing that could be released was kept.
void oracle_check_used(struct paged_oracle *oracle);
uint64_t oracle_live_bytes(const struct paged_oracle *oracle);
uint64_t oracle_page_bytes(const struct paged_oracle *oracle);

#endif
