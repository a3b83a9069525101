// Prints the forecast peak of a run of another size, as text and as JSON.
#include <stdio.h>

#include "analyze/forecast.h"
#include "base/json_rows.h"
#include "present/shared_texts.h"
#include "present/text_parts.h"

enum { DEFAULT_TOP = 10 };

static const char *const shapes[] = {"constant", "inverse", "linear", "quadratic", "cubic"};

static size_t rows_of(const struct vram_forecast *asked) { return asked->options.top == 0 ? DEFAULT_TOP : asked->options.top; }

static void print_range(const char *title, uint64_t bytes, uint64_t low, uint64_t high, const struct vram_style *style,
                        struct vr_text *text) {
    vr_text_printf(text, "  %-10s", title);
    vr_text_colour(text, style, VR_BOLD);
    vr_text_printf(text, "%10s", vr_bytes(bytes).text);
    vr_text_colour(text, style, VR_PLAIN);
    if (low == high)
        vr_text_puts(text, "\n");
    else
        vr_text_printf(text, "  (%s to %s)\n", vr_bytes(low).text, vr_bytes(high).text);
}

static void print_groups(const struct vram_forecast *asked, const struct vr_forecast *forecast, const struct vram_style *style,
                         struct vr_text *text) {
    char titles[VRAM_FORECAST_MOST + 1][32];
    struct vr_table_column columns[VRAM_FORECAST_MOST + 3];
    size_t count = 0;
    for (size_t i = 0; i < asked->count; i++) {
        (void)snprintf(titles[i], sizeof titles[i], "at %g", asked->size[forecast->order[i]]);
        columns[count++] = (struct vr_table_column){.title = titles[i], .align = VR_RIGHT};
    }
    (void)snprintf(titles[VRAM_FORECAST_MOST], sizeof titles[0], "at %g", asked->wanted);
    columns[count++] = (struct vr_table_column){.title = titles[VRAM_FORECAST_MOST], .align = VR_RIGHT, .colour = VR_BOLD};
    columns[count++] = (struct vr_table_column){.title = "curve", .align = VR_LEFT};
    columns[count++] = (struct vr_table_column){.title = vr_grouping_heading(forecast->by), .align = VR_LEFT, .flexible = true};
    struct vr_table table;
    vr_table_init(&table, columns, count);
    for (size_t i = 0; i < forecast->count && i < rows_of(asked); i++) {
        const struct vr_forecast_group *group = &forecast->group[i];
        struct vr_text name = {0};
        vr_title_print(forecast->by, group->name, strlen(group->name), &name);
        for (size_t k = 0; k < asked->count; k++) vr_table_cell(&table, "%s", vr_bytes(group->bytes[forecast->order[k]]).text);
        vr_table_cell(&table, "%s", vr_bytes(group->forecast_bytes).text);
        vr_table_cell(&table, "%s", shapes[group->shape]);
        vr_table_cell_bytes(&table, vr_text_string(&name), name.length);
        table.cells.failed = table.cells.failed || name.failed;
        vr_text_release(&name);
    }
    vr_text_puts(text, "\n");
    vr_table_print(&table, text, style, 2);
    vr_table_release(&table);
}

static void print_runs(const struct vram_forecast *asked, const struct vr_forecast *forecast, struct vr_text *text) {
    for (size_t i = 0; i < asked->count; i++) {
        const size_t side = forecast->order[i];
        vr_text_printf(text, "%s %g: %s allocated", i == 0 ? "from" : "    ", asked->size[side], vr_bytes(forecast->allocated[side]).text);
        if (forecast->reserved[side] != 0) vr_text_printf(text, ", %s reserved", vr_bytes(forecast->reserved[side]).text);
        vr_text_printf(text, " at the peak");
        if (asked->title[side] != NULL) {
            vr_text_puts(text, " of ");
            vr_text_printable(text, asked->title[side], strlen(asked->title[side]));
        }
        vr_text_puts(text, "\n");
    }
}

// Prints the moment of the peak, and the runs that have their peak elsewhere.
static void print_moment(const struct vram_forecast *asked, const struct vr_forecast *forecast, struct vr_text *text) {
    if (forecast->moment_site == NULL) return;
    vr_text_puts(text, "  the peak is where ");
    vr_title_print(VR_GROUP_SITE, forecast->moment_site, strlen(forecast->moment_site), text);
    vr_text_puts(text, " allocates");
    for (size_t i = 0; i < asked->count; i++) {
        const size_t side = forecast->order[i];
        if (forecast->moment[side] == forecast->event[side]) continue;
        vr_text_printf(text, "; at %g the peak is at another point; this point holds %s", asked->size[side],
                       vr_bytes(forecast->moment_bytes[side]).text);
    }
    vr_text_puts(text, "\n");
}

static void print_doubts(const struct vram_forecast *asked, const struct vr_forecast *forecast, struct vr_text *text) {
    const uint64_t largest = forecast->moment_bytes[forecast->order[asked->count - 1]];
    if (asked->count == 2)
        vr_text_puts(text,
                     "\n  Two sizes cannot show a curve: growth is assumed to be linear. A third recording would\n  show its shape.\n");
    if (asked->options.moment == VRAM_PROFILE_PEAK && !forecast->peaks_followed)
        vr_text_puts(text, "\n  One run peaks at a point that another run does not reach, so that peak cannot be extrapolated.\n");
    if (forecast->only_some_bytes > largest / 50)
        vr_text_printf(text, "\n  %s of the largest run is in groups that another run does not have at that point.\n",
                       vr_bytes(forecast->only_some_bytes).text);
}

enum vram_status vram_forecast_text(const struct vram_forecast *asked, const struct vram_style *style, vram_write write, void *user,
                                    struct vram_forecast_result *result, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, asked && write);
    for (size_t i = 0; i < asked->count && i < VRAM_FORECAST_MOST; i++) VR_REQUIRE_OR_FAIL(error, asked->recording[i]);
    const struct vram_style plain = {.columns = 0};
    const struct vram_style *shown = style == NULL ? &plain : style;
    struct vr_forecast forecast;
    struct vr_text text = {0};
    VR_TRY(vr_forecast_make(asked, &forecast, error));
    const struct vram_forecast_result *made = &forecast.result;
    print_runs(asked, &forecast, &text);
    vr_text_printf(&text, "\nat %g\n", asked->wanted);
    print_range("allocated", made->allocated_bytes, made->allocated_low_bytes, made->allocated_high_bytes, shown, &text);
    if (made->reserved_bytes != 0)
        print_range("reserved", made->reserved_bytes, made->reserved_low_bytes, made->reserved_high_bytes, shown, &text);
    print_moment(asked, &forecast, &text);
    print_groups(asked, &forecast, shown, &text);
    print_doubts(asked, &forecast, &text);
    const enum vram_status status = vr_text_hand_over(&text, write, user);
    vr_text_release(&text);
    if (status == VRAM_OK && result != NULL) *result = *made;
    vr_forecast_release(&forecast);
    return status;
}

#define FORECAST_RUN_FACTS(X)                                                                                                              \
    X(TEXT, "file", asked->title[side], ALWAYS, "file name without its folder")                                                            \
    X(DOUBLE, "size", asked->size[side], ALWAYS, "the run's size")                                                                         \
    X(I64, "event", it->event[side], ALWAYS, "the event of its peak")                                                                      \
    X(U64, "allocated_bytes", it->allocated[side], ALWAYS, "allocated bytes at that event")                                                \
    X(U64, "reserved_bytes", it->reserved[side], ALWAYS, "peak of reserved bytes; 0: not known")                                           \
    X(I64, "moment_event", it->moment[side], ALWAYS, "event in this run that matches the peak at the requested size")                      \
    X(U64, "moment_bytes", it->moment_bytes[side], ALWAYS, "allocated bytes at that event")

static void put_runs(struct vr_json *json, const char *key, const struct vram_forecast *asked, const struct vr_forecast *it) {
    vr_json_array(json, key);
    for (size_t i = 0; i < asked->count; i++) {
        const size_t side = it->order[i];
        vr_json_object(json, NULL);
        FORECAST_RUN_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

static void put_group_bytes(struct vr_json *json, const char *key, const struct vram_forecast *asked, const struct vr_forecast *forecast,
                            const struct vr_forecast_group *group) {
    vr_json_array(json, key);
    for (size_t i = 0; i < asked->count; i++) vr_json_u64(json, NULL, group->bytes[forecast->order[i]]);
    vr_json_array_end(json);
}

#define FORECAST_GROUP_FACTS(X)                                                                                                            \
    X(TEXT, "name", it->name, ALWAYS, "name of the group")                                                                                 \
    X(TEXT, "curve", shapes[it->shape], ALWAYS,                                                                                            \
      "steepest growth of its allocations: `constant`, `inverse`, `linear`, `quadratic` or `cubic`")                                       \
    X(ARRAY, "bytes", put_group_bytes(json, key, asked, forecast, it), ALWAYS, "bytes in each run")                                        \
    X(U64, "forecast_bytes", it->forecast_bytes, ALWAYS, "forecast at the requested size")                                                 \
    X(U64, "low_bytes", it->low_bytes, ALWAYS, "lower end of its range")                                                                   \
    X(U64, "high_bytes", it->high_bytes, ALWAYS, "upper end of its range")

static void put_forecast_groups(struct vr_json *json, const char *name, const struct vram_forecast *asked,
                                const struct vr_forecast *forecast) {
    vr_json_array(json, name);
    for (size_t i = 0; i < forecast->count && i < rows_of(asked); i++) {
        const struct vr_forecast_group *it = &forecast->group[i];
        vr_json_object(json, NULL);
        FORECAST_GROUP_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

#define FORECAST_FACTS(X)                                                                                                                  \
    X(DOUBLE, "size", asked->wanted, ALWAYS, "requested size")                                                                             \
    X(U64, "allocated_bytes", it->result.allocated_bytes, ALWAYS, "forecast peak of requested bytes")                                      \
    X(U64, "allocated_low_bytes", it->result.allocated_low_bytes, ALWAYS, "lower end of its range")                                        \
    X(U64, "allocated_high_bytes", it->result.allocated_high_bytes, ALWAYS, "upper end of its range")                                      \
    X(U64, "reserved_bytes", it->result.reserved_bytes, ALWAYS, "forecast peak of reserved bytes; 0: a recording lacks it")                \
    X(U64, "reserved_low_bytes", it->result.reserved_low_bytes, ALWAYS, "lower end of its range")                                          \
    X(U64, "reserved_high_bytes", it->result.reserved_high_bytes, ALWAYS, "upper end of its range")                                        \
    X(TEXT, "moment", it->moment_site, ALWAYS, "call site of the allocation that reaches the peak at that size, or null")                  \
    X(BOOL, "peaks_followed", it->peaks_followed, ALWAYS, "false: a run peaks at a point that another run does not reach")                 \
    X(U64, "not_in_every_run_bytes", it->only_some_bytes, ALWAYS,                                                                          \
      "bytes at that moment, in the run of the largest size, of groups that another run lacks")                                            \
    X(ARRAY, "runs", put_runs(json, key, asked, it), ALWAYS, "the runs, by ascending size (see below)")                                    \
    X(TEXT, "by", vr_grouping_words[it->by], ALWAYS, "the grouping")                                                                       \
    X(U64, "distinct", it->count, ALWAYS, "number of groups")                                                                              \
    X(ARRAY, "groups", put_forecast_groups(json, key, asked, it), ALWAYS, "groups at that moment, by descending forecast (see below)")

static void put_forecast_json(const struct vram_forecast *asked, const struct vr_forecast *it, struct vr_json *json) {
    FORECAST_FACTS(VR_FACT_JSON)
}

enum vram_status vram_forecast_json(const struct vram_forecast *asked, vram_write write, void *user, struct vram_forecast_result *result,
                                    struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, asked && write);
    for (size_t i = 0; i < asked->count && i < VRAM_FORECAST_MOST; i++) VR_REQUIRE_OR_FAIL(error, asked->recording[i]);
    struct vr_forecast forecast;
    struct vr_text text = {0};
    struct vr_json json;
    VR_TRY(vr_forecast_make(asked, &forecast, error));
    vr_json_init(&json, &text, true);
    vr_json_object(&json, NULL);
    put_forecast_json(asked, &forecast, &json);
    vr_json_object_end(&json);
    const enum vram_status status = vr_text_hand_over(&text, write, user);
    vr_text_release(&text);
    if (status == VRAM_OK && result != NULL) *result = forecast.result;
    vr_forecast_release(&forecast);
    return status;
}
