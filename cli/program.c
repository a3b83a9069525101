// program.c: a program as a child of this process, that stands in for it to whoever watches from outside.
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ui.h"

// What somebody asks this process to do, the program is asked; the terminal's keys reach it by themselves, and whether anybody reads what
// is said at the end is no matter of its exit code.
static const int passed_on[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
static const int ignored[] = {SIGINT, SIGQUIT, SIGPIPE};
#define PASSED_COUNT  (sizeof passed_on / sizeof passed_on[0])
#define IGNORED_COUNT (sizeof ignored / sizeof ignored[0])

static volatile sig_atomic_t child_process;

static void pass_on(int number) {
    const int saved = errno;
    if (child_process > 0) (void)kill((pid_t)child_process, number);
    errno = saved;
}

static void handle_signals(void) {
    struct sigaction passing = {.sa_handler = pass_on, .sa_flags = SA_RESTART}, ignoring = {.sa_handler = SIG_IGN};
    (void)sigemptyset(&passing.sa_mask);
    (void)sigemptyset(&ignoring.sa_mask);
    for (size_t i = 0; i < PASSED_COUNT; i++) (void)sigaction(passed_on[i], &passing, NULL);
    for (size_t i = 0; i < IGNORED_COUNT; i++) (void)sigaction(ignored[i], &ignoring, NULL);
}

// In the child. Says through `failed`, which exec closes, that the program did not start.
static void become(const char *command, char **arguments, int failed) {
    (void)execvp(arguments[0], arguments);
    const int why = errno;
    ui_say("vram %s: %s: %s", command, arguments[0], strerror(why));
    (void)fflush(stderr);
    if (write(failed, "", 1) != 1) abort(); // the parent is there and listens
    _exit(why == ENOENT ? PROGRAM_NOT_FOUND : PROGRAM_NO_EXECUTE);
}

// The program has the signals as this process had them; here none is lost between its birth and the handlers.
static pid_t fork_with_signals(bool *is_child) {
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &before);
    const pid_t child = fork();
    *is_child = child == 0;
    if (child > 0) {
        child_process = child;
        handle_signals();
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return child;
}

static pid_t start(const char *command, char **arguments, bool *started) {
    int ends[2];
    bool is_child = false;
    (void)fflush(NULL);
    if (pipe(ends) != 0) return -1;
    const pid_t child = fcntl(ends[1], F_SETFD, FD_CLOEXEC) != 0 ? -1 : fork_with_signals(&is_child);
    if (is_child) {
        (void)close(ends[0]);
        become(command, arguments, ends[1]);
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

int program_run(const char *command, char **arguments, bool *started) {
    const pid_t child = start(command, arguments, started);
    if (child < 0) {
        ui_say("vram %s: %s", command, strerror(errno));
        return PROGRAM_NO_EXECUTE;
    }
    int state = 0;
    while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
    }
    return WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
}
