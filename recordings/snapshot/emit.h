// emit.h: writes dictionaries, lists and values as bytes in any format. Each format implements one table of calls; write.c handles segments
// and events.
//
// A name is a word of vocabulary.h, or VR_WORD_COUNT + a string id of the model. Names repeat, so a format may write each only once. Calls
// never fail; the writer asks for the status at the end. Use an emitter from one thread at a time.
#ifndef VR_SNAPSHOT_EMIT_H
#define VR_SNAPSHOT_EMIT_H

#include "model/model.h"
#include "snapshot/literals.h"
#include "snapshot/vocabulary.h"
#include "vram/export.h"
#include "vram/status.h"

enum { VR_EMIT_CHUNK = 1 << 16, VR_EMIT_DEPTH = 520 };

// Objects that occur repeatedly.
enum vr_shared { VR_SHARED_FRAME, VR_SHARED_STACK, VR_SHARED_COUNT };

// A key (a name) with its value (a number or a name).
enum vr_field_value { VR_FIELD_NUMBER, VR_FIELD_SIGNED, VR_FIELD_NAME };
struct vr_emit_field {
    uint32_t key;
    uint32_t kind; // enum vr_field_value
    uint64_t value;
};
enum { VR_EMIT_FIELDS = 16 };

struct vr_emitter;

struct vr_emit_calls {
    void (*start)(struct vr_emitter *emitter); // begins the file
    void (*begin)(struct vr_emitter *emitter, bool is_dict);
    void (*end)(struct vr_emitter *emitter);
    // Tuples, sets, and dictionaries with any keys. Items come in between; for a DICT, keys and values alternate. NULL if the format has no
    // values of literals.h: lists and dictionaries replace them, a key that is not a string becomes its text, and vr_emitter.change records
    // it.
    void (*begin_python)(struct vr_emitter *emitter, enum vr_python_value kind);
    void (*end_python)(struct vr_emitter *emitter, enum vr_python_value kind);
    void (*python_bytes)(struct vr_emitter *emitter, enum vr_python_value kind, const char *bytes, size_t length);
    // Emits several keys with their values, at most VR_EMIT_FIELDS; most output takes this path.
    void (*fields)(struct vr_emitter *emitter, const struct vr_emit_field *fields, size_t count);
    void (*key)(struct vr_emitter *emitter, uint64_t name);
    void (*key_bytes)(struct vr_emitter *emitter, const char *bytes, size_t length);
    void (*name)(struct vr_emitter *emitter, uint64_t name);
    void (*bytes)(struct vr_emitter *emitter, const char *bytes, size_t length); // a string that is not expected to repeat, UTF-8
    void (*number)(struct vr_emitter *emitter, uint64_t number);
    void (*signed_number)(struct vr_emitter *emitter, int64_t number);
    void (*digits)(struct vr_emitter *emitter, const char *text, size_t length); // an integer of more than 64 bits
    void (*real)(struct vr_emitter *emitter, double number);
    void (*boolean)(struct vr_emitter *emitter, bool value);
    void (*null)(struct vr_emitter *emitter);
    void (*pair)(struct vr_emitter *emitter, uint64_t first, uint64_t second);
    // If this kind and id was written before, writes it again and returns true; otherwise opens it, for the caller to fill and to end by
    // end_shared().
    bool (*shared)(struct vr_emitter *emitter, enum vr_shared kind, uint32_t id);
    void (*end_shared)(struct vr_emitter *emitter, enum vr_shared kind, uint32_t id);
    void (*seal)(struct vr_emitter *emitter);   // called before a chunk is written
    void (*finish)(struct vr_emitter *emitter); // ends the file
};

struct vr_emitter {
    const struct vr_emit_calls *calls;
    const struct vr_model *model; // borrowed
    vram_write write;
    void *user;
    enum vram_status status; // the first failure
    unsigned char *chunk;    // VR_EMIT_CHUNK bytes
    size_t used;
    size_t begin; // offset of the contents in a chunk, after room for a header
    struct {
        bool is_dict;
        uint32_t items; // of the list or dictionary, or of its current batch
    } levels[VR_EMIT_DEPTH];
    unsigned depth;
    bool rows;                   // JSON: one line per row
    enum vr_python_value change; // the kind of the first value that was written as another; NONE
    uint64_t *memo; // pickle, by name: the opcode that gets it from the memo, its length in the highest byte; 0 if not yet written
    uint64_t *known[VR_SHARED_COUNT]; // the same by frame and stack; for JSON frames, the piece's index + 1
    uint32_t memo_count;
    // JSON: the texts of frames, concatenated.
    char *pieces;
    size_t piece_bytes, piece_capacity;
    uint64_t *piece_end; // end offset of each piece
    size_t piece_count, piece_end_capacity;
    bool keeping; // output is copied to a piece
};

extern const struct vr_emit_calls vr_emit_pickle;
extern const struct vr_emit_calls vr_emit_json;

// Prepares an emitter for writing; end it by vr_emitter_finish(). NO_HOST_MEMORY; nothing is then allocated.
enum vram_status vr_emitter_init(struct vr_emitter *emitter, const struct vr_emit_calls *calls, const struct vr_model *model, bool rows,
                                 vram_write write, void *user);
// Writes the rest, frees everything and returns the first failure: IO, NO_HOST_MEMORY.
enum vram_status vr_emitter_finish(struct vr_emitter *emitter);

// Writes the chunk out. Called by formats.
void vr_emitter_flush(struct vr_emitter *emitter);
// Writes bytes directly, without copying them to the chunk.
void vr_emitter_write(struct vr_emitter *emitter, const void *bytes, size_t length);
// Makes room for at least `length` bytes (at most VR_EMIT_CHUNK / 2) at emitter->used.
VR_INLINE unsigned char *vr_emitter_room(struct vr_emitter *emitter, size_t length) {
    if (VR_UNLIKELY(VR_EMIT_CHUNK - emitter->used < length)) vr_emitter_flush(emitter);
    return emitter->chunk + emitter->used;
}
VR_INLINE const char *vr_emitter_name(const struct vr_emitter *emitter, uint64_t name, size_t *length) {
    if (name < VR_WORD_COUNT) {
        const char *text = vr_word_text((enum vr_word)name);
        *length = strlen(text);
        return text;
    }
    *length = vr_model_string_length(emitter->model, (uint32_t)(name - VR_WORD_COUNT));
    return vr_model_string(emitter->model, (uint32_t)(name - VR_WORD_COUNT));
}

// Emits a value given as the text of literals.h. Emits other text, and text nested deeper than 500 levels, as a string.
void vr_emit_text(struct vr_emitter *emitter, const char *text, size_t length);

// ---- A model as a pickle or JSON of PyTorch's dictionaries.

// Writes the model, which is borrowed and must satisfy vr_model_check(). As vram_recording_write(). IO, NO_HOST_MEMORY; *error may be NULL.
enum vram_status vr_model_write(const struct vr_model *model, enum vram_recording_format format, vram_write write, void *user,
                                struct vram_error *error);

#endif
