// sim_launch_fill.c: kernels that only fill memory, known by their names, are done: their values decide how many tokens a server sampled,
// or which elements a mask has. They are PyTorch's `template<..., FillFunctor<T>, array<char *, 1>, ...> kernel(int count, FillFunctor<T>
// value, array<char *, 1> to, ...)`, which write `count` times T. Names are mangled as the Itanium C++ ABI says.
#include <stdlib.h>
#include <string.h>

#include "sim/modules/sim_launch.h"
#include "sim/streams/sim_callbacks.h"

// No more is kept of a fill by a value longer than four bytes that are repeated; the rest is as if nobody had written it.
#define WIDE_MOST_BYTES VR_SIM_SMALL_COPY_BYTES

// --- names ----------------------------------------------------------------------------------------------------------

struct type {
    const char *mangled;
    uint32_t size_bytes;
};

static const struct type types[] = {
    {"b", 1},
    {"a", 1},
    {"h", 1},
    {"s", 2},
    {"t", 2},
    {"i", 4},
    {"j", 4},
    {"l", 8},
    {"m", 8},
    {"x", 8},
    {"y", 8},
    {"f", 4},
    {"d", 8},
    {"N3c104HalfE", 2},
    {"N3c108BFloat16E", 2},
    {"N3c1013Float8_e4m3fnE", 1},
    {"N3c1015Float8_e4m3fnuzE", 1},
    {"N3c1011Float8_e5m2E", 1},
    {"N3c1015Float8_e5m2fnuzE", 1},
    {"N3c1014Float8_e8m0fnuE", 1},
    {"N3c107complexINS3_4HalfEEE", 4},
    {"N3c107complexIfEE", 8},
    {"N3c107complexIdEE", 16},
};

static bool begins_with(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

// What of the name comes behind `word`; NULL when it is not in it.
static const char *name_behind(const char *name, const char *word) {
    const char *found = strstr(name, word);
    return found == NULL ? NULL : found + strlen(word);
}

uint32_t vr_sim_fill_value_bytes(const char *name) {
    const char *type = name_behind(name, "11FillFunctorI");
    if (type == NULL || !begins_with(name, "_ZN2at6native")) return 0;
    const char *kernel = name + strlen("_ZN2at6native");
    // The others find an element's place by a calculator of offsets, or convert what they write.
    if (!begins_with(kernel, "29vectorized_elementwise_kernelI") && !begins_with(kernel, "27unrolled_elementwise_kernelI")) return 0;
    if (strstr(type, "WithCast") != NULL) return 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const size_t length = strlen(types[i].mangled);
        if (!begins_with(type, types[i].mangled) || !begins_with(type + length, "EE")) continue;
        const char *array = type + length + strlen("EE");
        return begins_with(array, "St5arrayIPcLm1EE") || begins_with(array, "NS_6detail5ArrayIPcLi1EE") ? types[i].size_bytes : 0;
    }
    return 0;
}

// --- filling --------------------------------------------------------------------------------------------------------

struct fill {
    uint64_t to, size_bytes;
    uint32_t value_bytes;
    unsigned char value[16];
};

struct bytes_payload {
    struct vr_sim_payload head;
    unsigned char bytes[];
};

static vr_cu_result run_fill(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_sim_work *work) {
    vr_cu_result result = VR_CU_SUCCESS;
    if (!vr_sim_callback_done(sim, stream->callback)) result = vr_sim_callbacks_reserve(sim, 1);
    return result == VR_CU_SUCCESS ? vr_sim_work_run(sim, stream, &(struct vr_sim_callback){.work = *work}) : result;
}

// A value of up to four bytes, or of the same four bytes over and over.
static bool is_narrow(const struct fill *fill) {
    return fill->value_bytes <= 4 || memcmp(fill->value, fill->value + 4, fill->value_bytes - 4) == 0;
}

static vr_cu_result fill_narrow(struct vr_sim *sim, struct vr_sim_stream *stream, uint32_t device, const struct fill *fill) {
    struct vr_sim_work work = vr_sim_set_work(fill->to, 0, fill->size_bytes);
    work.device = device;
    work.element_bytes = fill->value_bytes > 4 ? 4 : fill->value_bytes;
    memcpy(&work.value, fill->value, work.element_bytes);
    return run_fill(sim, stream, &work);
}

static vr_cu_result fill_wide(struct vr_sim *sim, struct vr_sim_stream *stream, uint32_t device, const struct fill *fill) {
    if (fill->size_bytes > WIDE_MOST_BYTES) {
        vr_sim_transfer_pass(sim, fill->to, fill->size_bytes, false);
        return VR_CU_SUCCESS;
    }
    struct bytes_payload *payload = malloc(sizeof *payload + (size_t)fill->size_bytes);
    if (payload == NULL) return VR_CU_OUT_OF_MEMORY;
    payload->head = (struct vr_sim_payload){1};
    for (uint64_t at = 0; at < fill->size_bytes; at += fill->value_bytes) memcpy(payload->bytes + at, fill->value, fill->value_bytes);
    struct vr_sim_work work = vr_sim_copy_work(fill->to, (uint64_t)(uintptr_t)payload->bytes, fill->size_bytes);
    work.device = device;
    work.payload = &payload->head;
    const vr_cu_result result = run_fill(sim, stream, &work);
    vr_sim_payload_drop(&payload->head);
    return result;
}

// Device memory, or host memory that devices reach: a wild write of a kernel is not found out, and not done.
static bool may_fill(const struct vr_sim *sim, uint32_t device, const struct fill *fill) {
    bool host;
    if (!vr_sim_is_memory(sim, fill->to, fill->size_bytes, device, true, &host)) return false;
    return !host || vr_sim_is_pinned(sim, fill->to, fill->size_bytes);
}

vr_cu_result vr_sim_launch_fill(struct vr_sim *sim, struct vr_sim_stream *stream, uint32_t device, const struct vr_sim_launch *launch) {
    const struct vr_sim_function *function = vr_sim_function_find(sim, launch->function);
    void **const parameters = launch->parameters;
    if (!vr_sim_keeps(sim) || function == NULL || parameters == NULL) return VR_CU_SUCCESS;
    struct fill fill = {.value_bytes = vr_sim_function_kernel(function)->fill_value_bytes};
    if (fill.value_bytes == 0) return VR_CU_SUCCESS;
    int32_t count;
    memcpy(&count, parameters[0], sizeof count);
    memcpy(fill.value, parameters[1], fill.value_bytes);
    memcpy(&fill.to, parameters[2], sizeof fill.to);
    if (count <= 0) return VR_CU_SUCCESS;
    fill.size_bytes = (uint64_t)count * fill.value_bytes;
    if (!may_fill(sim, device, &fill)) return VR_CU_SUCCESS;
    const uint64_t writes = sim->content.writes;
    const vr_cu_result result = is_narrow(&fill) ? fill_narrow(sim, stream, device, &fill) : fill_wide(sim, stream, device, &fill);
    // It is not done yet where the stream waits for the host; then it is newer than what kernels are given until then.
    if (fill.size_bytes <= VR_SIM_SMALL_FILL_BYTES && sim->content.writes == writes + 1) vr_sim_content_note_fill(&sim->content);
    return result;
}
