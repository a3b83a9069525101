// Evaluates the table of advice: checks which rows' grounds hold, and orders their results.
#include "analyze/advice.h"

// Unused memory is reported from this amount on, and from this part of the total.
#define LEAST_HELD (16 * VR_MIB)
#define WORTH_PART 8u

static const struct advice_row {
    enum vram_remedy remedy;
    bool of_cause;
    uint32_t grounds;
    enum vram_status (*find)(struct vr_demand_work *work);
} remedies[] = {
#define VR_CAUSE_REMEDY(constant, grounds, find) {VRAM_REMEDY_##constant, true, grounds, find},
#define VR_REMEDY(constant, grounds, find)       {VRAM_REMEDY_##constant, false, grounds, find},
#define VR_AFTER(cause, grounds, sentence)
#define VR_HINT(code, grounds, say)
#include "analyze/advice.def"
};

static const struct attempt_row {
    enum vram_report_oom_cause cause;
    uint32_t grounds;
    const char *sentence;
} attempts[] = {
#define VR_CAUSE_REMEDY(constant, grounds, find)
#define VR_REMEDY(constant, grounds, find)
#define VR_AFTER(cause, grounds, sentence) {VRAM_OOM_##cause, grounds, sentence},
#define VR_HINT(code, grounds, say)
#include "analyze/advice.def"
};

// --- grounds -----------------------------------------------------------------------------------------------------------------------------

static uint32_t ground_when(bool holds, enum vr_ground ground) { return holds ? (uint32_t)ground : 0; }

static bool is_of_others(const struct vram_report_oom *oom) {
    return oom->accounts != NULL && oom->accounts->other_bytes >= oom->outside_bytes / 2;
}

static bool is_own(const struct vram_report_oom *oom) {
    const struct vram_report_accounts *accounts = oom->accounts;
    return accounts != NULL && accounts->context_bytes + accounts->module_bytes + accounts->driver_bytes > oom->outside_bytes / 2;
}

uint32_t vr_grounds_of_oom(const struct vram_report_device *device, const struct vram_report_oom *oom) {
    return ground_when(device->python, VR_GROUND_PYTHON) | ground_when(oom->is_host, VR_GROUND_HOST) |
           ground_when(!device->whole_program, VR_GROUND_ALLOCATOR) | ground_when(device->expandable, VR_GROUND_EXPANDED) |
           ground_when(device->windows, VR_GROUND_WINDOWS) | ground_when(strcmp(device->platform, "ROCm") == 0, VR_GROUND_ROCM) |
           ground_when(strcmp(device->platform, "Ascend") == 0, VR_GROUND_ASCEND) | ground_when(oom->limit_bytes != 0, VR_GROUND_LIMIT) |
           ground_when(oom->of_own_pool, VR_GROUND_OWN_POOL) | ground_when(oom->held_stream_is_idle, VR_GROUND_IDLE_STREAM) |
           ground_when(is_of_others(oom), VR_GROUND_OTHERS) | ground_when(is_own(oom), VR_GROUND_OWN) |
           ground_when(oom->accounts != NULL, VR_GROUND_ACCOUNTS);
}

// Returns the streams whose default pool has segments but no memory in use, except the stream with the most memory.
struct vr_idle_streams vr_idle_streams(const struct vram_report_device *device) {
    struct vr_idle_streams idle = {.count = 0};
    for (size_t i = 0; i < device->pool_count; i++) {
        const struct vram_report_pool *pool = &device->pools[i];
        const bool own = pool->pool_id[0] != 0 || pool->pool_id[1] != 0 || pool->stream == device->pools[0].stream;
        if (own || pool->kind == VRAM_REPORT_KIND_SMALL || pool->allocated_bytes != 0 || pool->pending_bytes != 0) continue;
        if (idle.count++ == 0) idle.largest = pool->stream; // sorted: the first one is the largest
        idle.bytes += pool->reserved_bytes;
    }
    return idle;
}

// Returns whether the recording has completions of frees; without them, freed memory seems to wait forever.
static bool records_completions(const struct vram_report_device *device) {
    bool found = device->usage.pending_bytes != 0;
    for (size_t i = 0; i < device->action_count; i++)
        found = found || strcmp(device->actions[i].name, vr_action_name(VR_ACTION_FREE_COMPLETED)) == 0;
    return found;
}

uint32_t vr_grounds_of_device(const struct vram_report_device *device) {
    const struct vram_report_usage *usage = &device->usage;
    const uint64_t idle = vr_idle_streams(device).bytes;
    const bool waits = device->waiting.bytes >= LEAST_HELD && device->waiting.bytes > device->active.peak.bytes / WORTH_PART;
    return ground_when(device->is_host, VR_GROUND_HOST) | ground_when(!device->whole_program, VR_GROUND_ALLOCATOR) |
           ground_when(waits && records_completions(device), VR_GROUND_WAITS) | ground_when(device->slow_leaks != 0, VR_GROUND_SLOW_LEAK) |
           ground_when(usage->rounding_bytes > usage->requested_bytes / WORTH_PART, VR_GROUND_ROUNDED) |
           ground_when(idle >= LEAST_HELD && idle > usage->reserved_bytes / WORTH_PART, VR_GROUND_IDLE_CACHES);
}

const char *vr_advice_after(enum vram_report_oom_cause cause, uint32_t grounds) {
    for (size_t i = 0; i < VR_COUNT_OF(attempts); i++) {
        if (attempts[i].cause == cause && vr_grounds_hold(grounds, attempts[i].grounds)) return attempts[i].sentence;
    }
    return "";
}

static uint32_t grounds_in_use(struct vr_demand_work *work) {
    const struct vram_report_sum *of_role = work->made->of_role;
    uint64_t of_foreach = 0;
    for (size_t row = 0; row < work->peak_row_end; row++) {
        if (vr_demand_live(work, row) && vr_is_of_foreach(work, row)) of_foreach += work->lifetimes->size_bytes[row];
    }
    return ground_when(of_foreach != 0, VR_GROUND_FOREACH) | ground_when(of_role[VRAM_ROLE_GRADIENTS].bytes != 0, VR_GROUND_GRADIENTS) |
           ground_when(of_role[VRAM_ROLE_OPTIMIZER_STATE].bytes != 0, VR_GROUND_STATE) |
           ground_when(of_role[VRAM_ROLE_KV_CACHE].bytes != 0, VR_GROUND_KV_CACHE) |
           ground_when(of_role[VRAM_ROLE_CASTS].bytes != 0, VR_GROUND_CASTS);
}

static uint32_t grounds_of_work(struct vr_demand_work *work) {
    const struct vram_report_demand *made = work->made;
    return grounds_in_use(work) | ground_when(work->roles.python, VR_GROUND_PYTHON) | ground_when(made->room_bytes != 0, VR_GROUND_ROOM) |
           ground_when(work->roles.models, VR_GROUND_MODEL) | ground_when(work->has_pass, VR_GROUND_PASS) |
           ground_when(vr_scores_bytes(work) != 0, VR_GROUND_SCORES) | ground_when(vr_largest_is_alone(work), VR_GROUND_LARGEST_ALONE) |
           ground_when(made->demand == VRAM_DEMAND_GROWTH, VR_GROUND_GROWS) |
           ground_when(made->demand == VRAM_DEMAND_RETAINED, VR_GROUND_GRAPHS_KEPT) |
           ground_when(made->demand == VRAM_DEMAND_NOT_TRAINED, VR_GROUND_NOT_TRAINED);
}

// --- the order ---------------------------------------------------------------------------------------------------------------------------

static size_t remedy_place(enum vram_remedy remedy) {
    size_t place = 0;
    while (remedies[place].remedy != remedy) place++;
    return place;
}

static int by_worth(const void *a, const void *b) {
    const struct vram_report_remedy *x = a, *y = b;
    const size_t place_x = remedy_place(x->remedy), place_y = remedy_place(y->remedy);
    if (remedies[place_x].of_cause != remedies[place_y].of_cause) return remedies[place_y].of_cause - remedies[place_x].of_cause;
    if (x->fits != y->fits) return y->fits - x->fits;
    // Of the remedies that fit, the smallest change comes first: that is the order of the table.
    if (x->fits || x->saved_bytes == y->saved_bytes) return VR_ORDER(place_x, place_y);
    return VR_ORDER(y->saved_bytes, x->saved_bytes);
}

// Moves the remedy for the main use to the front, except after one that costs nothing.
static void put_demand_first(struct vram_report_remedy *list, size_t count, enum vram_demand demand) {
    const enum vram_remedy wanted = demand == VRAM_DEMAND_HELD_GRADIENTS ? VRAM_REMEDY_GRADIENTS_NONE : VRAM_REMEDY_STATE_8BIT;
    if (demand != VRAM_DEMAND_HELD_GRADIENTS && demand != VRAM_DEMAND_FIRST_STEP) return;
    if (count != 0 && list[0].remedy == VRAM_REMEDY_FOREACH) return;
    for (size_t i = 1; i < count; i++) {
        if (list[i].remedy != wanted) continue;
        const struct vram_report_remedy found = list[i];
        memmove(list + 1, list, i * sizeof *list);
        list[0] = found;
    }
}

static enum vram_status find_rows(struct vr_demand_work *work, uint32_t grounds, bool of_cause) {
    for (size_t i = 0; i < VR_COUNT_OF(remedies); i++) {
        if (remedies[i].of_cause != of_cause || !vr_grounds_hold(grounds, remedies[i].grounds)) continue;
        VR_TRY(remedies[i].find(work));
    }
    return VRAM_OK;
}

enum vram_status vr_remedies_find(struct vr_demand_work *work) {
    struct vram_report_demand *made = work->made;
    void *room;
    VR_TRY(vr_arena_array(work->arena, VR_MOST_REMEDIES, sizeof(struct vram_report_remedy), &room));
    made->remedies = room;
    const uint32_t grounds = grounds_of_work(work);
    VR_TRY(find_rows(work, grounds, true));
    // Other remedies are left out if there is memory that should not exist at all, or if the request is smaller than the room.
    const bool wanted = made->room_bytes == 0 || made->wanted_bytes > made->room_bytes;
    if (made->remedy_count == 0 && wanted) VR_TRY(find_rows(work, grounds, false));
    if (made->remedy_count != 0) qsort(room, made->remedy_count, sizeof(struct vram_report_remedy), by_worth);
    put_demand_first(room, made->remedy_count, made->demand);
    struct vram_report_remedy *list = room;
    for (size_t i = 0; i < made->remedy_count; i++) list[i].fits = list[i].fits && made->room_is_named;
    return VRAM_OK;
}
