// os.h: everything that this project requests of the operating system. posix/ and wasm/ implement it under the same file names; no other
// room includes an OS header.
//
// Rules for the whole list: pointers may not be NULL unless the function says so; functions that return a status never leave a partial
// effect; sizes are bytes; times are nanoseconds; strings are UTF-8 and NUL-terminated.
#ifndef VR_OS_OS_H
#define VR_OS_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "vram/status.h"

// --- memory.c -------------------------------------------------------------------------------------------------------
// Reserves address space whose pages are zero and appear on first touch. Untouched pages cost nothing.
enum vram_status vr_os_reserve(size_t size_bytes, void **base);
// Releases a reservation. base NULL is ignored. If the process has as many mappings as the system allows, it may release only the memory.
void vr_os_unreserve(void *base, size_t size_bytes);
// Releases a range of which everything past the first touched_bytes is known to be zero.
void vr_os_unreserve_touched(void *base, size_t size_bytes, size_t touched_bytes);
// Advises the system to use large pages from the first 2 MiB on, for a range that may become large and is used throughout.
void vr_os_prefer_large_pages(void *base, size_t size_bytes);
// Between these two calls, ranges that the calling thread releases by vr_os_unreserve_touched() are zeroed and kept for its next
// reservations of the same size. This saves new pages for code that creates and destroys many allocators in turn. Does not nest.
void vr_os_keep_begin(void);
void vr_os_keep_end(void);

// --- memory.c: address space at chosen addresses, and memory that can be mapped at several addresses at once ---------------
// All addresses and sizes are multiples of the page. UNSUPPORTED if the system cannot do it.
// The page size: 4 KiB on x86-64, 4 to 64 KiB on aarch64. A power of two.
uint64_t vr_os_page_bytes(void);
// Maps [address, address + size_bytes) if it is free or, for address 0, any free range aligned to `alignment` (a power of two). If
// `accessible`, its pages are zero and appear on first touch; otherwise they must not be touched. LIMIT if the range is taken.
enum vram_status vr_os_map(uint64_t address, uint64_t size_bytes, uint64_t alignment, bool accessible, uint64_t *mapped);
// Unmaps a range of vr_os_map(). If the process has as many mappings as the system allows, it may release only the memory.
void vr_os_unmap(uint64_t address, uint64_t size_bytes);
// Creates a memory file of length 0; close it with vr_os_shared_close().
enum vram_status vr_os_shared_open(int *file);
void vr_os_shared_close(int file);
// Extends the file; new bytes are zero and take no memory until touched.
enum vram_status vr_os_shared_resize(int file, uint64_t size_bytes);
// Releases the memory of a part of the file.
void vr_os_shared_discard(int file, uint64_t offset, uint64_t size_bytes);
// Maps a part of the file, inaccessible, at an address inside a range of vr_os_map().
enum vram_status vr_os_shared_map(int file, uint64_t offset, uint64_t size_bytes, uint64_t address);
// Replaces a mapped part by inaccessible address space.
enum vram_status vr_os_shared_unmap(uint64_t address, uint64_t size_bytes);
enum vram_status vr_os_protect(uint64_t address, uint64_t size_bytes, bool read, bool write);

// --- shared.c: memory files seen from other processes ---------------------------------------------------------------------
struct vr_shared_facts {
    uint64_t volume, number; // together they identify the file
    uint64_t size_bytes;
    uint64_t position; // of this descriptor's file description, which duplicates share
};
// IO if the descriptor is not a file.
enum vram_status vr_os_shared_facts(int file, struct vr_shared_facts *facts);
// Opens the same file again, with a position and locks of its own. IO; LIMIT for too many open files.
enum vram_status vr_os_shared_reopen(int file, int *again);
// Opens a file by a descriptor of another process. IO if that is gone or may not be inspected.
enum vram_status vr_os_shared_open_of(uint64_t process, int file, int *opened);
enum vram_status vr_os_shared_seek(int file, uint64_t position);
// Transfer all bytes, or return IO or NO_HOST_MEMORY. A write past the end extends the file.
enum vram_status vr_os_shared_read(int file, uint64_t offset, void *bytes, size_t size_bytes);
enum vram_status vr_os_shared_write(int file, uint64_t offset, const void *bytes, size_t size_bytes);
// Takes a shared lock on the byte at `offset`; any number of file descriptions can. It ends with the last descriptor and mapping of this
// file description, even if the process dies.
enum vram_status vr_os_shared_hold(int file, uint64_t offset);
// Drops the shared lock. Returns true if no other description holds the byte; then none can until vr_os_shared_forget().
bool vr_os_shared_let_go(int file, uint64_t offset);
void vr_os_shared_forget(int file, uint64_t offset);

// --- memory.c: memory of the machine ----------------------------------------------------------------------------------------------------
// Gets the bytes of main memory available to programs without swapping (Linux: MemAvailable of the file that VRAM_MEMINFO names, else of
// /proc/meminfo). Returns false if the system does not say.
bool vr_os_available_memory(uint64_t *bytes);
// Gets the part that this process may use: the machine's or, if less, its control group's limit. Returns false if unknown.
bool vr_os_main_memory(uint64_t *available_bytes, uint64_t *total_bytes);

// --- process.c --------------------------------------------------------------------------------------------------------
uint64_t vr_os_process_id(void);
// Writes the text to the standard error stream, without a lock.
void vr_os_print_error(const char *text);
// Ends the process abnormally, as abort() does.
void vr_os_abort(void);
// Copies the machine's name, or "localhost" without one. Always NUL-terminated, cut to fit.
void vr_os_host_name(char *name, size_t capacity);
// Copies a process's own name (Linux: the first 15 bytes), any bytes but 0; cut to fit. IO if there is no such process, or it may not be
// inspected.
enum vram_status vr_os_process_name(uint64_t process, char *name, size_t capacity);
// Gets the start time of a process, in a system-dependent unit; together with the id it identifies a process uniquely. IO if there is no
// such process.
enum vram_status vr_os_process_started(uint64_t process, uint64_t *started);
// Returns whether the process with this start time is still running. Also false for one that ended but was not yet waited for.
bool vr_os_process_runs(uint64_t process, uint64_t started);
// Identifies the running kernel, and the numbering of processes. UNSUPPORTED.
struct vr_host_id {
    char boot[40];
    uint64_t processes;
};
enum vram_status vr_os_host_id(struct vr_host_id *id);
// Duplicates a descriptor of another process. IO: no such process or descriptor; REJECTED: not permitted; LIMIT: too many open files;
// UNSUPPORTED: not on this system.
enum vram_status vr_os_take_descriptor(uint64_t process, int descriptor, int *taken);
void vr_os_close_descriptor(int descriptor);

// --- files.c: output to files that are not regular --------------------------------------------------------------------------------------
// Opens the path for writing: a terminal or a pipe; or the open file behind /dev/stdout, /dev/stderr, /dev/fd/N or /proc/self/fd/N, at its
// current position. UNSUPPORTED for a regular file, a link, or a missing file; IO with errno otherwise, including a named pipe without a
// reader.
enum vram_status vr_os_stream_open(const char *path, FILE **stream);

// --- files.c: creating files. Every file that this library writes comes from here --------------------------------------------------------
// Existing files are never opened and links never followed, so a file planted under the name does no harm. New files belong to this user
// alone (0600).
// Creates the file for reading and writing. IO with errno: EEXIST if anything has the name, even a link.
enum vram_status vr_os_file_create(const char *path, int *descriptor);
// Creates a file with a random name next to `path`, writes that name into `made`, and opens it: rename it to `path` when it is complete. If
// `path` is a regular file of this user, the new file gets its permissions. `capacity` must exceed the length of `path` plus
// VR_NEW_FILE_EXTRA. IO with errno.
enum { VR_NEW_FILE_LETTERS = 12, VR_NEW_FILE_EXTRA = VR_NEW_FILE_LETTERS + 7 };
enum vram_status vr_os_file_create_temporary(const char *path, char *made, size_t capacity, FILE **stream);

// --- process.c: a helper process: a copy of this process that works for it and may crash ------------------------------------------------
// The helper has this process's memory as of now, and one thread. Locks held by other threads stay held there forever, including those of
// the C library's allocator. It prints nothing, leaves no core, handles no signal, and dies with this process at the latest. The program
// gets no signal when it ends.
struct vr_os_helper {
    int process;
    int in; // read end of its output
};
// Calls work(context, out) in a helper, which ends when the function returns. UNSUPPORTED without memory or a process for it.
enum vram_status vr_os_helper_start(void (*work)(void *context, int out), void *context, struct vr_os_helper *helper);
// Reads up to `capacity` bytes of its output as soon as there are any; *got 0: it ended. IO: nothing came within `seconds`.
enum vram_status vr_os_helper_read(const struct vr_os_helper *helper, void *bytes, size_t capacity, unsigned seconds, size_t *got);
void vr_os_helper_end(const struct vr_os_helper *helper); // kills it, whatever it is doing
// Called in the helper. Returns false when nothing reads the output any more.
bool vr_os_helper_write(int out, const void *bytes, size_t size_bytes);
void vr_os_helper_give_up(void); // does not return

// --- spare_stack.c ---------------------------------------------------------------------------------------------------
// Calls the function on a separate stack of 256 KiB with all signals blocked, for rare work that needs more than a small stack has. The
// function must not unwind through its caller. Uses the caller's stack if there is no memory for one, or the stack cannot be switched.
void vr_os_on_spare_stack(void (*function)(void *argument), void *argument);

// --- files.c: a file that grows and is written through memory, so that its contents survive the program ---------------------------------
// The program may close the descriptor and reuse its number. The descriptor is therefore used only while it still refers to this file;
// otherwise the file is opened again.
struct vr_growfile {
    int descriptor;
    uint64_t volume, number; // together they identify the file
    char *path;              // owned; NULL: unknown
};
// Creates the file at `path`. With `replace`, an existing file is unlinked first (a program that has it open keeps it), unless another
// program is still writing it: two recordings under one name would be mistaken for each other. IO with the reason, which is valid until the
// thread's next call.
enum vram_status vr_os_growfile_create(const char *path, bool replace, struct vr_growfile *file, const char **reason);
// Maps `size_bytes` from `offset` (multiples of 64 KiB), extending the file and allocating the range on disk. IO, also if the process may
// not have so large a file; NO_HOST_MEMORY.
enum vram_status vr_os_growfile_map(struct vr_growfile *file, uint64_t offset, size_t size_bytes, void **memory);
void vr_os_growfile_unmap(void *memory, size_t size_bytes); // memory NULL is ignored
// Returns whether the file still has all bytes of the window up to `end` of the file. If another program truncated it, later stores are
// lost, but harmless (window_guard.c).
bool vr_os_growfile_is_whole(struct vr_growfile *file, const void *memory, uint64_t end);
// Truncates the file to its final size. IO.
enum vram_status vr_os_growfile_cut(struct vr_growfile *file, uint64_t size_bytes);
void vr_os_growfile_close(struct vr_growfile *file);
// Closes and removes an unused file.
void vr_os_growfile_discard(struct vr_growfile *file);

// --- window_guard.c: windows over files that may be truncated: a store beyond the file's end does not end the program --------------------
// The first window installs a SIGBUS handler, which passes on signals that do not concern a window. Any thread.
void vr_os_window_guard(void *memory, size_t size_bytes);
void vr_os_window_release(const void *memory);
// Returns whether a store found the file truncated; the window is private memory since then.
bool vr_os_window_is_lost(const void *memory);

// --- socket.c: a connected local stream socket -----------------------------------------------------------------------------
// Transfer all bytes, or return IO.
enum vram_status vr_os_send(int socket, const void *bytes, size_t size_bytes);
enum vram_status vr_os_receive(int socket, void *bytes, size_t size_bytes);
// Send and receive duplicates of descriptors, all or none; the caller closes the received ones. IO; LIMIT: too many open files; BAD_INPUT:
// none came.
enum vram_status vr_os_send_descriptors(int socket, const int *descriptors, size_t count);
enum vram_status vr_os_receive_descriptors(int socket, int *descriptors, size_t count);

// --- threads.c ------------------------------------------------------------------------------------------------------
// A sleeping mutex. `storage` is a futex word on posix.
struct vr_mutex {
    _Alignas(8) unsigned char storage[64];
};
void vr_mutex_init(struct vr_mutex *mutex);
void vr_mutex_destroy(struct vr_mutex *mutex);
void vr_mutex_lock(struct vr_mutex *mutex);
// Returns false immediately if the mutex is held.
bool vr_mutex_try_lock(struct vr_mutex *mutex);
void vr_mutex_unlock(struct vr_mutex *mutex);
// Yields the processor to another thread.
void vr_os_yield(void);
// Returns an id of the calling thread, unique among living threads, never 0.
uint64_t vr_os_thread_id(void);
// Returns the number of processors that this process may use, at least 1.
unsigned vr_os_processors(void);
// A joinable thread: every successful vr_thread_start() needs one vr_thread_join(). NO_HOST_MEMORY.
struct vr_thread {
    _Alignas(8) unsigned char storage[16];
};
enum vram_status vr_thread_start(struct vr_thread *thread, void (*function)(void *argument), void *argument);
void vr_thread_join(struct vr_thread *thread);
// A condition variable. `storage` counts raises in a futex word on posix.
struct vr_signal {
    _Alignas(8) unsigned char storage[64];
};
void vr_signal_init(struct vr_signal *signal);
void vr_signal_destroy(struct vr_signal *signal);
// Wakes every waiting thread.
void vr_signal_raise(struct vr_signal *signal);
// Releases `mutex` until the signal is raised or `timeout_ns` have passed (UINT64_MAX: no timeout), then takes it again. May return early.
void vr_signal_wait(struct vr_signal *signal, struct vr_mutex *mutex, uint64_t timeout_ns);

// --- files.c: a file's bytes mapped for reading ------------------------------------------------------------------------------------------
struct vr_os_view {
    const unsigned char *bytes;
    uint64_t size_bytes;
    int file; // its descriptor
};
// IO if `path` is not a readable regular file, or is empty. If the file is truncated meanwhile, its bytes must not be read any more.
enum vram_status vr_os_view_open(const char *path, struct vr_os_view *view);
void vr_os_view_close(struct vr_os_view *view);

// --- program.c: the machine code of this process ---------------------------------------------------------------------
// A program file or shared library in memory. Pointers are valid only during the visit.
struct vr_os_module {
    const char *path; // the program's own file has its full path
    uint64_t bias;    // address in memory - address in the file
    uint64_t start;   // [start, end): range of its segments
    uint64_t end;
    const unsigned char *unwind; // .eh_frame_hdr; NULL: absent
    size_t unwind_bytes;
    const unsigned char *build_id; // NULL: absent
    size_t build_id_bytes;
    bool lasting; // never unloaded: the program itself, the C library
};
// Calls visit() for each module, the program first, until it returns false. Holds the lock of the loader's list, so no module goes away
// meanwhile; visit() must not load anything, look up a symbol, or wait for a thread that does.
void vr_os_modules(bool (*visit)(void *context, const struct vr_os_module *module), void *context);
// Calls inside() once under the same lock, with the number of modules loaded and unloaded so far (0, 0 if the system does not say).
void vr_os_modules_hold(void (*inside)(void *context, uint64_t loads, uint64_t unloads), void *context);
// Gets the range [*low, *high) of the stack around `address` of the calling thread: the thread's own stack or, if the thread runs on
// another, the mapping that contains it. Returns false if unknown. Not for hot paths.
bool vr_os_stack_bounds(uint64_t address, uint64_t *low, uint64_t *high);
// Returns whether every address of [start, end) is mapped. Costs a system call.
bool vr_os_is_mapped(uint64_t start, uint64_t end);
// Gets the range [*start, *end) of the function that contains `address`, as the loader knows it. Returns false if unknown.
bool vr_os_function(uint64_t address, uint64_t *start, uint64_t *end);
// Registers functions to call around every fork() from now on; each may be NULL. For locks that must not be left held in the child.
void vr_os_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void));

// --- clock.c --------------------------------------------------------------------------------------------------------
uint64_t vr_os_monotonic_ns(void);
uint64_t vr_os_epoch_ns(void);
// A cheap clock that never goes back: ticks of a fixed but unknown rate, comparable between threads. The processor's counter if it is
// steady, else the monotonic clock.
uint64_t vr_os_ticks(void);
// Writes the time as "20260131T235959Z". Always NUL-terminated.
void vr_os_utc_text(char text[17]);

// --- program.c: variables of the environment --------------------------------------------------------------------------------------------
// Returns NULL if unset. The result lives until the environment changes.
const char *vr_os_getenv(const char *name);

// --- program.c: libraries loaded at run time --------------------------------------------------------------------------------------------
// Returns NULL if the library cannot be loaded; *reason (may be NULL) then points to text valid until the thread's next call.
void *vr_os_dlopen(const char *name, const char **reason);
// Returns NULL if the symbol is missing. library NULL: searches the program's own scope.
void *vr_os_dlsym(void *library, const char *symbol);
void vr_os_dlclose(void *library); // NULL is ignored

#endif
