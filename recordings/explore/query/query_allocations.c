// `allocations`: the largest allocations of a window as a table.
#include <math.h>

#include "explore/query/selection.h"
#include "explore/query/shapes.h"
#include "explore/tables/labels.h"

struct table {
    const struct vr_shapes *shapes;
    const struct vr_history *history;
    const struct vr_lifetimes *allocated;
    const uint32_t *versions;
};

static void put_time(const struct table *table, size_t column, uint32_t event) {
    const bool known = event != VR_NEVER && (vr_entry_has(table->history, event) & VR_HAS_TIME) != 0;
    vr_answer_f64(table->shapes->query->answer, column, known ? (double)table->history->time_us[event] : NAN);
}

// Events and times that are not known are NaN.
static void put_rows(const struct table *table) {
    const struct vr_shapes *shapes = table->shapes;
    struct vr_answer *answer = shapes->query->answer;
    const size_t address = vr_answer_halves(answer, "address_low", "address_high"), version = vr_answer_column(answer, "version", VR_U32);
    const size_t birth = vr_answer_column(answer, "birth", VR_F64), death = vr_answer_column(answer, "death", VR_F64);
    const size_t birth_time = vr_answer_column(answer, "birth_time", VR_F64), death_time = vr_answer_column(answer, "death_time", VR_F64);
    const size_t stream = vr_answer_halves(answer, "stream_low", "stream_high"), known = vr_answer_column(answer, "stream_known", VR_U8);
    for (size_t i = 0; i < shapes->count; i++) {
        const uint32_t row = shapes->row[i], born = shapes->lifetimes->birth[row], died = shapes->lifetimes->death[row];
        const size_t named = vr_other_row(shapes->lifetimes, table->allocated, row);
        const bool has_stream = born != VR_BEFORE_TRACE && (vr_entry_has(table->history, born) & VR_HAS_STREAM) != 0;
        vr_answer_u64(answer, address, shapes->lifetimes->address[row]);
        vr_answer_u32(answer, version, named == SIZE_MAX ? 0 : table->versions[named]);
        vr_answer_f64(answer, birth, born == VR_BEFORE_TRACE ? NAN : (double)born);
        vr_answer_f64(answer, death, died == VR_NEVER ? NAN : (double)died);
        put_time(table, birth_time, born); // VR_BEFORE_TRACE is VR_NEVER
        put_time(table, death_time, died);
        vr_answer_u64(answer, stream, has_stream ? vr_entry_stream(table->history, born) : 0);
        vr_answer_u8(answer, known, has_stream);
    }
}

enum vram_status vr_query_allocations(const struct vr_query *query) {
    struct vr_shapes shapes;
    enum vr_lifetime_kind kind = VR_LIFETIME_ALLOCATED;
    VR_TRY(vr_select_lifetime_kind(query, &kind));
    VR_TRY(vr_shapes_init(query, &shapes));
    struct table table = {.shapes = &shapes, .history = shapes.device->view->history};
    VR_TRY(vr_explored_lifetimes(shapes.device, VR_LIFETIME_ALLOCATED, &table.allocated));
    VR_TRY(vr_explored_versions(shapes.device, &table.versions));
    enum vram_status status = vr_shapes_pick(&shapes, (enum vr_shape_kind)kind, 1);
    if (status == VRAM_OK) {
        status = vr_shapes_put(&shapes);
        put_rows(&table);
        if (status == VRAM_OK) status = vr_shapes_put_keys(&shapes);
    }
    vr_shapes_release(&shapes);
    return status;
}
