//! The functions of vram/vram.h and vram/sim.h, as C has them: written by tools/rust_bindings.py. The crate `vram` is what programs use.
#![allow(non_camel_case_types, clippy::missing_safety_doc)]
use std::os::raw::{c_char, c_int, c_uint, c_void};

pub const VRAM_PROCESS_NAME: usize = 64;
pub const VRAM_MOST_PROCESSES: usize = 128;
pub const VRAM_ACCOUNTS_SLOTS: usize = 16;
pub const VRAM_MAX_DEVICES: usize = 64;
pub const VRAM_FABRIC_BYTES: usize = 64;
pub const VRAM_HANDLE_BYTES: usize = 256;
pub const VRAM_VERSION_MAJOR: usize = 0;
pub const VRAM_VERSION_MINOR: usize = 1;
pub const VRAM_VERSION_PATCH: usize = 0;
pub const VRAM_PLAN_CACHE_DEFAULT: usize = 4096;
pub const VRAM_FORECAST_MOST: usize = 3;
pub const VRAM_REPORT_OOM_PICTURES: usize = 16;
pub const VRAM_REPORT_STATES: usize = 5;
pub const VRAM_REPORT_MISMATCHES: usize = 5;
pub const VRAM_REPORT_POINTS: usize = 240;
pub const VRAM_WHATIF_CALLS: usize = 96;
pub const VRAM_PAGED_MOST_EVENTS: usize = 200000;
pub const VRAM_NO_OFFSET: u64 = u64::MAX;
pub const VRAM_SIM_CONTEXT_OF_DEVICE: u64 = u64::MAX;
pub type vram_status = c_uint;
pub const VRAM_OK: vram_status = 0;
pub const VRAM_INVALID_ARGUMENT: vram_status = 1;
pub const VRAM_INVALID_POINTER: vram_status = 2;
pub const VRAM_BAD_OPTION: vram_status = 3;
pub const VRAM_OUT_OF_MEMORY: vram_status = 4;
pub const VRAM_REJECTED: vram_status = 5;
pub const VRAM_MISMATCH: vram_status = 6;
pub const VRAM_NO_HOST_MEMORY: vram_status = 7;
pub const VRAM_BAD_INPUT: vram_status = 8;
pub const VRAM_IO: vram_status = 9;
pub const VRAM_LIMIT: vram_status = 10;
pub const VRAM_NO_DRIVER: vram_status = 11;
pub const VRAM_DRIVER: vram_status = 12;
pub const VRAM_UNSUPPORTED: vram_status = 13;
pub const VRAM_ASLEEP: vram_status = 14;
pub const VRAM_LENT: vram_status = 15;
pub type vram_write = Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> bool>;
pub type vram_sim_profile = c_uint;
pub const VRAM_SIM_CHEAP: vram_sim_profile = 0;
pub const VRAM_SIM_DEAR: vram_sim_profile = 1;
pub const VRAM_SIM_FREE: vram_sim_profile = 2;
pub type vram_sim_addresses = c_uint;
pub const VRAM_SIM_RISING: vram_sim_addresses = 0;
pub const VRAM_SIM_FALLING: vram_sim_addresses = 1;
pub const VRAM_SIM_REUSE: vram_sim_addresses = 2;
pub const VRAM_SIM_DRIVER: vram_sim_addresses = 3;
pub const VRAM_SIM_WINDOWS: vram_sim_addresses = 4;
pub const VRAM_SIM_MOST_DEVICES: c_int = 64;
pub type vram_sim_bytes = c_uint;
pub const VRAM_SIM_BYTES_BACKED: vram_sim_bytes = 0;
pub const VRAM_SIM_BYTES_ALL: vram_sim_bytes = 1;
pub const VRAM_SIM_BYTES_SPARSE: vram_sim_bytes = 2;
pub const VRAM_SIM_BYTES_NONE: vram_sim_bytes = 3;
pub type vram_option_visitor = Option<unsafe extern "C" fn(*const vram_option, *mut c_void) -> bool>;
pub type vram_stat_pool = c_uint;
pub const VRAM_STAT_ALL: vram_stat_pool = 0;
pub const VRAM_STAT_SMALL_POOL: vram_stat_pool = 1;
pub const VRAM_STAT_LARGE_POOL: vram_stat_pool = 2;
pub const VRAM_STAT_POOLS: vram_stat_pool = 3;
pub type vram_tie_break = c_uint;
pub const VRAM_TIE_AS_PYTORCH: vram_tie_break = 0;
pub const VRAM_TIE_OLDEST_SEGMENT: vram_tie_break = 1;
pub const VRAM_TIE_LOWEST_ADDRESS: vram_tie_break = 2;
pub type vram_oom_observer = Option<unsafe extern "C" fn(*const vram_oom, *mut c_void)>;
pub type vram_free_callback = Option<unsafe extern "C" fn(u32, u64, *mut c_void) -> bool>;
pub type vram_block_state = c_uint;
pub const VRAM_BLOCK_FREE: vram_block_state = 0;
pub const VRAM_BLOCK_ALLOCATED: vram_block_state = 1;
pub const VRAM_BLOCK_PENDING: vram_block_state = 2;
pub type vram_block_visitor = Option<unsafe extern "C" fn(*const vram_block_view, *mut c_void) -> bool>;
pub type vram_pool_allocate = Option<unsafe extern "C" fn(u64, u32, u64, *mut c_void) -> u64>;
pub type vram_pool_deallocate = Option<unsafe extern "C" fn(u64, u64, u32, u64, *mut c_void)>;
pub type vram_route_kind = c_uint;
pub const VRAM_ROUTE_THREAD: vram_route_kind = 0;
pub const VRAM_ROUTE_STREAM: vram_route_kind = 1;
pub const VRAM_ROUTE_CAPTURE: vram_route_kind = 2;
pub const VRAM_ROUTE_ALL: vram_route_kind = 3;
pub const VRAM_ROUTE_FILTER: vram_route_kind = 4;
pub type vram_route_filter = Option<unsafe extern "C" fn(u64, *mut c_void) -> bool>;
pub type vram_capture_mode = c_uint;
pub const VRAM_CAPTURE_GLOBAL: vram_capture_mode = 0;
pub const VRAM_CAPTURE_THREAD_LOCAL: vram_capture_mode = 1;
pub const VRAM_CAPTURE_RELAXED: vram_capture_mode = 2;
pub type vram_graph_region = Option<unsafe extern "C" fn(u64, *mut c_void) -> vram_status>;
pub type vram_host_origin = c_uint;
pub const VRAM_HOST_ALLOCATED: vram_host_origin = 0;
pub const VRAM_HOST_REGISTERED: vram_host_origin = 1;
pub const VRAM_HOST_RESERVED: vram_host_origin = 2;
pub const VRAM_HOST_BUCKETS: c_int = 64;
pub type vram_event_action = c_uint;
pub const VRAM_EVENT_ALLOC: vram_event_action = 0;
pub const VRAM_EVENT_FREE_REQUESTED: vram_event_action = 1;
pub const VRAM_EVENT_FREE_COMPLETED: vram_event_action = 2;
pub const VRAM_EVENT_SEGMENT_ALLOC: vram_event_action = 3;
pub const VRAM_EVENT_SEGMENT_FREE: vram_event_action = 4;
pub const VRAM_EVENT_SEGMENT_MAP: vram_event_action = 5;
pub const VRAM_EVENT_SEGMENT_UNMAP: vram_event_action = 6;
pub const VRAM_EVENT_OOM: vram_event_action = 7;
pub const VRAM_EVENT_SNAPSHOT: vram_event_action = 8;
pub const VRAM_EVENT_ANNOTATE: vram_event_action = 9;
pub const VRAM_EVENT_ACTIONS: vram_event_action = 10;
pub type vram_context_level = c_uint;
pub const VRAM_CONTEXT_NEVER: vram_context_level = 0;
pub const VRAM_CONTEXT_STATE: vram_context_level = 1;
pub const VRAM_CONTEXT_ALLOC: vram_context_level = 2;
pub const VRAM_CONTEXT_ALL: vram_context_level = 3;
pub type vram_host_event_function = Option<unsafe extern "C" fn(*const vram_event, *mut c_void)>;
pub type vram_host_visitor = Option<unsafe extern "C" fn(*const vram_host_block_view, *mut c_void) -> bool>;
pub type vram_history_level = c_uint;
pub const VRAM_HISTORY_ALL: vram_history_level = 0;
pub const VRAM_HISTORY_ALLOC: vram_history_level = 1;
pub const VRAM_HISTORY_STATE: vram_history_level = 2;
pub const VRAM_HISTORY_NONE: vram_history_level = 3;
pub type vram_history_stacks = c_uint;
pub const VRAM_HISTORY_STACKS_ALL: vram_history_stacks = 0;
pub const VRAM_HISTORY_STACKS_PYTHON: vram_history_stacks = 1;
pub const VRAM_HISTORY_STACKS_C: vram_history_stacks = 2;
pub const VRAM_TAG_BYTES: c_int = 64;
pub type vram_sleep_level = c_uint;
pub const VRAM_SLEEP_KEEP: vram_sleep_level = 0;
pub const VRAM_SLEEP_DISCARD: vram_sleep_level = 1;
pub const VRAM_SLEEP_ZERO: vram_sleep_level = 2;
pub type vram_stack_kind = c_uint;
pub const VRAM_STACK_NONE: vram_stack_kind = 0;
pub const VRAM_STACK_PYTHON: vram_stack_kind = 1;
pub const VRAM_STACK_C: vram_stack_kind = 2;
pub const VRAM_STACK_ALL: vram_stack_kind = 3;
pub type vram_fault_kind = c_uint;
pub const VRAM_FAULT_OVERFLOW: vram_fault_kind = 0;
pub const VRAM_FAULT_UNDERFLOW: vram_fault_kind = 1;
pub const VRAM_FAULT_USE_AFTER_FREE: vram_fault_kind = 2;
pub const VRAM_FAULT_DOUBLE_FREE: vram_fault_kind = 3;
pub const VRAM_FAULT_INNER_FREE: vram_fault_kind = 4;
pub const VRAM_FAULT_FOREIGN_FREE: vram_fault_kind = 5;
pub const VRAM_FAULT_UNKNOWN_FREE: vram_fault_kind = 6;
pub const VRAM_FAULT_LEAK: vram_fault_kind = 7;
pub const VRAM_FAULT_KINDS: vram_fault_kind = 8;
pub type vram_fault_handler = Option<unsafe extern "C" fn(*const vram_fault, *mut c_void)>;
pub type vram_workspace_kind = c_uint;
pub const VRAM_WORKSPACE_CUBLAS: vram_workspace_kind = 0;
pub const VRAM_WORKSPACE_CUBLASLT: vram_workspace_kind = 1;
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_error {
    pub status: vram_status,
    pub driver_result: i32,
    pub offset: u64,
    pub message: [c_char; 512],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_style {
    pub columns: c_uint,
    pub colour: bool,
    pub unicode: bool,
}
#[repr(C)]
pub struct vram_driver {
    _private: [u8; 0],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_device_facts {
    pub name: [c_char; 128],
    pub total_bytes: u64,
    pub free_bytes: u64,
    pub compute_major: i32,
    pub compute_minor: i32,
    pub multiprocessors: i32,
    pub granularity_bytes: u64,
    pub integrated: bool,
    pub virtual_memory: bool,
    pub file_handles: bool,
    pub fabric_handles: bool,
    pub rdma: bool,
    pub memory_pools: bool,
    pub managed: bool,
    pub multicast: bool,
    pub host_register: bool,
    pub unified_addresses: bool,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_sim_options {
    pub device_count: u32,
    pub memory_bytes: u64,
    pub profile: vram_sim_profile,
    pub addresses: vram_sim_addresses,
    pub alloc_base: u64,
    pub alloc_alignment: u64,
    pub alloc_small_alignment: u64,
    pub reserve_base: u64,
    pub reserve_alignment: u64,
    pub manual_completion: bool,
    pub backed: bool,
    pub host_thread: bool,
    pub no_peers: bool,
    pub kernel_ns: u64,
    pub context_bytes: u64,
    pub driver_version: u32,
    pub model_count: u32,
    pub models: [u8; 64],
    pub visible_count: u32,
    pub visible: [u8; 64],
    pub bytes: vram_sim_bytes,
    pub page_cache_bytes: u64,
    pub poison_aliases: bool,
    pub pinned_bytes: u64,
    pub network: bool,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_sim_model {
    pub key: *const c_char,
    pub name: *const c_char,
    pub memory_bytes: u64,
    pub context_bytes: u64,
    pub compute_major: i32,
    pub compute_minor: i32,
    pub multiprocessors: i32,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_option {
    pub key: *const c_char,
    pub value: *const c_char,
    pub default_value: *const c_char,
    pub is_default: bool,
    pub syntax: *const c_char,
    pub summary: *const c_char,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_stat {
    pub current: i64,
    pub peak: i64,
    pub allocated: i64,
    pub freed: i64,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_stats {
    pub allocation: [vram_stat; 3],
    pub segment: [vram_stat; 3],
    pub active: [vram_stat; 3],
    pub inactive_split: [vram_stat; 3],
    pub allocated_bytes: [vram_stat; 3],
    pub reserved_bytes: [vram_stat; 3],
    pub active_bytes: [vram_stat; 3],
    pub inactive_split_bytes: [vram_stat; 3],
    pub requested_bytes: [vram_stat; 3],
    pub num_alloc_retries: i64,
    pub num_ooms: i64,
    pub max_split_size: i64,
    pub num_sync_all_streams: i64,
    pub num_device_alloc: i64,
    pub num_device_free: i64,
    pub num_oom_rejections: i64,
    pub oversize_allocations: vram_stat,
    pub oversize_segments: vram_stat,
    pub moved_bytes: i64,
}
#[repr(C)]
pub struct vram_allocator {
    _private: [u8; 0],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_prometheus_options {
    pub file: *const c_char,
    pub interval_ns: u64,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_create_info {
    pub driver: *mut vram_driver,
    pub conf: *const c_char,
    pub tie_break: vram_tie_break,
    pub ignore_environment: bool,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_pool_id {
    pub first: u64,
    pub second: u64,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_block_info {
    pub address: u64,
    pub size_bytes: u64,
    pub requested_bytes: u64,
    pub segment_address: u64,
    pub segment_bytes: u64,
    pub stream: u64,
    pub device: u32,
    pub expandable: bool,
    pub pool: vram_pool_id,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_expandable_segment {
    pub stream: u64,
    pub address: u64,
    pub reserved_bytes: u64,
    pub mapped_bytes: u64,
    pub small_pool: bool,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_cache_info {
    pub cached_bytes: u64,
    pub largest_free_bytes: u64,
    pub free_blocks: u64,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_oom {
    pub device: u32,
    pub stream: u64,
    pub requested_bytes: u64,
    pub rounded_bytes: u64,
    pub segment_bytes: u64,
    pub device_total_bytes: u64,
    pub device_free_bytes: u64,
    pub limit_bytes: u64,
    pub allocated_bytes: u64,
    pub reserved_bytes: u64,
    pub pending_bytes: u64,
    pub cached_bytes: u64,
    pub largest_free_bytes: u64,
    pub other_stream_bytes: u64,
    pub other_pool_bytes: u64,
    pub private_pool_bytes: u64,
    pub asleep_bytes: u64,
    pub rejected: bool,
    pub limit_hit: bool,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_block_view {
    pub block: vram_block_info,
    pub state: vram_block_state,
    pub small_pool: bool,
    pub age: u32,
    pub segment_number: u64,
    pub context: *mut c_void,
    pub segment_context: *mut c_void,
}
#[repr(C)]
pub struct vram_pool {
    _private: [u8; 0],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_pool_options {
    pub allocate: vram_pool_allocate,
    pub deallocate: vram_pool_deallocate,
    pub user: *mut c_void,
    pub for_graph: bool,
    pub use_on_oom: bool,
    pub no_split: bool,
    pub keep_cache: bool,
    pub tag: *const c_char,
    pub id: vram_pool_id,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_route {
    pub kind: vram_route_kind,
    pub stream: u64,
    pub accepts: vram_route_filter,
    pub user: *mut c_void,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_pool_stats {
    pub id: vram_pool_id,
    pub ended: bool,
    pub reserved_bytes: [vram_stat; 3],
    pub allocated_bytes: u64,
    pub active_bytes: u64,
    pub free_bytes: u64,
    pub blocks: u64,
    pub segments: u64,
}
#[repr(C)]
pub struct vram_checkpoint {
    _private: [u8; 0],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_restore_observer {
    pub freed: Option<unsafe extern "C" fn(u64, *mut c_void)>,
    pub created: Option<unsafe extern "C" fn(u64, u64, *mut c_void)>,
    pub user: *mut c_void,
}
#[repr(C)]
pub struct vram_graph {
    _private: [u8; 0],
}
#[repr(C)]
pub struct vram_host {
    _private: [u8; 0],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_graph_options {
    pub pool: *mut vram_pool,
    pub mode: vram_capture_mode,
    pub keep_cache: bool,
    pub host: *mut vram_host,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_graph_callable {
    pub run: vram_graph_region,
    pub user: *mut c_void,
}
#[repr(C)]
pub struct vram_host_pool {
    _private: [u8; 0],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_host_create_info {
    pub driver: *mut vram_driver,
    pub conf: *const c_char,
    pub device: u32,
    pub ignore_environment: bool,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_host_block_info {
    pub pointer: *mut c_void,
    pub size_bytes: u64,
    pub requested_bytes: u64,
    pub origin: vram_host_origin,
    pub captured: bool,
    pub streams: u32,
    pub pool: vram_pool_id,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_host_time {
    pub count: u64,
    pub total_ns: u64,
    pub min_ns: u64,
    pub max_ns: u64,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_host_stats {
    pub active_requests: vram_stat,
    pub active_bytes: vram_stat,
    pub requested_bytes: vram_stat,
    pub allocations: vram_stat,
    pub allocated_bytes: vram_stat,
    pub host_alloc_time: vram_host_time,
    pub host_free_time: vram_host_time,
    pub bucket_allocation: [u64; 64],
    pub num_alloc_retries: u64,
    pub num_ooms: u64,
    pub pending_bytes: u64,
    pub kept_bytes: u64,
    pub reserve_bytes: u64,
    pub reserve_used_bytes: u64,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_host_pool_options {
    pub for_graph: bool,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_host_pool_stats {
    pub blocks: u64,
    pub allocated_bytes: u64,
    pub live_blocks: u64,
    pub live_bytes: u64,
    pub pending_bytes: u64,
    pub kept_bytes: u64,
    pub free_bytes: u64,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_event {
    pub action: vram_event_action,
    pub device: u32,
    pub address: u64,
    pub size_bytes: u64,
    pub stream: u64,
    pub pool: vram_pool_id,
    pub time_ns: u64,
    pub context: *mut c_void,
    pub name: *const c_char,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_event_listener {
    pub event: Option<unsafe extern "C" fn(*const vram_event, *mut c_void)>,
    pub take_context: Option<unsafe extern "C" fn(*mut c_void) -> *mut c_void>,
    pub retain_context: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    pub release_context: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    pub level: vram_context_level,
    pub user: *mut c_void,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_host_block_view {
    pub pointer: *mut c_void,
    pub size_bytes: u64,
    pub requested_bytes: u64,
    pub state: vram_block_state,
    pub pool: vram_pool_id,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_history_options {
    pub enabled: vram_history_level,
    pub context: vram_history_level,
    pub stacks: vram_history_stacks,
    pub max_entries: u64,
    pub max_frames: u32,
    pub devices: u64,
    pub skip_actions: *mut *const c_char,
    pub skip_count: usize,
    pub clear_history: bool,
    pub compile_context: bool,
    pub own_annotations_only: bool,
    pub no_device_memory: bool,
    pub host: *mut vram_host,
    pub file: *const c_char,
    pub max_file_bytes: u64,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_history_counts {
    pub events: u64,
    pub kept: u64,
    pub lost: u64,
    pub recording: bool,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_pair {
    pub key: *const c_char,
    pub value: *const c_char,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_imported {
    pub address: u64,
    pub size_bytes: u64,
    pub requested_bytes: u64,
    pub reserved_bytes: u64,
    pub device: u32,
    pub cached: bool,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_share_stats {
    pub descriptors: u64,
    pub imports: u64,
    pub import_references: u64,
    pub reserved_bytes: u64,
    pub unreleased: u64,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_sleep_choice {
    pub tag: *const c_char,
    pub pool: *mut vram_pool,
    pub default_pools: bool,
    pub level: vram_sleep_level,
    pub wakes: bool,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_sleep_result {
    pub pools: u32,
    pub bytes: u64,
    pub copied_bytes: u64,
    pub held_bytes: u64,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_sleeper {
    pub pool: vram_pool_id,
    pub tag: [c_char; 64],
    pub level: vram_sleep_level,
    pub wakes: bool,
    pub live_bytes: u64,
    pub away_bytes: u64,
    pub host_bytes: u64,
}
#[repr(C)]
pub struct vram_log {
    _private: [u8; 0],
}
#[repr(C)]
pub struct vram_stacks {
    _private: [u8; 0],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_stack_options {
    pub max_frames: u32,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_frame {
    pub name: *const c_char,
    pub filename: *const c_char,
    pub line: i64,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_stacks_counts {
    pub stacks: u64,
    pub frames: u64,
    pub bytes: u64,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_fault {
    pub kind: vram_fault_kind,
    pub device: u32,
    pub address: u64,
    pub wrong_bytes: u64,
    pub block_address: u64,
    pub block_bytes: u64,
    pub blocks: u64,
    pub stream: u64,
    pub allocated: u32,
    pub freed: u32,
    pub current: u32,
    pub stacks: *mut vram_stacks,
    pub text: *const c_char,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_verify_counts {
    pub faults: u64,
    pub live_blocks: u64,
    pub unguarded_blocks: u64,
    pub quarantined_bytes: u64,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_workspace_env {
    pub cublas: *const c_char,
    pub cublaslt: *const c_char,
    pub unified: *const c_char,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_workspace_sizes {
    pub cublas_bytes: u64,
    pub cublaslt_bytes: u64,
    pub cublas_unreadable: bool,
    pub cublaslt_unreadable: bool,
    pub cublaslt_cut: bool,
    pub shared: bool,
}
#[repr(C)]
pub struct vram_workspaces {
    _private: [u8; 0],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_workspace {
    pub address: u64,
    pub size_bytes: u64,
    pub captured: bool,
}
#[repr(C)]
pub struct vram_cublas {
    _private: [u8; 0],
}
#[repr(C)]
pub struct vram_plan_cache {
    _private: [u8; 0],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_plan_functions {
    pub build: Option<unsafe extern "C" fn(u32, *const c_void, usize, *mut u64, *mut u64, *mut c_void) -> vram_status>,
    pub destroy: Option<unsafe extern "C" fn(u32, u64, *mut c_void)>,
    pub user: *mut c_void,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_plan {
    pub handle: u64,
    pub work_address: u64,
    pub work_bytes: u64,
    pub stream: u64,
    pub device: u32,
    pub entry: *mut c_void,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_plan_cache_stats {
    pub size: i64,
    pub max_size: i64,
    pub hits: u64,
    pub misses: u64,
    pub evictions: u64,
}
#[repr(C)]
pub struct vram_cufft {
    _private: [u8; 0],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct vram_cufft_key {
    pub rank: i32,
    pub r#type: i32,
    pub n: [i64; 3],
    pub in_embed: [i64; 3],
    pub in_stride: i64,
    pub in_distance: i64,
    pub out_embed: [i64; 3],
    pub out_stride: i64,
    pub out_distance: i64,
    pub batch: i64,
}

extern "C" {
    pub fn vram_status_name(status: vram_status) -> *const c_char;
    pub fn vram_status_text(status: vram_status) -> *const c_char;
    pub fn vram_driver_cuda(driver: *mut *mut vram_driver, error: *mut vram_error) -> vram_status;
    pub fn vram_driver_hip(driver: *mut *mut vram_driver, error: *mut vram_error) -> vram_status;
    pub fn vram_driver_system(driver: *mut *mut vram_driver, error: *mut vram_error) -> vram_status;
    pub fn vram_driver_version(driver: *mut vram_driver, version: *mut i32) -> vram_status;
    pub fn vram_driver_devices(driver: *mut vram_driver, count: *mut u32) -> vram_status;
    pub fn vram_driver_device_facts(driver: *mut vram_driver, device: u32, facts: *mut vram_device_facts, error: *mut vram_error) -> vram_status;
    pub fn vram_driver_can_access_peer(driver: *mut vram_driver, device: u32, peer: u32, can: *mut bool) -> vram_status;
    pub fn vram_driver_fault(inner: *mut vram_driver, driver: *mut *mut vram_driver) -> vram_status;
    pub fn vram_driver_fault_set(driver: *mut vram_driver, call: *const c_char, nth: u64, result: i32) -> vram_status;
    pub fn vram_driver_fault_count(driver: *const vram_driver) -> u64;
    pub fn vram_driver_destroy(driver: *mut vram_driver);
    pub fn vram_sim_model_at(index: u32, model: *mut vram_sim_model) -> bool;
    pub fn vram_sim_amd_model_at(index: u32, model: *mut vram_sim_model) -> bool;
    pub fn vram_sim_model_estimated(key: *const c_char) -> *const c_char;
    pub fn vram_sim_create(options: *const vram_sim_options, driver: *mut *mut vram_driver) -> vram_status;
    pub fn vram_sim_parse(text: *const c_char, options: *mut vram_sim_options, error: *mut vram_error) -> vram_status;
    pub fn vram_sim_complete(driver: *mut vram_driver, stream: u64) -> vram_status;
    pub fn vram_sim_complete_all(driver: *mut vram_driver) -> vram_status;
    pub fn vram_sim_stream_create(driver: *mut vram_driver, device: u32, stream: *mut u64) -> vram_status;
    pub fn vram_sim_busy(driver: *mut vram_driver, device: u32, stream: u64, work_ns: u64) -> vram_status;
    pub fn vram_sim_launch(driver: *mut vram_driver, device: u32, stream: u64, function: Option<unsafe extern "C" fn(*mut c_void)>, argument: *mut c_void, cost_ns: u64) -> vram_status;
    pub fn vram_sim_advance(driver: *mut vram_driver, elapsed_ns: u64) -> vram_status;
    pub fn vram_sim_clock_ns(driver: *mut vram_driver) -> u64;
    pub fn vram_sim_queue_address(driver: *mut vram_driver, address: u64) -> vram_status;
    pub fn vram_sim_queue_reservation(driver: *mut vram_driver, address: u64) -> vram_status;
    pub fn vram_sim_clear_queues(driver: *mut vram_driver) -> vram_status;
    pub fn vram_sim_set_memory(driver: *mut vram_driver, device: u32, memory_bytes: u64) -> vram_status;
    pub fn vram_sim_memory_used(driver: *mut vram_driver, device: u32) -> u64;
    pub fn vram_sim_live_objects(driver: *mut vram_driver) -> u64;
    pub fn vram_sim_calls(driver: *mut vram_driver, call: *const c_char) -> u64;
    pub fn vram_sim_call_at(driver: *mut vram_driver, index: u32, name: *mut *const c_char, count: *mut u64, cost_ns: *mut u64) -> bool;
    pub fn vram_options_check(text: *const c_char, error: *mut vram_error) -> vram_status;
    pub fn vram_options_list(text: *const c_char, visit: vram_option_visitor, user: *mut c_void, error: *mut vram_error) -> vram_status;
    pub fn vram_edit_distance(word: *const c_char, known: *const c_char) -> usize;
    pub fn vram_stats_json(stats: *const vram_stats, text: *mut c_char, capacity: usize) -> usize;
    pub fn vram_stats_summary(stats: *const vram_stats, device: u32, abbreviated: c_int, text: *mut c_char, capacity: usize) -> usize;
    pub fn vram_prometheus_write(allocator: *mut vram_allocator, write: vram_write, user: *mut c_void) -> vram_status;
    pub fn vram_prometheus_start(allocator: *mut vram_allocator, options: *const vram_prometheus_options, error: *mut vram_error) -> vram_status;
    pub fn vram_prometheus_stop(allocator: *mut vram_allocator);
    pub fn vram_create(info: *const vram_create_info, allocator: *mut *mut vram_allocator, error: *mut vram_error) -> vram_status;
    pub fn vram_destroy(allocator: *mut vram_allocator);
    pub fn vram_malloc(allocator: *mut vram_allocator, device: u32, size_bytes: u64, stream: u64, address: *mut u64) -> vram_status;
    pub fn vram_free(allocator: *mut vram_allocator, address: u64) -> vram_status;
    pub fn vram_record_stream(allocator: *mut vram_allocator, address: u64, stream: u64) -> vram_status;
    pub fn vram_empty_cache(allocator: *mut vram_allocator) -> vram_status;
    pub fn vram_empty_cache_device(allocator: *mut vram_allocator, device: u32) -> vram_status;
    pub fn vram_get_block_info(allocator: *mut vram_allocator, address: u64, info: *mut vram_block_info) -> vram_status;
    pub fn vram_allocated_size(allocator: *mut vram_allocator, address: u64) -> u64;
    pub fn vram_find_block(allocator: *mut vram_allocator, address: u64, info: *mut vram_block_info) -> vram_status;
    pub fn vram_is_expandable(allocator: *mut vram_allocator, address: u64) -> bool;
    pub fn vram_expandable_segments(allocator: *mut vram_allocator, device: u32, segments: *mut vram_expandable_segment, capacity: usize, count: *mut usize) -> vram_status;
    pub fn vram_get_cache_info(allocator: *mut vram_allocator, device: u32, info: *mut vram_cache_info) -> vram_status;
    pub fn vram_configure(allocator: *mut vram_allocator, conf: *const c_char, error: *mut vram_error) -> vram_status;
    pub fn vram_set_option(allocator: *mut vram_allocator, key: *const c_char, value: *const c_char, error: *mut vram_error) -> vram_status;
    pub fn vram_configuration(allocator: *mut vram_allocator, text: *mut c_char, capacity: usize) -> usize;
    pub fn vram_options_in_force(allocator: *mut vram_allocator, visit: vram_option_visitor, user: *mut c_void) -> vram_status;
    pub fn vram_set_memory_fraction(allocator: *mut vram_allocator, device: u32, fraction: f64) -> vram_status;
    pub fn vram_memory_fraction(allocator: *mut vram_allocator, device: u32, fraction: *mut f64) -> vram_status;
    pub fn vram_set_memory_limit(allocator: *mut vram_allocator, device: u32, limit_bytes: u64) -> vram_status;
    pub fn vram_set_stream_class(allocator: *mut vram_allocator, stream: u64, name: *const c_char) -> vram_status;
    pub fn vram_set_caching(allocator: *mut vram_allocator, enabled: bool);
    pub fn vram_caching(allocator: *mut vram_allocator) -> bool;
    pub fn vram_get_stats(allocator: *mut vram_allocator, device: u32, stats: *mut vram_stats) -> vram_status;
    pub fn vram_reset_peak_stats(allocator: *mut vram_allocator, device: u32) -> vram_status;
    pub fn vram_reset_accumulated_stats(allocator: *mut vram_allocator, device: u32) -> vram_status;
    pub fn vram_memory_info(allocator: *mut vram_allocator, device: u32, free_bytes: *mut u64, total_bytes: *mut u64) -> vram_status;
    pub fn vram_device_count(allocator: *mut vram_allocator, count: *mut u32) -> vram_status;
    pub fn vram_last_oom(oom: *mut vram_oom) -> bool;
    pub fn vram_oom_text(oom: *const vram_oom, text: *mut c_char, capacity: usize) -> usize;
    pub fn vram_add_oom_observer(allocator: *mut vram_allocator, observer: vram_oom_observer, user: *mut c_void) -> vram_status;
    pub fn vram_remove_oom_observer(allocator: *mut vram_allocator, observer: vram_oom_observer, user: *mut c_void) -> vram_status;
    pub fn vram_add_free_callback(allocator: *mut vram_allocator, callback: vram_free_callback, user: *mut c_void) -> vram_status;
    pub fn vram_remove_free_callback(allocator: *mut vram_allocator, callback: vram_free_callback, user: *mut c_void) -> vram_status;
    pub fn vram_walk(allocator: *mut vram_allocator, device: u32, visit: vram_block_visitor, user: *mut c_void) -> vram_status;
    pub fn vram_check(allocator: *mut vram_allocator, error: *mut vram_error) -> vram_status;
    pub fn vram_pool_create(allocator: *mut vram_allocator, device: u32, options: *const vram_pool_options, pool: *mut *mut vram_pool) -> vram_status;
    pub fn vram_pool_retain(pool: *mut vram_pool);
    pub fn vram_pool_release(pool: *mut vram_pool);
    pub fn vram_get_pool_id(pool: *const vram_pool) -> vram_pool_id;
    pub fn vram_pool_references(pool: *const vram_pool) -> u32;
    pub fn vram_pool_find(allocator: *mut vram_allocator, device: u32, id: vram_pool_id, pool: *mut *mut vram_pool) -> vram_status;
    pub fn vram_pool_set_use_on_oom(pool: *mut vram_pool, use_on_oom: bool);
    pub fn vram_pool_set_no_split(pool: *mut vram_pool, no_split: bool);
    pub fn vram_pool_begin(pool: *mut vram_pool, route: *const vram_route) -> vram_status;
    pub fn vram_pool_end(pool: *mut vram_pool, route: *const vram_route) -> vram_status;
    pub fn vram_pool_malloc(pool: *mut vram_pool, size_bytes: u64, stream: u64, address: *mut u64) -> vram_status;
    pub fn vram_pool_empty_cache(pool: *mut vram_pool) -> vram_status;
    pub fn vram_empty_cache_pool(allocator: *mut vram_allocator, device: u32, id: vram_pool_id) -> vram_status;
    pub fn vram_get_pool_stats(pool: *mut vram_pool, stats: *mut vram_pool_stats) -> vram_status;
    pub fn vram_get_all_pool_stats(allocator: *mut vram_allocator, device: u32, stats: *mut vram_pool_stats, capacity: usize, count: *mut usize) -> vram_status;
    pub fn vram_pool_walk(pool: *mut vram_pool, visit: vram_block_visitor, user: *mut c_void) -> vram_status;
    pub fn vram_pool_checkpoint(pool: *mut vram_pool, checkpoint: *mut *mut vram_checkpoint) -> vram_status;
    pub fn vram_checkpoint_destroy(checkpoint: *mut vram_checkpoint);
    pub fn vram_pool_restore(pool: *mut vram_pool, checkpoint: *const vram_checkpoint, observer: *const vram_restore_observer) -> vram_status;
    pub fn vram_pool_holds_exactly(pool: *mut vram_pool, addresses: *const u64, count: usize, equal: *mut bool) -> vram_status;
    pub fn vram_malloc_at(allocator: *mut vram_allocator, device: u32, size_bytes: u64, stream: u64, address: u64) -> vram_status;
    pub fn vram_capture_begin(pool: *mut vram_pool, stream: u64, mode: vram_capture_mode, error: *mut vram_error) -> vram_status;
    pub fn vram_capture_end(pool: *mut vram_pool, stream: u64, graph: *mut u64, error: *mut vram_error) -> vram_status;
    pub fn vram_capture_enter(pool: *mut vram_pool, stream: u64) -> vram_status;
    pub fn vram_capture_leave(pool: *mut vram_pool, stream: u64) -> vram_status;
    pub fn vram_capture_mark_begin(allocator: *mut vram_allocator, device: u32, stream: u64) -> vram_status;
    pub fn vram_capture_mark_end(allocator: *mut vram_allocator, device: u32, stream: u64) -> vram_status;
    pub fn vram_pool_launch_begin(pool: *mut vram_pool, stream: u64, error: *mut vram_error) -> vram_status;
    pub fn vram_pool_launch_end(pool: *mut vram_pool);
    pub fn vram_graph_begin(allocator: *mut vram_allocator, device: u32, stream: u64, options: *const vram_graph_options, graph: *mut *mut vram_graph, error: *mut vram_error) -> vram_status;
    pub fn vram_graph_end(graph: *mut vram_graph, error: *mut vram_error) -> vram_status;
    pub fn vram_graph_add_static(graph: *mut vram_graph, address: u64) -> vram_status;
    pub fn vram_graph_launch(graph: *mut vram_graph, stream: u64, error: *mut vram_error) -> vram_status;
    pub fn vram_graph_pool(graph: *const vram_graph) -> *mut vram_pool;
    pub fn vram_graph_exec(graph: *const vram_graph) -> u64;
    pub fn vram_graph_destroy(graph: *mut vram_graph);
    pub fn vram_graph_capture_all(allocator: *mut vram_allocator, device: u32, stream: u64, callables: *const vram_graph_callable, count: usize, warmups: u32, graphs: *mut *mut vram_graph, error: *mut vram_error) -> vram_status;
    pub fn vram_host_create(info: *const vram_host_create_info, host: *mut *mut vram_host, error: *mut vram_error) -> vram_status;
    pub fn vram_host_destroy(host: *mut vram_host);
    pub fn vram_host_configure(host: *mut vram_host, conf: *const c_char, error: *mut vram_error) -> vram_status;
    pub fn vram_host_malloc(host: *mut vram_host, size_bytes: u64, stream: u64, pointer: *mut *mut c_void) -> vram_status;
    pub fn vram_host_free(host: *mut vram_host, pointer: *mut c_void) -> vram_status;
    pub fn vram_host_record_stream(host: *mut vram_host, pointer: *mut c_void, stream: u64) -> vram_status;
    pub fn vram_host_empty_cache(host: *mut vram_host) -> vram_status;
    pub fn vram_get_host_block_info(host: *mut vram_host, pointer: *const c_void, info: *mut vram_host_block_info) -> vram_status;
    pub fn vram_host_allocated_size(host: *mut vram_host, pointer: *const c_void) -> u64;
    pub fn vram_host_check(host: *mut vram_host, error: *mut vram_error) -> vram_status;
    pub fn vram_get_host_stats(host: *mut vram_host, stats: *mut vram_host_stats);
    pub fn vram_host_reset_peak_stats(host: *mut vram_host);
    pub fn vram_host_reset_accumulated_stats(host: *mut vram_host);
    pub fn vram_host_stats_json(stats: *const vram_host_stats, text: *mut c_char, capacity: usize) -> usize;
    pub fn vram_host_pool_create(host: *mut vram_host, options: *const vram_host_pool_options, pool: *mut *mut vram_host_pool) -> vram_status;
    pub fn vram_host_pool_retain(pool: *mut vram_host_pool);
    pub fn vram_host_pool_release(pool: *mut vram_host_pool);
    pub fn vram_host_pool_id(pool: *const vram_host_pool) -> vram_pool_id;
    pub fn vram_host_pool_references(pool: *mut vram_host_pool) -> u32;
    pub fn vram_host_pool_begin(pool: *mut vram_host_pool, route: *const vram_route) -> vram_status;
    pub fn vram_host_pool_end(pool: *mut vram_host_pool, route: *const vram_route) -> vram_status;
    pub fn vram_host_pool_malloc(pool: *mut vram_host_pool, size_bytes: u64, stream: u64, pointer: *mut *mut c_void) -> vram_status;
    pub fn vram_host_pool_empty_cache(pool: *mut vram_host_pool) -> vram_status;
    pub fn vram_get_host_pool_stats(pool: *mut vram_host_pool, stats: *mut vram_host_pool_stats);
    pub fn vram_set_event_listener(allocator: *mut vram_allocator, listener: *const vram_event_listener) -> vram_status;
    pub fn vram_block_context(allocator: *mut vram_allocator, address: u64, context: *mut *mut c_void) -> vram_status;
    pub fn vram_host_set_event_listener(host: *mut vram_host, event: vram_host_event_function, user: *mut c_void);
    pub fn vram_host_walk(host: *mut vram_host, visit: vram_host_visitor, user: *mut c_void) -> vram_status;
    pub fn vram_history_start(allocator: *mut vram_allocator, options: *const vram_history_options, error: *mut vram_error) -> vram_status;
    pub fn vram_history_start_text(allocator: *mut vram_allocator, text: *const c_char, error: *mut vram_error) -> vram_status;
    pub fn vram_history_stop(allocator: *mut vram_allocator) -> vram_status;
    pub fn vram_get_history_counts(allocator: *mut vram_allocator, counts: *mut vram_history_counts);
    pub fn vram_set_metadata(text: *const c_char) -> vram_status;
    pub fn vram_metadata(text: *mut c_char, capacity: usize) -> usize;
    pub fn vram_push_tag(tag: *const c_char) -> vram_status;
    pub fn vram_pop_tag();
    pub fn vram_push_context(name: *const c_char) -> vram_status;
    pub fn vram_pop_context();
    pub fn vram_tag(text: *mut c_char, capacity: usize) -> usize;
    pub fn vram_compile_context(text: *mut c_char, capacity: usize) -> usize;
    pub fn vram_annotate(allocator: *mut vram_allocator, address: u64, text: *const c_char) -> vram_status;
    pub fn vram_annotation_begin(allocator: *mut vram_allocator, device: u32, name: *const c_char) -> vram_status;
    pub fn vram_annotation_end(allocator: *mut vram_allocator, device: u32, name: *const c_char) -> vram_status;
    pub fn vram_step(allocator: *mut vram_allocator, device: u32, name: *const c_char) -> vram_status;
    pub fn vram_annotation_pairs(allocator: *mut vram_allocator, device: u32, pairs: *const vram_pair, count: usize) -> vram_status;
    pub fn vram_expand_path(pattern: *const c_char, path: *mut c_char, capacity: usize, length: *mut usize) -> vram_status;
    pub fn vram_peer_possible(allocator: *mut vram_allocator, device: u32, peer: u32, possible: *mut bool) -> vram_status;
    pub fn vram_peer_enable(allocator: *mut vram_allocator, device: u32, peer: u32, error: *mut vram_error) -> vram_status;
    pub fn vram_peer_enabled(allocator: *mut vram_allocator, device: u32, peer: u32) -> bool;
    pub fn vram_export_size(allocator: *mut vram_allocator, address: u64, size_bytes: *mut usize) -> vram_status;
    pub fn vram_export(allocator: *mut vram_allocator, address: u64, handle: *mut c_void, capacity: usize, size_bytes: *mut usize, error: *mut vram_error) -> vram_status;
    pub fn vram_export_end(allocator: *mut vram_allocator, address: u64) -> vram_status;
    pub fn vram_import(allocator: *mut vram_allocator, handle: *const c_void, size_bytes: usize, imported: *mut vram_imported, error: *mut vram_error) -> vram_status;
    pub fn vram_import_release(allocator: *mut vram_allocator, address: u64) -> vram_status;
    pub fn vram_export_send(allocator: *mut vram_allocator, address: u64, socket: c_int, error: *mut vram_error) -> vram_status;
    pub fn vram_import_receive(allocator: *mut vram_allocator, socket: c_int, imported: *mut vram_imported, error: *mut vram_error) -> vram_status;
    pub fn vram_get_share_stats(allocator: *mut vram_allocator, stats: *mut vram_share_stats);
    pub fn vram_sleep(allocator: *mut vram_allocator, device: u32, choices: *const vram_sleep_choice, count: usize, result: *mut vram_sleep_result, error: *mut vram_error) -> vram_status;
    pub fn vram_wake(allocator: *mut vram_allocator, device: u32, choices: *const vram_sleep_choice, count: usize, result: *mut vram_sleep_result, error: *mut vram_error) -> vram_status;
    pub fn vram_sleepers(allocator: *mut vram_allocator, device: u32, sleepers: *mut vram_sleeper, capacity: usize, count: *mut usize) -> vram_status;
    pub fn vram_sleep_read(allocator: *mut vram_allocator, address: u64, size_bytes: u64, to: *mut c_void) -> vram_status;
    pub fn vram_pool_set_tag(pool: *mut vram_pool, tag: *const c_char) -> vram_status;
    pub fn vram_pool_tag(pool: *const vram_pool, tag: *mut c_char, capacity: usize) -> usize;
    pub fn vram_stacks_create(options: *const vram_stack_options, stacks: *mut *mut vram_stacks) -> vram_status;
    pub fn vram_stacks_destroy(stacks: *mut vram_stacks);
    pub fn vram_stack_take(stacks: *mut vram_stacks, kind: vram_stack_kind, skip: u32) -> u32;
    pub fn vram_stack_take_at(stacks: *mut vram_stacks, kind: vram_stack_kind, frame_address: *const c_void) -> u32;
    pub fn vram_stack_frames(stacks: *mut vram_stacks, stack: u32, frames: *mut vram_frame, capacity: usize) -> usize;
    pub fn vram_stack_log(stacks: *mut vram_stacks, stack: u32, log: *mut vram_log, id: *mut u32) -> vram_status;
    pub fn vram_stack_module(stacks: *mut vram_stacks, stack: u32, skip: *mut *const c_char, skip_count: usize) -> *const c_char;
    pub fn vram_stack_spare(function: Option<unsafe extern "C" fn(*mut c_void)>, argument: *mut c_void);
    pub fn vram_get_stacks_counts(stacks: *mut vram_stacks, counts: *mut vram_stacks_counts);
    pub fn vram_set_fault_handler(allocator: *mut vram_allocator, handler: vram_fault_handler, user: *mut c_void) -> vram_status;
    pub fn vram_verify(allocator: *mut vram_allocator, faults: *mut u64) -> vram_status;
    pub fn vram_get_verify_counts(allocator: *mut vram_allocator, counts: *mut vram_verify_counts) -> vram_status;
    pub fn vram_fault_name(kind: vram_fault_kind) -> *const c_char;
    pub fn vram_get_workspace_sizes(env: *const vram_workspace_env, major: c_int, minor: c_int, sizes: *mut vram_workspace_sizes);
    pub fn vram_workspaces_create(allocator: *mut vram_allocator, workspaces: *mut *mut vram_workspaces) -> vram_status;
    pub fn vram_workspaces_destroy(workspaces: *mut vram_workspaces);
    pub fn vram_workspace_get(workspaces: *mut vram_workspaces, device: u32, handle: u64, stream: u64, kind: vram_workspace_kind, workspace: *mut vram_workspace) -> vram_status;
    pub fn vram_workspaces_clear(workspaces: *mut vram_workspaces) -> vram_status;
    pub fn vram_workspaces_forget(workspaces: *mut vram_workspaces, handle: u64) -> vram_status;
    pub fn vram_workspaces_count(workspaces: *mut vram_workspaces, count: *mut u64, size_bytes: *mut u64);
    pub fn vram_cublas_open(path: *const c_char, cublas: *mut *mut vram_cublas, error: *mut vram_error) -> vram_status;
    pub fn vram_cublas_close(cublas: *mut vram_cublas);
    pub fn vram_cublas_set(cublas: *mut vram_cublas, workspaces: *mut vram_workspaces, device: u32, handle: *mut c_void, stream: u64, error: *mut vram_error) -> vram_status;
    pub fn vram_plan_cache_create(allocator: *mut vram_allocator, functions: *const vram_plan_functions, cache: *mut *mut vram_plan_cache) -> vram_status;
    pub fn vram_plan_cache_destroy(cache: *mut vram_plan_cache);
    pub fn vram_plan_acquire(cache: *mut vram_plan_cache, device: u32, stream: u64, key: *const c_void, key_bytes: usize, plan: *mut vram_plan) -> vram_status;
    pub fn vram_plan_release(cache: *mut vram_plan_cache, plan: *const vram_plan) -> vram_status;
    pub fn vram_plan_cache_set_max(cache: *mut vram_plan_cache, device: u32, max_plans: i64) -> vram_status;
    pub fn vram_plan_cache_clear(cache: *mut vram_plan_cache, device: u32) -> vram_status;
    pub fn vram_get_plan_cache_stats(cache: *mut vram_plan_cache, device: u32, stats: *mut vram_plan_cache_stats) -> vram_status;
    pub fn vram_cufft_open(path: *const c_char, cufft: *mut *mut vram_cufft, error: *mut vram_error) -> vram_status;
    pub fn vram_cufft_close(cufft: *mut vram_cufft);
    pub fn vram_cufft_functions(cufft: *mut vram_cufft, functions: *mut vram_plan_functions);
    pub fn vram_cufft_set(cufft: *mut vram_cufft, plan: *const vram_plan, error: *mut vram_error) -> vram_status;
    pub fn vram_version() -> *const c_char;
}
