#include "analyze/steps.h"

#include "analyze/map.h"

enum { LEAST_STEPS = 3 };

const char *vr_step_source_word(enum vr_step_source source) {
    static const char *const words[] = {
#define VR_STEP_SOURCE(constant, word) #word,
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

static enum vram_status append(struct finding *finding, size_t event) {
    struct vr_steps *steps = &finding->steps;
    if (steps->count != 0 && steps->first[steps->count - 1] >= event) return VRAM_OK;
    VR_TRY(vr_grow((void **)&steps->first, &finding->capacity, steps->count + 1, sizeof *steps->first));
    steps->first[steps->count++] = event;
    return VRAM_OK;
}

// The first event at or after a time; times of a sound history do not fall.
static size_t event_at(const struct vr_history *history, int64_t time_us) {
    size_t low = 0, high = history->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (history->time_us[middle] < time_us)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

// Does a name hold a word (in lower case)? Names are looked at up to a bound: they come from strangers.
static bool holds(const char *name, const char *word) {
    for (size_t left = 200; *name != '\0' && left != 0; name++, left--) {
        size_t i = 0;
        while (word[i] != '\0' && lower(name[i]) == word[i]) i++;
        if (word[i] == '\0') return true;
    }
    return false;
}

// Which kind of mark an annotation is: 0 none, smaller numbers are surer.
enum { NO_MARK, WISHED, STEP_STAGE, PROFILER_STEP, CALLED_STEP, MARKS };

static unsigned kind_of(const struct vr_model *model, const struct vr_annotation *annotation, const char *wished) {
    const char *name = vr_model_string(model, annotation->name), *stage = vr_model_string(model, annotation->stage);
    if (strcmp(stage, "END") == 0) return NO_MARK;
    if (wished != NULL) return strcmp(name, wished) == 0 ? WISHED : NO_MARK;
    if (strcmp(stage, "STEP") == 0) return STEP_STAGE;
    if (strncmp(name, "ProfilerStep#", 13) == 0) return PROFILER_STEP;
    return holds(name, "step") || holds(name, "iteration") ? CALLED_STEP : NO_MARK;
}

static bool concerns(const struct vr_view *view, const struct vr_annotation *annotation) {
    return annotation->device < 0 || annotation->device == (int64_t)view->device;
}

// The surest kind that there are enough marks of; of names that are only called like steps, the first one that repeats.
static unsigned best_kind(const struct vr_view *view, const char *wished, uint32_t *name) {
    const struct vr_model *model = view->model;
    size_t found[MARKS] = {0}, named = 0;
    *name = 0;
    for (size_t i = 0; i < model->annotation_count; i++) {
        const struct vr_annotation *annotation = &model->annotations[i];
        const unsigned kind = concerns(view, annotation) ? kind_of(model, annotation, wished) : NO_MARK;
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
    if (kind == NO_MARK || history->count == 0 || (history->has[0] & VR_HAS_TIME) == 0) return VRAM_OK;
    for (size_t i = 0; i < model->annotation_count; i++) {
        const struct vr_annotation *annotation = &model->annotations[i];
        if (!concerns(finding->view, annotation) || kind_of(model, annotation, wished) != kind) continue;
        if (kind == CALLED_STEP && annotation->name != name) continue;
        const size_t event = event_at(history, annotation->time_us);
        if (event < history->count) VR_TRY(append(finding, event));
        finding->steps.name = annotation->name;
    }
    return VRAM_OK;
}

// torch 2.4 squeezed annotations into the history: one frame whose file name is the text. Recordings of whole programs name them by
// metadata.
static uint32_t event_name(const struct vr_view *view, size_t event) {
    const struct vr_model *model = view->model;
    const uint32_t stack = view->history->stack[event];
    if (view->history->metadata[event] != 0 || model->stacks.offset[stack] == model->stacks.offset[stack + 1])
        return view->history->metadata[event];
    return model->frames.filename[model->stacks.frame[model->stacks.offset[stack]]];
}

static enum vram_status by_events(struct finding *finding, const char *wished) {
    const struct vr_history *history = finding->view->history;
    for (size_t i = 0; i < history->count; i++) {
        if (history->action[i] != VR_ACTION_USER_DEFINED && history->action[i] != VR_ACTION_ANNOTATE) continue;
        const uint32_t id = event_name(finding->view, i);
        const char *name = vr_model_string(finding->view->model, id);
        if (wished != NULL ? strcmp(name, wished) != 0 : !holds(name, "step") && !holds(name, "iteration")) continue;
        VR_TRY(append(finding, i));
        finding->steps.name = id;
    }
    return VRAM_OK;
}

static enum vram_status by_count(struct finding *finding, uint64_t every) {
    for (uint64_t event = 0; event < finding->view->history->count; event += every) VR_TRY(append(finding, (size_t)event));
    return VRAM_OK;
}

// --- how allocations repeat ------------------------------------------------------------------------------------------------
// An allocation of the same stack and size came `gap` allocations ago. In a loop of period p what is made once per turn has the gap p, and
// what is made more often has smaller ones, but nothing has a larger one. So the largest gap that many have is the period.
enum { GAP_BINS = 2048, BINS_PER_DOUBLING = 48 };

struct repeats {
    uint64_t tally[GAP_BINS]; // of gaps, by their logarithm
    uint64_t gaps;
    struct vr_map last; // stack and size -> 1 + number of the allocation
};

static uint64_t token(const struct vr_history *history, size_t event) {
    return vr_mix64(history->size_bytes[event] * 0x9e3779b97f4a7c15u + history->stack[event]);
}

static size_t bin_of(uint64_t gap) {
    const unsigned power = vr_log2_floor(gap);
    const uint64_t rest = power >= 32 ? gap >> (power - 32) : gap << (32 - power);
    return power * BINS_PER_DOUBLING + (size_t)(((rest - ((uint64_t)1 << 32)) * BINS_PER_DOUBLING) >> 32);
}

static enum vram_status tally_gaps(const struct vr_history *history, struct repeats *repeats) {
    uint32_t number = 0;
    for (size_t i = 0; i < history->count; i++) {
        if (history->action[i] != VR_ACTION_ALLOC) continue;
        number++;
        const uint64_t key = token(history, i);
        const uint32_t before = vr_map_get(&repeats->last, key);
        VR_TRY(vr_map_set(&repeats->last, key, number));
        if (before == 0) continue;
        const size_t bin = bin_of(number - before);
        repeats->tally[bin < GAP_BINS ? bin : GAP_BINS - 1]++;
        repeats->gaps++;
    }
    return VRAM_OK;
}

// The bin in the middle of the largest gaps that many allocations have; 0 for none. Two neighbours on each side are 6 percent.
static size_t period_bin(const struct repeats *repeats) {
    for (size_t bin = GAP_BINS - 3; bin > 2 + 2 * BINS_PER_DOUBLING; bin--) {
        uint64_t near = 0;
        for (size_t i = bin - 2; i <= bin + 2; i++) near += repeats->tally[i];
        if (near >= LEAST_STEPS && near * 20 >= repeats->gaps) {
            while (repeats->tally[bin - 1] > repeats->tally[bin]) bin--;
            return bin;
        }
    }
    return 0;
}

// Begins a step wherever the first allocation that has the period as its gap is made again.
static enum vram_status follow(struct finding *finding, size_t period, struct vr_map *last) {
    const struct vr_history *history = finding->view->history;
    uint64_t anchor = 0;
    uint32_t number = 0;
    bool found = false;
    for (size_t i = 0; i < history->count; i++) {
        if (history->action[i] != VR_ACTION_ALLOC) continue;
        number++;
        const uint64_t key = token(history, i);
        const uint32_t before = vr_map_get(last, key);
        VR_TRY(vr_map_set(last, key, number));
        if (before == 0 || (found && key != anchor)) continue;
        const size_t bin = bin_of(number - before);
        if (bin + 2 < period || bin > period + 2) continue;
        anchor = key;
        found = true;
        VR_TRY(append(finding, i));
    }
    return VRAM_OK;
}

static enum vram_status by_repeats(struct finding *finding) {
    struct repeats *repeats = calloc(1, sizeof *repeats);
    if (repeats == NULL) return VRAM_NO_HOST_MEMORY;
    enum vram_status status = tally_gaps(finding->view->history, repeats);
    const size_t period = status == VRAM_OK ? period_bin(repeats) : 0;
    vr_map_clear(&repeats->last);
    if (period != 0) status = follow(finding, period, &repeats->last);
    vr_map_release(&repeats->last);
    free(repeats);
    return status;
}

static enum vram_status find(struct finding *finding, const struct vr_step_wish *wish) {
    const bool given = wish->every != 0;
    if (given) VR_TRY(by_count(finding, wish->every));
    finding->steps.source = given ? VR_STEPS_GIVEN : VR_STEPS_MARKED;
    if (!given) VR_TRY(by_annotations(finding, wish->name));
    if (finding->steps.count >= LEAST_STEPS || given) return VRAM_OK;
    finding->steps.count = 0;
    VR_TRY(by_events(finding, wish->name));
    if (finding->steps.count >= LEAST_STEPS || wish->name != NULL) return VRAM_OK;
    finding->steps.count = finding->steps.name = 0;
    finding->steps.source = VR_STEPS_REPEATED;
    return by_repeats(finding);
}

enum vram_status vr_steps_find(const struct vr_view *view, const struct vr_step_wish *wish, struct vr_steps *steps) {
    struct finding finding = {.view = view};
    const enum vram_status status = find(&finding, wish);
    if (status != VRAM_OK) {
        vr_steps_release(&finding.steps);
        return status;
    }
    if (finding.steps.count < LEAST_STEPS) {
        finding.steps.count = 0;
        finding.steps.source = VR_STEPS_NONE;
    }
    *steps = finding.steps;
    return VRAM_OK;
}
