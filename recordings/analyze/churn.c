#include "analyze/churn.h"

struct vr_churn_search {
    struct vr_grouping *grouping;
    const struct vr_steps *steps;
    size_t row; // the next one to look at
    bool finished;
    struct vr_group_sums sums;
    struct vr_churn made;
};

enum vram_status vr_churn_search_create(struct vr_grouping *grouping, const struct vr_steps *steps, struct vr_churn_search **search) {
    struct vr_churn_search *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    *made = (struct vr_churn_search){.grouping = grouping, .steps = steps, .made = {.steps = steps->count == 0 ? 1 : steps->count}};
    *search = made;
    return VRAM_OK;
}

void vr_churn_search_destroy(struct vr_churn_search *search) {
    if (search == NULL) return;
    vr_group_sums_release(&search->sums);
    free(search->made.group);
    free(search);
}

// How many steps begin up to an event.
static size_t steps_until(const struct vr_steps *steps, uint32_t event) {
    size_t count;
    VR_LOWER_BOUND(count, i, 0, steps->count, steps->first[i] <= event);
    return count;
}

static bool is_temporary(const struct vr_churn_search *search, size_t row) {
    const struct vr_lifetimes *lifetimes = search->grouping->lifetimes;
    const uint32_t birth = lifetimes->birth[row], death = lifetimes->death[row];
    if (birth == VR_BEFORE_TRACE || death == VR_NEVER) return false;
    if (search->steps->count == 0) return death - birth <= search->grouping->view->history->count / 100 + 1;
    return steps_until(search->steps, birth) == steps_until(search->steps, death);
}

enum vram_status vr_churn_search_go_on(struct vr_churn_search *search, size_t rows, double *share) {
    const struct vr_lifetimes *lifetimes = search->grouping->lifetimes;
    struct vr_churn *made = &search->made;
    const size_t end = lifetimes->count - search->row < rows ? lifetimes->count : search->row + rows;
    for (; search->row < end; search->row++) {
        if (!is_temporary(search, search->row)) continue;
        VR_TRY(vr_group_sums_add(&search->sums, search->grouping, search->row));
        made->bytes += lifetimes->size_bytes[search->row];
        made->allocations++;
    }
    if (end == lifetimes->count && !search->finished) {
        vr_group_sums_take(&search->sums, &made->group, &made->count);
        search->finished = true;
    }
    *share = search->finished ? 1 : (double)search->row / ((double)lifetimes->count + 1);
    return VRAM_OK;
}

const struct vr_churn *vr_churn_search_found(const struct vr_churn_search *search) { return &search->made; }
