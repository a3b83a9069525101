// Two moments side by side, for people and for programs.
#include "analyze/comparison.h"
#include "present/group_names.h"
#include "present/text_parts.h"

// "+1.5 GiB", "-20.0 MiB", "0 B".
static struct vr_formatted signed_bytes(int64_t bytes) {
    struct vr_formatted plain = vr_bytes(bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes), made = plain;
    if (bytes == 0) return made;
    made.text[0] = bytes < 0 ? '-' : '+';
    memcpy(made.text + 1, plain.text, VR_FORMAT_CAPACITY - 2);
    made.text[VR_FORMAT_CAPACITY - 1] = '\0';
    return made;
}

static const char *pair_remark(const struct vr_pair *pair) {
    if (pair->row[0] == VR_PAIR_NO_ROW) return "new";
    if (pair->row[1] == VR_PAIR_NO_ROW) return "gone";
    return pair->moved ? "moved" : "";
}

static void print_pairs(const struct vr_comparison *comparison, const struct vram_style *style, struct vr_text *text) {
    const struct vr_table_column columns[] = {
        {.title = "before", .align = VR_RIGHT},
        {.title = "after", .align = VR_RIGHT},
        {.title = "change", .align = VR_RIGHT, .colour = VR_BOLD},
        {.title = "count", .align = VR_RIGHT},
        {.title = "", .align = VR_LEFT, .colour = VR_YELLOW},
        {.title = vr_grouping_heading(comparison->by), .align = VR_LEFT, .flexible = true},
    };
    struct vr_table table;
    vr_table_init(&table, columns, VR_COUNT_OF(columns));
    size_t shown = 0;
    for (size_t i = 0; i < comparison->pairs.count && shown < comparison->top; i++) {
        const struct vr_pair *pair = &comparison->pairs.pair[i];
        if (vr_pair_change(pair) == 0 && pair->count[0] == pair->count[1]) continue;
        shown++;
        struct vr_text name = {0};
        vr_title_print(comparison->by, pair->name, strlen(pair->name), &name);
        vr_table_cell(&table, "%s", vr_bytes(pair->bytes[0]).text);
        vr_table_cell(&table, "%s", vr_bytes(pair->bytes[1]).text);
        vr_table_cell(&table, "%s", signed_bytes(vr_pair_change(pair)).text);
        vr_table_cell(&table, "%s > %s", vr_count(pair->count[0]).text, vr_count(pair->count[1]).text);
        vr_table_cell(&table, "%s", pair_remark(pair));
        vr_table_cell_bytes(&table, vr_text_string(&name), name.length);
        table.cells.failed = table.cells.failed || name.failed;
        vr_text_release(&name);
    }
    vr_text_puts(text, shown == 0 ? "no group differs\n" : "\n");
    if (shown != 0) vr_table_print(&table, text, style, 2);
    vr_table_release(&table);
}

static void print_side(const struct vram_diff *diff, const struct vr_comparison *comparison, unsigned side, const struct vram_style *style,
                       struct vr_text *text) {
    const struct vr_profile *subject = &comparison->side[side];
    vr_text_puts(text, side == 0 ? "before  " : "after   ");
    vr_text_colour(text, style, VR_BOLD);
    if (diff->title[side] != NULL) vr_text_printable(text, diff->title[side], strlen(diff->title[side]));
    vr_text_colour(text, style, VR_PLAIN);
    vr_text_puts(text, ", ");
    vr_profile_device(subject, text);
    vr_text_puts(text, ", ");
    vr_profile_moment(subject, &diff->options[side], text);
    vr_text_printf(text, ": %s in %s allocation%s\n", vr_bytes(subject->bytes).text, vr_count(subject->count).text,
                   subject->count == 1 ? "" : "s");
}

// "+0.1 %" of what was held before; a change too small for the digits has its sign all the same.
static void print_share(const uint64_t bytes[2], struct vr_text *text) {
    if (bytes[0] == 0 || bytes[0] == bytes[1]) return;
    const bool more = bytes[1] > bytes[0];
    const double share = 100.0 * (double)(more ? bytes[1] - bytes[0] : bytes[0] - bytes[1]) / (double)bytes[0];
    vr_text_printf(text, share < 0.05 ? ", %s<0.1 %%" : ", %s%.1f %%", more ? "+" : "-", share);
}

enum vram_status vram_diff_text(const struct vram_diff *diff, const struct vram_style *style, vram_write write, void *user,
                                struct vram_diff_result *result, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, diff && write && diff->recording[0] && diff->recording[1]);
    const struct vram_style plain = {.columns = 0};
    const struct vram_style *shown = style == NULL ? &plain : style;
    struct vr_comparison comparison;
    struct vr_text text = {0};
    VR_TRY(vr_comparison_open(diff, &comparison, error));
    const uint64_t *bytes = comparison.pairs.bytes;
    for (unsigned side = 0; side < 2; side++) print_side(diff, &comparison, side, shown, &text);
    vr_text_puts(&text, "change  ");
    vr_text_colour(&text, shown, VR_BOLD);
    vr_text_puts(&text, signed_bytes((int64_t)(bytes[1] - bytes[0])).text);
    vr_text_colour(&text, shown, VR_PLAIN);
    print_share(bytes, &text);
    vr_text_puts(&text, "\n");
    print_pairs(&comparison, shown, &text);
    const enum vram_status status = vr_text_hand_over(&text, write, user);
    vr_text_release(&text);
    if (status == VRAM_OK && result != NULL) vr_comparison_result(&comparison, result);
    vr_comparison_close(&comparison);
    return status;
}

static void put_diff_json(const struct vram_diff *diff, const struct vr_comparison *comparison, struct vr_json *json) {
    static const char *const sides[] = {"before", "after"};
    for (unsigned side = 0; side < 2; side++) {
        vr_json_object(json, sides[side]);
        vr_json_string(json, "file", diff->title[side]);
        vr_json_u64(json, "device", comparison->side[side].view->device);
        vr_json_i64(json, "event", comparison->side[side].event);
        vr_json_u64(json, "bytes", comparison->pairs.bytes[side]);
        vr_json_u64(json, "allocations", comparison->pairs.allocations[side]);
        vr_json_object_end(json);
    }
    vr_json_i64(json, "change_bytes", (int64_t)(comparison->pairs.bytes[1] - comparison->pairs.bytes[0]));
    vr_json_string(json, "by", vr_grouping_words[comparison->by]);
    vr_json_u64(json, "distinct", comparison->pairs.count);
    vr_json_array(json, "groups");
    for (size_t i = 0; i < comparison->pairs.count && i < comparison->top; i++) {
        const struct vr_pair *pair = &comparison->pairs.pair[i];
        vr_json_object(json, NULL);
        vr_json_string(json, "name", pair->name);
        vr_json_u64(json, "before_bytes", pair->bytes[0]);
        vr_json_u64(json, "after_bytes", pair->bytes[1]);
        vr_json_i64(json, "change_bytes", vr_pair_change(pair));
        vr_json_u64(json, "before_count", pair->count[0]);
        vr_json_u64(json, "after_count", pair->count[1]);
        vr_json_string(json, "remark", pair_remark(pair));
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

enum vram_status vram_diff_json(const struct vram_diff *diff, vram_write write, void *user, struct vram_diff_result *result,
                                struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, diff && write && diff->recording[0] && diff->recording[1]);
    struct vr_comparison comparison;
    struct vr_text text = {0};
    struct vr_json json;
    VR_TRY(vr_comparison_open(diff, &comparison, error));
    vr_json_init(&json, &text, true);
    vr_json_object(&json, NULL);
    put_diff_json(diff, &comparison, &json);
    vr_json_object_end(&json);
    const enum vram_status status = vr_text_hand_over(&text, write, user);
    vr_text_release(&text);
    if (status == VRAM_OK && result != NULL) vr_comparison_result(&comparison, result);
    vr_comparison_close(&comparison);
    return status;
}
