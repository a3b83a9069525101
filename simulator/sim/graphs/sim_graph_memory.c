// sim_graph_memory.c: memory that a captured stream asked for. The address is the graph's for good; memory stands behind it from the launch
// that allocates it to whatever frees it: a node of the graph, a free outside of it, or the next launch with AUTO_FREE_ON_LAUNCH.
//
// Reads and writes of the address are allowed at any time: that a launch has not allocated it is found out at frees and launches only.
#include "sim/graphs/sim_graphs.h"

static struct vr_sim_graph_memory *memory_of(const struct vr_sim *sim, uint64_t memory) {
    return (struct vr_sim_graph_memory *)(void *)vr_sim_slots_item(&sim->graph_memories, (uint32_t)memory);
}

struct vr_sim_graph_memory *vr_sim_graph_memory_at(const struct vr_sim *sim, uint64_t address) {
    const struct vr_sim_range *range = vr_sim_ranges_at(&sim->spaces, address);
    return range == NULL || range->kind != VR_SIM_GRAPH_MEMORY ? NULL : memory_of(sim, range->owner);
}

// What it holds is gone.
static void drop_graph_memory(struct vr_sim *sim, const struct vr_sim_graph_memory *memory) {
    if (vr_sim_keeps(sim)) vr_sim_back_drop(sim, vr_sim_ranges_at(&sim->spaces, memory->address), memory->address, memory->span);
}

// Takes the address away once nothing needs it.
static void collect_graph_memory(struct vr_sim *sim, struct vr_sim_graph_memory *memory) {
    if (memory->references > 0 || memory->live) return;
    drop_graph_memory(sim, memory);
    vr_sim_back_remove(sim, memory->address, memory->span);
    vr_sim_ranges_remove(&sim->spaces, memory->address);
    vr_sim_place_freed(sim, memory->device, memory->address, memory->span);
    vr_sim_slots_give(&sim->graph_memories, vr_sim_slots_index(&sim->graph_memories, memory));
}

static void end_life(struct vr_sim *sim, struct vr_sim_graph_memory *memory) {
    memory->live = false;
    sim->devices[memory->device].used_bytes -= memory->span;
    drop_graph_memory(sim, memory);
    collect_graph_memory(sim, memory);
}

void vr_sim_graph_memory_reference(struct vr_sim *sim, const struct vr_sim_work *work) {
    if (work->type == VR_CU_GRAPH_NODE_TYPE_MEM_ALLOC) memory_of(sim, work->memory)->references++;
}

void vr_sim_graph_memory_unreference(struct vr_sim *sim, const struct vr_sim_work *work) {
    if (work->type != VR_CU_GRAPH_NODE_TYPE_MEM_ALLOC) return;
    memory_of(sim, work->memory)->references--;
    collect_graph_memory(sim, memory_of(sim, work->memory));
}

// --- making and freeing ---------------------------------------------------------------------------------------------

vr_cu_result vr_sim_graph_memory_make(struct vr_sim *sim, uint32_t device, uint64_t size_bytes, uint32_t *index, uint64_t *address) {
    if (size_bytes > VR_SIM_LIMIT) return VR_CU_OUT_OF_MEMORY;
    if (vr_sim_slots_take(&sim->graph_memories, index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_place place = {0};
    vr_cu_result result = vr_sim_place_chunk(sim, device, vr_round_up(size_bytes, VR_SIM_GRANULARITY), &place);
    if (result == VR_CU_SUCCESS) result = vr_sim_back_place(sim, &place, true);
    if (result == VR_CU_SUCCESS) {
        const struct vr_sim_range range = {.base = place.address,
                                           .span = place.span,
                                           .size_bytes = size_bytes,
                                           .kind = VR_SIM_GRAPH_MEMORY,
                                           .owner = *index,
                                           .read_mask = vr_sim_back_keep(sim, place.span)};
        if (vr_sim_ranges_insert(&sim->spaces, &range) != VRAM_OK) {
            vr_sim_back_remove(sim, place.address, place.span);
            vr_sim_place_lost(sim, &place);
            result = VR_CU_OUT_OF_MEMORY;
        }
    }
    if (result != VR_CU_SUCCESS) {
        vr_sim_slots_give(&sim->graph_memories, *index);
        return result;
    }
    struct vr_sim_graph_memory *made = memory_of(sim, *index);
    made->device = device;
    made->address = place.address;
    made->span = place.span;
    made->size_bytes = size_bytes;
    *address = place.address;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_graph_memory_free(struct vr_sim *sim, uint64_t address) {
    struct vr_sim_graph_memory *memory = vr_sim_graph_memory_at(sim, address);
    if (memory == NULL || !memory->live || memory->freed_here) return VR_CU_INVALID_VALUE;
    end_life(sim, memory);
    return VR_CU_SUCCESS;
}

// --- executable graphs ----------------------------------------------------------------------------------------------

static bool allocates(const struct vr_sim_step *step) { return step->work.type == VR_CU_GRAPH_NODE_TYPE_MEM_ALLOC; }

vr_cu_result vr_sim_exec_claim(struct vr_sim *sim, const struct vr_sim_exec *exec) {
    for (size_t i = 0; i < exec->step_count; i++)
        if (allocates(&exec->steps[i]) && memory_of(sim, exec->steps[i].work.memory)->busy) return VR_CU_NOT_SUPPORTED;
    for (size_t i = 0; i < exec->step_count; i++) {
        vr_sim_graph_memory_reference(sim, &exec->steps[i].work);
        if (allocates(&exec->steps[i])) memory_of(sim, exec->steps[i].work.memory)->busy = true;
    }
    return VR_CU_SUCCESS;
}

void vr_sim_exec_disclaim(struct vr_sim *sim, const struct vr_sim_exec *exec) {
    for (size_t i = 0; i < exec->step_count; i++) {
        if (allocates(&exec->steps[i])) memory_of(sim, exec->steps[i].work.memory)->busy = false;
        vr_sim_graph_memory_unreference(sim, &exec->steps[i].work);
    }
}

vr_cu_result vr_sim_exec_allocate(struct vr_sim *sim, const struct vr_sim_exec *exec) {
    uint64_t needed[VR_SIM_MAX_DEVICES] = {0};
    for (size_t i = 0; i < exec->step_count; i++) {
        if (!allocates(&exec->steps[i])) continue;
        const struct vr_sim_graph_memory *memory = memory_of(sim, exec->steps[i].work.memory);
        if (memory->live && !exec->auto_free) return VR_CU_INVALID_VALUE;
        if (!memory->live) needed[memory->device] += memory->span;
    }
    for (uint32_t i = 0; i < sim->options.device_count; i++)
        if (!vr_sim_has_room(&sim->devices[i], needed[i])) return VR_CU_OUT_OF_MEMORY;
    for (size_t i = 0; i < exec->step_count; i++) {
        if (!allocates(&exec->steps[i])) continue;
        struct vr_sim_graph_memory *memory = memory_of(sim, exec->steps[i].work.memory);
        if (!memory->live) sim->devices[memory->device].used_bytes += memory->span;
        memory->live = true;
    }
    return VR_CU_SUCCESS;
}

void vr_sim_exec_free(struct vr_sim *sim, const struct vr_sim_exec *exec) {
    for (size_t i = 0; i < exec->step_count; i++)
        if (exec->steps[i].work.type == VR_CU_GRAPH_NODE_TYPE_MEM_FREE) end_life(sim, memory_of(sim, exec->steps[i].work.memory));
}

bool vr_sim_exec_has_memory(const struct vr_sim_exec *exec) {
    bool has = false;
    for (size_t i = 0; i < exec->step_count; i++) has = has || allocates(&exec->steps[i]);
    return has;
}

uint64_t vr_sim_graph_memory_bytes(const struct vr_sim *sim, uint32_t device) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < sim->graph_memories.used; i++) {
        const struct vr_sim_graph_memory *memory = memory_of(sim, i);
        if (memory->slot.live && memory->live && memory->device == device) sum += memory->span;
    }
    return sum;
}
