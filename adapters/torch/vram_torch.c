#include "vram_torch.h"
#include "inside.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vram/driver.h"
#include "vram/options.h"
#include "vram/recordings.h"
#include "vram/sim.h"
#include "vram/vram.h"

enum { TEXT_BYTES = 2048 };

static _Atomic(struct vram_allocator *) the_allocator; // set once, under `lock`
static _Atomic(vram_torch_raise) the_raise;

// Guards the creation of the allocator and the report.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char oom_report[TEXT_BYTES];
static char rules[16];         // of a PyTorch version; "": the newest
static bool on_process_driver; // use libcuda.so.1 even if VRAM_SIM is set
static _Thread_local char error_text[TEXT_BYTES];

// --- failures -----------------------------------------------------------------------------------------------------------------------

int vr_torch_answer(enum vram_status status, const char *what) {
    if (status != VRAM_OK) (void)snprintf(error_text, sizeof error_text, "vram: %s: %s", what, vram_status_text(status));
    return (int)status;
}

int vr_torch_answer_error(enum vram_status status, const struct vram_error *error) {
    const char *sentence = error->message[0] != '\0' ? error->message : vram_status_text(status);
    if (status != VRAM_OK) (void)snprintf(error_text, sizeof error_text, "vram: %s", sentence);
    return (int)status;
}

void vr_torch_raise_last(const char *function) {
    const vram_torch_raise raise = atomic_load_explicit(&the_raise, memory_order_acquire);
    if (raise == NULL) return;
    raise(function, "vram_torch.c", 0, error_text);
}

void vram_torch_set_raise(vram_torch_raise function) { atomic_store_explicit(&the_raise, function, memory_order_release); }

size_t vram_torch_error(char *text, size_t capacity) { return (size_t)snprintf(text, capacity, "%s", error_text); }

size_t vram_torch_oom_text(char *text, size_t capacity) {
    pthread_mutex_lock(&lock);
    const int length = snprintf(text, capacity, "%s", oom_report);
    pthread_mutex_unlock(&lock);
    return (size_t)length;
}

const char *vram_torch_version(void) { return vram_version(); }

// --- the allocator ------------------------------------------------------------------------------------------------------------------

static enum vram_status make_simulated(const char *settings, struct vram_driver **driver, struct vram_error *error) {
    struct vram_sim_options options = {0};
    const enum vram_status status = vram_sim_parse(settings, &options, error);
    return status == VRAM_OK ? vram_sim_create(&options, driver) : status;
}

const char *vr_torch_environment_options(void) {
    static const char *const variables[] = {"VRAM_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (getenv(variables[i]) != NULL) return getenv(variables[i]);
    return "";
}

// Creates the allocator with the rules of the installed PyTorch, followed by the environment's options, so that a user's `pytorch` option
// wins.
static enum vram_status make_by_rules(const struct vram_create_info *info, struct vram_allocator **allocator, struct vram_error *error) {
    const char *options = vr_torch_environment_options();
    const size_t capacity = strlen(options) + sizeof rules + sizeof "pytorch:,";
    char *text = malloc(capacity);
    if (text == NULL) return VRAM_NO_HOST_MEMORY;
    (void)snprintf(text, capacity, "pytorch:%s,%s", rules, options);
    struct vram_create_info ruled = *info;
    ruled.conf = rules[0] == '\0' ? options : text;
    const enum vram_status status = vram_create(&ruled, allocator, error);
    free(text);
    return status;
}

static enum vram_status make_allocator(struct vram_allocator **allocator, struct vram_error *error) {
    const char *settings = on_process_driver ? NULL : getenv("VRAM_SIM");
    struct vram_create_info info = {0};
    // Check the user's options alone, so that an error does not show our prefix.
    enum vram_status status = vram_options_check(vr_torch_environment_options(), error);
    if (status == VRAM_OK && settings != NULL) status = make_simulated(settings, &info.driver, error);
    if (status == VRAM_OK) status = make_by_rules(&info, allocator, error);
    if (status != VRAM_OK) vram_driver_destroy(info.driver);
    return status;
}

int vram_torch_follow(const char *version) {
    char text[64];
    (void)snprintf(text, sizeof text, "pytorch:%s", version);
    const int status = vram_torch_check_options(text);
    if (status != VRAM_OK) return status;
    pthread_mutex_lock(&lock);
    on_process_driver = true;
    (void)snprintf(rules, sizeof rules, "%s", version);
    pthread_mutex_unlock(&lock);
    return VRAM_OK;
}

int vr_torch_first_use(struct vram_allocator **allocator) {
    *allocator = atomic_load_explicit(&the_allocator, memory_order_acquire);
    if (*allocator != NULL) return VRAM_OK;
    struct vram_error error = {0};
    enum vram_status status = VRAM_OK;
    pthread_mutex_lock(&lock);
    *allocator = atomic_load_explicit(&the_allocator, memory_order_relaxed);
    if (*allocator == NULL) {
        status = make_allocator(allocator, &error);
        if (status == VRAM_OK) atomic_store_explicit(&the_allocator, *allocator, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return vr_torch_answer_error(status, &error);
}

// --- memory -------------------------------------------------------------------------------------------------------------------------

// Writes a size as PyTorch does.
static const char *text_of_size(uint64_t bytes, char text[32]) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
    unsigned unit = 0;
    double value = (double)bytes;
    while (unit < 3 && value > 1024) value /= 1024, unit++;
    (void)snprintf(text, 32, unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
    return text;
}

void vr_torch_oom_message(const struct vram_oom *oom, char *text, size_t capacity) {
    char report[TEXT_BYTES], asked[32], total[32], left[32];
    (void)vram_oom_text(oom, report, sizeof report);
    (void)snprintf(text, capacity, "CUDA out of memory. Tried to allocate %s. GPU %u has a total capacity of %s of which %s is free. %s",
                   text_of_size(oom->segment_bytes, asked), (unsigned)oom->device, text_of_size(oom->device_total_bytes, total),
                   text_of_size(oom->device_free_bytes, left), report);
}

static int out_of_memory(enum vram_status status) {
    struct vram_oom oom;
    if (!vram_last_oom(&oom)) return vr_torch_answer(status, "allocation");
    vr_torch_oom_message(&oom, error_text, sizeof error_text);
    pthread_mutex_lock(&lock);
    (void)vram_oom_text(&oom, oom_report, sizeof oom_report);
    pthread_mutex_unlock(&lock);
    return (int)status;
}

int vram_torch_allocate(uint64_t size_bytes, int device, uint64_t stream, uint64_t *address) {
    struct vram_allocator *allocator = NULL;
    const int made = vr_torch_first_use(&allocator);
    if (made != VRAM_OK) return made;
    const enum vram_status status = vram_malloc(allocator, (uint32_t)device, size_bytes, stream, address);
    if (status == VRAM_OUT_OF_MEMORY || status == VRAM_REJECTED) return out_of_memory(status);
    return vr_torch_answer(status, "allocation");
}

int vram_torch_release(uint64_t address) {
    struct vram_allocator *allocator = NULL;
    if (address == 0) return VRAM_OK;
    const int made = vr_torch_first_use(&allocator);
    return made != VRAM_OK ? made : vr_torch_answer(vram_free(allocator, address), "free");
}

int vram_torch_use_on(uint64_t address, uint64_t stream) {
    struct vram_allocator *allocator = NULL;
    const int made = vr_torch_first_use(&allocator);
    return made != VRAM_OK ? made : vr_torch_answer(vram_record_stream(allocator, address, stream), "record_stream");
}

int vram_torch_empty_cache(void) {
    struct vram_allocator *allocator = NULL;
    const int made = vr_torch_first_use(&allocator);
    if (made != VRAM_OK) return made;
    const enum vram_status trimmed = vr_torch_trim_tags(), emptied = vram_empty_cache(allocator);
    return vr_torch_answer(emptied != VRAM_OK ? emptied : trimmed, "empty_cache");
}

// --- settings and queries ---------------------------------------------------------------------------------------------------------------

int vram_torch_set_fraction(int device, double fraction) {
    struct vram_allocator *allocator = NULL;
    const int made = vr_torch_first_use(&allocator);
    return made != VRAM_OK ? made : vr_torch_answer(vram_set_memory_fraction(allocator, (uint32_t)device, fraction), "memory fraction");
}

int vram_torch_fraction(int device, double *fraction) {
    struct vram_allocator *allocator = NULL;
    const int made = vr_torch_first_use(&allocator);
    return made != VRAM_OK ? made : vr_torch_answer(vram_memory_fraction(allocator, (uint32_t)device, fraction), "memory fraction");
}

int vram_torch_add_oom_observer(void (*observer)(const struct vram_oom *oom, void *user)) {
    struct vram_allocator *allocator = NULL;
    const int made = vr_torch_first_use(&allocator);
    return made != VRAM_OK ? made : vr_torch_answer(vram_add_oom_observer(allocator, observer, NULL), "observer");
}

int vram_torch_configure(const char *conf) {
    struct vram_allocator *allocator = NULL;
    struct vram_error error = {0};
    const int made = vr_torch_first_use(&allocator);
    return made != VRAM_OK ? made : vr_torch_answer_error(vram_configure(allocator, conf, &error), &error);
}

int vram_torch_check_options(const char *conf) {
    struct vram_error error = {0};
    return vr_torch_answer_error(vram_options_check(conf, &error), &error);
}

int vram_torch_reset_peak_stats(int device) {
    struct vram_allocator *allocator = NULL;
    const int made = vr_torch_first_use(&allocator);
    return made != VRAM_OK ? made : vr_torch_answer(vram_reset_peak_stats(allocator, (uint32_t)device), "resetting the peak statistics");
}

int vram_torch_reset_accumulated_stats(int device) {
    struct vram_allocator *allocator = NULL;
    const int made = vr_torch_first_use(&allocator);
    return made != VRAM_OK
               ? made
               : vr_torch_answer(vram_reset_accumulated_stats(allocator, (uint32_t)device), "resetting the accumulated statistics");
}

int vram_torch_memory_info(int device, uint64_t *free_bytes, uint64_t *total_bytes) {
    struct vram_allocator *allocator = NULL;
    const int made = vr_torch_first_use(&allocator);
    return made != VRAM_OK
               ? made
               : vr_torch_answer(vram_memory_info(allocator, (uint32_t)device, free_bytes, total_bytes), "memory of the device");
}

int vram_torch_device_count(uint32_t *count) {
    struct vram_allocator *allocator = NULL;
    const int made = vr_torch_first_use(&allocator);
    return made != VRAM_OK ? made : vr_torch_answer(vram_device_count(allocator, count), "number of devices");
}

int vram_torch_check(void) {
    struct vram_allocator *allocator = NULL;
    struct vram_error error = {0};
    const int made = vr_torch_first_use(&allocator);
    return made != VRAM_OK ? made : vr_torch_answer_error(vram_check(allocator, &error), &error);
}

int vram_torch_history(const char *text) {
    struct vram_allocator *allocator = NULL;
    struct vram_error error = {0};
    const int made = vr_torch_first_use(&allocator);
    return made != VRAM_OK ? made : vr_torch_answer_error(vram_history_start_text(allocator, text, &error), &error);
}

int vram_torch_snapshot_save(const char *path) {
    struct vram_allocator *allocator = NULL;
    struct vram_error error = {0};
    const int made = vr_torch_first_use(&allocator);
    return made != VRAM_OK ? made : vr_torch_answer_error(vram_snapshot_save(allocator, NULL, path, &error), &error);
}

int vram_torch_annotate(uint64_t address, const char *text) {
    struct vram_allocator *allocator = NULL;
    const int made = vr_torch_first_use(&allocator);
    return made != VRAM_OK ? made : vr_torch_answer(vram_annotate(allocator, address, text), "annotation");
}

size_t vram_torch_metadata(char *text, size_t capacity) { return vram_metadata(text, capacity); }

int vram_torch_set_metadata(const char *text) { return vr_torch_answer(vram_set_metadata(text), "metadata"); }

// Returns false, with *stats unset and `text` empty, on failure.
static bool read_stats(int device, struct vram_stats *stats, char *text, size_t capacity) {
    struct vram_allocator *allocator = NULL;
    if (vr_torch_first_use(&allocator) == VRAM_OK &&
        vr_torch_answer(vram_get_stats(allocator, (uint32_t)device, stats), "statistics") == VRAM_OK)
        return true;
    if (capacity != 0) text[0] = '\0';
    return false;
}

size_t vram_torch_stats_json(int device, char *text, size_t capacity) {
    struct vram_stats stats;
    return read_stats(device, &stats, text, capacity) ? vram_stats_json(&stats, text, capacity) : 0;
}

size_t vram_torch_summary(int device, int abbreviated, char *text, size_t capacity) {
    struct vram_stats stats;
    return read_stats(device, &stats, text, capacity) ? vram_stats_summary(&stats, (uint32_t)device, abbreviated, text, capacity) : 0;
}

size_t vram_torch_configuration(char *text, size_t capacity) {
    struct vram_allocator *allocator = NULL;
    if (vr_torch_first_use(&allocator) == VRAM_OK) return vram_configuration(allocator, text, capacity);
    if (capacity != 0) text[0] = '\0';
    return 0;
}

// --- hooks --------------------------------------------------------------------------------------------------------------------------

void *vram_torch_malloc(ssize_t size, int device, void *stream) {
    uint64_t address = 0;
    const int status = vram_torch_allocate((uint64_t)size, device, VRAM_STREAM(stream), &address);
    if (status == VRAM_OUT_OF_MEMORY || status == VRAM_REJECTED) vr_torch_raise_oom("vram_torch_malloc", error_text);
    if (status != VRAM_OK) vr_torch_raise_last("vram_torch_malloc");
    return (void *)(uintptr_t)address;
}

void vram_torch_free(void *pointer, ssize_t size, int device, void *stream) {
    (void)size, (void)device, (void)stream; // the block has them
    (void)vram_torch_release((uint64_t)(uintptr_t)pointer);
}

void vram_torch_init(int device_count) {
    struct vram_allocator *allocator = NULL;
    (void)device_count; // the driver has it
    if (vr_torch_first_use(&allocator) != VRAM_OK) vr_torch_raise_last("vram_torch_init");
}

void vram_torch_reset(void) {
    if (vram_torch_empty_cache() != VRAM_OK) vr_torch_raise_last("vram_torch_reset");
}

void vram_torch_memory_fraction(double fraction, int device) {
    if (vram_torch_set_fraction(device, fraction) != VRAM_OK) vr_torch_raise_last("vram_torch_memory_fraction");
}

void *vram_torch_base_alloc(void *pointer, size_t *size) {
    struct vram_allocator *allocator = NULL;
    struct vram_block_info info = {.segment_address = (uint64_t)(uintptr_t)pointer};
    if (vr_torch_first_use(&allocator) == VRAM_OK && vram_find_block(allocator, info.segment_address, &info) != VRAM_OK)
        info.segment_bytes = 0;
    if (size != NULL) *size = (size_t)info.segment_bytes;
    return (void *)(uintptr_t)info.segment_address;
}

void vram_torch_record_stream(void *pointer, void *stream) {
    const int status = vram_torch_use_on((uint64_t)(uintptr_t)pointer, VRAM_STREAM(stream));
    if (status != VRAM_OK && status != VRAM_INVALID_POINTER) vr_torch_raise_last("vram_torch_record_stream");
}
