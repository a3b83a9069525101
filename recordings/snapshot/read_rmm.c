// Reads logs of RMM's logging_resource_adaptor.
#include "snapshot/events_alone.h"
#include "snapshot/literals.h"
#include "snapshot/formats.h"

enum { LONGEST_LINE = 4096, FIELDS = 7 };
enum field { THREAD, TIME, ACTION, POINTER, SIZE, STREAM, DEVICE };
#define DAY_US    ((int64_t)86400 * 1000000)
#define EVENT_HAS (VR_HAS_ACTION | VR_HAS_ADDRESS | VR_HAS_SIZE | VR_HAS_STREAM | VR_HAS_TIME | VR_HAS_FRAMES | VR_HAS_THREAD)

// A piece of a line.
struct cell {
    const char *text;
    size_t length;
};

struct table_reader {
    struct vr_input *input;
    struct vr_event_list list;
    struct vram_error *error;
    uint64_t line;
    uint64_t offset; // of the line
    bool ended;      // the line ends with a newline, so it is complete
    bool has_device; // the log has a seventh column
    int64_t day_us;  // added to times: one day for each midnight passed
    int64_t last_us; // time of day of the latest row
};

static enum vram_status refuse_cell(const struct table_reader *reader, const char *what, struct cell piece) {
    const int shown = piece.length > 40 ? 40 : (int)piece.length;
    char text[41] = "";
    for (int i = 0; i < shown; i++) text[i] = piece.text[i] >= ' ' && piece.text[i] < 0x7f ? piece.text[i] : '?';
    return vr_fail(reader->error, VRAM_BAD_INPUT, reader->offset, "line %llu of the RMM log: '%s' is not a valid %s",
                   (unsigned long long)reader->line, text, what);
}

static bool cell_equals(struct cell piece, const char *text) {
    return piece.length == strlen(text) && memcmp(piece.text, text, piece.length) == 0;
}

// --- lines and fields

// Reads the next line, without its newline, completely into memory. *found is false at the end of the file.
static enum vram_status next_line(struct table_reader *reader, struct cell *line, bool *found) {
    struct vr_input *input = reader->input;
    VR_TRY(vr_input_fill(input, LONGEST_LINE));
    const size_t held = vr_input_at_hand(input), limit = held < LONGEST_LINE ? held : LONGEST_LINE;
    const char *text = (const char *)input->next, *end = limit == 0 ? NULL : memchr(text, '\n', limit);
    *found = held != 0;
    reader->offset = vr_input_offset(input);
    reader->line++;
    if (end == NULL && held >= LONGEST_LINE) return refuse_cell(reader, "row: it is too long", (struct cell){text, 40});
    line->text = text;
    line->length = end == NULL ? limit : (size_t)(end - text);
    reader->ended = end != NULL;
    input->next += line->length + reader->ended;
    if (line->length != 0 && text[line->length - 1] == '\r') line->length--;
    return VRAM_OK;
}

static struct cell trim_cell(struct cell piece) {
    while (piece.length != 0 && piece.text[0] == ' ') piece.text++, piece.length--;
    while (piece.length != 0 && piece.text[piece.length - 1] == ' ') piece.length--;
    return piece;
}

// Splits the line at its commas; returns the number of pieces, at most FIELDS + 1.
static size_t split_line(struct cell line, struct cell fields[FIELDS + 1]) {
    size_t count = 0;
    for (const char *at = line.text, *end = line.text + line.length; count <= FIELDS; at++) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        fields[count++] = trim_cell((struct cell){at, (size_t)((comma == NULL ? end : comma) - at)});
        if (comma == NULL) break;
        at = comma;
    }
    return count;
}

// --- values

static bool read_decimal(struct cell piece, uint64_t *value) {
    struct vr_numeral number;
    if (piece.length == 0 || piece.text[0] < '0' || piece.text[0] > '9') return false;
    if (!vr_numeral_parse(piece.text, piece.length, &number) || number.kind != VR_NUMERAL_WHOLE) return false;
    *value = number.bits;
    return true;
}

// Parses "0x7f00", "1024", or "(nil)", which C libraries print for a null pointer.
static bool read_pointer(struct cell piece, uint64_t *value) {
    uint32_t high = 0, low = 0;
    if (cell_equals(piece, "(nil)") || cell_equals(piece, "nullptr")) {
        *value = 0;
        return true;
    }
    if (piece.length < 3 || piece.length > 18 || memcmp(piece.text, "0x", 2) != 0) return read_decimal(piece, value);
    const size_t digits = piece.length - 2, upper = digits > 8 ? digits - 8 : 0;
    if (upper != 0 && !vr_hex_parse(piece.text + 2, upper, &high)) return false;
    if (!vr_hex_parse(piece.text + 2 + upper, digits - upper, &low)) return false;
    *value = (uint64_t)high << 32 | low;
    return true;
}

static bool two_digits(const char *text, int64_t limit, int64_t *value) {
    if (text[0] < '0' || text[0] > '9' || text[1] < '0' || text[1] > '9') return false;
    *value = *value * limit + (text[0] - '0') * 10 + (text[1] - '0');
    return (text[0] - '0') * 10 + (text[1] - '0') < limit;
}

// Parses the digits of a fraction of a second from `at` on, into microseconds.
static bool fraction_of_second(struct cell piece, size_t at, int64_t *us) {
    int64_t fraction = 0, unit = 1000000;
    for (; at < piece.length; at++) {
        if (piece.text[at] < '0' || piece.text[at] > '9') return false;
        if (unit > 1) fraction = fraction * 10 + (piece.text[at] - '0'), unit /= 10;
    }
    *us = fraction * unit;
    return true;
}

// Parses HH:MM:SS and a fraction after '.', or after ':' in older versions.
static bool time_of_day(struct cell piece, int64_t *us) {
    int64_t seconds = 0, fraction = 0;
    const char *text = piece.text;
    if (piece.length < 8 || piece.length > 18 || text[2] != ':' || text[5] != ':') return false;
    if (!two_digits(text, 24, &seconds) || !two_digits(text + 3, 60, &seconds) || !two_digits(text + 6, 60, &seconds)) return false;
    if (piece.length > 8 && text[8] != '.' && text[8] != ':') return false;
    if (!fraction_of_second(piece, 9, &fraction)) return false;
    *us = seconds * 1000000 + fraction;
    return true;
}

// Parses seconds since the epoch, and a fraction after '.'.
static bool time_since_epoch(struct cell piece, int64_t *us) {
    int64_t fraction = 0;
    uint64_t seconds;
    const char *point = memchr(piece.text, '.', piece.length);
    const size_t digits = point == NULL ? piece.length : (size_t)(point - piece.text);
    if (digits > 12 || !read_decimal((struct cell){piece.text, digits}, &seconds)) return false;
    if (point != NULL && !fraction_of_second(piece, digits + 1, &fraction)) return false;
    *us = (int64_t)seconds * 1000000 + fraction;
    return true;
}

// Adds the days. A time that falls by more than half a day has passed midnight; one that falls by less comes from a thread that logged
// late.
static int64_t time_of_log(struct table_reader *reader, int64_t us) {
    if (us + DAY_US / 2 < reader->last_us) reader->day_us += DAY_US;
    const int64_t back = us > reader->last_us + DAY_US / 2 && reader->day_us != 0 ? DAY_US : 0;
    if (back == 0) reader->last_us = us;
    return us + reader->day_us - back;
}

// --- rows

static enum vram_status add_csv_row(struct table_reader *reader, struct cell action, uint32_t device, struct vr_event_row *row) {
    row->has = EVENT_HAS;
    if (cell_equals(action, "allocate")) {
        row->action = VR_ACTION_ALLOC;
    } else if (cell_equals(action, "allocate failure")) {
        row->action = VR_ACTION_OOM;
        row->address = 0;
        row->has &= ~(uint32_t)VR_HAS_ADDRESS;
    } else if (cell_equals(action, "free") || cell_equals(action, "deallocate")) { // RMM's guide writes "deallocate"
        row->action = VR_ACTION_FREE_REQUESTED;
        VR_TRY(vr_event_list_add(&reader->list, device, row));
        row->action = VR_ACTION_FREE_COMPLETED;
    } else {
        return refuse_cell(reader, "action; expected allocate, free or allocate failure", action);
    }
    return vr_event_list_add(&reader->list, device, row);
}

static enum vram_status read_row(struct table_reader *reader, struct cell line) {
    struct cell fields[FIELDS + 1];
    struct vr_event_row row = {.has = 0};
    uint64_t thread, device = 0;
    int64_t time_us = 0;
    if (split_line(line, fields) != (size_t)(reader->has_device ? DEVICE + 1 : DEVICE))
        return refuse_cell(reader, "row with the columns of the first line", line);
    // A thread's number may be a 64-bit number of the library.
    if (!read_decimal(fields[THREAD], &thread)) return refuse_cell(reader, "thread number", fields[THREAD]);
    const bool of_day = time_of_day(fields[TIME], &time_us);
    if (!of_day && !time_since_epoch(fields[TIME], &time_us))
        return refuse_cell(reader, "time (HH:MM:SS.ffffff, or seconds)", fields[TIME]);
    if (!read_pointer(fields[POINTER], &row.address)) return refuse_cell(reader, "pointer", fields[POINTER]);
    if (!read_decimal(fields[SIZE], &row.size_bytes)) return refuse_cell(reader, "size", fields[SIZE]);
    if (!read_pointer(fields[STREAM], &row.stream)) return refuse_cell(reader, "stream", fields[STREAM]);
    if (reader->has_device && (!read_decimal(fields[DEVICE], &device) || device >= VR_EVENTLIST_DEVICES)) {
        return refuse_cell(reader, "device number", fields[DEVICE]);
    }
    row.thread = (uint32_t)thread;
    row.time_us = of_day ? time_of_log(reader, time_us) : time_us;
    return add_csv_row(reader, fields[ACTION], (uint32_t)device, &row);
}

static enum vram_status read_head(struct table_reader *reader) {
    struct cell line;
    bool found;
    VR_TRY(next_line(reader, &line, &found));
    reader->has_device = cell_equals(line, VR_RMM_MAGIC ",Device");
    return reader->has_device || cell_equals(line, VR_RMM_MAGIC) ? VRAM_OK
                                                                 : refuse_cell(reader, "first line; expected " VR_RMM_MAGIC, line);
}

static enum vram_status read_all(struct table_reader *reader, struct vr_model *model) {
    struct cell line;
    bool found = true, cut = false;
    VR_TRY(read_head(reader));
    while (found && !cut) {
        VR_TRY(next_line(reader, &line, &found));
        const enum vram_status status = found && line.length != 0 ? read_row(reader, line) : VRAM_OK;
        cut = status == VRAM_BAD_INPUT && !reader->ended;
        if (!cut) VR_TRY(status);
    }
    // A program that crashes leaves half a row, because RMM writes whole buffers.
    if (cut) *reader->error = (struct vram_error){.offset = VRAM_NO_OFFSET};
    VR_TRY(vr_event_list_finish(&reader->list, reader->input, model, reader->error));
    if (cut) model->ending = VR_ENDING_CUT;
    return VRAM_OK;
}

enum vram_status vr_rmm_read(struct vr_input *input, struct vr_model *model, struct vram_error *error) {
    struct table_reader reader = {.input = input, .error = error};
    enum vram_status status = vr_event_list_init(&reader.list, input);
    if (status == VRAM_OK) status = read_all(&reader, model);
    vr_event_list_release(&reader.list, input);
    return status;
}
