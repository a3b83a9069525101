// Parses the text of VRAM_HISTORY: words separated by commas, each "key=value" or a single word.

#include "entry/history_text.h"

#include "base/base.h"

struct reading {
    struct vr_history_text *text;
    struct vram_history_options *options;
    const char **dump;
    char *value; // of the current word; NULL: no value
};

static bool choose_name(const char *value, const char *const *names, size_t count, int *index) {
    for (size_t i = 0; i < count && value != NULL; i++) {
        if (strcmp(value, names[i]) != 0) continue;
        *index = (int)i;
        return true;
    }
    return false;
}

static bool read_enabled(struct reading *reading) {
    static const char *const names[] = {"all", "alloc", "state"};
    int index = 0;
    if (!choose_name(reading->value, names, VR_COUNT_OF(names), &index)) return false;
    reading->options->enabled = (enum vram_history_level)index;
    return true;
}

static bool read_context(struct reading *reading) {
    static const char *const names[] = {"all", "alloc", "state", "none"};
    int index = 0;
    if (!choose_name(reading->value, names, VR_COUNT_OF(names), &index)) return false;
    reading->options->context = (enum vram_history_level)index;
    return true;
}

static bool read_stacks(struct reading *reading) {
    static const char *const names[] = {"all", "python", "c", "none"};
    int index = 0;
    if (!choose_name(reading->value, names, VR_COUNT_OF(names), &index)) return false;
    if (index == 3) {
        reading->options->context = VRAM_HISTORY_NONE;
    } else {
        reading->options->stacks = (enum vram_history_stacks)index;
    }
    return true;
}

static bool read_number(const char *value, uint64_t most, uint64_t *number) {
    uint64_t read = 0;
    if (value == NULL || *value == '\0') return false;
    for (; *value != '\0'; value++) {
        if (*value < '0' || *value > '9' || !vr_mul_u64(read, 10, &read) || !vr_add_u64(read, (uint64_t)(*value - '0'), &read))
            return false;
    }
    if (read == 0 || read > most) return false;
    *number = read;
    return true;
}

static bool read_entries(struct reading *reading) { return read_number(reading->value, UINT64_MAX, &reading->options->max_entries); }
static bool read_file_bytes(struct reading *reading) { return read_number(reading->value, UINT64_MAX, &reading->options->max_file_bytes); }
static bool read_frames(struct reading *reading) {
    uint64_t frames = 0;
    if (!read_number(reading->value, 1024, &frames)) return false;
    reading->options->max_frames = (uint32_t)frames;
    return true;
}

// Reads names joined by '+'.
static bool read_skip(struct reading *reading) {
    char *at = reading->value;
    if (at == NULL || *at == '\0') return false;
    reading->options->skip_actions = reading->text->skip;
    while (at != NULL) {
        if (reading->options->skip_count == VR_SKIP_MOST) return false;
        char *plus = strchr(at, '+');
        if (plus != NULL) *plus++ = '\0';
        reading->text->skip[reading->options->skip_count++] = at;
        at = plus;
    }
    return true;
}

static bool read_file(struct reading *reading) {
    reading->options->file = reading->value;
    return reading->value != NULL && *reading->value != '\0';
}
static bool read_dump(struct reading *reading) {
    *reading->dump = reading->value;
    return reading->value != NULL && *reading->value != '\0';
}
static bool read_compile(struct reading *reading) {
    reading->options->compile_context = true;
    return reading->value == NULL;
}
static bool read_clear(struct reading *reading) {
    reading->options->clear_history = true;
    return reading->value == NULL;
}
static bool read_own(struct reading *reading) {
    reading->options->own_annotations_only = true;
    return reading->value == NULL;
}

static const struct {
    const char *key;
    bool (*read)(struct reading *reading); // returns false for an invalid value
} keys[] = {
    {"enabled", read_enabled},
    {"context", read_context},
    {"stacks", read_stacks},
    {"max_entries", read_entries},
    {"max_frames", read_frames},
    {"skip_actions", read_skip},
    {"file", read_file},
    {"max_file_bytes", read_file_bytes},
    {"dump", read_dump},
    {"compile_context", read_compile},
    {"own_annotations_only", read_own},
    {"clear_history", read_clear},
};

// Reads one word; the first may be just the value of `enabled`.
static bool read_word(struct reading *reading, char *word, bool first) {
    reading->value = word;
    if (first && read_enabled(reading)) return true;
    char *equals = strchr(word, '=');
    if (equals != NULL) *equals++ = '\0';
    reading->value = equals;
    for (size_t i = 0; i < VR_COUNT_OF(keys); i++) {
        if (strcmp(word, keys[i].key) == 0) return keys[i].read(reading);
    }
    return false;
}

static bool is_off(const char *text) { return text[0] == '\0' || strcmp(text, "0") == 0 || strcmp(text, "off") == 0; }

enum vram_status vr_history_parse(struct vr_history_text *text, struct vram_history_options *options, const char **dump, bool *wanted,
                                  struct vram_error *error) {
    struct reading reading = {.text = text, .options = options, .dump = dump};
    *options = (struct vram_history_options){0};
    *dump = NULL;
    *wanted = !is_off(text->storage);
    if (!*wanted || strcmp(text->storage, "1") == 0 || strcmp(text->storage, "on") == 0) return VRAM_OK;
    bool first = true;
    for (char *word = text->storage; word != NULL; first = false) {
        char *comma = strchr(word, ',');
        if (comma != NULL) *comma++ = '\0';
        const uint64_t offset = (uint64_t)(word - text->storage);
        if (!read_word(&reading, word, first)) {
            return vr_fail(error, VRAM_BAD_OPTION, offset, "VRAM_HISTORY: character %llu: \"%s\" is unknown or has an invalid value",
                           (unsigned long long)offset + 1, word);
        }
        word = comma;
    }
    return VRAM_OK;
}
