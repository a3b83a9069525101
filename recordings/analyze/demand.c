#include "analyze/demand.h"

enum { MOST_SITES = 3 };

const char *vram_demand_name(size_t demand) {
    static const char *const names[] = {
#define DEMAND_NAME(constant, name) #name,
        VRAM_DEMANDS(DEMAND_NAME)
#undef DEMAND_NAME
    };
    return demand < VR_COUNT_OF(names) ? names[demand] : NULL;
}

static int by_held_bytes(const void *a, const void *b) {
    const struct vr_map_slot *x = a, *y = b;
    return x->value != y->value ? VR_ORDER(y->value, x->value) : VR_ORDER(x->key, y->key);
}

// The largest call sites of the rows that stand out.
static enum vram_status put_sites(struct vr_demand_work *work, struct vr_map *held, struct vr_map *count) {
    const struct vr_lifetimes *lifetimes = work->lifetimes;
    for (size_t row = 0; row < work->peak_row_end; row++) {
        if (work->stands_out[row] == 0 || !vr_demand_live(work, row)) continue;
        const uint64_t key = vr_sites_frame(work->question->sites, lifetimes->stack[row]);
        const uint64_t bytes = vr_map_get(held, key) + lifetimes->size_bytes[row];
        if (bytes != 0) VR_TRY(vr_map_set(held, key, bytes));
        VR_TRY(vr_map_set(count, key, vr_map_get(count, key) + 1));
    }
    struct vr_map_slot *slots = malloc((held->count + 1) * sizeof *slots), entry;
    if (slots == NULL) return VRAM_NO_HOST_MEMORY;
    size_t found = 0, at = 0;
    while (vr_map_next(held, &at, &entry)) slots[found++] = entry;
    if (found != 0) qsort(slots, found, sizeof *slots, by_held_bytes);
    const size_t shown = found < MOST_SITES ? found : MOST_SITES;
    void *room;
    enum vram_status status = vr_arena_array(work->arena, shown, sizeof(struct vram_report_group), &room);
    struct vram_report_group *sites = status == VRAM_OK ? room : NULL;
    for (size_t i = 0; i < shown && status == VRAM_OK; i++) {
        sites[i] = (struct vram_report_group){.bytes = slots[i].value, .count = vr_map_get(count, slots[i].key)};
        status = vr_sites_name(work->question->sites, (uint32_t)slots[i].key, work->arena, &sites[i].name);
    }
    free(slots);
    work->made->sites = sites;
    work->made->site_count = shown;
    return status;
}

static enum vram_status name_holders(struct vr_demand_work *work) {
    struct vr_map held = {0}, count = {0};
    const enum vram_status status = put_sites(work, &held, &count);
    vr_map_release(&held);
    vr_map_release(&count);
    return status;
}

// False where sizes are none of a device's.
static bool draw_demand(struct vr_demand_work *work) {
    const struct vr_lifetimes *lifetimes = work->lifetimes;
    uint64_t sum = 0;
    for (size_t row = 0; row < lifetimes->count; row++) {
        const uint64_t bytes = lifetimes->size_bytes[row];
        if (bytes > VR_LIVE_CURVE_MOST || sum > UINT64_MAX / 2) return false;
        vr_live_curve_add(&work->curve, vr_row_from(lifetimes, row), vr_row_to(lifetimes, row), (int64_t)bytes);
        if (vr_lifetimes_live_at(lifetimes, row, work->question->event)) sum += bytes;
    }
    if (work->question->oom != NULL) {
        const size_t at = (size_t)work->question->event + 1;
        if (work->question->oom->size_bytes > VR_LIVE_CURVE_MOST) return false;
        vr_live_curve_add(&work->curve, at, at + 1, (int64_t)work->question->oom->size_bytes);
    }
    work->peak_bytes = vr_live_curve_peak(&work->curve);
    return work->peak_bytes < VR_LIVE_CURVE_MOST && sum != 0;
}

static void look_over(struct vr_demand_work *work) {
    const struct vr_lifetimes *lifetimes = work->lifetimes;
    struct vram_report_demand *made = work->made;
    bool step = false;
    for (size_t row = 0; row < lifetimes->count; row++) {
        if (row >= lifetimes->start_count && (int64_t)lifetimes->birth[row] > work->question->event) break;
        work->peak_row_end = row + 1;
        const enum vr_role_pass pass = (enum vr_role_pass)work->roles.pass[row];
        if (row >= lifetimes->start_count && pass != VR_PASS_IDLE) work->pass = pass;
        work->has_pass = work->has_pass || pass == VR_PASS_FORWARD || pass == VR_PASS_BACKWARD;
        work->has_backward = work->has_backward || pass == VR_PASS_BACKWARD;
        work->has_step = work->has_step || (step && pass == VR_PASS_FORWARD);
        step = step || pass == VR_PASS_OPTIMIZER;
        if (!vr_demand_live(work, row)) continue;
        made->in_use_bytes += lifetimes->size_bytes[row];
        made->of_role[work->roles.role[row]].count++;
        made->of_role[work->roles.role[row]].bytes += lifetimes->size_bytes[row];
    }
}

static enum vram_status find_demand(struct vr_demand_work *work) {
    const struct vr_demand_question *question = work->question;
    void *room;
    VR_TRY(vr_arena_array(work->arena, 1, sizeof *work->made, &room));
    work->made = room;
    VR_TRY(vr_roles_find(question->view, work->lifetimes, NULL, &work->roles));
    work->stands_out = calloc(work->lifetimes->count + 1, 1);
    if (work->stands_out == NULL) return VRAM_NO_HOST_MEMORY;
    look_over(work);
    struct vram_report_demand *made = work->made;
    made->event = question->event;
    made->room_bytes = question->room_bytes;
    made->room_is_named = question->room_is_named;
    made->phase = vr_role_pass_word(work->pass);
    made->request_bytes = question->oom == NULL ? 0 : question->oom->size_bytes;
    made->wanted_bytes = (question->block_bytes > made->in_use_bytes ? question->block_bytes : made->in_use_bytes) + made->request_bytes;
    made->unfinished = question->oom != NULL && (work->pass == VR_PASS_FORWARD || work->pass == VR_PASS_INPUT);
    made->text = "";
    work->missing_bytes = made->wanted_bytes > made->room_bytes ? made->wanted_bytes - made->room_bytes : 1;
    if (made->room_bytes == 0) work->missing_bytes = made->request_bytes;
    VR_TRY(vr_demand_judge(work));
    VR_TRY(name_holders(work));
    return vr_remedies_find(work);
}

enum vram_status vr_demand_find(const struct vr_demand_question *question, struct vr_arena *arena,
                                const struct vram_report_demand **demand) {
    struct vr_demand_work work = {.question = question, .view = question->view, .arena = arena};
    const size_t length = question->oom == NULL ? question->view->history->count + 1 : (size_t)question->event + 2;
    enum vram_status status = vr_lifetimes_build(question->view, VR_LIFETIME_ALLOCATED, NULL, 0, &work.all);
    work.lifetimes = &work.all;
    if (status == VRAM_OK) status = vr_live_curve_init(&work.curve, length);
    if (status == VRAM_OK) status = vr_live_curve_init(&work.changed, length);
    const bool drawn = status == VRAM_OK && draw_demand(&work);
    if (drawn) status = find_demand(&work);
    if (status == VRAM_OK && drawn) *demand = work.made;
    vr_live_curve_release(&work.curve);
    vr_live_curve_release(&work.changed);
    vr_roles_release(&work.roles);
    vr_lifetimes_release(&work.all);
    free(work.stands_out);
    return status;
}
