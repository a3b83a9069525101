// `groups`: who holds what is live at a moment, or what was made in a window.
#include "explore/query/group_facts.h"
#include "explore/query/selection.h"

enum { MOST_GROUPS = 100000 };

static enum vram_status put_groups(const struct vr_query *query, const struct vr_holders *holders, const struct vr_grouping *grouping,
                                   const struct vr_group *groups, const struct vr_group_facts *facts, size_t count, size_t top) {
    struct vr_json *json = &query->answer->json;
    struct vram_report_sum rest = {0};
    struct vr_text name = {0};
    enum vram_status status = VRAM_OK;
    vr_json_string(json, "heading", vr_grouping_heading(grouping->by));
    vr_json_u64(json, "distinct", count);
    vr_json_array(json, "groups");
    for (size_t i = 0; i < count && status == VRAM_OK; i++) {
        if (i >= top) {
            rest.bytes += groups[i].bytes;
            rest.count += groups[i].count;
            continue;
        }
        name.length = 0;
        vr_grouping_name(grouping, groups[i].key, &name);
        status = vr_text_status(&name);
        vr_json_object(json, NULL);
        vr_json_string_bytes(json, "name", vr_text_string(&name), name.length);
        vr_json_u64(json, "key", groups[i].key);
        vr_json_u64(json, "bytes", groups[i].bytes);
        vr_json_u64(json, "count", groups[i].count);
        vr_json_u64(json, "largest_bytes", groups[i].largest_bytes);
        vr_json_u64(json, "row", groups[i].largest_row);
        vr_json_u64(json, "stack", holders->selection.lifetimes->stack[groups[i].largest_row]);
        if (facts->role != NULL) vr_json_string(json, "role", vram_role_word(facts->role[i]));
        if (facts->found_bytes != NULL) vr_json_u64(json, "found_bytes", facts->found_bytes[i]);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
    vr_json_u64(json, "rest_bytes", rest.bytes);
    vr_json_u64(json, "rest_count", rest.count);
    vr_text_release(&name);
    return status;
}

enum vram_status vr_query_groups(const struct vr_query *query) {
    struct vr_holders holders;
    struct vr_grouping grouping;
    struct vr_group *groups = NULL;
    struct vr_group_facts facts = {.role = NULL};
    size_t count = 0;
    int64_t top = 100;
    VR_TRY(vr_parameter_whole(query->parameters, "top", 1, MOST_GROUPS, 100, &top));
    VR_TRY(vr_select_holders(query, &holders));
    enum vram_status status = vr_select_grouping(query, &holders.selection, &grouping);
    if (status == VRAM_OK) {
        status = vr_grouping_sum(&grouping, holders.rows, holders.count, &groups, &count);
        vr_put_holders(query, &holders);
        if (status == VRAM_OK) status = vr_group_facts_find(query, &holders, &grouping, groups, count, &facts);
        if (status == VRAM_OK) status = put_groups(query, &holders, &grouping, groups, &facts, count, (size_t)top);
        vr_group_facts_release(&facts);
        free(groups);
        vr_grouping_release(&grouping);
    }
    vr_holders_release(&holders);
    return status;
}
