// Writes statistics in Prometheus's text format, and keeps them in a file by a thread.
#include <inttypes.h>

#include "base/text.h"
#include "core/device.h"
#include "core/state.h"
#include "live/file.h"
#include "live/prometheus.h"
#include "os/os.h"
#include "vram/stats.h"

#define USUAL_INTERVAL_NS ((uint64_t)15 * 1000000000)

// --- the text

enum member { CURRENT, PEAK, ALLOCATED, FREED };

// A metric of a counter that exists per pool, and which of the counter's numbers it shows.
struct pool_metric {
    const char *name, *type, *help;
    size_t field; // offset of the counter's array of pools in struct vram_stats
    enum member member;
};
#define FIELD(name) offsetof(struct vram_stats, name)
static const struct pool_metric pool_metrics[] = {
    {"vram_allocated_bytes", "gauge", "Bytes of allocated blocks.", FIELD(allocated_bytes), CURRENT},
    {"vram_reserved_bytes", "gauge", "Bytes held from the driver.", FIELD(reserved_bytes), CURRENT},
    {"vram_active_bytes", "gauge", "Bytes of blocks that are allocated or not yet reusable.", FIELD(active_bytes), CURRENT},
    {"vram_inactive_split_bytes", "gauge", "Bytes of free pieces of split segments.", FIELD(inactive_split_bytes), CURRENT},
    {"vram_requested_bytes", "gauge", "Bytes requested for blocks that are allocated or not yet reusable.", FIELD(requested_bytes),
     CURRENT},
    {"vram_allocations", "gauge", "Allocated blocks.", FIELD(allocation), CURRENT},
    {"vram_segments", "gauge", "Segments held from the driver.", FIELD(segment), CURRENT},
    {"vram_inactive_splits", "gauge", "Free pieces of split segments.", FIELD(inactive_split), CURRENT},
    {"vram_allocated_bytes_total", "counter", "Bytes of all blocks ever allocated.", FIELD(allocated_bytes), ALLOCATED},
    {"vram_freed_bytes_total", "counter", "Bytes of all blocks ever freed.", FIELD(allocated_bytes), FREED},
    {"vram_allocations_total", "counter", "Blocks ever allocated.", FIELD(allocation), ALLOCATED},
    {"vram_frees_total", "counter", "Blocks ever freed.", FIELD(allocation), FREED},
};
// Peaks are those of the whole device: the pools' peaks may have occurred at different moments.
static const struct pool_metric peak_metrics[] = {
    {"vram_peak_allocated_bytes", "gauge", "Highest bytes of allocated blocks.", FIELD(allocated_bytes), PEAK},
    {"vram_peak_reserved_bytes", "gauge", "Highest bytes held from the driver.", FIELD(reserved_bytes), PEAK},
    {"vram_peak_active_bytes", "gauge", "Highest bytes of blocks that are allocated or not yet reusable.", FIELD(active_bytes), PEAK},
};
static const struct {
    const char *name, *help;
    size_t field;
} totals[] = {
    {"vram_alloc_retries_total", "Times the whole cache was released to satisfy a request.", FIELD(num_alloc_retries)},
    {"vram_ooms_total", "Requests that failed for lack of memory.", FIELD(num_ooms)},
    {"vram_oom_rejections_total", "Requests refused before any driver call.", FIELD(num_oom_rejections)},
    {"vram_moved_bytes_total", "Bytes of free memory that moved to another stream or that a pool lent to another.", FIELD(moved_bytes)},
    {"vram_sync_all_streams_total", "Times the allocator waited for all pending frees.", FIELD(num_sync_all_streams)},
    {"vram_device_allocs_total", "Driver calls that allocate memory.", FIELD(num_device_alloc)},
    {"vram_device_frees_total", "Driver calls that free memory.", FIELD(num_device_free)},
};

struct devices {
    struct vram_stats *stats; // VRAM_MAX_DEVICES
    uint32_t ordinal[VRAM_MAX_DEVICES];
    size_t count;
};

static int64_t number_of(const struct vram_stats *stats, const struct pool_metric *metric, enum vram_stat_pool pool) {
    struct vram_stat stat;
    memcpy(&stat, (const char *)stats + metric->field + (size_t)pool * sizeof stat, sizeof stat);
    const int64_t members[] = {stat.current, stat.peak, stat.allocated, stat.freed};
    return members[metric->member];
}

static void put_head(struct vr_text *text, const char *name, const char *type, const char *help) {
    vr_text_printf(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_text(struct vr_text *text, const struct devices *devices) {
    static const char *const pools[] = {[VRAM_STAT_SMALL_POOL] = "small", [VRAM_STAT_LARGE_POOL] = "large"};
    for (size_t m = 0; m < VR_COUNT_OF(pool_metrics); m++) {
        const struct pool_metric *metric = &pool_metrics[m];
        put_head(text, metric->name, metric->type, metric->help);
        for (size_t d = 0; d < devices->count * 2; d++) {
            const enum vram_stat_pool pool = d % 2 == 0 ? VRAM_STAT_SMALL_POOL : VRAM_STAT_LARGE_POOL;
            vr_text_printf(text, "%s{device=\"%" PRIu32 "\",pool=\"%s\"} %" PRId64 "\n", metric->name, devices->ordinal[d / 2], pools[pool],
                           number_of(&devices->stats[d / 2], metric, pool));
        }
    }
    for (size_t m = 0; m < VR_COUNT_OF(peak_metrics); m++) {
        const struct pool_metric *metric = &peak_metrics[m];
        put_head(text, metric->name, metric->type, metric->help);
        for (size_t d = 0; d < devices->count; d++) {
            vr_text_printf(text, "%s{device=\"%" PRIu32 "\"} %" PRId64 "\n", metric->name, devices->ordinal[d],
                           number_of(&devices->stats[d], metric, VRAM_STAT_ALL));
        }
    }
    for (size_t m = 0; m < VR_COUNT_OF(totals); m++) {
        put_head(text, totals[m].name, "counter", totals[m].help);
        for (size_t d = 0; d < devices->count; d++) {
            int64_t value;
            memcpy(&value, (const char *)&devices->stats[d] + totals[m].field, sizeof value);
            vr_text_printf(text, "%s{device=\"%" PRIu32 "\"} %" PRId64 "\n", totals[m].name, devices->ordinal[d], value);
        }
    }
}

enum vram_status vram_prometheus_write(struct vram_allocator *allocator, vram_write write, void *user) {
    VR_REQUIRE(allocator && write);
    struct devices devices = {.stats = malloc(VRAM_MAX_DEVICES * sizeof *devices.stats)};
    struct vr_text text = {0};
    enum vram_status status = devices.stats == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES && status == VRAM_OK; i++) {
        if (vr_device_if_used(allocator, i) == NULL) continue;
        status = vram_get_stats(allocator, i, &devices.stats[devices.count]);
        devices.ordinal[devices.count++] = i;
    }
    if (status == VRAM_OK) {
        put_text(&text, &devices);
        status = vr_text_status(&text);
    }
    if (status == VRAM_OK && !write(user, text.bytes, text.length)) status = VRAM_IO;
    vr_text_release(&text);
    free(devices.stats);
    return status;
}

// --- the file

struct vr_prometheus {
    struct vram_allocator *allocator;
    char *file;
    uint64_t interval_ns;
    uint64_t process; // the process that has the thread; forked children do not have it
    struct vr_thread thread;
    struct vr_mutex mutex;
    struct vr_signal signal;
    bool stops; // guarded by the mutex
};

static enum vram_status write_file(const struct vr_prometheus *exporter, struct vram_error *error) {
    struct vr_file file;
    VR_TRY(vr_file_open(&file, exporter->file, error));
    return vr_file_close(&file, vram_prometheus_write(exporter->allocator, vr_file_write, &file), error);
}

static void keep_writing(void *argument) {
    struct vr_prometheus *exporter = argument;
    uint64_t next_ns = vr_os_monotonic_ns() + exporter->interval_ns;
    vr_mutex_lock(&exporter->mutex);
    while (!exporter->stops) {
        const uint64_t now_ns = vr_os_monotonic_ns();
        if (now_ns < next_ns) {
            vr_signal_wait(&exporter->signal, &exporter->mutex, next_ns - now_ns);
            continue;
        }
        vr_mutex_unlock(&exporter->mutex);
        // A failure cannot be reported; the next interval retries.
        (void)!write_file(exporter, NULL);
        next_ns = now_ns + exporter->interval_ns;
        vr_mutex_lock(&exporter->mutex);
    }
    vr_mutex_unlock(&exporter->mutex);
}

static void end_exporter(void *value);
// Destroyed first, so that the last write sees an intact allocator.
static const struct vr_extension_kind extension_kind = {.destroy = end_exporter, .order = 0};

static void release_exporter(struct vr_prometheus *exporter) {
    vr_signal_destroy(&exporter->signal);
    vr_mutex_destroy(&exporter->mutex);
    free(exporter->file);
    free(exporter);
}

enum vram_status vram_prometheus_start(struct vram_allocator *allocator, const struct vram_prometheus_options *options,
                                       struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, allocator && options);
    const size_t size = strlen(options->file) + 1;
    struct vr_prometheus *made = calloc(1, sizeof *made);
    char *file = malloc(size);
    if (made == NULL || file == NULL) {
        free(made);
        free(file);
        return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "not enough host memory for the statistics");
    }
    memcpy(file, options->file, size);
    made->allocator = allocator;
    made->file = file;
    made->interval_ns = options->interval_ns == 0 ? USUAL_INTERVAL_NS : options->interval_ns;
    made->process = vr_os_process_id();
    vr_mutex_init(&made->mutex);
    vr_signal_init(&made->signal);
    enum vram_status status = write_file(made, error);
    if (status == VRAM_OK) vram_prometheus_stop(allocator);
    if (status == VRAM_OK) status = vr_thread_start(&made->thread, keep_writing, made);
    if (status != VRAM_OK) {
        release_exporter(made);
        return status;
    }
    vr_mutex_lock(&allocator->mutex);
    status = vr_extension_attach(&allocator->extensions, &extension_kind, made);
    vr_mutex_unlock(&allocator->mutex);
    if (status != VRAM_OK) end_exporter(made);
    return status;
}

static void end_exporter(void *value) {
    struct vr_prometheus *exporter = value;
    // A child of fork() has no thread, its lock may be held forever, and the file is the parent's.
    if (exporter->process != vr_os_process_id()) return;
    vr_mutex_lock(&exporter->mutex);
    exporter->stops = true;
    vr_signal_raise(&exporter->signal);
    vr_mutex_unlock(&exporter->mutex);
    vr_thread_join(&exporter->thread);
    (void)!write_file(exporter, NULL);
    release_exporter(exporter);
}

void vram_prometheus_stop(struct vram_allocator *allocator) {
    if (allocator == NULL) return;
    vr_mutex_lock(&allocator->mutex);
    struct vr_prometheus *exporter = vr_extension_detach(&allocator->extensions, &extension_kind);
    vr_mutex_unlock(&allocator->mutex);
    if (exporter != NULL) end_exporter(exporter);
}

// --- VRAM_PROMETHEUS

// Parses "15s", "500ms" or seconds without a unit. Returns false for anything else, and for 0.
static bool parse_interval(const char *text, uint64_t *interval_ns) {
    uint64_t number = 0;
    size_t digits = 0;
    while (text[digits] >= '0' && text[digits] <= '9' && digits < 9) number = number * 10 + (uint64_t)(text[digits++] - '0');
    const char *unit = text + digits;
    const uint64_t unit_ns = strcmp(unit, "ms") == 0 ? 1000000 : unit[0] == '\0' || strcmp(unit, "s") == 0 ? 1000000000 : 0;
    *interval_ns = number * unit_ns;
    return digits != 0 && *interval_ns != 0;
}

enum vram_status vr_prometheus_start_text(struct vram_allocator *allocator, const char *text, struct vram_error *error) {
    static const char key[] = ",interval=";
    struct vram_prometheus_options options = {.interval_ns = 0};
    if (text == NULL || text[0] == '\0' || strcmp(text, "0") == 0 || strcmp(text, "off") == 0) return VRAM_OK;
    const size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    if (copy == NULL) return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "not enough host memory for the statistics");
    memcpy(copy, text, size);
    char *comma = strrchr(copy, ',');
    enum vram_status status = VRAM_OK;
    if (comma != NULL && (strncmp(comma, key, sizeof key - 1) != 0 || !parse_interval(comma + sizeof key - 1, &options.interval_ns))) {
        status = vr_fail(error, VRAM_BAD_OPTION, (uint64_t)(comma - copy) + 1,
                         "VRAM_PROMETHEUS: only \",interval=15s\" may follow the file name, not \"%s\"", comma);
    }
    if (comma != NULL) *comma = '\0';
    options.file = copy;
    if (status == VRAM_OK) status = vram_prometheus_start(allocator, &options, error);
    free(copy);
    return status;
}
