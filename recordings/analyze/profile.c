// A profile: one device of a recording at a moment, and its allocations grouped by a common property.
#include "analyze/profile.h"

#include <stdio.h>

#include "base/text.h"
#include "model/recording.h"

#define NAME_BYTES "4096"

const char *const vr_grouping_words[VR_GROUP_COUNT + 1] = {
#define VR_GROUPING(constant, word, heading) #word,
    VR_GROUPINGS(VR_GROUPING)
#undef VR_GROUPING
        NULL};

const char *vr_grouping_heading(enum vr_group_by by) {
    static const char *const headings[VR_GROUP_COUNT] = {
#define VR_GROUPING(constant, word, heading) heading,
        VR_GROUPINGS(VR_GROUPING)
#undef VR_GROUPING
    };
    return headings[by];
}

static int phase_by_time(const void *a, const void *b) {
    const struct vr_phase *x = a, *y = b;
    return VR_ORDER(x->time_us, y->time_us);
}

enum { MOST_OPEN = 64 };

// Lists the beginnings and ends of this device's annotations by time, each with the innermost annotation open then.
static enum vram_status find_phases(struct vr_grouping *grouping) {
    const struct vr_model *model = grouping->view->model;
    grouping->phase = malloc((model->annotation_count + 1) * sizeof *grouping->phase);
    if (grouping->phase == NULL) return VRAM_NO_HOST_MEMORY;
    uint32_t open[MOST_OPEN];
    size_t depth = 0;
    for (size_t i = 0; i < model->annotation_count; i++) {
        const struct vr_annotation *annotation = &model->annotations[i];
        if (annotation->device >= 0 && annotation->device != (int64_t)grouping->view->device) continue;
        const char *stage = vr_model_string(model, annotation->stage);
        if (strcmp(stage, "START") == 0 && depth < MOST_OPEN) open[depth++] = annotation->name;
        if (strcmp(stage, "END") == 0) {
            size_t at = depth;
            while (at > 0 && open[at - 1] != annotation->name) at--;
            if (at != 0) memmove(&open[at - 1], &open[at], (depth-- - at) * sizeof *open);
        }
        grouping->phase[grouping->phase_count++] = (struct vr_phase){annotation->time_us, depth == 0 ? 0 : open[depth - 1]};
    }
    qsort(grouping->phase, grouping->phase_count, sizeof *grouping->phase, phase_by_time);
    return VRAM_OK;
}

static struct vr_roles *roles_of(struct vr_grouping *grouping) { return grouping->lent != NULL ? grouping->lent : &grouping->roles; }

static enum vram_status prepare_grouping(struct vr_grouping *grouping, struct vr_role_rules *rules, const char *expression,
                                         struct vram_error *error) {
    const bool roles = grouping->by == VR_GROUP_ROLE || grouping->by == VR_GROUP_MODULE;
    if (roles && grouping->lent != NULL) return VRAM_OK;
    if (roles) return vr_roles_find(grouping->view, grouping->lifetimes, rules, &grouping->roles);
    if (grouping->by == VR_GROUP_ANNOTATION) return find_phases(grouping);
    if (grouping->by != VR_GROUP_REGEX) return VRAM_OK;
    VR_TRY(vr_finder_init(&grouping->finder, expression == NULL ? "" : expression, true, error));
    grouping->part = calloc((size_t)grouping->view->model->stacks.count + 1, sizeof *grouping->part);
    return grouping->part == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
}

enum vram_status vr_grouping_init(struct vr_grouping *grouping, enum vr_group_by by, const struct vr_grouped *grouped,
                                  const char *expression, struct vram_error *error) {
    assert(grouped->view != NULL && grouped->lifetimes != NULL && grouped->sites != NULL);
    *grouping = (struct vr_grouping){.by = by,
                                     .view = grouped->view,
                                     .lifetimes = grouped->lifetimes,
                                     .sites = grouped->sites,
                                     .segments = grouped->segments,
                                     .lent = grouped->roles};
    const enum vram_status status = prepare_grouping(grouping, grouped->rules, expression, error);
    if (status != VRAM_OK) vr_grouping_release(grouping);
    return status;
}

void vr_grouping_release(struct vr_grouping *grouping) {
    free(grouping->phase);
    vr_roles_release(&grouping->roles);
    vr_finder_release(&grouping->finder);
    free(grouping->part);
    free(grouping->part_text);
    vr_text_release(&grouping->parts);
    *grouping = (struct vr_grouping){.view = NULL};
}

static size_t segment_of(const struct vr_grouping *grouping, size_t row) {
    const uint32_t birth = grouping->lifetimes->birth[row];
    if (grouping->segments == NULL) return SIZE_MAX;
    return vr_segment_lives_find(grouping->segments, grouping->lifetimes->address[row], birth == VR_BEFORE_TRACE ? -1 : (int64_t)birth);
}

// Combines both numbers of a pool id; real programs have small ones.
static uint64_t pool_key(uint64_t first, uint64_t second) { return first << 32 ^ second; }

static uint64_t pool_of_row(const struct vr_grouping *grouping, size_t row) {
    const struct vr_history *history = grouping->view->history;
    const uint32_t birth = grouping->lifetimes->birth[row];
    if (birth != VR_BEFORE_TRACE && (vr_entry_has(history, birth) & VR_HAS_POOL_ID) != 0)
        return pool_key(history->pool_first[birth], history->pool_second[birth]);
    const size_t segment = segment_of(grouping, row);
    if (segment == SIZE_MAX || (grouping->segments->flags[segment] & VR_SEGMENT_POOL_KNOWN) == 0) return VR_GROUP_UNKNOWN;
    return pool_key(grouping->segments->pool_first[segment], grouping->segments->pool_second[segment]);
}

static uint64_t stream_of(const struct vr_grouping *grouping, size_t row) {
    const struct vr_history *history = grouping->view->history;
    const uint32_t birth = grouping->lifetimes->birth[row];
    if (birth != VR_BEFORE_TRACE)
        return (vr_entry_has(history, birth) & VR_HAS_STREAM) != 0 ? vr_entry_stream(history, birth) : VR_GROUP_UNKNOWN;
    const size_t segment = segment_of(grouping, row);
    return segment == SIZE_MAX ? VR_GROUP_UNKNOWN : grouping->segments->stream[segment];
}

static uint64_t phase_of(const struct vr_grouping *grouping, uint32_t birth) {
    const struct vr_history *history = grouping->view->history;
    if (birth == VR_BEFORE_TRACE || (vr_entry_has(history, birth) & VR_HAS_TIME) == 0) return VR_GROUP_UNKNOWN;
    size_t next;
    VR_LOWER_BOUND(next, i, 0, grouping->phase_count, grouping->phase[i].time_us <= history->time_us[birth]);
    return next == 0 ? 0 : grouping->phase[next - 1].name;
}

// Sets *number to the number of a part's text, adding new texts. There are few: those that one expression matches.
static enum vram_status intern_part(struct vr_grouping *grouping, const char *text, size_t length, uint32_t *number) {
    enum { MOST_PARTS = 4096 };
    for (size_t i = 0; i < grouping->part_count; i++) {
        const struct vr_matched *part = &grouping->part_text[i];
        if (part->length == length && memcmp(grouping->parts.bytes + part->start, text, length) == 0) {
            *number = (uint32_t)i + 2;
            return VRAM_OK;
        }
    }
    if (grouping->part_count == MOST_PARTS) {
        *number = MOST_PARTS + 1;
        return VRAM_OK;
    }
    VR_TRY(vr_grow((void **)&grouping->part_text, &grouping->part_capacity, grouping->part_count + 1, sizeof *grouping->part_text));
    grouping->part_text[grouping->part_count++] = (struct vr_matched){grouping->parts.length, length};
    vr_text_append(&grouping->parts, text, length);
    vr_text_append(&grouping->parts, "", 1);
    *number = (uint32_t)grouping->part_count + 1;
    return vr_text_status(&grouping->parts);
}

static enum vram_status find_part(struct vr_grouping *grouping, uint32_t stack) {
    const struct vr_model *model = grouping->view->model;
    uint32_t number = 1;
    for (uint64_t i = model->stacks.offset[stack]; i < model->stacks.offset[stack + 1] && number == 1; i++) {
        const uint32_t frame = model->stacks.frame[i];
        char text[VR_FINDER_BYTES];
        size_t start, length;
        snprintf(text, sizeof text, "%.2000s:%lld:%.2000s", vr_model_string(model, model->frames.filename[frame]),
                 (long long)model->frames.line[frame], vr_model_string(model, model->frames.name[frame]));
        if (vr_finder_part(&grouping->finder, text, &start, &length)) VR_TRY(intern_part(grouping, text + start, length, &number));
    }
    grouping->part[stack] = number;
    return VRAM_OK;
}

static enum vram_status regex_key(struct vr_grouping *grouping, uint32_t stack, uint64_t *key) {
    if (grouping->part[stack] == 0) VR_TRY(find_part(grouping, stack));
    *key = grouping->part[stack] - 1;
    return VRAM_OK;
}

static uint64_t frame_string(uint32_t frame, const uint32_t *column) { return frame == VR_NO_SITE ? VR_GROUP_UNKNOWN : column[frame]; }

enum vram_status vr_grouping_key(struct vr_grouping *grouping, size_t row, uint64_t *key) {
    const struct vr_history *history = grouping->view->history;
    const struct vr_model *model = grouping->view->model;
    const uint32_t birth = grouping->lifetimes->birth[row], stack = grouping->lifetimes->stack[row];
    const bool before = birth == VR_BEFORE_TRACE;
    const uint64_t bytes = grouping->lifetimes->size_bytes[row];
    switch (grouping->by) {
    case VR_GROUP_STACK: *key = model->stacks.offset[stack] == model->stacks.offset[stack + 1] ? 0 : stack; break;
    case VR_GROUP_FUNCTION: *key = frame_string(vr_sites_innermost(grouping->sites, stack), model->frames.name); break;
    case VR_GROUP_FILE: *key = frame_string(vr_sites_frame(grouping->sites, stack), model->frames.filename); break;
    case VR_GROUP_ROLE: *key = roles_of(grouping)->role[row]; break;
    case VR_GROUP_MODULE: *key = vr_roles_module(roles_of(grouping), grouping->lifetimes, row); break;
    case VR_GROUP_CATEGORY: *key = before ? 0 : history->tag[birth]; break;
    case VR_GROUP_POOL: *key = pool_of_row(grouping, row); break;
    case VR_GROUP_STREAM: *key = stream_of(grouping, row); break;
    case VR_GROUP_ANNOTATION: *key = phase_of(grouping, birth); break;
    case VR_GROUP_THREAD:
        *key = before || (vr_entry_has(history, birth) & VR_HAS_THREAD) == 0 ? VR_GROUP_UNKNOWN : history->thread[birth];
        break;
    case VR_GROUP_METADATA: *key = before ? 0 : history->metadata[birth]; break;
    case VR_GROUP_CONTEXT: *key = before ? 0 : history->context[birth]; break;
    case VR_GROUP_SIZE: *key = bytes == 0 ? 0 : vr_log2_floor(bytes); break;
    case VR_GROUP_REGEX: return regex_key(grouping, stack, key);
    case VR_GROUP_SITE:
    case VR_GROUP_COUNT: {
        const uint32_t frame = vr_sites_frame(grouping->sites, stack);
        *key = frame == VR_NO_SITE ? VR_GROUP_UNKNOWN : frame;
    }
    }
    return VRAM_OK;
}

static void frame_name(const struct vr_model *model, uint32_t frame, struct vr_text *text) {
    vr_text_printf(text, "%." NAME_BYTES "s:%llu:%." NAME_BYTES "s", vr_model_string(model, model->frames.filename[frame]),
                   (unsigned long long)model->frames.line[frame], vr_model_string(model, model->frames.name[frame]));
}

static void string_name(const struct vr_grouping *grouping, uint64_t id, struct vr_text *text) {
    if (id == 0)
        vr_text_printf(text, "<no %s>", vr_grouping_heading(grouping->by));
    else
        vr_text_printf(text, "%." NAME_BYTES "s", vr_model_string(grouping->view->model, (uint32_t)id));
}

static void stack_name(const struct vr_grouping *grouping, uint32_t stack, struct vr_text *text) {
    const uint32_t frame = vr_sites_frame(grouping->sites, stack);
    if (frame == VR_NO_SITE) {
        vr_text_puts(text, "<no frames>");
        return;
    }
    vr_text_printf(text, "stack %lu: ", (unsigned long)stack);
    frame_name(grouping->view->model, frame, text);
}

static void pool_name(uint64_t key, struct vr_text *text) {
    if (key == 0)
        vr_text_puts(text, "default pool");
    else
        vr_text_printf(text, "private pool (%llu, %llu)", (unsigned long long)(key >> 32), (unsigned long long)(key & UINT32_MAX));
}

void vr_grouping_name(const struct vr_grouping *grouping, uint64_t key, struct vr_text *text) {
    const bool frames = grouping->by == VR_GROUP_SITE || grouping->by == VR_GROUP_FUNCTION || grouping->by == VR_GROUP_FILE;
    if (grouping->by == VR_GROUP_MODULE) {
        vr_roles_module_name(grouping->lent != NULL ? grouping->lent : &grouping->roles, key, text);
        return;
    }
    if (key == VR_GROUP_UNKNOWN) {
        vr_text_puts(text, frames ? "<no frames>" : "<not known>");
        return;
    }
    switch (grouping->by) {
    case VR_GROUP_STACK: stack_name(grouping, (uint32_t)key, text); return;
    case VR_GROUP_POOL: pool_name(key, text); return;
    case VR_GROUP_ROLE: vr_text_puts(text, vram_role_word((size_t)key)); return;
    case VR_GROUP_STREAM: vr_text_printf(text, "stream %lld", (long long)key); return;
    case VR_GROUP_THREAD: vr_text_printf(text, "thread %llu", (unsigned long long)key); return;
    case VR_GROUP_SIZE:
        vr_text_printf(text, "%s to ", vr_bytes(key == 0 ? 0 : (uint64_t)1 << key).text);
        vr_text_puts(text, vr_bytes(key == 63 ? UINT64_MAX : (uint64_t)2 << key).text);
        return;
    case VR_GROUP_REGEX: vr_text_puts(text, key == 0 ? "<no match>" : grouping->parts.bytes + grouping->part_text[key - 1].start); return;
    case VR_GROUP_SITE: frame_name(grouping->view->model, (uint32_t)key, text); return;
    default: string_name(grouping, key, text);
    }
}

static int larger_first(const void *a, const void *b) {
    const struct vr_group *x = a, *y = b;
    if (x->bytes != y->bytes) return VR_ORDER(y->bytes, x->bytes);
    if (x->count != y->count) return VR_ORDER(y->count, x->count);
    return VR_ORDER(x->key, y->key);
}

enum vram_status vr_group_sums_add(struct vr_group_sums *sums, struct vr_grouping *grouping, size_t row) {
    uint64_t key = 0;
    VR_TRY(vr_grouping_key(grouping, row, &key));
    uint32_t number = vr_map_get(&sums->known, key);
    if (number == 0) {
        VR_TRY(vr_grow((void **)&sums->group, &sums->capacity, sums->count + 1, sizeof *sums->group));
        sums->group[sums->count] = (struct vr_group){.key = key, .largest_row = (uint32_t)row};
        number = (uint32_t)++sums->count;
        VR_TRY(vr_map_set(&sums->known, key, number));
    }
    struct vr_group *group = &sums->group[number - 1];
    const uint64_t bytes = grouping->lifetimes->size_bytes[row];
    group->bytes += bytes;
    group->count++;
    if (bytes <= group->largest_bytes) return VRAM_OK;
    group->largest_bytes = bytes;
    group->largest_row = (uint32_t)row;
    return VRAM_OK;
}

void vr_group_sums_take(struct vr_group_sums *sums, struct vr_group **groups, size_t *count) {
    if (sums->count != 0) qsort(sums->group, sums->count, sizeof *sums->group, larger_first);
    *groups = sums->group;
    *count = sums->count;
    sums->group = NULL;
    vr_group_sums_release(sums);
}

void vr_group_sums_release(struct vr_group_sums *sums) {
    vr_map_release(&sums->known);
    free(sums->group);
    *sums = (struct vr_group_sums){.group = NULL};
}

enum vram_status vr_grouping_sum(struct vr_grouping *grouping, const uint32_t *rows, size_t count, struct vr_group **groups,
                                 size_t *group_count) {
    struct vr_group_sums sums = {.group = NULL};
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < count && status == VRAM_OK; i++) status = vr_group_sums_add(&sums, grouping, rows[i]);
    if (status == VRAM_OK) vr_group_sums_take(&sums, groups, group_count);
    vr_group_sums_release(&sums);
    return status;
}

enum vram_status vr_rows_live_at(const struct vr_lifetimes *lifetimes, int64_t event, uint32_t **rows, size_t *count) {
    size_t live = 0;
    for (size_t i = 0; i < lifetimes->count; i++) live += vr_lifetimes_live_at(lifetimes, i, event);
    uint32_t *made = malloc((live + 1) * sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    *count = 0;
    for (size_t i = 0; i < lifetimes->count; i++) {
        if (vr_lifetimes_live_at(lifetimes, i, event)) made[(*count)++] = (uint32_t)i;
    }
    *rows = made;
    return VRAM_OK;
}

static enum vram_status choose_view(struct vr_profile *subject, int64_t device, struct vram_error *error) {
    const struct vr_views *views = &subject->views;
    size_t found = 0;
    if (device < 0) {
        if (views->count == 0) return vr_fail(error, VRAM_BAD_INPUT, VRAM_NO_OFFSET, "the recording has no events and no segments");
        VR_TRY(vr_views_in_trouble(views, &found, &subject->why));
    }
    while (device >= 0 && found < views->count && views->view[found].device != device) found++;
    if (found == views->count)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the recording has no device %lld", (long long)device);
    subject->view = &views->view[found];
    return VRAM_OK;
}

static enum vram_status choose_moment(struct vr_profile *subject, const struct vram_profile_options *options, struct vram_error *error) {
    const int64_t last = (int64_t)subject->view->history->count - 1;
    subject->event = options->moment == VRAM_PROFILE_PEAK ? subject->lifetimes.peak_event : last;
    if (options->moment == VRAM_PROFILE_EVENT) subject->event = options->event;
    if (subject->event < -1 || subject->event > last)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "event %lld does not exist; the last event is %lld",
                       (long long)subject->event, (long long)last);
    VR_TRY(vr_rows_live_at(&subject->lifetimes, subject->event, &subject->rows, &subject->count));
    for (size_t i = 0; i < subject->count; i++) subject->bytes += subject->lifetimes.size_bytes[subject->rows[i]];
    return VRAM_OK;
}

static enum vram_status open_subject(const struct vram_profile_options *options, struct vr_profile *subject, struct vram_error *error) {
    VR_TRY(vr_views_build(subject->model, &subject->views, error));
    VR_TRY(vr_sites_init(&subject->sites, subject->model));
    VR_TRY(choose_view(subject, options->device, error));
    VR_TRY(vr_lifetimes_build(subject->view, options->active ? VR_LIFETIME_ACTIVE : VR_LIFETIME_ALLOCATED, NULL, 0, &subject->lifetimes));
    subject->has_lifetimes = true;
    return choose_moment(subject, options, error);
}

enum vram_status vr_profile_open(const struct vram_recording *recording, const struct vram_profile_options *options,
                                 struct vr_profile *subject, struct vram_error *error) {
    struct vram_error unfilled = {.status = VRAM_OK}, *detail = error == NULL ? &unfilled : error;
    detail->status = VRAM_OK;
    if (recording == NULL || options == NULL)
        return vr_fail(detail, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "recording and options must not be NULL");
    struct vr_profile made = {.model = vr_recording_model(recording)};
    const enum vram_status status = open_subject(options, &made, detail);
    if (status == VRAM_OK) {
        *subject = made;
        return VRAM_OK;
    }
    vr_profile_close(&made);
    return detail->status == VRAM_OK ? vr_fail(detail, status, VRAM_NO_OFFSET, "%s", vram_status_text(status)) : status;
}

void vr_profile_close(struct vr_profile *subject) {
    if (subject->has_lifetimes) vr_lifetimes_release(&subject->lifetimes);
    if (subject->has_segments) vr_segment_lives_release(&subject->segments);
    if (subject->sites.model != NULL) vr_sites_release(&subject->sites);
    vr_role_rules_release(&subject->rules);
    vr_views_release(&subject->views);
    free(subject->rows);
    subject->rows = NULL;
}

static enum vram_status find_by(const char *word, enum vr_group_by *by, struct vram_error *error) {
    *by = VR_GROUP_SITE;
    if (word == NULL) return VRAM_OK;
    for (size_t i = 0; i < VR_GROUP_COUNT; i++) {
        if (strcmp(vr_grouping_words[i], word) != 0) continue;
        *by = (enum vr_group_by)i;
        return VRAM_OK;
    }
    return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "cannot group by '%.40s'", word);
}

enum vram_status vr_profile_grouping(struct vr_profile *subject, const struct vram_profile_options *options, struct vr_grouping *grouping,
                                     struct vram_error *error) {
    enum vr_group_by by;
    VR_TRY(find_by(options->by, &by, error));
    const bool wants_segments = by == VR_GROUP_POOL || by == VR_GROUP_STREAM;
    if (wants_segments && !subject->has_segments) {
        VR_TRY(vr_segment_lives_build(subject->view, &subject->segments));
        subject->has_segments = true;
    }
    vr_role_rules_release(&subject->rules);
    VR_TRY(vr_role_rules_parse(options->roles, &subject->rules, error));
    const struct vr_grouped grouped = {.view = subject->view,
                                       .lifetimes = &subject->lifetimes,
                                       .sites = &subject->sites,
                                       .segments = wants_segments ? &subject->segments : NULL,
                                       .rules = &subject->rules};
    return vr_grouping_init(grouping, by, &grouped, options->expression, error);
}
