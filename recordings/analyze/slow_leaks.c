// Finds what grows over hours on one device of a recording.
#include "analyze/slow_leaks.h"

#include "analyze/lifetimes.h"
#include "model/recording.h"

const char *vr_slow_answer_word(enum vr_slow_answer answer) {
    static const char *const words[] = {
#define VR_SLOW_ANSWER(constant, word) #word,
        VR_SLOW_ANSWERS(VR_SLOW_ANSWER)
#undef VR_SLOW_ANSWER
    };
    return words[answer];
}

// ---- One pass over the events.

struct live_block {
    int64_t born_us;
    uint64_t bytes; // UINT64_MAX: nothing is live, or memory from before the first event
    uint32_t stack;
};

struct slow_pass {
    const struct vr_history *history;
    struct vr_sites *sites;
    struct vr_address_ids addresses;
    struct live_block *live; // by number of address
    struct vr_slow *by_site, *by_stack;
};

static uint64_t site_key(struct slow_pass *pass, uint32_t stack) { return vr_sites_frame(pass->sites, stack); }

static enum vram_status end_block(struct slow_pass *pass, struct live_block *block) {
    if (block->bytes == UINT64_MAX) return VRAM_OK;
    VR_TRY(vr_slow_free(pass->by_site, site_key(pass, block->stack), block->born_us, block->bytes));
    VR_TRY(vr_slow_free(pass->by_stack, block->stack, block->born_us, block->bytes));
    block->bytes = UINT64_MAX;
    return VRAM_OK;
}

static enum vram_status begin_block(struct slow_pass *pass, struct live_block *block, size_t event, int64_t now_us) {
    const struct vr_history *history = pass->history;
    if (history->size_bytes[event] == UINT64_MAX) return VRAM_OK; // no allocation has that size
    VR_TRY(vr_slow_alloc(pass->by_site, site_key(pass, history->stack[event]), history->size_bytes[event]));
    VR_TRY(vr_slow_alloc(pass->by_stack, history->stack[event], history->size_bytes[event]));
    *block = (struct live_block){.born_us = now_us, .bytes = history->size_bytes[event], .stack = history->stack[event]};
    return VRAM_OK;
}

static enum vram_status take_events(struct slow_pass *pass, bool active) {
    const struct vr_history *history = pass->history;
    const uint8_t frees = active ? VR_ACTION_FREE_COMPLETED : VR_ACTION_FREE_REQUESTED;
    for (size_t i = 0; i < history->count; i++) {
        const uint32_t number = pass->addresses.of_event[i];
        const int64_t now_us = vr_slow_pass(pass->by_site, history->time_us[i]);
        (void)vr_slow_pass(pass->by_stack, history->time_us[i]);
        if (number == VR_NO_ADDRESS) continue;
        const uint8_t action = history->action[i];
        if (action == VR_ACTION_ALLOC || action == VR_ACTION_FREE || action == frees) VR_TRY(end_block(pass, &pass->live[number]));
        if (action == VR_ACTION_ALLOC) VR_TRY(begin_block(pass, &pass->live[number], i, now_us));
    }
    return VRAM_OK;
}

static enum vram_status run_pass(struct slow_pass *pass, const struct vr_view *view, bool active) {
    VR_TRY(vr_slow_create(&pass->by_site));
    VR_TRY(vr_slow_create(&pass->by_stack));
    VR_TRY(vr_address_ids_build(view, &pass->addresses));
    pass->live = malloc((pass->addresses.count + 1) * sizeof *pass->live);
    if (pass->live == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < pass->addresses.count; i++) pass->live[i].bytes = UINT64_MAX;
    return take_events(pass, active);
}

// ---- The findings.

// Returns whether the call site of a stack answers for its stacks: it leaks, or its growth is explained.
static bool site_answers(struct vr_slow_leaks *leaks, const struct vr_slow_course *sites, size_t site_count, uint32_t stack) {
    for (size_t i = 0; i < site_count; i++) {
        if (sites[i].key == vr_sites_frame(leaks->sites, stack)) return sites[i].verdict >= VR_SLOW_EVICTS;
    }
    return false;
}

// Leaks of call sites, then leaks of stacks whose call site hides them, then call sites that grew without leaking.
static void gather(struct vr_slow_leaks *leaks, const struct vr_slow_course *sites, size_t site_count, const struct vr_slow_course *stacks,
                   size_t stack_count) {
    size_t of_sites = 0;
    for (; of_sites < site_count && sites[of_sites].verdict == VR_SLOW_LEAK; of_sites++)
        leaks->groups[leaks->leaks++] = (struct vr_slow_leak){.course = sites[of_sites]};
    for (size_t i = 0; i < stack_count && stacks[i].verdict == VR_SLOW_LEAK; i++) {
        const uint32_t stack = (uint32_t)stacks[i].key;
        if (!site_answers(leaks, sites, site_count, stack))
            leaks->groups[leaks->leaks++] = (struct vr_slow_leak){.course = stacks[i], .by_stack = true, .stack = stack};
    }
    leaks->count = leaks->leaks;
    for (size_t i = of_sites; i < site_count; i++) leaks->groups[leaks->count++] = (struct vr_slow_leak){.course = sites[i]};
    for (size_t i = 0; i < leaks->leaks; i++) leaks->bytes_per_hour += leaks->groups[i].course.bytes_per_hour;
    leaks->bytes_per_hour = leaks->bytes_per_hour < 1e18 ? leaks->bytes_per_hour : 1e18;
}

// Gives each call site a stack as an example: one that leaks, if there is one.
static void choose_stacks(struct vr_slow_leaks *leaks, const struct vr_slow_course *stacks, size_t stack_count) {
    for (size_t i = 0; i < leaks->count; i++) {
        struct vr_slow_leak *leak = &leaks->groups[i];
        for (size_t s = 0; s < stack_count && leak->stack == 0; s++) {
            if (vr_sites_frame(leaks->sites, (uint32_t)stacks[s].key) == leak->course.key) leak->stack = (uint32_t)stacks[s].key;
        }
    }
}

static enum vram_status judge_pass(struct slow_pass *pass, struct vr_slow_leaks *leaks) {
    struct vr_slow_course *sites = NULL, *stacks = NULL;
    size_t site_count = 0, stack_count = 0;
    leaks->seconds = vr_slow_seconds(pass->by_site);
    enum vram_status status = vr_slow_judge(pass->by_site, &sites, &site_count);
    if (status == VRAM_OK) status = vr_slow_judge(pass->by_stack, &stacks, &stack_count);
    if (status == VRAM_OK) leaks->groups = malloc((site_count + stack_count + 1) * sizeof *leaks->groups);
    if (status == VRAM_OK && leaks->groups == NULL) status = VRAM_NO_HOST_MEMORY;
    if (status == VRAM_OK) {
        gather(leaks, sites, site_count, stacks, stack_count);
        choose_stacks(leaks, stacks, stack_count);
    }
    free(sites);
    free(stacks);
    return status;
}

static enum vram_status find_growth(struct vr_slow_leaks *leaks, const struct vram_profile_options *options) {
    struct slow_pass pass = {.history = leaks->view->history, .sites = leaks->sites};
    enum vram_status status = run_pass(&pass, leaks->view, options->active);
    if (status == VRAM_OK) status = judge_pass(&pass, leaks);
    vr_slow_destroy(pass.by_site);
    vr_slow_destroy(pass.by_stack);
    vr_address_ids_release(&pass.addresses);
    free(pass.live);
    return status;
}

static enum vram_status find_end(struct vr_slow_leaks *leaks, const struct vram_profile_options *options) {
    struct vr_lifetimes lifetimes;
    leaks->hours_left = -1;
    if (options->memory_bytes == 0 || leaks->leaks == 0) return VRAM_OK;
    VR_TRY(vr_lifetimes_build(leaks->view, options->active ? VR_LIFETIME_ACTIVE : VR_LIFETIME_ALLOCATED, NULL, 0, &lifetimes));
    leaks->peak_bytes = lifetimes.peak.bytes;
    vr_lifetimes_release(&lifetimes);
    const double room = leaks->peak_bytes < options->memory_bytes ? (double)(options->memory_bytes - leaks->peak_bytes) : 0;
    leaks->hours_left = room / leaks->bytes_per_hour;
    return VRAM_OK;
}

static bool has_times(const struct vr_history *history) {
    return history->count != 0 && history->time_us[0] != history->time_us[history->count - 1];
}

static void forget_view(struct vr_slow_leaks *leaks) {
    vr_steps_release(&leaks->steps);
    free(leaks->groups);
    leaks->groups = NULL;
    leaks->count = leaks->leaks = 0;
    leaks->bytes_per_hour = 0;
}

static enum vram_status judge_view(struct vr_slow_leaks *leaks, const struct vr_view *view, const struct vram_profile_options *options) {
    forget_view(leaks);
    leaks->view = view;
    leaks->answer = VR_SLOW_ANSWER_NO_TIMES;
    leaks->hours_left = -1;
    if (!has_times(view->history)) return VRAM_OK;
    leaks->first_us = view->history->time_us[0];
    VR_TRY(find_growth(leaks, options));
    VR_TRY(find_end(leaks, options));
    leaks->answer = leaks->seconds < VR_SLOW_LEAST_SECONDS ? VR_SLOW_ANSWER_TOO_SHORT
                    : leaks->leaks != 0                    ? VR_SLOW_ANSWER_LEAK
                                                           : VR_SLOW_ANSWER_NONE;
    const struct vr_step_wish wish = {.name = NULL};
    return leaks->answer == VR_SLOW_ANSWER_TOO_SHORT ? vr_steps_find(view, &wish, &leaks->steps) : VRAM_OK;
}

// ---- The device.

static enum vram_status judge_named(struct vr_slow_leaks *leaks, const struct vram_profile_options *options, struct vram_error *error) {
    for (size_t d = 0; d < leaks->views.count; d++) {
        if (leaks->views.view[d].device == options->device) return judge_view(leaks, &leaks->views.view[d], options);
    }
    return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the recording has no device %lld", (long long)options->device);
}

static enum vram_status judge_any(struct vr_slow_leaks *leaks, const struct vram_profile_options *options, struct vram_error *error) {
    size_t worst = 0;
    if (leaks->views.count == 0) return vr_fail(error, VRAM_BAD_INPUT, VRAM_NO_OFFSET, "the recording has no events and no segments");
    VR_TRY(vr_views_in_trouble(&leaks->views, &worst, &leaks->why));
    VR_TRY(judge_view(leaks, &leaks->views.view[worst], options));
    for (size_t d = 0; d < leaks->views.count && leaks->leaks == 0; d++) {
        if (d != worst) VR_TRY(judge_view(leaks, &leaks->views.view[d], options));
    }
    return leaks->leaks != 0 ? VRAM_OK : judge_view(leaks, &leaks->views.view[worst], options);
}

static enum vram_status open_views(const struct vr_model *model, const struct vram_profile_options *options, struct vr_slow_leaks *leaks,
                                   struct vram_error *error) {
    VR_TRY(vr_views_build(model, &leaks->views, error));
    VR_TRY(vr_sites_init(&leaks->own_sites, model));
    leaks->sites = &leaks->own_sites;
    return options->device >= 0 ? judge_named(leaks, options, error) : judge_any(leaks, options, error);
}

enum vram_status vr_slow_leaks_open(const struct vram_recording *recording, const struct vram_profile_options *options,
                                    struct vr_slow_leaks *leaks, struct vram_error *error) {
    struct vram_error unfilled = {.status = VRAM_OK}, *detail = error == NULL ? &unfilled : error;
    detail->status = VRAM_OK;
    *leaks = (struct vr_slow_leaks){.why = VR_CHOICE_NAMED};
    const enum vram_status status = open_views(vr_recording_model(recording), options, leaks, detail);
    if (status == VRAM_OK) return VRAM_OK;
    vr_slow_leaks_close(leaks);
    return detail->status == VRAM_OK ? vr_fail(detail, status, VRAM_NO_OFFSET, "%s", vram_status_text(status)) : status;
}

enum vram_status vr_slow_leaks_of_view(const struct vr_view *view, struct vr_sites *sites, struct vr_slow_leaks *leaks) {
    const struct vram_profile_options options = {.device = view->device};
    *leaks = (struct vr_slow_leaks){.sites = sites};
    const enum vram_status status = judge_view(leaks, view, &options);
    if (status != VRAM_OK) vr_slow_leaks_close(leaks);
    return status;
}

void vr_slow_leaks_close(struct vr_slow_leaks *leaks) {
    forget_view(leaks);
    if (leaks->own_sites.model != NULL) vr_sites_release(&leaks->own_sites);
    vr_views_release(&leaks->views);
}
