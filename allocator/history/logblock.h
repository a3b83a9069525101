// logblock.h: the frame of a recording file (.vram): header, blocks, tail and end. Specified in formats/recording.md.
#ifndef VR_HISTORY_LOGBLOCK_H
#define VR_HISTORY_LOGBLOCK_H

#include "history/logencode.h"
#include "history/logevents.h"
#include "history/logpack.h"
#include "history/logtables.h"

#define VR_LOG_MAGIC "\x89VRAM\r\n\x1a"
#define VR_LOG_END   "VRAMEND\n"
enum {
    VR_LOG_MAGIC_BYTES = 8,
    VR_LOG_VERSION = 1,
    VR_LOG_HEADER_BYTES = 128,
    VR_LOG_PRODUCER_BYTES = 64,
    VR_LOG_BLOCK_HEADER_BYTES = 64,
    VR_LOG_TAIL_HEADER_BYTES = 32,
    VR_LOG_TRAILER_BYTES = 16, // the offset of the index block, then VR_LOG_END
};
#define VR_LOG_BLOCK_MAGIC 0x4b4c4256u // "VBLK"
#define VR_LOG_TAIL_MAGIC  0x4c494154u // "TAIL"
// A packed part has at least this fraction of its unpacked size (and at least a byte for each of its rows or events); otherwise it is
// stored unpacked. A reader can thus bound its memory by the file's size.
enum { VR_LOG_PACK_MOST = 32 };

struct vr_log_file_header {
    uint32_t version;
    uint64_t tail_distance; // from the end of the blocks to the tail; 0: no tail
    uint64_t tail_bytes;    // maximum length of the tail's records
    uint64_t created_ns;
    char producer[VR_LOG_PRODUCER_BYTES];
    // The writing process and its start time; the running kernel and its numbering of processes. 0: unknown.
    uint32_t process;
    uint64_t process_started, process_host;
};
void vr_log_put_file_header(const struct vr_log_file_header *header, unsigned char out[VR_LOG_HEADER_BYTES]);
// Returns false, leaving *header unchanged, if the bytes are not a valid header.
bool vr_log_get_file_header(const unsigned char in[VR_LOG_HEADER_BYTES], struct vr_log_file_header *header);

struct vr_log_part {
    uint32_t stored;
    uint32_t length; // unpacked; equal to `stored` if not packed
};
struct vr_log_block_header {
    uint64_t sequence; // from 0
    uint64_t offset;   // of the header in the file
    int64_t first_us;  // earliest and latest time of the events; 0 without events
    int64_t last_us;
    uint32_t events;
    struct vr_log_part tables;
    struct vr_log_part batch; // the events
    uint32_t checksum;        // of both parts as stored
};
void vr_log_put_block_header(const struct vr_log_block_header *header, unsigned char out[VR_LOG_BLOCK_HEADER_BYTES]);
// Returns false if the bytes are not the header of block `sequence` at `offset`; `offset` UINT64_MAX accepts any block anywhere.
bool vr_log_get_block_header(const unsigned char in[VR_LOG_BLOCK_HEADER_BYTES], uint64_t sequence, uint64_t offset,
                             struct vr_log_block_header *header);
VR_INLINE uint64_t vr_log_block_bytes(const struct vr_log_block_header *header) {
    return (uint64_t)VR_LOG_BLOCK_HEADER_BYTES + header->tables.stored + header->batch.stored;
}

// Makes blocks. A zeroed struct is empty.
struct vr_log_maker {
    struct vr_log_sections tables; // sections of the block being made
    struct vr_log_batch batch;     // its events, or
    struct vr_log_encoder encoder; // its events, encoded as they came; only one of the two is used
    struct vr_bytes events;        // scratch
    struct vr_bytes block;         // the result
    struct vr_packer packer;
};
void vr_log_maker_release(struct vr_log_maker *maker);
// Makes a block in maker->block, header first, of maker->tables and of the events in maker->batch or maker->encoder. Empties tables and
// batch; leaves the encoder unchanged. NO_HOST_MEMORY; LIMIT for a part of 4 GiB or more.
enum vram_status vr_log_make_block(struct vr_log_maker *maker, uint64_t sequence, uint64_t offset, struct vr_log_block_header *header);
// Returns a part of a block unpacked: `stored` itself, or *out (which must have room for part->length). NULL if it is damaged.
const unsigned char *vr_log_unpack_part(const struct vr_log_part *part, const unsigned char *stored, unsigned char *out);

// ---- the tail: records that are not yet in a block

// A record begins with its length and kind; the length includes these four bytes and is a multiple of 8.
enum vr_log_record_kind {
    VR_LOG_RECORD_EVENT = 1,  // struct vr_log_record_event
    VR_LOG_RECORD_STRING,     // u32 bytes, the bytes
    VR_LOG_RECORD_FRAME,      // u32 name, u32 filename, u32 0, u64 line
    VR_LOG_RECORD_STACK,      // u32 count, u32 for each frame
    VR_LOG_RECORD_MODULE,     // u32 path, u32 build id
    VR_LOG_RECORD_ANNOTATION, // u32 stage, u32 name, u32 device, u64 time in ns
    VR_LOG_RECORD_SETTING,    // u32 key, u32 value
};
enum { VR_LOG_RECORD_MAX = 0xfff8 };
// Returns the first word of a record: its length, its kind, and the lower 12 bits of its future block's sequence number.
VR_INLINE uint32_t vr_log_record_head(uint64_t sequence, enum vr_log_record_kind kind, size_t length) {
    return (uint32_t)length | (uint32_t)kind << 16 | (uint32_t)(sequence & 0xfff) << 20;
}

// The header of the tail, as in the file.
struct vr_log_tail_header {
    uint32_t magic;
    uint32_t checksum; // of the sequence
    uint64_t sequence; // sequence number of the block that its records will form
    uint64_t used;     // bytes of complete records; grows
    uint64_t reserved;
};
_Static_assert(sizeof(struct vr_log_tail_header) == VR_LOG_TAIL_HEADER_BYTES, "the file's layout has no padding");

// Returns the record at `at` if it is a complete record of the tail of `sequence`; otherwise NULL.
const unsigned char *vr_log_next_record(const unsigned char *at, const unsigned char *end, uint64_t sequence, unsigned *kind,
                                        size_t *length);
// Writes an event of the tail into row batch->count of the batch, and counts it. There must be room.
void vr_log_batch_add(struct vr_log_batch *batch, const struct vr_log_record_event *event);

#endif
