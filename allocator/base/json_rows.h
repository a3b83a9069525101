// json_rows.h: writes rows of facts as members of the open JSON object. tools/json_reference.py writes the same rows into
// docs/reference/json.md.
//
// A list of rows is a macro, one per object of the JSON. Its function has the object as `it` and the writer as `json`, and expands the
// list:
//   X(type, "key", value, absent, "sentence")   with VR_FACT_JSON: `value` is an expression
//   X(type, member, absent, "sentence")         with VR_MEMBER_JSON: the key is the member's name (vram/facts.h)
// type    U64, I64, BOOL, TEXT, DOUBLE or MS (nanoseconds, written as milliseconds);
//         OBJECT, ARRAY or MAP (an object whose keys are names of the recording), NAME or NUMBER (a string or number that a function
//         writes): `value` is then a statement that writes it under `key`
// absent  ALWAYS (there is always a value), NULL_UNLESS(condition), OMIT_UNLESS(condition), and of numbers and texts NULL_IF_EMPTY and
//         OMIT_IF_EMPTY (0 or ""). `value` is always evaluated, except for OBJECT, ARRAY, MAP, NAME and NUMBER. A TEXT that is NULL is
//         written as null.
#ifndef VR_BASE_JSON_ROWS_H
#define VR_BASE_JSON_ROWS_H

#include "base/json.h"

enum vr_fact_shown { VR_FACT_ALWAYS, VR_FACT_NULL, VR_FACT_OMIT, VR_FACT_NULL_IF_EMPTY, VR_FACT_OMIT_IF_EMPTY };

#define VR_FACT_NULL_UNLESS(condition) ((condition) ? VR_FACT_ALWAYS : VR_FACT_NULL)
#define VR_FACT_OMIT_UNLESS(condition) ((condition) ? VR_FACT_ALWAYS : VR_FACT_OMIT)

// Returns whether to write the value itself. Writes null in its place if that is required.
VR_INLINE bool vr_fact_is_written(struct vr_json *json, const char *key, enum vr_fact_shown shown, bool empty) {
    if (shown == VR_FACT_NULL || (empty && shown == VR_FACT_NULL_IF_EMPTY)) {
        vr_json_null(json, key);
        return false;
    }
    return shown == VR_FACT_ALWAYS || (!empty && shown != VR_FACT_OMIT);
}

VR_INLINE void vr_fact_u64(struct vr_json *json, const char *key, uint64_t value, enum vr_fact_shown shown) {
    if (vr_fact_is_written(json, key, shown, value == 0)) vr_json_u64(json, key, value);
}

VR_INLINE void vr_fact_i64(struct vr_json *json, const char *key, int64_t value, enum vr_fact_shown shown) {
    if (vr_fact_is_written(json, key, shown, value == 0)) vr_json_i64(json, key, value);
}

VR_INLINE void vr_fact_bool(struct vr_json *json, const char *key, bool value, enum vr_fact_shown shown) {
    if (vr_fact_is_written(json, key, shown, !value)) vr_json_bool(json, key, value);
}

VR_INLINE void vr_fact_text(struct vr_json *json, const char *key, const char *value, enum vr_fact_shown shown) {
    if (vr_fact_is_written(json, key, shown, value != NULL && value[0] == '\0')) vr_json_string(json, key, value);
}

VR_INLINE void vr_fact_double(struct vr_json *json, const char *key, double value, enum vr_fact_shown shown) {
    if (vr_fact_is_written(json, key, shown, false)) vr_json_double(json, key, value);
}

#define VR_FACT_JSON_U64(key, value, shown)    vr_fact_u64(json, key, value, shown);
#define VR_FACT_JSON_I64(key, value, shown)    vr_fact_i64(json, key, value, shown);
#define VR_FACT_JSON_BOOL(key, value, shown)   vr_fact_bool(json, key, value, shown);
#define VR_FACT_JSON_TEXT(key, value, shown)   vr_fact_text(json, key, value, shown);
#define VR_FACT_JSON_DOUBLE(key, value, shown) vr_fact_double(json, key, value, shown);
#define VR_FACT_JSON_MS(key, value, shown)     vr_fact_double(json, key, (double)(value) / 1e6, shown);
#define VR_FACT_JSON_NESTED(name, statement, shown)                                                                                        \
    {                                                                                                                                      \
        const char *const key = name;                                                                                                      \
        if (vr_fact_is_written(json, key, shown, false)) statement;                                                                        \
    }
#define VR_FACT_JSON_OBJECT VR_FACT_JSON_NESTED
#define VR_FACT_JSON_ARRAY  VR_FACT_JSON_NESTED
#define VR_FACT_JSON_MAP    VR_FACT_JSON_NESTED
#define VR_FACT_JSON_NAME   VR_FACT_JSON_NESTED
#define VR_FACT_JSON_NUMBER VR_FACT_JSON_NESTED

#define VR_FACT_JSON(type, key, value, absent, sentence) VR_FACT_JSON_##type(key, value, VR_FACT_##absent)
#define VR_MEMBER_JSON(type, member, absent, sentence)   VR_FACT_JSON_##type(#member, it->member, VR_FACT_##absent)

#endif
