// Prints the result of a search for settings, as JSON and as text.
#include <inttypes.h>
#include <string.h>

#include "base/json_rows.h"
#include "present/text_parts.h"
#include "vram/replay.h"

enum { MOST_ROWS = 10 };

// --- JSON -------------------------------------------------------------------------------------------------------------------
#define TUNE_SETTING_FACTS(X)                                                                                                              \
    X(TEXT, "conf", it->conf, ALWAYS, "option string; \"\": the defaults")                                                                 \
    X(BOOL, "today", it->today, ALWAYS, "this setting is in the recording")                                                                \
    X(BOOL, "inferred", it->inferred, ALWAYS, "today's setting, inferred from the segments because the recording has no settings")         \
    X(BOOL, "fits", it->fits, ALWAYS, "completes in `--memory`; true without that option")                                                 \
    X(BOOL, "fits_with_room", it->fits_with_room, ALWAYS, "completes in 15/16 of `--memory`; true without that option")                    \
    X(U64, "needed_bytes", it->needed_bytes, NULL_IF_EMPTY, "smallest memory per device in which it completes; null: not found")           \
    X(U64, "peak_active_bytes", it->peak_active_bytes, ALWAYS, "with memory to spare: peak of live blocks")                                \
    X(U64, "peak_reserved_bytes", it->peak_reserved_bytes, ALWAYS, "with memory to spare: peak of reserved bytes")                         \
    X(U64, "driver_calls", it->driver_calls, ALWAYS, "driver calls that allocate or free memory")                                          \
    X(MS, "driver_time_ms", it->driver_time_ns, ALWAYS, "their estimated time")                                                            \
    X(U64, "retries", it->retries, ALWAYS, "releases of the whole cache because nothing fit")

static void put_tune_setting(struct vr_json *json, const char *name, const struct vram_tune_setting *it) {
    vr_json_object(json, name);
    TUNE_SETTING_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}

static void put_tune_settings(struct vr_json *json, const char *key, const struct vram_tune_result *result, bool beyond) {
    vr_json_array(json, key);
    for (size_t i = 0; i < result->setting_count; i++) {
        if (result->settings[i].beyond == beyond) put_tune_setting(json, NULL, &result->settings[i]);
    }
    vr_json_array_end(json);
}

// Returns whether the index is a setting other than today's. An index that was not searched for is out of range.
static bool is_another(const struct vram_tune_result *result, size_t index) { return index != 0 && index < result->setting_count; }

#define TUNE_FACTS(X)                                                                                                                      \
    X(TEXT, "file", file, ALWAYS, "name of the recording, or the number of recordings")                                                    \
    X(U64, "memory_bytes", it->memory_bytes, NULL_IF_EMPTY, "`--memory`; null without that option")                                        \
    X(U64, "runs", it->runs, ALWAYS, "replays made")                                                                                       \
    X(U64, "devices", it->devices, ALWAYS, "number of replayed device histories")                                                          \
    X(U64, "contradictions", it->contradictions, ALWAYS, "number of device histories left out because history and final state disagree")   \
    X(TEXT, "start", it->start == VRAM_WHATIF_RECORDED ? "recorded" : "cold", ALWAYS,                                                      \
      "`recorded`: replayed from the memory state at the start of the recording; `cold`: from an empty cache")                             \
    X(U64, "live_bytes", it->live_bytes, ALWAYS, "highest peak of allocated bytes on any device; no setting can go below it")              \
    X(U64, "active_bytes", it->active_bytes, ALWAYS, "the same, including freed memory that was waiting for other streams")                \
    X(OBJECT, "best", put_tune_setting(json, key, &it->settings[it->best]), ALWAYS,                                                        \
      "among the settings that neither need nor hold more than today's, the one that needs the least; with `--memory`: today's if it "     \
      "fits, else one "                                                                                                                    \
      "that does, else the closest (`fits` is then false)")                                                                                \
    X(OBJECT, "cheaper", put_tune_setting(json, key, &it->settings[it->cheaper]), NULL_UNLESS(it->cheaper != VRAM_TUNE_NONE),              \
      "an alternative that needs at most 1 % more memory and less driver time")                                                            \
    X(OBJECT, "holds_less", put_tune_setting(json, key, &it->settings[it->holds_less]), NULL_UNLESS(is_another(it, it->holds_less)),       \
      "an alternative that holds at least a tenth less with memory to spare; null with `--memory`")                                        \
    X(ARRAY, "settings", put_tune_settings(json, key, it, false), ALWAYS,                                                                  \
      "all settings tried, in order: today's first, then the defaults")                                                                    \
    X(ARRAY, "beyond", put_tune_settings(json, key, it, true), ALWAYS,                                                                     \
      "more settings: today's plus one option that PyTorch lacks; these are never `best` or `cheaper`")

enum vram_status vram_tune_json(const struct vram_tune_result *it, const char *file, vram_write write, void *user) {
    VR_REQUIRE(it && write);
    struct vr_text text = {0};
    struct vr_json writer, *json = &writer;
    vr_json_init(json, &text, true);
    vr_json_object(json, NULL);
    TUNE_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
    return vr_text_finish(&text, write, user);
}

// --- text -----------------------------------------------------------------------------------------------------------------------
static bool is_reference(const struct vram_tune_setting *setting) {
    return setting->today || setting->conf[0] == '\0' || strcmp(setting->conf, "expandable_segments:True") == 0 ||
           strcmp(setting->conf, "max_split_size_mb:128") == 0;
}

// Returns whether two settings have the same outcome. Such rows are left out.
static bool same_outcome(const struct vram_tune_setting *a, const struct vram_tune_setting *b) {
    return a->needed_bytes == b->needed_bytes && a->peak_reserved_bytes == b->peak_reserved_bytes && a->driver_calls == b->driver_calls;
}

static bool is_shown(const struct vram_tune_result *result, const size_t *rows, size_t count, size_t index) {
    for (size_t i = 0; i < count; i++) {
        if (rows[i] == index || same_outcome(&result->settings[rows[i]], &result->settings[index])) return true;
    }
    return false;
}

// Selects the settings to show: the references, the best, the cheaper one, the one that holds less, and then those that need the least.
// Sorts them by need.
static size_t select_rows(const struct vram_tune_result *result, size_t *rows) {
    size_t count = 0;
    for (size_t i = 0; i < result->setting_count && count < MOST_ROWS; i++) {
        const bool wanted =
            is_reference(&result->settings[i]) && !(i != 0 && strcmp(result->settings[i].conf, result->settings[0].conf) == 0);
        if ((wanted || i == result->best || i == result->cheaper || (is_another(result, result->holds_less) && i == result->holds_less)) &&
            !result->settings[i].beyond)
            rows[count++] = i;
    }
    while (count < MOST_ROWS) {
        size_t next = VRAM_TUNE_NONE;
        for (size_t i = 0; i < result->setting_count; i++) {
            const struct vram_tune_setting *setting = &result->settings[i];
            if (setting->beyond || setting->needed_bytes == 0 || is_shown(result, rows, count, i)) continue;
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

static const char *setting_name(const struct vram_tune_setting *setting) { return setting->conf[0] == '\0' ? "defaults" : setting->conf; }

// The columns of numbers.
enum number { NEEDS, HOLDS, CALLS, TIME, RETRIES };

static struct vr_formatted setting_number(const struct vram_tune_setting *setting, enum number number) {
    static const struct vr_formatted unknown = {"-"};
    switch (number) {
    case NEEDS: return setting->needed_bytes == 0 ? unknown : vr_bytes(setting->needed_bytes);
    case HOLDS: return vr_bytes(setting->peak_reserved_bytes);
    case CALLS: return vr_count(setting->driver_calls);
    case TIME: return vr_duration_ns(setting->driver_time_ns);
    case RETRIES: return vr_count(setting->retries);
    }
    return unknown;
}

enum { MARK, NAME, NUMBERS, SHOWN = 4, FITS = NUMBERS + SHOWN, INDENT = 2, MARK_COLUMNS = 1, GAP = 2, FITS_COLUMNS = 4 };

// The columns of the table. With unlimited memory nothing is retried and everything fits; with a limit, "holds" is meaningless.
static const struct tune_layout {
    enum number numbers[SHOWN];
    size_t count; // number of columns
    struct vr_table_column columns[FITS + 1];
    const char *legend;
} layouts[] = {
    {{NEEDS, HOLDS, CALLS, TIME},
     FITS,
     {{"", VR_LEFT, VR_GREEN, false},
      {"setting", VR_LEFT, VR_BOLD, true},
      {"needs", VR_RIGHT, VR_BOLD, false},
      {"holds", VR_RIGHT, VR_PLAIN, false},
      {"calls", VR_RIGHT, VR_DIM, false},
      {"time", VR_RIGHT, VR_DIM, false}},
     "holds: peak of reserved memory, with memory to spare"},
    {{NEEDS, CALLS, TIME, RETRIES},
     FITS + 1,
     {{"", VR_LEFT, VR_GREEN, false},
      {"setting", VR_LEFT, VR_BOLD, true},
      {"needs", VR_RIGHT, VR_BOLD, false},
      {"calls", VR_RIGHT, VR_DIM, false},
      {"time", VR_RIGHT, VR_DIM, false},
      {"retries", VR_RIGHT, VR_DIM, false},
      {"fits", VR_LEFT, VR_BOLD, false}},
     "retries: releases of the whole cache because nothing fit"},
};

static const struct tune_layout *layout_of(const struct vram_tune_result *result) { return &layouts[result->memory_bytes != 0]; }

// Returns the width that the other cells leave for the settings' names.
static size_t room_for_names(const struct vram_tune_result *result, const size_t *rows, size_t count, const struct vram_style *style) {
    const struct tune_layout *layout = layout_of(result);
    size_t others = INDENT + MARK_COLUMNS + GAP + (layout->count > FITS ? GAP + FITS_COLUMNS : 0);
    for (size_t n = 0; n < SHOWN; n++) {
        size_t width = strlen(layout->columns[NUMBERS + n].title);
        for (size_t i = 0; i < count; i++) {
            const size_t own = strlen(setting_number(&result->settings[rows[i]], layout->numbers[n]).text);
            if (own > width) width = own;
        }
        others += GAP + width;
    }
    return vr_style_columns(style) > others ? vr_style_columns(style) - others : 0;
}

// Returns the number of bytes of the name that fit into one line: whole options with their commas, at least one.
static size_t piece_of(const char *name, size_t room) {
    size_t piece = 0;
    do piece += strcspn(name + piece, ",") + (name[piece + strcspn(name + piece, ",")] == ',');
    while (name[piece] != '\0' && piece + strcspn(name + piece, ",") + 1 <= room);
    return piece;
}

// Adds the rows of a setting. A name wider than `room` continues in further rows that are otherwise empty.
static void setting_rows(struct vr_table *table, const struct vram_tune_result *result, size_t index, size_t room) {
    const struct vram_tune_setting *setting = &result->settings[index];
    const struct tune_layout *layout = layout_of(result);
    struct vr_text name = {0};
    vr_text_printf(&name, "%s%s", setting_name(setting),
                   setting->inferred ? " (today, inferred from the segments)"
                   : setting->today  ? " (today)"
                                     : "");
    const char *rest = vr_text_string(&name);
    for (bool first = true; first || *rest != '\0'; first = false) {
        const size_t piece = piece_of(rest, room);
        vr_table_cell(table, "%s", first && index == result->best ? ">" : "");
        vr_table_cell_bytes(table, rest, piece);
        for (size_t n = 0; n < SHOWN; n++) vr_table_cell(table, "%s", first ? setting_number(setting, layout->numbers[n]).text : "");
        if (layout->count > FITS) vr_table_cell(table, "%s", !first ? "" : setting->fits ? "yes" : "no");
        rest += piece;
    }
    vr_text_release(&name);
}

static void settings_table(struct vr_text *text, const struct vram_style *style, const struct vram_tune_result *result) {
    size_t rows[MOST_ROWS];
    const size_t count = select_rows(result, rows), room = room_for_names(result, rows, count, style);
    struct vr_table table = {0};
    vr_table_init(&table, layout_of(result)->columns, layout_of(result)->count);
    for (size_t i = 0; i < count; i++) setting_rows(&table, result, rows[i], room);
    vr_table_print(&table, text, style, INDENT);
    vr_table_release(&table);
}

static void line_to_paste(struct vr_text *text, const struct vram_style *style, const char *variable,
                          const struct vram_tune_setting *setting) {
    vr_text_puts(text, "\n    ");
    vr_text_colour(text, style, VR_BOLD);
    if (setting->conf[0] == '\0')
        vr_text_printf(text, "unset %s", variable);
    else
        vr_text_printf(text, "%s=%s", variable, setting->conf);
    vr_text_colour(text, style, VR_PLAIN);
    vr_text_puts(text, "\n\n");
}

// Returns whether today's setting needs at most 1 % more than the best, so a change is not worthwhile.
static bool hardly_gains(const struct vram_tune_setting *best, const struct vram_tune_setting *today) {
    return today->needed_bytes != 0 && today->needed_bytes <= best->needed_bytes + best->needed_bytes / 100;
}

// Prints "  It needs 18.7 GiB per device, 6.8 GiB (26.6 %) less than today's."
static void print_less(struct vr_text *text, const char *verb, uint64_t bytes, uint64_t today, const char *where) {
    vr_text_printf(text, "  It %s %s%s", verb, vr_bytes(bytes).text, where);
    if (today > bytes)
        vr_text_printf(text, ", %s (%s) less than today's", vr_bytes(today - bytes).text, vr_percent(today - bytes, today).text);
    vr_text_puts(text, ".\n");
}

static void compare_with_today(struct vr_text *text, const struct vram_tune_setting *best, const struct vram_tune_setting *today) {
    print_less(text, "needs", best->needed_bytes, today->needed_bytes, " per device");
    if (today->needed_bytes == 0)
        vr_text_puts(text, "  Today's setting did not complete in any memory size tried.\n");
    else if (best != today)
        print_less(text, "holds", best->peak_reserved_bytes, today->peak_reserved_bytes, " with memory to spare");
}

// Prints the part of the need that is live memory, which no setting can reduce, and the other part.
static void print_floor(struct vr_text *text, const struct vram_tune_result *result, const struct vram_tune_setting *setting) {
    const uint64_t live = result->live_bytes, active = result->active_bytes > live ? result->active_bytes : live;
    const uint64_t rest = setting->needed_bytes > active ? setting->needed_bytes - active : 0;
    if (live == 0 || live > setting->needed_bytes) return;
    vr_text_printf(text, "  %s is live at the peak; no setting can go below that.\n", vr_bytes(live).text);
    if (active != live)
        vr_text_printf(text, "  %s more was freed but was waiting for other streams (see vram report).\n", vr_bytes(active - live).text);
    if (rest == 0) return;
    vr_text_printf(text, "  %s is rounding and fragmentation%s.\n", vr_bytes(rest).text,
                   setting->needed_bytes > setting->peak_reserved_bytes ? ", or was requested by calls that failed" : "");
}

static void put_bold(struct vr_text *text, const struct vram_style *style, const char *sentence) {
    vr_text_puts(text, "\n  ");
    vr_text_colour(text, style, VR_BOLD);
    vr_text_puts(text, sentence);
    vr_text_colour(text, style, VR_PLAIN);
    vr_text_puts(text, "\n");
}

// Prints the memory that today's setting reserves beyond its need, which other programs cannot use.
static void print_kept(struct vr_text *text, const struct vram_tune_setting *today) {
    if (today->peak_reserved_bytes <= today->needed_bytes + today->needed_bytes / 10) return;
    vr_text_printf(text, "  Today's setting holds %s with memory to spare: ", vr_bytes(today->peak_reserved_bytes).text);
    vr_text_printf(text, "%s more than\n  it needs, which other programs cannot use.\n",
                   vr_bytes(today->peak_reserved_bytes - today->needed_bytes).text);
}

// Returns the setting that needs the least, which is not the best because it holds more. NULL if none needs noticeably less than today's
// setting.
static const struct vram_tune_setting *find_trade(const struct vram_tune_result *result) {
    const struct vram_tune_setting *today = &result->settings[0], *trade = NULL;
    for (size_t i = 0; i < result->setting_count; i++) {
        const struct vram_tune_setting *setting = &result->settings[i];
        if (setting->beyond || setting->needed_bytes == 0 || hardly_gains(setting, today)) continue;
        if (trade == NULL || setting->needed_bytes < trade->needed_bytes) trade = setting;
    }
    return trade;
}

static void print_trade(struct vr_text *text, const struct vram_tune_setting *today, const struct vram_tune_setting *trade) {
    vr_text_printf(text, "  %s\n  needs only %s, but holds %s with memory to spare", setting_name(trade),
                   vr_bytes(trade->needed_bytes).text, vr_bytes(trade->peak_reserved_bytes).text);
    vr_text_printf(text, ",\n  %s more than today's.\n", vr_bytes(trade->peak_reserved_bytes - today->peak_reserved_bytes).text);
}

static void nothing_to_change(struct vr_text *text, const struct vram_style *style, const struct vram_tune_result *result) {
    const struct vram_tune_setting *best = &result->settings[result->best], *today = &result->settings[0];
    const struct vram_tune_setting *trade = find_trade(result);
    put_bold(text, style,
             trade == NULL ? "Today's setting is within 1 %: nothing worth changing."
                           : "No setting needs less without holding more: nothing worth changing.");
    vr_text_printf(text, "  It needs %s per device", vr_bytes(today->needed_bytes).text);
    if (today->needed_bytes > best->needed_bytes)
        vr_text_printf(text, "; %s less with\n  %s", vr_bytes(today->needed_bytes - best->needed_bytes).text, setting_name(best));
    vr_text_puts(text, ".\n");
    if (trade != NULL && trade->peak_reserved_bytes > today->peak_reserved_bytes) print_trade(text, today, trade);
    print_kept(text, today);
    print_floor(text, result, today);
}

// Prints the setting that holds less although no setting needs less.
static void hold_less(struct vr_text *text, const struct vram_style *style, const struct vram_tune_result *result) {
    const struct vram_tune_setting *today = &result->settings[0], *less = &result->settings[result->holds_less];
    vr_text_printf(text, "\n  No setting needs less than today's, %s per device, but it holds\n", vr_bytes(today->needed_bytes).text);
    vr_text_printf(text, "  %s with memory to spare. This setting holds less:\n", vr_bytes(today->peak_reserved_bytes).text);
    line_to_paste(text, style, result->variable, less);
    compare_with_today(text, less, today);
    print_floor(text, result, less);
}

static void nothing_to_change_to_fit(struct vr_text *text, const struct vram_style *style, const struct vram_tune_result *result) {
    const struct vram_tune_setting *today = &result->settings[0];
    struct vr_text sentence = {0};
    vr_text_printf(&sentence, "It fits in %s with today's setting: nothing to change.", vr_bytes(result->memory_bytes).text);
    put_bold(text, style, vr_text_string(&sentence));
    vr_text_release(&sentence);
    vr_text_printf(text, "  It needs %s per device%s.\n", vr_bytes(today->needed_bytes).text,
                   today->fits_with_room ? "" : "; less than 1/16 of the memory is left");
    if (today->retries != 0) vr_text_printf(text, "  It releases its whole cache %s.\n", vr_counted(today->retries, "time").text);
    print_floor(text, result, today);
}

static void nothing_fits(struct vr_text *text, const struct vram_style *style, const struct vram_tune_result *result) {
    const struct vram_tune_setting *best = &result->settings[result->best];
    struct vr_text sentence = {0};
    vr_text_printf(&sentence, "Nothing fits in %s.", vr_bytes(result->memory_bytes).text);
    put_bold(text, style, vr_text_string(&sentence));
    vr_text_release(&sentence);
    vr_text_printf(text, "  %s comes closest:\n  it needs %s per device.\n", best->today ? "Today's setting" : setting_name(best),
                   vr_bytes(best->needed_bytes).text);
    print_floor(text, result, best);
    if (result->live_bytes > result->memory_bytes)
        vr_text_printf(text, "  Live memory at the peak alone exceeds it by %s.\n",
                       vr_bytes(result->live_bytes - result->memory_bytes).text);
}

static void print_cheaper(struct vr_text *text, const struct vram_tune_result *result) {
    const struct vram_tune_setting *best = &result->settings[result->best];
    if (result->cheaper == VRAM_TUNE_NONE || result->memory_bytes != 0) return;
    const struct vram_tune_setting *cheaper = &result->settings[result->cheaper];
    if (same_outcome(cheaper, &result->settings[0])) return;
    vr_text_printf(text, "  Almost as little memory, %s, with less driver time (%s instead of %s):\n  %s\n",
                   vr_bytes(cheaper->needed_bytes).text, vr_duration_ns(cheaper->driver_time_ns).text,
                   vr_duration_ns(best->driver_time_ns).text, setting_name(cheaper));
}

static void put_setting_change(struct vr_text *text, const struct vram_style *style, const struct vram_tune_result *result) {
    const struct vram_tune_setting *best = &result->settings[result->best];
    if (result->memory_bytes != 0)
        vr_text_printf(text, "\n  It does not fit in %s with today's setting, but does with\n", vr_bytes(result->memory_bytes).text);
    else
        vr_text_puts(text, "\n  This setting needs the least memory:\n");
    line_to_paste(text, style, result->variable, best);
    compare_with_today(text, best, &result->settings[0]);
    print_floor(text, result, best);
    print_cheaper(text, result);
}

static void put_tune_verdict(struct vr_text *text, const struct vram_style *style, const struct vram_tune_result *result) {
    const struct vram_tune_setting *best = &result->settings[result->best], *today = &result->settings[0];
    if (best->needed_bytes == 0)
        vr_text_puts(text, "\n  No setting completed.\n");
    else if (result->memory_bytes != 0 && today->fits)
        nothing_to_change_to_fit(text, style, result);
    else if (result->memory_bytes != 0 && !best->fits)
        nothing_fits(text, style, result);
    else if (result->memory_bytes != 0 || !hardly_gains(best, today))
        put_setting_change(text, style, result);
    else if (is_another(result, result->holds_less))
        hold_less(text, style, result);
    else
        nothing_to_change(text, style, result);
    if (result->start == VRAM_WHATIF_RECORDED) vr_text_puts(text, "  Replayed from the memory state at the start of the recording.\n");
}

// Returns whether a setting needs more than it reserves at its peak. A replay with unlimited memory requests only what the recorded program
// was granted; the smallest memory also covers the requests that failed.
static bool asks_for_more(const struct vram_tune_result *result) {
    for (size_t i = 0; i < result->setting_count; i++) {
        if (result->settings[i].needed_bytes > result->settings[i].peak_reserved_bytes) return true;
    }
    return false;
}

// Prints "300 MiB less", "2 more" or, if equal, "as much".
static void difference(struct vr_text *text, uint64_t today, uint64_t now, struct vr_formatted (*print)(uint64_t)) {
    if (today == now)
        vr_text_puts(text, "as much");
    else
        vr_text_printf(text, "%s %s", print(now < today ? today - now : now - today).text, now < today ? "less" : "more");
}

static void beyond_row(struct vr_text *text, const struct vram_tune_setting *today, const struct vram_tune_setting *setting) {
    const char *last = strrchr(setting->conf, ',');
    vr_text_printf(text, "    %s: ", last == NULL ? setting->conf : last + 1);
    if (same_outcome(today, setting)) {
        vr_text_puts(text, "changes nothing here\n");
        return;
    }
    const bool paged = strncmp(last == NULL ? setting->conf : last + 1, "paged:", 6) == 0;
    if (paged && today->needed_bytes != 0 && setting->needed_bytes != 0 && today->needed_bytes != setting->needed_bytes) {
        vr_text_printf(text, "%s instead of ", setting_number(setting, NEEDS).text);
        vr_text_printf(text, "%s", setting_number(today, NEEDS).text);
    } else if (today->needed_bytes == 0 || setting->needed_bytes == 0) {
        vr_text_printf(text, "needs %s", setting_number(setting, NEEDS).text);
    } else {
        vr_text_puts(text, "needs ");
        difference(text, today->needed_bytes, setting->needed_bytes, vr_bytes);
    }
    vr_text_puts(text, ", holds ");
    difference(text, today->peak_reserved_bytes, setting->peak_reserved_bytes, vr_bytes);
    vr_text_puts(text, paged ? ",\n      driver calls: " : ", driver calls: ");
    difference(text, today->driver_calls, setting->driver_calls, vr_count);
    if (paged) {
        vr_text_printf(text, ", driver time %s instead of ", setting_number(setting, TIME).text);
        vr_text_printf(text, "%s;\n      a replay cannot see cross-stream waits", setting_number(today, TIME).text);
    }
    vr_text_puts(text, "\n");
}

static void beyond_pytorch(struct vr_text *text, const struct vram_tune_result *result) {
    bool any = false;
    for (size_t i = 0; i < result->setting_count; i++) {
        if (!result->settings[i].beyond) continue;
        if (!any) vr_text_puts(text, "\n  With vram's allocator instead of PyTorch's, and one extra option:\n");
        any = true;
        beyond_row(text, &result->settings[0], &result->settings[i]);
    }
}

enum vram_status vram_tune_text(const struct vram_tune_result *result, const char *file, const struct vram_style *style, vram_write write,
                                void *user) {
    VR_REQUIRE(result && write);
    static const struct vram_style plain = {0};
    struct vr_text text = {0};
    if (style == NULL) style = &plain;
    vr_text_title(&text, style, file);
    vr_text_printf(&text, "%s tried in %s of %s device histor%s\n", vr_counted(result->setting_count, "setting").text,
                   vr_counted(result->runs, "replay").text, vr_count(result->devices).text, result->devices == 1 ? "y" : "ies");
    if (result->contradictions != 0)
        vr_text_printf(&text, "  left out: %s whose history cannot be replayed; see `vram replay`\n",
                       vr_count(result->contradictions).text);
    settings_table(&text, style, result);
    const size_t prose = text.length;
    put_tune_verdict(&text, style, result);
    beyond_pytorch(&text, result);
    vr_text_colour(&text, style, VR_DIM);
    vr_text_printf(&text,
                   "\n  needs: smallest memory in which the recorded requests succeed\n  %s%s\n"
                   "  time: estimated driver time\n"
                   "  A replay cannot see memory outside the allocator (context, libraries,\n"
                   "  other processes): leave room for it.\n",
                   layout_of(result)->legend,
                   result->memory_bytes == 0 && asks_for_more(result) ? ",\n         without the requests that failed in the recording"
                                                                      : "");
    vr_text_colour(&text, style, VR_PLAIN);
    vr_text_fold(&text, style, prose);
    return vr_text_finish(&text, write, user);
}
