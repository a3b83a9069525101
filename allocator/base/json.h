// json.h: a JSON writer. Commas, escapes and indentation are its business; what is an object, an array and a value is the caller's.
//
// Inside an object every value has a key; inside an array (and at the top) key is NULL. Nesting is at most VR_JSON_DEPTH. The text
// is pure ASCII: everything else is escaped, so that it survives any terminal and any decoder. One thread at a time.
#ifndef VR_BASE_JSON_H
#define VR_BASE_JSON_H

#include "base/text.h"

#define VR_JSON_DEPTH 512

struct vr_json {
    struct vr_text *out;                 // borrowed; its failure is the writer's
    uint64_t filled[VR_JSON_DEPTH / 64]; // bit d: the container at depth d has a member already
    unsigned depth;
    bool indented;
};

// Starts one JSON text at the end of *out (borrowed). indented: one member per line.
void vr_json_init(struct vr_json *json, struct vr_text *out, bool indented);

void vr_json_object(struct vr_json *json, const char *key);
void vr_json_object_end(struct vr_json *json);
void vr_json_array(struct vr_json *json, const char *key);
void vr_json_array_end(struct vr_json *json);

void vr_json_u64(struct vr_json *json, const char *key, uint64_t value);
void vr_json_i64(struct vr_json *json, const char *key, int64_t value);
// The shortest decimal text that reads back as the same double; null for infinities and NaN, which JSON has not.
void vr_json_double(struct vr_json *json, const char *key, double value);
void vr_json_bool(struct vr_json *json, const char *key, bool value);
void vr_json_null(struct vr_json *json, const char *key);
// string may be NULL (null is written). Foreign bytes are welcome: malformed UTF-8 becomes U+FFFD, encoded surrogates stay surrogates.
void vr_json_string(struct vr_json *json, const char *key, const char *string);
void vr_json_string_bytes(struct vr_json *json, const char *key, const char *bytes, size_t length);
// Text that is JSON already (a setting as a recording has it).
void vr_json_raw(struct vr_json *json, const char *key, const char *text);

#endif
