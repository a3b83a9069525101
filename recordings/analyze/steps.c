// Finds where the steps of a training loop begin.
#include "analyze/steps.h"

#include "analyze/frame_kinds.h"
#include "base/hash.h"

// The Python frames common to all stacks seen so far, from the outermost one on.
struct common_frames {
    uint32_t *frame;
    size_t count, capacity;
    bool any;          // a stack was seen
    bool python;       // ignore stacks without Python frames
    bool elsewhere;    // some stack is outside autograd's backward pass
    uint32_t backward; // 1 + a frame of the backward pass; 0: none seen
    uint8_t *known;    // by stack
};

// Returns whether a frame counts: only Python frames, because interpreters and dispatchers call the same function in several ways.
static bool frame_counts(const struct vr_model *model, uint32_t frame) { return vr_frame_is_python(model, frame, false); }

// Returns whether a frame runs autograd's backward pass, in Python's thread or its own.
static bool is_backward(const struct vr_model *model, uint32_t frame) {
    const char *name = vr_model_string(model, model->frames.name[frame]);
    return strncmp(name, "torch::autograd::Engine::", 25) == 0 || strcmp(name, "_engine_run_backward") == 0 ||
           strcmp(name, "backward") == 0;
}

static void look_for_backward(struct common_frames *common, const struct vr_model *model, const uint32_t *begin, const uint32_t *end) {
    for (; begin != end; begin++) {
        if (!is_backward(model, *begin)) continue;
        common->backward = *begin + 1;
        return;
    }
    common->elsewhere = true;
}

static bool has_python(const struct vr_model *model, const uint32_t *begin, const uint32_t *end) {
    for (; begin != end; begin++) {
        if (frame_counts(model, *begin)) return true;
    }
    return false;
}

static enum vram_status take_stack(struct common_frames *common, const struct vr_model *model, const uint32_t *begin, const uint32_t *end) {
    common->any = true;
    for (const uint32_t *frame = end; frame != begin; frame--) {
        if (!frame_counts(model, frame[-1])) continue;
        VR_TRY(vr_grow((void **)&common->frame, &common->capacity, common->count + 1, sizeof *common->frame));
        common->frame[common->count++] = frame[-1];
    }
    return VRAM_OK;
}

static enum vram_status narrow_common(struct common_frames *common, const struct vr_model *model, uint32_t stack) {
    const uint32_t *frames = model->stacks.frame; // NULL if no stack has frames
    const uint32_t *begin = frames == NULL ? NULL : frames + model->stacks.offset[stack];
    const uint32_t *end = frames == NULL ? NULL : frames + model->stacks.offset[stack + 1];
    if (common->known[stack] != 0) return VRAM_OK;
    common->known[stack] = 1;
    look_for_backward(common, model, begin, end);
    if (common->python && !has_python(model, begin, end)) return VRAM_OK;
    if (!common->any) return take_stack(common, model, begin, end);
    size_t alike = 0;
    for (const uint32_t *frame = end; frame != begin && alike < common->count; frame--) {
        if (!frame_counts(model, frame[-1])) continue;
        if (common->frame[alike] != frame[-1]) break;
        alike++;
    }
    common->count = alike;
    return VRAM_OK;
}

// Returns whether a frame is a module's pass. torch's own frames that call modules do not count, because every pass goes through them.
static bool is_pass(const struct vr_model *model, uint32_t frame) {
    const char *name = vr_model_string(model, model->frames.name[frame]);
    return (strcmp(name, "forward") == 0 || strcmp(name, "__call__") == 0) && vr_frame_kind(model, frame) == VR_FRAME_OWN;
}

static enum vram_status narrow_all(struct common_frames *common, const struct vr_view *view, size_t from, size_t to) {
    const struct vr_history *history = view->history;
    for (size_t event = from; event < to && (common->count != 0 || !common->any || !common->elsewhere); event++) {
        if (history->action[event] == VR_ACTION_ALLOC) VR_TRY(narrow_common(common, view->model, history->stack[event]));
    }
    return VRAM_OK;
}

// Finds the `forward` or `__call__` frame, with its line, that all allocations from the first to the last iteration share: *pass is 1 + the
// frame, 0 if there is none. If all of them are in backward passes, *pass is 1 + a frame of one. Training steps share no such frame: a pass
// through a model covers several lines, and a step also runs code outside it. NO_HOST_MEMORY.
static enum vram_status layers_pass(const struct vr_view *view, const size_t *first, size_t count, bool loop, uint32_t *pass) {
    struct common_frames common = {.python = !loop};
    *pass = 0;
    if (count < 2) return VRAM_OK;
    common.known = calloc(view->model->stacks.count, 1);
    enum vram_status status = common.known == NULL ? VRAM_NO_HOST_MEMORY : narrow_all(&common, view, first[0], first[count - 1]);
    for (size_t i = 0; i < common.count && status == VRAM_OK && *pass == 0; i++) {
        if (is_pass(view->model, common.frame[i])) *pass = common.frame[i] + 1;
    }
    if (status == VRAM_OK && !common.elsewhere) *pass = common.backward;
    free(common.known);
    free(common.frame);
    return status;
}

// Returns the name of a mark among the events: torch 2.4 stored annotations in the history, as one frame with the text as its file name;
// recordings of whole programs store the name as metadata. 0: the event is not a mark.
static uint32_t step_mark_of_event(const struct vr_view *view, size_t event) {
    const struct vr_model *model = view->model;
    const struct vr_history *history = view->history;
    if (history->action[event] != VR_ACTION_USER_DEFINED && history->action[event] != VR_ACTION_ANNOTATE) return 0;
    const uint32_t stack = history->stack[event];
    if (history->metadata[event] != 0 || model->stacks.offset[stack] == model->stacks.offset[stack + 1]) return history->metadata[event];
    return model->frames.filename[model->stacks.frame[model->stacks.offset[stack]]];
}

// Returns whether an annotation begins a span on the view's device.
static bool step_mark_begins(const struct vr_view *view, const struct vr_annotation *annotation) {
    const bool concerns = annotation->device < 0 || annotation->device == (int64_t)view->device;
    return concerns && strcmp(vr_model_string(view->model, annotation->stage), "END") != 0;
}

struct counting {
    struct vr_step_marks marks;
    size_t capacity;
    struct vr_map known; // name -> 1 + index of the mark
};

static enum vram_status add_mark(struct counting *counting, uint32_t name) {
    struct vr_step_marks *marks = &counting->marks;
    const uint64_t place = vr_map_get(&counting->known, name);
    if (place != 0) {
        marks->mark[place - 1].count++;
        return VRAM_OK;
    }
    VR_TRY(vr_grow((void **)&marks->mark, &counting->capacity, marks->count + 1, sizeof *marks->mark));
    marks->mark[marks->count++] = (struct vr_step_mark){.name = name, .count = 1};
    return vr_map_set(&counting->known, name, marks->count);
}

static enum vram_status add_all(struct counting *counting, const struct vr_view *view) {
    for (size_t i = 0; i < view->model->annotation_count; i++) {
        const struct vr_annotation *annotation = &view->model->annotations[i];
        if (annotation->name != 0 && step_mark_begins(view, annotation)) VR_TRY(add_mark(counting, annotation->name));
    }
    for (size_t event = 0; event < view->history->count; event++) {
        const uint32_t name = step_mark_of_event(view, event);
        if (name != 0) VR_TRY(add_mark(counting, name));
    }
    return VRAM_OK;
}

static int most_often_first(const void *a, const void *b) {
    const struct vr_step_mark *x = a, *y = b;
    return x->count != y->count ? VR_ORDER(y->count, x->count) : VR_ORDER(x->name, y->name);
}

enum vram_status vr_step_marks_find(const struct vr_view *view, struct vr_step_marks *marks) {
    struct counting counting = {.capacity = 0};
    const enum vram_status status = add_all(&counting, view);
    vr_map_release(&counting.known);
    if (status != VRAM_OK) {
        free(counting.marks.mark);
        return status;
    }
    if (counting.marks.count != 0) qsort(counting.marks.mark, counting.marks.count, sizeof *counting.marks.mark, most_often_first);
    *marks = counting.marks;
    return VRAM_OK;
}

void vr_step_marks_release(struct vr_step_marks *marks) {
    free(marks->mark);
    *marks = (struct vr_step_marks){.mark = NULL};
}

enum { LEAST_STEPS = 3 };

const char *vr_step_source_word(enum vr_step_source source) {
    static const char *const words[] = {
#define VR_STEP_SOURCE(constant, word) word,
        VR_STEP_SOURCES(VR_STEP_SOURCE)
#undef VR_STEP_SOURCE
    };
    return words[source];
}

void vr_steps_release(struct vr_steps *steps) {
    free(steps->first);
    *steps = (struct vr_steps){.first = NULL};
}

struct finding {
    const struct vr_view *view;
    struct vr_steps steps;
    size_t capacity;
};

static enum vram_status append_step(struct finding *finding, size_t event) {
    struct vr_steps *steps = &finding->steps;
    if (steps->count != 0 && steps->first[steps->count - 1] >= event) return VRAM_OK;
    VR_TRY(vr_grow((void **)&steps->first, &finding->capacity, steps->count + 1, sizeof *steps->first));
    steps->first[steps->count++] = event;
    return VRAM_OK;
}

enum { SAME_TIME = 256 }; // most events in the same microsecond to look at

static uint64_t live_after(const struct vr_history *history, size_t event, uint64_t live) {
    if (history->action[event] == VR_ACTION_ALLOC) return live + history->size_bytes[event];
    return history->action[event] == VR_ACTION_FREE_REQUESTED ? live - history->size_bytes[event] : live;
}

// Returns the event at which a mark's step begins; times of a consistent history do not decrease. Marks have microseconds, in which a
// program does several things: of the events in the mark's microsecond, takes the one after which the least is live, because what the
// previous step held is gone there.
static size_t step_event_at(const struct vr_history *history, int64_t time_us) {
    size_t event, least_event;
    VR_LOWER_BOUND(event, i, 0, history->count, history->time_us[i] < time_us);
    uint64_t live = 0, least = 0; // relative to the state before this event; smaller values wrap below 0
    least_event = event;
    for (size_t i = event; i < history->count && i - event < SAME_TIME && history->time_us[i] == time_us; i++) {
        live = live_after(history, i, live);
        if ((int64_t)(live - least) >= 0) continue;
        least = live;
        least_event = i + 1;
    }
    return least_event;
}

static char lower_case(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

// Returns whether a name contains a word, given in lower case. Looks at a bounded part, because names are untrusted.
static bool holds_word(const char *name, const char *word) {
    for (size_t left = 200; *name != '\0' && left != 0; name++, left--) {
        size_t i = 0;
        while (word[i] != '\0' && lower_case(name[i]) == word[i]) i++;
        if (word[i] == '\0') return true;
    }
    return false;
}

// The kinds of marks, in descending order of certainty.
enum { NO_MARK, WISHED, STEP_STAGE, PROFILER_STEP, CALLED_STEP, MARKS };

static unsigned annotation_kind(const struct vr_model *model, const struct vr_annotation *annotation, const char *wished) {
    const char *name = vr_model_string(model, annotation->name), *stage = vr_model_string(model, annotation->stage);
    if (wished != NULL) return strcmp(name, wished) == 0 ? WISHED : NO_MARK;
    if (strcmp(stage, "STEP") == 0) return STEP_STAGE;
    if (strncmp(name, "ProfilerStep#", 13) == 0) return PROFILER_STEP;
    return holds_word(name, "step") || holds_word(name, "iteration") ? CALLED_STEP : NO_MARK;
}

// Returns the most certain kind with enough marks; of names that only look like steps, the first one that repeats.
static unsigned best_kind(const struct vr_view *view, const char *wished, uint32_t *name) {
    const struct vr_model *model = view->model;
    size_t found[MARKS] = {0}, named = 0;
    *name = 0;
    for (size_t i = 0; i < model->annotation_count; i++) {
        const struct vr_annotation *annotation = &model->annotations[i];
        const unsigned kind = step_mark_begins(view, annotation) ? annotation_kind(model, annotation, wished) : NO_MARK;
        found[kind]++;
        if (kind != CALLED_STEP || (*name != 0 && named >= LEAST_STEPS && annotation->name != *name)) continue;
        named = annotation->name == *name ? named + 1 : 1;
        *name = annotation->name;
    }
    found[CALLED_STEP] = named;
    for (unsigned kind = WISHED; kind < MARKS; kind++) {
        if (found[kind] >= LEAST_STEPS) return kind;
    }
    return NO_MARK;
}

static enum vram_status by_annotations(struct finding *finding, const char *wished) {
    const struct vr_model *model = finding->view->model;
    const struct vr_history *history = finding->view->history;
    uint32_t name;
    const unsigned kind = best_kind(finding->view, wished, &name);
    if (kind == NO_MARK || history->count == 0 || (vr_entry_has(history, 0) & VR_HAS_TIME) == 0) return VRAM_OK;
    for (size_t i = 0; i < model->annotation_count; i++) {
        const struct vr_annotation *annotation = &model->annotations[i];
        if (!step_mark_begins(finding->view, annotation) || annotation_kind(model, annotation, wished) != kind) continue;
        if (kind == CALLED_STEP && annotation->name != name) continue;
        const size_t event = step_event_at(history, annotation->time_us);
        if (event < history->count) VR_TRY(append_step(finding, event));
        finding->steps.name = annotation->name;
    }
    return VRAM_OK;
}

static enum vram_status by_events(struct finding *finding, const char *wished) {
    const struct vr_history *history = finding->view->history;
    for (size_t i = 0; i < history->count; i++) {
        const uint32_t id = step_mark_of_event(finding->view, i);
        if (id == 0) continue;
        const char *name = vr_model_string(finding->view->model, id);
        if (wished != NULL ? strcmp(name, wished) != 0 : !holds_word(name, "step") && !holds_word(name, "iteration")) continue;
        VR_TRY(append_step(finding, i));
        finding->steps.name = id;
    }
    return VRAM_OK;
}

static enum vram_status by_count(struct finding *finding, uint64_t every) {
    for (uint64_t event = 0; event < finding->view->history->count; event += every) VR_TRY(append_step(finding, (size_t)event));
    return VRAM_OK;
}

struct vr_steps_search {
    struct finding finding;
    struct vr_repeats *repeats; // NULL: finished
};

// Finds steps by marks or as requested; if there are none, begins a search for repetitions.
static enum vram_status by_marks(struct vr_steps_search *search, const struct vr_step_wish *wish) {
    struct finding *finding = &search->finding;
    const bool counted = wish->every != 0;
    if (counted) VR_TRY(by_count(finding, wish->every));
    finding->steps.source = counted ? VR_STEPS_EVERY : VR_STEPS_MARKED;
    finding->steps.asked = wish->name != NULL;
    if (!counted) VR_TRY(by_annotations(finding, wish->name));
    if (finding->steps.count >= LEAST_STEPS || counted) return VRAM_OK;
    finding->steps.count = 0;
    VR_TRY(by_events(finding, wish->name));
    if (finding->steps.count >= LEAST_STEPS || wish->name != NULL) return VRAM_OK;
    const struct vr_view *view = finding->view;
    vr_steps_release(&finding->steps);
    *finding = (struct finding){.view = view, .steps = {.source = VR_STEPS_REPEATED}};
    return vr_repeats_create(view->history, &search->repeats);
}

// Returns whether repetitions of pinned memory are steps. They cannot be a model's layers, but may be buffers made one after the other. In
// steps, buffers are also freed.
static bool repeats_of_host(const struct vr_view *view, size_t steps) {
    size_t freed = 0;
    if (!vr_model_is_host(view->model, view->device)) return false;
    for (size_t i = 0; i < view->history->count; i++) freed += view->history->action[i] == VR_ACTION_FREE_REQUESTED;
    return freed >= steps;
}

// --- in pieces -----------------------------------------------------------------------------------------------------------
enum vram_status vr_steps_search_create(const struct vr_view *view, const struct vr_step_wish *wish, struct vr_steps_search **search) {
    struct vr_steps_search *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    made->finding.view = view;
    const enum vram_status status = by_marks(made, wish);
    if (status == VRAM_OK) *search = made;
    if (status != VRAM_OK) vr_steps_search_destroy(made);
    return status;
}

void vr_steps_search_destroy(struct vr_steps_search *search) {
    if (search == NULL) return;
    vr_repeats_destroy(search->repeats);
    vr_steps_release(&search->finding.steps);
    free(search);
}

enum vram_status vr_steps_search_go_on(struct vr_steps_search *search, size_t events, double *share) {
    struct vr_steps *steps = &search->finding.steps;
    *share = 1;
    if (search->repeats != NULL) VR_TRY(vr_repeats_go_on(search->repeats, events, share));
    if (*share < 1) return VRAM_OK;
    if (search->repeats != NULL) {
        bool loop = false;
        vr_repeats_take(search->repeats, &steps->first, &steps->count, &loop);
        VR_TRY(layers_pass(search->finding.view, steps->first, steps->count, loop, &steps->pass_frame));
        steps->unsure = (!loop && !repeats_of_host(search->finding.view, steps->count)) || steps->pass_frame != 0;
    }
    vr_repeats_destroy(search->repeats);
    search->repeats = NULL;
    if (steps->count < LEAST_STEPS) {
        steps->count = steps->pass_frame = 0;
        steps->source = VR_STEPS_NONE;
    }
    return VRAM_OK;
}

const struct vr_steps *vr_steps_search_found(const struct vr_steps_search *search) { return &search->finding.steps; }

enum vram_status vr_steps_find(const struct vr_view *view, const struct vr_step_wish *wish, struct vr_steps *steps) {
    struct vr_steps_search *search = NULL;
    double share = 0;
    VR_TRY(vr_steps_search_create(view, wish, &search));
    const enum vram_status status = vr_steps_search_go_on(search, SIZE_MAX, &share);
    if (status == VRAM_OK) {
        *steps = search->finding.steps;
        search->finding.steps = (struct vr_steps){.first = NULL};
    }
    vr_steps_search_destroy(search);
    return status;
}
