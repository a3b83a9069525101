// Reads any bytes as a recording file, or as the contents of one with valid frames: its tables, events, packed parts, tail. They are read,
// or refused with one line, never a crash or a hang; the resulting model is consistent.
#include <stddef.h>
#include <stdint.h>

#include "history/logblock.h"
#include "model/recording.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TABLES, EVENTS, PACKED, TAIL, MODES, TAIL_DISTANCE = 256 };

static void read_it(const uint8_t *data, size_t size) {
    struct vram_recording *recording = NULL;
    struct vram_error error = {.message = ""};
    enum vram_status status = vram_recording_read_memory(data, size, "file", &recording, &error);
    if (status != VRAM_OK && (error.status != status || error.message[0] == '\0')) __builtin_trap();
    if (status == VRAM_OK && vr_model_check(vr_recording_model(recording), &error) != VRAM_OK) __builtin_trap();
    vram_recording_destroy(recording);
}

static void put_block(struct vr_bytes *file, struct vr_log_block_header *header, const uint8_t *parts, size_t size) {
    unsigned char bytes[VR_LOG_BLOCK_HEADER_BYTES];
    header->checksum = vr_log_checksum(parts, size);
    vr_log_put_block_header(header, bytes);
    vr_bytes_add(file, bytes, sizeof bytes);
    vr_bytes_add(file, parts, size);
    vr_bytes_add(file, (const unsigned char[8]){0}, (8 - size % 8) % 8);
}

static void put_tail(struct vr_bytes *file, const uint8_t *records, size_t size) {
    struct vr_log_tail_header tail = {.magic = VR_LOG_TAIL_MAGIC, .used = size};
    tail.checksum = vr_log_checksum(&tail.sequence, sizeof tail.sequence);
    vr_bytes_add(file, (const unsigned char[TAIL_DISTANCE]){0}, TAIL_DISTANCE);
    vr_bytes_add(file, &tail, sizeof tail);
    vr_bytes_add(file, records, size);
}

// Makes the file around `data`, by `mode`. `first` and `second` are numbers for its headers.
static void wrap(struct vr_bytes *file, unsigned mode, unsigned first, unsigned second, const uint8_t *data, size_t size) {
    struct vr_log_block_header header = {.offset = VR_LOG_HEADER_BYTES};
    uint32_t whole = (uint32_t)size, part = first < whole ? first : whole;
    unsigned char bytes[VR_LOG_HEADER_BYTES];
    vr_log_put_file_header(&(struct vr_log_file_header){.version = VR_LOG_VERSION, .tail_distance = TAIL_DISTANCE, .tail_bytes = 1 << 16},
                           bytes);
    vr_bytes_add(file, bytes, sizeof bytes);
    header.tables = (struct vr_log_part){part, part};
    header.batch = (struct vr_log_part){whole - part, whole - part};
    switch (mode) {
    case TABLES:
        header.tables = (struct vr_log_part){whole, whole};
        header.batch = (struct vr_log_part){0, 0};
        break;
    case EVENTS: header.events = second % (whole - part + 1); break;
    case PACKED: header.tables.length = part * (1 + second % VR_LOG_PACK_MOST); break;
    default: put_tail(file, data, size); return;
    }
    put_block(file, &header, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct vr_bytes file = {0};
    if (size > 1 << 16) return 0;
    read_it(data, size);
    if (size < 4) return 0;
    wrap(&file, data[0] % MODES, data[1], data[2] | (unsigned)data[3] << 8, data + 4, size - 4);
    if (!file.failed) read_it(file.data, file.count);
    vr_bytes_release(&file);
    return 0;
}
