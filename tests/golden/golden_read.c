// Reads golden traces. Format of a file:
//
//   # conf: OPTION STRING
//   # pytorch: VERSION         optional: the version whose rules apply (2.15); 2.6 if it is missing and the option string does not set it
//   OPERATION [= ANSWER]      one per line, see `shapes`
//   SEGMENTS n                a snapshot: then n SEG lines, each followed by its BLK lines
//   PEAKS numbers
//   DRIVER name=count ...
//
// An answer is the 13 numbers of GOLDEN_NUMBERS, then nothing, @ADDRESS (hexadecimal) or OOM. The format has no other parts.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "golden/golden.h"

enum { LINE_CAPACITY = 1024, MAX_ID = 1 << 20, MAX_POOL = 1 << 16 };

// The words after the letter: i = id, b = bytes, s = stream, f = fraction, p = private pool.
static const struct shape {
    char kind;
    const char *words;
} shapes[] = {
    {'k', "b"}, {'x', "f"}, {'m', "ibs"}, {'f', "i"},  {'r', "is"}, {'e', ""},
    {'s', ""},  {'w', "s"}, {'M', ""},    {'g', "ps"}, {'h', "ps"}, {'d', "p"},
};

struct reader {
    struct golden_trace *trace;
    struct vram_error *error;
    uint32_t line;
    char *rest; // the unread rest of the line
};

static enum vram_status bad(const struct reader *reader, const char *expected) {
    return vr_fail(reader->error, VRAM_BAD_INPUT, reader->line, "line %u: expected %s", (unsigned)reader->line, expected);
}

// Returns the line's next word; NULL at its end.
static char *next_word(struct reader *reader) {
    char *word = reader->rest + strspn(reader->rest, " \t");
    if (*word == '\0') return NULL;
    char *end = word + strcspn(word, " \t");
    reader->rest = *end ? end + 1 : end;
    *end = '\0';
    return word;
}

static bool parse_u64(const char *text, int base, uint64_t *value) {
    if (!text || *text == '\0' || *text == '-' || *text == '+' || *text == ' ') return false;
    char *end = NULL;
    errno = 0;
    const unsigned long long parsed = strtoull(text, &end, base);
    if (errno || *end) return false;
    *value = parsed;
    return true;
}

// Parses a word of the form NAME=NUMBER.
static bool parse_named(const char *word, const char *name, uint64_t *value) {
    const size_t length = strlen(name);
    return word && strncmp(word, name, length) == 0 && word[length] == '=' && parse_u64(word + length + 1, 10, value);
}

static enum vram_status read_number(struct reader *reader, uint64_t limit, const char *what, uint64_t *value) {
    uint64_t parsed = 0;
    if (!parse_u64(next_word(reader), 10, &parsed) || parsed > limit) return bad(reader, what);
    *value = parsed;
    return VRAM_OK;
}

static enum vram_status read_fraction(struct reader *reader, double *fraction) {
    const char *word = next_word(reader);
    char *end = NULL;
    const double parsed = word ? strtod(word, &end) : -1;
    if (!word || *end || !(parsed >= 0 && parsed <= 1)) return bad(reader, "a fraction from 0 to 1");
    *fraction = parsed;
    return VRAM_OK;
}

static enum vram_status read_words(struct reader *reader, const char *words, struct golden_operation *operation) {
    uint64_t value = 0;
    for (; *words; words++) {
        switch (*words) {
        case 'i':
            VR_TRY(read_number(reader, MAX_ID, "an id", &value));
            operation->id = (uint32_t)value;
            if (operation->id >= reader->trace->id_count) reader->trace->id_count = operation->id + 1;
            break;
        case 'b': VR_TRY(read_number(reader, UINT64_MAX, "a number of bytes", &operation->bytes)); break;
        case 's': VR_TRY(read_number(reader, 2, "stream 0, 1 or 2", &operation->stream)); break;
        case 'f': VR_TRY(read_fraction(reader, &operation->fraction)); break;
        default:
            VR_TRY(read_number(reader, MAX_POOL, "a pool", &value));
            operation->pool = (uint32_t)value;
            if (operation->pool >= reader->trace->pool_count) reader->trace->pool_count = operation->pool + 1;
            break;
        }
    }
    return VRAM_OK;
}

static enum vram_status read_answer(struct reader *reader, struct golden_operation *operation) {
    const char *word = next_word(reader);
    if (!word) return VRAM_OK;
    if (strcmp(word, "=") != 0) return bad(reader, "`=` or the end of the line");
    for (size_t i = 0; i < GOLDEN_NUMBER_COUNT; i++) {
        uint64_t value = 0;
        VR_TRY(read_number(reader, INT64_MAX, "13 numbers", &value));
        operation->number[i] = (int64_t)value;
    }
    operation->has_answer = true;
    word = next_word(reader);
    if (!word) return VRAM_OK;
    operation->result = strcmp(word, "OOM") == 0 ? GOLDEN_OOM : GOLDEN_ADDRESS;
    if (operation->result == GOLDEN_ADDRESS && (word[0] != '@' || !parse_u64(word + 1, 16, &operation->address)))
        return bad(reader, "@ADDRESS or OOM");
    return next_word(reader) ? bad(reader, "the end of the line") : VRAM_OK;
}

static enum vram_status read_operation(struct reader *reader, char kind) {
    struct golden_trace *trace = reader->trace;
    const struct shape *shape = NULL;
    for (size_t i = 0; i < VR_COUNT_OF(shapes); i++)
        if (shapes[i].kind == kind) shape = &shapes[i];
    if (!shape) return bad(reader, "an operation, SEGMENTS, PEAKS or DRIVER");
    struct golden_operation operation = {.line = reader->line, .kind = kind};
    VR_TRY(read_words(reader, shape->words, &operation));
    VR_TRY(read_answer(reader, &operation));
    VR_TRY(vr_grow((void **)&trace->operations, &trace->operation_capacity, trace->operation_count + 1, sizeof operation));
    trace->operations[trace->operation_count++] = operation;
    return VRAM_OK;
}

static enum vram_status read_map(struct reader *reader) {
    struct golden_trace *trace = reader->trace;
    struct golden_map map = {.line = reader->line, .after = trace->operation_count, .first_segment = trace->segment_count};
    uint64_t announced = 0; // only the following SEG lines count
    VR_TRY(read_number(reader, UINT32_MAX, "a number of segments", &announced));
    VR_TRY(vr_grow((void **)&trace->maps, &trace->map_capacity, trace->map_count + 1, sizeof map));
    trace->maps[trace->map_count++] = map;
    return VRAM_OK;
}

static enum vram_status read_segment(struct reader *reader) {
    struct golden_trace *trace = reader->trace;
    struct golden_segment segment = {.first_block = trace->block_count};
    uint64_t blocks = 0;
    if (trace->map_count == 0) return bad(reader, "SEGMENTS before SEG");
    const bool numbers = parse_u64(next_word(reader), 16, &segment.address) && parse_named(next_word(reader), "stream", &segment.stream) &&
                         parse_named(next_word(reader), "pool", &segment.pool) &&
                         parse_named(next_word(reader), "size", &segment.size_bytes) &&
                         parse_named(next_word(reader), "allocated", &segment.allocated_bytes) &&
                         parse_named(next_word(reader), "active", &segment.active_bytes) &&
                         parse_named(next_word(reader), "requested", &segment.requested_bytes);
    const char *word = numbers ? next_word(reader) : NULL;
    if (!word || (strcmp(word, "small") != 0 && strcmp(word, "large") != 0) || segment.stream > 2)
        return bad(reader, "SEG ADDRESS stream= pool= size= ... small|large");
    segment.small_pool = strcmp(word, "small") == 0;
    word = next_word(reader);
    if (word && strcmp(word, "expandable") == 0) {
        segment.expandable = true;
        word = next_word(reader);
    }
    if (!parse_named(word, "blocks", &blocks)) return bad(reader, "blocks=");
    VR_TRY(vr_grow((void **)&trace->segments, &trace->segment_capacity, trace->segment_count + 1, sizeof segment));
    trace->segments[trace->segment_count++] = segment;
    trace->maps[trace->map_count - 1].segment_count++;
    return VRAM_OK;
}

static enum vram_status read_block(struct reader *reader) {
    static const char *const states[] = {"inactive", "allocated", "pending"};
    struct golden_trace *trace = reader->trace;
    struct golden_block block = {0};
    if (trace->segment_count == 0) return bad(reader, "SEG before BLK");
    const bool numbers = parse_u64(next_word(reader), 16, &block.address) && parse_named(next_word(reader), "size", &block.size_bytes) &&
                         parse_named(next_word(reader), "requested", &block.requested_bytes);
    const char *word = numbers ? next_word(reader) : NULL;
    size_t state = 0;
    while (word && state < VR_COUNT_OF(states) && strcmp(word, states[state]) != 0) state++;
    if (!word || state == VR_COUNT_OF(states)) return bad(reader, "BLK ADDRESS size= requested= STATE");
    block.state = (enum golden_state)state;
    VR_TRY(vr_grow((void **)&trace->blocks, &trace->block_capacity, trace->block_count + 1, sizeof block));
    trace->blocks[trace->block_count++] = block;
    trace->segments[trace->segment_count - 1].block_count++;
    return VRAM_OK;
}

static enum vram_status read_peaks(struct reader *reader) {
    for (size_t i = 0; i < GOLDEN_PEAK_COUNT; i++) {
        uint64_t value = 0;
        VR_TRY(read_number(reader, INT64_MAX, "7 numbers", &value));
        reader->trace->peak[i] = (int64_t)value;
    }
    reader->trace->has_peaks = true;
    reader->trace->peaks_line = reader->line;
    return VRAM_OK;
}

static enum vram_status read_driver(struct reader *reader) {
    struct golden_trace *trace = reader->trace;
    trace->driver_line = reader->line;
    for (char *word = next_word(reader); word; word = next_word(reader)) {
        char *equals = strchr(word, '=');
        if (!equals || trace->driver_count == VR_COUNT_OF(trace->driver)) return bad(reader, "name=count");
        *equals = '\0';
        struct golden_count *count = &trace->driver[trace->driver_count];
        if (strlen(word) >= sizeof count->name || !parse_u64(equals + 1, 10, &count->count)) return bad(reader, "name=count");
        memcpy(count->name, word, strlen(word) + 1);
        trace->driver_count++;
    }
    return VRAM_OK;
}

// Copies what follows `head` if the line begins with it.
static enum vram_status read_head(const struct reader *reader, const char *line, const char *head, char *text, size_t capacity) {
    if (strncmp(line, head, strlen(head)) != 0) return VRAM_OK;
    line += strlen(head);
    line += strspn(line, " ");
    if (strlen(line) >= capacity) return bad(reader, "a shorter text");
    memcpy(text, line, strlen(line) + 1);
    return VRAM_OK;
}

static enum vram_status read_comment(const struct reader *reader, const char *line) {
    struct golden_trace *trace = reader->trace;
    VR_TRY(read_head(reader, line, "# pytorch:", trace->rules, sizeof trace->rules));
    return read_head(reader, line, "# conf:", trace->conf, sizeof trace->conf);
}

static enum vram_status read_line(struct reader *reader, char *line) {
    static const struct {
        const char *word;
        enum vram_status (*read)(struct reader *reader);
    } sections[] = {{"SEGMENTS", read_map}, {"SEG", read_segment}, {"BLK", read_block}, {"PEAKS", read_peaks}, {"DRIVER", read_driver}};
    if (*line == '#') return read_comment(reader, line);
    reader->rest = line;
    const char *word = next_word(reader);
    if (!word) return VRAM_OK;
    for (size_t i = 0; i < VR_COUNT_OF(sections); i++)
        if (strcmp(word, sections[i].word) == 0) return sections[i].read(reader);
    return word[1] == '\0' ? read_operation(reader, word[0]) : bad(reader, "an operation, SEGMENTS, PEAKS or DRIVER");
}

enum vram_status golden_read(const char *path, struct golden_trace *trace, struct vram_error *error) {
    memset(trace, 0, sizeof *trace);
    FILE *file = fopen(path, "r");
    if (!file) return vr_fail(error, VRAM_IO, VRAM_NO_OFFSET, "cannot open: %s", strerror(errno));
    struct reader reader = {.trace = trace, .error = error};
    char line[LINE_CAPACITY];
    enum vram_status status = VRAM_OK;
    while (status == VRAM_OK && fgets(line, sizeof line, file)) {
        reader.line++;
        const size_t length = strcspn(line, "\r\n");
        if (line[length] == '\0' && !feof(file)) {
            status = bad(&reader, "a shorter line");
            break;
        }
        line[length] = '\0';
        status = read_line(&reader, line);
    }
    if (status == VRAM_OK && ferror(file)) status = vr_fail(error, VRAM_IO, VRAM_NO_OFFSET, "cannot read");
    (void)fclose(file);
    if (status == VRAM_OK && trace->operation_count == 0) status = vr_fail(error, VRAM_BAD_INPUT, 0, "no operation in the file");
    if (status != VRAM_OK) golden_release(trace);
    return status;
}

void golden_release(struct golden_trace *trace) {
    free(trace->operations);
    free(trace->blocks);
    free(trace->segments);
    free(trace->maps);
    memset(trace, 0, sizeof *trace);
}
