// Live bytes as in a modified program, remedies that lower their maximum, and the savings of recomputing activations.
#include "analyze/demand.h"

// ---- Live bytes as in a modified program, and the list of remedies.

enum vram_status vr_live_curve_init(struct vr_live_curve *curve, size_t length) {
    int64_t *delta = calloc(length + 1, sizeof *delta);
    if (delta == NULL) return VRAM_NO_HOST_MEMORY;
    *curve = (struct vr_live_curve){.delta = delta, .length = length};
    return VRAM_OK;
}

void vr_live_curve_release(struct vr_live_curve *curve) {
    free(curve->delta);
    *curve = (struct vr_live_curve){.delta = NULL};
}

void vr_live_curve_copy(struct vr_live_curve *curve, const struct vr_live_curve *from) {
    memcpy(curve->delta, from->delta, (from->length + 1) * sizeof *from->delta);
}

void vr_live_curve_add(struct vr_live_curve *curve, size_t from, size_t to, int64_t bytes) {
    const size_t first = from < curve->length ? from : curve->length, end = to < curve->length ? to : curve->length;
    if (first >= end) return;
    curve->delta[first] += bytes;
    curve->delta[end] -= bytes;
}

// Returns the maximum, and the first position that reaches it.
static uint64_t live_curve_peak_at(const struct vr_live_curve *curve, size_t *position) {
    int64_t level = 0, most = 0;
    *position = 0;
    for (size_t i = 0; i < curve->length; i++) {
        level += curve->delta[i];
        if (level <= most) continue;
        most = level;
        *position = i;
    }
    return (uint64_t)most;
}

uint64_t vr_live_curve_peak(const struct vr_live_curve *curve) {
    size_t position;
    return live_curve_peak_at(curve, &position);
}

// ---- The remedies worth listing.

enum { LEAST_PART = 50 }; // of the peak: a smaller saving is not worth a change to the program

const char *vram_remedy_name(size_t remedy) {
    static const char *const names[] = {
#define REMEDY_NAME(constant, name) #name,
        VRAM_REMEDIES(REMEDY_NAME)
#undef REMEDY_NAME
    };
    return remedy < VR_COUNT_OF(names) ? names[remedy] : NULL;
}

void vr_remedy_add(struct vr_demand_work *work, struct vram_report_remedy remedy, uint64_t left) {
    struct vram_report_demand *made = work->made;
    const uint64_t saved = work->peak_bytes > left ? work->peak_bytes - left : 0;
    const bool to_measure = remedy.factor < 1; // list the least reduction that suffices, even if it is small
    if ((saved < work->peak_bytes / LEAST_PART && !to_measure) || saved == 0 || made->remedy_count == VR_MOST_REMEDIES) return;
    struct vram_report_remedy *remedies = (struct vram_report_remedy *)(uintptr_t)made->remedies; // in the arena, and not shared yet
    remedy.saved_bytes = saved;
    remedy.left_bytes = made->wanted_bytes > saved ? made->wanted_bytes - saved : 0;
    remedy.fits = remedy.left_bytes <= made->room_bytes;
    remedy.text = remedy.basis = "";
    if (remedy.site == NULL) remedy.site = "";
    remedies[made->remedy_count++] = remedy;
}

// Returns the maximum of `changed` and the event after which it occurs; VR_SAME_MOMENT if that is the moment in question.
static int64_t remedy_next_event(const struct vr_demand_work *work, uint64_t *left) {
    size_t position;
    *left = live_curve_peak_at(&work->changed, &position);
    const int64_t event = (int64_t)position - 1;
    return event == work->question->event ? VR_SAME_MOMENT : event;
}

void vr_remedy_add_curve(struct vr_demand_work *work, struct vram_report_remedy remedy) {
    uint64_t left;
    remedy.next_event = remedy_next_event(work, &left);
    vr_remedy_add(work, remedy, left);
}

// ---- The call whose activations are best recomputed in the backward pass: the curve is drawn again for each candidate. A recomputed call
// keeps its inputs and its result. Everything else that it keeps for the backward pass is live until the call returns, and again from the
// moment when the backward pass first frees some of it.

enum { CANDIDATES = 24, PERIODS = 64, LOOKS_PER_ROW = 256 };

struct recompute_candidate {
    uint32_t frame;
    bool function;  // true: all calls of the frame's function; false: only the callees of this line
    uint64_t bytes; // of activations live at the moment, made below this frame
};

// The rows that a frame made in one forward pass, in the order of birth.
struct frame_pass {
    uint32_t *row;
    uint64_t *call; // number of the frame's callee that made it
    size_t count, row_capacity, call_capacity;
};

struct recompute_trial {
    struct vr_demand_work *work;
    uint64_t *below; // by stack: 0 if the frame is not in it, otherwise the number of the frames further inside
    struct frame_pass pass;
    uint64_t blocks, bytes; // of the rows that are live at the moment, but would not be then
    uint64_t most_calls;    // in one pass
    uint64_t looks;         // remaining budget of row comparisons in the search for periods
};

static int by_candidate_bytes(const void *a, const void *b) {
    const struct recompute_candidate *x = a, *y = b;
    if (x->bytes != y->bytes) return VR_ORDER(y->bytes, x->bytes);
    return x->frame != y->frame ? VR_ORDER(x->frame, y->frame) : VR_ORDER(x->function, y->function);
}

static bool is_saved(const struct vr_demand_work *work, size_t row) { return work->roles.role[row] == VRAM_ROLE_ACTIVATIONS; }

static bool frame_is_of(const struct vr_frames *frames, uint32_t frame, const struct recompute_candidate *candidate) {
    if (!candidate->function) return frame == candidate->frame;
    return frames->name[frame] == frames->name[candidate->frame] && frames->filename[frame] == frames->filename[candidate->frame];
}

// Returns whether the name of the frame's function identifies it. Every module has a `forward` and a `__call__`, so these names do not.
static bool has_own_name(const struct vr_model *model, uint32_t frame) {
    const char *name = vr_model_string(model, model->frames.name[frame]), *dot = strrchr(name, '.');
    const char *last = dot == NULL ? name : dot + 1;
    return dot != NULL || (strcmp(last, "forward") != 0 && strcmp(last, "__call__") != 0 && last[0] != '<');
}

static enum vram_status weigh_key(struct vr_map *bytes, uint64_t key, uint64_t more) {
    const uint64_t sum = vr_map_get(bytes, key) + more;
    return sum == 0 ? VRAM_OK : vr_map_set(bytes, key, sum);
}

struct frame_weights {
    struct vr_map functions; // name and file -> 1 + the first such frame
    struct vr_map counted;   // candidate's key -> 1 + the stack for which it was last counted, so that a stack counts once
    struct vr_map bytes;     // by 2 * frame; for functions by 2 * frame + 1
};

static enum vram_status count_once(struct frame_weights *weights, uint64_t key, uint32_t stack, uint64_t more) {
    if (vr_map_get(&weights->counted, key) == (uint64_t)stack + 1) return VRAM_OK;
    VR_TRY(vr_map_set(&weights->counted, key, (uint64_t)stack + 1));
    return weigh_key(&weights->bytes, key, more);
}

// Weighs the program's own lines and functions that make activations.
static enum vram_status weigh_stack(struct vr_demand_work *work, uint32_t stack, uint64_t more, struct frame_weights *weights) {
    const struct vr_model *model = work->view->model;
    for (uint64_t i = model->stacks.offset[stack]; i < model->stacks.offset[stack + 1]; i++) {
        const uint32_t frame = model->stacks.frame[i];
        const bool own = vr_sites_kind(work->question->sites, frame) == VR_FRAME_OWN;
        if (!own || !vr_role_marks_is_own(&work->roles.marks, frame)) continue;
        VR_TRY(count_once(weights, 2 * (uint64_t)frame, stack, more));
        if (!has_own_name(model, frame)) continue;
        const uint64_t name = (uint64_t)model->frames.name[frame] << 32 | model->frames.filename[frame];
        if (vr_map_get(&weights->functions, name) == 0) VR_TRY(vr_map_set(&weights->functions, name, (uint64_t)frame + 1));
        VR_TRY(count_once(weights, 2 * (vr_map_get(&weights->functions, name) - 1) + 1, stack, more));
    }
    return VRAM_OK;
}

static enum vram_status weigh_frames(struct vr_demand_work *work, struct frame_weights *weights) {
    const size_t stacks = work->view->model->stacks.count;
    uint64_t *of_stack = calloc(stacks + 1, sizeof *of_stack);
    enum vram_status status = of_stack == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    for (size_t row = work->lifetimes->start_count; row < work->peak_row_end && status == VRAM_OK; row++) {
        if (is_saved(work, row) && vr_demand_live(work, row)) of_stack[work->lifetimes->stack[row]] += work->lifetimes->size_bytes[row];
    }
    for (size_t stack = 0; stack < stacks && status == VRAM_OK; stack++) {
        if (of_stack[stack] != 0) status = weigh_stack(work, (uint32_t)stack, of_stack[stack], weights);
    }
    free(of_stack);
    return status;
}

// Names a function by its line with the most bytes.
static void name_functions(const struct vr_frames *frames, struct recompute_candidate *candidates, size_t count, size_t all) {
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < all && candidates[i].function; j++) {
            if (candidates[j].function || !frame_is_of(frames, candidates[j].frame, &candidates[i])) continue;
            candidates[i].frame = candidates[j].frame;
            break;
        }
    }
}

static enum vram_status find_candidates(struct vr_demand_work *work, struct recompute_candidate **candidates, size_t *count) {
    struct frame_weights weights = {.functions = {0}};
    struct vr_map_slot entry;
    size_t at = 0, found = 0;
    const enum vram_status status = weigh_frames(work, &weights);
    struct recompute_candidate *made = status == VRAM_OK ? malloc((weights.bytes.count + 1) * sizeof *made) : NULL;
    if (made != NULL) {
        while (vr_map_next(&weights.bytes, &at, &entry))
            made[found++] =
                (struct recompute_candidate){.frame = (uint32_t)(entry.key >> 1), .function = (entry.key & 1) != 0, .bytes = entry.value};
        if (found != 0) qsort(made, found, sizeof *made, by_candidate_bytes);
    }
    vr_map_release(&weights.functions);
    vr_map_release(&weights.counted);
    vr_map_release(&weights.bytes);
    if (made != NULL) name_functions(&work->view->model->frames, made, found < CANDIDATES ? found : CANDIDATES, found);
    if (made == NULL) return status == VRAM_OK ? VRAM_NO_HOST_MEMORY : status;
    *candidates = made;
    *count = found < CANDIDATES ? found : CANDIDATES;
    return VRAM_OK;
}

// --- calls -------------------------------------------------------------------------------------------------------------------------------

// Finds repeated calls: the longest run from row `first` on in which each row equals the one `period` rows before, trying the periods at
// which the first row recurs. Returns the run's end; *period is 0 if nothing repeats.
static size_t find_run(struct recompute_trial *trial, size_t first, size_t *period) {
    const struct frame_pass *pass = &trial->pass;
    size_t best_end = first + 1, tried = 0;
    *period = 0;
    for (size_t again = first + 1; again < pass->count && tried < PERIODS; again++) {
        if (trial->looks == 0) break;
        trial->looks--;
        if (pass->call[again] != pass->call[first]) continue;
        const size_t length = again - first;
        size_t end = again;
        tried++;
        while (end < pass->count && pass->call[end] == pass->call[end - length]) end++;
        trial->looks -= trial->looks < end - again ? trial->looks : end - again;
        if (end - first < 2 * length || end <= best_end) continue;
        best_end = end;
        *period = length;
    }
    return best_end;
}

// Removes the rows that a call keeps between its forward and its backward computation. The call made the rows [first, end) of the pass; it
// keeps those live past `backward`, where the backward pass begins, except the last of them, which is its result.
static void drop_call(struct recompute_trial *trial, size_t first, size_t end, size_t backward) {
    struct vr_demand_work *work = trial->work;
    const struct vr_lifetimes *lifetimes = work->lifetimes;
    const uint32_t *row = trial->pass.row;
    const size_t returned = vr_row_from(lifetimes, row[end - 1]) + 1, moment = (size_t)(work->question->event + 1);
    size_t result = SIZE_MAX, again = SIZE_MAX; // again: when the backward pass first frees a row
    for (size_t i = first; i < end; i++) {
        if (is_saved(work, row[i]) && vr_row_to(lifetimes, row[i]) > backward) result = i;
    }
    for (size_t i = first; i < end; i++) {
        const size_t to = vr_row_to(lifetimes, row[i]);
        if (i != result && is_saved(work, row[i]) && to > backward && to - 1 < again) again = to - 1;
    }
    if (again < returned) again = returned;
    for (size_t i = first; i < end; i++) {
        if (i == result || !is_saved(work, row[i]) || vr_row_to(lifetimes, row[i]) <= backward) continue;
        vr_live_curve_add(&work->changed, returned, again, -(int64_t)lifetimes->size_bytes[row[i]]);
        if (moment < returned || moment >= again) continue;
        trial->blocks++;
        trial->bytes += lifetimes->size_bytes[row[i]];
    }
}

static bool is_below_request(const struct recompute_trial *trial) {
    const struct vr_demand_question *question = trial->work->question;
    return question->oom != NULL && trial->below[question->view->history->stack[question->event]];
}

// Drops calls; leaves the call during which the request failed as it is.
static void drop_calls(struct recompute_trial *trial, size_t first, size_t end, size_t period, size_t backward) {
    const bool failed = backward == SIZE_MAX && end == trial->pass.count && is_below_request(trial);
    for (; first < end; first += period) {
        const size_t next = first + period < end ? first + period : end;
        if (next < end || !failed) drop_call(trial, first, next, backward == SIZE_MAX ? trial->work->curve.length : backward);
    }
}

// Drops a pass. Distinguishes calls if the whole pass repeats; otherwise it is one call. backward: SIZE_MAX if the history ends before the
// backward pass.
static void drop_pass(struct recompute_trial *trial, size_t backward) {
    const size_t count = trial->pass.count;
    uint64_t calls = 0;
    size_t period = 1;
    for (size_t first = 0; first < count && period != 0; first = find_run(trial, first, &period)) continue;
    const bool repeats = period != 0;
    for (size_t first = 0, run; first < count; first = run) {
        run = repeats ? find_run(trial, first, &period) : count;
        if (!repeats) period = count;
        drop_calls(trial, first, run, period, backward);
        calls += (run - first + period - 1) / period;
    }
    if (calls > trial->most_calls) trial->most_calls = calls;
    trial->pass.count = 0;
}

// Drops all passes; a pass ends where the backward pass or an optimizer begins.
static enum vram_status drop_all(struct recompute_trial *trial) {
    struct vr_demand_work *work = trial->work;
    const struct vr_lifetimes *lifetimes = work->lifetimes;
    struct frame_pass *pass = &trial->pass;
    for (size_t row = lifetimes->start_count; row < lifetimes->count; row++) {
        const enum vr_role_pass of_row = (enum vr_role_pass)work->roles.pass[row];
        if (vr_row_from(lifetimes, row) >= work->curve.length) break;
        if (of_row == VR_PASS_BACKWARD || of_row == VR_PASS_OPTIMIZER) drop_pass(trial, vr_row_from(lifetimes, row));
        if (of_row != VR_PASS_FORWARD || trial->below[lifetimes->stack[row]] == 0) continue;
        VR_TRY(vr_grow((void **)&pass->row, &pass->row_capacity, pass->count + 1, sizeof *pass->row));
        VR_TRY(vr_grow((void **)&pass->call, &pass->call_capacity, pass->count + 1, sizeof *pass->call));
        pass->call[pass->count] = trial->below[lifetimes->stack[row]];
        pass->row[pass->count++] = (uint32_t)row;
    }
    drop_pass(trial, SIZE_MAX);
    return VRAM_OK;
}

static void mark_stacks(const struct vr_model *model, const struct recompute_candidate *candidate, uint64_t *below) {
    for (size_t stack = 0; stack < model->stacks.count; stack++) {
        uint64_t inside = 1;
        below[stack] = 0;
        for (uint64_t i = model->stacks.offset[stack]; i < model->stacks.offset[stack + 1] && below[stack] == 0; i++) {
            const uint32_t frame = model->stacks.frame[i];
            inside = vr_mix64(inside + frame);
            if (frame_is_of(&model->frames, frame, candidate)) below[stack] = inside | 1;
        }
    }
}

static enum vram_status try_frame(struct vr_demand_work *work, const struct recompute_candidate *candidate, uint64_t *below,
                                  struct recompute_trial *trial, uint64_t *left, int64_t *next_event) {
    struct frame_pass room = trial->pass;
    *trial = (struct recompute_trial){
        .work = work, .below = below, .pass = room, .looks = LOOKS_PER_ROW * (uint64_t)(work->lifetimes->count + LOOKS_PER_ROW)};
    mark_stacks(work->view->model, candidate, below);
    vr_live_curve_copy(&work->changed, &work->curve);
    VR_TRY(drop_all(trial));
    *next_event = remedy_next_event(work, left);
    return VRAM_OK;
}

static enum vram_status try_all(struct vr_demand_work *work, const struct recompute_candidate *candidates, size_t count, uint64_t *below,
                                struct recompute_trial *trial) {
    struct vram_report_remedy best = {.remedy = VRAM_REMEDY_RECOMPUTE, .factor = 1, .divisor = 1};
    uint64_t least = UINT64_MAX;
    uint32_t frame = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t left;
        int64_t next_event;
        VR_TRY(try_frame(work, &candidates[i], below, trial, &left, &next_event));
        // A single call that is recomputed as a whole needs as much as before. Among equal results, take the one that holds less, which is
        // further inside.
        if (trial->most_calls < 2 || left > least) continue;
        least = left;
        frame = candidates[i].frame;
        best.function = candidates[i].function;
        best.next_event = next_event;
        best.calls = trial->most_calls;
        best.blocks = trial->blocks;
        best.bytes = trial->bytes;
    }
    if (least == UINT64_MAX) return VRAM_OK;
    VR_TRY(vr_sites_name(work->question->sites, frame, work->arena, &best.site));
    vr_remedy_add(work, best, least);
    return VRAM_OK;
}

enum vram_status vr_recompute_find(struct vr_demand_work *work) {
    struct recompute_candidate *candidates = NULL;
    struct recompute_trial trial = {.work = work};
    size_t count = 0;
    VR_TRY(find_candidates(work, &candidates, &count));
    uint64_t *below = malloc(((size_t)work->view->model->stacks.count + 1) * sizeof *below);
    enum vram_status status = below == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    if (status == VRAM_OK) status = try_all(work, candidates, count, below, &trial);
    free(trial.pass.row);
    free(trial.pass.call);
    free(below);
    free(candidates);
    return status;
}
