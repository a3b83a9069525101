// Execution of work: copies, sets and memory operations, and how much is known about the bytes they write.
#include "sim/graphs/sim_graphs.h"
#include "sim/memory/sim_pools.h"
#include "sim/streams/sim_callbacks.h"
#include "sim/streams/sim_guards.h"
#include "sim/streams/sim_memory_ops.h"
#include "vram/sim.h"

struct vr_sim_results *vr_sim_results_here(struct vr_sim *sim) {
    struct vr_sim_thread *thread = vr_sim_this_thread(sim);
    return thread == NULL ? NULL : &thread->results;
}

void vr_sim_answers_say(struct vr_sim *sim, const int64_t *numbers, unsigned count, enum vr_sim_level level) {
    struct vr_sim_results *results = vr_sim_results_here(sim);
    if (results == NULL) return;
    results->level = level == VR_SIM_KNOWN ? VR_SIM_KNOWN : VR_SIM_LIKELY;
    results->count = count < VR_SIM_ANSWERS_MOST ? count : VR_SIM_ANSWERS_MOST;
    results->next = 0;
    for (uint32_t i = 0; i < results->count; i++) results->numbers[i] = numbers[i];
}

static bool is_number(uint64_t bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8; }

// Called after a copy: replaces a single number copied to the host by the thread's next answer, if there is one.
static void sim_answers_give(struct vr_sim *sim, const struct vr_sim_work *work) {
    struct vr_sim_results *results = vr_sim_results_here(sim);
    const bool one = work->type == VR_CU_GRAPH_NODE_TYPE_MEMCPY && work->rows == 1 && work->planes == 1 && is_number(work->width_bytes);
    if (VR_LIKELY(results == NULL || results->next >= results->count) || !one) return;
    if (vr_sim_ranges_holding(&sim->spaces, work->from) == NULL || vr_sim_ranges_holding(&sim->spaces, work->to) != NULL) return;
    const int64_t number = results->numbers[results->next++];
    memcpy((void *)(uintptr_t)work->to, &number, (size_t)work->width_bytes); // little-endian
    sim->read = (struct vr_sim_read){.counted = sim->read.counted};
    if (results->level == VR_SIM_KNOWN) return;
    sim->read.passed_bytes = work->width_bytes;
    sim->read.gaps[0].bytes = (unsigned char *)(uintptr_t)work->to;
    sim->read.gaps[0].size_bytes = work->width_bytes;
    sim->read.gap_count = 1;
}

void vr_sim_shields_add(struct vr_sim *sim, uint64_t address, uint64_t size_bytes) {
    struct vr_sim_results *results = vr_sim_results_here(sim);
    if (results == NULL || results->shield_count >= VR_SIM_SHIELDS_MOST) return;
    results->shields[results->shield_count].from = address;
    results->shields[results->shield_count++].end = address + size_bytes;
}

void vr_sim_shields_cut(struct vr_sim *sim, uint32_t count) {
    struct vr_sim_results *results = vr_sim_results_here(sim);
    if (results != NULL && count < results->shield_count) results->shield_count = count;
}

bool vr_sim_is_shielded(struct vr_sim *sim, uint64_t address) {
    const struct vr_sim_results *results = vr_sim_results_here(sim);
    for (uint32_t i = 0; results != NULL && i < results->shield_count; i++)
        if (address >= results->shields[i].from && address < results->shields[i].end) return true;
    return false;
}

bool vr_sim_computes(struct vr_sim *sim) {
    const struct vr_sim_results *results = vr_sim_results_here(sim);
    return results != NULL && results->shield_count > 0;
}

void vr_sim_captured_note(struct vr_sim *sim, uint64_t address, uint64_t size_bytes) {
    if (VR_GROW(sim, captured, sim->captured_count + 1) != VRAM_OK) return;
    sim->captured[sim->captured_count++] = (struct vr_sim_captured){.address = address, .size_bytes = size_bytes};
}

size_t vr_sim_captured_take(struct vr_sim *sim, uint64_t *addresses, uint64_t *sizes, size_t most) {
    sim->captured_asked = true;
    const size_t count = most == 0 || most > sim->captured_count ? sim->captured_count : most;
    for (size_t i = 0; most > 0 && i < count; i++) {
        addresses[i] = sim->captured[i].address;
        sizes[i] = sim->captured[i].size_bytes;
    }
    sim->captured_count -= count;
    if (sim->captured_count > 0) memmove(sim->captured, sim->captured + count, sim->captured_count * sizeof *sim->captured);
    return count;
}

// ---- Writes of values as sets of four bytes.

uint32_t vr_sim_op_works(const struct vr_cu_mem_op *op, uint32_t device, struct vr_sim_work works[2]) {
    const bool wide = op->operation == VR_CU_STREAM_MEM_OP_WRITE_VALUE_64;
    if (!wide && op->operation != VR_CU_STREAM_MEM_OP_WRITE_VALUE_32) return 0;
    for (uint32_t i = 0; i < (wide ? 2u : 1u); i++) // lower half first
        works[i] = (struct vr_sim_work){.type = VR_CU_GRAPH_NODE_TYPE_MEMSET,
                                        .device = device,
                                        .to = op->address + 4 * i,
                                        .width_bytes = 4,
                                        .rows = 1,
                                        .planes = 1,
                                        .value = (uint32_t)(op->value >> (32 * i)),
                                        .element_bytes = 4};
    return wide ? 2 : 1;
}

// ---- Execution of work of streams and graphs. Bytes move during the call if there are any; ranges are checked in every mode.

static bool mappings_allow(const struct vr_sim *sim, uint64_t address, uint64_t end, uint32_t device, bool write) {
    const uint64_t bit = (uint64_t)1 << device;
    while (address < end) {
        const struct vr_sim_range *mapping = vr_sim_ranges_holding(&sim->mappings, address);
        if (mapping == NULL || ((write ? mapping->write_mask : mapping->read_mask) & bit) == 0) return false;
        address = vr_sim_range_end(mapping);
    }
    return true;
}

bool vr_sim_is_memory(const struct vr_sim *sim, uint64_t address, uint64_t size_bytes, uint32_t device, bool write, bool *host) {
    if (host != NULL) *host = false;
    if (address == 0 || address > UINT64_MAX - size_bytes) return false;
    const struct vr_sim_range *range = vr_sim_ranges_holding(&sim->spaces, address);
    if (range == NULL) {
        const bool far = !vr_sim_is_near(&sim->allocated, address) && !vr_sim_is_near(&sim->reserved, address);
        if (host != NULL) *host = far;
        return far;
    }
    if (range->kind == VR_SIM_RESERVATION) return mappings_allow(sim, address, address + size_bytes, device, write);
    if (range->kind == VR_SIM_POOL_IMPORT && !vr_sim_pool_allows(sim, (uint32_t)range->owner, device, write)) return false;
    if (range->kind == VR_SIM_CHUNK) return vr_sim_chunk_allows(sim, range, address, size_bytes, device, write);
    return address - range->base <= range->size_bytes && size_bytes <= range->size_bytes - (address - range->base);
}

bool vr_sim_is_pinned(const struct vr_sim *sim, uint64_t address, uint64_t size_bytes) {
    const struct vr_sim_range *range = vr_sim_ranges_holding(&sim->hosts, address);
    return range != NULL && size_bytes <= vr_sim_range_end(range) - address;
}

bool vr_sim_is_reached(const struct vr_sim *sim, uint64_t address, uint64_t size_bytes, uint32_t device, bool write) {
    bool host;
    if (!vr_sim_is_memory(sim, address, size_bytes, device, write, &host)) return false;
    return !host || vr_sim_is_pinned(sim, address, size_bytes);
}

struct vr_sim_work vr_sim_copy_work(uint64_t to, uint64_t from, uint64_t size_bytes) {
    return (struct vr_sim_work){
        .type = VR_CU_GRAPH_NODE_TYPE_MEMCPY, .to = to, .from = from, .width_bytes = size_bytes, .rows = 1, .planes = 1};
}

struct vr_sim_work vr_sim_set_work(uint64_t address, uint8_t value, uint64_t size_bytes) {
    return (struct vr_sim_work){.type = VR_CU_GRAPH_NODE_TYPE_MEMSET,
                                .to = address,
                                .width_bytes = size_bytes,
                                .rows = 1,
                                .planes = 1,
                                .value = value,
                                .element_bytes = 1};
}

static bool is_bytes(const struct vr_sim_work *work) {
    return work->type == VR_CU_GRAPH_NODE_TYPE_MEMCPY || work->type == VR_CU_GRAPH_NODE_TYPE_MEMSET;
}

// Gets the distance from the first byte to the last of planes of rows. Returns false if it does not fit into 64 bits.
static bool extent_of(const struct vr_sim_work *work, uint64_t pitch, uint64_t plane, uint64_t *bytes) {
    uint64_t rows, planes;
    if (!vr_mul_u64(work->rows - 1, pitch, &rows) || !vr_mul_u64(work->planes - 1, plane, &planes)) return false;
    return vr_add_u64(rows, planes, bytes) && vr_add_u64(*bytes, work->width_bytes, bytes);
}

static bool has_bytes(const struct vr_sim *sim, uint64_t address) {
    return sim->file >= 0 || vr_sim_ranges_holding(&sim->spaces, address) == NULL;
}

// Returns whether unregistered host memory is mapped. Only the operating system knows; it is queried only if bytes move.
static bool is_mapped(const struct vr_sim *sim, const struct vr_sim_work *work, uint64_t address, uint64_t size_bytes) {
    if (vr_sim_is_pinned(sim, address, size_bytes) || !has_bytes(sim, work->to) || !has_bytes(sim, work->from)) return true;
    return vr_os_is_mapped(address, address + size_bytes);
}

static bool is_source(const struct vr_sim *sim, const struct vr_sim_work *work) {
    uint64_t bytes;
    bool host;
    if (!extent_of(work, work->from_pitch, work->from_plane, &bytes)) return false;
    if (work->from_device) return vr_sim_is_reached(sim, work->from, bytes, work->device, false);
    return vr_sim_is_memory(sim, work->from, bytes, work->device, false, &host) && (!host || is_mapped(sim, work, work->from, bytes));
}

bool vr_sim_work_is_valid(const struct vr_sim *sim, const struct vr_sim_work *work) {
    if (!is_bytes(work)) return true;
    if (work->width_bytes == 0 || work->rows == 0 || work->planes == 0) return true;
    uint64_t bytes;
    bool host;
    const bool set = work->type == VR_CU_GRAPH_NODE_TYPE_MEMSET;
    if (!extent_of(work, work->to_pitch, work->to_plane, &bytes)) return false;
    if (set || work->to_device) return vr_sim_is_reached(sim, work->to, bytes, work->device, true) && (set || is_source(sim, work));
    if (!vr_sim_is_memory(sim, work->to, bytes, work->device, true, &host)) return false;
    return (!host || is_mapped(sim, work, work->to, bytes)) && is_source(sim, work);
}

static void set_row(uint64_t to, const struct vr_sim_work *work) {
    if (work->element_bytes == 1) {
        memset((void *)(uintptr_t)to, (int)(work->value & 0xff), (size_t)work->width_bytes);
        return;
    }
    for (uint64_t at = 0; at < work->width_bytes; at += work->element_bytes) // little-endian: the lower bytes come first
        memcpy((void *)(uintptr_t)(to + at), &work->value, work->element_bytes);
}

// Repeats the element to four bytes.
static uint32_t pattern_of(const struct vr_sim_work *work) {
    if (work->element_bytes == 1) return (work->value & 0xff) * 0x01010101u;
    return work->element_bytes == 2 ? (work->value & 0xffff) * 0x00010001u : work->value;
}

// Returns whether the copy's contents are kept. With bytes=none, only copies from the host that are small in all.
static bool is_kept(const struct vr_sim *sim, const struct vr_sim_work *work) {
    uint64_t bytes;
    if (sim->options.bytes != VRAM_SIM_BYTES_NONE) return true;
    return vr_mul_u64(work->width_bytes, work->rows, &bytes) && vr_mul_u64(bytes, work->planes, &bytes) && bytes <= VR_SIM_SMALL_COPY_BYTES;
}

// Returns false if the host is out of memory for contents that are kept.
static bool do_row(struct vr_sim *sim, const struct vr_sim_work *work, uint64_t row, uint64_t plane) {
    const uint64_t bytes = work->width_bytes;
    const bool set = work->type == VR_CU_GRAPH_NODE_TYPE_MEMSET;
    const uint64_t to = work->to + row * work->to_pitch + plane * work->to_plane;
    const uint64_t from = work->from + row * work->from_pitch + plane * work->from_plane;
    if (vr_sim_keeps(sim))
        return set ? vr_sim_transfer_set(sim, to, bytes, pattern_of(work)) : vr_sim_transfer_copy(sim, to, from, bytes, is_kept(sim, work));
    if (set)
        set_row(to, work);
    else
        memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, (size_t)bytes);
    return true;
}

// Reports bytes that were never written. The watcher may replace them, right after the copy and no later.
static void give_values(struct vr_sim *sim) {
    sim->read.counted = sim->counted;
    if (sim->watch != NULL) sim->watch->give(&sim->reader, &sim->read);
    sim->read.gap_count = 0;
}

static vr_cu_result move_bytes(struct vr_sim *sim, const struct vr_sim_work *work) {
    if (work->width_bytes == 0 || !has_bytes(sim, work->to)) return VR_CU_SUCCESS;
    if (work->type == VR_CU_GRAPH_NODE_TYPE_MEMCPY && !has_bytes(sim, work->from)) return VR_CU_SUCCESS;
    for (uint64_t plane = 0; plane < work->planes; plane++)
        for (uint64_t row = 0; row < work->rows; row++)
            if (!do_row(sim, work, row, plane)) return VR_CU_OUT_OF_MEMORY;
    if (sim->options.poison_aliases && work->type == VR_CU_GRAPH_NODE_TYPE_MEMCPY && work->rows == 1 && work->planes == 1)
        vr_sim_poison_aliases(sim, work->to, work->from, work->width_bytes);
    sim_answers_give(sim, work);
    if (sim->read.gap_count > 0) give_values(sim);
    return VR_CU_SUCCESS;
}

static vr_cu_result do_bytes(struct vr_sim *sim, const struct vr_sim_work *work) {
    if (!is_bytes(work)) {
        if (work->function != NULL) work->function(work->argument);
        return VR_CU_SUCCESS;
    }
    if (VR_LIKELY(sim->guard_count == 0)) return move_bytes(sim, work);
    vr_sim_guards_open(sim, work);
    const vr_cu_result result = move_bytes(sim, work);
    vr_sim_guards_close(sim, work);
    return result;
}

// Does the writes of a graph's node; its waits do not hold a launch.
static vr_cu_result do_ops(struct vr_sim *sim, const struct vr_sim_ops_payload *payload, uint32_t device) {
    vr_cu_result result = VR_CU_SUCCESS;
    for (uint32_t i = 0; i < payload->count && result == VR_CU_SUCCESS; i++) {
        struct vr_sim_work works[2];
        const uint32_t count = vr_sim_op_works(&payload->ops[i], device, works);
        for (uint32_t w = 0; w < count && result == VR_CU_SUCCESS; w++)
            if (vr_sim_work_is_valid(sim, &works[w])) result = do_bytes(sim, &works[w]);
    }
    return result;
}

vr_cu_result vr_sim_work_do(struct vr_sim *sim, const struct vr_sim_work *work) {
    if (work->type != VR_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP) return do_bytes(sim, work);
    return do_ops(sim, (const struct vr_sim_ops_payload *)(const void *)work->payload, work->device);
}
