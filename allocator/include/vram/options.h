// vram/options.h: checks and lists option strings without an allocator.
//
// The language is that of PYTORCH_CUDA_ALLOC_CONF ("max_split_size_mb:128,expandable_segments:True"); options.md lists every key.
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
    const char *value;         // the current value, as in an option string; "unlimited" and "unset" cannot be written in one
    const char *default_value; // the value if the key is not given
    bool is_default;
    const char *syntax;  // the form of its value: "MiB", "boolean", ...
    const char *summary; // one English sentence without a full stop
};
// Returns whether to continue.
typedef bool (*vram_option_visitor)(const struct vram_option *option, void *user);

// Checks whether vram_create() accepts `text` (NULL and "" are empty, and valid). BAD_OPTION or LIMIT, with the position counted from 0 in
// error->offset and from 1 in the message; an unknown key's message names the nearest key. error may be NULL. Any thread.
VRAM_API VRAM_NODISCARD enum vram_status vram_options_check(const char *text, struct vram_error *error);
// Calls visit for every option, in a fixed order, with its value after `text` is read. Fails as above, without any call, or with
// NO_HOST_MEMORY. Any thread.
VRAM_API VRAM_NODISCARD enum vram_status vram_options_list(const char *text, vram_option_visitor visit, void *user,
                                                           struct vram_error *error);
// Returns Levenshtein's distance: the number of letters to insert, delete or change to turn one word into the other. Suggestions for
// misspelled words use it. SIZE_MAX if `known` is longer than 127 bytes. Any thread.
VRAM_API size_t vram_edit_distance(const char *word, const char *known);

#ifdef __cplusplus
}
#endif
#endif
