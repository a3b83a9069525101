// table.h: from the first byte of a block to the block. Open addressing; an insertion cannot fail where room was promised before.
#ifndef VR_HOST_TABLE_H
#define VR_HOST_TABLE_H

#include "base/base.h"

struct vr_host_block;

// At most half of the slots are taken or promised.
struct vr_host_table {
    struct vr_host_block **slots; // NULL: empty
    size_t capacity;              // a power of two, or 0
    size_t count;
    size_t promised; // insertions that will come
};

// Makes room for one insertion more. NO_HOST_MEMORY, all untouched.
enum vram_status vr_host_table_promise(struct vr_host_table *table);
// Takes a promise back that is not needed.
void vr_host_table_forgo(struct vr_host_table *table);
// Inserts a block whose address is not there, on a promise.
void vr_host_table_insert(struct vr_host_table *table, struct vr_host_block *block);
// Removes a block that is there.
void vr_host_table_remove(struct vr_host_table *table, const struct vr_host_block *block);
// NULL when no block begins there.
struct vr_host_block *vr_host_table_find(const struct vr_host_table *table, uint64_t address);
void vr_host_table_release(struct vr_host_table *table);

#endif
