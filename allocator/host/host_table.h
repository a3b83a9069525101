// host_table.h: maps the address of a block to the block. An insertion with a promise cannot fail: memory already pinned must not be lost
// because the table cannot grow.
#ifndef VR_HOST_HOST_TABLE_H
#define VR_HOST_HOST_TABLE_H

#include "base/hash.h"

struct vr_host_block;

// The map always has room for the promised insertions.
struct vr_host_table {
    struct vr_map blocks;
    size_t promised; // insertions still to come
};

// Makes room for one more insertion. NO_HOST_MEMORY, with nothing changed.
VR_INLINE enum vram_status vr_host_table_promise(struct vr_host_table *table) {
    VR_TRY(vr_map_reserve(&table->blocks, table->promised + 1));
    table->promised++;
    return VRAM_OK;
}
// Takes back a promise that is not needed.
VR_INLINE void vr_host_table_forgo(struct vr_host_table *table) {
    assert(table->promised != 0);
    table->promised--;
}
// Inserts a block at a new address, using up a promise.
VR_INLINE void vr_host_table_insert(struct vr_host_table *table, uint64_t address, struct vr_host_block *block) {
    assert(vr_map_get(&table->blocks, address) == 0);
    vr_host_table_forgo(table);
    const enum vram_status status = vr_map_set(&table->blocks, address, (uintptr_t)block);
    assert(status == VRAM_OK);
    (void)status;
}
// Removes the block at this address, which must exist.
VR_INLINE void vr_host_table_remove(struct vr_host_table *table, uint64_t address) {
    const uint64_t block = vr_map_take(&table->blocks, address);
    assert(block != 0);
    (void)block;
}
// Returns NULL if no block begins there.
VR_INLINE struct vr_host_block *vr_host_table_find(const struct vr_host_table *table, uint64_t address) {
    return (struct vr_host_block *)(uintptr_t)vr_map_get(&table->blocks, address);
}
// Visits every block, in unspecified order that must not reach any output. Start with *at = 0; returns NULL after the last. The table must
// not change meanwhile.
VR_INLINE struct vr_host_block *vr_host_table_next(const struct vr_host_table *table, size_t *at) {
    struct vr_map_slot entry;
    return vr_map_next(&table->blocks, at, &entry) ? (struct vr_host_block *)(uintptr_t)entry.value : NULL;
}

#endif
