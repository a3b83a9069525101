// Tools fit and check: run `vram fit` or `vram check` as a process and return its answer when it is complete.
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "args.h"
#include "mcp.h"
#include "program.h"

enum { ARGUMENTS_MOST = 256, ANSWER_MOST = 1 << 20, FIT_ANSWER_MOST = 16384, FINDINGS_MOST = 20, COMPLAINT_MOST = 1500, CARDS_MOST = 1024 };

// The running program. There is at most one.
struct mcp_program {
    bool checks; // it is `vram check`, else `vram fit`
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

void mcp_program_end(struct mcp_server *server) {
    struct mcp_program *program = server->program;
    if (program == NULL) return;
    server->program = NULL;
    for (size_t i = 0; i < 2; i++) {
        if (program->output[i] >= 0) (void)close(program->output[i]);
    }
    if (program->process > 0) {
        // The command ends its program, which is in the same process group.
        (void)kill(-program->process, SIGTERM);
        (void)waitpid(program->process, NULL, 0);
    }
    free(program->asked);
    free(program);
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

// Joins the names of cards with commas. Returns false if a value is no string, or they are too long.
static bool join_cards(const cJSON *names, char *text, size_t capacity) {
    const cJSON *name;
    text[0] = '\0';
    cJSON_ArrayForEach(name, names) {
        const size_t used = strlen(text);
        if (!cJSON_IsString(name)) return false;
        if (snprintf(text + used, capacity - used, "%s%s", used == 0 ? "" : ",", name->valuestring) >= (int)(capacity - used)) return false;
    }
    return true;
}

// Appends an option for each string of an array, or for one string. Returns false if a value is no string, or there are too many.
static bool add_options(const cJSON *value, char *option, char **argv, size_t *count) {
    const cJSON *first = cJSON_IsArray(value) ? value->child : value;
    for (const cJSON *item = first; item != NULL; item = cJSON_IsArray(value) ? item->next : NULL) {
        if (!cJSON_IsString(item) || *count + 2 >= ARGUMENTS_MOST) return false;
        argv[(*count)++] = option;
        argv[(*count)++] = item->valuestring;
    }
    return true;
}

// Appends the options of a search, if the arguments name what to vary.
static bool add_search(const cJSON *arguments, char **argv, size_t *count, struct mcp_answer *answer) {
    static char search[] = "--search", vary[] = "--vary", where[] = "--where", work[] = "--work", printed[] = "--printed",
                budget[] = "--budget";
    char *const options[] = {vary, where, work, printed, budget};
    if (cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(arguments, "vary"))) argv[(*count)++] = search;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(arguments, options[i] + 2);
        if (value == NULL || cJSON_IsNull(value) || add_options(value, options[i], argv, count)) continue;
        mcp_fail(answer, "%s: strings are required", options[i] + 2);
        return false;
    }
    return true;
}

// Builds the command line, borrowing from `arguments` and `cards`. Returns false with a failed answer.
static bool command_of(bool checks, const cJSON *arguments, char **argv, char cards[CARDS_MOST], struct mcp_answer *answer) {
    static char self[] = "vram", fit[] = "fit", check[] = "check", quiet[] = "--quiet", json[] = "--json", card[] = "--card", end[] = "--";
    size_t count = 0;
    argv[count++] = self;
    argv[count++] = checks ? check : fit;
    argv[count++] = checks ? json : quiet;
    if (!join_cards(cJSON_GetObjectItemCaseSensitive(arguments, "devices"), cards, CARDS_MOST)) {
        mcp_fail(answer, "devices: names of cards are required");
        return false;
    }
    if (cards[0] != '\0') {
        argv[count++] = card;
        argv[count++] = cards;
    }
    if (!checks && !add_search(arguments, argv, &count, answer)) return false;
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

static bool start_program(struct mcp_server *server, bool checks, const cJSON *arguments, char *asked, struct mcp_answer *answer) {
    char *argv[ARGUMENTS_MOST], cards[CARDS_MOST];
    int writes[2];
    struct mcp_program *program = calloc(1, sizeof *program);
    if (program == NULL || !command_of(checks, arguments, argv, cards, answer) || !open_pipes(program->output, writes)) {
        if (!answer->is_error) mcp_fail(answer, "%s", vram_status_text(VRAM_NO_HOST_MEMORY));
        free(program);
        return false;
    }
    (void)fflush(NULL);
    program->process = fork();
    if (program->process == 0) become_command(argv, mcp_text(arguments, "folder", NULL), writes);
    (void)close(writes[0]);
    (void)close(writes[1]);
    program->checks = checks;
    program->asked = asked;
    program->begun = time(NULL);
    server->program = program;
    if (program->process > 0) return true;
    program->asked = NULL; // the caller still owns it
    mcp_program_end(server);
    mcp_fail(answer, "cannot start a process");
    return false;
}

static void keep_answer(struct mcp_program *program, const char *bytes, size_t length) {
    const size_t room = ANSWER_MOST - program->answer_length, kept = length < room ? length : room;
    memcpy(program->answer + program->answer_length, bytes, kept);
    program->answer_length += kept;
}

static void take_output(struct mcp_program *program, size_t which) {
    char bytes[4096];
    const ssize_t got = read(program->output[which], bytes, sizeof bytes);
    if (got > 0 && which == 0) keep_answer(program, bytes, (size_t)got);
    if (got > 0 && which == 1) program_keep_last(program->complaint, &program->complaint_length, COMPLAINT_MOST, bytes, (size_t)got);
    if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
    (void)close(program->output[which]);
    program->output[which] = -1;
}

// Returns whether the process ended within the time of one call.
static bool wait_for(struct mcp_program *program) {
    const int64_t until = clock_ms() + (int64_t)(MCP_PATIENCE_NS / 1000000);
    while (program->output[0] >= 0 || program->output[1] >= 0) {
        struct pollfd wanted[2] = {{.fd = program->output[0], .events = POLLIN}, {.fd = program->output[1], .events = POLLIN}};
        const int64_t left = until - clock_ms();
        if (left <= 0) return false;
        if (poll(wanted, 2, (int)left) <= 0) continue;
        for (size_t i = 0; i < 2; i++) {
            if (wanted[i].revents != 0) take_output(program, i);
        }
    }
    return true;
}

static void say_lines(struct mcp_answer *answer, char *text) {
    char *rest;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) mcp_line(answer, "%s", line);
}

static void end_answer(struct mcp_program *program, struct mcp_answer *answer, int code) {
    if (code <= CLI_FINDING && answer->length > 0) return;
    if (answer->length == 0) answer->is_error = true;
    mcp_line(answer, "vram %s ended with exit code %d; the end of its output:", program->checks ? "check" : "fit", code);
    say_lines(answer, program->complaint);
}

static void say_fit(struct mcp_program *program, struct mcp_answer *answer, int code) {
    if (program->answer_length > FIT_ANSWER_MOST) program->answer[FIT_ANSWER_MOST] = '\0';
    say_lines(answer, program->answer);
    end_answer(program, answer, code);
    mcp_next(answer, "fit with \"devices\" of your choice, or with other arguments of the program (a smaller batch)");
}

static bool is_python(const cJSON *frame) {
    const char *file = mcp_text(frame, "file", "");
    return strlen(file) > 3 && strcmp(file + strlen(file) - 3, ".py") == 0;
}

// Prints where one access of a finding happened, innermost frame first: Python frames or, if there are none, source frames.
static void say_side(struct mcp_answer *answer, const char *title, const cJSON *use) {
    enum { FRAMES = 4 };
    const cJSON *stack = cJSON_GetObjectItemCaseSensitive(use, "stack"), *frame;
    bool python = false;
    int printed = 0;
    cJSON_ArrayForEach(frame, stack) python = python || is_python(frame);
    cJSON_ArrayForEach(frame, stack) {
        const cJSON *line = cJSON_GetObjectItemCaseSensitive(frame, "line");
        if (!cJSON_IsNumber(line) || line->valuedouble <= 0 || (python && !is_python(frame)) || printed == FRAMES) continue;
        mcp_line(answer, "  %s: %s at %s:%.0f", title, mcp_text(frame, "name", ""), mcp_text(frame, "file", ""), line->valuedouble);
        printed++;
    }
}

static void say_finding(struct mcp_answer *answer, const cJSON *finding) {
    static const char *const sides[] = {"earlier", "earlier_launch", "later", "later_launch", "allocated", "freed"};
    mcp_line(answer, "%s: %s.", mcp_text(finding, "kind", ""), mcp_text(finding, "message", ""));
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
        say_side(answer, sides[i], cJSON_GetObjectItemCaseSensitive(finding, sides[i]));
    mcp_line(answer, "  to mend it: %s.", mcp_text(finding, "remedy", ""));
}

static void say_check(struct mcp_program *program, struct mcp_answer *answer, int code) {
    cJSON *whole = cJSON_Parse(program->answer);
    const cJSON *findings = cJSON_GetObjectItemCaseSensitive(whole, "findings"), *finding;
    int printed = 0;
    if (cJSON_IsArray(findings))
        mcp_line(answer, "%d mistake%s found", cJSON_GetArraySize(findings), cJSON_GetArraySize(findings) == 1 ? "" : "s");
    cJSON_ArrayForEach(finding, findings) if (printed++ < FINDINGS_MOST) say_finding(answer, finding);
    end_answer(program, answer, code);
    mcp_next(answer, "check again after the change; `vram check` itself prints all findings with whole stacks");
    cJSON_Delete(whole);
}

static void say_end(struct mcp_server *server, struct mcp_answer *answer) {
    struct mcp_program *program = server->program;
    int state = 0;
    (void)waitpid(program->process, &state, 0);
    program->process = 0;
    const int code = WIFEXITED(state) ? WEXITSTATUS(state) : CLI_DEVICE;
    if (program->checks)
        say_check(program, answer, code);
    else
        say_fit(program, answer, code);
    mcp_program_end(server);
}

static void run(struct mcp_server *server, bool checks, const cJSON *arguments, struct mcp_answer *answer) {
    char *asked = cJSON_PrintUnformatted(arguments);
    if (asked == NULL) {
        mcp_fail(answer, "%s", vram_status_text(VRAM_NO_HOST_MEMORY));
        return;
    }
    const bool other = server->program != NULL && (server->program->checks != checks || strcmp(server->program->asked, asked) != 0);
    if (other) mcp_program_end(server);
    const bool started = server->program == NULL;
    if (started && !start_program(server, checks, arguments, asked, answer)) {
        free(asked);
        return;
    }
    if (!started) free(asked);
    if (wait_for(server->program)) {
        say_end(server, answer);
        return;
    }
    mcp_line(answer, "running for %lld s", (long long)(time(NULL) - server->program->begun));
    mcp_next(answer, "%s with the same arguments in a few seconds; other arguments end this run", checks ? "check" : "fit");
}

void mcp_tool_fit(struct mcp_server *server, const cJSON *arguments, struct mcp_answer *answer) { run(server, false, arguments, answer); }
void mcp_tool_check(struct mcp_server *server, const cJSON *arguments, struct mcp_answer *answer) { run(server, true, arguments, answer); }
