// Tool fit: runs `vram fit` as a process and returns its answer when it is complete.
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "args.h"
#include "mcp.h"

enum { ARGUMENTS_MOST = 256, ANSWER_MOST = 16384, COMPLAINT_MOST = 1500 };

// The running fit. There is at most one.
struct mcp_fit {
    char *asked; // the call's arguments, as JSON
    pid_t process;
    int output[2]; // pipes from its standard output and standard error; -1 at the end
    char answer[ANSWER_MOST + 1];
    size_t answer_length;
    char complaint[COMPLAINT_MOST + 1]; // the last part of its standard error
    size_t complaint_length;
    time_t begun;
};

static int64_t clock_ms(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void mcp_fit_end(struct mcp_server *server) {
    struct mcp_fit *fit = server->fit;
    if (fit == NULL) return;
    server->fit = NULL;
    for (size_t i = 0; i < 2; i++) {
        if (fit->output[i] >= 0) (void)close(fit->output[i]);
    }
    if (fit->process > 0) {
        // `vram fit` ends its program, which is in the same process group.
        (void)kill(-fit->process, SIGTERM);
        (void)waitpid(fit->process, NULL, 0);
    }
    free(fit->asked);
    free(fit);
}

// Appends the strings of an array to argv. Returns false if it has other values or too many.
static bool add_strings(const cJSON *array, char **argv, size_t *count) {
    const cJSON *item;
    cJSON_ArrayForEach(item, array) {
        if (!cJSON_IsString(item) || *count + 1 >= ARGUMENTS_MOST) return false;
        argv[(*count)++] = item->valuestring;
    }
    return true;
}

// Builds the command line, borrowing from `arguments`. Returns false with a failed answer.
static bool command_of(const cJSON *arguments, char **argv, struct mcp_answer *answer) {
    static char self[] = "vram", fit[] = "fit", quiet[] = "--quiet", card_option[] = "--card", end[] = "--";
    size_t count = 0;
    argv[count++] = self;
    argv[count++] = fit;
    argv[count++] = quiet;
    const cJSON *card;
    cJSON_ArrayForEach(card, cJSON_GetObjectItemCaseSensitive(arguments, "devices")) {
        if (!cJSON_IsString(card) || count + 3 >= ARGUMENTS_MOST) {
            mcp_fail(answer, "devices: names of cards are required");
            return false;
        }
        argv[count++] = card_option;
        argv[count++] = card->valuestring;
    }
    argv[count++] = end;
    const size_t before = count;
    if (!add_strings(cJSON_GetObjectItemCaseSensitive(arguments, "command"), argv, &count) || count == before) {
        mcp_fail(answer, "command: the program and its arguments are required, a string each");
        return false;
    }
    argv[count] = NULL;
    return true;
}

// Runs in the child.
static void become_command(char **argv, const char *folder, const int output[2]) {
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)setpgid(0, 0);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(output[1], STDERR_FILENO) < 0 || dup2(output[0], STDOUT_FILENO) < 0)
        _exit(CLI_DEVICE);
    if (folder != NULL && chdir(folder) != 0) {
        dprintf(STDERR_FILENO, "vram: %s: %s\n", folder, strerror(errno));
        _exit(CLI_USAGE);
    }
    (void)execv("/proc/self/exe", argv);
    _exit(CLI_DEVICE);
}

static bool open_pipes(int reads[2], int writes[2]) {
    int first[2], second[2];
    if (pipe(first) != 0) return false;
    if (pipe(second) != 0) {
        (void)close(first[0]);
        (void)close(first[1]);
        return false;
    }
    reads[0] = first[0], writes[0] = first[1], reads[1] = second[0], writes[1] = second[1];
    for (size_t i = 0; i < 2; i++) {
        (void)fcntl(reads[i], F_SETFD, FD_CLOEXEC);
        (void)fcntl(writes[i], F_SETFD, FD_CLOEXEC);
        (void)fcntl(reads[i], F_SETFL, O_NONBLOCK);
    }
    return true;
}

static bool start_fit(struct mcp_server *server, const cJSON *arguments, char *asked, struct mcp_answer *answer) {
    char *argv[ARGUMENTS_MOST];
    int writes[2];
    struct mcp_fit *fit = calloc(1, sizeof *fit);
    if (fit == NULL || !command_of(arguments, argv, answer) || !open_pipes(fit->output, writes)) {
        if (!answer->is_error) mcp_fail(answer, "%s", vram_status_text(VRAM_NO_HOST_MEMORY));
        free(fit);
        return false;
    }
    (void)fflush(NULL);
    fit->process = fork();
    if (fit->process == 0) become_command(argv, mcp_text(arguments, "folder", NULL), writes);
    (void)close(writes[0]);
    (void)close(writes[1]);
    fit->asked = asked;
    fit->begun = time(NULL);
    server->fit = fit;
    if (fit->process > 0) return true;
    fit->asked = NULL; // the caller still owns it
    mcp_fit_end(server);
    mcp_fail(answer, "cannot start a process");
    return false;
}

static void keep_answer(struct mcp_fit *fit, const char *bytes, size_t length) {
    const size_t room = ANSWER_MOST - fit->answer_length, kept = length < room ? length : room;
    memcpy(fit->answer + fit->answer_length, bytes, kept);
    fit->answer_length += kept;
}

static void keep_complaint(struct mcp_fit *fit, const char *bytes, size_t length) {
    if (length > COMPLAINT_MOST) {
        bytes += length - COMPLAINT_MOST;
        length = COMPLAINT_MOST;
    }
    const size_t over = fit->complaint_length + length > COMPLAINT_MOST ? fit->complaint_length + length - COMPLAINT_MOST : 0;
    memmove(fit->complaint, fit->complaint + over, fit->complaint_length - over);
    fit->complaint_length -= over;
    memcpy(fit->complaint + fit->complaint_length, bytes, length);
    fit->complaint_length += length;
}

static void take_output(struct mcp_fit *fit, size_t which) {
    char bytes[4096];
    const ssize_t got = read(fit->output[which], bytes, sizeof bytes);
    if (got > 0 && which == 0) keep_answer(fit, bytes, (size_t)got);
    if (got > 0 && which == 1) keep_complaint(fit, bytes, (size_t)got);
    if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
    (void)close(fit->output[which]);
    fit->output[which] = -1;
}

// Returns whether the process ended within the time of one call.
static bool wait_for(struct mcp_fit *fit) {
    const int64_t until = clock_ms() + (int64_t)(MCP_PATIENCE_NS / 1000000);
    while (fit->output[0] >= 0 || fit->output[1] >= 0) {
        struct pollfd wanted[2] = {{.fd = fit->output[0], .events = POLLIN}, {.fd = fit->output[1], .events = POLLIN}};
        const int64_t left = until - clock_ms();
        if (left <= 0) return false;
        if (poll(wanted, 2, (int)left) <= 0) continue;
        for (size_t i = 0; i < 2; i++) {
            if (wanted[i].revents != 0) take_output(fit, i);
        }
    }
    return true;
}

static void say_lines(struct mcp_answer *answer, char *text) {
    char *rest;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) mcp_line(answer, "%s", line);
}

static void say_end(struct mcp_server *server, struct mcp_answer *answer) {
    struct mcp_fit *fit = server->fit;
    int state = 0;
    (void)waitpid(fit->process, &state, 0);
    fit->process = 0;
    const int code = WIFEXITED(state) ? WEXITSTATUS(state) : CLI_DEVICE;
    say_lines(answer, fit->answer);
    if (code > CLI_FINDING || answer->length == 0) {
        if (answer->length == 0) answer->is_error = true;
        mcp_line(answer, "vram fit ended with exit code %d; the end of its output:", code);
        say_lines(answer, fit->complaint);
    }
    mcp_next(answer, "fit with \"devices\" of your choice, or with other arguments of the program (a smaller batch)");
    mcp_fit_end(server);
}

void mcp_tool_fit(struct mcp_server *server, const cJSON *arguments, struct mcp_answer *answer) {
    char *asked = cJSON_PrintUnformatted(arguments);
    if (asked == NULL) {
        mcp_fail(answer, "%s", vram_status_text(VRAM_NO_HOST_MEMORY));
        return;
    }
    if (server->fit != NULL && strcmp(server->fit->asked, asked) != 0) mcp_fit_end(server); // a different question
    const bool started = server->fit == NULL;
    if (started && !start_fit(server, arguments, asked, answer)) {
        free(asked);
        return;
    }
    if (!started) free(asked);
    if (wait_for(server->fit)) {
        say_end(server, answer);
        return;
    }
    mcp_line(answer, "running for %lld s", (long long)(time(NULL) - server->fit->begun));
    mcp_next(answer, "fit with the same arguments in a few seconds; other arguments end this run");
}
