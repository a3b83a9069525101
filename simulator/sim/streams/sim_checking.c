// Passes work, copies and sets of streams to the checker.
#include "sim/streams/sim_checking.h"

void vr_sim_checking_open(struct vr_sim *sim, const struct vr_sim_stream *stream) {
    static const enum vr_check_stream_kind kinds[] = {
        [VR_SIM_STREAM_BLOCKING] = VR_CHECK_BLOCKING,
        [VR_SIM_STREAM_NON_BLOCKING] = VR_CHECK_NON_BLOCKING,
        [VR_SIM_STREAM_LEGACY] = VR_CHECK_LEGACY,
    };
    const uint32_t device = vr_sim_context_find(sim, stream->context)->device;
    vr_check_stream_open(sim->checking->check, stream->serial, stream->context, device, kinds[stream->kind]);
}

// Returns the access to one side of a copy or set. If there are gaps between rows or planes, only the first row is certain.
static struct vr_check_access access_to(const struct vr_sim_work *work, uint64_t address, uint64_t pitch, uint64_t plane,
                                        enum vr_check_effect effect) {
    struct vr_check_access access = {.address = address, .size_bytes = work->width_bytes, .effect = effect};
    const bool dense = (work->rows <= 1 || pitch == work->width_bytes) && (work->planes <= 1 || plane == pitch * work->rows);
    uint64_t bytes;
    access.open = !dense;
    if (dense && vr_mul_u64(work->width_bytes, work->rows, &bytes) && vr_mul_u64(bytes, work->planes, &bytes)) access.size_bytes = bytes;
    return access;
}

size_t vr_sim_work_accesses(const struct vr_sim_work *work, struct vr_check_access accesses[VR_SIM_WORK_ACCESSES]) {
    size_t count = 0;
    const bool copy = work->type == VR_CU_GRAPH_NODE_TYPE_MEMCPY;
    if (!copy && work->type != VR_CU_GRAPH_NODE_TYPE_MEMSET) return 0;
    if (work->width_bytes == 0 || work->rows == 0 || work->planes == 0) return 0;
    if (copy) accesses[count++] = access_to(work, work->from, work->from_pitch, work->from_plane, VR_CHECK_READ);
    accesses[count++] = access_to(work, work->to, work->to_pitch, work->to_plane, VR_CHECK_WRITE);
    return count;
}

// Returns whether the address is of no memory that the driver knows.
static bool is_pageable(const struct vr_sim *sim, uint64_t address) {
    return vr_sim_ranges_holding(&sim->spaces, address) == NULL && vr_sim_ranges_holding(&sim->hosts, address) == NULL;
}

static bool is_of_device(const struct vr_sim *sim, uint64_t address) { return vr_sim_ranges_holding(&sim->spaces, address) != NULL; }

const char *vr_sim_work_name(const struct vr_sim *sim, const struct vr_sim_work *work) {
    static const char *const names[2][2] = {{"a copy on the host", "a copy from the device to the host"},
                                            {"a copy from the host to the device", "a copy on the device"}};
    switch (work->type) {
    case VR_CU_GRAPH_NODE_TYPE_MEMCPY: return names[is_of_device(sim, work->to)][is_of_device(sim, work->from)];
    case VR_CU_GRAPH_NODE_TYPE_MEMSET: return "a memset";
    case VR_CU_GRAPH_NODE_TYPE_HOST: return "a host function";
    default: return "work";
    }
}

// Gets the accesses to memory that the driver knows. Other memory is the program's own: pinned memory may have been there before.
static size_t known_accesses(const struct vr_sim *sim, const struct vr_sim_work *work,
                             struct vr_check_access accesses[VR_SIM_WORK_ACCESSES]) {
    const size_t count = vr_sim_work_accesses(work, accesses);
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_pageable(sim, accesses[i].address)) continue;
        accesses[known] = accesses[i];
        accesses[known++].moves = sim->checking->moving;
    }
    return known;
}

static bool is_of_host(const struct vr_sim *sim, uint64_t address) {
    const struct vr_sim_range *range = vr_sim_ranges_holding(&sim->hosts, address);
    return range != NULL ? range->kind != VR_SIM_HOST_MANAGED : is_pageable(sim, address);
}

// Returns whether even the asynchronous call returns when the work is complete: a copy to pageable memory, or on the host.
static bool is_waited_for(const struct vr_sim *sim, const struct vr_sim_work *work) {
    if (work->type != VR_CU_GRAPH_NODE_TYPE_MEMCPY) return false;
    return is_pageable(sim, work->to) || (is_of_host(sim, work->to) && is_of_host(sim, work->from));
}

void vr_sim_checking_work(struct vr_sim *sim, const struct vr_sim_stream *stream, const struct vr_sim_work *work) {
    struct vr_check *check = sim->checking->check;
    struct vr_check_access accesses[VR_SIM_WORK_ACCESSES];
    const size_t count = known_accesses(sim, work, accesses);
    vr_check_work(check, stream->serial, vr_sim_checking_place(sim, vr_sim_work_name(sim, work)), accesses, count);
    // A host function may hand over to a thread of the program, which then knows that the work before it is complete.
    if (is_waited_for(sim, work) || work->type == VR_CU_GRAPH_NODE_TYPE_HOST) vr_check_host_wait_stream(check, stream->serial);
}

void vr_sim_checking_refused(struct vr_sim *sim, const struct vr_sim_stream *stream, const struct vr_sim_work *work) {
    struct vr_check_access accesses[VR_SIM_WORK_ACCESSES];
    const size_t count = vr_sim_work_accesses(work, accesses);
    const struct vr_check_place place = vr_sim_checking_place(sim, vr_sim_work_name(sim, work));
    for (size_t i = 0; i < count; i++) vr_check_refused(sim->checking->check, stream->serial, place, &accesses[i]);
}
