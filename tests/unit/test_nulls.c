// Passes NULL for every pointer that a public function requires: the result is INVALID_ARGUMENT, with a message if there is a place for it,
// or nothing if no status is returned; nothing is changed. A house test of the headers finds functions missing here. test_misuse.c tests
// functions that accept NULL.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "vram/accounts.h"
#include "vram/network.h"
#include "vram/recordings.h"
#include "vram/sim.h"
#include "vram/vram.h"

enum { UNTOUCHED = 0xA5 };

// Neither a handle nor a result; reveals an access before all pointers are checked.
static unsigned char untouched[4096];
static void *const any = untouched;
static struct vram_error error;
static unsigned wrong;

static bool swallow(void *user, const char *bytes, size_t length) {
    (void)user, (void)bytes, (void)length;
    return true;
}
static bool found_symbol(void *user, size_t index, const struct vram_frame *frame) {
    (void)user, (void)index, (void)frame;
    return true;
}
static bool visit_host(const struct vram_host_block_view *view, void *user) {
    (void)view, (void)user;
    return true;
}

static bool visit(const struct vram_block_view *view, void *user) {
    (void)view, (void)user;
    return true;
}
static void observe(const struct vram_oom *oom, void *user) { (void)oom, (void)user; }
static bool release(uint32_t device, uint64_t size_bytes, void *user) {
    (void)device, (void)size_bytes, (void)user;
    return false;
}

static void check(const char *call, bool right) {
    for (size_t i = 0; i < sizeof untouched; i++) right = right && untouched[i] == UNTOUCHED;
    if (right) return;
    wrong++;
    print_error("%s\n", call);
    memset(untouched, UNTOUCHED, sizeof untouched);
}

static void check_said(const char *call, enum vram_status status) {
    check(call,
          status == VRAM_INVALID_ARGUMENT && error.status == status && error.message[0] != '\0' && strchr(error.message, '\n') == NULL);
    error = (struct vram_error){.status = VRAM_OK};
}

#define REFUSES(call)    check(#call, (call) == VRAM_INVALID_ARGUMENT)
#define SAYS(call)       check_said(#call, (call))
#define GIVES_0(call)    check(#call, (call) == 0)
#define GIVES_NULL(call) check(#call, (call) == NULL)
#define IGNORES(call)    ((call), check(#call, true))

static void begin(void) {
    wrong = 0;
    memset(untouched, UNTOUCHED, sizeof untouched);
    error = (struct vram_error){.status = VRAM_OK};
}

static void of_allocators(void **state) {
    (void)state;
    begin();
    SAYS(vram_create(any, NULL, &error));
    REFUSES(vram_record_stream(NULL, 0, 0));
    REFUSES(vram_empty_cache(NULL));
    REFUSES(vram_empty_cache_device(NULL, 0));
    REFUSES(vram_get_block_info(NULL, 0, any));
    REFUSES(vram_get_block_info(any, 0, NULL));
    GIVES_0(vram_allocated_size(NULL, 0));
    REFUSES(vram_find_block(NULL, 0, any));
    REFUSES(vram_find_block(any, 0, NULL));
    SAYS(vram_configure(NULL, any, &error));
    SAYS(vram_set_option(NULL, any, any, &error));
    SAYS(vram_set_option(any, NULL, any, &error));
    GIVES_0(vram_configuration(NULL, NULL, 0));
    REFUSES(vram_options_in_force(NULL, any, any));
    REFUSES(vram_options_in_force(any, NULL, any));
    REFUSES(vram_set_memory_fraction(NULL, 0, 0.5));
    REFUSES(vram_memory_fraction(NULL, 0, any));
    REFUSES(vram_memory_fraction(any, 0, NULL));
    REFUSES(vram_set_memory_limit(NULL, 0, 0));
    REFUSES(vram_set_stream_class(NULL, 0, any));
    IGNORES(vram_set_caching(NULL, false));
    GIVES_0(vram_caching(NULL));
    REFUSES(vram_get_stats(NULL, 0, any));
    REFUSES(vram_get_stats(any, 0, NULL));
    REFUSES(vram_reset_peak_stats(NULL, 0));
    REFUSES(vram_reset_accumulated_stats(NULL, 0));
    REFUSES(vram_memory_info(NULL, 0, any, any));
    REFUSES(vram_memory_info(any, 0, NULL, any));
    REFUSES(vram_memory_info(any, 0, any, NULL));
    REFUSES(vram_device_count(NULL, any));
    REFUSES(vram_device_count(any, NULL));
    GIVES_0(vram_last_oom(NULL));
    GIVES_0(vram_oom_text(NULL, NULL, 0));
    REFUSES(vram_add_oom_observer(NULL, observe, any));
    REFUSES(vram_remove_oom_observer(NULL, observe, any));
    REFUSES(vram_add_free_callback(NULL, release, any));
    REFUSES(vram_remove_free_callback(NULL, release, any));
    REFUSES(vram_walk(NULL, 0, visit, any));
    SAYS(vram_check(NULL, &error));
    GIVES_0(vram_stats_json(NULL, NULL, 0));
    GIVES_0(vram_stats_summary(NULL, 0, 0, NULL, 0));
    assert_int_equal(wrong, 0);
}

static void of_drivers(void **state) {
    (void)state;
    begin();
    SAYS(vram_driver_cuda(NULL, &error));
    SAYS(vram_driver_hip(NULL, &error));
    SAYS(vram_driver_system(NULL, &error));
    REFUSES(vram_driver_version(NULL, any));
    REFUSES(vram_driver_version(any, NULL));
    REFUSES(vram_driver_devices(NULL, any));
    REFUSES(vram_driver_devices(any, NULL));
    SAYS(vram_driver_device_facts(NULL, 0, any, &error));
    SAYS(vram_driver_device_facts(any, 0, NULL, &error));
    REFUSES(vram_driver_can_access_peer(NULL, 0, 0, any));
    REFUSES(vram_driver_can_access_peer(any, 0, 0, NULL));
    REFUSES(vram_driver_fault(NULL, any));
    REFUSES(vram_driver_fault(any, NULL));
    REFUSES(vram_driver_fault_set(NULL, any, 0, 0));
    GIVES_0(vram_driver_fault_count(NULL));
    REFUSES(vram_sim_create(any, NULL));
    SAYS(vram_sim_parse(NULL, any, &error));
    assert_false(vram_sim_model_at(0, NULL));
    assert_false(vram_sim_amd_model_at(0, NULL));
    assert_string_equal(vram_sim_model_estimated(NULL), "");
    SAYS(vram_sim_parse(any, NULL, &error));
    REFUSES(vram_sim_complete(NULL, 0));
    REFUSES(vram_sim_complete_all(NULL));
    REFUSES(vram_sim_stream_create(NULL, 0, any));
    REFUSES(vram_sim_stream_create(any, 0, NULL));
    REFUSES(vram_sim_busy(NULL, 0, 0, 0));
    REFUSES(vram_sim_launch(NULL, 0, 0, NULL, any, 0));
    REFUSES(vram_sim_advance(NULL, 0));
    GIVES_0(vram_sim_clock_ns(NULL));
    REFUSES(vram_sim_queue_address(NULL, 0));
    REFUSES(vram_sim_queue_reservation(NULL, 0));
    REFUSES(vram_sim_clear_queues(NULL));
    REFUSES(vram_sim_set_memory(NULL, 0, 0));
    GIVES_0(vram_sim_memory_used(NULL, 0));
    GIVES_0(vram_sim_live_objects(NULL));
    GIVES_0(vram_sim_calls(NULL, any));
    GIVES_0(vram_sim_calls(any, NULL));
    GIVES_0(vram_sim_call_at(NULL, 0, any, any, any));
    assert_int_equal(wrong, 0);
}

static void of_networks(void **state) {
    (void)state;
    begin();
    REFUSES(vram_driver_watch(NULL, any));
    REFUSES(vram_driver_watch(any, NULL));
    REFUSES(vram_watch_add(NULL, any));
    REFUSES(vram_watch_remove(NULL, any));
    REFUSES(vram_watch_mappings(NULL, 1, 1, any, 1, any));
    SAYS(vram_watch_dma_buf(NULL, 1, 1, any, &error));
    SAYS(vram_watch_fabric(NULL, 1, any, &error));
    SAYS(vram_fabric_import(NULL, 0, any, any, &error));
    REFUSES(vram_fabric_release(NULL, any, 1));
    vram_watch_one_handle(NULL, any);
    assert_int_equal(wrong, 0);
}

static void of_pools_and_graphs(void **state) {
    (void)state;
    begin();
    REFUSES(vram_pool_create(NULL, 0, any, any));
    REFUSES(vram_pool_create(any, 0, any, NULL));
    IGNORES(vram_pool_retain(NULL));
    GIVES_0(vram_get_pool_id(NULL).first);
    GIVES_0(vram_pool_references(NULL));
    REFUSES(vram_pool_begin(NULL, any));
    REFUSES(vram_pool_begin(any, NULL));
    REFUSES(vram_pool_end(NULL, any));
    REFUSES(vram_pool_end(any, NULL));
    REFUSES(vram_pool_malloc(NULL, 1, 0, any));
    REFUSES(vram_pool_malloc(any, 1, 0, NULL));
    REFUSES(vram_pool_empty_cache(NULL));
    REFUSES(vram_pool_set_tag(NULL, "x"));
    GIVES_0(vram_pool_tag(NULL, NULL, 0));
    SAYS(vram_sleep(NULL, 0, any, 1, NULL, &error));
    SAYS(vram_sleep(any, 0, NULL, 1, NULL, &error));
    SAYS(vram_wake(NULL, 0, any, 1, NULL, &error));
    SAYS(vram_wake(any, 0, NULL, 1, NULL, &error));
    REFUSES(vram_set_fault_handler(NULL, NULL, NULL));
    REFUSES(vram_verify(NULL, NULL));
    REFUSES(vram_get_verify_counts(NULL, any));
    REFUSES(vram_get_verify_counts(any, NULL));
    REFUSES(vram_sleep_read(NULL, 0, 1, any));
    REFUSES(vram_sleep_read(any, 0, 1, NULL));
    REFUSES(vram_sleepers(NULL, 0, any, 1, any));
    REFUSES(vram_sleepers(any, 0, any, 1, NULL));
    REFUSES(vram_sleepers(any, 0, NULL, 1, any));
    REFUSES(vram_pool_find(NULL, 0, (struct vram_pool_id){0, 1}, any));
    REFUSES(vram_pool_find(any, 0, (struct vram_pool_id){0, 1}, NULL));
    IGNORES(vram_pool_set_use_on_oom(NULL, true));
    IGNORES(vram_pool_set_no_split(NULL, true));
    IGNORES(vram_pool_launch_end(NULL));
    REFUSES(vram_empty_cache_pool(NULL, 0, (struct vram_pool_id){0, 1}));
    REFUSES(vram_get_all_pool_stats(NULL, 0, any, 1, any));
    REFUSES(vram_get_all_pool_stats(any, 0, any, 1, NULL));
    REFUSES(vram_get_all_pool_stats(any, 0, NULL, 1, any));
    REFUSES(vram_capture_mark_begin(NULL, 0, 0));
    REFUSES(vram_capture_mark_end(NULL, 0, 0));
    REFUSES(vram_pool_launch_begin(NULL, 0, NULL));
    GIVES_0(vram_tag(NULL, 0));
    GIVES_0(vram_compile_context(NULL, 0));
    REFUSES(vram_set_event_listener(NULL, any));
    REFUSES(vram_block_context(NULL, 0, any));
    REFUSES(vram_block_context(any, 0, NULL));
    GIVES_0(vram_is_expandable(NULL, 512));
    REFUSES(vram_expandable_segments(NULL, 0, any, 1, any));
    REFUSES(vram_expandable_segments(any, 0, any, 1, NULL));
    REFUSES(vram_expandable_segments(any, 0, NULL, 1, any));
    REFUSES(vram_get_cache_info(NULL, 0, any));
    REFUSES(vram_get_cache_info(any, 0, NULL));
    REFUSES(vram_get_pool_stats(NULL, any));
    REFUSES(vram_get_pool_stats(any, NULL));
    REFUSES(vram_pool_walk(NULL, visit, any));
    REFUSES(vram_pool_checkpoint(NULL, any));
    REFUSES(vram_pool_checkpoint(any, NULL));
    REFUSES(vram_pool_restore(NULL, any, any));
    REFUSES(vram_pool_restore(any, NULL, any));
    REFUSES(vram_pool_holds_exactly(NULL, any, 1, any));
    REFUSES(vram_pool_holds_exactly(any, any, 1, NULL));
    REFUSES(vram_pool_holds_exactly(any, NULL, 1, any));
    REFUSES(vram_malloc_at(NULL, 0, 1, 0, 0));
    SAYS(vram_capture_begin(NULL, 0, VRAM_CAPTURE_GLOBAL, &error));
    SAYS(vram_capture_end(NULL, 0, any, &error));
    SAYS(vram_capture_end(any, 0, NULL, &error));
    REFUSES(vram_capture_enter(NULL, 0));
    REFUSES(vram_capture_leave(NULL, 0));
    SAYS(vram_graph_begin(NULL, 0, 0, any, any, &error));
    SAYS(vram_graph_begin(any, 0, 0, any, NULL, &error));
    SAYS(vram_graph_end(NULL, &error));
    REFUSES(vram_graph_add_static(NULL, 0));
    SAYS(vram_graph_launch(NULL, 0, &error));
    GIVES_NULL(vram_graph_pool(NULL));
    GIVES_0(vram_graph_exec(NULL));
    SAYS(vram_graph_capture_all(NULL, 0, 0, any, 1, 0, any, &error));
    SAYS(vram_graph_capture_all(any, 0, 0, NULL, 1, 0, any, &error));
    SAYS(vram_graph_capture_all(any, 0, 0, any, 1, 0, NULL, &error));
    assert_int_equal(wrong, 0);
}

static void of_pinned_memory(void **state) {
    (void)state;
    begin();
    SAYS(vram_host_create(any, NULL, &error));
    SAYS(vram_host_configure(NULL, any, &error));
    REFUSES(vram_host_malloc(NULL, 1, 0, any));
    REFUSES(vram_host_malloc(any, 1, 0, NULL));
    REFUSES(vram_host_free(NULL, any));
    REFUSES(vram_host_record_stream(NULL, any, 0));
    REFUSES(vram_host_empty_cache(NULL));
    REFUSES(vram_get_host_block_info(NULL, any, any));
    REFUSES(vram_get_host_block_info(any, any, NULL));
    GIVES_0(vram_host_allocated_size(NULL, any));
    SAYS(vram_host_check(NULL, &error));
    IGNORES(vram_host_set_event_listener(NULL, NULL, NULL));
    REFUSES(vram_host_walk(NULL, visit_host, any));
    REFUSES(vram_host_walk(any, NULL, any));
    IGNORES(vram_get_host_stats(NULL, any));
    IGNORES(vram_get_host_stats(any, NULL));
    IGNORES(vram_host_reset_peak_stats(NULL));
    IGNORES(vram_host_reset_accumulated_stats(NULL));
    GIVES_0(vram_host_stats_json(NULL, NULL, 0));
    REFUSES(vram_host_pool_create(NULL, any, any));
    REFUSES(vram_host_pool_create(any, any, NULL));
    IGNORES(vram_host_pool_retain(NULL));
    GIVES_0(vram_host_pool_id(NULL).first);
    GIVES_0(vram_host_pool_references(NULL));
    REFUSES(vram_host_pool_begin(NULL, any));
    REFUSES(vram_host_pool_begin(any, NULL));
    REFUSES(vram_host_pool_end(NULL, any));
    REFUSES(vram_host_pool_end(any, NULL));
    REFUSES(vram_host_pool_malloc(NULL, 1, 0, any));
    REFUSES(vram_host_pool_malloc(any, 1, 0, NULL));
    REFUSES(vram_host_pool_empty_cache(NULL));
    IGNORES(vram_get_host_pool_stats(NULL, any));
    IGNORES(vram_get_host_pool_stats(any, NULL));
    assert_int_equal(wrong, 0);
}

static void of_what_is_shared(void **state) {
    (void)state;
    begin();
    REFUSES(vram_peer_possible(NULL, 0, 0, any));
    REFUSES(vram_peer_possible(any, 0, 0, NULL));
    SAYS(vram_peer_enable(NULL, 0, 0, &error));
    GIVES_0(vram_peer_enabled(NULL, 0, 0));
    REFUSES(vram_export_size(NULL, 0, any));
    REFUSES(vram_export_size(any, 0, NULL));
    SAYS(vram_export(NULL, 0, any, 1, any, &error));
    SAYS(vram_export(any, 0, NULL, 1, any, &error));
    SAYS(vram_export(any, 0, any, 1, NULL, &error));
    REFUSES(vram_export_end(NULL, 0));
    SAYS(vram_import(NULL, any, 1, any, &error));
    SAYS(vram_import(any, any, 1, NULL, &error));
    REFUSES(vram_import_release(NULL, 0));
    SAYS(vram_export_send(NULL, 0, 0, &error));
    SAYS(vram_import_receive(NULL, 0, any, &error));
    SAYS(vram_import_receive(any, 0, NULL, &error));
    IGNORES(vram_get_share_stats(NULL, any));
    IGNORES(vram_get_share_stats(any, NULL));
    IGNORES(vram_get_workspace_sizes(any, 0, 0, NULL));
    REFUSES(vram_workspaces_create(NULL, any));
    REFUSES(vram_workspaces_create(any, NULL));
    REFUSES(vram_workspace_get(NULL, 0, 0, 0, VRAM_WORKSPACE_CUBLAS, any));
    REFUSES(vram_workspace_get(any, 0, 0, 0, VRAM_WORKSPACE_CUBLAS, NULL));
    REFUSES(vram_workspaces_clear(NULL));
    REFUSES(vram_workspaces_forget(NULL, 0));
    IGNORES(vram_workspaces_count(NULL, any, any));
    SAYS(vram_cublas_open(any, NULL, &error));
    IGNORES(vram_cublas_close(NULL));
    SAYS(vram_cublas_set(NULL, any, 0, any, 0, &error));
    SAYS(vram_cublas_set(any, NULL, 0, any, 0, &error));
    REFUSES(vram_plan_cache_create(NULL, any, any));
    REFUSES(vram_plan_cache_create(any, NULL, any));
    REFUSES(vram_plan_cache_create(any, any, NULL));
    REFUSES(vram_plan_acquire(NULL, 0, 0, any, 1, any));
    REFUSES(vram_plan_acquire(any, 0, 0, any, 1, NULL));
    REFUSES(vram_plan_release(NULL, any));
    REFUSES(vram_plan_release(any, NULL));
    REFUSES(vram_plan_cache_set_max(NULL, 0, 0));
    REFUSES(vram_plan_cache_clear(NULL, 0));
    REFUSES(vram_get_plan_cache_stats(NULL, 0, any));
    REFUSES(vram_get_plan_cache_stats(any, 0, NULL));
    SAYS(vram_cufft_open(any, NULL, &error));
    IGNORES(vram_cufft_close(NULL));
    IGNORES(vram_cufft_functions(NULL, any));
    IGNORES(vram_cufft_functions(any, NULL));
    SAYS(vram_cufft_set(NULL, any, &error));
    SAYS(vram_cufft_set(any, NULL, &error));
    assert_int_equal(wrong, 0);
}

static void of_histories(void **state) {
    (void)state;
    begin();
    SAYS(vram_history_start(NULL, any, &error));
    SAYS(vram_history_start_text(NULL, any, &error));
    SAYS(vram_history_start_text(any, NULL, &error));
    REFUSES(vram_history_stop(NULL));
    IGNORES(vram_get_history_counts(NULL, any));
    IGNORES(vram_get_history_counts(any, NULL));
    REFUSES(vram_annotate(NULL, 0, any));
    REFUSES(vram_annotation_begin(NULL, 0, any));
    REFUSES(vram_annotation_begin(any, 0, NULL));
    REFUSES(vram_annotation_end(NULL, 0, any));
    REFUSES(vram_annotation_end(any, 0, NULL));
    REFUSES(vram_annotation_pairs(NULL, 0, any, 1));
    REFUSES(vram_annotation_pairs(any, 0, NULL, 1));
    REFUSES(vram_step(NULL, 0, any));
    REFUSES(vram_step(any, 0, NULL));
    REFUSES(vram_expand_path(NULL, any, 1, any));
    SAYS(vram_snapshot(NULL, any, any, &error));
    SAYS(vram_snapshot(any, any, NULL, &error));
    SAYS(vram_snapshot_write(NULL, any, VRAM_FORMAT_JSON, swallow, any, &error));
    SAYS(vram_snapshot_write(any, any, VRAM_FORMAT_JSON, NULL, any, &error));
    SAYS(vram_snapshot_save(NULL, any, any, &error));
    SAYS(vram_snapshot_save(any, any, NULL, &error));
    REFUSES(vram_prometheus_write(NULL, swallow, any));
    REFUSES(vram_prometheus_write(any, NULL, any));
    SAYS(vram_prometheus_start(NULL, any, &error));
    SAYS(vram_prometheus_start(any, NULL, &error));
    IGNORES(vram_prometheus_stop(NULL));
    REFUSES(vram_stacks_create(any, NULL));
    GIVES_0(vram_stack_take(NULL, VRAM_STACK_ALL, 0));
    GIVES_0(vram_stack_take_at(NULL, VRAM_STACK_ALL, any));
    GIVES_0(vram_stack_frames(NULL, 0, any, 1));
    REFUSES(vram_stack_log(NULL, 0, any, any));
    REFUSES(vram_stack_log(any, 0, NULL, any));
    REFUSES(vram_stack_log(any, 0, any, NULL));
    check("vram_stack_module", strcmp(vram_stack_module(NULL, 0, any, 0), "") == 0);
    vram_stack_spare(NULL, NULL);
    IGNORES(vram_get_stacks_counts(NULL, any));
    IGNORES(vram_get_stacks_counts(any, NULL));
    SAYS(vram_processes_find(any, any, NULL, &error));
    REFUSES(vram_accounts_log(NULL, any, 0));
    REFUSES(vram_accounts_log(any, NULL, 0));
    SAYS(vram_options_list(any, NULL, any, &error));
    wrong += vram_edit_distance(NULL, any) != SIZE_MAX || vram_edit_distance(any, NULL) != SIZE_MAX;
    assert_int_equal(wrong, 0);
}

static void of_logs(void **state) {
    (void)state;
    begin();
    SAYS(vram_log_create(NULL, any, any, &error));
    SAYS(vram_log_create(any, any, NULL, &error));
    IGNORES(vram_log_abandon(NULL));
    REFUSES(vram_log_string(NULL, any, 1, any));
    REFUSES(vram_log_string(any, any, 1, NULL));
    REFUSES(vram_log_string(any, NULL, 1, any));
    REFUSES(vram_log_frame(NULL, 0, 0, 0, any));
    REFUSES(vram_log_frame(any, 0, 0, 0, NULL));
    REFUSES(vram_log_module(NULL, any, any, any));
    REFUSES(vram_log_module(any, NULL, any, any));
    REFUSES(vram_log_module(any, any, any, NULL));
    REFUSES(vram_log_code(NULL, 0, 0, any));
    REFUSES(vram_log_code(any, 0, 0, NULL));
    REFUSES(vram_log_stack(NULL, any, 1, any));
    REFUSES(vram_log_stack(any, any, 1, NULL));
    REFUSES(vram_log_stack(any, NULL, 1, any));
    REFUSES(vram_log_append(NULL, any, 1));
    REFUSES(vram_log_append(any, NULL, 1));
    REFUSES(vram_log_append_free(NULL, any));
    REFUSES(vram_log_append_free(any, NULL));
    REFUSES(vram_log_annotation(NULL, 0, any, any, 0));
    REFUSES(vram_log_annotation(any, 0, NULL, any, 0));
    REFUSES(vram_log_annotation(any, 0, any, NULL, 0));
    REFUSES(vram_log_setting(NULL, any, any));
    REFUSES(vram_log_setting(any, NULL, any));
    REFUSES(vram_log_setting(any, any, NULL));
    REFUSES(vram_log_state(NULL, any, 1));
    REFUSES(vram_log_state(any, NULL, 1));
    REFUSES(vram_log_flush(NULL));
    IGNORES(vram_get_log_counts(NULL, any));
    IGNORES(vram_get_log_counts(any, NULL));
    SAYS(vram_follow_open(NULL, 0, any, &error));
    SAYS(vram_follow_open(any, 0, NULL, &error));
    SAYS(vram_follow_next(NULL, any, 1, any, &error));
    SAYS(vram_follow_next(any, any, 1, NULL, &error));
    SAYS(vram_follow_next(any, NULL, 1, any, &error));
    GIVES_0(vram_follow_ended(NULL));
    GIVES_NULL(vram_follow_string(NULL, 0));
    GIVES_0(vram_follow_stack(NULL, 0, any, 1));
    assert_int_equal(wrong, 0);
}

static void of_recordings(void **state) {
    (void)state;
    begin();
    SAYS(vram_recording_read(NULL, any, &error));
    SAYS(vram_recording_read(any, NULL, &error));
    SAYS(vram_recording_read_memory(any, 1, any, NULL, &error));
    SAYS(vram_recording_read_file(NULL, any, &error));
    SAYS(vram_recording_read_file(any, NULL, &error));
    GIVES_0(vram_get_recording_form(NULL));
    GIVES_0(vram_get_recording_ending(NULL));
    GIVES_0(vram_recording_device_count(NULL));
    GIVES_0(vram_recording_device_is_host(NULL, 0));
    GIVES_0(vram_recording_event_count(NULL, 0));
    GIVES_0(vram_recording_segment_count(NULL));
    GIVES_0(vram_recording_block_count(NULL));
    GIVES_NULL(vram_recording_setting(NULL, any));
    GIVES_NULL(vram_recording_setting(any, NULL));
    GIVES_0(vram_recording_event(NULL, 0, 0, any));
    GIVES_0(vram_recording_event(any, 0, 0, NULL));
    GIVES_0(vram_recording_segment(NULL, 0, any));
    GIVES_0(vram_recording_segment(any, 0, NULL));
    GIVES_0(vram_recording_block(NULL, 0, any));
    GIVES_0(vram_recording_block(any, 0, NULL));
    GIVES_0(vram_recording_annotation(NULL, 0, any));
    GIVES_0(vram_recording_annotation(any, 0, NULL));
    GIVES_0(vram_recording_setting_at(NULL, 0, any, any));
    GIVES_0(vram_recording_setting_at(any, 0, NULL, any));
    GIVES_0(vram_recording_setting_at(any, 0, any, NULL));
    GIVES_0(vram_recording_stack_count(NULL));
    GIVES_0(vram_recording_frame_count(NULL));
    GIVES_NULL(vram_recording_stack(NULL, 0, any));
    GIVES_NULL(vram_recording_stack(any, 0, NULL));
    REFUSES(vram_recording_sites(NULL, any));
    REFUSES(vram_recording_sites(any, NULL));
    check("vram_site_of_frames(NULL, 1)", vram_site_of_frames(NULL, 1) == SIZE_MAX);
    SAYS(vram_recording_skip_frames(NULL, any, &error));
    SAYS(vram_recording_skip_frames(any, NULL, &error));
    GIVES_0(vram_recording_frame(NULL, 0, any));
    GIVES_0(vram_recording_frame(any, 0, NULL));
    GIVES_0(vram_recording_column(NULL, VRAM_ROWS_EVENTS, 0, 0, any));
    GIVES_0(vram_recording_column(any, VRAM_ROWS_EVENTS, 0, 0, NULL));
    GIVES_0(vram_recording_string_count(NULL));
    GIVES_NULL(vram_recording_string(NULL, 0, any));
    GIVES_NULL(vram_recording_string(any, 0, NULL));
    REFUSES(vram_recording_symbolize(NULL, any, any));
    REFUSES(vram_symbolize(NULL, "", any, 1, any, found_symbol, any));
    REFUSES(vram_symbolize("x", "", NULL, 1, any, found_symbol, any));
    REFUSES(vram_symbolize("x", "", any, 1, any, NULL, any));
    SAYS(vram_recording_write(NULL, VRAM_FORMAT_JSON, swallow, any, &error));
    SAYS(vram_recording_write(any, VRAM_FORMAT_JSON, NULL, any, &error));
    SAYS(vram_recording_export(NULL, VRAM_EXPORT_EVENTS, any, swallow, any, &error));
    SAYS(vram_recording_export(any, VRAM_EXPORT_EVENTS, any, NULL, any, &error));
    assert_int_equal(wrong, 0);
}

static void of_reports(void **state) {
    (void)state;
    begin();
    SAYS(vram_report_create(NULL, any, any, &error));
    SAYS(vram_report_create(any, any, NULL, &error));
    SAYS(vram_roles_create(NULL, any, any, &error));
    SAYS(vram_roles_create(any, any, NULL, &error));
    vram_roles_destroy(NULL);
    assert_null(vram_report_worst_device(NULL));
    REFUSES(vram_report_json(NULL, any, swallow, any));
    REFUSES(vram_report_json(any, any, NULL, any));
    REFUSES(vram_report_text(NULL, any, any, swallow, any));
    REFUSES(vram_report_text(any, any, any, NULL, any));
    SAYS(vram_cures_find(NULL, any, any, &error));
    SAYS(vram_cures_find(any, NULL, any, &error));
    SAYS(vram_cures_find(any, any, NULL, &error));
    SAYS(vram_cures_find_within(NULL, any, 0, any, &error));
    SAYS(vram_cures_find_within(any, NULL, 0, any, &error));
    SAYS(vram_cures_find_within(any, any, 0, NULL, &error));
    SAYS(vram_paged_savings_find(NULL, any, 0, any, &error));
    SAYS(vram_paged_savings_find(any, NULL, 0, any, &error));
    SAYS(vram_paged_savings_find(any, any, 0, NULL, &error));
    REFUSES(vram_paged_saving_text(NULL, swallow, any));
    REFUSES(vram_paged_saving_text(any, NULL, any));
    REFUSES(vram_explorer_create(NULL));
    SAYS(vram_explorer_add(NULL, any, any, 0, &error));
    SAYS(vram_explorer_add(any, NULL, any, 0, &error));
    SAYS(vram_explorer_ask(NULL, any, swallow, any, &error));
    SAYS(vram_explorer_ask(any, NULL, swallow, any, &error));
    SAYS(vram_explorer_ask(any, any, NULL, any, &error));
    SAYS(vram_listing_text(NULL, VRAM_LISTING_STATS, any, swallow, any, &error));
    SAYS(vram_listing_text(any, VRAM_LISTING_STATS, any, NULL, any, &error));
    SAYS(vram_listing_json(NULL, VRAM_LISTING_STATS, any, swallow, any, &error));
    SAYS(vram_listing_json(any, VRAM_LISTING_STATS, any, NULL, any, &error));
    SAYS(vram_profile_text(NULL, any, any, any, swallow, any, &error));
    SAYS(vram_profile_text(any, NULL, any, any, swallow, any, &error));
    SAYS(vram_profile_text(any, any, any, any, NULL, any, &error));
    SAYS(vram_profile_json(NULL, any, any, swallow, any, &error));
    SAYS(vram_profile_json(any, NULL, any, swallow, any, &error));
    SAYS(vram_profile_json(any, any, any, NULL, any, &error));
    REFUSES(vram_timeline_text(NULL, any, 0, any, swallow, any));
    REFUSES(vram_timeline_text(any, any, 0, any, NULL, any));
    SAYS(vram_flame_svg(NULL, any, any, any, swallow, any, &error));
    SAYS(vram_flame_svg(any, any, NULL, any, swallow, any, &error));
    SAYS(vram_flame_svg(any, any, any, any, NULL, any, &error));
    SAYS(vram_flame_folded(NULL, any, any, swallow, any, &error));
    SAYS(vram_flame_folded(any, any, NULL, swallow, any, &error));
    SAYS(vram_flame_folded(any, any, any, NULL, any, &error));
    SAYS(vram_diff_text(NULL, any, swallow, any, any, &error));
    SAYS(vram_diff_text(any, any, NULL, any, any, &error));
    SAYS(vram_forecast_text(NULL, any, swallow, any, any, &error));
    SAYS(vram_forecast_text(any, any, NULL, any, any, &error));
    SAYS(vram_forecast_json(NULL, swallow, any, any, &error));
    SAYS(vram_forecast_json(any, NULL, any, any, &error));
    SAYS(vram_diff_json(NULL, swallow, any, any, &error));
    SAYS(vram_diff_json(any, NULL, any, any, &error));
    SAYS(vram_leaks_text(NULL, any, any, any, swallow, any, any, &error));
    SAYS(vram_leaks_text(any, NULL, any, any, swallow, any, any, &error));
    SAYS(vram_leaks_text(any, any, any, any, NULL, any, any, &error));
    SAYS(vram_leaks_json(NULL, any, any, swallow, any, any, &error));
    SAYS(vram_leaks_json(any, NULL, any, swallow, any, any, &error));
    SAYS(vram_leaks_json(any, any, any, NULL, any, any, &error));
    SAYS(vram_slow_leaks_text(NULL, any, any, any, swallow, any, any, &error));
    SAYS(vram_slow_leaks_text(any, NULL, any, any, swallow, any, any, &error));
    SAYS(vram_slow_leaks_text(any, any, any, any, NULL, any, any, &error));
    SAYS(vram_slow_leaks_json(NULL, any, any, swallow, any, any, &error));
    SAYS(vram_slow_leaks_json(any, NULL, any, swallow, any, any, &error));
    SAYS(vram_slow_leaks_json(any, any, any, NULL, any, any, &error));
    REFUSES(vram_slow_growth_create(NULL));
    vram_slow_growth_destroy(NULL);
    assert_int_equal(vram_slow_growth_pass(NULL, 7), 7);
    REFUSES(vram_slow_growth_alloc(NULL, 1, 1));
    REFUSES(vram_slow_growth_free(NULL, 1, 1, 1));
    REFUSES(vram_slow_growth_leaks(NULL, any, 1, any));
    REFUSES(vram_slow_growth_leaks(any, NULL, 1, any));
    REFUSES(vram_slow_growth_leaks(any, any, 1, NULL));
    assert_int_equal(wrong, 0);
}

static void of_replays(void **state) {
    (void)state;
    begin();
    SAYS(vram_replay_exact(NULL, any, any, &error));
    SAYS(vram_replay_exact(any, any, NULL, &error));
    REFUSES(vram_exact_json(NULL, any, swallow, any));
    REFUSES(vram_exact_json(any, any, NULL, any));
    REFUSES(vram_exact_text(NULL, any, any, swallow, any));
    REFUSES(vram_exact_text(any, any, any, NULL, any));
    REFUSES(vram_exact_placements(NULL, swallow, any));
    REFUSES(vram_exact_placements(any, NULL, any));
    SAYS(vram_replay_whatif(NULL, any, any, &error));
    SAYS(vram_replay_whatif(any, any, NULL, &error));
    REFUSES(vram_whatif_json(any, 1, any, NULL, any));
    REFUSES(vram_whatif_json(NULL, 1, any, swallow, any));
    REFUSES(vram_whatif_text(any, 1, any, any, NULL, any));
    REFUSES(vram_whatif_text(NULL, 1, any, any, swallow, any));
    SAYS(vram_tune(any, 1, any, NULL, &error));
    SAYS(vram_tune(NULL, 1, any, any, &error));
    REFUSES(vram_tune_json(NULL, any, swallow, any));
    REFUSES(vram_tune_json(any, any, NULL, any));
    REFUSES(vram_tune_text(NULL, any, any, swallow, any));
    REFUSES(vram_tune_text(any, any, any, NULL, any));
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_allocators),    cmocka_unit_test(of_drivers),        cmocka_unit_test(of_pools_and_graphs),
        cmocka_unit_test(of_pinned_memory), cmocka_unit_test(of_what_is_shared), cmocka_unit_test(of_histories),
        cmocka_unit_test(of_logs),          cmocka_unit_test(of_recordings),     cmocka_unit_test(of_reports),
        cmocka_unit_test(of_replays),       cmocka_unit_test(of_networks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
