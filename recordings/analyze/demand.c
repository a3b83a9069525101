// Determines the main use of the memory when a request does not fit, and the remedies that lower the need.
#include "analyze/demand.h"

#include "analyze/growth.h"

// ---- Finds the main use of the memory: the first one of a fixed list that applies.

// Activations of earlier steps are the main use from this number of steps on, and from this part of the memory in use.
enum { MOST_GROWERS = 64, GRAPH_STACKS = 3, LEAST_STEPS = 2, KEPT_PART = 4 };
// Rounding is the main use only if it loses more than this part of the requested bytes.
#define ROUNDING_PART 8u

// --- growth ------------------------------------------------------------------------------------------------------------------------------

// Returns the bytes that a leak keeps beyond those of one step.
static double beyond_one_step(const struct vr_grower *grower) {
    const double beyond = (double)grower->last_bytes - grower->bytes_per_step;
    return beyond > 0 ? beyond : 0;
}

static bool of_host(const struct vr_demand_work *work) { return work->question->oom != NULL && work->question->oom->is_host; }

static bool is_leak(const struct vr_demand_work *work, const struct vr_grower *grower) {
    const bool grows = grower->verdict == VR_VERDICT_LEAK || (of_host(work) && grower->verdict == VR_VERDICT_GROWTH);
    return grows && grower->bytes_per_step > 0;
}

static enum vram_status mark_growers(struct vr_demand_work *work, struct vr_grouping *grouping, const struct vr_growth *growth) {
    struct vr_map leaks = {0};
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < growth->count && status == VRAM_OK; i++) {
        if (is_leak(work, &growth->grower[i])) status = vr_map_set(&leaks, growth->grower[i].key, i + 1);
    }
    for (size_t row = 0; row < work->peak_row_end && status == VRAM_OK; row++) {
        uint64_t key;
        status = vr_grouping_key(grouping, row, &key);
        if (status != VRAM_OK || vr_map_get(&leaks, key) == 0 || !vr_demand_live(work, row)) continue;
        work->stands_out[row] = 1;
        work->made->bytes += work->lifetimes->size_bytes[row];
    }
    vr_map_release(&leaks);
    return status;
}

// Determines whether the request would have fitted without the growth; if so, marks its rows.
static enum vram_status judge_growth(struct vr_demand_work *work, struct vr_grouping *grouping, const struct vr_growth *growth,
                                     bool *found) {
    double beyond = 0, graphs = 0;
    size_t graph_sites = 0;
    for (size_t i = 0; i < growth->count; i++) {
        const struct vr_grower *grower = &growth->grower[i];
        if (!is_leak(work, grower)) continue;
        const uint8_t role = work->roles.role[grower->row];
        beyond += beyond_one_step(grower);
        work->made->per_step_bytes += grower->bytes_per_step;
        if (role != VRAM_ROLE_ACTIVATIONS) continue;
        graphs += beyond_one_step(grower);
        graph_sites++;
    }
    *found = beyond >= (double)work->missing_bytes;
    if (!*found) {
        work->made->per_step_bytes = 0;
        return VRAM_OK;
    }
    work->made->demand = graph_sites >= GRAPH_STACKS && graphs > beyond / 2 ? VRAM_DEMAND_RETAINED : VRAM_DEMAND_GROWTH;
    return mark_growers(work, grouping, growth);
}

static enum vram_status find_growth(struct vr_demand_work *work, bool *found) {
    const struct vr_grouped grouped = {.view = work->view, .lifetimes = work->lifetimes, .sites = work->question->sites};
    const struct vr_step_wish wish = {.name = NULL};
    struct vr_steps steps = {0};
    struct vr_growth growth = {.count = 0};
    struct vr_grouping grouping;
    *found = false;
    VR_TRY(vr_steps_find(work->view, &wish, &steps));
    if (steps.unsure || steps.count == 0) {
        vr_steps_release(&steps);
        return VRAM_OK;
    }
    enum vram_status status = vr_grouping_init(&grouping, VR_GROUP_SITE, &grouped, NULL, NULL);
    if (status == VRAM_OK) {
        status = vr_growth_find(&grouping, &steps, MOST_GROWERS, &growth);
        if (status == VRAM_OK) status = judge_growth(work, &grouping, &growth, found);
        vr_growth_release(&growth);
        vr_grouping_release(&grouping);
    }
    vr_steps_release(&steps);
    return status;
}

// --- activations of earlier steps --------------------------------------------------------------------------------------------------------

// Counts steps: a forward pass and the backward pass after it.
struct step_count {
    uint64_t step;
    bool backward;
};

static uint64_t step_of(struct step_count *count, const struct vr_demand_work *work, size_t row) {
    const enum vr_role_pass pass = (enum vr_role_pass)work->roles.pass[row];
    if (pass == VR_PASS_FORWARD && count->backward) *count = (struct step_count){.step = count->step + 1};
    count->backward = count->backward || pass == VR_PASS_BACKWARD;
    return count->step;
}

// Marks activations that a forward pass made and the backward pass after it should have freed. *most is the bytes of the largest of their
// stacks.
static enum vram_status mark_kept(struct vr_demand_work *work, uint64_t steps, struct vr_map *stacks, uint64_t *most) {
    const struct vr_lifetimes *lifetimes = work->lifetimes;
    struct step_count count = {.step = 0};
    for (size_t row = lifetimes->start_count; row < work->peak_row_end; row++) {
        const uint64_t step = step_of(&count, work, row);
        if (step == steps || work->roles.role[row] != VRAM_ROLE_ACTIVATIONS || !vr_demand_live(work, row)) continue;
        const uint64_t key = lifetimes->stack[row], bytes = vr_map_get(stacks, key) + lifetimes->size_bytes[row];
        work->stands_out[row] = 1;
        work->made->bytes += lifetimes->size_bytes[row];
        if (bytes != 0) VR_TRY(vr_map_set(stacks, key, bytes));
        if (bytes > *most) *most = bytes;
    }
    return VRAM_OK;
}

static void forget_marks(struct vr_demand_work *work) {
    memset(work->stands_out, 0, work->lifetimes->count);
    work->made->bytes = 0;
}

static enum vram_status find_kept(struct vr_demand_work *work, bool *found) {
    struct step_count count = {.step = 0};
    struct vr_map stacks = {0};
    uint64_t most = 0;
    *found = false;
    for (size_t row = work->lifetimes->start_count; row < work->peak_row_end; row++) (void)step_of(&count, work, row);
    if (count.step < LEAST_STEPS) return VRAM_OK;
    const enum vram_status status = mark_kept(work, count.step, &stacks, &most);
    const size_t distinct = stacks.count;
    vr_map_release(&stacks);
    *found = status == VRAM_OK && work->made->bytes >= work->missing_bytes && work->made->bytes > work->made->in_use_bytes / KEPT_PART;
    if (!*found) {
        forget_marks(work);
        return status;
    }
    const bool graphs = distinct >= GRAPH_STACKS && most < work->made->bytes / 10 * 9;
    work->made->demand = graphs ? VRAM_DEMAND_RETAINED : VRAM_DEMAND_GROWTH;
    work->made->per_step_bytes = (double)work->made->bytes / (double)count.step;
    return VRAM_OK;
}

// --- a forward pass without training -----------------------------------------------------------------------------------------------------

// Returns, by stack, 1 + the frame that calls the model: the frame just outside the outermost call of a module; 0 if none exists.
static uint32_t *find_callers(struct vr_demand_work *work) {
    const struct vr_stacks *stacks = &work->view->model->stacks;
    uint32_t *callers = calloc((size_t)stacks->count + 1, sizeof *callers);
    for (size_t stack = 0; callers != NULL && stack < stacks->count; stack++) {
        for (uint64_t i = stacks->offset[stack + 1]; i > stacks->offset[stack] + 1; i--) {
            if ((vr_role_marks_of_frame(&work->roles.marks, stacks->frame[i - 2]) & VR_MARK_FORWARD) == 0) continue;
            const bool outermost = (vr_role_marks_of_frame(&work->roles.marks, stacks->frame[i - 1]) & VR_MARK_FORWARD) == 0;
            if (outermost) callers[stack] = stacks->frame[i - 1] + 1;
            break;
        }
    }
    return callers;
}

// Finds the callers whose forward passes were followed by a backward pass. *current is the caller of the present forward pass, 0 if none
// exists.
static enum vram_status find_trained(const struct vr_demand_work *work, const uint32_t *callers, struct vr_map *trained,
                                     uint32_t *current) {
    const struct vr_lifetimes *lifetimes = work->lifetimes;
    uint32_t caller = 0;
    for (size_t row = lifetimes->start_count; row < work->peak_row_end; row++) {
        const enum vr_role_pass pass = (enum vr_role_pass)work->roles.pass[row];
        if (pass == VR_PASS_BACKWARD && caller != 0) VR_TRY(vr_map_set(trained, caller, 1));
        if (pass != VR_PASS_FORWARD) continue;
        if (callers[lifetimes->stack[row]] != 0) caller = callers[lifetimes->stack[row]];
    }
    *current = work->pass == VR_PASS_FORWARD ? caller : 0;
    return VRAM_OK;
}

static uint64_t mark_called(struct vr_demand_work *work, const uint32_t *callers, uint32_t current) {
    uint64_t bytes = 0;
    for (size_t row = work->lifetimes->start_count; row < work->peak_row_end; row++) {
        if (work->roles.role[row] != VRAM_ROLE_ACTIVATIONS || !vr_demand_live(work, row)) continue;
        if (callers[work->lifetimes->stack[row]] != current) continue;
        work->stands_out[row] = 1;
        bytes += work->lifetimes->size_bytes[row];
    }
    return bytes;
}

static enum vram_status find_untrained(struct vr_demand_work *work, bool *found) {
    struct vr_map trained = {0};
    uint32_t *callers = find_callers(work), current = 0;
    *found = false;
    const enum vram_status status = callers == NULL ? VRAM_NO_HOST_MEMORY : find_trained(work, callers, &trained, &current);
    const bool judged = status == VRAM_OK && current != 0 && trained.count != 0 && vr_map_get(&trained, current) == 0;
    const uint64_t bytes = judged ? mark_called(work, callers, current) : 0;
    vr_map_release(&trained);
    free(callers);
    *found = judged && bytes >= work->missing_bytes;
    if (!*found) {
        forget_marks(work);
        return status;
    }
    work->made->demand = VRAM_DEMAND_NOT_TRAINED;
    work->made->bytes = bytes;
    return VRAM_OK;
}

// Returns the bytes of gradients from before the last forward pass.
static uint64_t gradients_held(const struct vr_demand_work *work) {
    uint64_t before = 0, bytes = 0; // before: live gradients when the forward pass began
    enum vr_role_pass pass = VR_PASS_IDLE;
    for (size_t row = 0; row < work->peak_row_end; row++) {
        const enum vr_role_pass next = (enum vr_role_pass)work->roles.pass[row];
        if (row >= work->lifetimes->start_count && next == VR_PASS_FORWARD && pass != VR_PASS_FORWARD) before = bytes;
        if (row >= work->lifetimes->start_count && next != VR_PASS_IDLE && next != VR_PASS_INPUT) pass = next;
        if (work->roles.role[row] == VRAM_ROLE_GRADIENTS && vr_demand_live(work, row)) bytes += work->lifetimes->size_bytes[row];
    }
    return pass == VR_PASS_OPTIMIZER ? 0 : before;
}

// --- other demands -----------------------------------------------------------------------------------------------------------------------

static void stand_out(struct vr_demand_work *work, enum vram_demand demand, enum vram_role role) {
    work->made->demand = demand;
    work->made->role = role;
    work->made->bytes = role == VRAM_ROLE_COUNT ? work->made->in_use_bytes : work->made->of_role[role].bytes;
    for (size_t row = 0; row < work->peak_row_end; row++)
        work->stands_out[row] = role == VRAM_ROLE_COUNT || work->roles.role[row] == (uint8_t)role;
}

static uint32_t marks_of_request(struct vr_demand_work *work) {
    if (work->question->oom == NULL) return 0;
    return vr_role_marks_of(&work->roles.marks, work->view->history->stack[work->question->event]);
}

static bool judge_by_moment(struct vr_demand_work *work) {
    const struct vram_report_demand *made = work->made;
    const uint32_t marks = marks_of_request(work);
    const uint64_t blocks = work->question->block_bytes, rounding = blocks > made->in_use_bytes ? blocks - made->in_use_bytes : 0;
    const bool in_step = (marks & VR_MARK_OPTIMIZER) != 0;
    if (in_step && ((marks & VR_MARK_STATE) != 0 || !work->has_step)) {
        stand_out(work, VRAM_DEMAND_FIRST_STEP, VRAM_ROLE_OPTIMIZER_STATE);
    } else if (work->has_backward && gradients_held(work) >= work->missing_bytes) {
        stand_out(work, VRAM_DEMAND_HELD_GRADIENTS, VRAM_ROLE_GRADIENTS);
    } else if (rounding >= work->missing_bytes && rounding > made->in_use_bytes / ROUNDING_PART) {
        stand_out(work, VRAM_DEMAND_ROUNDING, VRAM_ROLE_COUNT);
        work->made->bytes = rounding;
    } else {
        return false;
    }
    return true;
}

// Returns whether a role is informative. In a program without modules, all computation is called activations, which does not say what uses
// the most memory.
static bool names_a_pass(struct vr_demand_work *work, enum vram_role role) {
    if (role != VRAM_ROLE_ACTIVATIONS && role != VRAM_ROLE_TEMPORARIES && role != VRAM_ROLE_INPUT) return role != VRAM_ROLE_UNKNOWN;
    for (size_t row = 0; row < work->peak_row_end; row++) {
        if (work->roles.role[row] != (uint8_t)role || !vr_demand_live(work, row)) continue;
        const uint32_t marks = vr_role_marks_of(&work->roles.marks, work->lifetimes->stack[row]);
        if (work->roles.notes.named[row] != 0 || (marks & ~(uint32_t)(VR_MARK_FRAMES | VR_MARK_PYTHON | VR_MARK_NATIVE)) != 0) return true;
        if (row < work->lifetimes->start_count) return true;
    }
    return false;
}

static void judge_by_role(struct vr_demand_work *work) {
    enum vram_role most = VRAM_ROLE_UNKNOWN;
    for (unsigned role = 0; role < VRAM_ROLE_COUNT; role++) {
        if (work->made->of_role[role].bytes > work->made->of_role[most].bytes) most = (enum vram_role)role;
    }
    if (!names_a_pass(work, most))
        stand_out(work, VRAM_DEMAND_CALLER, VRAM_ROLE_COUNT);
    else
        stand_out(work, VRAM_DEMAND_ROLE, most);
}

// Sets demand, role, bytes and per_step_bytes, and marks the rows of the main use. NO_HOST_MEMORY.
static enum vram_status demand_judge(struct vr_demand_work *work) {
    const struct vram_report_demand *made = work->made;
    bool found = false;
    if (made->room_bytes != 0 && made->request_bytes > made->room_bytes / 2) {
        stand_out(work, VRAM_DEMAND_REQUEST, VRAM_ROLE_COUNT);
        work->made->bytes = made->request_bytes;
        return VRAM_OK;
    }
    VR_TRY(find_kept(work, &found));
    if (!found) VR_TRY(find_growth(work, &found));
    if (!found) VR_TRY(find_untrained(work, &found));
    if (!found && !judge_by_moment(work)) judge_by_role(work);
    return VRAM_OK;
}

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

// Lists the largest call sites of the marked rows.
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

// Draws the curve. Returns false if a size is impossible on a device.
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
    VR_TRY(demand_judge(work));
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
