// Implements vram/roles.h: sums by role and by module, and the role of each allocation event.
#include "analyze/arena.h"
#include "analyze/profile.h"
#include "base/text.h"

enum { DEFAULT_TOP = 10, MOST_TOP = 10000 };

struct roles_made {
    struct vram_roles roles; // must be first: the public pointer points to it
    struct vr_arena arena;
};

static void add_to_sum(struct vram_report_sum *sum, uint64_t bytes) {
    sum->count++;
    sum->bytes += bytes;
}

// Walks the events once: rows are sorted by birth, and each event frees at most one row.
enum vram_status vr_roles_count(const struct vr_roles *roles, const struct vr_lifetimes *lifetimes, size_t events,
                                struct vr_role_totals *totals) {
    struct vram_report_sum live[VRAM_ROLE_COUNT] = {{0}};
    uint32_t *dies = calloc(events + 1, sizeof *dies); // by event: 1 + row
    if (dies == NULL) return VRAM_NO_HOST_MEMORY;
    size_t event = 0;
    for (size_t row = 0; row < lifetimes->count; row++) {
        const uint8_t role = roles->role[row];
        if (lifetimes->death[row] != VR_NEVER) dies[lifetimes->death[row]] = (uint32_t)row + 1;
        for (; row >= lifetimes->start_count && event <= lifetimes->birth[row]; event++) {
            if (dies[event] == 0) continue;
            struct vram_report_sum *less = &live[roles->role[dies[event] - 1]];
            less->count--;
            less->bytes -= lifetimes->size_bytes[dies[event] - 1];
        }
        add_to_sum(&live[role], lifetimes->size_bytes[row]);
        add_to_sum(&totals->made[role], lifetimes->size_bytes[row]);
        if (live[role].bytes > totals->highest[role].bytes) totals->highest[role] = live[role];
    }
    free(dies);
    return VRAM_OK;
}

struct role_counting {
    struct vr_profile profile;
    struct vr_roles roles;
    struct vr_role_rules rules;
    struct roles_made *made;
};

static void count_peak(struct role_counting *counting) {
    struct vram_roles *out = &counting->made->roles;
    const struct vr_lifetimes *lifetimes = &counting->profile.lifetimes;
    for (size_t i = 0; i < counting->profile.count; i++) {
        const uint32_t row = counting->profile.rows[i];
        const uint64_t bytes = lifetimes->size_bytes[row];
        const uint8_t role = counting->roles.role[row];
        const bool stacked = (vr_role_marks_of(&counting->roles.marks, lifetimes->stack[row]) & VR_MARK_FRAMES) != 0;
        add_to_sum(&out->at_peak[role], bytes);
        if (stacked) out->stacked_bytes += bytes;
        if (stacked && role == VRAM_ROLE_UNKNOWN) out->stacked_unknown_bytes += bytes;
    }
}

static enum vram_status count_history(struct role_counting *counting) {
    struct vram_roles *out = &counting->made->roles;
    struct vr_role_totals totals = {.made = {{0}}};
    VR_TRY(vr_roles_count(&counting->roles, &counting->profile.lifetimes, out->event_count, &totals));
    memcpy(out->made, totals.made, sizeof out->made);
    memcpy(out->highest, totals.highest, sizeof out->highest);
    return VRAM_OK;
}

static enum vram_status put_events(struct role_counting *counting) {
    struct vram_roles *out = &counting->made->roles;
    const struct vr_lifetimes *lifetimes = &counting->profile.lifetimes;
    void *room;
    VR_TRY(vr_arena_array(&counting->made->arena, out->event_count, 1, &room));
    uint8_t *of_event = room;
    memset(of_event, 0, out->event_count);
    for (size_t row = lifetimes->start_count; row < lifetimes->count; row++) of_event[lifetimes->birth[row]] = counting->roles.role[row];
    out->of_event = of_event;
    return VRAM_OK;
}

// The bytes of one module and role at the peak.
struct role_held {
    uint64_t module;
    uint8_t role;
    uint64_t bytes, count;
};

static int by_module(const void *a, const void *b) {
    const struct role_held *x = a, *y = b;
    if (x->module != y->module) return VR_ORDER(x->module, y->module);
    return VR_ORDER(x->role, y->role);
}

static int roles_by_bytes(const void *a, const void *b) {
    const struct role_held *x = a, *y = b;
    if (x->bytes != y->bytes) return VR_ORDER(y->bytes, x->bytes);
    return by_module(a, b);
}

static size_t merge_roles(struct role_held *held, size_t count) {
    size_t kept = 0;
    qsort(held, count, sizeof *held, by_module);
    for (size_t i = 0; i < count; i++) {
        if (kept != 0 && by_module(&held[kept - 1], &held[i]) == 0) {
            held[kept - 1].bytes += held[i].bytes;
            held[kept - 1].count++;
        } else {
            held[kept++] = held[i];
        }
    }
    qsort(held, kept, sizeof *held, roles_by_bytes);
    return kept;
}

static enum vram_status put_modules(struct role_counting *counting, struct role_held *held, size_t count) {
    struct vram_roles *out = &counting->made->roles;
    void *room;
    VR_TRY(vr_arena_array(&counting->made->arena, count, sizeof(struct vram_role_module), &room));
    struct vram_role_module *modules = room;
    for (size_t i = 0; i < count; i++) {
        struct vr_text name = {0};
        vr_roles_module_name(&counting->roles, held[i].module, &name);
        enum vram_status status = vr_text_status(&name);
        modules[i] = (struct vram_role_module){.role = held[i].role, .bytes = held[i].bytes, .count = held[i].count};
        if (status == VRAM_OK) status = vr_arena_copy(&counting->made->arena, vr_text_string(&name), name.length, &modules[i].name);
        vr_text_release(&name);
        VR_TRY(status);
    }
    out->modules = modules;
    out->module_count = count;
    return VRAM_OK;
}

static enum vram_status count_modules(struct role_counting *counting, size_t top) {
    const struct vr_lifetimes *lifetimes = &counting->profile.lifetimes;
    struct role_held *held = malloc((counting->profile.count + 1) * sizeof *held);
    if (held == NULL) return VRAM_NO_HOST_MEMORY;
    size_t count = 0;
    for (size_t i = 0; i < counting->profile.count; i++) {
        const uint32_t row = counting->profile.rows[i];
        const uint64_t module = vr_roles_module(&counting->roles, lifetimes, row);
        if (module == VR_NO_MODULE_KEY) continue;
        held[count++] = (struct role_held){module, counting->roles.role[row], lifetimes->size_bytes[row], 1};
    }
    count = merge_roles(held, count);
    const enum vram_status status = put_modules(counting, held, count < top ? count : top);
    free(held);
    return status;
}

static enum vram_status count_roles(struct role_counting *counting, const struct vram_roles_options *options) {
    struct vram_roles *out = &counting->made->roles;
    const unsigned top = options->top == 0 ? DEFAULT_TOP : options->top;
    out->device = counting->profile.view->device;
    out->peak_event = counting->profile.event;
    out->event_count = counting->profile.view->history->count;
    VR_TRY(vr_roles_find(counting->profile.view, &counting->profile.lifetimes, &counting->rules, &counting->roles));
    count_peak(counting);
    VR_TRY(count_history(counting));
    VR_TRY(put_events(counting));
    return count_modules(counting, top < MOST_TOP ? top : MOST_TOP);
}

static enum vram_status make_roles(const struct vram_recording *recording, const struct vram_roles_options *options,
                                   struct role_counting *counting, struct vram_error *error) {
    const struct vram_profile_options of_peak = {.device = options->device, .active = options->active};
    VR_TRY(vr_role_rules_parse(options->rules, &counting->rules, error));
    VR_TRY(vr_profile_open(recording, &of_peak, &counting->profile, error));
    counting->made = calloc(1, sizeof *counting->made);
    enum vram_status status = counting->made == NULL ? VRAM_NO_HOST_MEMORY : count_roles(counting, options);
    vr_roles_release(&counting->roles);
    vr_profile_close(&counting->profile);
    return status;
}

enum vram_status vram_roles_create(const struct vram_recording *recording, const struct vram_roles_options *options,
                                   struct vram_roles **roles, struct vram_error *error) {
    static const struct vram_roles_options usual = {.device = -1};
    struct vram_error unfilled = {.status = VRAM_OK}, *detail = error == NULL ? &unfilled : error;
    detail->status = VRAM_OK;
    VR_REQUIRE_OR_FAIL(detail, recording && roles);
    struct role_counting counting = {.made = NULL};
    const enum vram_status status = make_roles(recording, options == NULL ? &usual : options, &counting, detail);
    vr_role_rules_release(&counting.rules);
    if (status == VRAM_OK) {
        *roles = &counting.made->roles;
        return VRAM_OK;
    }
    if (counting.made != NULL) vram_roles_destroy(&counting.made->roles);
    return detail->status == VRAM_OK ? vr_fail(detail, status, VRAM_NO_OFFSET, "%s", vram_status_text(status)) : status;
}

void vram_roles_destroy(struct vram_roles *roles) {
    struct roles_made *made = (struct roles_made *)roles;
    if (made == NULL) return;
    vr_arena_release(&made->arena);
    free(made);
}
