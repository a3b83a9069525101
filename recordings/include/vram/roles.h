// vram/roles.h: what device memory is for: parameters, gradients, activations and so on, of any recording.
//
// A role follows, the surer first, from rules of the user, from what the program said of a block (an annotation), from the call
// stack of the allocation, and from how it lives beside the passes of the program: docs/guides/roles.md says how each is found.
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
// The word and the title of a role; NULL past the last.
VRAM_API const char *vram_role_word(size_t role);
VRAM_API const char *vram_role_title(size_t role);

// All-zero but `device` is the default.
struct vram_roles_options {
    int64_t device;    // -1: the one that ran out of memory, else the one with the highest peak
    const char *rules; // of the user: a role's word, a blank and a regular expression per line; NULL: none
    unsigned top;      // modules; 0: 10
    bool active;       // live until free_completed, not until free_requested
};

// What a module of the program holds in one role.
struct vram_role_module {
    const char *name; // as annotated, else "file:line:function" of the innermost forward(); bytes as the recording has them
    enum vram_role role;
    uint64_t bytes;
    uint64_t count;
};

// Plain data that owns all it points to and never changes. Bytes are those that the program asked for.
struct vram_roles {
    uint32_t device;
    int64_t peak_event;                              // -1: before the first
    struct vram_report_sum at_peak[VRAM_ROLE_COUNT]; // they add up to the peak
    struct vram_report_sum made[VRAM_ROLE_COUNT];    // allocations of the whole history, and what was live before it
    struct vram_report_sum highest[VRAM_ROLE_COUNT]; // the most that each had at any moment, each at its own
    uint64_t stacked_bytes;                          // of the peak: with a recorded call stack,
    uint64_t stacked_unknown_bytes;                  // of these: of unknown role
    const struct vram_role_module *modules;          // largest at the peak, at most `top`
    size_t module_count;
    const uint8_t *of_event; // by event: enum vram_role of what an allocation made; 0 for other events
    size_t event_count;
};

// Computes the roles; n log n in the number of events. options may be NULL. The recording is borrowed during the call. *roles is given to
// the caller: vram_roles_destroy(). INVALID_ARGUMENT with a sentence (a device that is none; a line of the rules), BAD_INPUT (a recording
// of nothing), LIMIT, NO_HOST_MEMORY; *roles is untouched then.
VRAM_API VRAM_NODISCARD enum vram_status vram_roles_create(const struct vram_recording *recording, const struct vram_roles_options *options,
                                                           struct vram_roles **roles, struct vram_error *error);
// NULL is ignored.
VRAM_API void vram_roles_destroy(struct vram_roles *roles);

#ifdef __cplusplus
}
#endif
#endif
