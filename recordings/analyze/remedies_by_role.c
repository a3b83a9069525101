// What would lower the highest demand by taking away what has a role, or is made in one way.
#include "analyze/advice.h"

enum {
    SHARDS = 2,         // devices
    SCORES_PART = 10,   // of the peak: what scores of attention must have to be worth another way
    LEAST_SCORES = 128, // tokens in a sequence
    MOST_SCORES = 1 << 20
};

// The peak without the rows of which `part` says how much goes.
static void add_without(struct vr_demand_work *work, struct vram_report_remedy remedy, double (*part)(struct vr_demand_work *, size_t)) {
    const struct vr_lifetimes *lifetimes = work->lifetimes;
    vr_live_curve_copy(&work->changed, &work->curve);
    for (size_t row = 0; row < lifetimes->count; row++) {
        const double less = part(work, row);
        if (less <= 0) continue;
        vr_live_curve_add(&work->changed, vr_row_from(lifetimes, row), vr_row_to(lifetimes, row),
                          -(int64_t)((double)lifetimes->size_bytes[row] * less));
        if (!vr_demand_live(work, row)) continue;
        remedy.blocks++;
        remedy.bytes += lifetimes->size_bytes[row];
    }
    vr_remedy_add_curve(work, remedy);
}

// --- by role -----------------------------------------------------------------------------------------------------------------------------

static double part_of_state_8bit(struct vr_demand_work *work, size_t row) {
    return work->roles.role[row] == VRAM_ROLE_OPTIMIZER_STATE ? 0.74 : 0; // a byte in place of four, and a scale of four bytes per 256
}
static double part_of_state(struct vr_demand_work *work, size_t row) { return work->roles.role[row] == VRAM_ROLE_OPTIMIZER_STATE ? 1 : 0; }
static double part_of_model(struct vr_demand_work *work, size_t row) {
    const uint8_t role = work->roles.role[row];
    return role == VRAM_ROLE_OPTIMIZER_STATE || role == VRAM_ROLE_PARAMETERS || role == VRAM_ROLE_GRADIENTS ? 1.0 - 1.0 / SHARDS : 0;
}

bool vr_is_of_foreach(struct vr_demand_work *work, size_t row) {
    const bool passing = work->roles.role[row] == VRAM_ROLE_TEMPORARIES && work->roles.pass[row] == VR_PASS_OPTIMIZER;
    return passing && (vr_role_marks_of(&work->roles.marks, work->lifetimes->stack[row]) & VR_MARK_FOREACH) != 0;
}

static double part_of_casts(struct vr_demand_work *work, size_t row) { return work->roles.role[row] == VRAM_ROLE_CASTS ? 1 : 0; }
static double part_of_foreach(struct vr_demand_work *work, size_t row) { return vr_is_of_foreach(work, row) ? 1 : 0; }

static enum vram_status add_whole(struct vr_demand_work *work, enum vram_remedy remedy, unsigned divisor,
                                  double (*part)(struct vr_demand_work *, size_t)) {
    add_without(work, (struct vram_report_remedy){.remedy = remedy, .factor = 1, .divisor = divisor}, part);
    return VRAM_OK;
}

enum vram_status vr_add_state_8bit(struct vr_demand_work *work) { return add_whole(work, VRAM_REMEDY_STATE_8BIT, 1, part_of_state_8bit); }
enum vram_status vr_add_state_offload(struct vr_demand_work *work) { return add_whole(work, VRAM_REMEDY_STATE_OFFLOAD, 1, part_of_state); }
enum vram_status vr_add_sharding(struct vr_demand_work *work) { return add_whole(work, VRAM_REMEDY_SHARDING, SHARDS, part_of_model); }
enum vram_status vr_add_casts(struct vr_demand_work *work) { return add_whole(work, VRAM_REMEDY_CASTS, 1, part_of_casts); }
enum vram_status vr_add_foreach(struct vr_demand_work *work) { return add_whole(work, VRAM_REMEDY_FOREACH, 1, part_of_foreach); }

enum vram_status vr_add_kv_cache(struct vr_demand_work *work) {
    const struct vram_report_demand *made = work->made;
    const uint64_t bytes = made->of_role[VRAM_ROLE_KV_CACHE].bytes;
    if (bytes <= work->missing_bytes) return VRAM_OK;
    const struct vram_report_remedy remedy = {.remedy = VRAM_REMEDY_KV_CACHE,
                                              .factor = (double)(bytes - work->missing_bytes) / (double)bytes,
                                              .divisor = 1,
                                              .next_event = VR_SAME_MOMENT,
                                              .blocks = made->of_role[VRAM_ROLE_KV_CACHE].count,
                                              .bytes = bytes};
    vr_remedy_add(work, remedy, work->peak_bytes - work->missing_bytes);
    return VRAM_OK;
}

// What stands out is dropped, but for one step's worth.
enum vram_status vr_add_cause(struct vr_demand_work *work) {
    static const struct {
        enum vram_demand demand;
        enum vram_remedy remedy;
    } table[] = {{VRAM_DEMAND_GROWTH, VRAM_REMEDY_RELEASE},
                 {VRAM_DEMAND_RETAINED, VRAM_REMEDY_DETACH},
                 {VRAM_DEMAND_NOT_TRAINED, VRAM_REMEDY_NO_GRAD}};
    const struct vram_report_demand *made = work->made;
    for (size_t i = 0; i < VR_COUNT_OF(table); i++) {
        if (table[i].demand != made->demand) continue;
        const uint64_t stays = made->demand == VRAM_DEMAND_NOT_TRAINED ? 0 : (uint64_t)made->per_step_bytes;
        const uint64_t goes = made->bytes > stays ? made->bytes - stays : 0;
        vr_remedy_add(work,
                      (struct vram_report_remedy){.remedy = table[i].remedy,
                                                  .site = made->site_count == 0 ? "" : made->sites[0].name,
                                                  .factor = 1,
                                                  .divisor = 1,
                                                  .next_event = VR_SAME_MOMENT,
                                                  .bytes = made->bytes},
                      work->peak_bytes > goes ? work->peak_bytes - goes : 0);
    }
    return VRAM_OK;
}

// --- attention scores --------------------------------------------------------------------------------------------------------------------

static bool is_of_attention(struct vr_demand_work *work, uint32_t stack) {
    const uint32_t marks = vr_role_marks_of(&work->roles.marks, stack);
    return (marks & VR_MARK_ATTENTION) != 0 && (marks & (VR_MARK_LINEAR | VR_MARK_OPTIMIZER | VR_MARK_LOAD)) == 0;
}

// batch * heads * sequence * sequence values of two bytes, or twice that.
static bool is_quadratic(uint64_t bytes) {
    for (uint64_t tokens = LEAST_SCORES; tokens <= MOST_SCORES && 2 * tokens * tokens <= bytes; tokens++) {
        if (bytes % (2 * tokens * tokens) == 0) return true;
    }
    return false;
}

uint64_t vr_scores_bytes(struct vr_demand_work *work) {
    const struct vr_lifetimes *lifetimes = work->lifetimes;
    const struct vr_demand_question *question = work->question;
    uint64_t bytes = 0;
    if (question->oom != NULL && is_of_attention(work, question->view->history->stack[question->event])) bytes = question->oom->size_bytes;
    for (size_t row = 0; row < work->peak_row_end; row++) {
        const bool larger = lifetimes->size_bytes[row] > bytes && vr_demand_live(work, row);
        if (larger && is_of_attention(work, lifetimes->stack[row])) bytes = lifetimes->size_bytes[row];
    }
    return bytes >= work->peak_bytes / SCORES_PART && is_quadratic(bytes) ? bytes : 0;
}

enum vram_status vr_add_attention(struct vr_demand_work *work) {
    const struct vr_lifetimes *lifetimes = work->lifetimes;
    const uint64_t size = vr_scores_bytes(work);
    struct vram_report_remedy remedy = {.remedy = VRAM_REMEDY_ATTENTION, .factor = 1, .divisor = 1};
    vr_live_curve_copy(&work->changed, &work->curve);
    for (size_t row = lifetimes->start_count; row < lifetimes->count; row++) {
        if (!vr_is_of_size(lifetimes->size_bytes[row], size) || !is_of_attention(work, lifetimes->stack[row])) continue;
        vr_live_curve_add(&work->changed, vr_row_from(lifetimes, row), vr_row_to(lifetimes, row), -(int64_t)lifetimes->size_bytes[row]);
        if (!vr_demand_live(work, row)) continue;
        remedy.blocks++;
        remedy.bytes += lifetimes->size_bytes[row];
    }
    const struct vram_report_oom *oom = work->question->oom;
    if (oom != NULL && vr_is_of_size(oom->size_bytes, size)) {
        const size_t at = (size_t)work->question->event + 1;
        vr_live_curve_add(&work->changed, at, at + 1, -(int64_t)oom->size_bytes);
        remedy.blocks++;
        remedy.bytes += oom->size_bytes;
    }
    vr_remedy_add_curve(work, remedy);
    return VRAM_OK;
}
