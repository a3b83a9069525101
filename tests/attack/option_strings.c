// Passes random option strings to everything that reads them: the check, the list, allocators created or reconfigured with them, pinned
// memory, and recordings whose settings contain them, which are reported, replayed, cured and tuned. Each must give an answer and never
// crash. A refusal gives the position. An accepted string follows the rules of vr_options_check(), reads back as it is printed, and means
// the same as the string that has each key once, with its last value.
//   option_strings [--seed N] [--count COUNT] [--first I]
// String I of a seed is always the same. A finding is printed with the arguments that repeat it.
#define _DEFAULT_SOURCE
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "attack/option_grammar.h"
#include "attack/recorded_conf.h"
#include "config/options.h"
#include "support/random.h"
#include "support/world.h"
#include "vram/host.h"

// Strings per allocator.
enum { BATCH = 64, SECONDS_MOST = 60 };

struct tally {
    uint64_t strings, accepted, made, set, recordings;
};

static char finding[160]; // printed by a signal handler, which formats nothing

static void report_signal(int number) {
    (void)!write(2, finding, strlen(finding));
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void require(bool holds, const char *what, const char *text) {
    if (holds) return;
    fprintf(stderr, "%s: \"%s\"\n", what, text);
    abort();
}

static void check_refusal(enum vram_status status, const struct vram_error *error, const char *text) {
    require(status == VRAM_BAD_OPTION || status == VRAM_LIMIT, "refused by another status", text);
    require(error->message[0] != '\0' && error->offset <= strlen(text), "a refusal does not say where", text);
}

static bool count_option(const struct vram_option *option, void *user) {
    ++*(size_t *)user;
    return option->value[0] != '\0';
}

// Checks the meaning of an accepted string: prints it, reads it again, and compares it with the string that has each key once.
static void check_meaning(const struct grammar_string *string, const struct vr_options *options) {
    const char *text = vr_text_string(&string->text);
    struct vr_text printed = {0};
    struct vr_options again;
    size_t listed = 0;
    require(vr_options_check(options), "the options break their rules", text);
    vr_options_print(options, &printed);
    vr_options_init(&again);
    require(vr_options_parse(&again, vr_text_string(&printed), NULL) == VRAM_OK, "what is printed cannot be read",
            vr_text_string(&printed));
    require(memcmp(&again, options, sizeof again) == 0, "what is printed reads as something else", text);
    vr_text_release(&printed);
    require(vram_options_list(text, count_option, &listed, NULL) == VRAM_OK && listed > 20, "an accepted string is not listed", text);
    if (string->is_damaged) return;
    vr_options_init(&again);
    require(vr_options_parse(&again, vr_text_string(&string->last_only), NULL) == VRAM_OK, "the last values alone are refused", text);
    require(memcmp(&again, options, sizeof again) == 0, "the last values alone mean something else", text);
}

static bool check_string(const struct grammar_string *string) {
    const char *text = vr_text_string(&string->text);
    struct vr_options options;
    struct vram_error error = {.message = ""};
    vr_options_init(&options);
    const enum vram_status status = vr_options_parse(&options, text, &error);
    require(vram_options_check(text, NULL) == status, "two answers to one string", text);
    if (status == VRAM_OK)
        check_meaning(string, &options);
    else
        check_refusal(status, &error, text);
    return status == VRAM_OK;
}

// --- allocators -------------------------------------------------------------------------------------------------------------------------

static uint64_t draw_size(uint64_t *random) {
    static const uint64_t edges[] = {1,           512,         VR_MIB, VR_MIB + 1, 10 * VR_MIB,
                                     20 * VR_MIB, 24 * VR_MIB, VR_GIB, UINT64_MAX, UINT64_MAX - 4096};
    return vr_random_below(random, 2) ? edges[vr_random_below(random, VR_COUNT_OF(edges))] : vr_random_below(random, 64 * VR_MIB) + 1;
}

static void use(struct vram_allocator *allocator, uint64_t *random, const char *text) {
    uint64_t address[4] = {0};
    for (size_t i = 0; i < VR_COUNT_OF(address); i++) {
        if (vram_malloc(allocator, 0, draw_size(random), 0, &address[i]) != VRAM_OK) address[i] = 0;
    }
    for (size_t i = 0; i < VR_COUNT_OF(address); i++) {
        if (address[i] != 0) require(vram_free(allocator, address[i]) == VRAM_OK, "a block cannot be freed", text);
    }
    require(vram_check(allocator, NULL) == VRAM_OK, "an invariant of the allocator is broken", text);
}

static void make_allocator(struct vr_world *world, uint64_t *random, const char *text) {
    const struct vram_create_info info = {.driver = world->driver, .conf = text};
    struct vram_allocator *allocator;
    struct vram_error error;
    const enum vram_status status = vram_create(&info, &allocator, &error);
    require(status == VRAM_OK || status == VRAM_UNSUPPORTED, "an allocator is refused an accepted string", text);
    if (status != VRAM_OK) return;
    use(allocator, random, text);
    vram_destroy(allocator);
}

static void make_host(struct vr_world *world, const char *text) {
    const struct vram_host_create_info info = {.driver = world->driver, .conf = text};
    struct vram_host *host;
    void *pointer;
    require(vram_host_create(&info, &host, NULL) == VRAM_OK, "pinned memory is refused an accepted string", text);
    require(vram_host_configure(host, text, NULL) == VRAM_OK, "pinned memory cannot be set to an accepted string", text);
    if (vram_host_malloc(host, 5000, 0, &pointer) == VRAM_OK)
        require(vram_host_free(host, pointer) == VRAM_OK, "a pinned block cannot be freed", text);
    vram_host_destroy(host);
}

// --- the run ----------------------------------------------------------------------------------------------------------------------------

static bool is_async(const char *text) { return strstr(text, "MallocAsync") != NULL; }

static void try_string(struct vr_world *world, uint64_t random, struct grammar_string *string, struct tally *tally) {
    const uint64_t number = tally->strings++;
    grammar_draw(&random, string);
    require(!string->text.failed && !string->last_only.failed, "no memory for a string", "");
    const char *text = vr_text_string(&string->text);
    const bool accepted = check_string(string);
    struct vram_error error = {.message = ""};
    const enum vram_status set = vram_configure(world->allocator, text, &error);
    // The backend and the version of PyTorch cannot change: that refusal has no position.
    if (set != VRAM_OK && error.offset != VRAM_NO_OFFSET) check_refusal(set, &error, text);
    tally->accepted += accepted;
    tally->set += set == VRAM_OK;
    if (set == VRAM_OK && number % 4 == 0) use(world->allocator, &random, text);
    if (accepted && number % 8 == 1) {
        make_allocator(world, &random, text);
        if (!is_async(text) && number % 64 == 1) make_host(world, text);
        tally->made++;
    }
    if (number % 256 == 3) {
        recorded_conf_try(&random, text, number % 8192 == 3);
        tally->recordings++;
    }
}

static void run_batch(uint64_t seed, uint64_t first, uint64_t count, struct grammar_string *string, struct tally *tally) {
    const struct vr_world_options options = {.sim = {.memory_bytes = VR_GIB}, .without_record = true};
    struct vr_world world;
    (void)snprintf(finding, sizeof finding, "a string of these: repeat with --seed %" PRIu64 " --first %" PRIu64 " --count %" PRIu64 "\n",
                   seed, first, count);
    (void)alarm(SECONDS_MOST);
    require(vr_world_open(&world, &options) == VRAM_OK, "no world", "");
    tally->strings = first;
    for (uint64_t i = first; i < first + count; i++) try_string(&world, seed * 0x9e3779b97f4a7c15u ^ i << 20, string, tally);
    require(vr_world_close(&world) == 0, "something is left on the driver", vr_text_string(&string->text));
    (void)alarm(0);
}

// Tries what earlier runs found, each with the recordings; always first.
static void try_known(void) {
    static const char *const known[] = {
        "large_segment_size_mb:24,max_split_size_mb:50,large_segment_size_mb:60",
        "max_split_size_mb:17592186044415,large_segment_size_mb:18446744073709551615",
    };
    uint64_t random = 0;
    for (size_t i = 0; i < 16 * VR_COUNT_OF(known); i++) {
        (void)snprintf(finding, sizeof finding, "known string %zu\n", i % VR_COUNT_OF(known));
        recorded_conf_try(&random, known[i % VR_COUNT_OF(known)], i < 2 * VR_COUNT_OF(known));
    }
}

int main(int argc, char **argv) {
    static const char *const names[] = {"--seed", "--count", "--first"};
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGALRM};
    uint64_t values[] = {1, 20000, 0};
    for (int i = 1; i + 1 < argc; i += 2) {
        for (size_t option = 0; option < VR_COUNT_OF(names); option++)
            if (strcmp(argv[i], names[option]) == 0) values[option] = strtoull(argv[i + 1], NULL, 0);
    }
    for (size_t i = 0; i < VR_COUNT_OF(signals); i++) (void)signal(signals[i], report_signal);
    try_known();
    struct grammar_string string = {.text = {0}};
    struct tally tally = {0};
    for (uint64_t done = 0; done < values[1]; done += BATCH)
        run_batch(values[0], values[2] + done, values[1] - done < BATCH ? values[1] - done : BATCH, &string, &tally);
    vr_text_release(&string.text);
    vr_text_release(&string.last_only);
    printf("%" PRIu64 " strings, seed %" PRIu64 ": %" PRIu64 " accepted, %" PRIu64 " set on an allocator, %" PRIu64
           " allocators made, %" PRIu64 " recordings\n",
           values[1], values[0], tally.accepted, tally.set, tally.made, tally.recordings);
    return tally.accepted == 0 || tally.accepted == values[1]; // a generator that only makes one kind tests nothing
}
