#include "analyze/moments.h"

#include "analyze/frame_kinds.h"
#include "analyze/size_curve.h"

// --- the moments of one run --------------------------------------------------------------------------------------------------------------

static const char *base_name(const char *path) {
    const char *name = path;
    for (; *path != '\0'; path++) name = *path == '/' || *path == '\\' ? path + 1 : name;
    return name;
}

static uint64_t add_frame(uint64_t hash, const struct vr_model *model, uint32_t frame) {
    const char *name = vr_model_string(model, model->frames.name[frame]);
    const char *file = base_name(vr_model_string(model, model->frames.filename[frame]));
    return vr_hash_step(vr_hash_bytes(hash, name, strlen(name)), vr_hash_bytes(1, file, strlen(file)));
}

// Of a stack with Python these frames alone: interpreters call a function in several ways.
static uint64_t stack_number(const struct vr_model *model, uint32_t stack) {
    uint64_t python = 0, all = 0;
    for (uint64_t i = model->stacks.offset[stack]; i < model->stacks.offset[stack + 1]; i++) {
        const uint32_t frame = model->stacks.frame[i];
        if (vr_frame_is_python(model, frame, false)) python = add_frame(python + 1, model, frame);
        all = add_frame(all + 1, model, frame);
    }
    return python != 0 ? python : all;
}

static int by_stack_and_event(const void *a, const void *b) {
    const struct vr_run_moment *x = a, *y = b;
    return x->stack != y->stack ? VR_ORDER(x->stack, y->stack) : VR_ORDER(x->event, y->event);
}

// Live bytes after each event, by its number plus 1. Given to the caller (free()).
static int64_t *live_bytes(const struct vr_view *view, const struct vr_lifetimes *lifetimes) {
    int64_t *live = calloc(view->history->count + 2, sizeof *live);
    if (live == NULL) return NULL;
    for (size_t row = 0; row < lifetimes->count; row++) {
        const int64_t bytes = (int64_t)lifetimes->size_bytes[row];
        live[lifetimes->birth[row] == VR_BEFORE_TRACE ? 0 : (size_t)lifetimes->birth[row] + 1] += bytes;
        if (lifetimes->death[row] != VR_NEVER) live[(size_t)lifetimes->death[row] + 1] -= bytes;
    }
    for (size_t i = 1; i <= view->history->count; i++) live[i] += live[i - 1];
    return live;
}

static void fill_run(const struct vr_view *view, const struct vr_lifetimes *lifetimes, const int64_t *live, uint64_t *numbers,
                     struct vr_run_moments *moments) {
    for (size_t row = lifetimes->start_count; row < lifetimes->count; row++) {
        const uint32_t stack = lifetimes->stack[row], event = lifetimes->birth[row];
        if (numbers[stack] == 0) numbers[stack] = stack_number(view->model, stack) | 1;
        moments->moment[moments->count++] = (struct vr_run_moment){
            .stack = numbers[stack], .event = event, .bytes = (uint64_t)(live[(size_t)event + 1] < 0 ? 0 : live[(size_t)event + 1])};
    }
    if (moments->count != 0) qsort(moments->moment, moments->count, sizeof *moments->moment, by_stack_and_event);
    for (size_t i = 1; i < moments->count; i++) {
        const struct vr_run_moment *before = &moments->moment[i - 1];
        if (before->stack == moments->moment[i].stack) moments->moment[i].order = before->order + 1;
    }
}

enum vram_status vr_moments_find(const struct vr_view *view, const struct vr_lifetimes *lifetimes, struct vr_run_moments *moments) {
    struct vr_run_moments found = {.moment = malloc((lifetimes->count + 1) * sizeof *found.moment)};
    int64_t *live = live_bytes(view, lifetimes);
    uint64_t *numbers = calloc(view->model->stacks.count, sizeof *numbers);
    const bool enough = found.moment != NULL && live != NULL && numbers != NULL;
    if (enough) fill_run(view, lifetimes, live, numbers, &found);
    free(live);
    free(numbers);
    if (enough)
        *moments = found;
    else
        free(found.moment);
    return enough ? VRAM_OK : VRAM_NO_HOST_MEMORY;
}

void vr_moments_release(struct vr_run_moments *moments) {
    free(moments->moment);
    *moments = (struct vr_run_moments){.moment = NULL};
}

// --- the same ones in all runs -----------------------------------------------------------------------------------------------------------

struct moment_following {
    const struct vr_run_moments *moments;
    const struct vr_lifetimes *const *lifetimes;
    const double *size;
    size_t runs;
    double wanted;
    struct vr_followed_list list;
};

static void estimate_moment(const struct moment_following *following, struct vr_followed *followed) {
    struct vr_size_points points = {.count = following->runs};
    for (size_t run = 0; run < following->runs; run++) {
        points.size[run] = following->size[run];
        points.bytes[run] = (double)followed->bytes[run];
    }
    followed->most = vr_size_curve_at(&points, following->wanted).high;
}

// The moments of one stack in one run.
struct of_stack {
    const struct vr_run_moment *moment;
    size_t count;
};

static struct of_stack of_stack(const struct vr_run_moments *moments, uint64_t stack) {
    size_t first, end;
    VR_LOWER_BOUND(first, i, 0, moments->count, moments->moment[i].stack < stack);
    VR_LOWER_BOUND(end, k, first, moments->count, moments->moment[k].stack <= stack);
    return (struct of_stack){.moment = moments->moment + first, .count = end - first};
}

static size_t highest_stack(const struct of_stack *of) {
    size_t best = 0;
    for (size_t i = 1; i < of->count; i++) best = of->moment[i].bytes > of->moment[best].bytes ? i : best;
    return best;
}

static bool is_peak(const struct moment_following *following, size_t run, int64_t event) {
    return following->lifetimes[run]->peak_event == event;
}

static enum vram_status keep_moment(struct moment_following *following, const struct vr_followed *followed) {
    struct vr_followed_list *list = &following->list;
    VR_TRY(vr_grow((void **)&list->followed, &list->capacity, list->count + 1, sizeof *list->followed));
    list->followed[list->count++] = *followed;
    for (size_t run = 0; run < following->runs; run++) {
        if (is_peak(following, run, followed->event[run])) list->peaks |= 1u << run;
    }
    return VRAM_OK;
}

static struct vr_followed followed_at(const struct moment_following *following, const struct of_stack *of, const size_t *order) {
    struct vr_followed followed = {.most = 0};
    for (size_t run = 0; run < following->runs; run++) {
        followed.event[run] = of[run].moment[order[run]].event;
        followed.bytes[run] = of[run].moment[order[run]].bytes;
    }
    estimate_moment(following, &followed);
    return followed;
}

static bool has_a_peak(const struct moment_following *following, const struct vr_followed *followed) {
    for (size_t run = 0; run < following->runs; run++) {
        if (is_peak(following, run, followed->event[run])) return true;
    }
    return false;
}

// As many in every run: each of them is followed.
static enum vram_status follow_each(struct moment_following *following, const struct of_stack *of) {
    struct vr_followed best = {.most = -1};
    for (size_t i = 0; i < of[0].count; i++) {
        const size_t order[VRAM_FORECAST_MOST] = {i, i, i};
        const struct vr_followed followed = followed_at(following, of, order);
        if (has_a_peak(following, &followed)) VR_TRY(keep_moment(following, &followed));
        if (followed.most > best.most) best = followed;
    }
    return keep_moment(following, &best);
}

static enum vram_status follow_stack(struct moment_following *following, uint64_t stack) {
    struct of_stack of[VRAM_FORECAST_MOST];
    size_t order[VRAM_FORECAST_MOST] = {0};
    bool alike = true;
    for (size_t run = 0; run < following->runs; run++) {
        of[run] = of_stack(&following->moments[run], stack);
        if (of[run].count == 0) return VRAM_OK;
        alike = alike && of[run].count == of[0].count;
        order[run] = highest_stack(&of[run]);
    }
    if (alike) return follow_each(following, of);
    const struct vr_followed followed = followed_at(following, of, order);
    return keep_moment(following, &followed);
}

static enum vram_status follow_beginning(struct moment_following *following) {
    struct vr_followed followed = {.most = 0};
    for (size_t run = 0; run < following->runs; run++) {
        followed.event[run] = -1;
        followed.bytes[run] = following->lifetimes[run]->start.bytes;
    }
    estimate_moment(following, &followed);
    return keep_moment(following, &followed);
}

static int highest_first(const void *a, const void *b) {
    const struct vr_followed *x = a, *y = b;
    if (x->most != y->most) return VR_ORDER(y->most, x->most);
    return VR_ORDER(x->event[0], y->event[0]);
}

enum vram_status vr_moments_follow(const struct vr_run_moments *moments, const struct vr_lifetimes *const *lifetimes, const double *size,
                                   size_t runs, double wanted, struct vr_followed_list *list) {
    struct moment_following following = {.moments = moments, .lifetimes = lifetimes, .size = size, .runs = runs, .wanted = wanted};
    enum vram_status status = follow_beginning(&following);
    for (size_t i = 0; i < moments[0].count && status == VRAM_OK; i++) {
        if (i == 0 || moments[0].moment[i].stack != moments[0].moment[i - 1].stack)
            status = follow_stack(&following, moments[0].moment[i].stack);
    }
    if (status != VRAM_OK) {
        free(following.list.followed);
        return status;
    }
    qsort(following.list.followed, following.list.count, sizeof *following.list.followed, highest_first);
    *list = following.list;
    return VRAM_OK;
}
