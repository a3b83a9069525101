// Bus ids and peers: how devices are addressed, and which of them can access each other.
#include <stdio.h>

#include "sim/sim.h"

// ---- Peer access.

bool vr_sim_are_peers(const struct vr_sim *sim, uint32_t device, uint32_t peer) {
    return vr_sim_options_peers(&sim->options, sim->devices[device].ordinal, sim->devices[peer].ordinal);
}

vr_cu_result vr_sim_device_can_access_peer(struct vr_sim *sim, int *can, int device, int peer) {
    if (can == NULL) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, device) || !vr_sim_is_device(sim, peer)) return VR_CU_INVALID_DEVICE;
    *can = vr_sim_are_peers(sim, (uint32_t)device, (uint32_t)peer);
    return VR_CU_SUCCESS;
}

static size_t position_of(const struct vr_sim_context *context, uint64_t peer) {
    size_t at = 0;
    while (at < context->peer_count && context->peers[at] != peer) at++;
    return at;
}

static bool has_peer(const struct vr_sim_context *context, uint64_t peer) { return position_of(context, peer) < context->peer_count; }

// Finds the current context and the context `peer`, which must differ.
static vr_cu_result find_pair(struct vr_sim *sim, uint64_t peer, struct vr_sim_context **context, struct vr_sim_context **other) {
    const vr_cu_result result = vr_sim_current(sim, context);
    if (result != VR_CU_SUCCESS) return result;
    *other = vr_sim_context_find(sim, peer);
    return *other == NULL || (*other)->inactive || *other == *context ? VR_CU_INVALID_CONTEXT : VR_CU_SUCCESS;
}

vr_cu_result vr_sim_ctx_enable_peer_access(struct vr_sim *sim, uint64_t peer, unsigned flags) {
    if (flags != 0) return VR_CU_INVALID_VALUE;
    struct vr_sim_context *context, *other;
    const vr_cu_result result = find_pair(sim, peer, &context, &other);
    if (result != VR_CU_SUCCESS) return result;
    if (!vr_sim_are_peers(sim, context->device, other->device)) return VR_CU_PEER_ACCESS_UNSUPPORTED;
    if (has_peer(context, peer)) return VR_CU_PEER_ACCESS_ALREADY_ENABLED;
    if (VR_GROW(context, peers, context->peer_count + 1) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    context->peers[context->peer_count++] = peer;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_ctx_disable_peer_access(struct vr_sim *sim, uint64_t peer) {
    struct vr_sim_context *context, *other;
    const vr_cu_result result = find_pair(sim, peer, &context, &other);
    if (result != VR_CU_SUCCESS) return result;
    const size_t at = position_of(context, peer);
    if (at == context->peer_count) return VR_CU_PEER_ACCESS_NOT_ENABLED;
    context->peers[at] = context->peers[--context->peer_count];
    return VR_CU_SUCCESS;
}

bool vr_sim_reaches(const struct vr_sim *sim, uint32_t device, const struct vr_sim_range *range) {
    const struct vr_sim_context *owner = vr_sim_context_find(sim, range->owner);
    if (owner == NULL || owner->device == device) return true;
    for (uint32_t i = 0; i < sim->contexts.used; i++) {
        const struct vr_sim_context *context = (const struct vr_sim_context *)(const void *)vr_sim_slots_item(&sim->contexts, i);
        if (context->slot.live && context->device == device && has_peer(context, range->owner)) return true;
    }
    return false;
}

// ---- PCI bus ids, and attributes of pairs of devices.

static int attribute(struct vr_sim *sim, int number, int device) {
    int value = 0;
    return vr_sim_device_get_attribute(sim, &value, number, device) == VR_CU_SUCCESS ? value : 0;
}

struct place {
    unsigned domain, bus, device;
};

static struct place bus_place_of(struct vr_sim *sim, int device) {
    return (struct place){(unsigned)attribute(sim, VR_CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, device),
                          (unsigned)attribute(sim, VR_CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, device),
                          (unsigned)attribute(sim, VR_CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, device)};
}

vr_cu_result vr_sim_device_get_pci_bus_id(struct vr_sim *sim, char *text, int capacity, int device) {
    if (text == NULL || capacity <= 0) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    const struct place place = bus_place_of(sim, device);
    char whole[16];
    const int length = snprintf(whole, sizeof whole, "%04X:%02X:%02X.0", place.domain & 0xffff, place.bus & 0xff, place.device & 0xff);
    if (length >= capacity) return VR_CU_INVALID_VALUE;
    memcpy(text, whole, (size_t)length + 1);
    return VR_CU_SUCCESS;
}

// Reads one hexadecimal number of a PCI bus id, [domain:]bus:device[.function]. Moves *text past at most `digits` digits.
static bool read_hexadecimal(const char **text, unsigned digits, unsigned *number) {
    static const char alphabet[] = "0123456789abcdefABCDEF";
    unsigned value = 0, read = 0;
    for (const char *at; read < digits && **text != '\0' && (at = strchr(alphabet, **text)) != NULL; read++, (*text)++) {
        const unsigned digit = (unsigned)(at - alphabet);
        value = value * 16 + (digit < 16 ? digit : digit - 6);
    }
    *number = value;
    return read > 0;
}

static bool read_place(const char *text, struct place *place) {
    unsigned numbers[3], count = 0, function = 0;
    do {
        if (!read_hexadecimal(&text, 8, &numbers[count++])) return false;
    } while (count < 3 && *text == ':' && *text++ != '\0');
    if (count < 2) return false;
    if (*text == '.' && (text++, !read_hexadecimal(&text, 1, &function))) return false;
    *place = count == 3 ? (struct place){numbers[0], numbers[1], numbers[2]} : (struct place){0, numbers[0], numbers[1]};
    return *text == '\0' && function == 0;
}

vr_cu_result vr_sim_device_get_by_pci_bus_id(struct vr_sim *sim, int *device, const char *text) {
    struct place wanted;
    if (device == NULL || text == NULL || !read_place(text, &wanted)) return VR_CU_INVALID_VALUE;
    for (uint32_t i = 0; i < sim->options.device_count; i++) {
        const struct place place = bus_place_of(sim, (int)i);
        if (place.domain != wanted.domain || place.bus != wanted.bus || place.device != wanted.device) continue;
        *device = (int)i;
        return VR_CU_SUCCESS;
    }
    return VR_CU_INVALID_DEVICE;
}

// Performance rank, access, native atomics and array access; partial atomics since CUDA 13.
vr_cu_result vr_sim_device_get_p2p_attribute(struct vr_sim *sim, int *value, int number, int device, int peer) {
    enum { RANK = 1, ACCESS = 2, ATOMICS = 3, ARRAYS = 4, PARTIAL_ATOMICS = 5 };
    if (value == NULL || number < RANK || number > PARTIAL_ATOMICS) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, device) || !vr_sim_is_device(sim, peer) || device == peer) return VR_CU_INVALID_DEVICE;
    const bool can = vr_sim_are_peers(sim, (uint32_t)device, (uint32_t)peer);
    *value = can && (number == ACCESS || number == ATOMICS || number == ARRAYS);
    return VR_CU_SUCCESS;
}

// Execution affinity (a context on part of the multiprocessors) needs an MPS server, which is not simulated.
vr_cu_result vr_sim_device_get_exec_affinity_support(struct vr_sim *sim, int *value, int type, int device) {
    if (value == NULL || type != 0) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    *value = 0;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_device_get_properties(struct vr_sim *sim, struct vr_cu_device_properties *properties, int device) {
    // CU_DEVICE_ATTRIBUTE_* of each field in order.
    static const int numbers[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    if (properties == NULL) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    int32_t values[VR_COUNT_OF(numbers)];
    for (size_t i = 0; i < VR_COUNT_OF(numbers); i++) values[i] = attribute(sim, numbers[i], device);
    static_assert(sizeof values == sizeof *properties, "one attribute a field");
    memcpy(properties, values, sizeof values);
    return VR_CU_SUCCESS;
}
