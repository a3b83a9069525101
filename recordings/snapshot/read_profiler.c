// Reads the files of PyTorch's profiler: traces with memory events, and memory timelines.
#include <math.h>

#include "base/hash.h"
#include "snapshot/events_alone.h"
#include "snapshot/formats.h"
#include "snapshot/scan.h"

enum { NAME_BYTES = 1024, KEY_BYTES = 64, MOST_FRAMES = 256 };
#define EVENT_HAS (VR_HAS_ACTION | VR_HAS_ADDRESS | VR_HAS_SIZE | VR_HAS_STREAM | VR_HAS_TIME | VR_HAS_FRAMES | VR_HAS_THREAD)

// A memory event at a point in time, or a named span, on a thread.
struct happening {
    int64_t start_ns; // relative to the trace's base time
    int64_t end_ns;   // for memory: start_ns
    uint64_t thread;  // a hash of pid and tid
    uint64_t order;   // position in the file
    uint64_t address; // memory only
    int64_t bytes;    // memory only; negative for a free
    uint32_t device;  // memory only
    uint32_t name;    // string id of a span; 0 for memory
    uint32_t tid;
    bool oom;
};

// The fields read from one event of the trace.
struct trace_entry {
    char phase;
    char category[KEY_BYTES];
    char name[NAME_BYTES];
    size_t name_length;
    int64_t start_ns, duration_ns;
    uint64_t process, thread; // hashes
    uint32_t tid;
    uint64_t address, device, device_type;
    int64_t bytes;
    bool has_bytes, has_start;
};

struct trace_reader {
    struct vr_scan scan;
    struct vr_event_list list;
    struct happening *items;
    size_t count, capacity;
    uint64_t memory_events;
    int64_t base_ns;            // zero point of all times
    uint32_t open[MOST_FRAMES]; // the spans that are open on the current thread, as indices in items
    size_t open_count;
};

bool vr_kineto_begins(const unsigned char *text, size_t length) {
    static const char *const keys[] = {"schemaVersion",       "traceEvents",          "deviceProperties",   "displayTimeUnit",
                                       "traceName",           "record_shapes",        "profile_memory",     "with_stack",
                                       "with_flops",          "with_modules",         "distributedInfo",    "trace_id",
                                       "baseTimeNanoseconds", "cuda_runtime_version", "cuda_driver_version"};
    size_t at = 1;
    while (at < length && strchr(" \t\r\n", text[at]) != NULL && text[at] != '\0') at++;
    if (length == 0 || text[0] != '{' || at >= length || text[at] != '"') return false;
    at++;
    for (size_t i = 0; i < VR_COUNT_OF(keys); i++) {
        const size_t bytes = strlen(keys[i]);
        if (length - at > bytes && memcmp(text + at, keys[i], bytes) == 0 && text[at + bytes] == '"') return true;
    }
    return false;
}

// --- values

static int64_t clamp_to_int64(double value) {
    return value > 9e18 ? (int64_t)9e18 : value < -9e18 ? (int64_t)-9e18 : value == value ? llround(value) : 0;
}

static int64_t whole_of_value(const struct vr_scan_value *value) {
    if (value->kind != VR_SCAN_NUMBER) return 0;
    if (value->number.kind == VR_NUMERAL_FLOAT) return clamp_to_int64(value->number.real);
    return value->number.bits > INT64_MAX && !value->number.negative ? INT64_MAX : (int64_t)value->number.bits;
}

// Converts microseconds, which newer versions write with a fraction.
static int64_t nanoseconds(const struct vr_scan_value *value) {
    const double us = value->number.kind == VR_NUMERAL_FLOAT ? value->number.real : 0;
    if (value->kind != VR_SCAN_NUMBER) return 0;
    if (value->number.kind == VR_NUMERAL_FLOAT) return clamp_to_int64(us * 1000);
    const int64_t number = whole_of_value(value);
    return number > INT64_MAX / 1000 ? INT64_MAX / 1000 * 1000 : number < INT64_MIN / 1000 ? INT64_MIN / 1000 * 1000 : number * 1000;
}

static uint64_t hash_of_string(const struct vr_scan_value *value) {
    uint64_t hash = 0;
    if (value->kind == VR_SCAN_NUMBER) return vr_mix64(value->number.bits + 1);
    for (size_t i = 0; value->kind == VR_SCAN_STRING && i < value->length; i++) hash = vr_mix64(hash ^ (unsigned char)value->text[i]);
    return hash;
}

static void copy_value_text(const struct vr_scan_value *value, char *to, size_t capacity, size_t *length) {
    *length = value->kind != VR_SCAN_STRING ? 0 : value->length < capacity ? value->length : capacity - 1;
    if (*length != 0) memcpy(to, value->text, *length);
    // Do not cut in the middle of a character.
    while (*length != 0 && *length < value->length && ((unsigned char)value->text[*length] & 0xc0) == 0x80) --*length;
    to[*length] = '\0';
}

// --- one event

static enum vram_status read_arguments(struct trace_reader *reader, struct trace_entry *entry) {
    char key[KEY_BYTES];
    bool first = true, more;
    int byte;
    VR_TRY(vr_scan_peek(&reader->scan, &byte));
    if (byte != '{') return vr_scan_skip(&reader->scan);
    VR_TRY(vr_scan_open(&reader->scan, '{'));
    for (;;) {
        struct vr_scan_value value;
        VR_TRY(vr_scan_member(&reader->scan, &first, key, sizeof key, &more));
        if (!more) return VRAM_OK;
        VR_TRY(vr_scan_value(&reader->scan, &value));
        if (strcmp(key, "Addr") == 0) entry->address = value.kind == VR_SCAN_NUMBER ? value.number.bits : 0;
        if (strcmp(key, "Device Id") == 0) entry->device = (uint64_t)whole_of_value(&value);
        if (strcmp(key, "Device Type") == 0) entry->device_type = (uint64_t)whole_of_value(&value);
        if (strcmp(key, "Bytes") == 0) {
            entry->bytes = whole_of_value(&value);
            entry->has_bytes = value.kind == VR_SCAN_NUMBER;
        }
    }
}

static void read_field(const char *key, const struct vr_scan_value *value, struct trace_entry *entry) {
    size_t length;
    if (strcmp(key, "ph") == 0) {
        entry->phase = value->kind == VR_SCAN_STRING && value->length == 1 ? value->text[0] : '\0';
    } else if (strcmp(key, "cat") == 0) {
        copy_value_text(value, entry->category, sizeof entry->category, &length);
    } else if (strcmp(key, "name") == 0) {
        copy_value_text(value, entry->name, sizeof entry->name, &entry->name_length);
    } else if (strcmp(key, "ts") == 0) {
        entry->start_ns = nanoseconds(value);
        entry->has_start = value->kind == VR_SCAN_NUMBER;
    } else if (strcmp(key, "dur") == 0) {
        entry->duration_ns = nanoseconds(value);
    } else if (strcmp(key, "pid") == 0) {
        entry->process = hash_of_string(value);
    } else if (strcmp(key, "tid") == 0) {
        entry->thread = hash_of_string(value);
        entry->tid = (uint32_t)whole_of_value(value);
    }
}

static enum vram_status read_entry(struct trace_reader *reader, struct trace_entry *entry) {
    char key[KEY_BYTES];
    bool first = true, more;
    VR_TRY(vr_scan_open(&reader->scan, '{'));
    for (;;) {
        struct vr_scan_value value;
        VR_TRY(vr_scan_member(&reader->scan, &first, key, sizeof key, &more));
        if (!more) return VRAM_OK;
        if (strcmp(key, "args") == 0) {
            VR_TRY(read_arguments(reader, entry));
        } else {
            VR_TRY(vr_scan_value(&reader->scan, &value));
            read_field(key, &value, entry);
        }
    }
}

// Returns the end time; INT64_MAX if the sum exceeds 64 bits.
static int64_t end_of_entry(const struct trace_entry *entry) {
    if (entry->duration_ns <= 0) return entry->start_ns;
    return entry->start_ns > INT64_MAX - entry->duration_ns ? INT64_MAX : entry->start_ns + entry->duration_ns;
}

static enum vram_status keep_named_entry(struct trace_reader *reader, const struct trace_entry *entry, uint32_t name) {
    void *items = reader->items;
    const enum vram_status status =
        vr_budget_grow(&reader->list.builder.budget, &items, &reader->capacity, reader->count + 1, sizeof *reader->items);
    reader->items = items;
    VR_TRY(status);
    const int64_t end_ns = name == 0 ? entry->start_ns : end_of_entry(entry);
    reader->items[reader->count] = (struct happening){.start_ns = entry->start_ns,
                                                      .end_ns = end_ns,
                                                      .thread = vr_mix64(entry->process) ^ entry->thread,
                                                      .order = reader->count,
                                                      .address = entry->address,
                                                      .bytes = entry->bytes,
                                                      .device = (uint32_t)entry->device,
                                                      .name = name,
                                                      .tid = entry->tid,
                                                      .oom = strcmp(entry->name, "[OutOfMemory]") == 0};
    reader->count++;
    return VRAM_OK;
}

static enum vram_status keep_memory(struct trace_reader *reader, const struct trace_entry *entry) {
    // Device type 0 is the host.
    if (!entry->has_bytes || !entry->has_start || entry->device_type == 0) return VRAM_OK;
    if (entry->device >= VR_EVENTLIST_DEVICES) return vr_scan_refuse(&reader->scan, "a memory event with a valid device");
    reader->memory_events++;
    return keep_named_entry(reader, entry, 0);
}

static enum vram_status keep_entry(struct trace_reader *reader, struct trace_entry *entry) {
    static const char *const lasting[] = {"cpu_op", "python_function", "user_annotation"};
    uint32_t name;
    if (strcmp(entry->name, "[memory]") == 0 || strcmp(entry->name, "[OutOfMemory]") == 0) return keep_memory(reader, entry);
    if (entry->phase != 'X' || !entry->has_start || entry->name_length == 0) return VRAM_OK;
    for (size_t i = 0; i < VR_COUNT_OF(lasting); i++) {
        if (strcmp(entry->category, lasting[i]) != 0) continue;
        if (!vr_utf8_valid(entry->name, entry->name_length)) return vr_scan_refuse(&reader->scan, "a name in UTF-8 before this");
        VR_TRY(vr_builder_string(&reader->list.builder, entry->name, entry->name_length, &name));
        if (strcmp(lasting[i], "user_annotation") == 0) {
            const int64_t end_ns = end_of_entry(entry);
            VR_TRY(vr_event_list_mark(&reader->list, 0, "START", name, entry->start_ns));
            VR_TRY(vr_event_list_mark(&reader->list, 0, "END", name, end_ns));
        }
        return keep_named_entry(reader, entry, name);
    }
    return VRAM_OK;
}

static enum vram_status read_entries(struct trace_reader *reader) {
    bool first = true, more;
    VR_TRY(vr_scan_open(&reader->scan, '['));
    for (;;) {
        struct trace_entry entry;
        int byte;
        VR_TRY(vr_scan_item(&reader->scan, &first, &more));
        if (!more) return VRAM_OK;
        VR_TRY(vr_scan_peek(&reader->scan, &byte));
        if (byte != '{') {
            VR_TRY(vr_scan_skip(&reader->scan));
            continue;
        }
        memset(&entry, 0, offsetof(struct trace_entry, name));
        memset(&entry.name_length, 0, sizeof entry - offsetof(struct trace_entry, name_length));
        entry.name[0] = '\0';
        entry.device_type = 1;
        VR_TRY(read_entry(reader, &entry));
        VR_TRY(keep_entry(reader, &entry));
    }
}

static enum vram_status read_trace(struct trace_reader *reader) {
    char key[KEY_BYTES];
    bool first = true, more;
    int byte;
    VR_TRY(vr_scan_open(&reader->scan, '{'));
    for (;;) {
        struct vr_scan_value value;
        VR_TRY(vr_scan_member(&reader->scan, &first, key, sizeof key, &more));
        if (!more) break;
        if (strcmp(key, "traceEvents") == 0) {
            VR_TRY(read_entries(reader));
            continue;
        }
        VR_TRY(vr_scan_value(&reader->scan, &value));
        if (strcmp(key, "baseTimeNanoseconds") == 0) reader->base_ns = whole_of_value(&value);
    }
    VR_TRY(vr_scan_peek(&reader->scan, &byte));
    if (byte != 0 || reader->scan.input->next != reader->scan.input->end) return vr_scan_refuse(&reader->scan, "the end of the file");
    if (reader->memory_events != 0) return VRAM_OK;
    return vr_fail(reader->scan.error, VRAM_BAD_INPUT, VRAM_NO_OFFSET,
                   "the trace has no memory events of a device; make it with torch.profiler.profile(profile_memory=True)");
}

// --- from happenings to events

// Orders by thread and time. Of items with the same start, the longer one comes first, and memory events come after spans, so that
// enclosing spans come before the items inside.
static int by_thread(const void *a, const void *b) {
    const struct happening *x = a, *y = b;
    if (x->thread != y->thread) return VR_ORDER(x->thread, y->thread);
    if (x->start_ns != y->start_ns) return VR_ORDER(x->start_ns, y->start_ns);
    if (x->end_ns != y->end_ns) return VR_ORDER(y->end_ns, x->end_ns);
    if ((x->name == 0) != (y->name == 0)) return x->name == 0 ? 1 : -1;
    return VR_ORDER(x->order, y->order);
}

static int by_time(const void *a, const void *b) {
    const struct happening *x = a, *y = b;
    if (x->start_ns != y->start_ns) return VR_ORDER(x->start_ns, y->start_ns);
    return VR_ORDER(x->order, y->order);
}

// Makes a stack of the open spans, innermost first.
static enum vram_status stack_of(struct trace_reader *reader, uint32_t *stack) {
    uint32_t frames[MOST_FRAMES];
    for (size_t i = 0; i < reader->open_count; i++) {
        const struct happening *item = &reader->items[reader->open[reader->open_count - 1 - i]];
        VR_TRY(vr_builder_frame(&reader->list.builder, item->name, 0, 0, &frames[i]));
    }
    return vr_builder_stack(&reader->list.builder, frames, reader->open_count, stack);
}

// Stores the stack of every memory event in its `name`, and keeps only these events.
static enum vram_status find_stacks(struct trace_reader *reader) {
    size_t kept = 0;
    if (reader->count > UINT32_MAX) return VRAM_LIMIT;
    qsort(reader->items, reader->count, sizeof *reader->items, by_thread);
    for (size_t i = 0; i < reader->count; i++) {
        struct happening *item = &reader->items[i];
        if (i != 0 && item->thread != item[-1].thread) reader->open_count = 0;
        while (reader->open_count != 0 && reader->items[reader->open[reader->open_count - 1]].end_ns < item->start_ns) reader->open_count--;
        if (item->name == 0) {
            VR_TRY(stack_of(reader, &item->name));
            item->end_ns = INT64_MIN; // marks it as memory
        } else if (reader->open_count < MOST_FRAMES) {
            reader->open[reader->open_count++] = (uint32_t)i;
        }
    }
    for (size_t i = 0; i < reader->count; i++) {
        if (reader->items[i].end_ns == INT64_MIN) reader->items[kept++] = reader->items[i];
    }
    reader->count = kept;
    return VRAM_OK;
}

static int64_t time_us(const struct trace_reader *reader, int64_t ns) {
    return reader->base_ns / 1000 + (ns >= 0 || ns % 1000 == 0 ? ns / 1000 : ns / 1000 - 1);
}

static enum vram_status add_events(struct trace_reader *reader) {
    qsort(reader->items, reader->count, sizeof *reader->items, by_time);
    for (size_t i = 0; i < reader->count; i++) {
        const struct happening *item = &reader->items[i];
        const uint64_t size_bytes = item->bytes < 0 ? 0 - (uint64_t)item->bytes : (uint64_t)item->bytes;
        struct vr_event_row row = {VR_ACTION_ALLOC, item->address, size_bytes, 0, time_us(reader, item->start_ns),
                                   item->tid,       item->name,    EVENT_HAS};
        if (item->oom) {
            row.action = VR_ACTION_OOM;
            row.address = 0;
            row.has &= ~(uint32_t)VR_HAS_ADDRESS;
        } else if (item->bytes < 0) {
            row.action = VR_ACTION_FREE_REQUESTED;
            VR_TRY(vr_event_list_add(&reader->list, item->device, &row));
            row.action = VR_ACTION_FREE_COMPLETED;
        }
        VR_TRY(vr_event_list_add(&reader->list, item->device, &row));
    }
    for (size_t i = 0; i < reader->list.annotation_count; i++) {
        reader->list.annotations[i].time_us = time_us(reader, reader->list.annotations[i].time_us);
    }
    return VRAM_OK;
}

enum vram_status vr_kineto_read(struct vr_input *input, struct vr_model *model, struct vram_error *error) {
    struct trace_reader reader = {.scan = {.input = input, .error = error}};
    enum vram_status status = vr_event_list_init(&reader.list, input);
    if (status == VRAM_OK) status = read_trace(&reader);
    if (status == VRAM_OK) status = find_stacks(&reader);
    if (status == VRAM_OK) status = add_events(&reader);
    if (status == VRAM_OK) status = vr_event_list_finish(&reader.list, input, model, error);
    free(reader.items);
    vr_scan_release(&reader.scan);
    vr_event_list_release(&reader.list, input);
    return status;
}

#define ALLOCATION_HAS (VR_HAS_ACTION | VR_HAS_ADDRESS | VR_HAS_SIZE | VR_HAS_TIME | VR_HAS_FRAMES)
#define FIRST_ADDRESS  ((uint64_t)1 << 32)

enum timeline_action { THERE_BEFORE = 1, MADE = 2, NEW_VERSION = 3, DESTROYED = 4 };

// Indexed by the profiler's category numbers; memory without a category comes last.
static const char *const categories[] = {"parameter",  "optimizer state", "input",           "temporary",
                                         "activation", "gradient",        "autograd detail", "no category"};

// A live allocation, in a chain of those of the same size and category, newest first. Block numbers begin at 1.
struct timeline_block {
    uint64_t address;
    size_t below; // number of the next older block in the chain; 0: none
};

struct timeline_reader {
    struct vr_scan scan;
    struct vr_event_list list;
    struct vr_map newest; // key_of_allocation() -> number of the newest block
    struct timeline_block *blocks;
    size_t count, capacity;
    uint64_t next_address;
    uint32_t stacks[VR_COUNT_OF(categories)];
};

struct timeline_row {
    int64_t time_ns, bytes;
    int64_t action, category;
};

bool vr_timeline_begins(const unsigned char *text, size_t length) {
    size_t at = 0, open = 0;
    for (; at < length && text[at] != '\0' && strchr("[ \t\r\n", text[at]) != NULL; at++) open += text[at] == '[';
    return open == 2 && at < length && (text[at] == '-' || (text[at] >= '0' && text[at] <= '9'));
}

// --- rows ---------------------------------------------------------------------------------------------------------------------
static enum vram_status read_whole(struct timeline_reader *reader, int64_t *number) {
    struct vr_scan_value value;
    VR_TRY(vr_scan_value(&reader->scan, &value));
    if (value.kind != VR_SCAN_NUMBER || value.number.kind == VR_NUMERAL_FLOAT) return vr_scan_refuse(&reader->scan, "a whole number");
    if (value.number.bits > INT64_MAX && !value.number.negative) return vr_scan_refuse(&reader->scan, "a number below 2^63");
    *number = (int64_t)value.number.bits;
    return VRAM_OK;
}

static enum vram_status read_row(struct timeline_reader *reader, struct timeline_row *row) {
    int64_t *const columns[] = {&row->time_ns, &row->action, &row->bytes, &row->category};
    bool first = true, more;
    VR_TRY(vr_scan_open(&reader->scan, '['));
    for (size_t i = 0; i < VR_COUNT_OF(columns); i++) {
        VR_TRY(vr_scan_item(&reader->scan, &first, &more));
        if (!more) return vr_scan_refuse(&reader->scan, "four numbers per row");
        VR_TRY(read_whole(reader, columns[i]));
    }
    VR_TRY(vr_scan_item(&reader->scan, &first, &more));
    if (more) return vr_scan_refuse(&reader->scan, "the end of a row after four numbers");
    const bool known = row->category >= 0 && row->category < (int64_t)VR_COUNT_OF(categories);
    if (row->action < THERE_BEFORE || row->action > DESTROYED || !known || row->bytes == INT64_MIN)
        return vr_scan_refuse(&reader->scan, "a row with an action from 1 to 4 and a category from 0 to 7");
    return VRAM_OK;
}

// --- live allocations --------------------------------------------------------------------------------------------------------
static uint64_t size_of_allocation(const struct timeline_row *row) {
    return row->bytes < 0 ? 0 - (uint64_t)row->bytes : (uint64_t)row->bytes;
}
static uint64_t key_of_allocation(const struct timeline_row *row) {
    return size_of_allocation(row) * VR_COUNT_OF(categories) + (uint64_t)row->category;
}

static enum vram_status push_open(struct timeline_reader *reader, const struct timeline_row *row, uint64_t address) {
    void *blocks = reader->blocks;
    const enum vram_status status =
        vr_budget_grow(&reader->list.builder.budget, &blocks, &reader->capacity, reader->count + 1, sizeof *reader->blocks);
    reader->blocks = blocks;
    VR_TRY(status);
    reader->blocks[reader->count++] = (struct timeline_block){address, (size_t)vr_map_get(&reader->newest, key_of_allocation(row))};
    return vr_map_set(&reader->newest, key_of_allocation(row), reader->count);
}

// Removes the newest live block of the size and category. *address is 0 if none exists.
static enum vram_status pop_open(struct timeline_reader *reader, const struct timeline_row *row, uint64_t *address) {
    const uint64_t number = vr_map_take(&reader->newest, key_of_allocation(row));
    *address = 0;
    if (number == 0) return VRAM_OK;
    const struct timeline_block *block = &reader->blocks[number - 1];
    *address = block->address;
    return block->below == 0 ? VRAM_OK : vr_map_set(&reader->newest, key_of_allocation(row), block->below);
}

// --- events ----------------------------------------------------------------------------------------------------------------------
static enum vram_status add_event(struct timeline_reader *reader, const struct timeline_row *row, enum vr_action action, uint64_t address) {
    struct vr_event_row event = {.action = action,
                                 .address = address,
                                 .size_bytes = size_of_allocation(row),
                                 .time_us = row->time_ns < 0 ? 0 : row->time_ns / 1000,
                                 .stack = reader->stacks[row->category],
                                 .has = ALLOCATION_HAS};
    if (row->time_ns < 0) event.has &= ~(uint32_t)VR_HAS_TIME;
    return vr_event_list_add(&reader->list, 0, &event);
}

static enum vram_status begin_allocation(struct timeline_reader *reader, const struct timeline_row *row) {
    const uint64_t address = reader->next_address;
    if (size_of_allocation(row) > ((uint64_t)1 << 60) - address) return vr_scan_refuse(&reader->scan, "less than 2^60 bytes in total");
    reader->next_address += vr_round_up(size_of_allocation(row), 512) + 512;
    VR_TRY(push_open(reader, row, address));
    return add_event(reader, row, VR_ACTION_ALLOC, address);
}

static enum vram_status end_allocation(struct timeline_reader *reader, const struct timeline_row *row) {
    uint64_t address = 0;
    VR_TRY(pop_open(reader, row, &address));
    if (address == 0) return vr_scan_refuse(&reader->scan, "a row that frees live memory");
    VR_TRY(add_event(reader, row, VR_ACTION_FREE_REQUESTED, address));
    return add_event(reader, row, VR_ACTION_FREE_COMPLETED, address);
}

// Handles the two rows of a new version: the bytes leave one category and enter another.
static enum vram_status change_allocation(struct timeline_reader *reader, const struct timeline_row *row) {
    struct timeline_row into = {0};
    uint64_t address = 0;
    bool first = false, more;
    VR_TRY(vr_scan_item(&reader->scan, &first, &more));
    if (!more) return vr_scan_refuse(&reader->scan, "the second row of a new version");
    VR_TRY(read_row(reader, &into));
    if (into.action != NEW_VERSION || into.bytes < 0 || row->bytes > 0 || into.bytes != -row->bytes)
        return vr_scan_refuse(&reader->scan, "two rows with equal bytes for a new version");
    VR_TRY(pop_open(reader, row, &address));
    if (address == 0) return vr_scan_refuse(&reader->scan, "a new version of live memory");
    return push_open(reader, &into, address);
}

static enum vram_status take_row(struct timeline_reader *reader, const struct timeline_row *row) {
    if (row->action == NEW_VERSION) return change_allocation(reader, row);
    if (row->action == DESTROYED) return end_allocation(reader, row);
    return begin_allocation(reader, row);
}

// --- the file --------------------------------------------------------------------------------------------------------------------
static enum vram_status make_stacks(struct timeline_reader *reader) {
    for (size_t i = 0; i < VR_COUNT_OF(categories); i++) {
        uint32_t name, frame;
        VR_TRY(vr_builder_string(&reader->list.builder, categories[i], strlen(categories[i]), &name));
        VR_TRY(vr_builder_frame(&reader->list.builder, name, 0, 0, &frame));
        VR_TRY(vr_builder_stack(&reader->list.builder, &frame, 1, &reader->stacks[i]));
    }
    return VRAM_OK;
}

static enum vram_status read_rows(struct timeline_reader *reader) {
    bool first = true, more;
    int byte;
    VR_TRY(vr_scan_open(&reader->scan, '['));
    for (;;) {
        struct timeline_row row = {0};
        VR_TRY(vr_scan_item(&reader->scan, &first, &more));
        if (!more) break;
        VR_TRY(read_row(reader, &row));
        VR_TRY(take_row(reader, &row));
    }
    VR_TRY(vr_scan_peek(&reader->scan, &byte));
    return byte == 0 && reader->scan.input->next == reader->scan.input->end ? VRAM_OK
                                                                            : vr_scan_refuse(&reader->scan, "the end of the file");
}

enum vram_status vr_timeline_read(struct vr_input *input, struct vr_model *model, struct vram_error *error) {
    struct timeline_reader reader = {.scan = {.input = input, .error = error}, .next_address = FIRST_ADDRESS};
    enum vram_status status = vr_event_list_init(&reader.list, input);
    if (status == VRAM_OK) status = make_stacks(&reader);
    if (status == VRAM_OK) status = read_rows(&reader);
    if (status == VRAM_OK) status = vr_event_list_finish(&reader.list, input, model, error);
    free(reader.blocks);
    vr_map_release(&reader.newest);
    vr_scan_release(&reader.scan);
    vr_event_list_release(&reader.list, input);
    return status;
}
