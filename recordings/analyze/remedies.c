// Finds what would lower the highest demand, by a modified curve or by a sum.
#include "analyze/advice.h"

// ---- Remedies computed from the program's passes.

enum {
    CHUNKS_TRIED = 8, // numbers of parts tried for the largest tensors
    MOST_EQUALS = 2,  // most tensors of the same size and stack; more are layers, which chunking does not shrink
    CHUNK_PART = 10,  // of the peak: least size of a tensor to be chunked
    ADAM_MOMENTS = 2, // state tensors per parameter
    SLACK_PART = 64   // of the room: kept free, because a smaller batch may be rounded differently
};

// --- a smaller batch ---------------------------------------------------------------------------------------------------------------------

// Kinds of sizes: a parameter's, or that of its copy in half precision (which autocast keeps for the backward pass).
enum fixed_size { SIZE_OF_PARAMETER = 1, SIZE_OF_HALF = 2 };

static enum vram_status find_fixed_sizes(const struct vr_demand_work *work, struct vr_map *fixed, uint64_t *parameters) {
    *parameters = 0;
    for (size_t row = 0; row < work->peak_row_end; row++) {
        const uint8_t role = work->roles.role[row];
        const uint64_t bytes = work->lifetimes->size_bytes[row];
        if (role != VRAM_ROLE_PARAMETERS || bytes == 0) continue;
        VR_TRY(vr_map_set(fixed, bytes, vr_map_get(fixed, bytes) | SIZE_OF_PARAMETER));
        if (bytes > 1) VR_TRY(vr_map_set(fixed, bytes / 2, vr_map_get(fixed, bytes / 2) | SIZE_OF_HALF));
        if (vr_demand_live(work, row)) *parameters += bytes;
    }
    return VRAM_OK;
}

// Returns whether a row does not depend on the batch, judged by its size: in the backward pass, a row as large as a parameter counts as its
// gradient; in any pass, a row half as large counts as a copy of it. This errs towards a smaller batch.
static bool is_fixed(enum vr_role_pass pass, uint64_t of_size) {
    return (of_size & SIZE_OF_HALF) != 0 || (pass == VR_PASS_BACKWARD && of_size != 0);
}

static bool grows_with_batch(const struct vr_demand_work *work, const struct vr_map *fixed, size_t row) {
    const enum vr_role_pass pass = (enum vr_role_pass)work->roles.pass[row];
    switch ((enum vram_role)work->roles.role[row]) {
    case VRAM_ROLE_ACTIVATIONS:
    case VRAM_ROLE_RECOMPUTED:
    case VRAM_ROLE_INPUT: break;
    case VRAM_ROLE_TEMPORARIES:
        if (pass != VR_PASS_FORWARD && pass != VR_PASS_BACKWARD) return false;
        break;
    default: return false;
    }
    return !is_fixed(pass, vr_map_get(fixed, work->lifetimes->size_bytes[row]));
}

// Returns whether the forward pass keeps its allocations for training, if no backward pass was recorded: a forward pass with gradients
// keeps most of them, one without gradients frees most.
static bool keeps_for_backward(const struct vr_demand_work *work) {
    size_t kept = 0, gone = 0;
    for (size_t row = work->lifetimes->start_count; row < work->peak_row_end; row++) {
        if (work->roles.pass[row] != VR_PASS_FORWARD) continue;
        if (vr_demand_live(work, row))
            kept++;
        else
            gone++;
    }
    return gone <= 2 * kept;
}

// Returns the bytes that a first step has yet to make: gradients of all parameters, and Adam's state. A program that only queries its model
// makes neither.
static uint64_t still_to_come(const struct vr_demand_work *work, uint64_t parameters) {
    const struct vram_report_sum *of_role = work->made->of_role;
    if (work->question->oom == NULL || of_role[VRAM_ROLE_KV_CACHE].bytes != 0) return 0;
    if (!work->has_backward && (work->pass != VR_PASS_FORWARD || !keeps_for_backward(work))) return 0;
    const uint64_t gradients = of_role[VRAM_ROLE_GRADIENTS].bytes, state = of_role[VRAM_ROLE_OPTIMIZER_STATE].bytes;
    const uint64_t moments = work->has_step ? 0 : ADAM_MOMENTS * parameters;
    return (parameters > gradients ? parameters - gradients : 0) + (moments > state ? moments - state : 0);
}

// Returns the largest factor for which the curve stays within the room: at every position, the fixed part plus `factor` times the rest.
static double largest_factor(const struct vr_demand_work *work, const struct vr_live_curve *moving_curve, uint64_t room, uint64_t later) {
    int64_t level = 0, moving = 0;
    double factor = 1;
    for (size_t i = 0; i < work->curve.length; i++) {
        level += work->curve.delta[i];
        moving += moving_curve->delta[i];
        if (level <= 0 || moving <= 0) continue;
        const double fixed = (double)(level - moving) + (i + 1 == work->curve.length ? (double)later : 0);
        if (fixed + (double)moving <= (double)room) continue;
        const double most = fixed >= (double)room ? 0 : ((double)room - fixed) / (double)moving;
        if (most < factor) factor = most;
    }
    return factor;
}

// A step: a forward pass, and everything before the next one.
struct step_course {
    size_t first, end; // rows [first, end)
    bool whole;        // a backward pass and another forward pass follow
};

// Finds the last two steps: [1] is the one whose request failed. Returns false if the history has no whole step before it.
static bool find_steps(const struct vr_demand_work *work, struct step_course course[2]) {
    enum vr_role_pass before = VR_PASS_IDLE;
    size_t steps = 0;
    for (size_t row = work->lifetimes->start_count; row < work->peak_row_end; row++) {
        const enum vr_role_pass pass = (enum vr_role_pass)work->roles.pass[row];
        if (pass == VR_PASS_FORWARD && before != VR_PASS_FORWARD) {
            course[0] = course[1];
            course[0].end = row;
            course[0].whole = before == VR_PASS_BACKWARD || before == VR_PASS_OPTIMIZER;
            course[1] = (struct step_course){.first = row, .end = work->peak_row_end};
            steps++;
        }
        if (pass != VR_PASS_IDLE && pass != VR_PASS_INPUT) before = pass;
    }
    return steps > 1 && course[0].whole;
}

static size_t next_forward(const struct vr_demand_work *work, size_t row, size_t end) {
    for (; row < end; row++) {
        const uint8_t role = work->roles.role[row];
        const bool made = role == VRAM_ROLE_ACTIVATIONS || role == VRAM_ROLE_TEMPORARIES;
        if (made && work->roles.pass[row] == VR_PASS_FORWARD) break;
    }
    return row;
}

// Numbers each stack's frames without those that call the model. Returns NULL if the host is out of memory.
static uint64_t *number_calls(struct vr_demand_work *work) {
    const struct vr_stacks *stacks = &work->view->model->stacks;
    uint64_t *calls = calloc((size_t)stacks->count + 1, sizeof *calls);
    for (size_t stack = 0; calls != NULL && stack < stacks->count; stack++) {
        const uint64_t first = stacks->offset[stack];
        uint64_t end = stacks->offset[stack + 1];
        while (end > first && (vr_role_marks_of_frame(&work->roles.marks, stacks->frame[end - 1]) & VR_MARK_FORWARD) == 0) end--;
        for (uint64_t i = first; i < end; i++) calls[stack] = vr_mix64(calls[stack] + stacks->frame[i] + 1);
    }
    return calls;
}

// Returns the bytes that the later step allocates divided by those of the earlier step, up to the failure; 0 if the steps take different
// courses.
static double scale_of(const struct vr_demand_work *work, const uint64_t *calls, const struct step_course course[2]) {
    const struct vr_lifetimes *lifetimes = work->lifetimes;
    double earlier = 0, later = 0;
    size_t i = next_forward(work, course[0].first, course[0].end), j = next_forward(work, course[1].first, course[1].end);
    for (; j < course[1].end; i = next_forward(work, i + 1, course[0].end), j = next_forward(work, j + 1, course[1].end)) {
        if (i >= course[0].end || calls[lifetimes->stack[i]] != calls[lifetimes->stack[j]]) return 0;
        if (lifetimes->size_bytes[i] == lifetimes->size_bytes[j]) continue; // does not depend on the batch
        earlier += (double)lifetimes->size_bytes[i];
        later += (double)lifetimes->size_bytes[j];
    }
    return earlier > 0 ? later / earlier : 1;
}

// Like largest_factor(), for an earlier step scaled by `scale`.
static double factor_of_step(const struct vr_demand_work *work, const struct vr_live_curve *moving_curve, const struct step_course *course,
                             double scale, double room) {
    const size_t from = vr_row_from(work->lifetimes, course->first), to = vr_row_from(work->lifetimes, course->end);
    int64_t level = 0, moving = 0;
    double factor = 1;
    for (size_t i = 0; i < to && i < work->curve.length; i++) {
        level += work->curve.delta[i];
        moving += moving_curve->delta[i];
        if (i < from || moving <= 0) continue;
        const double fixed = (double)(level - moving), scaled = scale * (double)moving;
        const double most = fixed >= room ? 0 : (room - fixed) / scaled;
        if (most < factor) factor = most;
    }
    return factor;
}

// Draws the curve of the earlier step, including allocations with a parameter's size or half of it: in a smaller step, that is often a
// coincidence, and scaling them errs towards a smaller batch.
static void draw_all_moving(struct vr_demand_work *work) {
    static const struct vr_map none = {0};
    const struct vr_lifetimes *lifetimes = work->lifetimes;
    memset(work->changed.delta, 0, (work->changed.length + 1) * sizeof *work->changed.delta);
    for (size_t row = 0; row < lifetimes->count; row++) {
        if (!grows_with_batch(work, &none, row)) continue;
        vr_live_curve_add(&work->changed, vr_row_from(lifetimes, row), vr_row_to(lifetimes, row), (int64_t)lifetimes->size_bytes[row]);
    }
}

// Returns the bytes of live optimizer state made from row `first` on.
static uint64_t state_since(const struct vr_demand_work *work, size_t first) {
    uint64_t bytes = 0;
    for (size_t row = first; row < work->peak_row_end; row++) {
        const bool state = work->roles.role[row] == VRAM_ROLE_OPTIMIZER_STATE;
        if (state && vr_demand_live(work, row)) bytes += work->lifetimes->size_bytes[row];
    }
    return bytes;
}

static enum vram_status by_earlier_step(struct vr_demand_work *work, double room, double *factor) {
    struct step_course course[2] = {{.first = 0}, {.first = 0}};
    if (!work->made->unfinished || !find_steps(work, course)) return VRAM_OK;
    uint64_t *calls = number_calls(work);
    if (calls == NULL) return VRAM_NO_HOST_MEMORY;
    const double scale = scale_of(work, calls, course);
    free(calls);
    if (scale <= 0) return VRAM_OK;
    draw_all_moving(work);
    const double most = factor_of_step(work, &work->changed, &course[0], scale, room - (double)state_since(work, course[0].first));
    if (most < *factor) *factor = most;
    work->made->earlier_step = true;
    return VRAM_OK;
}

static enum vram_status draw_moving(struct vr_demand_work *work, struct vr_map *fixed, struct vram_report_remedy *remedy,
                                    uint64_t *parameters) {
    const struct vr_lifetimes *lifetimes = work->lifetimes;
    VR_TRY(find_fixed_sizes(work, fixed, parameters));
    memset(work->changed.delta, 0, (work->changed.length + 1) * sizeof *work->changed.delta);
    for (size_t row = 0; row < lifetimes->count; row++) {
        if (!grows_with_batch(work, fixed, row)) continue;
        vr_live_curve_add(&work->changed, vr_row_from(lifetimes, row), vr_row_to(lifetimes, row), (int64_t)lifetimes->size_bytes[row]);
        if (!vr_demand_live(work, row)) continue;
        remedy->blocks++;
        remedy->bytes += lifetimes->size_bytes[row];
    }
    return VRAM_OK;
}

static enum vram_status try_batch(struct vr_demand_work *work, struct vr_map *fixed) {
    const struct vram_report_demand *made = work->made;
    struct vram_report_remedy remedy = {.remedy = VRAM_REMEDY_BATCH, .divisor = 1, .next_event = VR_SAME_MOMENT};
    uint64_t parameters, scaled_request = 0;
    VR_TRY(draw_moving(work, fixed, &remedy, &parameters));
    const bool in_passes = work->pass == VR_PASS_FORWARD || work->pass == VR_PASS_BACKWARD;
    if (work->question->oom != NULL && in_passes && !is_fixed(work->pass, vr_map_get(fixed, made->request_bytes))) {
        const size_t at = (size_t)work->question->event + 1;
        scaled_request = made->request_bytes;
        vr_live_curve_add(&work->changed, at, at + 1, (int64_t)scaled_request);
    }
    // Rounding and pending frees also need part of the room.
    const uint64_t beyond = made->wanted_bytes - made->in_use_bytes - made->request_bytes, slack = made->room_bytes / SLACK_PART;
    const uint64_t room = made->room_bytes > beyond + slack ? made->room_bytes - beyond - slack : 0;
    work->made->later_bytes = still_to_come(work, parameters);
    remedy.factor = largest_factor(work, &work->changed, room, work->made->later_bytes);
    VR_TRY(by_earlier_step(work, (double)room, &remedy.factor));
    if (remedy.factor >= 1 || remedy.factor < 1.0 / 4096) return VRAM_OK;
    const uint64_t saved = (uint64_t)((double)(remedy.bytes + scaled_request) * (1 - remedy.factor));
    vr_remedy_add(work, remedy, work->peak_bytes > saved ? work->peak_bytes - saved : 0);
    return VRAM_OK;
}

enum vram_status vr_add_batch(struct vr_demand_work *work) {
    struct vr_map fixed = {0};
    const enum vram_status status = try_batch(work, &fixed);
    vr_map_release(&fixed);
    return status;
}

// --- chunking the largest tensors --------------------------------------------------------------------------------------------------------

static bool is_of_passes(const struct vr_demand_work *work, size_t row) {
    const enum vr_role_pass pass = (enum vr_role_pass)work->roles.pass[row];
    return pass == VR_PASS_FORWARD || pass == VR_PASS_BACKWARD;
}

// Returns the largest activation live at the moment; SIZE_MAX if none is large enough to be chunked.
static size_t largest_activation(const struct vr_demand_work *work) {
    const struct vr_lifetimes *lifetimes = work->lifetimes;
    size_t largest = SIZE_MAX;
    for (size_t row = lifetimes->start_count; row < work->peak_row_end; row++) {
        const bool made = vr_demand_live(work, row) && work->roles.role[row] == VRAM_ROLE_ACTIVATIONS;
        if (made && (largest == SIZE_MAX || lifetimes->size_bytes[row] > lifetimes->size_bytes[largest])) largest = row;
    }
    if (largest == SIZE_MAX || lifetimes->size_bytes[largest] < work->peak_bytes / CHUNK_PART) return SIZE_MAX;
    return largest;
}

bool vr_largest_is_alone(const struct vr_demand_work *work) {
    const size_t largest = largest_activation(work);
    size_t equals = 0;
    for (size_t row = work->lifetimes->start_count; largest != SIZE_MAX && row < work->peak_row_end; row++) {
        const bool same = work->lifetimes->stack[row] == work->lifetimes->stack[largest];
        equals += same && vr_demand_live(work, row) && work->lifetimes->size_bytes[row] == work->lifetimes->size_bytes[largest];
    }
    return equals != 0 && equals <= MOST_EQUALS;
}

static bool is_of_loss(struct vr_demand_work *work, size_t row) {
    return (vr_role_marks_of(&work->roles.marks, work->lifetimes->stack[row]) & VR_MARK_LOSS) != 0;
}

enum vram_status vr_add_chunks(struct vr_demand_work *work) {
    const struct vr_lifetimes *lifetimes = work->lifetimes;
    const size_t largest = largest_activation(work);
    const uint64_t size = lifetimes->size_bytes[largest];
    struct vram_report_remedy remedy = {
        .remedy = VRAM_REMEDY_CHUNKS, .factor = 1, .divisor = CHUNKS_TRIED, .of_loss = is_of_loss(work, largest)};
    vr_live_curve_copy(&work->changed, &work->curve);
    for (size_t row = lifetimes->start_count; row < lifetimes->count; row++) {
        if (!vr_is_of_size(lifetimes->size_bytes[row], size) || !is_of_passes(work, row)) continue;
        vr_live_curve_add(&work->changed, vr_row_from(lifetimes, row), vr_row_to(lifetimes, row),
                          -(int64_t)(lifetimes->size_bytes[row] / CHUNKS_TRIED * (CHUNKS_TRIED - 1)));
        if (!vr_demand_live(work, row)) continue;
        remedy.blocks++;
        remedy.bytes += lifetimes->size_bytes[row];
    }
    if (work->question->oom != NULL && vr_is_of_size(work->made->request_bytes, size)) {
        const size_t at = (size_t)work->question->event + 1;
        vr_live_curve_add(&work->changed, at, at + 1, -(int64_t)(work->made->request_bytes / CHUNKS_TRIED * (CHUNKS_TRIED - 1)));
    }
    VR_TRY(
        vr_sites_name(work->question->sites, vr_sites_frame(work->question->sites, lifetimes->stack[largest]), work->arena, &remedy.site));
    vr_remedy_add_curve(work, remedy);
    return VRAM_OK;
}

// --- dropping gradients ------------------------------------------------------------------------------------------------------------------

struct gradient_drop {
    struct vr_map waiting; // size -> 1 + index of the last waiting gradient
    uint32_t *row;         // gradients live when the forward pass began
    uint32_t *next;        // 1 + index of the previous one of the same size; NEVER if it is live again
    size_t count, row_capacity, next_capacity;
    size_t forward; // position at which the forward pass began
};

// Begins a forward pass: all gradients live at its beginning would have been dropped by then.
static enum vram_status begin_forward(struct vr_demand_work *work, struct gradient_drop *drop, size_t position) {
    const struct vr_lifetimes *lifetimes = work->lifetimes;
    size_t kept = 0;
    drop->forward = position;
    vr_map_clear(&drop->waiting);
    VR_TRY(vr_grow((void **)&drop->next, &drop->next_capacity, drop->count + 1, sizeof *drop->next));
    for (size_t i = 0; i < drop->count; i++) {
        const uint32_t row = drop->row[i];
        if (vr_row_to(lifetimes, row) <= position) continue;
        drop->row[kept] = row;
        drop->next[kept] = (uint32_t)vr_map_get(&drop->waiting, lifetimes->size_bytes[row]);
        VR_TRY(vr_map_set(&drop->waiting, lifetimes->size_bytes[row], ++kept));
    }
    drop->count = kept;
    return VRAM_OK;
}

// Called for each allocation of the backward pass. An allocation with the size of a kept gradient is the new gradient that is added to it;
// a dropped gradient would be allocated here.
static enum vram_status begin_again(struct vr_demand_work *work, struct gradient_drop *drop, uint64_t bytes, size_t position) {
    const uint64_t place = vr_map_get(&drop->waiting, bytes);
    if (place == 0) return VRAM_OK;
    const uint32_t before = drop->next[place - 1];
    drop->next[place - 1] = VR_NEVER;
    if (vr_row_to(work->lifetimes, drop->row[place - 1]) > position)
        vr_live_curve_add(&work->changed, drop->forward, position, -(int64_t)bytes);
    if (before != 0) return vr_map_set(&drop->waiting, bytes, before);
    (void)vr_map_take(&drop->waiting, bytes);
    return VRAM_OK;
}

static enum vram_status drop_gradients(struct vr_demand_work *work, struct gradient_drop *drop, struct vram_report_remedy *remedy) {
    const struct vr_lifetimes *lifetimes = work->lifetimes;
    enum vr_role_pass before = VR_PASS_IDLE;
    for (size_t row = 0; row < lifetimes->count; row++) {
        const enum vr_role_pass pass = (enum vr_role_pass)work->roles.pass[row];
        const size_t from = vr_row_from(lifetimes, row);
        if (from >= work->curve.length) break;
        if (row >= lifetimes->start_count && pass == VR_PASS_FORWARD && before != pass) VR_TRY(begin_forward(work, drop, from));
        if (row >= lifetimes->start_count && pass != VR_PASS_IDLE && pass != VR_PASS_INPUT) before = pass;
        if (pass == VR_PASS_BACKWARD) VR_TRY(begin_again(work, drop, lifetimes->size_bytes[row], from));
        if (work->roles.role[row] != VRAM_ROLE_GRADIENTS) continue;
        VR_TRY(vr_grow((void **)&drop->row, &drop->row_capacity, drop->count + 1, sizeof *drop->row));
        VR_TRY(vr_grow((void **)&drop->next, &drop->next_capacity, drop->count + 1, sizeof *drop->next));
        drop->next[drop->count] = VR_NEVER; // made in this step, so it does not wait
        drop->row[drop->count++] = (uint32_t)row;
        if (!vr_demand_live(work, row)) continue;
        remedy->blocks++;
        remedy->bytes += lifetimes->size_bytes[row];
    }
    return VRAM_OK;
}

// Drops the gradients that the backward pass did not make again before the end of the history.
static void drop_the_rest(struct vr_demand_work *work, const struct gradient_drop *drop) {
    for (size_t i = 0; i < drop->count; i++) {
        if (drop->next[i] == VR_NEVER) continue;
        const uint32_t row = drop->row[i];
        vr_live_curve_add(&work->changed, drop->forward, vr_row_to(work->lifetimes, row), -(int64_t)work->lifetimes->size_bytes[row]);
    }
}

enum vram_status vr_add_gradients_none(struct vr_demand_work *work) {
    struct vram_report_remedy remedy = {.remedy = VRAM_REMEDY_GRADIENTS_NONE, .factor = 1, .divisor = 1};
    struct gradient_drop drop = {.count = 0};
    if (work->made->of_role[VRAM_ROLE_GRADIENTS].bytes == 0) return VRAM_OK;
    vr_live_curve_copy(&work->changed, &work->curve);
    const enum vram_status status = drop_gradients(work, &drop, &remedy);
    if (status == VRAM_OK && work->question->oom != NULL && work->pass != VR_PASS_OPTIMIZER) drop_the_rest(work, &drop);
    vr_map_release(&drop.waiting);
    free(drop.row);
    free(drop.next);
    if (status != VRAM_OK) return status;
    vr_remedy_add_curve(work, remedy);
    return VRAM_OK;
}

// ---- Remedies that reduce allocations of one role, or made in one way.

enum {
    SHARDS = 2,         // number of devices
    SCORES_PART = 10,   // of the peak: least size of attention scores to be worth avoiding
    LEAST_SCORES = 128, // tokens in a sequence
    MOST_SCORES = 1 << 20
};

// Adds a remedy that reduces each row by the share that `part` returns.
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
    return work->roles.role[row] == VRAM_ROLE_OPTIMIZER_STATE ? 0.74 : 0; // one byte instead of four, plus a scale of four bytes per 256
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

// Adds the remedy of dropping the marked rows, except those of one step.
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

// Returns whether a size may be batch * heads * sequence * sequence values of two or four bytes.
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
