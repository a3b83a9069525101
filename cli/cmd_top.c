// vram top: the live memory of a program that is being recorded, in the terminal.
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "answers.h"
#include "args.h"
#include "recorded.h"
#include "top_draw.h"
#include "ui.h"
#include "watch.h"

int cmd_top(int argc, char **argv);

enum { MOST_PROCESSES = 256, FRAME_MS = 500 };

// --- the terminal -------------------------------------------------------------------------------------------------------------------
static struct termios before;
static volatile sig_atomic_t terminal_taken;

// From a signal handler, too: only calls that may be made there.
static void give_back(void) {
    static const char leave[] = "\x1b[?25h\x1b[?1049l";
    if (!terminal_taken) return;
    terminal_taken = 0;
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    (void)!write(STDOUT_FILENO, leave, sizeof leave - 1);
}

static void end_by_signal(int number) {
    give_back();
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void on_resize(int number) { (void)number; }

static bool take_terminal(void) {
    if (tcgetattr(STDIN_FILENO, &before) != 0) return false;
    struct termios raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    struct sigaction resize = {.sa_handler = on_resize}, end = {.sa_handler = end_by_signal};
    (void)sigaction(SIGWINCH, &resize, NULL);
    (void)sigaction(SIGINT, &end, NULL);
    (void)sigaction(SIGTERM, &end, NULL);
    (void)sigaction(SIGHUP, &end, NULL);
    if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) != 0) return false;
    terminal_taken = 1;
    printf("\x1b[?1049h\x1b[?25l");
    return true;
}

static void measure(struct top_view *view) {
    struct winsize size;
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
    view->columns = known ? size.ws_col : 100;
    view->rows = known ? size.ws_row : 40;
}

// --- keys -----------------------------------------------------------------------------------------------------------------------------
static void search_key(struct top_view *view, char key) {
    const size_t length = strlen(view->search);
    if (key == '\r' || key == '\n')
        view->searching = false;
    else if (key == 27) {
        view->searching = false;
        view->search[0] = '\0';
    } else if ((key == 127 || key == 8) && length > 0)
        view->search[length - 1] = '\0';
    else if ((unsigned char)key >= 32 && key != 127 && length + 1 < sizeof view->search) {
        view->search[length] = key;
        view->search[length + 1] = '\0';
    }
}

// False: the user wants to leave.
static bool press(struct top_view *view, char key) {
    if (view->searching) {
        search_key(view, key);
        return true;
    }
    if (key >= '1' && key < '1' + WATCH_BY_COUNT)
        view->by = (enum watch_by)(key - '1');
    else if (key == '\t')
        view->by = (enum watch_by)((view->by + 1) % WATCH_BY_COUNT);
    else if (key == 's')
        view->sort = (enum top_sort)((view->sort + 1) % TOP_SORT_COUNT);
    else if (key == '/')
        view->searching = true;
    else if (key == 27)
        view->search[0] = '\0';
    else if (key == 'j')
        view->first++;
    else if (key == 'k' && view->first > 0)
        view->first--;
    else if (key == ' ')
        view->paused = !view->paused;
    else if (key == 'q')
        return false;
    return true;
}

// Arrows come as escape sequences; what is typed faster than it is read comes in one piece.
static bool press_all(struct top_view *view, const char *keys, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char key = keys[i];
        if (key == 27 && i + 2 < count && keys[i + 1] == '[') {
            key = keys[i + 2] == 'B' ? 'j' : keys[i + 2] == 'A' ? 'k' : '\0';
            i += 2;
        }
        if (!press(view, key)) return false;
    }
    return true;
}

// --- what is shown ----------------------------------------------------------------------------------------------------------------------
static int watch_live(struct watch *watch, struct top_view *view) {
    if (!take_terminal()) {
        ui_say("vram: the terminal cannot be used; try --once");
        return CLI_USAGE;
    }
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    enum vram_status status = VRAM_OK;
    for (bool going = true; going;) {
        uint64_t events = 0;
        if (!view->paused) status = watch_update(watch, &events, &error);
        if (status != VRAM_OK) break;
        if (view->by == WATCH_SITE) watch_name_sites(watch);
        measure(view);
        top_draw(watch, view, true);
        fflush(stdout);
        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
        char keys[64];
        if (poll(&input, 1, FRAME_MS) <= 0) continue;
        const ssize_t count = read(STDIN_FILENO, keys, sizeof keys);
        going = count > 0 && press_all(view, keys, (size_t)count);
    }
    give_back();
    return status == VRAM_OK ? CLI_OK : ui_error(view->path, &error);
}

static int watch_once(struct watch *watch, struct top_view *view, bool json) {
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    uint64_t events = 0;
    const enum vram_status status = watch_update(watch, &events, &error);
    if (status != VRAM_OK) return ui_error(view->path, &error);
    if (view->by == WATCH_SITE) watch_name_sites(watch);
    measure(view);
    if (json) return top_json(watch, view);
    top_draw(watch, view, false);
    return CLI_OK;
}

static int list_json(const struct recorded *list, size_t count) {
    struct answer_json answer;
    struct vr_json *json = answer_json_begin(&answer);
    vr_json_array(json, NULL);
    for (size_t i = 0; i < count; i++) {
        vr_json_object(json, NULL);
        vr_json_i64(json, "pid", list[i].pid);
        vr_json_string(json, "program", list[i].program);
        vr_json_string(json, "recording", list[i].path);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
    return answer_json_end(&answer, NULL);
}

static int list_text(const struct recorded *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        printf("%7d  ", list[i].pid);
        ui_put(stdout, list[i].program);
        printf("%*s  ", strlen(list[i].program) < 16 ? (int)(16 - strlen(list[i].program)) : 0, "");
        ui_put(stdout, list[i].path);
        printf("\n");
    }
    if (count == 0)
        printf("No process that you may look at is being recorded. `vram run -- PROGRAM` records one, so does "
               "VRAM_HISTORY=...,file=PATTERN.\n");
    else if (count > 1)
        printf("\n`vram top PID` shows one of them.\n");
    return CLI_OK;
}

static int list_processes(bool json) {
    struct recorded *list = calloc(MOST_PROCESSES, sizeof *list);
    if (list == NULL) return CLI_BAD_INPUT;
    const int code = (json ? list_json : list_text)(list, recorded_list(list, MOST_PROCESSES));
    free(list);
    return code;
}

static int show(const char *target, struct top_view *view, bool once, bool json) {
    struct recorded recorded = {.pid = 0};
    char *end;
    const long pid = strtol(target, &end, 10);
    if (*end == '\0' && pid > 0) {
        if (!recorded_find((int)pid, &recorded)) {
            ui_say("vram: process %ld is not recorded, or may not be looked at", pid);
            return CLI_BAD_INPUT;
        }
    } else
        snprintf(recorded.path, sizeof recorded.path, "%s", target);
    view->path = recorded.path;
    view->program = recorded.program;
    view->pid = recorded.pid;
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    struct watch *watch = NULL;
    if (watch_open(recorded.path, &watch, &error) != VRAM_OK) return ui_error(NULL, &error);
    const bool live = !once && !json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    const int code = live ? watch_live(watch, view) : watch_once(watch, view, json);
    watch_close(watch);
    return code;
}

int cmd_top(int argc, char **argv) {
    static const char *const choices[] = {"library", "kind", "site", "stream", "pool", NULL};
    bool once = false, json = false;
    unsigned by = WATCH_LIBRARY;
    const struct args_option options[] = {
        {.name = "by",
         .kind = ARGS_CHOICE,
         .value = "library|kind|site|stream|pool",
         .help = "how memory is grouped at first (default library)",
         .target = &by,
         .choices = choices},
        {.name = "once", .kind = ARGS_FLAG, .help = "print what is alive now, and end", .target = &once},
        {.name = "json", .kind = ARGS_FLAG, .help = "the same as one JSON object; keys in docs/reference/json.md", .target = &json},
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "top",
        .usage = "[options] [PID|FILE]",
        .summary = "Shows the live memory of a program that is being recorded (by `vram run`, or by an allocator of this library that\n"
                   "streams its history), by library, kind, call site, stream or pool. Nothing is asked of the program: its recording is\n"
                   "read while it grows. Without a PID: which processes are recorded; the only one is shown.\n"
                   "Keys: 1 to 5 or Tab group, s sorts, / searches, arrows scroll, space pauses, q ends.",
        .examples = "  vram run -- python train.py &\n"
                    "  vram top $!\n"
                    "  vram top --once --by site 4711\n",
        .options = options,
        .min_operands = 0,
        .max_operands = 1,
        .operand = "one process",
    };
    int count, code;
    if (!args_parse(&command, argc, argv, &count, &code)) return code;
    struct top_view view = {.by = (enum watch_by)by, .style = ui_style()};
    if (count == 1) return show(argv[1], &view, once, json);
    struct recorded *list = calloc(2, sizeof *list);
    char target[16] = "";
    if (list != NULL && recorded_list(list, 2) == 1) snprintf(target, sizeof target, "%d", list[0].pid);
    free(list);
    return target[0] != '\0' ? show(target, &view, once, json) : list_processes(json);
}
