// emit.h: dictionaries, lists and values going out as bytes, whatever the format. The formats implement one table of calls; what is a
// segment or an event is the writer's business (write.c).
//
// A name is a word of vocabulary.h, or VR_WORD_COUNT + a string id of the model: names are what repeats, and a format may write each once.
// Calls never fail: a writer asks for the status at the end. One thread at a time.
#ifndef VR_SNAPSHOT_EMIT_H
#define VR_SNAPSHOT_EMIT_H

#include "model/model.h"
#include "snapshot/literals.h"
#include "snapshot/vocabulary.h"
#include "vram/export.h"
#include "vram/status.h"

enum { VR_EMIT_CHUNK = 1 << 16, VR_EMIT_DEPTH = 520 };

// What occurs again and again as a whole.
enum vr_shared { VR_SHARED_FRAME, VR_SHARED_STACK, VR_SHARED_COUNT };

// A key, which is a word, and its value, which is a number or a name.
enum vr_field_value { VR_FIELD_NUMBER, VR_FIELD_SIGNED, VR_FIELD_NAME };
struct vr_emit_field {
    uint32_t key;
    uint32_t kind; // enum vr_field_value
    uint64_t value;
};
enum { VR_EMIT_FIELDS = 16 };

struct vr_emitter;

struct vr_emit_calls {
    void (*start)(struct vr_emitter *emitter); // what begins the file
    void (*begin)(struct vr_emitter *emitter, bool is_dict);
    void (*end)(struct vr_emitter *emitter);
    // Tuples and sets, and dictionaries with any keys: items come in between, of a DICT keys and values by turns. NULL: the format has none
    // of what literals.h knows; then lists and dictionaries take their place, the text of a key that is no string is the key, and
    // vr_emitter.change says so.
    void (*begin_python)(struct vr_emitter *emitter, enum vr_python_value kind);
    void (*end_python)(struct vr_emitter *emitter, enum vr_python_value kind);
    void (*python_bytes)(struct vr_emitter *emitter, enum vr_python_value kind, const char *bytes, size_t length);
    // Several keys and their values at once, at most VR_EMIT_FIELDS: most of what is written comes this way.
    void (*fields)(struct vr_emitter *emitter, const struct vr_emit_field *fields, size_t count);
    void (*key)(struct vr_emitter *emitter, uint64_t name);
    void (*key_bytes)(struct vr_emitter *emitter, const char *bytes, size_t length);
    void (*name)(struct vr_emitter *emitter, uint64_t name);
    void (*bytes)(struct vr_emitter *emitter, const char *bytes, size_t length); // a string that need not repeat, UTF-8
    void (*number)(struct vr_emitter *emitter, uint64_t number);
    void (*signed_number)(struct vr_emitter *emitter, int64_t number);
    void (*digits)(struct vr_emitter *emitter, const char *text, size_t length); // a whole number of more than 64 bits
    void (*real)(struct vr_emitter *emitter, double number);
    void (*boolean)(struct vr_emitter *emitter, bool value);
    void (*null)(struct vr_emitter *emitter);
    void (*pair)(struct vr_emitter *emitter, uint64_t first, uint64_t second);
    // Writes what was written before under this kind and id and returns true; or opens it, to be filled and ended by end_shared().
    bool (*shared)(struct vr_emitter *emitter, enum vr_shared kind, uint32_t id);
    void (*end_shared)(struct vr_emitter *emitter, enum vr_shared kind, uint32_t id);
    void (*seal)(struct vr_emitter *emitter);   // before a chunk goes out
    void (*finish)(struct vr_emitter *emitter); // what ends the file
};

struct vr_emitter {
    const struct vr_emit_calls *calls;
    const struct vr_model *model; // borrowed
    vram_write write;
    void *user;
    enum vram_status status; // the first failure
    unsigned char *chunk;    // VR_EMIT_CHUNK bytes
    size_t used;
    size_t begin; // of a chunk's contents: room for a header before it
    struct {
        bool is_dict;
        uint32_t items; // of the list or dictionary, or of its last batch
    } levels[VR_EMIT_DEPTH];
    unsigned depth;
    bool rows;                   // JSON: a line for every row
    enum vr_python_value change; // what was written as something else, the first; NONE
    uint64_t *memo; // pickle, by name: the opcode that gets it from the memo, its length in the uppermost byte; 0 while not written
    uint64_t *known[VR_SHARED_COUNT]; // the same by frame and stack; of JSON's frames: piece + 1
    uint32_t memo_count;
    // JSON: frames as text, one after the other.
    char *pieces;
    size_t piece_bytes, piece_capacity;
    uint64_t *piece_end; // of each
    size_t piece_count, piece_end_capacity;
    bool keeping; // what goes out is kept as a piece
};

extern const struct vr_emit_calls vr_emit_pickle;
extern const struct vr_emit_calls vr_emit_json;

// Ready to write. vr_emitter_finish() ends it. NO_HOST_MEMORY; nothing is held then.
enum vram_status vr_emitter_init(struct vr_emitter *emitter, const struct vr_emit_calls *calls, const struct vr_model *model, bool rows,
                                 vram_write write, void *user);
// Writes out the rest, frees everything and returns the first failure: IO, NO_HOST_MEMORY.
enum vram_status vr_emitter_finish(struct vr_emitter *emitter);

// For the formats: hands the chunk out.
void vr_emitter_flush(struct vr_emitter *emitter);
// The same for bytes that need no copy.
void vr_emitter_write(struct vr_emitter *emitter, const void *bytes, size_t length);
// At least `length` bytes (at most VR_EMIT_CHUNK / 2) behind emitter->used.
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

// Emits a value given as the text of literals.h. Text that is no such text (or nests deeper than 500) is emitted as a string.
void vr_emit_text(struct vr_emitter *emitter, const char *text, size_t length);

// ---- A model as a pickle or JSON of PyTorch's dictionaries.

// Writes the model, which is borrowed and must satisfy vr_model_check(). As vram_recording_write(). IO, NO_HOST_MEMORY; *error may be NULL.
enum vram_status vr_model_write(const struct vr_model *model, enum vram_recording_format format, vram_write write, void *user,
                                struct vram_error *error);

#endif
