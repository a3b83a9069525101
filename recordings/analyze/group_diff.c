// Compares the groups of two moments.
#include "analyze/group_diff.h"

#include "analyze/site_match.h"

// A group of one side.
struct pairs_entry {
    const char *name;
    const char *function; // "file:function" for call sites, otherwise NULL
    const char *file;     // for call sites and files, otherwise NULL
    int64_t line;
    unsigned side;
    bool taken;
    struct vr_group group;
};

struct building {
    struct vr_pairs pairs;
    size_t capacity;
    struct pairs_entry *entry;
    size_t count;
};

// Names a call site or a file by its entry's path.
static enum vram_status name_in_file(struct building *building, const struct vr_grouping *grouping, struct pairs_entry *entry) {
    const struct vr_model *model = grouping->view->model;
    struct vr_arena *arena = &building->pairs.arena;
    if (grouping->by == VR_GROUP_FILE) {
        entry->name = entry->file;
        return VRAM_OK;
    }
    const char *function = vr_model_string(model, model->frames.name[entry->group.key]);
    VR_TRY(vr_arena_printf(arena, &entry->name, "%.4096s:%llu:%.4096s", entry->file, (unsigned long long)entry->line, function));
    return vr_arena_printf(arena, &entry->function, "%.4096s:%.4096s", entry->file, function);
}

static enum vram_status name_entry(struct building *building, const struct vr_grouping *grouping, struct pairs_entry *entry) {
    struct vr_text text = {0};
    vr_grouping_name(grouping, entry->group.key, &text);
    enum vram_status status = vr_text_status(&text);
    if (status == VRAM_OK) status = vr_arena_copy(&building->pairs.arena, vr_text_string(&text), text.length, &entry->name);
    vr_text_release(&text);
    if (status != VRAM_OK || entry->group.key == VR_GROUP_UNKNOWN) return status;
    const struct vr_model *model = grouping->view->model;
    if (grouping->by == VR_GROUP_FILE) entry->file = entry->name;
    if (grouping->by != VR_GROUP_SITE) return status;
    entry->file = vr_model_string(model, model->frames.filename[entry->group.key]);
    entry->line = model->frames.line[entry->group.key];
    return name_in_file(building, grouping, entry);
}

static enum vram_status add_side(struct building *building, struct vr_grouping *grouping, const uint32_t *rows, size_t count,
                                 unsigned side) {
    struct vr_group *groups = NULL;
    size_t group_count = 0;
    VR_TRY(vr_grouping_sum(grouping, rows, count, &groups, &group_count));
    struct pairs_entry *grown = realloc(building->entry, (building->count + group_count + 1) * sizeof *grown);
    if (grown == NULL) {
        free(groups);
        return VRAM_NO_HOST_MEMORY;
    }
    building->entry = grown;
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < group_count && status == VRAM_OK; i++) {
        struct pairs_entry *entry = &building->entry[building->count++];
        *entry = (struct pairs_entry){.side = side, .group = groups[i]};
        status = name_entry(building, grouping, entry);
        building->pairs.bytes[side] += groups[i].bytes;
        building->pairs.allocations[side] += groups[i].count;
    }
    free(groups);
    return status;
}

// --- files in another folder -------------------------------------------------------------------------------------------------------------

// Lists the files of a side's entries. The caller frees *files.
static enum vram_status files_of(const struct building *building, unsigned side, const char ***files, size_t *count) {
    const char **all = malloc((building->count + 1) * sizeof *all);
    *count = 0;
    if (all == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < building->count; i++) {
        if (building->entry[i].side == side && building->entry[i].file != NULL) all[(*count)++] = building->entry[i].file;
    }
    *files = all;
    return VRAM_OK;
}

// Gives side 0's entries the paths of side 1's files.
static enum vram_status rename_files(struct building *building, const struct vr_grouping *before, const struct vr_renamed_paths *renamed) {
    for (size_t i = 0; i < building->count; i++) {
        struct pairs_entry *entry = &building->entry[i];
        if (entry->side != 0 || entry->file == NULL) continue;
        const char *file = vr_renamed_path(renamed, entry->file);
        if (strcmp(file, entry->file) == 0) continue;
        entry->file = file;
        VR_TRY(name_in_file(building, before, entry));
    }
    return VRAM_OK;
}

static enum vram_status share_files(struct building *building, const struct vr_grouping *before) {
    const char **files[2] = {NULL, NULL};
    size_t count[2] = {0, 0};
    struct vr_renamed_paths renamed = {.count = 0};
    enum vram_status status = files_of(building, 0, &files[0], &count[0]);
    if (status == VRAM_OK) status = files_of(building, 1, &files[1], &count[1]);
    if (status == VRAM_OK) status = vr_paths_rename(files[0], count[0], files[1], count[1], &renamed);
    if (status == VRAM_OK) status = rename_files(building, before, &renamed);
    vr_renamed_paths_release(&renamed);
    free(files[0]);
    free(files[1]);
    return status;
}

// --- pairs -------------------------------------------------------------------------------------------------------------------------------

static int entries_by_name(const void *a, const void *b) {
    const struct pairs_entry *x = a, *y = b;
    const int names = strcmp(x->name, y->name);
    return names != 0 ? names : VR_ORDER(x->side, y->side);
}

static int by_function(const void *a, const void *b) {
    const struct pairs_entry *x = a, *y = b;
    if (x->function == NULL || y->function == NULL) return (x->function == NULL) - (y->function == NULL);
    const int functions = strcmp(x->function, y->function);
    if (functions != 0) return functions;
    if (x->side != y->side) return VR_ORDER(x->side, y->side);
    return VR_ORDER(x->line, y->line);
}

static enum vram_status begin_pair(struct building *building, const char *name, struct vr_pair **pair) {
    struct vr_pairs *pairs = &building->pairs;
    VR_TRY(vr_grow((void **)&pairs->pair, &building->capacity, pairs->count + 1, sizeof *pairs->pair));
    *pair = &pairs->pair[pairs->count++];
    **pair = (struct vr_pair){.name = name, .row = {VR_PAIR_NO_ROW, VR_PAIR_NO_ROW}};
    return VRAM_OK;
}

static void put_pair(struct vr_pair *pair, struct pairs_entry *entry) {
    if (pair->row[entry->side] == VR_PAIR_NO_ROW) pair->row[entry->side] = entry->group.largest_row;
    pair->bytes[entry->side] += entry->group.bytes;
    pair->count[entry->side] += entry->group.count;
    entry->taken = true;
}

// Pairs entries with the same name, which are the same group.
static enum vram_status pair_names(struct building *building) {
    if (building->count != 0) qsort(building->entry, building->count, sizeof *building->entry, entries_by_name);
    for (size_t i = 0, end; i < building->count; i = end) {
        struct pairs_entry *entry = &building->entry[i];
        end = i + 1;
        while (end < building->count && strcmp(building->entry[end].name, entry->name) == 0) end++;
        if (building->entry[end - 1].side == entry->side && entry->function != NULL) continue;
        struct vr_pair *pair = NULL;
        VR_TRY(begin_pair(building, entry->name, &pair));
        for (size_t k = i; k < end; k++) put_pair(pair, &building->entry[k]);
    }
    return VRAM_OK;
}

// Pairs the remaining entries of one function, sorted by side, then line: the first `before` are of side 0, the others of side 1.
static enum vram_status pair_function(struct building *building, struct pairs_entry *entry, size_t before, size_t count) {
    struct vr_pair *pair = NULL;
    const bool both = before != 0 && before != count, one_by_one = !both || 2 * before == count;
    const size_t pairs = !both ? count : one_by_one ? before : 1;
    for (size_t i = 0; i < pairs; i++) {
        VR_TRY(begin_pair(building, one_by_one ? entry[both ? before + i : i].name : entry->function, &pair));
        pair->moved = both;
        for (size_t k = one_by_one ? i : 0; k < count; k += !both ? count : one_by_one ? before : 1) put_pair(pair, &entry[k]);
    }
    return VRAM_OK;
}

static enum vram_status pair_functions(struct building *building) {
    size_t left = 0;
    for (size_t i = 0; i < building->count; i++) {
        if (!building->entry[i].taken) building->entry[left++] = building->entry[i];
    }
    if (left != 0) qsort(building->entry, left, sizeof *building->entry, by_function);
    for (size_t i = 0, end; i < left; i = end) {
        struct pairs_entry *entry = &building->entry[i];
        size_t before = 0;
        for (end = i; end < left && strcmp(building->entry[end].function, entry->function) == 0; end++)
            before += building->entry[end].side == 0;
        VR_TRY(pair_function(building, entry, before, end - i));
    }
    return VRAM_OK;
}

static uint64_t pair_change(const struct vr_pair *pair) {
    return pair->bytes[0] > pair->bytes[1] ? pair->bytes[0] - pair->bytes[1] : pair->bytes[1] - pair->bytes[0];
}

static int by_change(const void *a, const void *b) {
    const struct vr_pair *x = a, *y = b;
    if (pair_change(x) != pair_change(y)) return VR_ORDER(pair_change(y), pair_change(x));
    if (x->bytes[1] != y->bytes[1]) return VR_ORDER(y->bytes[1], x->bytes[1]);
    return strcmp(x->name, y->name);
}

enum vram_status vr_pairs_build(struct vr_grouping *const grouping[2], const uint32_t *const rows[2], const size_t counts[2],
                                struct vr_pairs *pairs) {
    struct building building = {.entry = NULL};
    enum vram_status status = VRAM_OK;
    for (unsigned side = 0; side < 2 && status == VRAM_OK; side++)
        status = add_side(&building, grouping[side], rows[side], counts[side], side);
    if (status == VRAM_OK) status = share_files(&building, grouping[0]);
    if (status == VRAM_OK) status = pair_names(&building);
    if (status == VRAM_OK) status = pair_functions(&building);
    free(building.entry);
    if (status != VRAM_OK) {
        vr_pairs_release(&building.pairs);
        return status;
    }
    if (building.pairs.count != 0) qsort(building.pairs.pair, building.pairs.count, sizeof *building.pairs.pair, by_change);
    *pairs = building.pairs;
    return VRAM_OK;
}

void vr_pairs_release(struct vr_pairs *pairs) {
    free(pairs->pair);
    vr_arena_release(&pairs->arena);
    *pairs = (struct vr_pairs){.pair = NULL};
}

enum { DEFAULT_TOP = 10 };

static enum vram_status pair_up(const struct vram_diff *diff, struct vr_comparison *comparison, struct vram_error *error) {
    struct vr_grouping grouping[2];
    struct vram_profile_options options = diff->options[1];
    VR_TRY(vr_profile_grouping(&comparison->side[0], &options, &grouping[0], error));
    enum vram_status status = vr_profile_grouping(&comparison->side[1], &options, &grouping[1], error);
    if (status == VRAM_OK) {
        struct vr_grouping *const both[2] = {&grouping[0], &grouping[1]};
        const uint32_t *const rows[2] = {comparison->side[0].rows, comparison->side[1].rows};
        const size_t counts[2] = {comparison->side[0].count, comparison->side[1].count};
        comparison->by = grouping[1].by;
        if (comparison->by == VR_GROUP_STACK)
            status = vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "stacks cannot be compared in a table; use a flame graph");
        else
            status = vr_pairs_build(both, rows, counts, &comparison->pairs);
        vr_grouping_release(&grouping[1]);
    }
    vr_grouping_release(&grouping[0]);
    return status;
}

static bool has_device(const struct vr_views *views, uint32_t device) {
    size_t d = 0;
    while (d < views->count && views->view[d].device != device) d++;
    return d < views->count;
}

// If the sides have different devices, chooses the device of the side that ran out of memory, otherwise the device of the second side; only
// if both sides have it.
static void agree_on_grouping(struct vr_comparison *comparison, const struct vram_profile_options options[2], int64_t device[2]) {
    const struct vr_profile *side = comparison->side;
    if (options[0].device >= 0 || options[1].device >= 0 || side[0].view->device == side[1].view->device) return;
    const unsigned leads = side[0].why == VR_CHOICE_OOM && side[1].why != VR_CHOICE_OOM ? 0 : 1;
    const uint32_t wanted = side[leads].view->device;
    if (has_device(&side[1 - leads].views, wanted)) device[1 - leads] = wanted;
}

// Opens a side again if the other side chose the device, because a side's moment belongs to its device.
static enum vram_status open_again(const struct vram_diff *diff, struct vr_comparison *comparison, struct vram_error *error) {
    int64_t device[2] = {-1, -1};
    agree_on_grouping(comparison, diff->options, device);
    for (unsigned i = 0; i < 2; i++) {
        struct vr_profile again;
        struct vram_profile_options options = diff->options[i];
        if (device[i] < 0) continue;
        options.device = device[i];
        VR_TRY(vr_profile_open(diff->recording[i], &options, &again, error));
        vr_profile_close(&comparison->side[i]);
        comparison->side[i] = again;
    }
    return VRAM_OK;
}

enum vram_status vr_comparison_open(const struct vram_diff *diff, struct vr_comparison *comparison, struct vram_error *error) {
    *comparison = (struct vr_comparison){.top = diff->options[1].top == 0 ? DEFAULT_TOP : diff->options[1].top};
    VR_TRY(vr_profile_open(diff->recording[0], &diff->options[0], &comparison->side[0], error));
    enum vram_status status = vr_profile_open(diff->recording[1], &diff->options[1], &comparison->side[1], error);
    if (status == VRAM_OK) {
        status = open_again(diff, comparison, error);
        if (status != VRAM_OK) vr_profile_close(&comparison->side[1]);
    }
    if (status == VRAM_OK) {
        status = pair_up(diff, comparison, error);
        if (status != VRAM_OK) vr_profile_close(&comparison->side[1]);
    }
    if (status != VRAM_OK) vr_profile_close(&comparison->side[0]);
    return status;
}

void vr_comparison_close(struct vr_comparison *comparison) {
    vr_pairs_release(&comparison->pairs);
    vr_profile_close(&comparison->side[0]);
    vr_profile_close(&comparison->side[1]);
}

void vr_comparison_result(const struct vr_comparison *comparison, struct vram_diff_result *result) {
    *result = (struct vram_diff_result){.bytes = {comparison->pairs.bytes[0], comparison->pairs.bytes[1]}};
    for (size_t i = 0; i < comparison->pairs.count; i++) {
        const int64_t change = vr_pair_change(&comparison->pairs.pair[i]);
        if (change > result->most_grown_bytes) result->most_grown_bytes = change;
    }
}
