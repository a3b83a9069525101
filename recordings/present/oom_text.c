// Out of memory, for people: what was asked, where the memory was, why that could not serve, what would have helped, who held it.
#include "present/chart.h"
#include "present/cure_text.h"
#include "present/paged_text.h"
#include "present/demand_text.h"
#include "present/oom_text.h"
#include "present/text_parts.h"
#include "vram/oom.h"

enum { MOST_EARLIER = 3, MARK_COLUMNS = 5, MOST_NAMED = 5 };

struct oom_printer {
    struct vr_text *text;
    const struct vram_style *style;
    const struct vram_report_device *device;
    const struct vram_report_oom *oom;
};

// --- what was asked ---------------------------------------------------------------------------------------------------------
static void print_request(const struct oom_printer *page) {
    const struct vram_report_oom *oom = page->oom;
    struct vr_text *text = page->text;
    vr_text_puts(text, "    ");
    vr_text_colour(text, page->style, VR_RED);
    vr_text_printf(text, "%s asked for", vr_bytes(oom->size_bytes).text);
    vr_text_colour(text, page->style, VR_PLAIN);
    vr_text_printf(text, " on stream %lld, event %s", (long long)oom->stream, vr_count(oom->event).text);
    if (oom->has_time && page->device->has_times && oom->time_us >= page->device->first_time_us) {
        const uint64_t us = (uint64_t)oom->time_us - (uint64_t)page->device->first_time_us;
        vr_text_printf(text, " (+%s)", vr_duration_ns(vr_us_to_ns(us)).text);
    }
    vr_text_puts(text, "\n    by ");
    vr_text_site(text, oom->site, strlen(oom->site));
    vr_text_puts(text, "\n");
}

// --- where the memory was ---------------------------------------------------------------------------------------------------
// One share of the device's memory at that moment, in the order of the bar.
struct oom_share {
    struct vr_part part;
    const char *name;
    struct vr_text why;
};
enum { IN_USE, WAITING, FREE_BLOCKS, STREAMS, CLASS, POOLS, DRIVER_POOLS, DRIVER, OVERHEAD, OTHERS, OUTSIDE, SHARE_COUNT };

// What the driver took for this process besides what it asked for.
static uint64_t overhead_of(const struct vram_report_accounts *accounts) {
    return accounts == NULL ? 0 : accounts->context_bytes + accounts->module_bytes + accounts->driver_bytes;
}

static void explain_overhead(const struct vram_report_accounts *accounts, struct vr_text *why) {
    const struct {
        const char *name;
        uint64_t bytes;
    } parts[] = {{"contexts", accounts->context_bytes},
                 {"modules", accounts->module_bytes},
                 {accounts->has_context   ? "other"
                  : accounts->has_modules ? "contexts, other"
                                          : "contexts, code, other",
                  accounts->driver_bytes}};
    const char *before = "for this process: ";
    for (size_t i = 0; i < VR_COUNT_OF(parts); i++) {
        if (parts[i].bytes == 0) continue;
        vr_text_printf(why, "%s%s %s", before, parts[i].name, vr_bytes(parts[i].bytes).text);
        before = ", ";
    }
}

static void explain_outside(const struct vram_report_accounts *accounts, struct vr_text *why) {
    if (accounts == NULL) {
        vr_text_puts(why, "other libraries, the context, other processes");
        return;
    }
    vr_text_puts(why, accounts->has_self ? "nobody says whose" : "contexts, other processes");
    if (accounts->has_self || accounts->at_start_bytes == UINT64_MAX) return;
    vr_text_printf(why, "; %s with the first context", vr_bytes(accounts->at_start_bytes).text);
}

// Of pinned memory: the system in the driver's place.
static void explain_host_shares(const struct vram_report_oom *oom, struct oom_share shares[SHARE_COUNT]) {
    const bool enough = oom->device_free_bytes >= oom->size_bytes;
    vr_text_printf(&shares[DRIVER].why, "to the system%s %s that were asked for%s", enough ? ", enough for the" : ", less than the",
                   vr_bytes(oom->size_bytes).text, enough ? ": a limit refused it" : "");
    vr_text_puts(&shares[OUTSIDE].why, "the rest of the system, and of this process what is not pinned");
}

static void explain_shares(const struct oom_printer *page, struct oom_share shares[SHARE_COUNT]) {
    const struct vram_report_oom *oom = page->oom;
    vr_text_puts(&shares[IN_USE].why, "live, and what blocks are larger than was asked for");
    vr_text_puts(&shares[WAITING].why, "freed, not reusable before other streams are done");
    vr_text_printf(&shares[FREE_BLOCKS].why, "free for this request, in %s piece%s: the largest holds %s",
                   vr_count(oom->usable_pieces).text, oom->usable_pieces == 1 ? "" : "s", vr_bytes(oom->usable_largest_bytes).text);
    vr_text_puts(&shares[STREAMS].why, "free, but only requests of those streams can take it");
    vr_text_printf(&shares[CLASS].why, "free, but only requests %s can take it", oom->size_bytes <= VR_MIB ? "above 1 MiB" : "up to 1 MiB");
    vr_text_puts(&shares[POOLS].why, "free, but only their own graphs and pools can take it");
    vr_text_puts(&shares[DRIVER_POOLS].why, "free in them (cudaMallocAsync), in pieces or where streams had not passed yet");
    if (oom->is_host) {
        explain_host_shares(oom, shares);
        return;
    }
    if (oom->device_free_bytes >= oom->segment_bytes) {
        vr_text_printf(&shares[DRIVER].why, "enough for the segment of %s: a limit refused it", vr_bytes(oom->segment_bytes).text);
    } else {
        vr_text_printf(&shares[DRIVER].why, "free at the driver%s, less than the %s that %s",
                       oom->limit_bytes != 0 ? " within the limit" : "", vr_bytes(oom->segment_bytes).text,
                       page->device->whole_program ? "were asked for" : "a segment would take");
    }
    explain_outside(oom->accounts, &shares[OUTSIDE].why);
    if (oom->accounts == NULL) return;
    explain_overhead(oom->accounts, &shares[OVERHEAD].why);
    vr_text_puts(&shares[OTHERS].why, oom->accounts->apart ? "other processes" : "other processes, not told apart from this one");
}

// A table's columns have one colour each; here each mark has its own, that of the bar.
static void print_share(const struct oom_printer *page, const struct oom_share *share, int name_columns) {
    struct vr_text *text = page->text;
    vr_text_puts(text, "    ");
    vr_text_colour(text, page->style, share->part.colour);
    vr_text_puts(text, vr_part_mark(&share->part, page->style));
    vr_text_colour(text, page->style, VR_PLAIN);
    vr_text_printf(text, "  %-*s  ", name_columns, share->name);
    vr_text_colour(text, page->style, VR_BOLD);
    vr_text_printf(text, "%10s", vr_bytes(share->part.bytes).text);
    vr_text_colour(text, page->style, VR_PLAIN);
    vr_text_puts(text, "  ");
    vr_text_colour(text, page->style, VR_DIM);
    vr_text_puts(text, vr_text_string(&share->why));
    vr_text_colour(text, page->style, VR_PLAIN);
    vr_text_puts(text, "\n");
}

static void print_shares(const struct oom_printer *page) {
    const struct vram_report_oom *oom = page->oom;
    const uint64_t idle = oom->free_bytes + oom->pending_bytes;
    const uint64_t live = oom->reserved_bytes == 0 ? oom->allocated_bytes : oom->reserved_bytes > idle ? oom->reserved_bytes - idle : 0;
    struct oom_share shares[SHARE_COUNT] = {
        [IN_USE] = {{live, "█", "#", VR_CYAN}, "in use", {0}},
        [WAITING] = {{oom->pending_bytes, "▚", "w", VR_MAGENTA}, "waiting", {0}},
        [FREE_BLOCKS] = {{oom->usable_bytes, "▒", "o", VR_YELLOW}, "free blocks", {0}},
        [STREAMS] = {{oom->other_stream_bytes, "▞", "s", VR_MAGENTA}, "other streams", {0}},
        [CLASS] = {{oom->other_pool_bytes, "▤", "c", VR_YELLOW}, "other size class", {0}},
        [POOLS] = {{oom->private_pool_bytes, "▥", "p", VR_BLUE}, "other pools", {0}},
        [DRIVER_POOLS] = {{oom->driver_pool_bytes, "▥", "p", VR_BLUE}, "driver's pools", {0}},
        [DRIVER] = {{oom->has_device_free ? oom->device_free_bytes : 0, "░", ".", VR_GREEN}, oom->is_host ? "available" : "driver", {0}},
        [OVERHEAD] = {{overhead_of(oom->accounts), "▦", "k", VR_BLUE}, "context", {0}},
        [OTHERS] = {{oom->accounts == NULL ? 0 : oom->accounts->other_bytes, "▓", "x", VR_RED}, "others", {0}},
        [OUTSIDE] = {{oom->outside_bytes, "▓", "x", VR_RED}, "outside", {0}},
    };
    if (oom->accounts != NULL) shares[OUTSIDE] = (struct oom_share){{oom->accounts->unknown_bytes, "▨", "u", VR_MAGENTA}, "not known", {0}};
    struct vr_part parts[SHARE_COUNT];
    int longest = 0;
    explain_shares(page, shares);
    for (size_t i = 0; i < SHARE_COUNT; i++) {
        parts[i] = shares[i].part;
        if (parts[i].bytes != 0 && (int)strlen(shares[i].name) > longest) longest = (int)strlen(shares[i].name);
    }
    vr_text_puts(page->text, "\n    ");
    vr_chart_bar(page->text, page->style, parts, SHARE_COUNT, page->style->columns - 4);
    vr_text_puts(page->text, "\n");
    for (size_t i = 0; i < SHARE_COUNT; i++) {
        if (parts[i].bytes != 0) print_share(page, &shares[i], longest);
        page->text->failed = page->text->failed || shares[i].why.failed;
        vr_text_release(&shares[i].why);
    }
    vr_text_puts(page->text, "\n");
}

// --- who else held the device -------------------------------------------------------------------------------------------------
static void print_others(const struct oom_printer *page) {
    static const struct vr_table_column columns[] = {{"", VR_RIGHT, VR_BOLD, false}, {"", VR_LEFT, VR_PLAIN, true}};
    const struct vram_report_accounts *accounts = page->oom->accounts;
    if (accounts == NULL) return;
    if (!accounts->has_processes) {
        struct vr_text sentence = {0};
        vr_text_puts(&sentence, "not known");
        if (accounts->why[0] != '\0') vr_text_printf(&sentence, ": %s", accounts->why);
        vr_text_item(page->text, page->style, VR_DIM, "others", MARK_COLUMNS + 1, vr_text_string(&sentence));
        page->text->failed = page->text->failed || sentence.failed;
        vr_text_release(&sentence);
        vr_text_puts(page->text, "\n");
        return;
    }
    if (accounts->process_count == 0) return;
    const size_t shown = accounts->process_count < MOST_NAMED ? accounts->process_count : MOST_NAMED;
    const uint64_t more = accounts->process_count - shown + accounts->left_out;
    struct vr_table table;
    vr_table_init(&table, columns, VR_COUNT_OF(columns));
    for (size_t i = 0; i < shown; i++) {
        const struct vram_report_process *process = &accounts->processes[i];
        vr_table_cell(&table, "%s", process->bytes == UINT64_MAX ? "not told" : vr_bytes(process->bytes).text);
        vr_table_cell(&table, "process %llu%s%s%s", (unsigned long long)process->id, process->name[0] == '\0' ? "" : " (", process->name,
                      process->name[0] == '\0' ? "" : ")");
    }
    vr_text_puts(page->text, accounts->apart ? "    other processes\n" : "    processes on the device, of which this may be one\n");
    vr_table_print(&table, page->text, page->style, 6);
    vr_table_release(&table);
    if (more != 0) vr_text_printf(page->text, "      and %s more\n", vr_count(more).text);
    vr_text_puts(page->text, "\n");
}

// --- who held it ------------------------------------------------------------------------------------------------------------
static void print_groups(const struct oom_printer *page, const char *title, const struct vram_report_group *groups, size_t count) {
    static const struct vr_table_column columns[] = {
        {"", VR_RIGHT, VR_BOLD, false}, {"", VR_RIGHT, VR_PLAIN, false}, {"", VR_LEFT, VR_CYAN, false}, {"", VR_LEFT, VR_PLAIN, true}};
    if (count == 0) return;
    struct vr_table table;
    vr_table_init(&table, columns, VR_COUNT_OF(columns));
    for (size_t i = 0; i < count; i++) {
        struct vr_text bar = {0};
        vr_text_bar(&bar, page->style, groups[i].bytes, groups[0].bytes, 12);
        vr_table_cell(&table, "%s", vr_bytes(groups[i].bytes).text);
        vr_table_cell(&table, "%s", vr_percent(groups[i].bytes, page->oom->allocated_bytes).text);
        vr_table_cell_bytes(&table, vr_text_string(&bar), bar.length);
        vr_table_site(page->text, &table, groups[i].name[0] == '\0' ? "not known" : groups[i].name);
        page->text->failed = page->text->failed || bar.failed;
        vr_text_release(&bar);
    }
    vr_text_puts(page->text, title);
    vr_table_print(&table, page->text, page->style, 6);
    vr_table_release(&table);
}

// Of libraries, the first few: the report has all of them at the peak.
static void print_holders(const struct oom_printer *page) {
    const struct vram_report_oom *oom = page->oom;
    const size_t libraries = oom->library_count < MOST_NAMED ? oom->library_count : MOST_NAMED;
    print_groups(page, "    asked for by\n", oom->libraries, libraries);
    if (libraries != 0 && oom->holder_count != 0) vr_text_puts(page->text, "\n");
    print_groups(page, "    in use by\n", oom->holders, oom->holder_count);
}

// --- why, and what would have helped ------------------------------------------------------------------------------------------
static void print_cure(const struct oom_printer *page, const struct vram_cure *cure) {
    struct vr_text sentence = {0};
    vr_cure_sentence(cure, &sentence);
    if (cure->verdict == VRAM_CURE_SETTING) {
        vr_text_puts(page->text, "    ");
        vr_text_colour(page->text, page->style, VR_GREEN);
        vr_text_puts(page->text, "cure");
        vr_text_colour(page->text, page->style, VR_BOLD);
        if (cure->conf[0] == '\0')
            vr_text_printf(page->text, "  unset %s\n", cure->variable);
        else
            vr_text_printf(page->text, "  %s=%s\n", cure->variable, cure->conf);
        vr_text_colour(page->text, page->style, VR_PLAIN);
        vr_text_item(page->text, page->style, VR_GREEN, "", MARK_COLUMNS, vr_text_string(&sentence));
    } else {
        vr_text_item(page->text, page->style, VR_YELLOW, "cure", MARK_COLUMNS, vr_text_string(&sentence));
    }
    page->text->failed = page->text->failed || sentence.failed;
    vr_text_release(&sentence);
}

static void print_paged(const struct oom_printer *page, const struct vram_report_source *source) {
    struct vr_text sentences = {0};
    vr_paged_of_report(source, page->device->device, &sentences);
    if (sentences.length != 0) vr_text_item(page->text, page->style, VR_GREEN, "or", MARK_COLUMNS, vr_text_string(&sentences));
    page->text->failed = page->text->failed || sentences.failed;
    vr_text_release(&sentences);
}

static void print_why(const struct oom_printer *page) {
    const struct vram_report_oom *oom = page->oom;
    vr_text_puts(page->text, "\n");
    vr_text_item(page->text, page->style, VR_RED, "why", MARK_COLUMNS, oom->text);
    if (oom->cause == VRAM_OOM_PINNED && oom->pin_site != NULL) {
        struct vr_text who = {0};
        vr_text_puts(&who, oom->pin_blocks == 1 ? "It is by " : "The largest of them is by ");
        vr_text_site(&who, oom->pin_site, strlen(oom->pin_site));
        vr_text_item(page->text, page->style, VR_PLAIN, "", MARK_COLUMNS, vr_text_string(&who));
        vr_text_release(&who);
    }
}

static const struct vram_cure *find_cure(const struct vram_report_source *source, uint32_t device, uint64_t event) {
    for (size_t i = 0; source != NULL && i < source->cure_count; i++) {
        if (source->cures[i].device == device && source->cures[i].event == event) return &source->cures[i];
    }
    return NULL;
}

// --- all of them ------------------------------------------------------------------------------------------------------------
// The last one in full; of those before it a line each.
static void print_page(const struct oom_printer *page, struct vr_report_output *output) {
    const struct vram_report_oom *oom = page->oom;
    print_request(page);
    if (oom->has_picture) print_shares(page);
    print_others(page);
    print_holders(page);
    print_why(page);
    const struct vram_report_source *source = vr_report_replayed(output);
    const struct vram_cure *cure = find_cure(source, page->device->device, oom->event);
    if (cure != NULL) print_cure(page, cure);
    print_paged(page, source);
    if (oom->advice[0] != '\0' && (cure == NULL || cure->verdict != VRAM_CURE_SETTING))
        vr_text_item(page->text, page->style, VR_GREEN, "try", MARK_COLUMNS, oom->advice);
    if (oom->demand != NULL && (cure == NULL || cure->verdict != VRAM_CURE_SETTING)) vr_demand_list(page->text, page->style, oom->demand);
}

static void print_earlier(const struct oom_printer *page) {
    const struct vram_report_oom *oom = page->oom;
    struct vr_text line = {0};
    vr_text_printf(&line, "event %s: %s asked for by ", vr_count(oom->event).text, vr_bytes(oom->size_bytes).text);
    vr_text_site(&line, oom->site, strlen(oom->site));
    vr_text_printf(&line, "; %s", oom->text);
    vr_text_bullet(page->text, page->style, VR_RED, "", vr_text_string(&line));
    page->text->failed = page->text->failed || line.failed;
    vr_text_release(&line);
}

void vr_oom_report(struct vr_report_output *output, const struct vram_style *style, const struct vram_report_device *device) {
    if (device->oom_count == 0) return;
    struct vr_text *text = output->text;
    struct oom_printer page = {.text = text, .style = style, .device = device};
    struct vr_text rest = {0};
    const size_t last = device->oom_count - 1;
    vr_text_printf(&rest, "  %s time%s%s", vr_count(device->oom_count).text, last == 0 ? "" : "s", last == 0 ? "" : "; the last");
    vr_text_heading(text, style, "Out of memory", vr_text_string(&rest));
    vr_text_release(&rest);
    page.oom = &device->ooms[last];
    print_page(&page, output);
    if (last == 0) return;
    vr_text_printf(text, "\n    before it%s\n", last > MOST_EARLIER ? ", the latest" : "");
    for (size_t i = last > MOST_EARLIER ? last - MOST_EARLIER : 0; i < last; i++) {
        page.oom = &device->ooms[i];
        print_earlier(&page);
    }
}
