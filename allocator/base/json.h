// json.h: a JSON writer. It writes commas, escapes and indentation; the caller decides which objects, arrays and values to write.
//
// Inside an object every value has a key; inside an array (and at the top) key is NULL. Nesting is at most VR_JSON_DEPTH. The text is pure
// ASCII, with everything else escaped, so any terminal and any decoder can take it. One thread at a time.
#ifndef VR_BASE_JSON_H
#define VR_BASE_JSON_H

#include "base/text.h"

#define VR_JSON_DEPTH 512

struct vr_json {
    struct vr_text *out;                 // borrowed; if it fails, the writer fails
    uint64_t filled[VR_JSON_DEPTH / 64]; // bit d: the container at depth d already has a member
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
// Writes the shortest decimal text that reads back as the same double; null for infinities and NaN, which JSON lacks.
void vr_json_double(struct vr_json *json, const char *key, double value);
void vr_json_bool(struct vr_json *json, const char *key, bool value);
void vr_json_null(struct vr_json *json, const char *key);
// string may be NULL (writes null). Accepts any bytes: malformed UTF-8 becomes U+FFFD, encoded surrogates stay surrogates.
void vr_json_string(struct vr_json *json, const char *key, const char *string);
void vr_json_string_bytes(struct vr_json *json, const char *key, const char *bytes, size_t length);
// Writes text that is already JSON (a setting as recorded).
void vr_json_raw(struct vr_json *json, const char *key, const char *text);

#endif
