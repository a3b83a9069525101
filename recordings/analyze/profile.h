// profile.h: a profile: one device of a recording opened at a moment, and its allocations grouped by what they have in common.
#ifndef VR_ANALYZE_PROFILE_H
#define VR_ANALYZE_PROFILE_H

#include "analyze/device_view.h"
#include "analyze/roles.h"
#include "analyze/segment_lives.h"
#include "analyze/sites.h"
#include "analyze/text_search.h"
#include "base/text.h"
#include "vram/profile.h"

// ---- Allocations by what they have in common: a number that is the same for all of a group, its name, and sums.

// X(constant, word, heading)
#define VR_GROUPINGS(X)                                                                                                                    \
    X(SITE, site, "call site")                                                                                                             \
    X(STACK, stack, "call stack")                                                                                                          \
    X(FUNCTION, function, "innermost function")                                                                                            \
    X(FILE, file, "file of the call site")                                                                                                 \
    X(ROLE, role, "role")                                                                                                                  \
    X(MODULE, module, "module")                                                                                                            \
    X(CATEGORY, category, "category")                                                                                                      \
    X(POOL, pool, "pool")                                                                                                                  \
    X(STREAM, stream, "stream")                                                                                                            \
    X(ANNOTATION, annotation, "annotation")                                                                                                \
    X(THREAD, thread, "thread")                                                                                                            \
    X(METADATA, metadata, "metadata")                                                                                                      \
    X(CONTEXT, context, "compile context")                                                                                                 \
    X(SIZE, size, "size")                                                                                                                  \
    X(REGEX, regex, "text that matched")

enum vr_group_by {
#define VR_GROUPING(constant, word, heading) VR_GROUP_##constant,
    VR_GROUPINGS(VR_GROUPING)
#undef VR_GROUPING
        VR_GROUP_COUNT
};
// The words, NULL at the end, and what a column of the names is headed.
extern const char *const vr_grouping_words[VR_GROUP_COUNT + 1];
const char *vr_grouping_heading(enum vr_group_by by);

// The key of what the recording does not tell.
#define VR_GROUP_UNKNOWN UINT64_MAX

struct vr_grouping {
    enum vr_group_by by;
    const struct vr_view *view;
    const struct vr_lifetimes *lifetimes;
    struct vr_sites *sites;
    const struct vr_segment_lives *segments; // for POOL and STREAM: what no event tells; may be NULL
    struct vr_phase {                        // for ANNOTATION: from this time on `name` was the innermost one open
        int64_t time_us;
        uint32_t name;
    } * phase;
    size_t phase_count;
    struct vr_roles roles;   // for ROLE and MODULE, where none were lent
    struct vr_roles *lent;   // NULL: those above
    struct vr_finder finder; // for REGEX
    uint32_t *part;          // for REGEX, by stack: 0 not looked at, else 1 + number of a part; 1: nothing matched
    struct vr_text parts;    // the distinct parts, each with its NUL
    struct vr_matched {
        size_t start;
        size_t length;
    } * part_text;
    size_t part_count, part_capacity;
};

// What is grouped, all borrowed. segments is needed by pool and by stream only, else NULL.
struct vr_grouped {
    const struct vr_view *view;
    const struct vr_lifetimes *lifetimes;
    struct vr_sites *sites;
    const struct vr_segment_lives *segments;
    struct vr_role_rules *rules; // of the user, for role; may be NULL
    struct vr_roles *roles;      // for role and module: those of these lifetimes, found before; NULL: they are found, by the rules
};

// Borrows what it is given. expression (NULL unless by is REGEX) groups stacks by what it matches in the innermost frame
// ("file:line:function") that it matches in. INVALID_ARGUMENT for an invalid expression, NO_HOST_MEMORY.
enum vram_status vr_grouping_init(struct vr_grouping *grouping, enum vr_group_by by, const struct vr_grouped *grouped,
                                  const char *expression, struct vram_error *error);
void vr_grouping_release(struct vr_grouping *grouping);
// The group of a row. NO_HOST_MEMORY (REGEX only).
enum vram_status vr_grouping_key(struct vr_grouping *grouping, size_t row, uint64_t *key);
// Appends a group's name, as the recording has it.
void vr_grouping_name(const struct vr_grouping *grouping, uint64_t key, struct vr_text *text);

// One group's sums.
struct vr_group {
    uint64_t key;
    uint64_t bytes;
    uint64_t count;
    uint64_t largest_bytes;
    uint32_t largest_row; // the row that has them: an example of the group
};
// Sums in the making, by group; all zero to begin with. Released by vr_group_sums_release(), also after taking.
struct vr_group_sums {
    struct vr_map known; // key -> 1 + place among the groups
    struct vr_group *group;
    size_t count, capacity;
};
// NO_HOST_MEMORY.
enum vram_status vr_group_sums_add(struct vr_group_sums *sums, struct vr_grouping *grouping, size_t row);
// The groups, in the order of vr_grouping_sum(); given to the caller (free()). The sums are empty again.
void vr_group_sums_take(struct vr_group_sums *sums, struct vr_group **groups, size_t *count);
void vr_group_sums_release(struct vr_group_sums *sums);
// Sums over rows; groups by falling bytes, then count, then key. *groups is given to the caller (free()). NO_HOST_MEMORY.
enum vram_status vr_grouping_sum(struct vr_grouping *grouping, const uint32_t *rows, size_t count, struct vr_group **groups,
                                 size_t *group_count);
// What is live after an event, ascending rows. *rows is given to the caller (free()). NO_HOST_MEMORY. Looks at all rows.
enum vram_status vr_rows_live_at(const struct vr_lifetimes *lifetimes, int64_t event, uint32_t **rows, size_t *count);

// ---- One device of a recording, opened for a profile: its lifetimes, and what is live at the moment that was asked for.

struct vr_profile {
    const struct vr_model *model; // borrowed
    struct vr_views views;
    struct vr_sites sites;
    const struct vr_view *view;
    enum vr_choice why; // it is this view
    struct vr_lifetimes lifetimes;
    bool has_lifetimes;
    struct vr_segment_lives segments;
    bool has_segments;
    struct vr_role_rules rules; // of the user
    int64_t event;
    uint32_t *rows; // live after `event`
    size_t count;
    uint64_t bytes;
};

// INVALID_ARGUMENT with a sentence, BAD_INPUT (a recording of nothing), LIMIT, NO_HOST_MEMORY. The recording must outlive it.
enum vram_status vr_profile_open(const struct vram_recording *recording, const struct vram_profile_options *options,
                                 struct vr_profile *subject, struct vram_error *error);
void vr_profile_close(struct vr_profile *subject);
// The grouping that the options name.
enum vram_status vr_profile_grouping(struct vr_profile *subject, const struct vram_profile_options *options, struct vr_grouping *grouping,
                                     struct vram_error *error);

#endif
