// Selects the allocations of a query about groups, and computes facts about groups other than their sums.
#include "explore/query/group_selection.h"

#include "analyze/text_search.h"
#include "explore/query/selection.h"
#include "explore/query/step_search.h"
#include "model/recording.h"

static enum vram_status find_recording(const struct vr_query *query, const char *key, const char *fallback,
                                       struct vr_explored_recording **recording) {
    int64_t first = 0, index = 0;
    VR_TRY(vr_parameter_whole(query->parameters, fallback, 0, (int64_t)query->explorer->count - 1, 0, &first));
    VR_TRY(vr_parameter_whole(query->parameters, key, 0, (int64_t)query->explorer->count - 1, first, &index));
    if (query->explorer->count == 0) return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "no recording is open");
    *recording = &query->explorer->recordings[index];
    return VRAM_OK;
}

// Finds the device with the given ordinal; without an ordinal, the device with the number of `like`, otherwise the worst device.
static enum vram_status find_like_device(const struct vr_query *query, const char *key, struct vr_explored_recording *recording,
                                         const struct vr_explored_device *like, struct vr_explored_device **device) {
    int64_t ordinal = -1;
    VR_TRY(vr_parameter_whole(query->parameters, key, 0, UINT32_MAX, -1, &ordinal));
    const struct vr_view *views = recording->views.view;
    for (size_t d = 0; d < recording->views.count; d++) {
        if (ordinal < 0 && like != NULL && views[d].device == like->view->device && views[d].history->count != 0) ordinal = views[d].device;
    }
    for (size_t d = 0; d < recording->views.count && ordinal >= 0; d++) {
        if (views[d].device == ordinal) {
            *device = &recording->devices[d];
            return VRAM_OK;
        }
    }
    if (ordinal >= 0 || recording->views.count == 0)
        return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the recording does not have this device");
    size_t worst = 0;
    VR_TRY(vr_explored_worst(recording, &worst));
    *device = &recording->devices[worst];
    return VRAM_OK;
}

// Reads "step:N": the moment of the largest total in the Nth step, from 1.
static enum vram_status find_step(const struct vr_query *query, const char *number, enum vr_lifetime_kind kind,
                                  struct vr_holders *holders) {
    const struct vr_steps *steps = NULL;
    double share = 0;
    int64_t bytes = 0;
    char *end = NULL;
    VR_TRY(vr_step_search_steps(query, holders->selection.device, SIZE_MAX, &share, &steps));
    const unsigned long long step = strtoull(number, &end, 10);
    if (end == number || *end != '\0' || step == 0 || step > steps->count)
        return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "step '%.20s' does not exist; '%.80s' has %zu steps", number,
                       holders->selection.recording->name, steps->count);
    return vr_step_peak(holders->selection.device, kind, steps, (size_t)step - 1, &holders->event, &bytes);
}

static enum vram_status find_event(const struct vr_query *query, const char *key, enum vr_lifetime_kind kind, struct vr_holders *holders) {
    const char *text = vr_parameter_text(query->parameters, key);
    const int64_t last = (int64_t)holders->selection.device->view->history->count - 1;
    holders->event = holders->selection.lifetimes->peak_event;
    if (text == NULL || strcmp(text, "peak") == 0) return VRAM_OK;
    holders->event = last;
    if (strcmp(text, "end") == 0) return VRAM_OK;
    if (strncmp(text, "step:", 5) == 0) return find_step(query, text + 5, kind, holders);
    return vr_parameter_whole(query->parameters, key, -1, last, last, &holders->event);
}

static enum vram_status list_made(const struct vr_query *query, struct vr_holders *holders) {
    struct vr_window window;
    VR_TRY(vr_select_window(query, holders->selection.device, &window));
    const size_t first = vr_first_born(holders->selection.lifetimes, window.first),
                 end = vr_first_born(holders->selection.lifetimes, window.end);
    holders->rows = malloc((end - first + 1) * sizeof *holders->rows);
    if (holders->rows == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t row = first; row < end; row++) holders->rows[holders->count++] = (uint32_t)row;
    return VRAM_OK;
}

enum vram_status vr_select_holders(const struct vr_query *query, struct vr_holders *holders) {
    struct vr_holders made = {.event = 0};
    enum vr_lifetime_kind kind = VR_LIFETIME_ALLOCATED;
    int64_t in_window = 0;
    VR_TRY(vr_select_device(query, &made.selection.recording, &made.selection.device));
    VR_TRY(vr_select_lifetime_kind(query, &kind));
    VR_TRY(vr_parameter_whole(query->parameters, "made", 0, 1, 0, &in_window));
    VR_TRY(vr_explored_lifetimes(made.selection.device, kind, &made.selection.lifetimes));
    VR_TRY(find_event(query, "event", kind, &made));
    made.made = in_window == 1;
    VR_TRY(made.made ? list_made(query, &made) : vr_explored_live(made.selection.device, kind, made.event, &made.rows, &made.count));
    *holders = made;
    return VRAM_OK;
}

enum vram_status vr_select_other_holders(const struct vr_query *query, struct vr_holders *holders) {
    struct vr_holders made = {.event = 0};
    struct vr_explored_recording *first = NULL;
    struct vr_explored_device *like = NULL;
    enum vr_lifetime_kind kind = VR_LIFETIME_ALLOCATED;
    VR_TRY(vr_select_device(query, &first, &like));
    VR_TRY(find_recording(query, "rec2", "rec", &made.selection.recording));
    VR_TRY(find_like_device(query, "device2", made.selection.recording, like, &made.selection.device));
    VR_TRY(vr_select_lifetime_kind(query, &kind));
    VR_TRY(vr_explored_lifetimes(made.selection.device, kind, &made.selection.lifetimes));
    VR_TRY(find_event(query, "event2", kind, &made));
    VR_TRY(vr_explored_live(made.selection.device, kind, made.event, &made.rows, &made.count));
    *holders = made;
    return VRAM_OK;
}

void vr_holders_release(struct vr_holders *holders) {
    free(holders->rows);
    holders->rows = NULL;
}

void vr_put_holders(const struct vr_query *query, const struct vr_holders *holders) {
    struct vr_json *json = &query->answer->json;
    uint64_t bytes = 0;
    for (size_t i = 0; i < holders->count; i++) bytes += holders->selection.lifetimes->size_bytes[holders->rows[i]];
    vr_json_i64(json, "event", holders->event);
    vr_json_i64(json, "peak_event", holders->selection.lifetimes->peak_event);
    vr_json_u64(json, "bytes", bytes);
    vr_json_u64(json, "allocations", holders->count);
}

// Groups indexed by their keys.
struct keyed {
    struct vr_map place; // key -> index of the group + 1
    struct vr_grouping *grouping;
};

static enum vram_status group_place(struct keyed *keyed, size_t row, size_t *place) {
    uint64_t key = 0;
    VR_TRY(vr_grouping_key(keyed->grouping, row, &key));
    *place = (size_t)vr_map_get(&keyed->place, key) - 1;
    return VRAM_OK;
}

static enum vram_status find_roles(const struct vr_holders *holders, struct keyed *keyed, size_t count, struct vr_group_facts *facts) {
    struct vr_roles *roles = NULL;
    VR_TRY(vr_select_roles(holders->selection.device, holders->selection.lifetimes, VR_GROUP_ROLE, &roles));
    uint64_t *bytes = calloc(count + 1, VRAM_ROLE_COUNT * sizeof *bytes);
    facts->role = calloc(count + 1, 1);
    enum vram_status status = bytes == NULL || facts->role == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    for (size_t i = 0; i < holders->count && status == VRAM_OK && roles != NULL; i++) {
        const uint32_t row = holders->rows[i];
        size_t place = 0;
        status = group_place(keyed, row, &place);
        if (status == VRAM_OK) bytes[place * VRAM_ROLE_COUNT + roles->role[row]] += holders->selection.lifetimes->size_bytes[row];
    }
    for (size_t place = 0; place < count && status == VRAM_OK; place++) {
        const uint64_t *of = bytes + place * VRAM_ROLE_COUNT;
        for (uint8_t role = 0; role < VRAM_ROLE_COUNT; role++) {
            if (of[role] > of[facts->role[place]]) facts->role[place] = role;
        }
    }
    free(bytes);
    return status;
}

static enum vram_status sum_found(const struct vr_holders *holders, struct keyed *keyed, const uint8_t *bits, uint64_t *found_bytes) {
    for (size_t i = 0; i < holders->count; i++) {
        const uint32_t row = holders->rows[i];
        size_t place = 0;
        if ((bits[row / 8] >> row % 8 & 1) == 0) continue;
        VR_TRY(group_place(keyed, row, &place));
        found_bytes[place] += holders->selection.lifetimes->size_bytes[row];
    }
    return VRAM_OK;
}

static enum vram_status find_bytes(const struct vr_query *query, const struct vr_holders *holders, struct keyed *keyed, size_t count,
                                   struct vr_group_facts *facts) {
    const struct vr_selection *selection = &holders->selection;
    struct vram_report_sum found = {0};
    struct vr_search search;
    int64_t regex = 0;
    VR_TRY(vr_parameter_whole(query->parameters, "find_regex", 0, 1, 0, &regex));
    VR_TRY(vr_search_init(&search, vr_recording_model(selection->recording->recording), vr_parameter_text(query->parameters, "find"),
                          regex == 1, query->error));
    uint8_t *bits = calloc(selection->lifetimes->count / 8 + 1, 1);
    facts->found_bytes = calloc(count + 1, sizeof *facts->found_bytes);
    enum vram_status status = bits == NULL || facts->found_bytes == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    if (status == VRAM_OK) {
        vr_search_rows(&search, selection->device->view, selection->lifetimes, bits, &found);
        status = sum_found(holders, keyed, bits, facts->found_bytes);
    }
    vr_search_release(&search);
    free(bits);
    return status;
}

enum vram_status vr_group_facts_find(const struct vr_query *query, const struct vr_holders *holders, struct vr_grouping *grouping,
                                     const struct vr_group *groups, size_t count, struct vr_group_facts *facts) {
    struct keyed keyed = {.grouping = grouping};
    int64_t wants_roles = 0;
    *facts = (struct vr_group_facts){.role = NULL};
    VR_TRY(vr_parameter_whole(query->parameters, "roles", 0, 1, 0, &wants_roles));
    const bool wants_found = vr_parameter_text(query->parameters, "find") != NULL;
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < count && status == VRAM_OK && (wants_roles == 1 || wants_found); i++)
        status = vr_map_set(&keyed.place, groups[i].key, i + 1);
    if (status == VRAM_OK && wants_roles == 1) status = find_roles(holders, &keyed, count, facts);
    if (status == VRAM_OK && wants_found) status = find_bytes(query, holders, &keyed, count, facts);
    vr_map_release(&keyed.place);
    return status;
}

void vr_group_facts_release(struct vr_group_facts *facts) {
    free(facts->role);
    free(facts->found_bytes);
    *facts = (struct vr_group_facts){.role = NULL};
}
