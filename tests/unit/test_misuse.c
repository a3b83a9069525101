// Passes wrong arguments to the public interface: invalid numbers, foreign addresses, things used twice or too late; and NULL where the
// headers define it (other NULLs: test_nulls.c). Each returns a status (and a message, if the function takes a struct vram_error), leaves
// out-parameters unchanged, and leaves the allocators valid.
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "driver/driver.h"
#include "vram/accounts.h"
#include "vram/recordings.h"
#include "vram/sim.h"
#include "vram/vram.h"

#define expect_ok(expression) assert_int_equal(expression, VRAM_OK)

enum { UNTOUCHED = 0xA5 };

// The place for a misused function's result.
union results {
    uint64_t word;
    uint32_t number;
    size_t size;
    int32_t version;
    bool flag;
    double fraction;
    void *pointer;
    struct vram_driver *driver;
    struct vram_allocator *allocator;
    struct vram_host *host;
    struct vram_pool *pool;
    struct vram_checkpoint *checkpoint;
    struct vram_graph *graph;
    struct vram_recording *recording;
    struct vram_report *report;
    struct vram_log *log;
    struct vram_follow *follow;
    struct vram_exact_result *exact;
    struct vram_whatif_result *whatif;
    struct vram_plan_cache *plans;
    struct vram_cures *cures;
    struct vram_block_info info;
    struct vram_host_block_info host_info;
    struct vram_stats stats;
    struct vram_device_facts facts;
    struct vram_imported imported;
    struct vram_plan plan;
    struct vram_plan_cache_stats plan_stats;
    struct vram_sim_options sim_options;
    unsigned char bytes[4096];
};

// The objects to misuse.
struct world {
    struct vram_driver *sim;
    struct vram_driver *fault;
    struct vram_allocator *mine;
    struct vram_allocator *other;
    struct vram_host *host;
    struct vram_pool *pool;
    struct vram_pool *far_pool;    // on device 1
    struct vram_pool *faulty_pool; // belongs to `other`, whose driver is `fault`
    struct vram_host_pool *host_pool;
    struct vram_graph *graph; // ready
    struct vram_graph *open;  // capturing, on device 1
    struct vram_explorer *explorer;
    struct vram_recording *recording;
    struct vram_plan_cache *plans;
    struct vram_log *log;
    uint64_t stream, far_stream;
    uint64_t block, freed, foreign;
    void *pinned;
    void *unpinned;
    union results out;
};

static bool swallow(void *user, const char *bytes, size_t length) {
    (void)user, (void)bytes, (void)length;
    return true;
}

static bool refuse(void *user, const char *bytes, size_t length) {
    (void)user, (void)bytes, (void)length;
    return false;
}

static size_t no_input(void *context, void *buffer, size_t capacity) {
    (void)context, (void)buffer, (void)capacity;
    return 0;
}

static uint64_t give_nothing(uint64_t size_bytes, uint32_t device, uint64_t stream, void *user) {
    (void)size_bytes, (void)device, (void)stream, (void)user;
    return 0;
}

static void observe(const struct vram_oom *oom, void *user) { (void)oom, (void)user; }
static bool free_nothing(uint32_t device, uint64_t size_bytes, void *user) {
    (void)device, (void)size_bytes, (void)user;
    return false;
}
static bool visit_all(const struct vram_block_view *view, void *user) {
    (void)view, (void)user;
    return true;
}

static bool list_all(const struct vram_option *option, void *user) {
    (void)option, (void)user;
    return true;
}

static enum vram_status build_plan(uint32_t device, const void *key, size_t key_bytes, uint64_t *plan, uint64_t *work_bytes, void *user) {
    (void)device, (void)key, (void)key_bytes, (void)user;
    *plan = 1;
    *work_bytes = 512;
    return VRAM_OK;
}
static void destroy_plan(uint32_t device, uint64_t plan, void *user) { (void)device, (void)plan, (void)user; }

static enum vram_status run_nothing(uint64_t stream, void *user) {
    (void)stream, (void)user;
    return VRAM_OK;
}
static enum vram_status run_wrong(uint64_t stream, void *user) {
    (void)stream, (void)user;
    return VRAM_IO;
}
static const struct vram_graph_callable fail_second[] = {{run_nothing, NULL}, {run_wrong, NULL}};

#define NO_DEVICE    2u
#define FAR_DEVICE   UINT32_MAX
#define NO_VALUE     99
#define PAST_63      (1ull << 63)
#define LONG_NAME    "a name of a class that is too long for any"
#define NO_STREAM    0xDEADull
#define THREAD_ROUTE (&(struct vram_route){.kind = VRAM_ROUTE_THREAD})

// X(name, status, the call): w is the world, o its results, e the error, which a misuse with a message must fill unless NULL.
#define SILENT_MISUSES(X)                                                                                                                  \
    X(malloc_no_device, INVALID_ARGUMENT, vram_malloc(w->mine, NO_DEVICE, 512, 0, &o->word))                                               \
    X(malloc_far_device, INVALID_ARGUMENT, vram_malloc(w->mine, FAR_DEVICE, 512, 0, &o->word))                                             \
    X(malloc_all_there_is, OUT_OF_MEMORY, vram_malloc(w->mine, 0, UINT64_MAX, 0, &o->word))                                                \
    X(malloc_rounds_over, OUT_OF_MEMORY, vram_malloc(w->mine, 0, UINT64_MAX - 510, 0, &o->word))                                           \
    X(malloc_half, OUT_OF_MEMORY, vram_malloc(w->mine, 0, PAST_63, 0, &o->word))                                                           \
    X(malloc_more_than_signed, OUT_OF_MEMORY, vram_malloc(w->mine, 0, PAST_63 - 1, 0, &o->word))                                           \
    X(free_twice, INVALID_POINTER, vram_free(w->mine, w->freed))                                                                           \
    X(free_of_other, INVALID_POINTER, vram_free(w->mine, w->foreign))                                                                      \
    X(free_inside, INVALID_POINTER, vram_free(w->mine, w->block + 1))                                                                      \
    X(free_last_byte, INVALID_POINTER, vram_free(w->mine, UINT64_MAX))                                                                     \
    X(record_freed, INVALID_POINTER, vram_record_stream(w->mine, w->freed, w->stream))                                                     \
    X(record_foreign, INVALID_POINTER, vram_record_stream(w->mine, w->foreign, w->stream))                                                 \
    X(empty_no_device, INVALID_ARGUMENT, vram_empty_cache_device(w->mine, NO_DEVICE))                                                      \
    X(empty_far_device, INVALID_ARGUMENT, vram_empty_cache_device(w->mine, FAR_DEVICE))                                                    \
    X(info_freed, INVALID_POINTER, vram_get_block_info(w->mine, w->freed, &o->info))                                                       \
    X(info_null, INVALID_POINTER, vram_get_block_info(w->mine, 0, &o->info))                                                               \
    X(find_foreign, INVALID_POINTER, vram_find_block(w->mine, w->foreign, &o->info))                                                       \
    X(find_last, INVALID_POINTER, vram_find_block(w->mine, UINT64_MAX, &o->info))                                                          \
    X(fraction_negative, INVALID_ARGUMENT, vram_set_memory_fraction(w->mine, 0, -0.1))                                                     \
    X(fraction_above, INVALID_ARGUMENT, vram_set_memory_fraction(w->mine, 0, 1.0000001))                                                   \
    X(fraction_nan, INVALID_ARGUMENT, vram_set_memory_fraction(w->mine, 0, strtod("nan", NULL)))                                           \
    X(fraction_no_device, INVALID_ARGUMENT, vram_set_memory_fraction(w->mine, NO_DEVICE, 0.5))                                             \
    X(fraction_of_none, INVALID_ARGUMENT, vram_memory_fraction(w->mine, NO_DEVICE, &o->fraction))                                          \
    X(limit_no_device, INVALID_ARGUMENT, vram_set_memory_limit(w->mine, NO_DEVICE, 1))                                                     \
    X(class_too_long, INVALID_ARGUMENT, vram_set_stream_class(w->mine, 0, LONG_NAME))                                                      \
    X(stats_no_device, INVALID_ARGUMENT, vram_get_stats(w->mine, NO_DEVICE, &o->stats))                                                    \
    X(reset_peak_no_device, INVALID_ARGUMENT, vram_reset_peak_stats(w->mine, NO_DEVICE))                                                   \
    X(reset_sums_no_device, INVALID_ARGUMENT, vram_reset_accumulated_stats(w->mine, FAR_DEVICE))                                           \
    X(memory_no_device, INVALID_ARGUMENT, vram_memory_info(w->mine, NO_DEVICE, &o->word, &o->word))                                        \
    X(observer_null, INVALID_ARGUMENT, vram_add_oom_observer(w->mine, NULL, NULL))                                                         \
    X(observer_not_there, INVALID_ARGUMENT, vram_remove_oom_observer(w->mine, observe, NULL))                                              \
    X(callback_null, INVALID_ARGUMENT, vram_add_free_callback(w->mine, NULL, NULL))                                                        \
    X(callback_not_there, INVALID_ARGUMENT, vram_remove_free_callback(w->mine, free_nothing, NULL))                                        \
    X(walk_no_device, INVALID_ARGUMENT, vram_walk(w->mine, NO_DEVICE, visit_all, NULL))                                                    \
    X(walk_null, INVALID_ARGUMENT, vram_walk(w->mine, 0, NULL, NULL))                                                                      \
    X(pool_no_device, INVALID_ARGUMENT, vram_pool_create(w->mine, NO_DEVICE, NULL, &o->pool))                                              \
    X(pool_half_functions, INVALID_ARGUMENT,                                                                                               \
      vram_pool_create(w->mine, 0, &(struct vram_pool_options){.allocate = give_nothing}, &o->pool))                                       \
    X(pool_end_not_begun, INVALID_ARGUMENT, vram_pool_end(w->pool, THREAD_ROUTE))                                                          \
    X(pool_begin_no_kind, INVALID_ARGUMENT, vram_pool_begin(w->pool, &(struct vram_route){.kind = (enum vram_route_kind)NO_VALUE}))        \
    X(pool_malloc_all, OUT_OF_MEMORY, vram_pool_malloc(w->pool, UINT64_MAX, 0, &o->word))                                                  \
    X(pool_walk_null, INVALID_ARGUMENT, vram_pool_walk(w->pool, NULL, NULL))                                                               \
    X(at_live_block, INVALID_ARGUMENT, vram_malloc_at(w->mine, 0, 512, 0, w->block))                                                       \
    X(at_foreign, INVALID_ARGUMENT, vram_malloc_at(w->mine, 0, 512, 0, w->foreign))                                                        \
    X(at_no_device, INVALID_ARGUMENT, vram_malloc_at(w->mine, NO_DEVICE, 512, 0, w->block))                                                \
    X(at_all, INVALID_ARGUMENT, vram_malloc_at(w->mine, 0, UINT64_MAX, 0, w->freed))                                                       \
    X(enter_default_stream, INVALID_ARGUMENT, vram_capture_enter(w->pool, 0))                                                              \
    X(leave_not_entered, INVALID_ARGUMENT, vram_capture_leave(w->pool, w->stream))                                                         \
    X(static_foreign, INVALID_POINTER, vram_graph_add_static(w->graph, w->foreign))                                                        \
    X(static_null, INVALID_POINTER, vram_graph_add_static(w->graph, 0))                                                                    \
    X(host_malloc_all, OUT_OF_MEMORY, vram_host_malloc(w->host, UINT64_MAX, 0, &o->pointer))                                               \
    X(host_malloc_half, OUT_OF_MEMORY, vram_host_malloc(w->host, PAST_63, 0, &o->pointer))                                                 \
    X(host_free_twice, INVALID_POINTER, vram_host_free(w->host, w->unpinned))                                                              \
    X(host_free_foreign, INVALID_POINTER, vram_host_free(w->host, w))                                                                      \
    X(host_free_inside, INVALID_POINTER, vram_host_free(w->host, (char *)w->pinned + 1))                                                   \
    X(host_record_foreign, INVALID_POINTER, vram_host_record_stream(w->host, w, 0))                                                        \
    X(host_record_per_thread, INVALID_ARGUMENT, vram_host_record_stream(w->host, w->pinned, 2))                                            \
    X(host_info_foreign, INVALID_POINTER, vram_get_host_block_info(w->host, w, &o->host_info))                                             \
    X(host_end_not_begun, INVALID_ARGUMENT, vram_host_pool_end(w->host_pool, THREAD_ROUTE))                                                \
    X(host_begin_no_kind, INVALID_ARGUMENT,                                                                                                \
      vram_host_pool_begin(w->host_pool, &(struct vram_route){.kind = (enum vram_route_kind)NO_VALUE}))                                    \
    X(annotate_freed, INVALID_POINTER, vram_annotate(w->mine, w->freed, "name"))                                                           \
    X(expand_letter, INVALID_ARGUMENT, vram_expand_path("%z", (char *)o->bytes + 8, 8, &o->size))                                          \
    X(peer_no_device, INVALID_ARGUMENT, vram_peer_possible(w->mine, 0, NO_DEVICE, &o->flag))                                               \
    X(peer_from_none, INVALID_ARGUMENT, vram_peer_possible(w->mine, FAR_DEVICE, 0, &o->flag))                                              \
    X(export_size_freed, INVALID_POINTER, vram_export_size(w->mine, w->freed, &o->size))                                                   \
    X(export_end_foreign, INVALID_POINTER, vram_export_end(w->mine, w->foreign))                                                           \
    X(import_not_there, INVALID_POINTER, vram_import_release(w->mine, w->block))                                                           \
    X(sim_of_other_kind, INVALID_ARGUMENT, vram_sim_complete_all(w->fault))                                                                \
    X(sim_null, INVALID_ARGUMENT, vram_sim_advance(NULL, 1))                                                                               \
    X(sim_too_many_devices, INVALID_ARGUMENT, vram_sim_create(&(struct vram_sim_options){.device_count = 65}, &o->driver))                 \
    X(sim_alignment, INVALID_ARGUMENT, vram_sim_create(&(struct vram_sim_options){.alloc_alignment = 3}, &o->driver))                      \
    X(sim_profile, INVALID_ARGUMENT, vram_sim_create(&(struct vram_sim_options){.profile = (enum vram_sim_profile)NO_VALUE}, &o->driver))  \
    X(sim_stream_no_device, INVALID_ARGUMENT, vram_sim_stream_create(w->sim, NO_DEVICE, &o->word))                                         \
    X(sim_busy_no_stream, INVALID_ARGUMENT, vram_sim_busy(w->sim, 0, NO_STREAM, 1))                                                        \
    X(sim_busy_far_stream, INVALID_ARGUMENT, vram_sim_busy(w->sim, 1, w->stream, 1))                                                       \
    X(sim_memory_no_device, INVALID_ARGUMENT, vram_sim_set_memory(w->sim, NO_DEVICE, 1))                                                   \
    X(fault_no_call, INVALID_ARGUMENT, vram_driver_fault_set(w->fault, "cuMakeCoffee", 1, 2))                                              \
    X(fault_of_sim, INVALID_ARGUMENT, vram_driver_fault_set(w->sim, NULL, 1, 2))                                                           \
    X(fault_null, INVALID_ARGUMENT, vram_driver_fault(NULL, &o->driver))                                                                   \
    X(reach_no_device, INVALID_ARGUMENT, vram_driver_can_access_peer(w->sim, 0, NO_DEVICE, &o->flag))                                      \
    X(plans_no_functions, INVALID_ARGUMENT, vram_plan_cache_create(w->mine, &(struct vram_plan_functions){.build = NULL}, &o->plans))      \
    X(plan_empty_key, INVALID_ARGUMENT, vram_plan_acquire(w->plans, 0, 0, "key", 0, &o->plan))                                             \
    X(plan_null_key, INVALID_ARGUMENT, vram_plan_acquire(w->plans, 0, 0, NULL, 3, &o->plan))                                               \
    X(plan_far_device, INVALID_ARGUMENT, vram_plan_acquire(w->plans, VRAM_MAX_DEVICES, 0, "key", 3, &o->plan))                             \
    X(plan_no_device, INVALID_ARGUMENT, vram_plan_acquire(w->plans, NO_DEVICE, 0, "key", 3, &o->plan))                                     \
    X(plans_negative, INVALID_ARGUMENT, vram_plan_cache_set_max(w->plans, 0, -1))                                                          \
    X(plans_clear_far, INVALID_ARGUMENT, vram_plan_cache_clear(w->plans, VRAM_MAX_DEVICES))                                                \
    X(plans_stats_far, INVALID_ARGUMENT, vram_get_plan_cache_stats(w->plans, FAR_DEVICE, &o->plan_stats))                                  \
    X(log_frame_no_string, INVALID_ARGUMENT, vram_log_frame(w->log, 77, 78, 1, &o->number))                                                \
    X(log_stack_no_frame, INVALID_ARGUMENT, vram_log_stack(w->log, (const uint32_t[]){77}, 1, &o->number))                                 \
    X(log_code_no_module, INVALID_ARGUMENT, vram_log_code(w->log, 77, 1, &o->number))                                                      \
    X(log_free_of_another_action, INVALID_ARGUMENT, vram_log_append_free(w->log, &(struct vram_log_event){.action = VRAM_LOG_ALLOC}))      \
    X(log_event_no_stack, INVALID_ARGUMENT, vram_log_append(w->log, &(struct vram_log_event){.stack = 77}, 1))                             \
    X(prometheus_refused, IO, vram_prometheus_write(w->mine, refuse, NULL))

#define SAYING_MISUSES(X)                                                                                                                  \
    X(create_bad_option, BAD_OPTION, vram_create(&(struct vram_create_info){.driver = w->sim, .conf = "no_such_key:1"}, &o->allocator, e)) \
    X(create_no_tie, INVALID_ARGUMENT, vram_create(&(struct vram_create_info){.driver = w->sim, .tie_break = 99}, &o->allocator, e))       \
    X(create_no_driver, NO_DRIVER, vram_create(&(struct vram_create_info){.ignore_environment = true}, &o->allocator, e))                  \
    X(host_no_driver, NO_DRIVER, vram_host_create(&(struct vram_host_create_info){.ignore_environment = true}, &o->host, e))               \
    X(host_bad_option, BAD_OPTION, vram_host_create(&(struct vram_host_create_info){.driver = w->sim, .conf = ":"}, &o->host, e))          \
    X(cuda_no_driver, NO_DRIVER, vram_driver_cuda(&o->driver, e))                                                                          \
    X(cuda_null, INVALID_ARGUMENT, vram_driver_cuda(NULL, e))                                                                              \
    X(facts_no_device, INVALID_ARGUMENT, vram_driver_device_facts(w->sim, NO_DEVICE, &o->facts, e))                                        \
    X(configure_bad, BAD_OPTION, vram_configure(w->mine, "max_split_size_mb:-", e))                                                        \
    X(configure_backend, BAD_OPTION, vram_configure(w->mine, "backend:cudaMallocAsync", e))                                                \
    X(host_configure_bad, BAD_OPTION, vram_host_configure(w->host, "max_split_size_mb:-", e))                                              \
    X(options_bad, BAD_OPTION, vram_options_check("max_split_mb:128", e))                                                                  \
    X(options_list_bad, BAD_OPTION, vram_options_list("max_split_mb:128", list_all, NULL, e))                                              \
    X(sim_text, BAD_OPTION, vram_sim_parse("devices=many", &o->sim_options, e))                                                            \
    X(sim_text_null, INVALID_ARGUMENT, vram_sim_parse(NULL, &o->sim_options, e))                                                           \
    X(capture_default_stream, INVALID_ARGUMENT, vram_capture_begin(w->pool, 0, VRAM_CAPTURE_GLOBAL, e))                                    \
    X(capture_no_mode, INVALID_ARGUMENT, vram_capture_begin(w->pool, w->stream, (enum vram_capture_mode)99, e))                            \
    X(capture_no_stream, DRIVER, vram_capture_begin(w->pool, NO_STREAM, VRAM_CAPTURE_GLOBAL, e))                                           \
    X(capture_twice, INVALID_ARGUMENT, vram_capture_begin(w->far_pool, w->far_stream, VRAM_CAPTURE_RELAXED, e))                            \
    X(capture_end_not_begun, INVALID_ARGUMENT, vram_capture_end(w->pool, w->stream, &o->word, e))                                          \
    X(graph_default_stream, INVALID_ARGUMENT, vram_graph_begin(w->mine, 0, 0, NULL, &o->graph, e))                                         \
    X(graph_no_device, INVALID_ARGUMENT, vram_graph_begin(w->mine, NO_DEVICE, w->stream, NULL, &o->graph, e))                              \
    X(graph_no_stream, DRIVER, vram_graph_begin(w->mine, 0, NO_STREAM, NULL, &o->graph, e))                                                \
    X(graph_far_pool, INVALID_ARGUMENT,                                                                                                    \
      vram_graph_begin(w->mine, 0, w->stream, &(struct vram_graph_options){.pool = w->far_pool}, &o->graph, e))                            \
    X(graph_in_graph, INVALID_ARGUMENT, vram_graph_begin(w->mine, 1, w->far_stream, NULL, &o->graph, e))                                   \
    X(graph_ended, INVALID_ARGUMENT, vram_graph_end(w->graph, e))                                                                          \
    X(graph_not_ended, INVALID_ARGUMENT, vram_graph_launch(w->open, w->far_stream, e))                                                     \
    X(graph_launch_no_stream, DRIVER, vram_graph_launch(w->graph, NO_STREAM, e))                                                           \
    X(graphs_no_device, INVALID_ARGUMENT,                                                                                                  \
      vram_graph_capture_all(w->mine, NO_DEVICE, w->stream, &(struct vram_graph_callable){.run = run_nothing}, 1, 0, &o->graph, e))        \
    X(graphs_region_fails, IO, vram_graph_capture_all(w->mine, 0, w->stream, fail_second, 2, 0, (struct vram_graph **)o->bytes, e))        \
    X(graphs_warm_up_fails, IO, vram_graph_capture_all(w->mine, 0, w->stream, fail_second, 2, 1, (struct vram_graph **)o->bytes, e))       \
    X(history_no_level, INVALID_ARGUMENT,                                                                                                  \
      vram_history_start(w->mine, &(struct vram_history_options){.enabled = (enum vram_history_level)NO_VALUE}, e))                        \
    X(history_no_action, INVALID_ARGUMENT,                                                                                                 \
      vram_history_start(w->mine, &(struct vram_history_options){.skip_actions = (const char *const[]){"dance"}, .skip_count = 1}, e))     \
    X(history_no_folder, IO, vram_history_start(w->mine, &(struct vram_history_options){.file = "/nowhere/at/all.vram"}, e))               \
    X(history_text, BAD_OPTION, vram_history_start_text(w->mine, "dance", e))                                                              \
    X(save_no_folder, IO, vram_snapshot_save(w->mine, NULL, "/nowhere/at/all.pickle", e))                                                  \
    X(save_letter, INVALID_ARGUMENT, vram_snapshot_save(w->mine, NULL, "%z", e))                                                           \
    X(write_refused, IO, vram_snapshot_write(w->mine, NULL, VRAM_FORMAT_PICKLE, refuse, NULL, e))                                          \
    X(write_no_format, INVALID_ARGUMENT, vram_snapshot_write(w->mine, NULL, (enum vram_recording_format)NO_VALUE, swallow, NULL, e))       \
    X(peer_enable_none, INVALID_ARGUMENT, vram_peer_enable(w->mine, 0, NO_DEVICE, e))                                                      \
    X(export_freed, INVALID_POINTER, vram_export(w->mine, w->freed, o->bytes + 8, 1024, &o->size, e))                                      \
    X(export_small, INVALID_ARGUMENT, vram_export(w->mine, w->block, o->bytes + 8, 8, &o->size, e))                                        \
    X(import_null, BAD_INPUT, vram_import(w->mine, NULL, 0, &o->imported, e))                                                              \
    X(import_noise, BAD_INPUT, vram_import(w->mine, "no handle", 9, &o->imported, e))                                                      \
    X(send_unbacked, UNSUPPORTED, vram_export_send(w->mine, w->block, -1, e))                                                              \
    X(send_freed, INVALID_POINTER, vram_export_send(w->mine, w->freed, -1, e))                                                             \
    X(receive_no_socket, IO, vram_import_receive(w->mine, -1, &o->imported, e))                                                            \
    X(read_null, INVALID_ARGUMENT, vram_recording_read(NULL, &o->recording, e))                                                            \
    X(read_nothing, BAD_INPUT, vram_recording_read(&(struct vram_input){.read = no_input}, &o->recording, e))                              \
    X(read_no_memory, INVALID_ARGUMENT, vram_recording_read_memory(NULL, 1, NULL, &o->recording, e))                                       \
    X(read_no_file, IO, vram_recording_read_file("/nowhere/at/all.pickle", &o->recording, e))                                              \
    X(read_file_null, INVALID_ARGUMENT, vram_recording_read_file(NULL, &o->recording, e))                                                  \
    X(recording_no_format, INVALID_ARGUMENT, vram_recording_write(w->recording, (enum vram_recording_format)NO_VALUE, swallow, NULL, e))   \
    X(recording_null, INVALID_ARGUMENT, vram_recording_write(NULL, VRAM_FORMAT_JSON, swallow, NULL, e))                                    \
    X(recording_no_writer, INVALID_ARGUMENT, vram_recording_write(w->recording, VRAM_FORMAT_JSON, NULL, NULL, e))                          \
    X(export_no_format, INVALID_ARGUMENT, vram_recording_export(w->recording, (enum vram_export_format)NO_VALUE, NULL, swallow, NULL, e))  \
    X(report_null, INVALID_ARGUMENT, vram_report_create(NULL, NULL, &o->report, e))                                                        \
    X(listing_no_kind, INVALID_ARGUMENT, vram_listing_text(w->recording, (enum vram_listing)NO_VALUE, NULL, swallow, NULL, e))             \
    X(listing_json_no_kind, INVALID_ARGUMENT, vram_listing_json(w->recording, VRAM_LISTING_COUNT, NULL, swallow, NULL, e))                 \
    X(profile_no_grouping, INVALID_ARGUMENT,                                                                                               \
      vram_profile_text(w->recording, &(struct vram_profile_options){.device = -1, .by = "colour"}, NULL, NULL, swallow, NULL, e))         \
    X(profile_no_device, INVALID_ARGUMENT,                                                                                                 \
      vram_profile_json(w->recording, &(struct vram_profile_options){.device = 77}, NULL, swallow, NULL, e))                               \
    X(ask_nonsense, INVALID_ARGUMENT, vram_explorer_ask(w->explorer, "what?", swallow, NULL, e))                                           \
    X(ask_null, INVALID_ARGUMENT, vram_explorer_ask(w->explorer, NULL, swallow, NULL, e))                                                  \
    X(exact_null, INVALID_ARGUMENT, vram_replay_exact(NULL, NULL, &o->exact, e))                                                           \
    X(whatif_null, INVALID_ARGUMENT, vram_replay_whatif(NULL, NULL, &o->whatif, e))                                                        \
    X(whatif_bad_option, BAD_OPTION,                                                                                                       \
      vram_replay_whatif(w->recording, &(struct vram_whatif_options){.conf = "no_such_key:1"}, &o->whatif, e))                             \
    X(follow_null, INVALID_ARGUMENT, vram_follow_open(NULL, 0, &o->follow, e))                                                             \
    X(follow_no_file, IO, vram_follow_open("/nowhere/at/all.vram", 0, &o->follow, e))                                                      \
    X(log_null, INVALID_ARGUMENT, vram_log_create(NULL, NULL, &o->log, e))                                                                 \
    X(log_no_folder, IO, vram_log_create("/nowhere/at/all.vram", NULL, &o->log, e))                                                        \
    X(prometheus_no_folder, IO, vram_prometheus_start(w->mine, &(struct vram_prometheus_options){.file = "/nowhere/at/all.prom"}, e))      \
    X(prometheus_letter, INVALID_ARGUMENT, vram_prometheus_start(w->mine, &(struct vram_prometheus_options){.file = "%z"}, e))

#define MISUSE_FUNCTION(name, expected, expression)                                                                                        \
    static enum vram_status name(struct world *w, union results *o, struct vram_error *e) {                                                \
        (void)w, (void)o, (void)e;                                                                                                         \
        return expression;                                                                                                                 \
    }
SILENT_MISUSES(MISUSE_FUNCTION)
SAYING_MISUSES(MISUSE_FUNCTION)

struct misuse {
    const char *name;
    enum vram_status expected;
    enum vram_status (*call)(struct world *world, union results *out, struct vram_error *error);
};
#define MISUSE_ROW(name, expected, expression) {#name, VRAM_##expected, name},
static const struct misuse silent[] = {SILENT_MISUSES(MISUSE_ROW)};
static const struct misuse saying[] = {SAYING_MISUSES(MISUSE_ROW)};

static void open_recording(struct world *world) {
    assert_int_equal(vram_snapshot(world->mine, NULL, &world->recording, NULL), VRAM_OK);
    expect_ok(vram_explorer_create(&world->explorer));
    struct vram_recording *second = NULL;
    expect_ok(vram_snapshot(world->mine, NULL, &second, NULL));
    expect_ok(vram_explorer_add(world->explorer, second, "second", 0, NULL));
}

static void open_graphs(struct world *world) {
    expect_ok(vram_sim_stream_create(world->sim, 0, &world->stream));
    expect_ok(vram_sim_stream_create(world->sim, 1, &world->far_stream));
    expect_ok(vram_graph_begin(world->mine, 0, world->stream, NULL, &world->graph, NULL));
    expect_ok(vram_sim_busy(world->sim, 0, world->stream, 1));
    expect_ok(vram_graph_end(world->graph, NULL));
    const struct vram_graph_options options = {.pool = world->far_pool, .mode = VRAM_CAPTURE_RELAXED};
    expect_ok(vram_graph_begin(world->mine, 1, world->far_stream, &options, &world->open, NULL));
}

static int set_up(void **state) {
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    *state = world;
    expect_ok(vram_sim_create(&(struct vram_sim_options){.device_count = 2, .memory_bytes = 1 << 30}, &world->sim));
    expect_ok(vram_driver_fault(world->sim, &world->fault));
    const struct vram_create_info info = {.driver = world->sim, .ignore_environment = true};
    expect_ok(vram_create(&info, &world->mine, NULL));
    const struct vram_create_info faulty = {.driver = world->fault, .ignore_environment = true};
    expect_ok(vram_create(&faulty, &world->other, NULL));
    expect_ok(vram_host_create(&(struct vram_host_create_info){.driver = world->sim, .ignore_environment = true}, &world->host, NULL));
    expect_ok(vram_malloc(world->mine, 0, 1000, 0, &world->block));
    expect_ok(vram_malloc(world->mine, 0, 1000, 0, &world->freed));
    expect_ok(vram_free(world->mine, world->freed));
    expect_ok(vram_malloc(world->other, 0, 1000, 0, &world->foreign));
    expect_ok(vram_host_malloc(world->host, 1000, 0, &world->pinned));
    expect_ok(vram_host_malloc(world->host, 1000, 0, &world->unpinned));
    expect_ok(vram_host_free(world->host, world->unpinned));
    expect_ok(vram_pool_create(world->mine, 0, NULL, &world->pool));
    expect_ok(vram_pool_create(world->mine, 1, NULL, &world->far_pool));
    expect_ok(vram_pool_create(world->other, 0, NULL, &world->faulty_pool));
    expect_ok(vram_host_pool_create(world->host, NULL, &world->host_pool));
    expect_ok(vram_plan_cache_create(world->mine, &(struct vram_plan_functions){build_plan, destroy_plan, NULL}, &world->plans));
    (void)remove("misuse.vram"); // of an interrupted run
    expect_ok(vram_log_create("misuse.vram", NULL, &world->log, NULL));
    open_recording(world);
    open_graphs(world);
    return 0;
}

// Checks that nothing is left in the driver.
static int tear_down(void **state) {
    struct world *world = *state;
    vram_explorer_destroy(world->explorer);
    vram_recording_destroy(world->recording);
    expect_ok(vram_log_close(world->log));
    assert_int_equal(remove("misuse.vram"), 0);
    vram_plan_cache_destroy(world->plans);
    vram_graph_destroy(world->open);
    vram_graph_destroy(world->graph);
    vram_host_pool_release(world->host_pool);
    vram_pool_release(world->faulty_pool);
    vram_pool_release(world->far_pool);
    vram_pool_release(world->pool);
    vram_host_destroy(world->host);
    vram_destroy(world->other);
    vram_destroy(world->mine);
    assert_int_equal(vram_sim_live_objects(world->sim), 0);
    vram_driver_destroy(world->fault);
    vram_driver_destroy(world->sim);
    free(world);
    return 0;
}

static bool is_untouched(const void *memory, size_t size) {
    const unsigned char *bytes = memory;
    size_t at = 0;
    while (at < size && bytes[at] == UNTOUCHED) at++;
    return at == size;
}

// Returns whether the message is one line about this failure.
static bool is_said(const struct vram_error *error, enum vram_status status) {
    const size_t length = strnlen(error->message, sizeof error->message);
    return error->status == status && length > 0 && length < sizeof error->message && (unsigned char)error->message[0] != UNTOUCHED &&
           strchr(error->message, '\n') == NULL;
}

// Prints the violations, and returns their number.
static unsigned try(struct world *world, const struct misuse *misuse, struct vram_error *error) {
    unsigned wrong = 0;
    memset(&world->out, UNTOUCHED, sizeof world->out);
    if (error != NULL) memset(error, UNTOUCHED, sizeof *error);
    const enum vram_status status = misuse->call(world, &world->out, error);
    if (status != misuse->expected) {
        wrong++;
        print_error("%s: %s in place of %s\n", misuse->name, vram_status_name(status), vram_status_name(misuse->expected));
    }
    if (!is_untouched(&world->out, sizeof world->out)) wrong++, print_error("%s: a result was changed\n", misuse->name);
    if (error != NULL && !is_said(error, status)) wrong++, print_error("%s: the error is not filled in\n", misuse->name);
    struct vram_error broken = {.message = ""};
    if (vram_check(world->mine, &broken) != VRAM_OK || vram_host_check(world->host, &broken) != VRAM_OK) {
        wrong++;
        print_error("%s: %s\n", misuse->name, broken.message);
    }
    return wrong;
}

static void every_misuse_is_a_status(void **state) {
    struct world *world = *state;
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++) wrong += try(world, &silent[i], NULL);
    assert_int_equal(wrong, 0);
}

static void every_misuse_is_a_sentence(void **state) {
    struct world *world = *state;
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof saying / sizeof *saying; i++) {
        struct vram_error error;
        wrong += try(world, &saying[i], &error);
        wrong += try(world, &saying[i], NULL);
    }
    assert_int_equal(wrong, 0);
}

// Functions in which every driver call fails once. They destroy what they create.
static enum vram_status fail_create(struct world *w, struct vram_error *error) {
    struct vram_allocator *made = NULL;
    const enum vram_status status = vram_create(&(struct vram_create_info){.driver = w->fault, .ignore_environment = true}, &made, error);
    vram_destroy(made);
    return status;
}
static enum vram_status fail_graph(struct world *w, struct vram_error *error) {
    struct vram_graph *graph = NULL;
    const enum vram_status status = vram_graph_begin(w->other, 0, w->stream, NULL, &graph, error);
    expect_ok(vram_driver_fault_set(w->fault, NULL, 0, 0));
    vram_graph_destroy(graph);
    return status;
}
static enum vram_status fail_capture(struct world *w, struct vram_error *error) {
    uint64_t graph = 0;
    enum vram_status status = vram_capture_begin(w->faulty_pool, w->stream, VRAM_CAPTURE_RELAXED, error);
    if (status == VRAM_OK) status = vram_capture_end(w->faulty_pool, w->stream, &graph, error);
    if (graph != 0) assert_int_equal(vr_cu(w->sim, graph_destroy, graph), VR_CU_SUCCESS);
    return status;
}
static enum vram_status fail_peer(struct world *w, struct vram_error *error) { return vram_peer_enable(w->other, 0, 1, error); }
static enum vram_status fail_snapshot(struct world *w, struct vram_error *error) {
    struct vram_recording *recording = NULL;
    const enum vram_status status = vram_snapshot(w->other, NULL, &recording, error);
    vram_recording_destroy(recording);
    return status;
}

static const struct {
    const char *name;
    enum vram_status (*call)(struct world *world, struct vram_error *error);
} on_drivers[] = {
    {"create", fail_create}, {"graph", fail_graph}, {"capture", fail_capture}, {"peer", fail_peer}, {"snapshot", fail_snapshot}};

static void every_failure_of_the_driver_is_a_sentence(void **state) {
    struct world *world = *state;
    enum { UNKNOWN_RESULT = 999, MOST_CALLS = 200 };
    unsigned wrong = 0, failed = 0;
    for (size_t i = 0; i < sizeof on_drivers / sizeof *on_drivers; i++) {
        for (uint64_t nth = 1, before = UINT64_MAX; nth < MOST_CALLS && before != vram_driver_fault_count(world->fault); nth++) {
            struct vram_error error;
            memset(&error, UNTOUCHED, sizeof error);
            before = vram_driver_fault_count(world->fault);
            expect_ok(vram_driver_fault_set(world->fault, NULL, nth, UNKNOWN_RESULT));
            const enum vram_status status = on_drivers[i].call(world, &error);
            expect_ok(vram_driver_fault_set(world->fault, NULL, 0, 0));
            failed += status != VRAM_OK;
            if (status != VRAM_OK && !is_said(&error, status)) {
                wrong++;
                print_error("%s, driver call %llu: not said\n", on_drivers[i].name, (unsigned long long)nth);
            }
        }
    }
    assert_int_equal(wrong, 0);
    assert_true(failed >= sizeof on_drivers / sizeof *on_drivers);
}

// NULL arguments that are ignored or have a meaning, as the headers say.
static void null_is_nothing(void **state) {
    struct world *world = *state;
    vram_destroy(NULL);
    vram_driver_destroy(NULL);
    vram_host_destroy(NULL);
    vram_host_pool_release(NULL);
    vram_pool_release(NULL);
    vram_checkpoint_destroy(NULL);
    vram_graph_destroy(NULL);
    vram_workspaces_destroy(NULL);
    vram_plan_cache_destroy(NULL);
    vram_recording_destroy(NULL);
    vram_report_destroy(NULL);
    vram_explorer_destroy(NULL);
    vram_exact_result_destroy(NULL);
    vram_whatif_result_destroy(NULL);
    vram_tune_result_destroy(NULL);
    vram_cures_destroy(NULL);
    vram_paged_savings_destroy(NULL);
    assert_false(vram_main_memory(NULL, NULL));
    vram_stacks_destroy(NULL);
    vram_follow_close(NULL);
    expect_ok(vram_log_close(NULL));
    expect_ok(vram_free(world->mine, 0));
    expect_ok(vram_record_stream(world->mine, 0, 0));
    expect_ok(vram_host_free(world->host, NULL));
    expect_ok(vram_host_record_stream(world->host, NULL, 0));
    expect_ok(vram_options_check(NULL, NULL));
    expect_ok(vram_set_metadata(NULL));
    assert_int_equal(vram_metadata(NULL, 0), 0);
    expect_ok(vram_push_tag(NULL));
    vram_pop_tag();
    expect_ok(vram_push_context(NULL));
    vram_pop_context();
    expect_ok(vram_set_stream_class(world->mine, 0, NULL));
    uint64_t address = 1;
    void *pointer = world;
    expect_ok(vram_malloc(world->mine, 0, 0, 0, &address));
    expect_ok(vram_host_malloc(world->host, 0, 0, &pointer));
    assert_int_equal(address, 0);
    assert_null(pointer);
    assert_int_equal(vram_allocated_size(world->mine, world->foreign), 0);
    assert_int_equal(vram_host_allocated_size(world->host, world), 0);
    assert_false(vram_peer_enabled(world->mine, FAR_DEVICE, 0));
}

// Callbacks that themselves allocate: each request ends, and is announced once.
struct greedy {
    struct vram_allocator *allocator;
    unsigned calls;
    unsigned failures;
};

static void ask_for_too_much(struct greedy *greedy) {
    uint64_t address = 0;
    greedy->calls++;
    greedy->failures += vram_malloc(greedy->allocator, 0, PAST_63, 0, &address) == VRAM_OUT_OF_MEMORY;
}
static bool greedy_callback(uint32_t device, uint64_t size_bytes, void *user) {
    (void)device, (void)size_bytes;
    ask_for_too_much(user);
    return false;
}
static void greedy_observer(const struct vram_oom *oom, void *user) {
    assert_int_equal(oom->requested_bytes, 1ull << 40);
    ask_for_too_much(user);
}

static void callbacks_that_ask_for_memory_end(void **state) {
    struct world *world = *state;
    struct greedy callback = {.allocator = world->mine}, observer = {.allocator = world->mine};
    expect_ok(vram_add_free_callback(world->mine, greedy_callback, &callback));
    uint64_t address = 0;
    expect_ok(vram_malloc(world->mine, 0, 30 << 20, 0, &address));
    assert_int_equal(callback.calls, 1);
    assert_int_equal(callback.failures, 1);
    expect_ok(vram_remove_free_callback(world->mine, greedy_callback, &callback));
    expect_ok(vram_add_oom_observer(world->mine, greedy_observer, &observer));
    assert_int_equal(vram_malloc(world->mine, 0, 1ull << 40, 0, &address), VRAM_OUT_OF_MEMORY);
    assert_int_equal(observer.calls, 1);
    assert_int_equal(observer.failures, 1);
    struct vram_oom oom;
    assert_true(vram_last_oom(&oom));
    assert_int_equal(oom.requested_bytes, 1ull << 40);
    expect_ok(vram_remove_oom_observer(world->mine, greedy_observer, &observer));
}

// A status that is not in the table still has a name and a text.
static void unknown_statuses_have_words(void **state) {
    (void)state;
    const enum vram_status none = (enum vram_status)NO_VALUE;
    assert_true(strlen(vram_status_name(none)) > 0 && strlen(vram_status_text(none)) > 0);
}

int main(void) {
    if (setenv("VRAM_LIBCUDA", "/nowhere/libcuda.so.1", 1) != 0 || setenv("VRAM_LIBHIP", "/nowhere/libamdhip64.so", 1) != 0) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_misuse_is_a_status, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_misuse_is_a_sentence, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_failure_of_the_driver_is_a_sentence, set_up, tear_down),
        cmocka_unit_test_setup_teardown(null_is_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(callbacks_that_ask_for_memory_end, set_up, tear_down),
        cmocka_unit_test(unknown_statuses_have_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
