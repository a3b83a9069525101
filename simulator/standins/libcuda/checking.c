// checking.c: the checker of a process under `vram check`, its findings, and the blocks that caching allocators report.
#define _GNU_SOURCE // RTLD_DEFAULT, RTLD_NOLOAD
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "../common/check_lines.h"
#include "base/hash.h"
#include "base/text.h"
#include "check_stacks.h"
#include "libcuda.h"
#include "sim/streams/sim_checking.h"
#include "sim/streams/sim_guards.h"

EXPORT int vram_sim_check_block(uint64_t address, uint64_t size_bytes, int of_graphs, uint64_t stream);
EXPORT void vram_sim_check_block_end(uint64_t address);
EXPORT void vram_sim_check_hide(int hidden);
EXPORT void vram_sim_check_moves(int moving);
EXPORT void vram_sim_check_disagreement(const char *mine, const char *theirs);

static struct vr_sim_checking checking; // .check is NULL without `vram check`

// ---- Findings.

// Appends the name of work; a kernel's as C++ spells it, if the process has the library that can.
static void put_work(struct vr_text *text, const char *work) {
    char *(*demangle)(const char *, char *, size_t *, int *) = NULL;
    void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
    void *found = library == NULL ? NULL : dlsym(library, "__cxa_demangle");
    int status = -1;
    char *plain = NULL;
    memcpy(&demangle, &found, sizeof demangle);
    if (demangle != NULL && work != NULL && strncmp(work, "_Z", 2) == 0) plain = demangle(work, NULL, NULL, &status);
    vr_libcuda_check_field(text, plain != NULL ? plain : work == NULL ? "" : work);
    free(plain);
    if (library != NULL) (void)dlclose(library);
}

// Returns whether it is a default stream. Called with the simulator's lock held, like everything that reports a finding.
static bool is_default(uint64_t serial) {
    const struct vr_sim *sim = vr_libcuda_sim();
    for (uint32_t i = 0; sim != NULL && i < sim->streams.used; i++) {
        const struct vr_sim_stream *stream = vr_sim_stream_at(sim, i);
        if (stream->slot.live && stream->serial == serial) return stream->kind == VR_SIM_STREAM_LEGACY;
    }
    return false;
}

static void put_use(struct vr_text *text, const char *role, const struct vr_check_use *use) {
    if (use->process != 0) {
        vr_text_printf(text, VR_CHECK_LINES_AWAY "\t%s\t%" PRIu64 "\t%" PRIu32 "\n", role, use->process, use->stack);
        return;
    }
    static const char *const effects[] = {[VR_CHECK_READ] = "read", [VR_CHECK_USE] = "use", [VR_CHECK_WRITE] = "write"};
    vr_text_printf(text, "use\t%s\t%s\t%" PRIu64 "\t%d", role, effects[use->effect], use->stream, is_default(use->stream));
    put_work(text, use->work);
    vr_text_puts(text, "\n");
    vr_libcuda_check_frames(text, use->stack);
}

// The launch of the graph in which the use is a node.
static void put_launch(struct vr_text *text, const char *role, const struct vr_check_use *use) {
    struct vr_check_use launch = *use;
    if (use->launch == 0) return;
    launch.stack = use->launch;
    launch.work = "the launch of a graph";
    put_use(text, role, &launch);
}

static void put_finding(struct vr_text *text, const struct vr_check_finding *finding) {
    vr_text_printf(text, "finding\t%s\t%d\t%" PRIu64 "\t%" PRIu64 "\n", vr_check_kind_key(finding->kind), finding->may, finding->address,
                   finding->size_bytes);
    if (finding->has_block) vr_text_printf(text, "block\t%" PRIu64 "\t%" PRIu64 "\n", finding->block, finding->block_bytes);
    put_use(text, "earlier", &finding->earlier);
    put_launch(text, "earlier_launch", &finding->earlier);
    put_use(text, "later", &finding->later);
    put_launch(text, "later_launch", &finding->later);
    if (finding->has_block) put_use(text, "allocated", &finding->allocated);
    if (finding->has_block && finding->was_freed) put_use(text, "freed", &finding->freed);
    vr_text_puts(text, "end\n");
}

// The file is opened for each finding: the process may fork.
static void append_to_file(const char *folder, const struct vr_text *text) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%ld" VR_CHECK_LINES_SUFFIX, folder, (long)getpid()) >= (int)sizeof path) return;
    const int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return;
    const ssize_t written = write(file, vr_text_string(text), text->length);
    (void)written; // a full disk must not end the program
    (void)close(file);
}

static void note_finding(void *user, const struct vr_check_finding *finding) {
    struct vr_text text = {0};
    put_finding(&text, finding);
    if (vr_text_status(&text) == VRAM_OK) append_to_file(user, &text);
    vr_text_release(&text);
}

// ---- Work whose memory is not known.

static const char *checking_folder;

static void note_unseen(const char *work) {
    static char *names[VR_CHECK_LINES_NAMES];
    static size_t count;
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], work) == 0) return;
    char *copied = count == VR_CHECK_LINES_NAMES ? NULL : strdup(work);
    if (copied == NULL) return;
    names[count++] = copied;
    struct vr_text text = {0};
    vr_text_puts(&text, VR_CHECK_LINES_UNSEEN);
    put_work(&text, work);
    vr_text_puts(&text, "\n");
    if (vr_text_status(&text) == VRAM_OK) append_to_file(checking_folder, &text);
    vr_text_release(&text);
}

// ---- Other processes.

#define NUMBERS_MOST 4096 // uses of shared memory that have a number

static uint32_t number_use(const struct vr_check_use *use) {
    static struct vr_map numbers;
    static uint32_t count;
    uint64_t hash = vr_hash_step((uint64_t)use->stack << 32 | use->launch, (uint64_t)(uintptr_t)use->work);
    hash = vr_mix64(vr_hash_step(vr_hash_step(hash, use->stream), (uint64_t)use->effect)) | 1;
    const uint64_t known = vr_map_get(&numbers, hash);
    if (known != 0 || count == NUMBERS_MOST || vr_map_set(&numbers, hash, count + 1) != VRAM_OK) return (uint32_t)known;
    struct vr_text text = {0};
    vr_text_printf(&text, VR_CHECK_LINES_NUMBER "\t%" PRIu32 "\n", ++count);
    put_use(&text, "earlier", use);
    put_launch(&text, "earlier_launch", use);
    vr_text_puts(&text, "end\n");
    if (vr_text_status(&text) == VRAM_OK) append_to_file(checking_folder, &text);
    vr_text_release(&text);
    return count;
}

// Returns whether the process runs: it exists, and has not ended without its parent's notice.
static bool is_live(uint64_t process) {
    char path[64], line[512];
    (void)snprintf(path, sizeof path, "/proc/%" PRIu64 "/stat", process);
    FILE *file = fopen(path, "re");
    const char *read = file == NULL ? NULL : fgets(line, sizeof line, file);
    const char *name = read == NULL ? NULL : strrchr(line, ')'); // "ID (NAME) STATE"
    if (file != NULL) (void)fclose(file);
    return name != NULL && name[1] == ' ' && name[2] != 'Z' && name[2] != 'X';
}

static struct vr_check_board *map_board(void) {
    char path[4096];
    const size_t bytes = vr_check_board_bytes();
    if (snprintf(path, sizeof path, "%s/" VR_CHECK_LINES_BOARD, checking_folder) >= (int)sizeof path) return NULL;
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    const bool sized = file >= 0 && ftruncate(file, (off_t)bytes) == 0;
    void *mapped = sized ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    if (file >= 0) (void)close(file);
    return mapped == MAP_FAILED ? NULL : mapped;
}

static void leave_others(void) {
    if (checking.check != NULL) vr_check_leave(checking.check);
}

static void join_others(void) {
    const struct vr_check_sharing_ops ops = {.process = (uint64_t)getpid(), .board = map_board, .is_live = is_live, .number = number_use};
    vr_check_join(checking.check, &ops);
    (void)pthread_atfork(NULL, NULL, leave_others);
}

// ---- Blocks of caching allocators.

// A caching allocator has handed out a block. size_bytes 0: it is not known. of_graphs: the block is of a pool whose memory captured graphs
// use. stream: the handle of the stream for whose work it is. Returns 1, and does nothing else, if the size decides about findings: then
// call again with the size, or with UINT64_MAX if it is not available.
int vram_sim_check_block(uint64_t address, uint64_t size_bytes, int of_graphs, uint64_t stream) {
    struct vr_sim *sim = vr_libcuda_sim();
    if (sim == NULL || sim->checking == NULL || address == 0) return 0;
    const struct vr_check_place place = {.stack = vr_libcuda_check_stack(), .work = "the allocation"};
    vr_mutex_lock(&sim->lock);
    struct vr_sim_stream *queue;
    const bool known = size_bytes == 0 && vr_sim_stream_find(sim, stream, &queue) == VR_CU_SUCCESS;
    const bool needed = size_bytes == 0 && vr_check_block_needs_size(sim->checking->check, address, known ? queue->serial : 0);
    if (!needed)
        vr_check_block(sim->checking->check, address, size_bytes == UINT64_MAX ? 0 : size_bytes, of_graphs != 0 || sim->captures.live > 0,
                       place);
    vr_mutex_unlock(&sim->lock);
    return needed;
}

void vram_sim_check_block_end(uint64_t address) {
    struct vr_sim *sim = vr_libcuda_sim();
    if (sim == NULL || sim->checking == NULL || address == 0) return;
    const struct vr_check_place place = {.stack = vr_libcuda_check_stack(), .work = "the free"};
    vr_mutex_lock(&sim->lock);
    vr_check_block_end(sim->checking->check, address, place);
    vr_mutex_unlock(&sim->lock);
}

void vram_sim_check_moves(int moving) {
    struct vr_sim *sim = vr_libcuda_sim();
    if (sim == NULL || sim->checking == NULL) return;
    vr_mutex_lock(&sim->lock);
    checking.moving = moving != 0;
    vr_mutex_unlock(&sim->lock);
}

// ---- Libraries on top of CUDA.

static _Thread_local bool opened_guards; // the thread has opened guarded pages while it was hidden

void vram_sim_check_hide(int hidden) {
    struct vr_sim *sim = vr_libcuda_sim();
    (void)vr_libcuda_check_hide(hidden != 0);
    if (hidden != 0 || !opened_guards || sim == NULL) return;
    opened_guards = false;
    vr_mutex_lock(&sim->lock);
    vr_sim_guards_close_all(sim);
    vr_mutex_unlock(&sim->lock);
}

void vram_sim_check_disagreement(const char *mine, const char *theirs) {
    struct vr_sim *sim = vr_libcuda_sim();
    if (sim == NULL || sim->checking == NULL) return;
    const struct vr_check_place place = {.stack = vr_libcuda_check_stack(), .work = mine};
    vr_mutex_lock(&sim->lock);
    vr_check_disagreement(sim->checking->check, place, theirs);
    vr_mutex_unlock(&sim->lock);
}

bool vr_libcuda_checks_copy(uint64_t to, uint64_t from) {
    struct vr_sim *sim = vr_libcuda_sim();
    if (sim == NULL || sim->checking == NULL) return false;
    vr_mutex_lock(&sim->lock);
    const bool on_device = vr_sim_ranges_holding(&sim->spaces, to) != NULL && vr_sim_ranges_holding(&sim->spaces, from) != NULL;
    vr_mutex_unlock(&sim->lock);
    return on_device;
}

// ---- Guards of pinned memory: a signal handler reports what the host does with it too early, and lets the access go on.

#define LOCK_TRIES   2000
#define LOCK_WAIT_NS 1000000 // together 2 s; then the lock is held by the thread that faulted

static struct sigaction program_action; // of SIGSEGV, before ours

// Bounds of all pages that were ever guarded.
static _Atomic(uint64_t) guarded_from = UINT64_MAX, guarded_end;

static void protect_pages(uint64_t address, uint64_t size_bytes, enum vr_sim_page_access access) {
    static const int rights[] = {
        [VR_SIM_PAGE_CLOSED] = PROT_NONE, [VR_SIM_PAGE_READABLE] = PROT_READ, [VR_SIM_PAGE_OPEN] = PROT_READ | PROT_WRITE};
    (void)mprotect((void *)(uintptr_t)address, (size_t)size_bytes, rights[access]);
}

static bool is_write(const void *context) {
#ifdef __x86_64__
    return (((const ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
    (void)context;
    return false;
#endif
}

static bool lock_for_fault(struct vr_sim *sim) {
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (vr_mutex_try_lock(&sim->lock)) return true;
        (void)nanosleep(&(const struct timespec){.tv_nsec = LOCK_WAIT_NS}, NULL);
    }
    return false;
}

static bool has_python(void) { return dlsym(RTLD_DEFAULT, "Py_IsInitialized") != NULL; }

// Returns whether the fault was a guard's.
static bool handle_fault(uint64_t address, bool write) {
    struct vr_sim *sim = vr_libcuda_sim();
    if (sim == NULL || sim->checking == NULL || address < atomic_load(&guarded_from) || address >= atomic_load(&guarded_end)) return false;
    if (vr_libcuda_check_is_hidden()) { // our own code reads what the program will use
        opened_guards = true;
        protect_pages(vr_round_down(address, VR_SIM_PAGE_BYTES), VR_SIM_PAGE_BYTES, VR_SIM_PAGE_OPEN);
        return true;
    }
    // One of PyTorch's worker threads: the thread that started them will fault, too, and has Python's stack.
    const bool worker = has_python() && !vr_libcuda_runs_python();
    const struct vr_check_place place = {.stack = worker ? 0 : vr_libcuda_check_stack(), .work = "the host"};
    if (worker || !lock_for_fault(sim)) {
        protect_pages(vr_round_down(address, VR_SIM_PAGE_BYTES), VR_SIM_PAGE_BYTES, VR_SIM_PAGE_OPEN);
        return true;
    }
    const bool guarded = vr_sim_guards_fault(sim, address, write, place);
    vr_mutex_unlock(&sim->lock);
    return guarded;
}

static void handle_signal(int number, siginfo_t *info, void *context) {
    const int error = errno;
    const bool handled = handle_fault((uint64_t)(uintptr_t)info->si_addr, is_write(context));
    errno = error;
    if (handled) return;
    if ((program_action.sa_flags & SA_SIGINFO) != 0)
        program_action.sa_sigaction(number, info, context);
    else if (program_action.sa_handler != SIG_DFL && program_action.sa_handler != SIG_IGN)
        program_action.sa_handler(number);
    else
        (void)sigaction(number, &program_action, NULL); // the access faults again
}

// Installs our handler, and keeps the one that the program may have set since the last guard.
static void keep_handler(void) {
    struct sigaction action;
    if (sigaction(SIGSEGV, NULL, &action) != 0 || ((action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == handle_signal)) return;
    program_action = action;
    action = (struct sigaction){.sa_sigaction = handle_signal, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    (void)sigaction(SIGSEGV, &action, NULL);
}

static void guard_pages(uint64_t address, uint64_t size_bytes, enum vr_sim_page_access access) {
    if (access != VR_SIM_PAGE_OPEN) {
        keep_handler();
        if (address < atomic_load(&guarded_from)) atomic_store(&guarded_from, address);
        if (address + size_bytes > atomic_load(&guarded_end)) atomic_store(&guarded_end, address + size_bytes);
    }
    protect_pages(address, size_bytes, access);
}

// ---- Opening.

static __attribute__((destructor)) void note_failure(void) {
    struct vr_text text = {0};
    if (checking.check == NULL || !vr_check_has_failed(checking.check)) return;
    vr_text_puts(&text, VR_CHECK_LINES_FAILED "\n");
    if (vr_text_status(&text) == VRAM_OK) append_to_file(checking_folder, &text);
    vr_text_release(&text);
}

void vr_libcuda_check(struct vr_sim *sim) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const char *folder = vr_os_getenv(VR_CHECK_LINES_FOLDER);
    if (folder == NULL) return;
    (void)pthread_mutex_lock(&lock);
    char *kept = checking.check == NULL ? strdup(folder) : NULL;
    if (kept != NULL && vr_check_create(note_finding, kept, &checking.check) != VRAM_OK)
        free(kept);
    else if (kept != NULL) {
        checking_folder = kept;
        join_others();
    }
    checking.unwritten = vr_os_getenv(VR_CHECK_LINES_UNWRITTEN) != NULL;
    if (checking.unwritten && checking.check != NULL) vr_check_find_unwritten(checking.check);
    checking.take_stack = vr_libcuda_check_stack;
    checking.protect = guard_pages;
    checking.unseen = note_unseen;
    if (checking.check != NULL) sim->checking = &checking;
    (void)pthread_mutex_unlock(&lock);
}
