// os.h: the closed list of what this project asks of the operating system. posix/ and wasm/ implement it under the
// same file names; no other room includes an OS header.
//
// Contract of the whole list: no pointer may be NULL unless the function says so; functions that return a status never leave a partial
// effect; sizes are bytes; times are nanoseconds; strings are UTF-8 and NUL-terminated.
#ifndef VR_OS_OS_H
#define VR_OS_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "vram/status.h"

// --- memory.c -------------------------------------------------------------------------------------------------------
// Address space whose pages are zero and appear on first touch. Costs nothing until touched.
enum vram_status vr_os_reserve(size_t size_bytes, void **base);
// Gives it back. base NULL: nothing happens. Where the process has as many mappings as the system allows, perhaps only its memory.
void vr_os_unreserve(void *base, size_t size_bytes);
// The same of a range whose user knows that all past the first touched_bytes is zero.
void vr_os_unreserve_touched(void *base, size_t size_bytes, size_t touched_bytes);
// A hint for a range that may become large and is used all over: its pages may be large, too, from the first 2 MiB on.
void vr_os_prefer_large_pages(void *base, size_t size_bytes);
// Between these two, what the calling thread gives back by vr_os_unreserve_touched() is kept, zero again, for its next reservations of the
// same size: for whoever makes and ends many allocators in turn, whose pages would come new from the system each time. Does not nest.
void vr_os_keep_begin(void);
void vr_os_keep_end(void);

// --- memory.c: address space at chosen places, and memory that can stand at several addresses at once -------------------
// All addresses and sizes are multiples of the page. UNSUPPORTED where the system has no such thing.
// What memory comes in: 4 KiB on x86-64, 4 to 64 KiB on aarch64. A power of two.
uint64_t vr_os_page_bytes(void);
// Takes [address, address + size_bytes) if nothing is there, or, with address 0, a free range aligned to `alignment` (a power of two).
// Its pages are zero and appear on first touch when `accessible`, and may not be touched otherwise. LIMIT when the range is taken.
enum vram_status vr_os_map(uint64_t address, uint64_t size_bytes, uint64_t alignment, bool accessible, uint64_t *mapped);
// Gives back a range of vr_os_map(). Where the process has as many mappings as the system allows, perhaps only its memory.
void vr_os_unmap(uint64_t address, uint64_t size_bytes);
// A memory file of length 0, for vr_os_shared_close().
enum vram_status vr_os_shared_open(int *file);
void vr_os_shared_close(int file);
// Lengthens the file; its new bytes are zero and take no memory before they are touched.
enum vram_status vr_os_shared_resize(int file, uint64_t size_bytes);
// Gives the memory of a part of the file back.
void vr_os_shared_discard(int file, uint64_t offset, uint64_t size_bytes);
// Puts a part of the file, not accessible, at an address inside a range of vr_os_map().
enum vram_status vr_os_shared_map(int file, uint64_t offset, uint64_t size_bytes, uint64_t address);
// Puts inaccessible address space there again.
enum vram_status vr_os_shared_unmap(uint64_t address, uint64_t size_bytes);
enum vram_status vr_os_protect(uint64_t address, uint64_t size_bytes, bool read, bool write);

// --- shared.c: memory files seen from other processes ---------------------------------------------------------------------
struct vr_shared_facts {
    uint64_t volume, number; // together: which file it is
    uint64_t size_bytes;
    uint64_t position; // of this descriptor's file description, which its copies share
};
// IO when it is no file.
enum vram_status vr_os_shared_facts(int file, struct vr_shared_facts *facts);
// The same file with a position and holds of its own. IO; LIMIT: too many open files.
enum vram_status vr_os_shared_reopen(int file, int *again);
// The same of a descriptor of another process. IO when that is gone, or may not be looked at.
enum vram_status vr_os_shared_open_of(uint64_t process, int file, int *opened);
enum vram_status vr_os_shared_seek(int file, uint64_t position);
// All of it or IO / NO_HOST_MEMORY. A write that ends past the end lengthens the file.
enum vram_status vr_os_shared_read(int file, uint64_t offset, void *bytes, size_t size_bytes);
enum vram_status vr_os_shared_write(int file, uint64_t offset, const void *bytes, size_t size_bytes);
// Holds the byte at `offset` as any number of file descriptions can; ends with the last descriptor and mapping of this one, also when
// the process dies.
enum vram_status vr_os_shared_hold(int file, uint64_t offset);
// Gives the hold back. True when nobody else holds the byte; nobody can then until vr_os_shared_forget().
bool vr_os_shared_let_go(int file, uint64_t offset);
void vr_os_shared_forget(int file, uint64_t offset);

// --- memory.c: of the machine -----------------------------------------------------------------------------------------------------------
// Bytes of main memory that programs can have without swapping (Linux: MemAvailable of the file that VRAM_MEMINFO names, else of
// /proc/meminfo). False where the system does not tell.
bool vr_os_available_memory(uint64_t *bytes);
// What this process may use of it: the machine's, or, where that is less, what its control group allows. False where nothing says so.
bool vr_os_main_memory(uint64_t *available_bytes, uint64_t *total_bytes);

// --- process.c --------------------------------------------------------------------------------------------------------
uint64_t vr_os_process_id(void);
// The machine's name, "localhost" when it has none. Always NUL-terminated, cut to fit.
void vr_os_host_name(char *name, size_t capacity);
// What a process calls itself (Linux: the first 15 bytes), of any bytes but 0; cut to fit. IO when there is none, or it may not be looked
// at.
enum vram_status vr_os_process_name(uint64_t process, char *name, size_t capacity);
// When a process started, in a unit of the system's: with the id it names a process for good. IO when there is none.
enum vram_status vr_os_process_started(uint64_t process, uint64_t *started);
// Whether the process that started then is still running. False also for one that ended and that nobody has asked for yet.
bool vr_os_process_runs(uint64_t process, uint64_t started);
// Which running kernel this is, and which numbering of processes. UNSUPPORTED.
struct vr_host_id {
    char boot[40];
    uint64_t processes;
};
enum vram_status vr_os_host_id(struct vr_host_id *id);
// A copy of a descriptor of another process. IO: no such process or descriptor; REJECTED: not permitted; LIMIT: too many open files;
// UNSUPPORTED: not on this system.
enum vram_status vr_os_take_descriptor(uint64_t process, int descriptor, int *taken);
void vr_os_close_descriptor(int descriptor);

// --- files.c: what is written to that is no plain file ----------------------------------------------------------------------------------
// Opens for writing what lies at the path: a terminal, a pipe; or the very file that /dev/stdout, /dev/stderr, /dev/fd/N or
// /proc/self/fd/N stand for, at the place where the program is. UNSUPPORTED: a plain file, a link, or nothing; IO with errno, as for a pipe
// by its name that nobody reads.
enum vram_status vr_os_stream_open(const char *path, FILE **stream);

// --- files.c: files that are made. Every file that this library writes comes from here --------------------------------------------------
// Nothing that is there is opened or followed, whatever somebody planted under the name; what is made is this user's alone (0600).
// Makes the file, for reading and writing. IO with errno: EEXIST where anything has the name, a link too.
enum vram_status vr_os_file_create(const char *path, int *descriptor);
// The same under a random name beside `path`, which goes into `made`: to be renamed to `path` when it is whole. Where that is a plain file
// of this user's, the new one has its permissions. `capacity`: more than the length of `path` and VR_NEW_FILE_EXTRA. IO with errno.
enum { VR_NEW_FILE_LETTERS = 12, VR_NEW_FILE_EXTRA = VR_NEW_FILE_LETTERS + 7 };
enum vram_status vr_os_file_create_beside(const char *path, char *made, size_t capacity, FILE **stream);

// --- process.c: a copy of this process that works for it, and may die of that -----------------------------------------------------------
// The copy has this memory as it is now, and one thread; locks that others hold stay held there for ever, the C library's allocator's too.
// It prints nothing, leaves no core, handles no signal, and dies with this process at the latest. The program is not told of its end.
struct vr_os_helper {
    int process;
    int in; // what it writes
};
// Calls work(context, out) in a copy, which ends when that returns. UNSUPPORTED where there is no memory or process for it.
enum vram_status vr_os_helper_start(void (*work)(void *context, int out), void *context, struct vr_os_helper *helper);
// Up to `capacity` bytes of what it wrote, as soon as there are any; *got 0: it ended. IO: nothing came in that time.
enum vram_status vr_os_helper_read(const struct vr_os_helper *helper, void *bytes, size_t capacity, unsigned seconds, size_t *got);
void vr_os_helper_end(const struct vr_os_helper *helper); // whatever it is doing
// In the copy. False when nobody reads any more.
bool vr_os_helper_write(int out, const void *bytes, size_t size_bytes);
void vr_os_helper_give_up(void); // does not return

// --- spare_stack.c ---------------------------------------------------------------------------------------------------
// Calls the function on a stack of 256 KiB of its own, with all signals held back: for what is seldom needed and takes more than a small
// stack has. It must not unwind through its caller. On the caller's stack where there is no memory for one, or none can be changed.
void vr_os_on_spare_stack(void (*function)(void *argument), void *argument);

// --- files.c: a file that grows and is written through memory, so that what was stored survives the program -----------------------------
// The program around us may close the descriptor and use its number again: it is never used unless it still is this file, which is opened
// again where it is not.
struct vr_growfile {
    int descriptor;
    uint64_t volume, number; // together: which file it is
    char *path;              // owned; NULL: not known
};
// Makes the file at `path`; one that is there is replaced (by another file, so that who has it open keeps it), or refused, as is one that
// somebody still writes: two recordings under one name would be taken for each other. IO with the
// reason, which is valid until the thread's next call.
enum vram_status vr_os_growfile_create(const char *path, bool replace, struct vr_growfile *file, const char **reason);
// Maps `size_bytes` from `offset` on (multiples of 64 KiB); the file is lengthened to hold them, and has the room on its disk. IO, also
// where the process may not have so large a file; NO_HOST_MEMORY.
enum vram_status vr_os_growfile_map(struct vr_growfile *file, uint64_t offset, size_t size_bytes, void **memory);
void vr_os_growfile_unmap(void *memory, size_t size_bytes); // memory NULL: nothing happens
// Whether the file still has all that the window shows up to `end` of the file. Somebody may have cut it: what was stored since is nowhere
// then, but stored without harm (window_guard.c).
bool vr_os_growfile_is_whole(struct vr_growfile *file, const void *memory, uint64_t end);
// Cuts the file to its size. IO.
enum vram_status vr_os_growfile_cut(struct vr_growfile *file, uint64_t size_bytes);
void vr_os_growfile_close(struct vr_growfile *file);
// Closes and removes what nothing has come of.
void vr_os_growfile_discard(struct vr_growfile *file);

// --- window_guard.c: windows over files that may be cut: a store beyond the file's end does not end the program -------------------------
// From the first window on the process has a handler of SIGBUS, which hands on what is not about a window. Any thread.
void vr_os_window_guard(void *memory, size_t size_bytes);
void vr_os_window_release(const void *memory);
// Whether a store found no file any more; the window is memory of the process since.
bool vr_os_window_is_lost(const void *memory);

// --- socket.c: a connected local stream socket -----------------------------------------------------------------------------
// All of it, or IO.
enum vram_status vr_os_send(int socket, const void *bytes, size_t size_bytes);
enum vram_status vr_os_receive(int socket, void *bytes, size_t size_bytes);
// Copies of descriptors; received ones are the caller's to close. IO; LIMIT: too many open files; BAD_INPUT: none came. All or none.
enum vram_status vr_os_send_descriptors(int socket, const int *descriptors, size_t count);
enum vram_status vr_os_receive_descriptors(int socket, int *descriptors, size_t count);

// --- threads.c ------------------------------------------------------------------------------------------------------
// A sleeping mutex. `storage` is a pthread mutex on posix.
struct vr_mutex {
    _Alignas(8) unsigned char storage[64];
};
void vr_mutex_init(struct vr_mutex *mutex);
void vr_mutex_destroy(struct vr_mutex *mutex);
void vr_mutex_lock(struct vr_mutex *mutex);
// False, at once, where somebody has it.
bool vr_mutex_try_lock(struct vr_mutex *mutex);
void vr_mutex_unlock(struct vr_mutex *mutex);
// Gives the processor to another thread.
void vr_os_yield(void);
// An id of the calling thread, unique among living threads, never 0.
uint64_t vr_os_thread_id(void);
// How many processors this process may use; at least 1.
unsigned vr_os_processors(void);
// A thread that is waited for: every vr_thread_start() that succeeded needs one vr_thread_join(). NO_HOST_MEMORY.
struct vr_thread {
    _Alignas(8) unsigned char storage[16];
};
enum vram_status vr_thread_start(struct vr_thread *thread, void (*function)(void *argument), void *argument);
void vr_thread_join(struct vr_thread *thread);
// A condition variable. `storage` is a pthread condition on posix.
struct vr_signal {
    _Alignas(8) unsigned char storage[64];
};
void vr_signal_init(struct vr_signal *signal);
void vr_signal_destroy(struct vr_signal *signal);
// Wakes every thread that waits.
void vr_signal_raise(struct vr_signal *signal);
// Gives `mutex` up until the signal is raised or `timeout_ns` are over (UINT64_MAX: never), and takes it again. May return early.
void vr_signal_wait(struct vr_signal *signal, struct vr_mutex *mutex, uint64_t timeout_ns);

// --- files.c: a file's bytes, seen in memory without being read -----------------------------------------------------------
struct vr_os_view {
    const unsigned char *bytes;
    uint64_t size_bytes;
    int file; // its descriptor
};
// IO when `path` is no plain file that can be read, or empty. A file that somebody shortens meanwhile must not be looked at further.
enum vram_status vr_os_view_open(const char *path, struct vr_os_view *view);
void vr_os_view_close(struct vr_os_view *view);

// --- program.c: the machine code of this process ---------------------------------------------------------------------
// A program file or shared library in memory. Pointers are valid during the visit only.
struct vr_os_module {
    const char *path; // the program's own file is named by its full path
    uint64_t bias;    // address in memory - address in the file
    uint64_t start;   // [start, end): what its segments cover
    uint64_t end;
    const unsigned char *unwind; // .eh_frame_hdr; NULL when it has none
    size_t unwind_bytes;
    const unsigned char *build_id; // NULL when it has none
    size_t build_id_bytes;
    bool lasting; // it is never unloaded: the program itself, the C library
};
// Calls visit() for the modules, the program first, until it returns false. The lock of the loader's list is held: no module goes
// away meanwhile, and visit() may neither load anything nor ask for a symbol nor wait for a thread that does.
void vr_os_modules(bool (*visit)(void *context, const struct vr_os_module *module), void *context);
// Calls inside() once under the same lock, with how many modules were loaded and unloaded so far (0, 0 where the system does not say).
void vr_os_modules_hold(void (*inside)(void *context, uint64_t loads, uint64_t unloads), void *context);
// The part of the address space, [*low, *high), that the stack around `address` (of the calling thread) lies in: the thread's own, or
// the mapping that holds it where the thread runs on another. False when it cannot be told. Not for hot paths.
bool vr_os_stack_bounds(uint64_t address, uint64_t *low, uint64_t *high);
// Whether something lies at every address of [start, end). Costs a system call.
bool vr_os_is_mapped(uint64_t start, uint64_t end);
// The function of a program file or shared library, [*start, *end), that the loader knows to hold `address`. False for none.
bool vr_os_function(uint64_t address, uint64_t *start, uint64_t *end);
// Calls these around every fork() from now on; each may be NULL. For locks that must not be left held in the child.
void vr_os_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void));

// --- clock.c --------------------------------------------------------------------------------------------------------
uint64_t vr_os_monotonic_ns(void);
uint64_t vr_os_epoch_ns(void);
// A clock that costs little to read and never goes back: counts of a fixed but unknown rate, comparable between threads. The processor's
// counter where it has a steady one, else the monotonic clock.
uint64_t vr_os_ticks(void);
// The time as "20260131T235959Z". Always NUL-terminated.
void vr_os_utc_text(char text[17]);

// --- program.c: variables of the environment --------------------------------------------------------------------------------------------
// NULL when unset. The result lives until the environment is changed.
const char *vr_os_getenv(const char *name);

// --- program.c: libraries loaded at run time --------------------------------------------------------------------------------------------
// NULL when the library cannot be loaded; *reason (may be NULL) then points at text valid until the next call of the thread.
void *vr_os_dlopen(const char *name, const char **reason);
// NULL when there is none. library NULL: whatever the program itself sees.
void *vr_os_dlsym(void *library, const char *symbol);
void vr_os_dlclose(void *library); // NULL: nothing happens

#endif
