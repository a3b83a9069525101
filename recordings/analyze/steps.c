#include "analyze/steps.h"

#include "analyze/layers.h"
#include "analyze/repeats.h"
#include "analyze/step_marks.h"

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

enum { SAME_TIME = 256 }; // events of one microsecond that are looked at

static uint64_t live_after(const struct vr_history *history, size_t event, uint64_t live) {
    if (history->action[event] == VR_ACTION_ALLOC) return live + history->size_bytes[event];
    return history->action[event] == VR_ACTION_FREE_REQUESTED ? live - history->size_bytes[event] : live;
}

// The first event at or after a time; times of a sound history do not fall. Marks tell microseconds, in which a program does several
// things: among those of the mark's own a step begins where the least is live, since what the step before held is gone there.
static size_t step_event_at(const struct vr_history *history, int64_t time_us) {
    size_t event, least_event;
    VR_LOWER_BOUND(event, i, 0, history->count, history->time_us[i] < time_us);
    uint64_t live = 0, least = 0; // from here on: what is less is "negative"
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

// Does a name hold a word (in lower case)? Names are looked at up to a bound: they come from strangers.
static bool holds_word(const char *name, const char *word) {
    for (size_t left = 200; *name != '\0' && left != 0; name++, left--) {
        size_t i = 0;
        while (word[i] != '\0' && lower_case(name[i]) == word[i]) i++;
        if (word[i] == '\0') return true;
    }
    return false;
}

// Which kind of mark an annotation is: 0 none, smaller numbers are surer.
enum { NO_MARK, WISHED, STEP_STAGE, PROFILER_STEP, CALLED_STEP, MARKS };

static unsigned annotation_kind(const struct vr_model *model, const struct vr_annotation *annotation, const char *wished) {
    const char *name = vr_model_string(model, annotation->name), *stage = vr_model_string(model, annotation->stage);
    if (wished != NULL) return strcmp(name, wished) == 0 ? WISHED : NO_MARK;
    if (strcmp(stage, "STEP") == 0) return STEP_STAGE;
    if (strncmp(name, "ProfilerStep#", 13) == 0) return PROFILER_STEP;
    return holds_word(name, "step") || holds_word(name, "iteration") ? CALLED_STEP : NO_MARK;
}

// The surest kind that there are enough marks of; of names that are only called like steps, the first one that repeats.
static unsigned best_kind(const struct vr_view *view, const char *wished, uint32_t *name) {
    const struct vr_model *model = view->model;
    size_t found[MARKS] = {0}, named = 0;
    *name = 0;
    for (size_t i = 0; i < model->annotation_count; i++) {
        const struct vr_annotation *annotation = &model->annotations[i];
        const unsigned kind = vr_step_mark_begins(view, annotation) ? annotation_kind(model, annotation, wished) : NO_MARK;
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
        if (!vr_step_mark_begins(finding->view, annotation) || annotation_kind(model, annotation, wished) != kind) continue;
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
        const uint32_t id = vr_step_mark_of_event(finding->view, i);
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
    struct vr_repeats *repeats; // NULL: nothing is left to do
};

// By marks or as given; without any the repeats are left to do.
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

// Where pinned memory repeats it is no layer of a model. But buffers that are made one after the other are no steps: in those something is
// given back, too.
static bool repeats_of_host(const struct vr_view *view, size_t steps) {
    size_t freed = 0;
    if (!vr_model_is_host(view->model, view->device)) return false;
    for (size_t i = 0; i < view->history->count; i++) freed += view->history->action[i] == VR_ACTION_FREE_REQUESTED;
    return freed >= steps;
}

// --- a piece at a time ---------------------------------------------------------------------------------------------------
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
        VR_TRY(vr_layers_pass(search->finding.view, steps->first, steps->count, loop, &steps->pass_frame));
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
