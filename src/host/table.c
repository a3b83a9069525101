#include "host/table.h"
#include "host/state.h"

enum { FIRST_CAPACITY = 64 };

static size_t slot_of(const struct vr_host_table *table, uint64_t address) { return (size_t)vr_mix64(address) & (table->capacity - 1); }

static void place(struct vr_host_table *table, struct vr_host_block *block) {
    size_t at = slot_of(table, block->address);
    while (table->slots[at] != NULL) at = (at + 1) & (table->capacity - 1);
    table->slots[at] = block;
}

static enum vram_status grow(struct vr_host_table *table) {
    struct vr_host_table larger = *table;
    larger.capacity = table->capacity == 0 ? FIRST_CAPACITY : 2 * table->capacity;
    larger.slots = calloc(larger.capacity, sizeof(struct vr_host_block *));
    if (larger.slots == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->slots[i] != NULL) place(&larger, table->slots[i]);
    }
    free(table->slots);
    *table = larger;
    return VRAM_OK;
}

enum vram_status vr_host_table_promise(struct vr_host_table *table) {
    if (2 * (table->count + table->promised + 1) > table->capacity) VR_TRY(grow(table));
    table->promised++;
    return VRAM_OK;
}

void vr_host_table_forgo(struct vr_host_table *table) {
    assert(table->promised != 0);
    table->promised--;
}

void vr_host_table_insert(struct vr_host_table *table, struct vr_host_block *block) {
    assert(vr_host_table_find(table, block->address) == NULL);
    vr_host_table_forgo(table);
    place(table, block);
    table->count++;
}

// What stands behind the gap moves up as long as that brings it nearer to its own slot.
void vr_host_table_remove(struct vr_host_table *table, const struct vr_host_block *block) {
    const size_t mask = table->capacity - 1;
    size_t gap = slot_of(table, block->address);
    while (table->slots[gap] != block) gap = (gap + 1) & mask;
    for (size_t at = (gap + 1) & mask; table->slots[at] != NULL; at = (at + 1) & mask) {
        const size_t own = slot_of(table, table->slots[at]->address);
        if (((at - own) & mask) < ((at - gap) & mask)) continue;
        table->slots[gap] = table->slots[at];
        gap = at;
    }
    table->slots[gap] = NULL;
    table->count--;
}

struct vr_host_block *vr_host_table_find(const struct vr_host_table *table, uint64_t address) {
    if (table->capacity == 0) return NULL;
    size_t at = slot_of(table, address);
    while (table->slots[at] != NULL && table->slots[at]->address != address) at = (at + 1) & (table->capacity - 1);
    return table->slots[at];
}

void vr_host_table_release(struct vr_host_table *table) {
    free(table->slots);
    *table = (struct vr_host_table){.slots = NULL};
}
