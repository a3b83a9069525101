#include "analyze/role_notes.h"

enum { MOST_OPEN = 64, MOST_NAME_BYTES = 400 };

static const char role_word[] = "vram.role ", module_word[] = "vram.module ";

static bool has_prefix(const char *text, const char *prefix) { return strncmp(text, prefix, strlen(prefix)) == 0; }

// Said of what was live at an address before `event`.
struct role_note {
    size_t event;
    size_t order;
    uint64_t address;
    uint8_t role;
    const char *name;
};

struct role_noting {
    const struct vr_view *view;
    const struct vr_lifetimes *lifetimes;
    struct vr_role_notes notes;
    struct role_note *note;
    size_t count, capacity;
};

static bool read_role(const char **text, uint8_t *role) {
    const size_t length = strcspn(*text, " ");
    for (size_t i = 0; i < VRAM_ROLE_COUNT; i++) {
        const char *word = vram_role_word(i);
        if (strlen(word) != length || memcmp(word, *text, length) != 0) continue;
        *role = (uint8_t)i;
        *text += length + ((*text)[length] == ' ');
        return true;
    }
    return false;
}

static bool read_address(const char **text, uint64_t *address) {
    char *end;
    if (!has_prefix(*text, "0x")) return false;
    *address = strtoull(*text, &end, 16);
    if (*end != ' ' && *end != '\0') return false;
    *text = end + (*end == ' ');
    return true;
}

// A text that says a role; with an address of its own unless `address` is given. Other texts are passed over.
static enum vram_status add_note(struct role_noting *noting, size_t event, const char *text, const uint64_t *address) {
    struct role_note note = {.event = event, .order = noting->count, .address = address == NULL ? 0 : *address};
    if (!has_prefix(text, role_word)) return VRAM_OK;
    text += strlen(role_word);
    if (!read_role(&text, &note.role) || (address == NULL && !read_address(&text, &note.address))) return VRAM_OK;
    note.name = text;
    VR_TRY(vr_grow((void **)&noting->note, &noting->capacity, noting->count + 1, sizeof *noting->note));
    noting->note[noting->count++] = note;
    return VRAM_OK;
}

static bool concerns_view(const struct vr_view *view, const struct vr_annotation *annotation) {
    return annotation->device < 0 || annotation->device == (int64_t)view->device;
}

static enum vram_status collect_role_notes(struct role_noting *noting) {
    const struct vr_model *model = noting->view->model;
    const struct vr_history *history = noting->view->history;
    for (size_t i = 0; i < history->count; i++) {
        if (history->action[i] != VR_ACTION_ANNOTATE || history->metadata[i] == 0) continue;
        VR_TRY(add_note(noting, i, vr_model_string(model, history->metadata[i]), &history->address[i]));
    }
    const bool timed = history->count != 0 && (vr_entry_has(history, 0) & VR_HAS_TIME) != 0;
    for (size_t i = 0; i < model->annotation_count && timed; i++) {
        const struct vr_annotation *annotation = &model->annotations[i];
        if (!concerns_view(noting->view, annotation) || strcmp(vr_model_string(model, annotation->stage), "END") == 0) continue;
        size_t event;
        VR_LOWER_BOUND(event, e, 0, history->count, history->time_us[e] <= annotation->time_us);
        VR_TRY(add_note(noting, event, vr_model_string(model, annotation->name), NULL));
    }
    return VRAM_OK;
}

static int notes_by_event(const void *a, const void *b) {
    const struct role_note *x = a, *y = b;
    if (x->event != y->event) return VR_ORDER(x->event, y->event);
    return VR_ORDER(x->order, y->order);
}

static enum vram_status number_name(struct vr_role_notes *notes, const char *text, size_t length, uint32_t *number) {
    if (length > MOST_NAME_BYTES) length = MOST_NAME_BYTES;
    const uint64_t hash = vr_hash_bytes(notes->index.secret, text, length);
    uint32_t row = 0;
    bool found;
    VR_HASH_INDEX_FIND(&notes->index, hash, row, notes->name[row].length == length && memcmp(notes->name[row].text, text, length) == 0,
                       found);
    if (!found) {
        VR_TRY(vr_hash_index_reserve(&notes->index));
        VR_TRY(vr_grow((void **)&notes->name, &notes->name_capacity, notes->name_count + 1, sizeof *notes->name));
        row = (uint32_t)notes->name_count;
        notes->name[notes->name_count++] = (struct vr_module_name){text, length};
        vr_hash_index_add(&notes->index, hash, row);
    }
    *number = row + 1;
    return VRAM_OK;
}

// A parameter's name without its last part is its module's.
static size_t module_length(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot == NULL ? strlen(name) : (size_t)(dot - name);
}

// Rows are in the order of birth: at each note the newest row at the address is the one that is meant, if it still lives.
static enum vram_status apply_notes(struct role_noting *noting) {
    const struct vr_lifetimes *lifetimes = noting->lifetimes;
    struct vr_map newest = {0};
    size_t row = 0;
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < noting->count && status == VRAM_OK; i++) {
        const struct role_note *note = &noting->note[i];
        for (; row < lifetimes->count && status == VRAM_OK; row++) {
            if (lifetimes->birth[row] != VR_BEFORE_TRACE && lifetimes->birth[row] >= note->event) break;
            status = vr_map_set(&newest, lifetimes->address[row], row + 1);
        }
        const uint64_t meant = vr_map_get(&newest, note->address);
        if (status != VRAM_OK || meant == 0 || lifetimes->death[meant - 1] < note->event) continue;
        noting->notes.role[meant - 1] = note->role;
        if (note->name[0] != '\0')
            status = number_name(&noting->notes, note->name, module_length(note->name), &noting->notes.named[meant - 1]);
    }
    vr_map_release(&newest);
    return status;
}

// A beginning or an end of "vram.module NAME".
struct module_turn {
    int64_t time_us;
    size_t order;
    const char *name; // NULL: an end
};

static int by_time(const void *a, const void *b) {
    const struct module_turn *x = a, *y = b;
    if (x->time_us != y->time_us) return VR_ORDER(x->time_us, y->time_us);
    return VR_ORDER(x->order, y->order);
}

static enum vram_status collect_turns(const struct vr_view *view, struct module_turn **turns, size_t *count) {
    const struct vr_model *model = view->model;
    struct module_turn *turn = malloc((model->annotation_count + 1) * sizeof *turn);
    if (turn == NULL) return VRAM_NO_HOST_MEMORY;
    *count = 0;
    for (size_t i = 0; i < model->annotation_count; i++) {
        const struct vr_annotation *annotation = &model->annotations[i];
        const char *name = vr_model_string(model, annotation->name);
        if (!concerns_view(view, annotation) || !has_prefix(name, module_word)) continue;
        const bool ends = strcmp(vr_model_string(model, annotation->stage), "END") == 0;
        turn[*count] = (struct module_turn){annotation->time_us, i, ends ? NULL : name + strlen(module_word)};
        (*count)++;
    }
    qsort(turn, *count, sizeof *turn, by_time);
    *turns = turn;
    return VRAM_OK;
}

// The innermost module that is open when a row is born. Modules nest; what is open further in than MOST_OPEN counts as its parent's.
static enum vram_status name_by_turns(struct role_noting *noting, const struct module_turn *turn, size_t count) {
    const struct vr_lifetimes *lifetimes = noting->lifetimes;
    const struct vr_history *history = noting->view->history;
    const char *open[MOST_OPEN];
    size_t depth = 0, at = 0;
    for (size_t row = lifetimes->start_count; row < lifetimes->count && count != 0; row++) {
        const int64_t time_us = history->time_us[lifetimes->birth[row]];
        for (; at < count && turn[at].time_us <= time_us; at++) {
            if (turn[at].name == NULL && depth != 0) depth--;
            if (turn[at].name == NULL) continue;
            if (depth < MOST_OPEN) open[depth] = turn[at].name;
            depth++;
        }
        if (depth == 0 || noting->notes.named[row] != 0) continue;
        const char *name = open[depth < MOST_OPEN ? depth - 1 : MOST_OPEN - 1];
        VR_TRY(number_name(&noting->notes, name, strlen(name), &noting->notes.named[row]));
    }
    return VRAM_OK;
}

static enum vram_status name_by_metadata(struct role_noting *noting) {
    const struct vr_lifetimes *lifetimes = noting->lifetimes;
    const struct vr_history *history = noting->view->history;
    for (size_t row = lifetimes->start_count; row < lifetimes->count; row++) {
        const uint32_t metadata = history->metadata[lifetimes->birth[row]];
        if (metadata == 0 || noting->notes.named[row] != 0) continue;
        const char *text = vr_model_string(noting->view->model, metadata);
        if (!has_prefix(text, module_word)) continue;
        text += strlen(module_word);
        VR_TRY(number_name(&noting->notes, text, strlen(text), &noting->notes.named[row]));
    }
    return VRAM_OK;
}

static enum vram_status find_notes(struct role_noting *noting) {
    struct module_turn *turns = NULL;
    size_t turn_count = 0;
    VR_TRY(collect_role_notes(noting));
    if (noting->count != 0) qsort(noting->note, noting->count, sizeof *noting->note, notes_by_event);
    VR_TRY(apply_notes(noting));
    VR_TRY(name_by_metadata(noting));
    VR_TRY(collect_turns(noting->view, &turns, &turn_count));
    const enum vram_status status = name_by_turns(noting, turns, turn_count);
    free(turns);
    return status;
}

enum vram_status vr_role_notes_find(const struct vr_view *view, const struct vr_lifetimes *lifetimes, struct vr_role_notes *notes) {
    struct role_noting noting = {.view = view, .lifetimes = lifetimes};
    vr_hash_index_init(&noting.notes.index);
    noting.notes.role = malloc(lifetimes->count + 1);
    noting.notes.named = calloc(lifetimes->count + 1, sizeof *noting.notes.named);
    enum vram_status status = noting.notes.role == NULL || noting.notes.named == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    if (status == VRAM_OK) {
        memset(noting.notes.role, VRAM_ROLE_COUNT, lifetimes->count + 1);
        status = find_notes(&noting);
    }
    free(noting.note);
    if (status == VRAM_OK)
        *notes = noting.notes;
    else
        vr_role_notes_release(&noting.notes);
    return status;
}

void vr_role_notes_release(struct vr_role_notes *notes) {
    free(notes->role);
    free(notes->named);
    free(notes->name);
    vr_hash_index_release(&notes->index);
    *notes = (struct vr_role_notes){.role = NULL};
}
