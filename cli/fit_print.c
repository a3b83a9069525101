#include "fit_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ui.h"
#include "vram/recording.h"
#include "vram/report.h"

uint64_t fit_need_bytes(const struct fit_verdict *verdict) { return verdict->highest->reserved_bytes + verdict->highest->outside_bytes; }

#define SIZE(bytes) ui_size((bytes), (char[UI_SIZE_CAPACITY]){0})

// --- who and when -------------------------------------------------------------------------------------------------------------------

static const struct vram_report_device *device_of(const struct vram_report *report, uint32_t device) {
    for (size_t i = 0; i < report->device_count; i++)
        if (report->devices[i].device == device) return &report->devices[i];
    return NULL;
}

static void print_holders(const struct vram_report_device *device) {
    printf("  Held then      ");
    for (size_t i = 0; i < device->allocated.site_count && i < 3; i++) {
        printf("%s%s ", i == 0 ? "" : "\n                 ", SIZE(device->allocated.sites[i].bytes));
        ui_put(stdout, device->allocated.sites[i].name);
    }
    printf("\n");
}

static void print_moment(const struct fit_verdict *verdict, const struct fit_run *run) {
    struct vram_report *report;
    const struct fit_holding *highest = verdict->highest;
    if (vram_report_create(verdict->recording, &(struct vram_report_options){.top = 3}, &report, NULL) != VRAM_OK) return;
    const struct vram_report_device *device = device_of(report, highest->device);
    const int64_t event = device == NULL ? -1 : device->allocated.peak_event;
    const uint64_t step = event < 0 ? 0 : fit_step_of(verdict->recording, highest->device, (uint64_t)event);
    if (step != 0) printf("  When           in step %" PRIu64 " of %" PRIu64 "\n", step, run->steps);
    if (device != NULL && device->allocated.site_count > 0) print_holders(device);
    vram_report_destroy(report);
}

// --- the cards ----------------------------------------------------------------------------------------------------------------------

static void print_oom(const struct fit_oom *oom) {
    if (!oom->known) return;
    printf("\n      runs out");
    if (oom->step != 0) printf(" in step %" PRIu64, oom->step);
    printf(": %s asked for", SIZE(oom->requested_bytes));
    if (oom->site[0] != '\0') {
        printf(" at ");
        ui_put(stdout, oom->site);
    }
    printf(", %s in use of %s", SIZE(oom->allocated_bytes), SIZE(oom->room_bytes));
    if (oom->cached_bytes >= oom->requested_bytes)
        printf(", %s free in pieces of at most %s", SIZE(oom->cached_bytes), SIZE(oom->largest_free_bytes));
}

static void print_card(const struct fit_card *card) {
    printf("    %-8s %9s  ", card->model.key, SIZE(card->model.memory_bytes));
    if (!card->fits) {
        printf("no, %s short", SIZE(card->need_bytes > card->model.memory_bytes ? card->need_bytes - card->model.memory_bytes : 0));
        print_oom(&card->oom);
    } else if (card->need_bytes <= card->model.memory_bytes) {
        printf("fits, %s to spare", SIZE(card->model.memory_bytes - card->need_bytes));
    } else {
        printf("fits when the cache is given back (%" PRIu64 " retries)", card->retries);
    }
    if (card->method == FIT_BY_RUN) printf(" (it ran there)");
    if (card->method == FIT_BY_REPLAY) printf("%s(replayed)", card->oom.known ? " " : ", ");
    printf("\n");
}

static void print_cards(const struct fit_verdict *verdict) {
    printf("  Cards\n");
    for (size_t i = 0; i < verdict->card_count; i++)
        if (verdict->cards[i].asked) print_card(&verdict->cards[i]);
}

// --- the whole ----------------------------------------------------------------------------------------------------------------------

static void print_verdict(const struct fit_answer *answer) {
    const struct fit_verdict *verdict = answer->verdict;
    if (answer->limit_bytes != UINT64_MAX)
        printf("%s: needs %s, the limit is %s\n", answer->fits ? "Fits" : "Does not fit", SIZE(fit_need_bytes(verdict)),
               SIZE(answer->limit_bytes));
    else
        printf("%s: needs %s of a device like %s\n", answer->fits ? "Fits" : "Does not fit", SIZE(fit_need_bytes(verdict)),
               verdict->ran_on.key);
}

static void print_peak(const struct fit_verdict *verdict) {
    const struct fit_holding *highest = verdict->highest;
    const uint64_t context = highest->outside_bytes - verdict->library_bytes;
    if (highest->process->whole_program)
        printf("  Peak           %s allocated at the driver (%" PRIu64 " B)\n", SIZE(highest->allocated_bytes), highest->allocated_bytes);
    else
        printf("  Peak           %s allocated (%" PRIu64 " B), %s reserved (%" PRIu64 " B)\n", SIZE(highest->allocated_bytes),
               highest->allocated_bytes, SIZE(highest->reserved_bytes), highest->reserved_bytes);
    if (highest->outside_bytes > 0) printf("  Besides        %s context, %s libraries\n", SIZE(context), SIZE(verdict->library_bytes));
}

static void print_ranks(const struct fit_answer *answer) {
    const struct fit_run *run = answer->run;
    uint64_t low = UINT64_MAX, high = 0;
    if (run->holding_count < 2) return;
    for (size_t i = 0; i < run->holding_count; i++) {
        const uint64_t bytes = run->holdings[i].reserved_bytes;
        if (bytes < low) low = bytes;
        if (bytes > high) high = bytes;
    }
    printf("  Ranks          %zu processes and devices; the highest is rank %" PRIu64 "; reserved %s to %s\n", run->holding_count,
           answer->verdict->highest->process->rank, SIZE(low), SIZE(high));
}

static void print_ending(const struct fit_run *run) {
    static const char unseen[] = "not seen: what comes later, as evaluation, checkpoints, longer batches";
    static const char *const texts[FIT_ENDING_COUNT] = {"the program came to its end",
                                                        "stopped: three steps in a row are alike",
                                                        "stopped after the steps asked for",
                                                        "stopped: --until was in its output",
                                                        "stopped: --for was over",
                                                        "the program failed, out of memory",
                                                        "the program failed"};
    printf("  Ran            %.1f s, %" PRIu64 " steps; %s", run->seconds, run->steps, texts[run->ending]);
    if (run->ending == FIT_FAILED) printf(" (exit code %d)", run->exit_code);
    if (run->ending != FIT_ENDED) printf("\n                 %s", unseen);
    printf("\n");
}

int fit_print_text(const struct fit_answer *answer) {
    const struct fit_verdict *verdict = answer->verdict;
    print_verdict(answer);
    print_peak(verdict);
    print_moment(verdict, answer->run);
    printf("  Smallest       completes in %s", SIZE(verdict->smallest_bytes));
    if (verdict->smallest_retries > 0) printf(" (%" PRIu64 " retries)", verdict->smallest_retries);
    printf("; the smallest card that it fits: %s\n", verdict->smallest_card == NULL ? "none" : verdict->smallest_card->model.key);
    print_cards(verdict);
    print_ranks(answer);
    print_ending(answer->run);
    return CLI_OK;
}
