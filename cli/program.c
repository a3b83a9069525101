// program.c: runs a program as a child of this process and passes signals and the exit code between it and the parent process.
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ui.h"

// Signals that ask for an end, and user signals, are forwarded to the program. The terminal's signals reach it directly and are only noted.
// SIGPIPE must not change the exit code if the summary is not read.
static const struct {
    int number;
    bool passed_on, noted;
} handled[] = {{SIGTERM, true, true}, {SIGHUP, true, true},   {SIGUSR1, true, false}, {SIGUSR2, true, false},
               {SIGINT, false, true}, {SIGQUIT, false, true}, {SIGPIPE, false, false}};
#define HANDLED_COUNT (sizeof handled / sizeof handled[0])

static volatile sig_atomic_t child_process, last_signal;
static struct sigaction inherited[HANDLED_COUNT]; // the handlers at the start of this process
static bool handling;

static void take_signal(int number) {
    const int saved = errno;
    for (size_t i = 0; i < HANDLED_COUNT; i++) {
        if (handled[i].number != number) continue;
        if (handled[i].passed_on && child_process > 0) (void)kill((pid_t)child_process, number);
        if (handled[i].noted) last_signal = number;
    }
    errno = saved;
}

static void handle_signals(void) {
    struct sigaction taking = {.sa_handler = take_signal, .sa_flags = SA_RESTART}, ignoring = {.sa_handler = SIG_IGN};
    (void)sigemptyset(&taking.sa_mask);
    (void)sigemptyset(&ignoring.sa_mask);
    for (size_t i = 0; i < HANDLED_COUNT; i++) {
        const bool taken = handled[i].passed_on || handled[i].noted;
        (void)sigaction(handled[i].number, taken ? &taking : &ignoring, handling ? NULL : &inherited[i]);
    }
    handling = true;
}

// Restores the handlers in a child, because this process may have run another program before.
static void inherit_signals(void) {
    for (size_t i = 0; handling && i < HANDLED_COUNT; i++) (void)sigaction(handled[i].number, &inherited[i], NULL);
}

void program_keep_last(char *kept, size_t *used, size_t most, const char *bytes, size_t length) {
    if (length > most) {
        bytes += length - most;
        length = most;
    }
    const size_t goes = *used + length > most ? *used + length - most : 0;
    memmove(kept, kept + goes, *used - goes);
    memcpy(kept + *used - goes, bytes, length);
    *used += length - goes;
}

int program_signal(void) { return (int)last_signal; }

// Runs in the child. Writes to `failed`, which exec closes, if the program did not start.
static void become_program(const char *command, char **arguments, int failed) {
    (void)execvp(arguments[0], arguments);
    const int why = errno;
    ui_say("vram %s: %s: %s", command, arguments[0], strerror(why));
    (void)fflush(stderr);
    if (write(failed, "", 1) != 1) abort(); // the parent is there and listens
    _exit(why == ENOENT ? PROGRAM_NOT_FOUND : PROGRAM_NO_EXECUTE);
}

// Forks. The program gets the signal handlers this process started with; signals are blocked until the handlers are in place, so that none
// is lost.
static pid_t fork_with_signals(bool *is_child) {
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &before);
    const pid_t child = fork();
    *is_child = child == 0;
    if (*is_child) inherit_signals();
    if (child > 0) {
        child_process = child;
        last_signal = 0;
        handle_signals();
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return child;
}

// Runs in the child. Makes the pipe's end the program's standard output and standard error.
static void be_watched(const struct program_watch *watch, int output) {
    if (!watch->prepare(watch->user)) {
        (void)fflush(stderr);
        _exit(PROGRAM_NO_EXECUTE);
    }
    if (dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0) abort(); // both are open
}

// output: the pipe of `watch`, if that is not NULL.
static pid_t start_program(const char *command, char **arguments, const struct program_watch *watch, int output, bool *started) {
    int ends[2];
    bool is_child = false;
    (void)fflush(NULL);
    if (pipe(ends) != 0) return -1;
    const pid_t child = fcntl(ends[1], F_SETFD, FD_CLOEXEC) != 0 ? -1 : fork_with_signals(&is_child);
    if (is_child) {
        (void)close(ends[0]);
        if (watch != NULL) be_watched(watch, output);
        become_program(command, arguments, ends[1]);
    }
    (void)close(ends[1]);
    char byte;
    ssize_t got = -1;
    while (child > 0 && (got = read(ends[0], &byte, 1)) < 0 && errno == EINTR) {
    }
    *started = got == 0;
    (void)close(ends[0]);
    return child;
}

static int exit_code(int state) { return WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state); }

int program_run(const char *command, char **arguments, bool *started) {
    const pid_t child = start_program(command, arguments, NULL, -1, started);
    if (child < 0) {
        ui_say("vram %s: %s", command, strerror(errno));
        return PROGRAM_NO_EXECUTE;
    }
    int state = 0;
    while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
    }
    return exit_code(state);
}

// --- watched ------------------------------------------------------------------------------------------------------------------

#define TICK_MS     100
#define END_SECONDS 20

static int64_t now_ms(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// Passes on available output, waiting for it until `until_ms`. Returns false at the end.
static bool pass_output(int file, int64_t until_ms, const struct program_watch *watch) {
    char bytes[65536];
    struct pollfd wanted = {.fd = file, .events = POLLIN};
    for (;;) {
        const int64_t left = until_ms - now_ms();
        const int ready = poll(&wanted, 1, left > 0 ? (int)left : 0);
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return true;
        const ssize_t got = read(file, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        watch->output(watch->user, bytes, (size_t)got);
        if (left <= 0) return true;
    }
}

static int watch_to_end(pid_t child, int file, const struct program_watch *watch) {
    int state = 0;
    bool open = true, asked = false;
    int64_t until_ms = INT64_MAX;
    for (;;) {
        const int64_t next_ms = now_ms() + TICK_MS;
        if (open) open = pass_output(file, next_ms, watch);
        if (!open) (void)poll(NULL, 0, TICK_MS);
        if (waitpid(child, &state, WNOHANG) == child) break;
        if (!asked && !watch->tick(watch->user, child)) {
            asked = true;
            until_ms = now_ms() + (int64_t)END_SECONDS * 1000;
            (void)kill(child, SIGTERM);
        }
        if (now_ms() > until_ms) (void)kill(child, SIGKILL);
    }
    if (open) (void)pass_output(file, now_ms(), watch);
    return exit_code(state);
}

int program_run_watched(const char *command, char **arguments, const struct program_watch *watch, bool *started) {
    int ends[2] = {-1, -1}, code = PROGRAM_NO_EXECUTE;
    if (pipe(ends) != 0) {
        ui_say("vram %s: %s", command, strerror(errno));
        return code;
    }
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    const pid_t child = start_program(command, arguments, watch, ends[1], started);
    const int error = errno;
    (void)close(ends[1]);
    if (child > 0)
        code = watch_to_end(child, ends[0], watch);
    else
        ui_say("vram %s: %s", command, strerror(error));
    (void)close(ends[0]);
    return code;
}
