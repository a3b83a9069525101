// journal.c: records events of this process, through vram/log.h and vram/stack.h.
#define _GNU_SOURCE
#include "journal.h"
#include "notices.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "control.h"
#include "real.h"
#include "vram/accounts.h"
#include "vram/stack.h"

#define NAMES_MAX 1000 // attempts to find a free name

// Libraries between a program and its memory, which are never the caller of interest.
static const char *const between[] = {"libvram_preload.so", "libcuda.so.1",      "libcuda.so",        "libcudart.so",
                                      "libcudart.so.10.1",  "libcudart.so.10.2", "libcudart.so.11.0", "libcudart.so.12",
                                      "libcudart.so.13",    "libffi.so.6",       "libffi.so.7",       "libffi.so.8"};

// Caches the library of each call address, to avoid asking the loader at every call.
#define CALLERS 256
struct caller {
    const void *address;
    uint64_t generation; // of pl_libraries_closed()
    uint32_t name;
};

// Caches the library of each stack.
#define KNOWN_STACKS 1024
struct known_stack {
    uint32_t stack;
    uint32_t name; // of the library, in the recording
    uint32_t id;   // of the stack, in the recording
};

#define TOTALS 64 // devices whose memory is recorded
static struct {
    struct vram_log *log;
    bool ended;                  // creating or writing the log failed
    struct vram_log_event event; // the last one; unused fields stay 0
    char path[PL_PATH_MAX];
    uint32_t tags[PL_KIND_COUNT];
    struct caller callers[CALLERS];
    struct known_stack known[KNOWN_STACKS];
    unsigned dumps;
    unsigned accounts;           // number written
    bool paused;                 // in the last mark
    uint64_t totals[TOTALS + 1]; // of the devices and of the host, as recorded
} journal;

static _Atomic(struct vram_stacks *) stacks;
static _Thread_local uint32_t thread_number __attribute__((tls_model("initial-exec")));

static struct vram_stacks *table_of_stacks(void) {
    struct vram_stacks *table = atomic_load_explicit(&stacks, memory_order_acquire), *none = NULL;
    if (table != NULL || vram_stacks_create(NULL, &table) != VRAM_OK) return table;
    if (atomic_compare_exchange_strong(&stacks, &none, table)) return table;
    vram_stacks_destroy(table); // another thread was faster
    return none;
}

void pl_journal_prepare(void) {
    if (pl_config()->takes_stacks) (void)table_of_stacks();
}

uint32_t pl_journal_take_stack(const struct pl_caller *caller) {
    struct vram_stacks *table = table_of_stacks();
    return table == NULL ? 0 : vram_stack_take_at(table, pl_config()->stacks, caller->frame);
}

PL_SELDOM static void fail(const char *why) {
    if (!journal.ended) pl_missed("the recording ended early:", why);
    journal.ended = true;
}

// --- the file -------------------------------------------------------------------------------------------------------------

static void set_setting(const char *key, const char *json) {
    if (vram_log_setting(journal.log, key, json) != VRAM_OK) fail("a setting could not be written to the file");
}

static void write_settings(void) {
    char text[64];
    (void)snprintf(text, sizeof text, "%ld", (long)getpid());
    set_setting("vram_run_process", text);
    (void)snprintf(text, sizeof text, "%ld", (long)getppid());
    set_setting("vram_run_parent", text);
    if (pl_config()->limit_bytes != 0) {
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)pl_config()->limit_bytes);
        set_setting("vram_run_limit_bytes", text);
    }
    if (pl_config()->caches) set_setting("vram_run_cache", "true");
}

static void write_tags(void) {
#define TAG(name, tag) tag,
    static const char *const names[] = {PL_KINDS(TAG)};
#undef TAG
    for (size_t i = 0; i < PL_KIND_COUNT; i++)
        if (vram_log_string(journal.log, names[i], strlen(names[i]), &journal.tags[i]) != VRAM_OK)
            fail("a name could not be written to the file");
}

// A taken name belongs to another process, or to this one before exec().
static enum vram_status create_journal(struct vram_error *error) {
    const struct vram_log_options options = {.producer = "vram run", .serialized = true};
    enum vram_status status = VRAM_IO;
    for (unsigned number = 0; number < NAMES_MAX && status == VRAM_IO; number++) {
        if (!pl_config_path(pl_config()->pattern, number, journal.path, sizeof journal.path)) return VRAM_LIMIT;
        status = vram_log_create(journal.path, &options, &journal.log, error);
        if (status == VRAM_IO && access(journal.path, F_OK) != 0) break;
    }
    return status;
}

static void open_journal(void *unused) {
    (void)unused;
    struct vram_error error = {.status = VRAM_OK};
    if (create_journal(&error) != VRAM_OK) {
        fail(error.message[0] != '\0' ? error.message : "the file could not be created");
        return;
    }
    pl_list("file", journal.path, "");
    pl_control_open();
    write_tags();
    write_settings();
}

// The first call may come from a signal handler, on a small stack.
PL_SELDOM static bool open_first(void) {
    if (journal.log == NULL && !journal.ended && pl_config()->records) vram_stack_spare(open_journal, NULL);
    return journal.log != NULL && !journal.ended;
}
PL_INLINE bool is_open(void) { return __builtin_expect(journal.log != NULL && !journal.ended, 1) || open_first(); }

// --- events ---------------------------------------------------------------------------------------------------------------

static uint32_t name_id(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    uint32_t id = 0;
    return vram_log_string(journal.log, name, strlen(name), &id) == VRAM_OK ? id : 0;
}

PL_SELDOM static uint32_t ask_library(const void *address, uint64_t generation, struct caller *caller) {
    static char path[PL_PATH_MAX];
    const uint32_t id = pl_library_of(address, path, sizeof path) ? name_id(path) : 0;
    *caller = (struct caller){address, generation, id};
    return id;
}

// Finds the library by the address of the call, if there is no stack.
PL_INLINE uint32_t library_by_address(const void *address) {
    struct caller *caller = &journal.callers[((uintptr_t)address * 0x9e3779b97f4a7c15u >> 40) % CALLERS];
    const uint64_t generation = pl_libraries_closed();
    return caller->address == address && caller->generation == generation ? caller->name : ask_library(address, generation, caller);
}

PL_SELDOM static const struct known_stack *log_stack(uint32_t stack, struct known_stack *known) {
    struct vram_stacks *table = atomic_load_explicit(&stacks, memory_order_acquire);
    uint32_t id = 0;
    if (table == NULL || vram_stack_log(table, stack, journal.log, &id) != VRAM_OK) return NULL;
    const char *name = vram_stack_module(table, stack, between, sizeof between / sizeof between[0]);
    *known = (struct known_stack){stack, name == NULL || name[0] == '\0' ? 0 : name_id(name), id};
    return known;
}

// Returns the cache entry of a stack; NULL without a stack. A stack id never changes its meaning.
PL_INLINE const struct known_stack *known_stack(uint32_t stack) {
    if (stack == 0) return NULL;
    struct known_stack *known = &journal.known[stack % KNOWN_STACKS];
    return known->stack == stack ? known : log_stack(stack, known);
}

PL_SELDOM static uint32_t ask_thread(void) { return thread_number = (uint32_t)syscall(SYS_gettid); }

static uint64_t now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

PL_SELDOM static void fail_append(enum vram_status status) {
    fail(status == VRAM_LIMIT ? "the file reached its size limit" : "the file could not be written");
}

uint64_t pl_journal_write(const struct pl_entry *entry) {
    if (!is_open()) return 0;
    const struct known_stack *known = known_stack(entry->stack);
    struct vram_log_event *event = &journal.event;
    event->address = entry->address;
    event->size_bytes = entry->size_bytes;
    event->stream = entry->stream;
    event->time_ns = now_ns();
    event->pool.second = entry->pool;
    event->device = entry->device;
    event->action = entry->action;
    event->thread = thread_number != 0 ? thread_number : ask_thread();
    event->stack = known == NULL ? 0 : known->id;
    event->metadata = known != NULL && known->name != 0 ? known->name : library_by_address(entry->caller);
    event->tag = entry->kind < 0 ? 0 : journal.tags[entry->kind];
    const bool frees = entry->action == VRAM_LOG_FREE_REQUESTED;
    const enum vram_status status = frees ? vram_log_append_free(journal.log, event) : vram_log_append(journal.log, event, 1);
    if (__builtin_expect(status != VRAM_OK, 0)) fail_append(status);
    return event->time_ns;
}

void pl_journal_accounts(struct vram_accounts *accounts, uint64_t time_ns) {
    if (!is_open()) return;
    accounts->time_us = (int64_t)(time_ns / 1000);
    const unsigned slot = journal.accounts++ % VRAM_ACCOUNTS_SLOTS;
    if (vram_accounts_log(journal.log, accounts, slot) != VRAM_OK) fail("the list of other processes could not be written to the file");
}

void pl_journal_total(uint32_t device, uint64_t total_bytes) {
    char key[64], text[32];
    const bool of_host = device == VRAM_LOG_HOST;
    const uint32_t place = of_host ? TOTALS : device;
    if (place > TOTALS || (device == TOTALS && !of_host) || journal.totals[place] == total_bytes || !is_open()) return;
    journal.totals[place] = total_bytes;
    if (of_host)
        (void)snprintf(key, sizeof key, "vram_host_total_bytes");
    else
        (void)snprintf(key, sizeof key, "vram_device_%u_total_bytes", (unsigned)device);
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)total_bytes);
    set_setting(key, text);
}

bool pl_journal_paused(void) {
    const bool paused = is_open() && pl_control_paused();
    if (paused != journal.paused) {
        journal.paused = paused;
        if (vram_log_annotation(journal.log, 0, paused ? "START" : "END", "recording paused", 0) != VRAM_OK)
            fail("a mark could not be written to the file");
    }
    if (paused) pl_control_count();
    return paused;
}

// --- ends -----------------------------------------------------------------------------------------------------------------

static bool copy_file(const char *from, const char *to) {
    struct stat facts;
    if (stat(from, &facts) != 0 || !pl_may_grow((uint64_t)facts.st_size)) return false;
    const int in = open(from, O_RDONLY | O_CLOEXEC);
    const int out = in < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    static char bytes[16384]; // the caller's stack may be small
    ssize_t got = out < 0 ? -1 : 1;
    while (got > 0 && (got = read(in, bytes, sizeof bytes)) > 0)
        if (write(out, bytes, (size_t)got) != got) got = -1;
    if (in >= 0) (void)close(in);
    if (out >= 0 && close(out) != 0) got = -1;
    if (out >= 0 && got != 0) (void)unlink(to);
    return got == 0;
}

void pl_journal_dump(void) {
    static char path[PL_PATH_MAX];
    if (journal.log == NULL || journal.ended || vram_log_flush(journal.log) != VRAM_OK) return;
    const size_t length = strlen(journal.path);
    const size_t stem = length > 5 && strcmp(journal.path + length - 5, ".vram") == 0 ? length - 5 : length;
    const int wanted = snprintf(path, sizeof path, "%.*s-oom%u.vram", (int)stem, journal.path, ++journal.dumps);
    if (wanted > 0 && (size_t)wanted < sizeof path && copy_file(journal.path, path)) pl_list("dump", path, "");
}

void pl_journal_abandon(void) {
    vram_log_abandon(journal.log);
    memset(&journal, 0, sizeof journal);
    thread_number = 0;
}

void pl_journal_close(void) {
    if (journal.log == NULL) return;
    if (vram_log_close(journal.log) != VRAM_OK) fail("the file could not be closed");
    journal.log = NULL;
    journal.ended = true;
}
