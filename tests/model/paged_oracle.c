#include "model/paged_oracle.h"

#include "driver/driver.h"

static struct paged_oracle *watching;
static const struct vr_driver_calls *sim_calls;
static struct vr_driver_calls watched;

static void wrong(struct paged_oracle *oracle, const char *what) {
    if (oracle->wrong == NULL) oracle->wrong = what;
}

static struct oracle_page *page_of(struct paged_oracle *oracle, uint64_t handle) {
    for (size_t i = 0; i < oracle->page_count; i++)
        if (oracle->pages[i].handle == handle) return &oracle->pages[i];
    return NULL;
}

// --- calls of the driver ----------------------------------------------------------------------------------------------------------------

static vr_cu_result watch_create(struct vram_driver *self, uint64_t *handle, uint64_t size_bytes, const struct vr_cu_allocation_prop *prop,
                                 uint64_t flags) {
    const vr_cu_result result = sim_calls->mem_create(self, handle, size_bytes, prop, flags);
    if (result != VR_CU_SUCCESS) return result;
    if (watching->page_count == ORACLE_PAGES) {
        wrong(watching, "more pages than the oracle has room for");
    } else {
        watching->pages[watching->page_count++] = (struct oracle_page){.handle = *handle, .size_bytes = size_bytes};
    }
    return result;
}

static vr_cu_result watch_release(struct vram_driver *self, uint64_t handle) {
    const vr_cu_result result = sim_calls->mem_release(self, handle);
    struct oracle_page *page = page_of(watching, handle);
    if (result != VR_CU_SUCCESS || page == NULL) return result;
    for (size_t i = 0; i < watching->mapping_count; i++)
        if (watching->mappings[i].handle == handle) wrong(watching, "a page was released that is mapped");
    *page = watching->pages[--watching->page_count];
    return result;
}

static vr_cu_result watch_map(struct vram_driver *self, uint64_t address, uint64_t size_bytes, uint64_t offset, uint64_t handle,
                              uint64_t flags) {
    const vr_cu_result result = sim_calls->mem_map(self, address, size_bytes, offset, handle, flags);
    if (result != VR_CU_SUCCESS) return result;
    const struct oracle_page *page = page_of(watching, handle);
    if (offset != 0 || page == NULL || page->size_bytes != size_bytes) wrong(watching, "a page was mapped in part");
    if (watching->mapping_count == ORACLE_MAPPINGS) {
        wrong(watching, "more mappings than the oracle has room for");
    } else {
        watching->mappings[watching->mapping_count++] =
            (struct oracle_mapping){.address = address, .size_bytes = size_bytes, .handle = handle};
    }
    return result;
}

static vr_cu_result watch_unmap(struct vram_driver *self, uint64_t address, uint64_t size_bytes) {
    const vr_cu_result result = sim_calls->mem_unmap(self, address, size_bytes);
    for (size_t i = 0; result == VR_CU_SUCCESS && i < watching->mapping_count;) {
        const struct oracle_mapping *mapping = &watching->mappings[i];
        if (mapping->address >= address && mapping->address < address + size_bytes) {
            watching->mappings[i] = watching->mappings[--watching->mapping_count];
        } else {
            i++;
        }
    }
    return result;
}

void oracle_watch(struct paged_oracle *oracle, struct vram_driver *sim) {
    *oracle = (struct paged_oracle){0};
    watching = oracle;
    sim_calls = sim->calls;
    watched = *sim->calls;
    watched.mem_create = watch_create;
    watched.mem_release = watch_release;
    watched.mem_map = watch_map;
    watched.mem_unmap = watch_unmap;
    sim->calls = &watched;
}

void oracle_leave(struct vram_driver *sim) { sim->calls = sim_calls; }

// --- blocks -----------------------------------------------------------------------------------------------------------------------------

// Bytes [low, high) of a page.
struct extent {
    uint64_t handle, low, high;
};

enum { MOST_EXTENTS = 256 };

static const struct oracle_mapping *mapping_at(const struct paged_oracle *oracle, uint64_t address) {
    for (size_t i = 0; i < oracle->mapping_count; i++)
        if (address - oracle->mappings[i].address < oracle->mappings[i].size_bytes) return &oracle->mappings[i];
    return NULL;
}

// Finds where a block's bytes are. Returns 0 if some are not mapped.
static size_t extents_of(struct paged_oracle *oracle, const struct oracle_block *block, struct extent *extents) {
    size_t count = 0;
    const uint64_t end = block->address + block->size_bytes;
    for (uint64_t at = block->address; at < end;) {
        const struct oracle_mapping *mapping = mapping_at(oracle, at);
        if (mapping == NULL || count == MOST_EXTENTS) {
            wrong(oracle, "a live block has bytes that are not mapped");
            return 0;
        }
        const uint64_t top = mapping->address + mapping->size_bytes < end ? mapping->address + mapping->size_bytes : end;
        extents[count++] = (struct extent){.handle = mapping->handle, .low = at - mapping->address, .high = top - mapping->address};
        at = top;
    }
    return count;
}

static bool share_a_byte(const struct extent *a, size_t a_count, const struct extent *b, size_t b_count) {
    for (size_t i = 0; i < a_count; i++)
        for (size_t k = 0; k < b_count; k++)
            if (a[i].handle == b[k].handle && a[i].low < b[k].high && b[k].low < a[i].high) return true;
    return false;
}

void oracle_take(struct paged_oracle *oracle, const struct oracle_block *block, uint64_t *not_before_ns) {
    struct extent mine[MOST_EXTENTS], other[MOST_EXTENTS];
    const size_t count = extents_of(oracle, block, mine);
    for (size_t i = 0; i < oracle->live_count; i++)
        if (share_a_byte(mine, count, other, extents_of(oracle, &oracle->live[i], other))) wrong(oracle, "two live blocks share a byte");
    for (size_t i = 0; i + 1 < count; i++)
        if (share_a_byte(&mine[i], 1, &mine[i + 1], count - i - 1)) wrong(oracle, "a block has a byte twice");
    *not_before_ns = 0;
    for (size_t i = 0; i < count; i++) {
        const struct oracle_page *page = page_of(oracle, mine[i].handle);
        for (unsigned stream = 0; page != NULL && stream < ORACLE_STREAMS; stream++)
            if (stream != block->stream && page->free_at_ns[stream] > *not_before_ns) *not_before_ns = page->free_at_ns[stream];
    }
    oracle->live[oracle->live_count++] = *block;
}

void oracle_give(struct paged_oracle *oracle, size_t index, uint64_t end_ns) {
    struct extent extents[MOST_EXTENTS];
    const struct oracle_block block = oracle->live[index];
    for (size_t i = 0, count = extents_of(oracle, &block, extents); i < count; i++) {
        struct oracle_page *page = page_of(oracle, extents[i].handle);
        if (page != NULL && page->free_at_ns[block.stream] < end_ns) page->free_at_ns[block.stream] = end_ns;
    }
    oracle->live[index] = oracle->live[--oracle->live_count];
}

// --- all blocks -------------------------------------------------------------------------------------------------------------------------

void oracle_check_mapped(struct paged_oracle *oracle) {
    struct extent extents[MOST_EXTENTS];
    for (size_t i = 0; i < oracle->live_count; i++) (void)extents_of(oracle, &oracle->live[i], extents);
}

static bool is_used(struct paged_oracle *oracle, uint64_t handle) {
    struct extent extents[MOST_EXTENTS];
    for (size_t i = 0; i < oracle->live_count; i++)
        for (size_t k = 0, count = extents_of(oracle, &oracle->live[i], extents); k < count; k++)
            if (extents[k].handle == handle) return true;
    return false;
}

void oracle_check_used(struct paged_oracle *oracle) {
    for (size_t i = 0; i < oracle->page_count; i++)
        if (!is_used(oracle, oracle->pages[i].handle)) wrong(oracle, "a page that no live block is on did not go back");
}

uint64_t oracle_live_bytes(const struct paged_oracle *oracle) {
    uint64_t sum = 0;
    for (size_t i = 0; i < oracle->live_count; i++) sum += oracle->live[i].size_bytes;
    return sum;
}

uint64_t oracle_page_bytes(const struct paged_oracle *oracle) {
    uint64_t sum = 0;
    for (size_t i = 0; i < oracle->page_count; i++) sum += oracle->pages[i].size_bytes;
    return sum;
}
