// query.h: "name?key=value&key=value" taken apart. Values are percent-decoded ('+' is a space); keys are plain words.
#ifndef VR_EXPLORE_QUERY_PARAMETERS_H
#define VR_EXPLORE_QUERY_PARAMETERS_H

#include "base/base.h"

enum { VR_MOST_PARAMETERS = 32 };

struct vr_parameters {
    char *text; // name, keys and values, each NUL-terminated
    const char *name;
    struct {
        const char *key;
        const char *value;
    } pair[VR_MOST_PARAMETERS];
    size_t count;
    struct vram_error *error; // of the failing getter; may be NULL
};

// INVALID_ARGUMENT for text that is no query, NO_HOST_MEMORY.
enum vram_status vr_parameters_parse(struct vr_parameters *parameters, const char *text, struct vram_error *error);
void vr_parameters_release(struct vr_parameters *parameters);

// The value of a key, or NULL. Of repeated keys the first counts.
const char *vr_parameter_text(const struct vr_parameters *parameters, const char *key);
// A whole number; `fallback` where the key is not there. INVALID_ARGUMENT (naming the key) for other text and outside [low, high].
enum vram_status vr_parameter_whole(const struct vr_parameters *parameters, const char *key, int64_t low, int64_t high, int64_t fallback,
                                    int64_t *value);
// The same for any finite number.
enum vram_status vr_parameter_number(const struct vr_parameters *parameters, const char *key, double fallback, double *value);
// The index of the value among `words` (NULL at the end); `fallback` where the key is not there.
enum vram_status vr_parameter_word(const struct vr_parameters *parameters, const char *key, const char *const *words, size_t fallback,
                                   size_t *value);

#endif
