#include "snapshot/timeline.h"

#include "base/map.h"
#include "snapshot/eventlist.h"
#include "snapshot/scan.h"

#define EVENT_HAS     (VR_HAS_ACTION | VR_HAS_ADDRESS | VR_HAS_SIZE | VR_HAS_TIME | VR_HAS_FRAMES)
#define FIRST_ADDRESS ((uint64_t)1 << 32)

enum timeline_action { THERE_BEFORE = 1, MADE = 2, NEW_VERSION = 3, DESTROYED = 4 };

// In the order of the profiler's colours; what has no category comes last.
static const char *const categories[] = {"parameter",  "optimizer state", "input",           "temporary",
                                         "activation", "gradient",        "autograd detail", "no category"};

// What is live: a chain a size and category, the newest first. Numbers are from 1.
struct timeline_block {
    uint64_t address;
    size_t below; // of the same size and category
};

struct timeline_reader {
    struct vr_scan scan;
    struct vr_event_list list;
    struct vr_map newest; // key_of_allocation() -> a number
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
        if (!more) return vr_scan_refuse(&reader->scan, "four numbers a row");
        VR_TRY(read_whole(reader, columns[i]));
    }
    VR_TRY(vr_scan_item(&reader->scan, &first, &more));
    if (more) return vr_scan_refuse(&reader->scan, "the end of a row of four");
    const bool known = row->category >= 0 && row->category < (int64_t)VR_COUNT_OF(categories);
    if (row->action < THERE_BEFORE || row->action > DESTROYED || !known || row->bytes == INT64_MIN)
        return vr_scan_refuse(&reader->scan, "a row with an action from 1 to 4 and a category from 0 to 7");
    return VRAM_OK;
}

// --- what is live ----------------------------------------------------------------------------------------------------------------
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

// *address: 0 where nothing of that size and category is live.
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
                                 .has = EVENT_HAS};
    if (row->time_ns < 0) event.has &= ~(uint32_t)VR_HAS_TIME;
    return vr_event_list_add(&reader->list, 0, &event);
}

static enum vram_status begin_allocation(struct timeline_reader *reader, const struct timeline_row *row) {
    const uint64_t address = reader->next_address;
    if (size_of_allocation(row) > ((uint64_t)1 << 60) - address)
        return vr_scan_refuse(&reader->scan, "sizes of less than 2^60 bytes in all");
    reader->next_address += vr_round_up(size_of_allocation(row), 512) + 512;
    VR_TRY(push_open(reader, row, address));
    return add_event(reader, row, VR_ACTION_ALLOC, address);
}

static enum vram_status end_allocation(struct timeline_reader *reader, const struct timeline_row *row) {
    uint64_t address = 0;
    VR_TRY(pop_open(reader, row, &address));
    if (address == 0) return vr_scan_refuse(&reader->scan, "a row that ends something live");
    VR_TRY(add_event(reader, row, VR_ACTION_FREE_REQUESTED, address));
    return add_event(reader, row, VR_ACTION_FREE_COMPLETED, address);
}

// The two rows of a new version: the bytes leave a category, and come into another.
static enum vram_status change_allocation(struct timeline_reader *reader, const struct timeline_row *row) {
    struct timeline_row into = {0};
    uint64_t address = 0;
    bool first = false, more;
    VR_TRY(vr_scan_item(&reader->scan, &first, &more));
    if (!more) return vr_scan_refuse(&reader->scan, "the second row of a new version");
    VR_TRY(read_row(reader, &into));
    if (into.action != NEW_VERSION || into.bytes < 0 || row->bytes > 0 || into.bytes != -row->bytes)
        return vr_scan_refuse(&reader->scan, "two rows a new version, with equal bytes,");
    VR_TRY(pop_open(reader, row, &address));
    if (address == 0) return vr_scan_refuse(&reader->scan, "a new version of something live");
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
