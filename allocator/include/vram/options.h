// vram/options.h: option strings without an allocator: are they right, and what do they say.
//
// The language is that of PYTORCH_CUDA_ALLOC_CONF ("max_split_size_mb:128,expandable_segments:True"); options.md has every key.
#ifndef VRAM_OPTIONS_H
#define VRAM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "vram/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// One option. All strings are NUL-terminated, never NULL, and borrowed: valid during the call of the visitor.
struct vram_option {
    const char *key;           // PyTorch's name
    const char *value;         // in force, as an option string would give it; "unlimited" and "unset" have no spelling
    const char *default_value; // in force when the key is not given
    bool is_default;
    const char *syntax;  // what may be written: "MiB", "boolean", ...
    const char *summary; // one English sentence without a full stop
};
// Returns whether to go on.
typedef bool (*vram_option_visitor)(const struct vram_option *option, void *user);

// Whether vram_create() takes `text` (NULL and "" are empty, and right). BAD_OPTION or LIMIT, with the character counted from 0 in
// error->offset and from 1 in its message, and the nearest key for an unknown one. error may be NULL. Any thread.
VRAM_API VRAM_NODISCARD enum vram_status vram_options_check(const char *text, struct vram_error *error);
// Calls visit for every option there is, in a fixed order, with its value after `text` was read. Fails as above, then without any
// call, and NO_HOST_MEMORY. Any thread.
VRAM_API VRAM_NODISCARD enum vram_status vram_options_list(const char *text, vram_option_visitor visit, void *user,
                                                           struct vram_error *error);
// How many letters must be put in, left out or changed to make the one word of the other (Levenshtein's distance): by it a mistake is
// answered with what was probably meant. SIZE_MAX when `known` is longer than 127 bytes. Any thread.
VRAM_API size_t vram_edit_distance(const char *word, const char *known);

#ifdef __cplusplus
}
#endif
#endif
