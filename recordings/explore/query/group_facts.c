#include "explore/query/group_facts.h"

#include "analyze/search.h"
#include "model/recording.h"

// Groups by their keys.
struct keyed {
    struct vr_map place; // key -> place + 1
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
