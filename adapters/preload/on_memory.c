// on_memory.c: device, managed and host memory, from calls that complete before they return.
#include "cache.h"
#include "preload.h"
#include "vram/log.h"

int32_t pl_on_mem_alloc_v1(const struct pl_slot *slot, uint32_t *address, uint32_t size) {
    struct pl_call call;
    if (!pl_begin(slot, &call)) return PL_REAL(slot, (uint32_t *, uint32_t), (address, size));
    int32_t result = PL_OUT_OF_MEMORY;
    if (pl_charge(&call, PL_DEVICE, call.device, size)) result = PL_REAL(slot, (uint32_t *, uint32_t), (address, size));
    pl_settle(&call, result, result == PL_SUCCESS ? *address : 0, size);
    return result;
}

int32_t pl_on_mem_alloc(const struct pl_slot *slot, uint64_t *address, uint64_t size) {
    struct pl_call call;
    if (!pl_begin(slot, &call)) return PL_REAL(slot, (uint64_t *, uint64_t), (address, size));
    int32_t result = PL_OUT_OF_MEMORY;
    if (pl_charge(&call, PL_DEVICE, call.device, size)) {
        const bool served = address != NULL && pl_cache_alloc(&call, size, 0, address, &result);
        if (!served) result = PL_REAL(slot, (uint64_t *, uint64_t), (address, size));
    }
    pl_settle(&call, result, result == PL_SUCCESS ? *address : 0, size);
    return result;
}

// Rows on real devices are aligned to this. Used to charge the limit before the driver returns the pitch.
#define PITCH_UNIT             512u
#define PITCH_PARAMETERS(word) (word *, word *, word, word, uint32_t)
#define PITCH_ARGUMENTS        (address, pitch, width, height, element)
#define PITCHED(width, height) (((uint64_t)(width) + PITCH_UNIT - 1) / PITCH_UNIT * PITCH_UNIT * (height))

int32_t pl_on_mem_alloc_pitch_v1(const struct pl_slot *slot, uint32_t *address, uint32_t *pitch, uint32_t width, uint32_t height,
                                 uint32_t element) {
    struct pl_call call;
    if (!pl_begin(slot, &call)) return PL_REAL(slot, PITCH_PARAMETERS(uint32_t), PITCH_ARGUMENTS);
    int32_t result = PL_OUT_OF_MEMORY;
    if (pl_charge(&call, PL_DEVICE, call.device, PITCHED(width, height)))
        result = PL_REAL(slot, PITCH_PARAMETERS(uint32_t), PITCH_ARGUMENTS);
    pl_settle(&call, result, result == PL_SUCCESS ? *address : 0, result == PL_SUCCESS ? (uint64_t)*pitch * height : 0);
    return result;
}

int32_t pl_on_mem_alloc_pitch(const struct pl_slot *slot, uint64_t *address, uint64_t *pitch, uint64_t width, uint64_t height,
                              uint32_t element) {
    struct pl_call call;
    if (!pl_begin(slot, &call)) return PL_REAL(slot, PITCH_PARAMETERS(uint64_t), PITCH_ARGUMENTS);
    int32_t result = PL_OUT_OF_MEMORY;
    if (pl_charge(&call, PL_DEVICE, call.device, PITCHED(width, height)))
        result = PL_REAL(slot, PITCH_PARAMETERS(uint64_t), PITCH_ARGUMENTS);
    pl_settle(&call, result, result == PL_SUCCESS ? *address : 0, result == PL_SUCCESS ? *pitch * height : 0);
    return result;
}

int32_t pl_on_mem_alloc_managed(const struct pl_slot *slot, uint64_t *address, uint64_t size, uint32_t flags) {
    struct pl_call call;
    if (!pl_begin(slot, &call)) return PL_REAL(slot, (uint64_t *, uint64_t, uint32_t), (address, size, flags));
    int32_t result = PL_OUT_OF_MEMORY;
    if (pl_charge(&call, PL_MANAGED, call.device, size)) result = PL_REAL(slot, (uint64_t *, uint64_t, uint32_t), (address, size, flags));
    pl_settle(&call, result, result == PL_SUCCESS ? *address : 0, size);
    return result;
}

int32_t pl_on_mem_free_v1(const struct pl_slot *slot, uint32_t address) {
    struct pl_call call;
    if (!pl_begin_free(slot, &call)) return PL_REAL(slot, (uint32_t), (address));
    const int32_t result = PL_REAL(slot, (uint32_t), (address));
    if (result == PL_SUCCESS) pl_died(&call, PL_DEVICE, address);
    pl_end(&call);
    return result;
}

int32_t pl_on_mem_free(const struct pl_slot *slot, uint64_t address) {
    struct pl_call call;
    if (!pl_begin_free(slot, &call)) return PL_REAL(slot, (uint64_t), (address));
    int32_t result;
    if (!pl_cache_free(&call, address, &result)) result = PL_REAL(slot, (uint64_t), (address));
    if (result == PL_SUCCESS) pl_died(&call, PL_DEVICE, address);
    pl_end(&call);
    return result;
}

// --- host memory ----------------------------------------------------------------------------------------------------------

int32_t pl_on_mem_alloc_host_v1(const struct pl_slot *slot, uint64_t *host, uint32_t size) {
    struct pl_call call;
    if (!pl_begin(slot, &call)) return PL_REAL(slot, (uint64_t *, uint32_t), (host, size));
    (void)pl_charge(&call, PL_PINNED, VRAM_LOG_HOST, size); // host memory has no limit
    const int32_t result = PL_REAL(slot, (uint64_t *, uint32_t), (host, size));
    pl_settle(&call, result, result == PL_SUCCESS ? *host : 0, size);
    return result;
}

int32_t pl_on_mem_alloc_host(const struct pl_slot *slot, uint64_t *host, uint64_t size) {
    struct pl_call call;
    if (!pl_begin(slot, &call)) return PL_REAL(slot, (uint64_t *, uint64_t), (host, size));
    (void)pl_charge(&call, PL_PINNED, VRAM_LOG_HOST, size);
    const int32_t result = PL_REAL(slot, (uint64_t *, uint64_t), (host, size));
    pl_settle(&call, result, result == PL_SUCCESS ? *host : 0, size);
    return result;
}

int32_t pl_on_mem_host_alloc(const struct pl_slot *slot, uint64_t *host, uint64_t size, uint32_t flags) {
    struct pl_call call;
    if (!pl_begin(slot, &call)) return PL_REAL(slot, (uint64_t *, uint64_t, uint32_t), (host, size, flags));
    (void)pl_charge(&call, PL_PINNED, VRAM_LOG_HOST, size);
    const int32_t result = PL_REAL(slot, (uint64_t *, uint64_t, uint32_t), (host, size, flags));
    pl_settle(&call, result, result == PL_SUCCESS ? *host : 0, size);
    return result;
}

int32_t pl_on_mem_free_host(const struct pl_slot *slot, uint64_t host) {
    struct pl_call call;
    if (!pl_begin_free(slot, &call)) return PL_REAL(slot, (uint64_t), (host));
    const int32_t result = PL_REAL(slot, (uint64_t), (host));
    if (result == PL_SUCCESS) pl_died(&call, PL_PINNED, host);
    pl_end(&call);
    return result;
}

int32_t pl_on_mem_host_register(const struct pl_slot *slot, uint64_t host, uint64_t size, uint32_t flags) {
    struct pl_call call;
    if (!pl_begin(slot, &call)) return PL_REAL(slot, (uint64_t, uint64_t, uint32_t), (host, size, flags));
    (void)pl_charge(&call, PL_REGISTERED, VRAM_LOG_HOST, size);
    const int32_t result = PL_REAL(slot, (uint64_t, uint64_t, uint32_t), (host, size, flags));
    pl_settle(&call, result, host, size);
    return result;
}

int32_t pl_on_mem_host_unregister(const struct pl_slot *slot, uint64_t host) {
    struct pl_call call;
    if (!pl_begin_free(slot, &call)) return PL_REAL(slot, (uint64_t), (host));
    const int32_t result = PL_REAL(slot, (uint64_t), (host));
    if (result == PL_SUCCESS) pl_died(&call, PL_REGISTERED, host);
    pl_end(&call);
    return result;
}
