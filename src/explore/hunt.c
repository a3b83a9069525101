#include "explore/hunt.h"

enum { MOST_GROWERS = 256 };
// A question's steps take as long as what is looked for in them.
#define STEPS_SHARE 0.5

static const char *const step_keys[] = {"step", "every", NULL};
static const char *const hunt_keys[] = {"step", "every", "notion", "by", "regex", "top", NULL};

struct kept_steps {
    char *key; // parameters as one text; NULL: nothing is kept here
    struct vr_steps_search *search;
};

struct kept_hunt {
    char *key;
    struct vr_hunt hunt;
};

// Steps that nothing is said about are those of several views: they have the first place.
struct vr_hunts {
    struct kept_steps steps[2];
    struct kept_hunt hunt[VR_PREY_COUNT];
};

static void release_steps(struct kept_steps *kept) {
    vr_steps_search_destroy(kept->search);
    free(kept->key);
    *kept = (struct kept_steps){.key = NULL};
}

static void release_hunt(struct kept_hunt *kept) {
    vr_growth_search_destroy(kept->hunt.growth);
    vr_churn_search_destroy(kept->hunt.churn);
    if (kept->hunt.grouping.view != NULL) vr_grouping_release(&kept->hunt.grouping);
    vr_steps_release(&kept->hunt.steps);
    free(kept->key);
    *kept = (struct kept_hunt){.key = NULL};
}

void vr_hunts_destroy(struct vr_hunts *hunts) {
    if (hunts == NULL) return;
    for (size_t i = 0; i < VR_COUNT_OF(hunts->steps); i++) release_steps(&hunts->steps[i]);
    for (size_t i = 0; i < VR_COUNT_OF(hunts->hunt); i++) release_hunt(&hunts->hunt[i]);
    free(hunts);
}

static enum vram_status hunts_of(struct vr_seen_device *device, struct vr_hunts **hunts) {
    if (device->hunts == NULL) device->hunts = calloc(1, sizeof *device->hunts);
    *hunts = device->hunts;
    return device->hunts == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
}

// The parameters as one text, given to the caller (free()).
static enum vram_status key_of(const struct vr_question *question, const char *const *names, char **key) {
    struct vr_text text = {.bytes = NULL};
    for (size_t i = 0; names[i] != NULL; i++) {
        const char *value = vr_question_text(question, names[i]);
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

// Takes the key.
static enum vram_status begin_steps(const struct vr_ask *ask, const struct vr_seen_device *device, char *key, struct kept_steps *kept) {
    int64_t every = 0;
    release_steps(kept);
    kept->key = key;
    VR_TRY(vr_question_whole(ask->question, "every", 1, UINT32_MAX, 0, &every));
    const struct vr_step_wish wish = {.name = vr_question_text(ask->question, "step"), .every = (uint64_t)every};
    return vr_steps_search_create(device->view, &wish, &kept->search);
}

enum vram_status vr_asked_steps(const struct vr_ask *ask, struct vr_seen_device *device, size_t most, double *share,
                                const struct vr_steps **steps) {
    struct vr_hunts *hunts = NULL;
    char *key = NULL;
    VR_TRY(hunts_of(device, &hunts));
    VR_TRY(key_of(ask->question, step_keys, &key));
    struct kept_steps *kept = &hunts->steps[*key != '\0'];
    enum vram_status status = VRAM_OK;
    if (kept->key == NULL || strcmp(kept->key, key) != 0)
        status = begin_steps(ask, device, key, kept);
    else
        free(key);
    if (status == VRAM_OK) status = vr_steps_search_go_on(kept->search, most, share);
    if (status != VRAM_OK) release_steps(kept);
    if (status == VRAM_OK && *share == 1) *steps = vr_steps_search_found(kept->search);
    return status;
}

enum vram_status vr_step_peak(struct vr_seen_device *device, enum vr_notion notion, const struct vr_steps *steps, size_t step,
                              int64_t *event, int64_t *bytes) {
    const struct vr_curve *curve = NULL;
    VR_TRY(vr_seen_curve(device, (enum vr_curve_kind)notion, &curve));
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

// Steps are there: now what is looked for in them.
static enum vram_status begin_search(const struct vr_ask *ask, const struct vr_steps *steps, enum vr_prey prey, struct vr_hunt *hunt) {
    int64_t top = 0;
    VR_TRY(vr_question_whole(ask->question, "top", 1, prey == VR_PREY_GROWTH ? MOST_GROWERS : 100000, 50, &top));
    VR_TRY(vr_ask_grouping(ask, &hunt->chosen, &hunt->grouping));
    VR_TRY(copy_steps(steps, &hunt->steps));
    if (prey == VR_PREY_CHURN) return vr_churn_search_create(&hunt->grouping, &hunt->steps, &hunt->churn);
    return vr_growth_search_create(&hunt->grouping, &hunt->steps, (size_t)top, &hunt->growth);
}

static enum vram_status go_on(const struct vr_ask *ask, enum vr_prey prey, size_t most, struct vr_hunt *hunt, double *share) {
    if (hunt->growth == NULL && hunt->churn == NULL) {
        const struct vr_steps *steps = NULL;
        VR_TRY(vr_asked_steps(ask, hunt->chosen.device, most, share, &steps));
        const bool found = *share == 1;
        *share *= STEPS_SHARE;
        if (!found) return VRAM_OK;
        VR_TRY(begin_search(ask, steps, prey, hunt));
        if (most != SIZE_MAX) return VRAM_OK;
    }
    double part = 0;
    VR_TRY(prey == VR_PREY_CHURN ? vr_churn_search_go_on(hunt->churn, most, &part) : vr_growth_search_go_on(hunt->growth, most, &part));
    *share = part == 1 ? 1 : STEPS_SHARE + part * (1 - STEPS_SHARE);
    return VRAM_OK;
}

static enum vram_status choose(const struct vr_ask *ask, struct vr_holders *chosen) {
    enum vr_notion notion = VR_ALLOCATED;
    VR_TRY(vr_ask_device(ask, &chosen->recording, &chosen->device));
    VR_TRY(vr_ask_notion(ask, &notion));
    return vr_seen_lifetimes(chosen->device, notion, &chosen->lifetimes);
}

enum vram_status vr_asked_hunt(const struct vr_ask *ask, enum vr_prey prey, size_t most, double *share, const struct vr_hunt **hunt) {
    struct vr_holders chosen = {.event = 0};
    struct vr_hunts *hunts = NULL;
    char *key = NULL;
    VR_TRY(choose(ask, &chosen));
    VR_TRY(hunts_of(chosen.device, &hunts));
    VR_TRY(key_of(ask->question, hunt_keys, &key));
    struct kept_hunt *kept = &hunts->hunt[prey];
    if (kept->key == NULL || strcmp(kept->key, key) != 0) {
        release_hunt(kept);
        *kept = (struct kept_hunt){.key = key, .hunt = {.chosen = chosen}};
    } else {
        free(key);
    }
    const enum vram_status status = go_on(ask, prey, most, &kept->hunt, share);
    if (status != VRAM_OK) release_hunt(kept);
    if (status == VRAM_OK && *share == 1) *hunt = &kept->hunt;
    return status;
}
