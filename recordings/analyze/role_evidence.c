// The evidence for roles: the user's rules, the frames of call stacks, and the program's own notes.
#include <stdio.h>

#include "analyze/roles.h"
#include "base/base.h"
#include "vram/roles.h"

// ---- The words of roles, and the user's rules for roles.

const char *vram_role_word(size_t role) {
    static const char *const words[VRAM_ROLE_COUNT] = {
#define VRAM_ROLE(constant, word, title) word,
        VRAM_ROLES(VRAM_ROLE)
#undef VRAM_ROLE
    };
    return role < VRAM_ROLE_COUNT ? words[role] : NULL;
}

const char *vram_role_title(size_t role) {
    static const char *const titles[VRAM_ROLE_COUNT] = {
#define VRAM_ROLE(constant, word, title) title,
        VRAM_ROLES(VRAM_ROLE)
#undef VRAM_ROLE
    };
    return role < VRAM_ROLE_COUNT ? titles[role] : NULL;
}

const char *vr_role_pass_word(enum vr_role_pass pass) {
    static const char *const words[VR_PASS_COUNT] = {
        [VR_PASS_IDLE] = "",           [VR_PASS_LOAD] = "load",         [VR_PASS_INPUT] = "input",
        [VR_PASS_FORWARD] = "forward", [VR_PASS_BACKWARD] = "backward", [VR_PASS_OPTIMIZER] = "optimizer"};
    return words[pass];
}

enum { MOST_RULES = 200, MOST_WORD_BYTES = 40 };

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

static bool find_role(const char *word, size_t length, enum vram_role *role) {
    for (size_t i = 0; i < VRAM_ROLE_COUNT; i++) {
        const char *known = vram_role_word(i);
        if (strlen(known) != length || memcmp(known, word, length) != 0) continue;
        *role = (enum vram_role)i;
        return true;
    }
    return false;
}

// Parses one line [line, end), without its newline.
static enum vram_status parse_line(const char *line, const char *end, size_t number, struct vr_role_rule *rule, struct vram_error *error) {
    const char *word = line, *rest;
    while (line < end && !is_blank(*line)) line++;
    rest = line;
    while (rest < end && is_blank(*rest)) rest++;
    const int shown = (int)(line - word < MOST_WORD_BYTES ? line - word : MOST_WORD_BYTES);
    if (!find_role(word, (size_t)(line - word), &rule->role))
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "line %zu: unknown role '%.*s'", number, shown, word);
    if (rest == end)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "line %zu: expected a regular expression after '%.*s'", number, shown,
                       word);
    char *expression = malloc((size_t)(end - rest) + 1);
    if (expression == NULL) return VRAM_NO_HOST_MEMORY;
    memcpy(expression, rest, (size_t)(end - rest));
    expression[end - rest] = '\0';
    struct vram_error why = {.status = VRAM_OK};
    const enum vram_status status = vr_finder_init(&rule->finder, expression, true, &why);
    free(expression);
    if (status == VRAM_OK || status == VRAM_NO_HOST_MEMORY) return status;
    return vr_fail(error, status, VRAM_NO_OFFSET, "line %zu: %.200s", number, why.message);
}

static enum vram_status parse_rules(const char *text, struct vr_role_rules *rules, struct vram_error *error) {
    size_t number = 0;
    while (*text != '\0') {
        const char *end = strchr(text, '\n');
        const char *next = end == NULL ? text + strlen(text) : end + 1;
        if (end == NULL) end = next;
        number++;
        while (text < end && is_blank(*text)) text++;
        while (end > text && (is_blank(end[-1]) || end[-1] == '\r')) end--;
        if (text < end && *text != '#') {
            if (rules->count == MOST_RULES)
                return vr_fail(error, VRAM_LIMIT, VRAM_NO_OFFSET, "line %zu: more than %d rules", number, MOST_RULES);
            VR_TRY(vr_grow((void **)&rules->rule, &rules->capacity, rules->count + 1, sizeof *rules->rule));
            VR_TRY(parse_line(text, end, number, &rules->rule[rules->count], error));
            rules->count++;
        }
        text = next;
    }
    return VRAM_OK;
}

enum vram_status vr_role_rules_parse(const char *text, struct vr_role_rules *rules, struct vram_error *error) {
    struct vr_role_rules made = {.rule = NULL};
    const enum vram_status status = text == NULL ? VRAM_OK : parse_rules(text, &made, error);
    if (status == VRAM_OK)
        *rules = made;
    else
        vr_role_rules_release(&made);
    return status;
}

void vr_role_rules_release(struct vr_role_rules *rules) {
    for (size_t i = 0; i < rules->count; i++) vr_finder_release(&rules->rule[i].finder);
    free(rules->rule);
    free(rules->of_frame);
    *rules = (struct vr_role_rules){.rule = NULL};
}

static uint8_t first_rule(const struct vr_role_rules *rules, const struct vr_model *model, uint32_t frame) {
    char text[VR_FINDER_BYTES];
    snprintf(text, sizeof text, "%.2000s:%lld:%.2000s", vr_model_string(model, model->frames.filename[frame]),
             (long long)model->frames.line[frame], vr_model_string(model, model->frames.name[frame]));
    for (size_t i = 0; i < rules->count; i++) {
        if (vr_finder_matches(&rules->rule[i].finder, text)) return (uint8_t)(i + 2);
    }
    return 1;
}

enum vram_status vr_role_rules_find(struct vr_role_rules *rules, const struct vr_model *model, uint32_t stack, enum vram_role *role) {
    *role = VRAM_ROLE_COUNT;
    if (rules->count == 0) return VRAM_OK;
    if (rules->model != model) {
        uint8_t *of_frame = calloc((size_t)model->frames.count + 1, sizeof *of_frame);
        if (of_frame == NULL) return VRAM_NO_HOST_MEMORY;
        free(rules->of_frame);
        rules->of_frame = of_frame;
        rules->model = model;
    }
    uint8_t best = UINT8_MAX;
    for (uint64_t i = model->stacks.offset[stack]; i < model->stacks.offset[stack + 1]; i++) {
        const uint32_t frame = model->stacks.frame[i];
        if (rules->of_frame[frame] == 0) rules->of_frame[frame] = first_rule(rules, model, frame);
        if (rules->of_frame[frame] >= 2 && rules->of_frame[frame] < best) best = rules->of_frame[frame];
    }
    if (best != UINT8_MAX) *role = rules->rule[best - 2].role;
    return VRAM_OK;
}

static_assert(VR_MARK_NUMBER_COUNT <= 24, "the upper bits of a frame are its own");

// Properties of a frame in addition to its marks.
#define FRAME_KNOWN    ((uint32_t)1 << 24)
#define FRAME_PYTHON   ((uint32_t)1 << 25)
#define FRAME_TORCH    ((uint32_t)1 << 26) // a file of PyTorch
#define FRAME_CALLED   ((uint32_t)1 << 27) // its function is forward()
#define STACK_KNOWN    ((uint32_t)1 << 24)
#define MARKS_OF(bits) ((bits) & (STACK_KNOWN - 1))

// Longest part of a name that is looked at: an untrusted file may have names of megabytes in a million frames.
enum { LOOKED_BYTES = 600 };

struct frame_rule {
    bool python;
    uint32_t mark;
    const char *file;
    const char *function;
};

static const struct frame_rule rules[] = {
#define VR_PYTHON_FRAME(mark, file, function) {true, VR_MARK_##mark, file, function},
#define VR_NATIVE_FRAME(mark, part)           {false, VR_MARK_##mark, "", part},
#include "analyze/roles.def"
};

enum vram_status vr_role_marks_init(struct vr_role_marks *marks, const struct vr_model *model) {
    uint32_t *of_frame = calloc((size_t)model->frames.count + 1, sizeof *of_frame);
    uint32_t *of_stack = calloc((size_t)model->stacks.count + 1, sizeof *of_stack);
    if (of_frame == NULL || of_stack == NULL) {
        free(of_frame);
        free(of_stack);
        return VRAM_NO_HOST_MEMORY;
    }
    *marks = (struct vr_role_marks){.model = model, .of_frame = of_frame, .of_stack = of_stack};
    return VRAM_OK;
}

void vr_role_marks_release(struct vr_role_marks *marks) {
    free(marks->of_frame);
    free(marks->of_stack);
    *marks = (struct vr_role_marks){.model = NULL};
}

// The end of a file's path, and the beginning of a function's name.
struct looked_at {
    char file[LOOKED_BYTES + 1];
    char function[LOOKED_BYTES + 1];
    const char *last; // a Python function's name after its last dot
};

static void classify_frame(const struct vr_model *model, uint32_t frame, struct looked_at *looked) {
    const uint32_t file = model->frames.filename[frame], name = model->frames.name[frame];
    const size_t file_length = vr_model_string_length(model, file), name_length = vr_model_string_length(model, name);
    const size_t file_bytes = file_length < LOOKED_BYTES ? file_length : LOOKED_BYTES;
    const size_t name_bytes = name_length < LOOKED_BYTES ? name_length : LOOKED_BYTES;
    memcpy(looked->file, vr_model_string(model, file) + (file_length - file_bytes), file_bytes);
    looked->file[file_bytes] = '\0';
    memcpy(looked->function, vr_model_string(model, name), name_bytes);
    looked->function[name_bytes] = '\0';
    for (char *c = looked->file; *c != '\0'; c++) {
        if (*c == '\\') *c = '/';
    }
    const char *dot = strrchr(looked->function, '.');
    looked->last = dot == NULL ? looked->function : dot + 1;
}

static bool is_named(const char *name, const char *wanted) {
    const size_t length = strlen(wanted);
    if (length != 0 && wanted[length - 1] == '*') return strncmp(name, wanted, length - 1) == 0;
    return length == 0 || strcmp(name, wanted) == 0;
}

static bool ends_in(const char *text, const char *end) {
    const size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static uint32_t look_up_marks(const struct vr_model *model, uint32_t frame) {
    struct looked_at looked;
    classify_frame(model, frame, &looked);
    const bool python = ends_in(looked.file, ".py") || (looked.file[0] == '<' && looked.function[0] != '\0');
    uint32_t bits = FRAME_KNOWN | (python ? FRAME_PYTHON : 0);
    if (python && strstr(looked.file, "/torch/") != NULL) bits |= FRAME_TORCH;
    if (python && strcmp(looked.last, "forward") == 0) bits |= FRAME_CALLED;
    for (size_t i = 0; i < VR_COUNT_OF(rules); i++) {
        const struct frame_rule *rule = &rules[i];
        if (rule->python != python) continue;
        if (python ? is_named(looked.last, rule->function) && strstr(looked.file, rule->file) != NULL
                   : strstr(looked.function, rule->function) != NULL)
            bits |= rule->mark;
    }
    return bits;
}

static uint32_t frame_bits(struct vr_role_marks *marks, uint32_t frame) {
    if (marks->of_frame[frame] == 0) marks->of_frame[frame] = look_up_marks(marks->model, frame);
    return marks->of_frame[frame];
}

// Computes the marks of a stack, from the innermost frame outwards. A recomputation counts only if no other backward pass began further
// inside; a Python frame of PyTorch without a caller is the bottom of the backward pass's own thread.
static uint32_t stack_marks(struct vr_role_marks *marks, uint64_t first, uint64_t end) {
    uint32_t bits = STACK_KNOWN, outermost = 0;
    for (uint64_t i = first; i < end; i++) {
        const uint32_t frame = frame_bits(marks, marks->model->stacks.frame[i]);
        uint32_t found = MARKS_OF(frame);
        if ((found & VR_MARK_RECOMPUTE) != 0) {
            found |= VR_MARK_BACKWARD;
            if ((bits & VR_MARK_ENGINE) != 0 || (bits & VR_MARK_FORWARD) == 0) found &= ~(uint32_t)VR_MARK_RECOMPUTE;
        }
        bits |= found | VR_MARK_FRAMES;
        if ((frame & FRAME_PYTHON) == 0) {
            bits |= VR_MARK_NATIVE;
        } else {
            bits |= VR_MARK_PYTHON;
            outermost = marks->model->stacks.frame[i];
        }
    }
    if ((bits & VR_MARK_PYTHON) != 0 && (frame_bits(marks, outermost) & FRAME_TORCH) != 0) {
        const char *name = vr_model_string(marks->model, marks->model->frames.name[outermost]);
        if (name[0] != '<') bits |= VR_MARK_BACKWARD;
    }
    return bits;
}

uint32_t vr_role_marks_of(struct vr_role_marks *marks, uint32_t stack) {
    const struct vr_stacks *stacks = &marks->model->stacks;
    if (marks->of_stack[stack] == 0) marks->of_stack[stack] = stack_marks(marks, stacks->offset[stack], stacks->offset[stack + 1]);
    return MARKS_OF(marks->of_stack[stack]);
}

uint32_t vr_role_marks_of_frame(struct vr_role_marks *marks, uint32_t frame) { return MARKS_OF(frame_bits(marks, frame)); }

bool vr_role_marks_is_own(struct vr_role_marks *marks, uint32_t frame) {
    const uint32_t bits = frame_bits(marks, frame);
    return (bits & FRAME_PYTHON) != 0 && (bits & FRAME_TORCH) == 0;
}

uint32_t vr_role_marks_module(struct vr_role_marks *marks, uint32_t stack) {
    const struct vr_stacks *stacks = &marks->model->stacks;
    uint32_t of_torch = VR_NO_MODULE;
    for (uint64_t i = stacks->offset[stack]; i < stacks->offset[stack + 1]; i++) {
        const uint32_t bits = frame_bits(marks, stacks->frame[i]);
        if ((bits & FRAME_CALLED) == 0) continue;
        if ((bits & FRAME_TORCH) == 0) return stacks->frame[i];
        if (of_torch == VR_NO_MODULE) of_torch = stacks->frame[i];
    }
    return of_torch;
}

enum { MOST_OPEN = 64, MOST_NAME_BYTES = 400 };

static const char role_word[] = "vram.role ", module_word[] = "vram.module ";

static bool has_prefix(const char *text, const char *prefix) { return strncmp(text, prefix, strlen(prefix)) == 0; }

// A note about the allocation live at an address before `event`.
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

// Parses a text that gives a role, with an address unless `address` is given. Ignores other texts.
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

// Returns the length of a parameter's module name: the name without its last part.
static size_t module_length(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot == NULL ? strlen(name) : (size_t)(dot - name);
}

// Applies the notes. Rows are in the order of birth: a note applies to the newest row at its address, if that is still live.
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

// The beginning or end of "vram.module NAME".
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

// Assigns to each row the innermost module open at its birth. Modules nest; a row in one deeper than MOST_OPEN gets the ancestor at that
// depth.
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
