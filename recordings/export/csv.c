// Comma-separated values: RMM's log, and all columns of the events.
#include <inttypes.h>

#include "analyze/lifetimes.h"
#include "analyze/sites.h"
#include "export/export.h"
#include "model/recording.h"

// --- RMM's log

#define DAY_US ((int64_t)86400 * 1000000)

static void put_csv_row(struct vr_output *out, uint32_t thread, int64_t time_us, const char *action, uint64_t address, uint64_t size_bytes,
                        uint64_t stream) {
    const int64_t in_day = (time_us % DAY_US + DAY_US) % DAY_US, seconds = in_day / 1000000;
    vr_text_printf(&out->text, "%" PRIu32 ",%02d:%02d:%02d.%06d,%s,0x%" PRIx64 ",%" PRIu64 ",0x%" PRIx64, thread, (int)(seconds / 3600),
                   (int)(seconds / 60 % 60), (int)(seconds % 60), (int)(in_day % 1000000), action, address, size_bytes, stream);
}

static void end_row(struct vr_output *out, const struct vr_exporting *from, const struct vr_view *view) {
    if (from->views->count > 1) vr_text_printf(&out->text, ",%" PRIu32, view->device);
    vr_text_puts(&out->text, "\n");
}

// Returns the stream of a block from before the history: known if its segment still exists.
static uint64_t stream_at(const struct vr_view *view, uint64_t address) {
    const struct vr_segments *segments = &view->model->segments;
    for (size_t i = 0; i < view->segment_count; i++) {
        const size_t row = view->segments[i];
        if (address - segments->address[row] < segments->total_bytes[row]) return segments->stream[row];
    }
    return 0;
}

// Writes the allocations from before the history, because a replay of the log needs them.
static enum vram_status put_start(const struct vr_exporting *from, const struct vr_view *view, struct vr_output *out) {
    struct vr_lifetimes lifetimes;
    const int64_t time_us = view->history->count == 0 ? 0 : vr_export_time_us(view->history, 0);
    VR_TRY(vr_lifetimes_build(view, VR_LIFETIME_ALLOCATED, NULL, 0, &lifetimes));
    for (size_t i = 0; i < lifetimes.start_count && vr_output_flow(out); i++) {
        const uint64_t address = lifetimes.address[i];
        put_csv_row(out, 0, time_us, "allocate", address, lifetimes.size_bytes[i], stream_at(view, address));
        end_row(out, from, view);
    }
    vr_lifetimes_release(&lifetimes);
    return VRAM_OK;
}

static const char *rmm_action(uint8_t action, uint32_t actions) {
    if (action == VR_ACTION_ALLOC) return "allocate";
    if (action == VR_ACTION_OOM) return "allocate failure";
    return vr_export_frees(action, actions) ? "free" : NULL;
}

enum vram_status vr_export_rmm(const struct vr_exporting *from, struct vr_output *out) {
    vr_text_puts(&out->text,
                 from->views->count > 1 ? "Thread,Time,Action,Pointer,Size,Stream,Device\n" : "Thread,Time,Action,Pointer,Size,Stream\n");
    for (size_t v = 0; v < from->views->count; v++) {
        const struct vr_view *view = &from->views->view[v];
        const struct vr_history *history = view->history;
        const uint32_t actions = vr_export_actions(history);
        VR_TRY(put_start(from, view, out));
        for (size_t i = 0; i < history->count && vr_output_flow(out); i++) {
            const char *action = rmm_action(history->action[i], actions);
            if (action == NULL) continue;
            const uint64_t address = history->action[i] == VR_ACTION_OOM ? 0 : history->address[i];
            put_csv_row(out, history->thread[i], vr_export_time_us(history, i), action, address, history->size_bytes[i],
                        vr_entry_stream(history, i));
            end_row(out, from, view);
        }
    }
    return VRAM_OK;
}

// --- all columns

// Writes a text, quoted if necessary, with quotes doubled. Puts an apostrophe before a text whose first character would make a spreadsheet
// treat it as a formula.
static void put_csv_text(struct vr_output *out, const char *text) {
    struct vr_text *cell = &out->text;
    const bool formula = text[0] != '\0' && strchr("=+-@\t\r", text[0]) != NULL;
    if (!formula && strpbrk(text, ",\"\r\n") == NULL) {
        vr_text_puts(cell, text);
        return;
    }
    vr_text_puts(cell, formula ? "\"'" : "\"");
    for (const char *quote; (quote = strchr(text, '"')) != NULL; text = quote + 1) {
        vr_text_append(cell, text, (size_t)(quote - text));
        vr_text_puts(cell, "\"\"");
    }
    vr_text_puts(cell, text);
    vr_text_puts(cell, "\"");
}

// Caches the text of the last stack: "file:line:function" from the outermost frame to the innermost, separated by semicolons.
struct stack_text {
    struct vr_text text;
    uint32_t stack;
    struct vr_sites sites;
    struct vr_text site;
};

static void put_csv_frame(struct vr_text *out, const struct vr_model *model, uint32_t frame) {
    vr_text_printf(out, "%s:%" PRId64 ":%s", vr_model_string(model, model->frames.filename[frame]), model->frames.line[frame],
                   vr_model_string(model, model->frames.name[frame]));
}

// Returns the text of the stack's call site. Call before text_of_stack() with the same stack.
static const char *text_of_site(struct stack_text *last, const struct vr_model *model, uint32_t stack) {
    if (last->stack == stack) return vr_text_string(&last->site);
    const uint32_t frame = vr_sites_frame(&last->sites, stack);
    last->site.length = 0;
    vr_text_puts(&last->site, "");
    if (frame != VR_NO_SITE) put_csv_frame(&last->site, model, frame);
    return vr_text_string(&last->site);
}

static const char *text_of_stack(struct stack_text *last, const struct vr_model *model, uint32_t stack) {
    if (last->stack == stack) return vr_text_string(&last->text);
    last->stack = stack;
    last->text.length = 0;
    vr_text_puts(&last->text, ""); // NUL-terminates the text even if the stack has no frames
    const struct vr_stacks *stacks = &model->stacks;
    for (uint64_t i = stacks->offset[stack + 1]; i-- > stacks->offset[stack];) {
        if (last->text.length != 0) vr_text_puts(&last->text, ";");
        put_csv_frame(&last->text, model, stacks->frame[i]);
    }
    return vr_text_string(&last->text);
}

static void put_cell(struct vr_output *out, const char *text) {
    put_csv_text(out, text);
    vr_text_puts(&out->text, ",");
}

static void put_csv_number(struct vr_output *out, bool has, uint64_t value) {
    if (has) vr_text_printf(&out->text, "%" PRIu64, value);
    vr_text_puts(&out->text, ",");
}

static void put_csv_event(struct vr_output *out, const struct vr_view *view, size_t i, struct stack_text *last) {
    const struct vr_model *model = view->model;
    const struct vram_recorded_event event = vr_recorded_event(model, view->history, i);
    const bool oom = view->history->action[i] == VR_ACTION_OOM, pool = (vr_entry_has(view->history, i) & VR_HAS_POOL_ID) != 0;
    put_csv_number(out, true, view->device);
    put_csv_number(out, true, i);
    if (event.has_time) vr_text_printf(&out->text, "%" PRId64, event.time_us);
    vr_text_puts(&out->text, ",");
    put_cell(out, event.action);
    put_csv_number(out, !oom, event.address);
    put_csv_number(out, true, event.size_bytes);
    put_csv_number(out, true, event.stream);
    put_csv_number(out, oom, event.address);
    put_csv_number(out, pool, event.pool.first);
    put_csv_number(out, pool, event.pool.second);
    put_csv_number(out, event.thread != 0, event.thread);
#define TEXT_CELL(member, column) put_cell(out, event.member);
    VRAM_EVENT_TEXTS(TEXT_CELL)
    put_csv_number(out, event.stack != 0, event.stack);
    put_cell(out, text_of_site(last, model, event.stack));
    put_csv_text(out, text_of_stack(last, model, event.stack));
    vr_text_puts(&out->text, "\n");
}

enum vram_status vr_export_events(const struct vr_exporting *from, struct vr_output *out) {
    struct stack_text last = {.stack = UINT32_MAX};
    VR_TRY(vr_sites_init(&last.sites, from->model));
#define TEXT_COLUMN(member, column) column ","
    vr_text_puts(&out->text,
                 "device,event,time_us,action,address,size_bytes,stream,device_free_bytes,pool_first,pool_second,thread," VRAM_EVENT_TEXTS(
                     TEXT_COLUMN) "stack,site,frames\n");
    for (size_t v = 0; v < from->views->count; v++) {
        const struct vr_view *view = &from->views->view[v];
        for (size_t i = 0; i < view->history->count && vr_output_flow(out); i++) put_csv_event(out, view, i, &last);
    }
    const bool good = !last.text.failed && !last.site.failed;
    vr_text_release(&last.text);
    vr_text_release(&last.site);
    vr_sites_release(&last.sites);
    return good ? VRAM_OK : VRAM_NO_HOST_MEMORY;
}
