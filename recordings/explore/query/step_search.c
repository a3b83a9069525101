#include "explore/query/step_search.h"

#include "explore/query/selection.h"

enum { MOST_GROWERS = 256 };
// Estimated share of finding steps in the work of a query.
#define STEPS_SHARE 0.5
// Estimated share of grouping by call site; grouping by stack takes the rest.
#define STACKS_SHARE 0.5

static const char *const step_keys[] = {"step", "every", NULL};
static const char *const pattern_keys[] = {"step", "every", "notion", "by", "regex", "top", NULL};

struct kept_steps {
    char *key; // parameters as one text; NULL: an unused entry
    struct vr_steps_search *search;
};

struct kept_pattern {
    char *key;
    struct vr_pattern_search search;
};

// Steps found without parameters serve several views, so they have the first entry.
struct vr_step_searches {
    struct kept_steps steps[2];
    struct kept_pattern search[VR_PATTERN_COUNT];
};

static void release_steps(struct kept_steps *kept) {
    vr_steps_search_destroy(kept->search);
    free(kept->key);
    *kept = (struct kept_steps){.key = NULL};
}

static void release_pattern(struct kept_pattern *kept) {
    vr_growth_search_destroy(kept->search.growth);
    vr_growth_search_destroy(kept->search.site_growth);
    vr_churn_search_destroy(kept->search.churn);
    if (kept->search.grouping.view != NULL) vr_grouping_release(&kept->search.grouping);
    if (kept->search.site_grouping.view != NULL) vr_grouping_release(&kept->search.site_grouping);
    vr_steps_release(&kept->search.steps);
    free(kept->key);
    *kept = (struct kept_pattern){.key = NULL};
}

void vr_step_searches_destroy(struct vr_step_searches *searches) {
    if (searches == NULL) return;
    for (size_t i = 0; i < VR_COUNT_OF(searches->steps); i++) release_steps(&searches->steps[i]);
    for (size_t i = 0; i < VR_COUNT_OF(searches->search); i++) release_pattern(&searches->search[i]);
    free(searches);
}

static enum vram_status searches_of(struct vr_explored_device *device, struct vr_step_searches **searches) {
    if (device->step_searches == NULL) device->step_searches = calloc(1, sizeof *device->step_searches);
    *searches = device->step_searches;
    return device->step_searches == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
}

// Joins the parameters into one text; the caller frees it.
static enum vram_status pattern_key(const struct vr_parameters *parameters, const char *const *names, char **key) {
    struct vr_text text = {.bytes = NULL};
    for (size_t i = 0; names[i] != NULL; i++) {
        const char *value = vr_parameter_text(parameters, names[i]);
        if (value != NULL && *value != '\0') vr_text_printf(&text, "%s=%s\n", names[i], value);
    }
    vr_text_puts(&text, "");
    const enum vram_status status = vr_text_status(&text);
    *key = NULL;
    if (status == VRAM_OK) *key = calloc(1, text.length + 1);
    if (*key != NULL && text.length != 0) memcpy(*key, text.bytes, text.length);
    vr_text_release(&text);
    return status == VRAM_OK && *key == NULL ? VRAM_NO_HOST_MEMORY : status;
}

// Takes ownership of the key.
static enum vram_status begin_steps(const struct vr_query *query, const struct vr_explored_device *device, char *key,
                                    struct kept_steps *kept) {
    int64_t every = 0;
    release_steps(kept);
    kept->key = key;
    VR_TRY(vr_parameter_whole(query->parameters, "every", 1, UINT32_MAX, 0, &every));
    const struct vr_step_wish wish = {.name = vr_parameter_text(query->parameters, "step"), .every = (uint64_t)every};
    return vr_steps_search_create(device->view, &wish, &kept->search);
}

enum vram_status vr_step_search_steps(const struct vr_query *query, struct vr_explored_device *device, size_t most, double *share,
                                      const struct vr_steps **steps) {
    struct vr_step_searches *searches = NULL;
    char *key = NULL;
    VR_TRY(searches_of(device, &searches));
    VR_TRY(pattern_key(query->parameters, step_keys, &key));
    struct kept_steps *kept = &searches->steps[*key != '\0'];
    enum vram_status status = VRAM_OK;
    if (kept->key == NULL || strcmp(kept->key, key) != 0)
        status = begin_steps(query, device, key, kept);
    else
        free(key);
    if (status == VRAM_OK) status = vr_steps_search_go_on(kept->search, most, share);
    if (status != VRAM_OK) release_steps(kept);
    if (status == VRAM_OK && *share == 1) *steps = vr_steps_search_found(kept->search);
    return status;
}

enum vram_status vr_step_peak(struct vr_explored_device *device, enum vr_lifetime_kind kind, const struct vr_steps *steps, size_t step,
                              int64_t *event, int64_t *bytes) {
    assert(step < steps->count);
    const struct vr_curve *curve = NULL;
    VR_TRY(vr_explored_curve(device, (enum vr_curve_kind)kind, &curve));
    size_t first = steps->first[step], end = step + 1 < steps->count ? steps->first[step + 1] : device->view->history->count;
    int64_t low, high, half;
    vr_curve_range(curve, first, end, &low, &high);
    while (end - first > 1) {
        const size_t middle = first + (end - first) / 2;
        vr_curve_range(curve, first, middle, &low, &half);
        if (half == high)
            end = middle;
        else
            first = middle;
    }
    *event = (int64_t)first;
    *bytes = high;
    return VRAM_OK;
}

static enum vram_status copy_steps(const struct vr_steps *steps, struct vr_steps *copy) {
    size_t *first = malloc((steps->count + 1) * sizeof *first);
    if (first == NULL) return VRAM_NO_HOST_MEMORY;
    if (steps->count != 0) memcpy(first, steps->first, steps->count * sizeof *first);
    *copy = *steps;
    copy->first = first;
    return VRAM_OK;
}

static enum vram_status top_of(const struct vr_query *query, enum vr_step_pattern pattern, int64_t *top) {
    return vr_parameter_whole(query->parameters, "top", 1, pattern == VR_PATTERN_GROWTH ? MOST_GROWERS : 100000, 50, top);
}

// Begins the search within the steps that were found.
static enum vram_status begin_search(const struct vr_query *query, const struct vr_steps *steps, enum vr_step_pattern pattern,
                                     struct vr_pattern_search *search) {
    int64_t top = 0;
    VR_TRY(top_of(query, pattern, &top));
    VR_TRY(vr_select_grouping(query, &search->selection, &search->grouping));
    VR_TRY(copy_steps(steps, &search->steps));
    if (pattern == VR_PATTERN_CHURN) return vr_churn_search_create(&search->grouping, &search->steps, &search->churn);
    return vr_growth_search_create(&search->grouping, &search->steps, (size_t)top, &search->growth);
}

static void judge_pattern(struct vr_pattern_search *search) {
    search->finding =
        vr_leaks_judge(search->selection.device->view, search->selection.lifetimes, &search->steps, vr_growth_search_found(search->growth));
}

// Returns whether to search by whole stacks after the search by site, as `vram leaks` does (leaks.c).
static bool wants_stacks(const struct vr_query *query, const struct vr_pattern_search *search) {
    return !search->stacks_tried && search->finding.answer >= VR_LEAKS_NONE && search->finding.leaks == 0 &&
           vr_parameter_text(query->parameters, "by") == NULL && vr_parameter_text(query->parameters, "regex") == NULL;
}

static enum vram_status begin_stacks(const struct vr_query *query, struct vr_pattern_search *search) {
    const struct vr_grouped grouped = {
        .view = search->selection.device->view, .lifetimes = search->selection.lifetimes, .sites = &search->selection.recording->sites};
    struct vr_grouping stacks;
    int64_t top = 0;
    VR_TRY(top_of(query, VR_PATTERN_GROWTH, &top));
    VR_TRY(vr_grouping_init(&stacks, VR_GROUP_STACK, &grouped, NULL, query->error));
    search->site_grouping = search->grouping;
    search->site_growth = search->growth;
    search->site_finding = search->finding;
    search->grouping = stacks;
    search->growth = NULL;
    search->stacks_tried = true;
    return vr_growth_search_create(&search->grouping, &search->steps, (size_t)top, &search->growth);
}

static void back_to_sites(struct vr_pattern_search *search) {
    vr_growth_search_destroy(search->growth);
    vr_grouping_release(&search->grouping);
    search->grouping = search->site_grouping;
    search->growth = search->site_growth;
    search->finding = search->site_finding;
    search->site_grouping = (struct vr_grouping){.view = NULL};
    search->site_growth = NULL;
}

// Continues the search; *share is 1 when it is finished.
static enum vram_status go_on_with_growth(const struct vr_query *query, size_t most, struct vr_pattern_search *search, double *share) {
    VR_TRY(vr_growth_search_go_on(search->growth, most, share));
    if (*share < 1) *share = (*share + (search->stacks_tried ? 1 : 0)) * STACKS_SHARE;
    if (*share < 1) return VRAM_OK;
    judge_pattern(search);
    if (wants_stacks(query, search)) {
        VR_TRY(begin_stacks(query, search));
        *share = STACKS_SHARE;
        return most == SIZE_MAX ? go_on_with_growth(query, most, search, share) : VRAM_OK;
    }
    if (search->site_growth != NULL && search->finding.leaks == 0) back_to_sites(search);
    return VRAM_OK;
}

static enum vram_status advance_search(const struct vr_query *query, enum vr_step_pattern pattern, size_t most,
                                       struct vr_pattern_search *search, double *share) {
    if (search->growth == NULL && search->churn == NULL) {
        const struct vr_steps *steps = NULL;
        VR_TRY(vr_step_search_steps(query, search->selection.device, most, share, &steps));
        const bool found = *share == 1;
        *share *= STEPS_SHARE;
        if (!found) return VRAM_OK;
        VR_TRY(begin_search(query, steps, pattern, search));
        if (most != SIZE_MAX) return VRAM_OK;
    }
    double part = 0;
    VR_TRY(pattern == VR_PATTERN_CHURN ? vr_churn_search_go_on(search->churn, most, &part) : go_on_with_growth(query, most, search, &part));
    *share = part == 1 ? 1 : STEPS_SHARE + part * (1 - STEPS_SHARE);
    return VRAM_OK;
}

enum vram_status vr_step_search_pattern(const struct vr_query *query, enum vr_step_pattern pattern, size_t most, double *share,
                                        const struct vr_pattern_search **search) {
    struct vr_selection selection = {.recording = NULL};
    struct vr_step_searches *searches = NULL;
    char *key = NULL;
    VR_TRY(vr_select_lifetimes(query, &selection));
    VR_TRY(searches_of(selection.device, &searches));
    VR_TRY(pattern_key(query->parameters, pattern_keys, &key));
    struct kept_pattern *kept = &searches->search[pattern];
    if (kept->key == NULL || strcmp(kept->key, key) != 0) {
        release_pattern(kept);
        *kept = (struct kept_pattern){.key = key, .search = {.selection = selection}};
    } else {
        free(key);
    }
    const enum vram_status status = advance_search(query, pattern, most, &kept->search, share);
    if (status != VRAM_OK) release_pattern(kept);
    if (status == VRAM_OK && *share == 1) *search = &kept->search;
    return status;
}
