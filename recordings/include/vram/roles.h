// vram/roles.h: the role of device memory in any recording: parameters, gradients, activations and so on.
//
// A role comes from the most reliable source available: the user's rules, the program's own annotation of a block, the call stack of the
// allocation, or the allocation's lifetime relative to the program's passes. docs/guides/roles.md explains each.
#ifndef VRAM_ROLES_H
#define VRAM_ROLES_H

#include "vram/report.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vram_recording;

// X(constant, word in files and JSON, title)
#define VRAM_ROLES(X)                                                                                                                      \
    X(UNKNOWN, "unknown", "unknown")                                                                                                       \
    X(PARAMETERS, "parameters", "parameters")                                                                                              \
    X(GRADIENTS, "gradients", "gradients")                                                                                                 \
    X(OPTIMIZER_STATE, "optimizer_state", "optimizer state")                                                                               \
    X(ACTIVATIONS, "activations", "activations")                                                                                           \
    X(RECOMPUTED, "recomputed", "activations, recomputed")                                                                                 \
    X(TEMPORARIES, "temporaries", "temporaries")                                                                                           \
    X(COMMUNICATION, "communication", "communication")                                                                                     \
    X(INPUT, "input", "input")                                                                                                             \
    X(WORKSPACES, "workspaces", "workspaces")                                                                                              \
    X(KV_CACHE, "kv_cache", "KV cache")                                                                                                    \
    X(CASTS, "cast_weights", "weights cast by autocast")

enum vram_role {
#define VRAM_ROLE(constant, word, title) VRAM_ROLE_##constant,
    VRAM_ROLES(VRAM_ROLE)
#undef VRAM_ROLE
        VRAM_ROLE_COUNT
};
// Return the word and the title of a role; NULL past the last.
VRAM_API const char *vram_role_word(size_t role);
VRAM_API const char *vram_role_title(size_t role);

// A struct that is zero except for `device` selects the defaults.
struct vram_roles_options {
    int64_t device;    // -1: the device that ran out of memory, otherwise the one with the highest peak
    const char *rules; // the user's rules: a role's word, a blank and a regular expression per line; NULL: no rules
    unsigned top;      // modules; 0: 10
    bool active;       // count a block as live until free_completed instead of free_requested
};

// The memory of one role in one module of the program.
struct vram_role_module {
    const char *name; // as annotated, otherwise "file:line:function" of the innermost forward(); encoded as in the recording
    enum vram_role role;
    uint64_t bytes;
    uint64_t count;
};

// Plain data that owns everything it points to and never changes. Bytes are requested bytes.
struct vram_roles {
    uint32_t device;
    int64_t peak_event;                              // -1: before the first
    struct vram_report_sum at_peak[VRAM_ROLE_COUNT]; // sums to the peak
    struct vram_report_sum made[VRAM_ROLE_COUNT];    // all allocations of the history, plus what was live before it
    struct vram_report_sum highest[VRAM_ROLE_COUNT]; // each role's own maximum, at its own moment
    uint64_t stacked_bytes;                          // bytes of the peak that have a call stack
    uint64_t stacked_unknown_bytes;                  // of those, bytes of unknown role
    const struct vram_role_module *modules;          // largest at the peak first, at most `top`
    size_t module_count;
    const uint8_t *of_event; // by event: enum vram_role of an allocation; 0 for other events
    size_t event_count;
};

// Computes the roles in n log n of the number of events. options may be NULL. The recording is borrowed during the call. The caller owns
// *roles: vram_roles_destroy(). INVALID_ARGUMENT with a message (an unknown device, an invalid rule), BAD_INPUT (an empty recording),
// LIMIT, NO_HOST_MEMORY; *roles is then unchanged.
VRAM_API VRAM_NODISCARD enum vram_status vram_roles_create(const struct vram_recording *recording, const struct vram_roles_options *options,
                                                           struct vram_roles **roles, struct vram_error *error);
// NULL is ignored.
VRAM_API void vram_roles_destroy(struct vram_roles *roles);

#ifdef __cplusplus
}
#endif
#endif
