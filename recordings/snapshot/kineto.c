#include "snapshot/kineto.h"

#include <math.h>

#include "snapshot/eventlist.h"
#include "snapshot/scan.h"

enum { NAME_BYTES = 1024, KEY_BYTES = 64, MOST_FRAMES = 256 };
#define EVENT_HAS (VR_HAS_ACTION | VR_HAS_ADDRESS | VR_HAS_SIZE | VR_HAS_STREAM | VR_HAS_TIME | VR_HAS_FRAMES | VR_HAS_THREAD)

// What happens on a thread: something memory-related at a time, or something named that lasts.
struct happening {
    int64_t start_ns; // within the trace
    int64_t end_ns;   // of memory: start_ns
    uint64_t thread;  // a hash of pid and tid
    uint64_t order;   // in the file
    uint64_t address; // of memory
    int64_t bytes;    // of memory: negative is a free
    uint32_t device;  // of memory
    uint32_t name;    // of what lasts: string id; 0 for memory
    uint32_t tid;
    bool oom;
};

// One event of the trace, as far as it is read.
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
    int64_t base_ns;            // what all times are counted from
    uint32_t open[MOST_FRAMES]; // what is under way on a thread: items
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

// Microseconds, with a fraction from newer versions.
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
    // Not in the middle of a character.
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

// A sum beyond 64 bits lasts for ever.
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
    if (entry->device >= VR_EVENTLIST_DEVICES) return vr_scan_refuse(&reader->scan, "a memory event with a device that exists");
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
        if (!vr_utf8_valid(entry->name, entry->name_length)) return vr_scan_refuse(&reader->scan, "a name in UTF-8 before what");
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
                   "the trace has no memory events of a device: it needs torch.profiler.profile(profile_memory=True)");
}

// --- from happenings to events

// By thread and time; what lasts longer is around what begins with it, and memory is inside what begins with it.
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

// The stack of what is under way, innermost first.
static enum vram_status stack_of(struct trace_reader *reader, uint32_t *stack) {
    uint32_t frames[MOST_FRAMES];
    for (size_t i = 0; i < reader->open_count; i++) {
        const struct happening *item = &reader->items[reader->open[reader->open_count - 1 - i]];
        VR_TRY(vr_builder_frame(&reader->list.builder, item->name, 0, 0, &frames[i]));
    }
    return vr_builder_stack(&reader->list.builder, frames, reader->open_count, stack);
}

// Gives every memory event its stack, in `name`, and leaves only these.
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
