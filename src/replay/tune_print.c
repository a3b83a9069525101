// tune_print.c: what a search for settings found, as JSON and for people.
#include <inttypes.h>

#include "base/json.h"
#include "replay/print.h"
#include "vram/tune.h"

enum { MOST_ROWS = 10 };

// --- JSON -------------------------------------------------------------------------------------------------------------------
static void setting_json(struct vr_json *json, const char *key, const struct vram_tune_setting *setting) {
    vr_json_object(json, key);
    vr_json_string(json, "conf", setting->conf);
    vr_json_bool(json, "today", setting->today);
    vr_json_bool(json, "fits", setting->fits);
    if (setting->needed_bytes == 0)
        vr_json_null(json, "needed_bytes");
    else
        vr_json_u64(json, "needed_bytes", setting->needed_bytes);
    vr_json_u64(json, "peak_active_bytes", setting->peak_active_bytes);
    vr_json_u64(json, "peak_reserved_bytes", setting->peak_reserved_bytes);
    vr_json_u64(json, "driver_calls", setting->driver_calls);
    vr_json_double(json, "driver_time_ms", (double)setting->driver_time_ns / 1e6);
    vr_json_u64(json, "retries", setting->retries);
    vr_json_object_end(json);
}

enum vram_status vram_tune_json(const struct vram_tune_result *result, const char *file, vram_write write, void *user) {
    struct vr_text text = {0};
    struct vr_json json;
    vr_json_init(&json, &text, true);
    vr_json_object(&json, NULL);
    vr_json_string(&json, "file", file);
    if (result->memory_bytes == 0)
        vr_json_null(&json, "memory_bytes");
    else
        vr_json_u64(&json, "memory_bytes", result->memory_bytes);
    vr_json_u64(&json, "runs", result->runs);
    vr_json_u64(&json, "devices", result->devices);
    vr_json_u64(&json, "contradictions", result->contradictions);
    setting_json(&json, "best", &result->settings[result->best]);
    if (result->cheaper == VRAM_TUNE_NONE)
        vr_json_null(&json, "cheaper");
    else
        setting_json(&json, "cheaper", &result->settings[result->cheaper]);
    vr_json_array(&json, "settings");
    for (size_t i = 0; i < result->setting_count; i++) setting_json(&json, NULL, &result->settings[i]);
    vr_json_array_end(&json);
    vr_json_object_end(&json);
    return vr_print_hand_over(&text, write, user);
}

// --- for people -----------------------------------------------------------------------------------------------------------------
static bool is_reference(const struct vram_tune_setting *setting) {
    return setting->today || setting->conf[0] == '\0' || strcmp(setting->conf, "expandable_segments:True") == 0 ||
           strcmp(setting->conf, "max_split_size_mb:128") == 0;
}

// Options that change nothing are not worth a row.
static bool same_outcome(const struct vram_tune_setting *a, const struct vram_tune_setting *b) {
    return a->needed_bytes == b->needed_bytes && a->peak_reserved_bytes == b->peak_reserved_bytes && a->driver_calls == b->driver_calls;
}

static bool is_shown(const struct vram_tune_result *result, const size_t *rows, size_t count, size_t index) {
    for (size_t i = 0; i < count; i++) {
        if (rows[i] == index || same_outcome(&result->settings[rows[i]], &result->settings[index])) return true;
    }
    return false;
}

// Which settings are shown: the references, the best, the cheaper one, and the next best while there is room. By what they need.
static size_t select_rows(const struct vram_tune_result *result, size_t *rows) {
    size_t count = 0;
    for (size_t i = 0; i < result->setting_count && count < MOST_ROWS; i++) {
        if (is_reference(&result->settings[i]) || i == result->best || i == result->cheaper) rows[count++] = i;
    }
    while (count < MOST_ROWS) {
        size_t next = VRAM_TUNE_NONE;
        for (size_t i = 0; i < result->setting_count; i++) {
            const struct vram_tune_setting *setting = &result->settings[i];
            if (setting->needed_bytes == 0 || is_shown(result, rows, count, i)) continue;
            if (next == VRAM_TUNE_NONE || setting->needed_bytes < result->settings[next].needed_bytes) next = i;
        }
        if (next == VRAM_TUNE_NONE) break;
        rows[count++] = next;
    }
    for (size_t i = 1; i < count; i++) {
        for (size_t j = i; j > 0 && result->settings[rows[j]].needed_bytes < result->settings[rows[j - 1]].needed_bytes; j--) {
            const size_t moved = rows[j];
            rows[j] = rows[j - 1];
            rows[j - 1] = moved;
        }
    }
    return count;
}

static const char *name_of(const struct vram_tune_setting *setting) { return setting->conf[0] == '\0' ? "defaults" : setting->conf; }

static void setting_row(struct vr_table *table, const struct vram_tune_result *result, size_t index, uint64_t most,
                        const struct vram_style *style) {
    const struct vram_tune_setting *setting = &result->settings[index];
    struct vr_text bar = {0};
    vr_text_bar(&bar, style, setting->needed_bytes, most, 10);
    vr_table_cell(table, "%s", index == result->best ? ">" : "");
    vr_table_cell(table, "%s%s", name_of(setting), setting->today ? " (today)" : "");
    vr_table_cell_bytes(table, vr_text_string(&bar), bar.length);
    if (setting->needed_bytes == 0)
        vr_table_cell(table, "-");
    else
        vr_table_cell(table, "%s", vr_bytes(setting->needed_bytes).text);
    vr_table_cell(table, "%s", vr_bytes(setting->peak_reserved_bytes).text);
    vr_table_cell(table, "%s", vr_count(setting->driver_calls).text);
    vr_table_cell(table, "%s", vr_duration_ns(setting->driver_time_ns).text);
    vr_table_cell(table, "%s", vr_count(setting->retries).text);
    vr_table_cell(table, "%s", result->memory_bytes == 0 ? "" : setting->fits ? "fits" : "OUT OF MEMORY");
    vr_text_release(&bar);
}

static void settings_table(struct vr_text *text, const struct vram_style *style, const struct vram_tune_result *result) {
    static const struct vr_table_column columns[] = {
        {"", VR_LEFT, VR_GREEN, false},           {"setting", VR_LEFT, VR_BOLD, true},  {"", VR_LEFT, VR_BLUE, false},
        {"needs", VR_RIGHT, VR_BOLD, false},      {"holds", VR_RIGHT, VR_PLAIN, false}, {"calls", VR_RIGHT, VR_DIM, false},
        {"driver time", VR_RIGHT, VR_DIM, false}, {"retries", VR_RIGHT, VR_DIM, false}, {"", VR_LEFT, VR_PLAIN, false},
    };
    size_t rows[MOST_ROWS];
    const size_t count = select_rows(result, rows);
    struct vr_table table = {0};
    vr_table_init(&table, columns, VR_COUNT_OF(columns));
    for (size_t i = 0; i < count; i++) setting_row(&table, result, rows[i], result->settings[rows[count - 1]].needed_bytes, style);
    vr_table_print(&table, text, style, 2);
    vr_table_release(&table);
}

static void line_to_paste(struct vr_text *text, const struct vram_style *style, const struct vram_tune_setting *setting) {
    vr_text_puts(text, "\n    ");
    vr_text_colour(text, style, VR_BOLD);
    if (setting->conf[0] == '\0')
        vr_text_puts(text, "unset PYTORCH_CUDA_ALLOC_CONF");
    else
        vr_text_printf(text, "PYTORCH_CUDA_ALLOC_CONF=%s", setting->conf);
    vr_text_colour(text, style, VR_PLAIN);
    vr_text_puts(text, "\n\n");
}

static void compare_with_today(struct vr_text *text, const struct vram_tune_setting *best, const struct vram_tune_setting *today) {
    const uint64_t less = today->needed_bytes > best->needed_bytes ? today->needed_bytes - best->needed_bytes : 0;
    vr_text_printf(text, "  It needs %s per device", vr_bytes(best->needed_bytes).text);
    if (today->needed_bytes == 0) {
        vr_text_puts(text, "; today's setting was not seen to complete in any memory.\n");
    } else if (less == 0) {
        vr_text_puts(text, ", as today's setting does: there is nothing to gain.\n");
    } else {
        vr_text_printf(text, ", %s (%s) less than today's setting%s.\n", vr_bytes(less).text, vr_percent(less, today->needed_bytes).text,
                       less < best->needed_bytes / 100 ? ": hardly worth a change" : "");
    }
    const uint64_t holes = best->needed_bytes > best->peak_active_bytes ? best->needed_bytes - best->peak_active_bytes : 0;
    vr_text_printf(text, "  %s of that is live at the peak; no setting can do with less. ", vr_bytes(best->peak_active_bytes).text);
    vr_text_printf(text, "%s are lost in holes%s.\n", vr_bytes(holes).text,
                   best->needed_bytes > best->peak_reserved_bytes ? " or asked for by requests that failed in the recording" : "");
}

static void verdict(struct vr_text *text, const struct vram_style *style, const struct vram_tune_result *result) {
    const struct vram_tune_setting *best = &result->settings[result->best], *today = &result->settings[0];
    if (best->needed_bytes == 0) {
        vr_text_puts(text, "\n  No setting was seen to complete.\n");
        return;
    }
    if (result->memory_bytes != 0 && !best->fits) {
        const uint64_t demand = best->peak_active_bytes > result->memory_bytes ? best->peak_active_bytes - result->memory_bytes : 0;
        vr_text_printf(text, "\n  Nothing fits in %s: the least is %s", vr_bytes(result->memory_bytes).text,
                       vr_bytes(best->needed_bytes).text);
        if (demand != 0) vr_text_printf(text, "; what is live at the peak alone exceeds it by %s", vr_bytes(demand).text);
        vr_text_puts(text, ". The setting that comes nearest:\n");
    } else if (result->memory_bytes != 0) {
        vr_text_printf(text, "\n  It fits in %s%s:\n", vr_bytes(result->memory_bytes).text,
                       today->fits ? ", also with today's setting; the least driver time has" : ", with");
    } else
        vr_text_puts(text, "\n  The least memory is needed with\n");
    line_to_paste(text, style, best);
    compare_with_today(text, best, today);
    if (result->cheaper != VRAM_TUNE_NONE && result->memory_bytes == 0) {
        const struct vram_tune_setting *cheaper = &result->settings[result->cheaper];
        vr_text_printf(text, "  Nearly as little, %s, with less driver time (%s instead of %s): %s\n", vr_bytes(cheaper->needed_bytes).text,
                       vr_duration_ns(cheaper->driver_time_ns).text, vr_duration_ns(best->driver_time_ns).text, name_of(cheaper));
    }
}

enum vram_status vram_tune_text(const struct vram_tune_result *result, const char *file, const struct vram_style *style, vram_write write,
                                void *user) {
    static const struct vram_style plain = {0};
    struct vr_text text = {0};
    if (style == NULL) style = &plain;
    vr_print_title(&text, style, file);
    vr_text_printf(&text, "%s settings tried in %s replays of %s device histor%s\n", vr_count(result->setting_count).text,
                   vr_count(result->runs).text, vr_count(result->devices).text, result->devices == 1 ? "y" : "ies");
    if (result->contradictions != 0)
        vr_text_printf(&text, "  left out: %s whose history contradicts its final state\n", vr_count(result->contradictions).text);
    settings_table(&text, style, result);
    verdict(&text, style, result);
    vr_text_colour(&text, style, VR_DIM);
    vr_text_puts(
        &text, "\n  needs: the smallest memory in which the recorded requests succeed; holds: reserved at the peak with memory to spare;\n"
               "  driver time: by the simulated driver's prices. A replay knows nothing of memory outside the allocator (context,\n"
               "  libraries, other processes: leave room for them), nor what the program would do differently.\n");
    vr_text_colour(&text, style, VR_PLAIN);
    return vr_print_hand_over(&text, write, user);
}
