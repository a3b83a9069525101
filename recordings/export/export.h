// export.h: what the exporters share: buffered output, tables of columns, sums per call stack, and one function per format.
#ifndef VR_EXPORT_EXPORT_H
#define VR_EXPORT_EXPORT_H

#include "analyze/device_view.h"
#include "base/text.h"
#include "vram/export.h"

// ---- What the exporters share: buffered output, and one function per format.

// Buffered text or bytes. After a failed write, exporters may go on; vr_output_end() returns the failure.
struct vr_output {
    struct vr_text text; // not yet written
    vram_write write;
    void *user;
    bool refused; // write() returned false
};

// Writes the buffer out if it is large enough. Returns false if the exporter should stop.
bool vr_output_flow(struct vr_output *out);
// Writes the rest. IO, NO_HOST_MEMORY.
enum vram_status vr_output_end(struct vr_output *out);

// A model and its devices. Borrows everything.
struct vr_exporting {
    const struct vram_recording *recording; // the recording of `model`
    const struct vr_model *model;
    const struct vr_views *views;
    const struct vram_export_options *options;
};

// One function per format. LIMIT, NO_HOST_MEMORY; vr_output_end() returns a failed write.
typedef enum vram_status vr_export_function(const struct vr_exporting *from, struct vr_output *out);
vr_export_function vr_export_rmm, vr_export_events, vr_export_perfetto, vr_export_folded, vr_export_pprof, vr_export_arrow;

// Returns the event's time in microseconds since the epoch, or its index if it has no time.
VR_INLINE int64_t vr_export_time_us(const struct vr_history *history, size_t event) {
    return (vr_entry_has(history, event) & VR_HAS_TIME) != 0 ? history->time_us[event] : (int64_t)event;
}
// Returns whether an event frees: free_requested if the device's history has any, otherwise free_completed; and also the older `free`.
// `actions` has the bits of all actions in the history.
VR_INLINE bool vr_export_frees(uint8_t action, uint32_t actions) {
    const bool requested = (actions & 1u << VR_ACTION_FREE_REQUESTED) != 0;
    return action == VR_ACTION_FREE || action == (requested ? VR_ACTION_FREE_REQUESTED : VR_ACTION_FREE_COMPLETED);
}
uint32_t vr_export_actions(const struct vr_history *history);

// ---- Objects and bytes per call stack: allocated in total, live at the end, live at the peak.

struct vr_tally {
    uint64_t allocated_count, allocated_bytes;
    uint64_t end_count, end_bytes;
    uint64_t peak_count, peak_bytes;
};

// Computes one tally per stack of the model, for one device; the caller frees the array. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_tally_stacks(const struct vr_view *view, struct vr_tally **tallies);

// ---- A table of columns as an Arrow IPC file (docs: Apache Arrow's "Columnar Format", version 1.0 and later, metadata V5).

enum vr_arrow_kind { VR_ARROW_INT64, VR_ARROW_UINT64, VR_ARROW_UINT32, VR_ARROW_TEXT };

// The distinct texts of a column; its cells are indices of texts.
struct vr_arrow_words {
    size_t count;
    // Appends text `index` to `out` as raw bytes; the writer converts them to UTF-8.
    void (*append)(const void *table, size_t index, struct vr_text *out);
};

struct vr_arrow_column {
    const char *name;
    enum vr_arrow_kind kind;
    struct vr_arrow_words words; // for VR_ARROW_TEXT
};

// A value; for a text column, the index of the text.
struct vr_arrow_cell {
    uint64_t value;
    bool is_there;
};

struct vr_arrow_table {
    const struct vr_arrow_column *columns;
    size_t column_count;
    size_t row_count;
    void (*fill)(const void *table, size_t row, struct vr_arrow_cell *cells); // receives zeroed cells, one per column
    const void *table;                                                        // passed to the functions
};

// Writes the table. LIMIT (texts of more than 2 GiB in a column), NO_HOST_MEMORY; vr_output_end() returns a failed write.
enum vram_status vr_arrow_write(const struct vr_arrow_table *table, struct vr_output *out);

// ---- The parts of Protocol Buffers' wire format that exporters need: varints, and fields that are varints or bytes. A nested message is
// built in its own buffer and appended as bytes.

VR_INLINE void vr_proto_varint(struct vr_text *out, uint64_t value) {
    char bytes[10];
    size_t length = 0;
    for (; value >= 0x80; value >>= 7) bytes[length++] = (char)(value | 0x80);
    bytes[length++] = (char)value;
    vr_text_append(out, bytes, length);
}
// Fields are numbered from 1; readers reject 0.
VR_INLINE void vr_proto_number(struct vr_text *out, unsigned field, uint64_t value) {
    assert(field != 0);
    vr_proto_varint(out, (uint64_t)field << 3);
    vr_proto_varint(out, value);
}
VR_INLINE void vr_proto_bytes(struct vr_text *out, unsigned field, const char *bytes, size_t length) {
    assert(field != 0 && bytes != NULL);
    vr_proto_varint(out, (uint64_t)field << 3 | 2);
    vr_proto_varint(out, length);
    vr_text_append(out, bytes, length);
}
VR_INLINE void vr_proto_string(struct vr_text *out, unsigned field, const char *string) {
    vr_proto_bytes(out, field, string, strlen(string));
}
// Appends the message in *inner and empties it; if *inner failed, *out fails.
VR_INLINE void vr_proto_message(struct vr_text *out, unsigned field, struct vr_text *inner) {
    assert(inner != out); // *inner is emptied
    if (inner->failed) out->failed = true;
    vr_proto_bytes(out, field, vr_text_string(inner), inner->length);
    inner->length = 0;
}

#endif
