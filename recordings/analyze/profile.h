// profile.h: a profile: one device of a recording at a moment, and its allocations grouped by a common property.
#ifndef VR_ANALYZE_PROFILE_H
#define VR_ANALYZE_PROFILE_H

#include "analyze/device_view.h"
#include "analyze/roles.h"
#include "analyze/segment_lives.h"
#include "analyze/sites.h"
#include "analyze/text_search.h"
#include "base/text.h"
#include "vram/profile.h"

// ---- Allocations grouped by a common property: each group has a key, a name and sums.

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
// The words, terminated by NULL, and the heading for a column of names.
extern const char *const vr_grouping_words[VR_GROUP_COUNT + 1];
const char *vr_grouping_heading(enum vr_group_by by);

// The key of allocations for which the recording does not have the property.
#define VR_GROUP_UNKNOWN UINT64_MAX

struct vr_grouping {
    enum vr_group_by by;
    const struct vr_view *view;
    const struct vr_lifetimes *lifetimes;
    struct vr_sites *sites;
    const struct vr_segment_lives *segments; // for POOL and STREAM: used if no event has them; may be NULL
    struct vr_phase {                        // for ANNOTATION: from this time on, `name` was the innermost open one
        int64_t time_us;
        uint32_t name;
    } * phase;
    size_t phase_count;
    struct vr_roles roles;   // for ROLE and MODULE, unless lent
    struct vr_roles *lent;   // NULL: use `roles`
    struct vr_finder finder; // for REGEX
    uint32_t *part;          // for REGEX, by stack: 0: not determined; otherwise 1 + number of a part; 1: no match
    struct vr_text parts;    // the distinct parts, each with its NUL
    struct vr_matched {
        size_t start;
        size_t length;
    } * part_text;
    size_t part_count, part_capacity;
};

// The allocations to group; everything is borrowed. segments is needed for pool and stream only, otherwise NULL.
struct vr_grouped {
    const struct vr_view *view;
    const struct vr_lifetimes *lifetimes;
    struct vr_sites *sites;
    const struct vr_segment_lives *segments;
    struct vr_role_rules *rules; // the user's, for role; may be NULL
    struct vr_roles *roles;      // for role and module: known roles of these lifetimes; NULL: find them by the rules
};

// Initializes a grouping; borrows its arguments. expression (NULL unless by is REGEX) groups stacks by the matching text in the innermost
// frame ("file:line:function") with a match. INVALID_ARGUMENT for an invalid expression, NO_HOST_MEMORY.
enum vram_status vr_grouping_init(struct vr_grouping *grouping, enum vr_group_by by, const struct vr_grouped *grouped,
                                  const char *expression, struct vram_error *error);
void vr_grouping_release(struct vr_grouping *grouping);
// Sets *key to the key of a row's group. NO_HOST_MEMORY (REGEX only).
enum vram_status vr_grouping_key(struct vr_grouping *grouping, size_t row, uint64_t *key);
// Appends a group's name, as in the recording.
void vr_grouping_name(const struct vr_grouping *grouping, uint64_t key, struct vr_text *text);

// The sums of one group.
struct vr_group {
    uint64_t key;
    uint64_t bytes;
    uint64_t count;
    uint64_t largest_bytes;
    uint32_t largest_row; // the row with that size, as an example of the group
};
// Sums under construction, by group; initially zeroed. Release by vr_group_sums_release(), even after taking the groups.
struct vr_group_sums {
    struct vr_map known; // key -> 1 + index of the group
    struct vr_group *group;
    size_t count, capacity;
};
// Adds a row to its group. NO_HOST_MEMORY.
enum vram_status vr_group_sums_add(struct vr_group_sums *sums, struct vr_grouping *grouping, size_t row);
// Sets *groups to the groups, in the order of vr_grouping_sum(), and empties the sums. The caller frees *groups.
void vr_group_sums_take(struct vr_group_sums *sums, struct vr_group **groups, size_t *count);
void vr_group_sums_release(struct vr_group_sums *sums);
// Sums rows by group; groups are ordered by descending bytes, then count, then key. The caller frees *groups. NO_HOST_MEMORY.
enum vram_status vr_grouping_sum(struct vr_grouping *grouping, const uint32_t *rows, size_t count, struct vr_group **groups,
                                 size_t *group_count);
// Sets *rows to the rows live after an event, ascending. The caller frees *rows. NO_HOST_MEMORY. Looks at all rows.
enum vram_status vr_rows_live_at(const struct vr_lifetimes *lifetimes, int64_t event, uint32_t **rows, size_t *count);

// ---- One device of a recording, opened for a profile: its lifetimes, and the rows live at the requested moment.

struct vr_profile {
    const struct vr_model *model; // borrowed
    struct vr_views views;
    struct vr_sites sites;
    const struct vr_view *view;
    enum vr_choice why; // the reason for choosing this view
    struct vr_lifetimes lifetimes;
    bool has_lifetimes;
    struct vr_segment_lives segments;
    bool has_segments;
    struct vr_role_rules rules; // the user's
    int64_t event;
    uint32_t *rows; // live after `event`
    size_t count;
    uint64_t bytes;
};

// Opens a profile. INVALID_ARGUMENT with a message, BAD_INPUT (an empty recording), LIMIT, NO_HOST_MEMORY. The recording must outlive it.
enum vram_status vr_profile_open(const struct vram_recording *recording, const struct vram_profile_options *options,
                                 struct vr_profile *subject, struct vram_error *error);
void vr_profile_close(struct vr_profile *subject);
// Creates the grouping that the options name.
enum vram_status vr_profile_grouping(struct vr_profile *subject, const struct vram_profile_options *options, struct vr_grouping *grouping,
                                     struct vram_error *error);

#endif
