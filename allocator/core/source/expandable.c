// Expandable segments. Address space is reserved once per segment. Pages are created, mapped and opened to devices one by one, as in
// PyTorch, so that any run of free pages can be returned later. Page positions count from the segment's base.
#include "base/invariant.h"
#include "core/device.h"
#include "core/hole_runs.h"
#include "core/share/share.h"
#include "core/source/source_ops.h"

// Gets the class of a stream, or an empty name.
static void class_of(struct vr_classes *classes, uint64_t stream, char *name) {
    name[0] = '\0';
    vr_mutex_lock(&classes->mutex);
    for (size_t i = 0; i < classes->count; i++) {
        if (classes->items[i].stream == stream) memcpy(name, classes->items[i].name, VR_CLASS_NAME);
    }
    vr_mutex_unlock(&classes->mutex);
}

static struct vr_reserve wanted_reserve(const struct vr_device *device, uint64_t stream) {
    const struct vr_options *options = &device->options;
    char name[VR_CLASS_NAME];
    if (options->reserve_class_count != 0) class_of(&device->allocator->classes, stream, name);
    for (uint32_t i = 0; i < options->reserve_class_count; i++) {
        if (strcmp(options->reserve_classes[i].name, name) == 0) return options->reserve_classes[i].reserve;
    }
    return options->expandable_reserve;
}

static uint64_t reserve_bytes_of(const struct vr_device *device, uint64_t stream, uint64_t page_size) {
    const uint64_t full = device->total_bytes + device->total_bytes / 8;
    const struct vr_reserve wanted = wanted_reserve(device, stream);
    uint64_t bytes = full;
    if (wanted.bytes != 0) bytes = wanted.bytes;
    if (wanted.fraction > 0) bytes = wanted.fraction < 1.125 ? (uint64_t)((double)device->total_bytes * wanted.fraction) : full;
    return vr_round_up(bytes < full ? bytes : full, page_size);
}

static uint64_t page_size_of(const struct vr_device *device, bool small) {
    return small ? VR_SMALL_SEGMENT : vr_round_up(device->options.large_segment_bytes, device->physical.granularity);
}

static vr_cu_result give_range(struct vram_driver *driver, uint64_t address, uint64_t size) {
    return vr_cu(driver, mem_address_free, address, size);
}

void vr_drop_range(struct vr_device *device, uint64_t address, uint64_t size) {
    (void)vr_give_back(device, &(struct vr_driver_memory){give_range, address, size});
}

static vr_cu_result give_handle(struct vram_driver *driver, uint64_t handle, uint64_t size) {
    (void)size;
    return vr_cu(driver, mem_release, handle);
}

void vr_drop_handle(struct vr_device *device, uint64_t handle) {
    (void)vr_give_back(device, &(struct vr_driver_memory){give_handle, handle, 0});
}

static vr_cu_result give_mapping(struct vram_driver *driver, uint64_t address, uint64_t size) {
    return vr_cu(driver, mem_unmap, address, size);
}

// A mapping that the driver keeps also keeps its memory, even if the handle was released, and nothing else can be mapped there.
bool vr_drop_mapping(struct vr_device *device, uint64_t address, uint64_t size) {
    return vr_give_back(device, &(struct vr_driver_memory){give_mapping, address, size}) == VRAM_OK;
}

void vr_orphaned_mappings_retry(struct vr_device *device) { vr_orphans_retry(device, give_mapping); }

// A power of two: replays reserve by the device's memory size, and so need tables of only a few lengths.
static size_t page_table_bytes(const struct vr_segment *facts) {
    const size_t bytes = (size_t)(facts->size / facts->page_size) * sizeof *facts->pages;
    return vr_is_power_of_2(bytes) ? bytes : (size_t)2 << vr_log2_floor(bytes);
}

enum vram_status vr_expandable_reserve(struct vr_shard *shard, bool small, uint64_t reserve_bytes, uint32_t *segment) {
    struct vr_device *device = shard->device;
    struct vr_segment facts = {.page_size = page_size_of(device, small), .source = &vr_source_expandable};
    facts.size = vr_round_up(reserve_bytes, facts.page_size);
    const vr_cu_result result = vr_cu(device->allocator->driver, mem_address_reserve, &facts.address, facts.size, 0, 0, 0);
    VR_TRY(result == VR_CU_OUT_OF_MEMORY ? VRAM_OUT_OF_MEMORY : vr_driver_status(result));
    void *pages = NULL;
    // The address map's rule of one map per partly covered MiB fails for ranges that are joined and cut, so no MiB may be partly covered.
    enum vram_status status = facts.address % VR_MIB == 0 ? vr_os_reserve(page_table_bytes(&facts), &pages) : VRAM_UNSUPPORTED;
    if (status == VRAM_OK) {
        facts.pages = pages;
        status = vr_segment_register(shard, small, &facts, segment);
        if (status != VRAM_OK) vr_os_unreserve(pages, page_table_bytes(&facts));
    }
    if (status != VRAM_OK) {
        vr_drop_range(device, facts.address, facts.size);
        return status;
    }
    vr_hole_insert(shard, vr_segment_at(device->allocator, *segment)->first);
    return VRAM_OK;
}

static void unreserve(struct vr_shard *shard, uint32_t segment) {
    struct vr_device *device = shard->device;
    vr_exported_release(vr_segment_at(device->allocator, segment));
    const struct vr_segment facts = *vr_segment_at(device->allocator, segment);
    vr_hole_remove(shard, facts.first);
    vr_segment_forget(shard, segment);
    vr_os_unreserve_touched(facts.pages, page_table_bytes(&facts), 0); // nothing is mapped
    vr_drop_range(device, facts.address, facts.size);
}

// --- mapping --------------------------------------------------------------------------------------------------------------

static enum vram_status create_pages(struct vr_device *device, struct vr_segment *segment, uint64_t first, uint64_t end) {
    const struct vr_cu_allocation_prop prop = vr_device_allocation_prop(device);
    for (uint64_t page = first; page < end; page++) {
        const vr_cu_result result = vr_cu(device->allocator->driver, mem_create, &segment->pages[page], segment->page_size, &prop, 0);
        if (result == VR_CU_SUCCESS) continue;
        while (page-- > first) {
            vr_drop_handle(device, segment->pages[page]);
            segment->pages[page] = 0;
        }
        return result == VR_CU_OUT_OF_MEMORY ? VRAM_OUT_OF_MEMORY : VRAM_DRIVER;
    }
    return VRAM_OK;
}

static enum vram_status map_and_allow(struct vr_device *device, const struct vr_segment *segment, uint64_t first, uint64_t end,
                                      uint64_t *mapped) {
    struct vram_driver *driver = device->allocator->driver;
    const uint64_t base = segment->address + first * segment->page_size;
    for (*mapped = first; *mapped < end; ++*mapped) {
        const uint64_t address = segment->address + *mapped * segment->page_size;
        VR_TRY(vr_driver_status(vr_cu(driver, mem_map, address, segment->page_size, 0, segment->pages[*mapped], 0)));
    }
    struct vr_cu_access_desc access[VRAM_MAX_DEVICES];
    uint64_t count = 0;
    vr_access_list(device, access, &count);
    return vr_driver_status(vr_cu(driver, mem_set_access, base, (end - first) * segment->page_size, access, count));
}

// Maps pages [first, end) of a segment, none of which is mapped. All or nothing.
static enum vram_status map_pages(struct vr_device *device, struct vr_segment *segment, uint64_t first, uint64_t end) {
    struct vram_allocator *allocator = device->allocator;
    const uint64_t base = segment->address + first * segment->page_size, size = (end - first) * segment->page_size;
    vr_orphaned_mappings_retry(device); // a mapping that the driver kept may be in this range
    VR_TRY(vr_address_map_prepare(&allocator->addresses, base, size, segment->small));
    enum vram_status status = create_pages(device, segment, first, end);
    uint64_t mapped = first;
    if (status == VRAM_OK) {
        status = map_and_allow(device, segment, first, end, &mapped);
        if (status != VRAM_OK) {
            for (uint64_t page = first; page < end; page++) {
                const uint64_t address = segment->address + page * segment->page_size;
                if (page < mapped) vr_drop_mapping(device, address, segment->page_size);
                vr_drop_handle(device, segment->pages[page]);
                segment->pages[page] = 0;
            }
        }
    }
    if (status != VRAM_OK) vr_address_map_retire(&allocator->addresses, base, size, segment->small);
    return status;
}

// Maps the low `size` bytes (rounded up to pages) of a hole and merges. *block: the resulting free block, in the index.
static enum vram_status map_hole(struct vr_shard *shard, uint32_t hole, uint64_t size, uint32_t *block) {
    struct vr_device *device = shard->device;
    struct vr_block *item = vr_block_at(device->allocator, hole);
    struct vr_segment *segment = vr_segment_at(device->allocator, item->segment);
    const uint64_t wanted = vr_round_up(size, segment->page_size), first = (item->address - segment->address) / segment->page_size;
    assert(item->state == VR_HOLE && size != 0);
    VR_TRY(vr_shard_reserve_records(shard, 1));
    VR_TRY(map_pages(device, segment, first, first + wanted / segment->page_size));
    const uint64_t address = item->address;
    vr_hole_remove(shard, hole);
    if (wanted < item->size) vr_hole_insert(shard, vr_block_split_numbered(shard, hole, wanted));
    *block = vr_pool_merge(shard, hole);
    if (segment->mapped == 0 && shard->owner != NULL) shard->owner->segments++;
    segment->mapped += wanted;
    vr_reserved_add(shard, segment->small, (int64_t)wanted);
    device->stats.num_device_alloc++;
    if (vr_has_listener(device) && segment->stack == 0) segment->stack = vr_current_stack_kept();
    vr_notify_range(shard, VR_RECORD_SEGMENT_MAP, segment, address, wanted);
    return VRAM_OK;
}

enum vram_status vr_expandable_map_at(struct vr_shard *shard, uint32_t hole, uint64_t address, uint64_t size) {
    const struct vr_block *item = vr_block_at(shard->device->allocator, hole);
    uint32_t mapped = 0;
    if (item->address == address) return map_hole(shard, hole, size, &mapped);
    VR_TRY(vr_shard_reserve_records(shard, 2));
    const uint32_t rest = vr_block_split_numbered(shard, hole, address - item->address);
    vr_hole_insert(shard, rest);
    const enum vram_status status = map_hole(shard, rest, size, &mapped);
    if (status == VRAM_OK) return VRAM_OK;
    vr_hole_remove(shard, rest);
    vr_hole_remove(shard, hole);
    vr_block_absorb_next(shard, hole);
    vr_hole_insert(shard, hole);
    return status;
}

// --- growing --------------------------------------------------------------------------------------------------------------

static uint32_t ready_run(const struct vr_shard *shard, bool small, uint64_t rounded) {
    const struct vram_allocator *allocator = shard->device->allocator;
    const uint32_t start = vr_hole_run(shard, small, rounded);
    return vr_is_free(allocator, start) && vr_block_at(allocator, start)->size >= rounded ? start : 0;
}

static enum vram_status find_or_reserve(struct vr_shard *shard, bool small, uint64_t rounded, uint32_t *start) {
    struct vr_device *device = shard->device;
    *start = vr_hole_run(shard, small, rounded);
    if (*start != 0) return VRAM_OK;
    const uint64_t reserve = reserve_bytes_of(device, shard->stream, page_size_of(device, small));
    if (reserve < rounded) return VRAM_OUT_OF_MEMORY;
    uint32_t segment = 0;
    VR_TRY(vr_expandable_reserve(shard, small, reserve, &segment));
    *start = vr_segment_at(device->allocator, segment)->first;
    return VRAM_OK;
}

static uint64_t smaller_of(uint64_t a, uint64_t b) { return a < b ? a : b; }

// A hole has a whole number of pages, so a missing size rounded up to pages never exceeds it.
static enum vram_status grow_expandable(struct vr_shard *shard, bool small, uint64_t rounded, uint32_t *block) {
    struct vram_allocator *allocator = shard->device->allocator;
    uint32_t at = 0;
    VR_TRY(find_or_reserve(shard, small, rounded, &at));
    enum vram_status status = VRAM_OK;
    if (vr_block_at(allocator, at)->state == VR_HOLE) {
        status = map_hole(shard, at, smaller_of(vr_block_at(allocator, at)->size, rounded), &at);
    }
    while (status == VRAM_OK && vr_block_at(allocator, at)->size < rounded) {
        const struct vr_block *have = vr_block_at(allocator, at);
        status = map_hole(shard, have->next, smaller_of(rounded - have->size, vr_block_at(allocator, have->next)->size), &at);
    }
    VR_TRY(status);
    vr_pool_remove(shard, at);
    *block = at;
    return VRAM_OK;
}

// --- shrinking ------------------------------------------------------------------------------------------------------------

// Unmaps pages from `first` on. *end: where it stopped, at the first refusal or at the requested end.
static enum vram_status unmap_pages(struct vr_device *device, struct vr_segment *segment, uint64_t stream, uint64_t first, uint64_t *end) {
    struct vram_driver *driver = device->allocator->driver;
    const uint64_t last = *end;
    *end = first;
    VR_TRY(vr_driver_status(vr_cu(driver, stream_synchronize, stream)));
    for (; *end < last; ++*end) {
        VR_TRY(vr_driver_status(vr_cu(driver, mem_unmap, segment->address + *end * segment->page_size, segment->page_size)));
        vr_exported_forget(segment, *end);
        vr_drop_handle(device, segment->pages[*end]);
        segment->pages[*end] = 0;
    }
    return VRAM_OK;
}

uint32_t vr_hole_join(struct vr_shard *shard, uint32_t hole) {
    const struct vram_allocator *allocator = shard->device->allocator;
    struct vr_block *item = vr_block_at(allocator, hole);
    item->state = VR_HOLE;
    if (item->next != 0 && vr_block_at(allocator, item->next)->state == VR_HOLE) {
        vr_hole_remove(shard, item->next);
        vr_block_absorb_next(shard, hole);
    }
    if (item->previous != 0 && vr_block_at(allocator, item->previous)->state == VR_HOLE) {
        const uint32_t made = hole;
        hole = item->previous;
        vr_hole_remove(shard, hole);
        if (allocator->arena.numbers != NULL) allocator->arena.numbers[hole] = allocator->arena.numbers[made];
        vr_block_absorb_next(shard, hole);
    }
    vr_hole_insert(shard, hole);
    return hole;
}

// Cuts [low, high) out of a free block that is in no index. Inserts the parts before and after it into the index.
uint32_t vr_cut_out(struct vr_shard *shard, uint32_t block, uint64_t low, uint64_t high) {
    const struct vram_allocator *allocator = shard->device->allocator;
    struct vr_block *item = vr_block_at(allocator, block);
    if (item->address < low) {
        // In PyTorch, the part before it is a new block, and the cut-out part keeps the record.
        if (allocator->arena.numbers != NULL) vr_number_split(shard, block);
        const uint32_t rest = vr_block_split(shard, block, low - item->address);
        vr_pool_insert(shard, block);
        block = rest;
        item = vr_block_at(allocator, block);
    }
    if (item->address + item->size > high) vr_pool_insert(shard, vr_block_split_numbered(shard, block, high - item->address));
    return block;
}

// Unmaps the whole pages of a free block in the index. The rest of the block stays free. Frees the reservation when nothing is mapped.
static enum vram_status give_back_pages(struct vr_shard *shard, uint32_t block) {
    struct vr_device *device = shard->device;
    struct vram_allocator *allocator = device->allocator;
    const struct vr_block *item = vr_block_at(allocator, block);
    const uint32_t number = item->segment;
    struct vr_segment *segment = vr_segment_at(allocator, number);
    const uint64_t page = segment->page_size;
    const uint64_t first = (item->address - segment->address + page - 1) / page;
    uint64_t end = (item->address + item->size - segment->address) / page;
    assert(item->state == VR_FREE && segment->expandable);
    if (first >= end) return VRAM_OK;
    VR_TRY(vr_shard_reserve_records(shard, 2));
    const enum vram_status status = unmap_pages(device, segment, shard->stream, first, &end);
    if (first == end) return status;
    const uint64_t low = segment->address + first * page, high = segment->address + end * page;
    vr_pool_remove(shard, block);
    (void)vr_hole_join(shard, vr_cut_out(shard, block, low, high));
    vr_address_map_retire(&allocator->addresses, low, high - low, segment->small);
    segment->mapped -= high - low;
    vr_reserved_add(shard, segment->small, -(int64_t)(high - low));
    device->stats.num_device_free++;
    vr_notify_range(shard, VR_RECORD_SEGMENT_UNMAP, segment, low, high - low);
    if (segment->mapped == 0 && shard->owner != NULL) shard->owner->segments--;
    if (segment->mapped == 0) unreserve(shard, number);
    return status;
}

// --- sleep ----------------------------------------------------------------------------------------------------------------

// Books that the memory of pages [first, end) went away or came back.
static void book_sleep(struct vr_device *device, struct vr_segment *segment, bool asleep, uint64_t first, uint64_t end) {
    struct vr_shard *shard = device->allocator->shards[segment->shard];
    const int64_t bytes = (int64_t)((end - first) * segment->page_size);
    if (first == end) return;
    segment->away += (uint64_t)(asleep ? bytes : -bytes);
    vr_reserved_add(shard, segment->small, asleep ? -bytes : bytes);
    *(asleep ? &device->stats.num_device_free : &device->stats.num_device_alloc) += 1;
    vr_notify_vacant(shard, asleep, segment, segment->address + first * segment->page_size, (uint64_t)bytes);
}

static void vacate_pages(struct vr_device *device, struct vr_segment *segment, uint64_t *held) {
    uint64_t left = segment->mapped - segment->away;
    uint64_t first = 0, end = 0; // pages unmapped but not reported yet
    for (uint64_t page = 0; left != 0; page++) {
        if (segment->pages[page] == 0) continue;
        const uint64_t address = segment->address + page * segment->page_size;
        left -= segment->page_size;
        if (vr_cu(device->allocator->driver, mem_unmap, address, segment->page_size) != VR_CU_SUCCESS) {
            *held += segment->page_size;
            segment->uncertain = 1;
            continue;
        }
        vr_exported_forget(segment, page);
        vr_drop_handle(device, segment->pages[page]);
        segment->pages[page] = 0;
        if (page != end) {
            book_sleep(device, segment, true, first, end);
            first = page;
        }
        end = page + 1;
    }
    book_sleep(device, segment, true, first, end);
}

// Provides memory for one run of pages without memory.
static enum vram_status populate_run(struct vr_device *device, struct vr_segment *segment, uint64_t first, uint64_t end) {
    VR_TRY(create_pages(device, segment, first, end));
    uint64_t mapped = 0;
    const enum vram_status status = map_and_allow(device, segment, first, end, &mapped);
    for (uint64_t page = mapped; page < end; page++) {
        vr_drop_handle(device, segment->pages[page]);
        segment->pages[page] = 0;
    }
    book_sleep(device, segment, false, first, mapped);
    if (status != VRAM_OK) segment->uncertain = 1;
    return status;
}

static enum vram_status allow_all(struct vr_device *device, const struct vr_segment *segment, uint64_t first, uint64_t end) {
    struct vr_cu_access_desc access[VRAM_MAX_DEVICES];
    uint64_t count = 0;
    vr_access_list(device, access, &count);
    const uint64_t address = segment->address + first * segment->page_size;
    return vr_driver_status(vr_cu(device->allocator->driver, mem_set_access, address, (end - first) * segment->page_size, access, count));
}

static enum vram_status populate_pages(struct vr_device *device, struct vr_segment *segment, uint64_t address, uint64_t size) {
    const uint64_t first = (address - segment->address) / segment->page_size;
    const uint64_t end = (address + size - segment->address + segment->page_size - 1) / segment->page_size;
    for (uint64_t page = first; page < end;) {
        uint64_t last = page;
        while (last < end && segment->pages[last] == 0) last++;
        if (last > page) VR_TRY(populate_run(device, segment, page, last));
        page = last + 1;
    }
    return segment->uncertain ? allow_all(device, segment, first, end) : VRAM_OK;
}

// --- the table ------------------------------------------------------------------------------------------------------------

static void drop_expandable(struct vr_device *device, struct vr_segment *segment) {
    uint64_t left = segment->mapped - segment->away, page = 0;
    for (; left > 0; page++) {
        if (segment->pages[page] == 0) continue;
        left -= segment->page_size;
        vr_exported_forget(segment, page);
        vr_drop_mapping(device, segment->address + page * segment->page_size, segment->page_size);
        vr_drop_handle(device, segment->pages[page]);
    }
    vr_exported_release(segment);
    vr_drop_range(device, segment->address, segment->size);
    vr_os_unreserve_touched(segment->pages, page_table_bytes(segment), (size_t)page * sizeof *segment->pages);
}

// Gives the peer access to every run of mapped pages.
static enum vram_status allow_peer(struct vr_device *device, const struct vr_segment *segment, uint32_t peer) {
    const struct vr_cu_access_desc access = vr_access_of(peer);
    const uint64_t pages = segment->size / segment->page_size;
    for (uint64_t page = 0; page < pages;) {
        uint64_t end = page;
        while (end < pages && segment->pages[end] != 0) end++;
        const uint64_t address = segment->address + page * segment->page_size, size = (end - page) * segment->page_size;
        if (end > page) VR_TRY(vr_driver_status(vr_cu(device->allocator->driver, mem_set_access, address, size, &access, 1)));
        page = end + 1;
    }
    return VRAM_OK;
}

static enum vram_status check_expandable(const struct vram_allocator *allocator, const struct vr_segment *segment,
                                         struct vram_error *error) {
    for (uint32_t at = segment->first; at != 0; at = vr_block_at(allocator, at)->next) {
        const struct vr_block *block = vr_block_at(allocator, at);
        const uint64_t first = (block->address - segment->address) / segment->page_size;
        const uint64_t end = (block->address + block->size - segment->address + segment->page_size - 1) / segment->page_size;
        const bool hole = block->state == VR_HOLE;
        for (uint64_t page = first; page < end && (!hole || page < first + 8); page++) {
            VR_INVARIANT(segment->vacant ? !hole || segment->pages[page] == 0 : (segment->pages[page] == 0) == hole,
                         "a page and the block on it disagree on whether the page is mapped", block->address);
            VR_INVARIANT(!hole || segment->exported == NULL || segment->exported[page].serial == 0, "an unmapped page is still exported",
                         block->address);
        }
    }
    return VRAM_OK;
}

const struct vr_source_ops vr_source_expandable = {
    .name = "expandable segments",
    .expandable = true,
    .sharing = VR_SHARING_PAGES,
    .grow = grow_expandable,
    .ready = ready_run,
    .give_back = give_back_pages,
    .abandon = unreserve,
    .drop = drop_expandable,
    .allow = allow_peer,
    .check = check_expandable,
    .vacate = vacate_pages,
    .populate = populate_pages,
};
