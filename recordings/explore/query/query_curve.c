// `curve`: the totals along a window, one smallest and largest value per pixel.
#include "explore/query/query.h"
#include "explore/query/selection.h"
#include "explore/query/window.h"

enum { MOST_PIXELS = 16384 };

struct curve_columns {
    size_t event, low[VR_CURVE_COUNT], high[VR_CURVE_COUNT];
};

static void add_columns(struct vr_answer *answer, struct curve_columns *columns) {
    static const char *const low[VR_CURVE_COUNT] = {"allocated_low", "active_low", "reserved_low"};
    static const char *const high[VR_CURVE_COUNT] = {"allocated_high", "active_high", "reserved_high"};
    columns->event = vr_answer_column(answer, "event", VR_F64);
    for (size_t k = 0; k < VR_CURVE_COUNT; k++) {
        columns->low[k] = vr_answer_column(answer, low[k], VR_F64);
        columns->high[k] = vr_answer_column(answer, high[k], VR_F64);
    }
}

// One pixel: from the value that it begins with through all that its events bring.
static void add_pixel(struct vr_answer *answer, const struct curve_columns *columns, const struct vr_curve *const *curves, size_t first,
                      size_t end) {
    vr_answer_f64(answer, columns->event, (double)first);
    for (size_t k = 0; k < VR_CURVE_COUNT; k++) {
        int64_t low, high;
        vr_curve_extremes(curves[k], first, end, &low, &high);
        vr_answer_f64(answer, columns->low[k], (double)low);
        vr_answer_f64(answer, columns->high[k], (double)high);
    }
}

enum vram_status vr_query_curve(const struct vr_query *query) {
    struct vr_explored_recording *recording = NULL;
    struct vr_explored_device *device = NULL;
    struct vr_window window;
    int64_t pixels = 0;
    VR_TRY(vr_select_device(query, &recording, &device));
    VR_TRY(vr_select_window(query, device, &window));
    VR_TRY(vr_parameter_whole(query->parameters, "pixels", 1, MOST_PIXELS, 1024, &pixels));
    const struct vr_curve *curves[VR_CURVE_COUNT] = {NULL};
    for (size_t k = 0; k < VR_CURVE_COUNT; k++) VR_TRY(vr_explored_curve(device, (enum vr_curve_kind)k, &curves[k]));
    struct curve_columns columns;
    add_columns(query->answer, &columns);
    size_t first = vr_window_event(&window, device, window.from);
    for (int64_t p = 0; p < pixels; p++) {
        const double edge = window.from + (window.to - window.from) * (double)(p + 1) / (double)pixels;
        const size_t end = vr_window_event(&window, device, edge);
        add_pixel(query->answer, &columns, curves, first, end);
        first = end;
    }
    vr_json_double(&query->answer->json, "from", window.from);
    vr_json_double(&query->answer->json, "to", window.to);
    return VRAM_OK;
}
