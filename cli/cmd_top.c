#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "args.h"
#include "output.h"
#include "recorded_processes.h"
#include "ui.h"
#include "vram/log.h"
#include "vram/status.h"
#include "watch.h"

enum top_sort { TOP_BY_LIVE, TOP_BY_PEAK, TOP_BY_COUNT, TOP_BY_MADE, TOP_SORT_COUNT };

struct top_view {
    const char *path, *program;
    int pid; // 0: a file
    struct vram_style style;
    unsigned columns, rows;
    enum watch_by by;
    enum top_sort sort;
    size_t first; // first row shown of the list; clamped to its length
    char search[64];
    bool searching, paused;
};

enum { BAR = 20, NUMBERS = 46, HEAD_ROWS = 6 };

static const char *const sort_names[] = {"live", "peak", "count", "made"};

// Prints at most `columns` columns of the text, with control characters replaced.
static void print_cut(const char *text, unsigned columns) {
    unsigned used = 0;
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0' && used < columns; c++) {
        putchar(*c < 0x20 || *c == 0x7f ? '?' : *c);
        used += (*c & 0xc0) != 0x80;
    }
    for (; used < columns; used++) putchar(' ');
}

static void put_colour(const struct top_view *view, const char *code) {
    if (view->style.colour) printf("\x1b[%sm", code);
}

static void end_line(bool live) { printf(live ? "\x1b[K\n" : "\n"); }

static void print_bar(const struct top_view *view, uint64_t part, uint64_t whole) {
    static const char *const eighths[] = {
        "", "\xe2\x96\x8f", "\xe2\x96\x8e", "\xe2\x96\x8d", "\xe2\x96\x8c", "\xe2\x96\x8b", "\xe2\x96\x8a", "\xe2\x96\x89"};
    const unsigned filled = whole == 0 ? 0 : (unsigned)((double)part / (double)whole * BAR * 8 + 0.5);
    unsigned used = 0;
    put_colour(view, "34");
    for (; used < filled / 8; used++) printf("%s", view->style.unicode ? "\xe2\x96\x88" : "#");
    if (view->style.unicode && filled % 8 != 0 && used < BAR) {
        printf("%s", eighths[filled % 8]);
        used++;
    }
    put_colour(view, "0");
    for (; used < BAR; used++) putchar(' ');
}

// --- contents ---------------------------------------------------------------------------------------------------------------------------
static enum top_sort sorting; // qsort() has no context

static uint64_t sort_value(const struct watch_group *group) {
    const uint64_t values[] = {group->bytes, group->peak_bytes, group->count, group->made};
    return values[sorting];
}

static int by_value(const void *a, const void *b) {
    const struct watch_group *x = *(const struct watch_group *const *)a, *y = *(const struct watch_group *const *)b;
    if (sort_value(x) != sort_value(y)) return sort_value(x) < sort_value(y) ? 1 : -1;
    return strcmp(x->label, y->label);
}

// Selects and sorts the groups that match the search. *shown is malloc'ed; NULL if memory runs out.
static size_t select_groups(const struct watch *watch, const struct top_view *view, const struct watch_group ***shown) {
    size_t count = 0, kept = 0;
    const struct watch_group *groups = watch_groups(watch, view->by, &count);
    *shown = malloc((count + 1) * sizeof **shown);
    if (*shown == NULL) return 0;
    for (size_t i = 0; i < count; i++)
        if (view->search[0] == '\0' || strstr(groups[i].label, view->search) != NULL) (*shown)[kept++] = &groups[i];
    sorting = view->sort;
    qsort(*shown, kept, sizeof **shown, by_value);
    return kept;
}

// Prints a line for each call site that leaks slowly. Returns their number.
static size_t print_leaks(struct watch *watch, const struct top_view *view, bool live) {
    struct watch_leak leaks[WATCH_MOST_LEAKS];
    if (watch_leaks(watch, leaks) != 0) watch_name_sites(watch);
    const size_t count = watch_leaks(watch, leaks);
    for (size_t i = 0; i < count; i++) {
        char rate[UI_SIZE_CAPACITY];
        const uint64_t minutes = (leaks[i].since_ns - watch_first_ns(watch)) / 60000000000;
        put_colour(view, "31");
        printf("  leak  +%s per hour since %" PRIu64 ":%02" PRIu64 " h", ui_size((uint64_t)leaks[i].bytes_per_hour, rate), minutes / 60,
               minutes % 60);
        put_colour(view, "0");
        printf(" (%s)  ", leaks[i].sure ? "sure" : "likely");
        ui_put(stdout, leaks[i].label);
        end_line(live);
    }
    return count;
}

static void print_head(const struct watch *watch, const struct top_view *view, bool live) {
    size_t count = 0;
    const struct watch_device *devices = watch_devices(watch, &count);
    const uint64_t seconds = (watch_last_ns(watch) - watch_first_ns(watch)) / 1000000000;
    put_colour(view, "1");
    ui_put(stdout, view->pid != 0 ? view->program : view->path);
    if (view->pid != 0) printf(" (%d)", view->pid);
    put_colour(view, "0");
    printf("   %" PRIu64 " event%s, %" PRIu64 ":%02" PRIu64 "%s%s", watch_events(watch), watch_events(watch) == 1 ? "" : "s", seconds / 60,
           seconds % 60, watch_ended(watch) ? ", ended" : "", view->paused ? ", PAUSED" : "");
    end_line(live);
    for (size_t i = 0; i < count; i++) {
        char now[UI_SIZE_CAPACITY], peak[UI_SIZE_CAPACITY], reserved[UI_SIZE_CAPACITY];
        if (devices[i].device == VRAM_LOG_HOST)
            printf("  pinned host ");
        else
            printf("  device %-5" PRIu32, devices[i].device);
        print_bar(view, devices[i].live_bytes, devices[i].peak_bytes);
        printf(" %10s live, %" PRIu64 " block%s, peak %s", ui_size(devices[i].live_bytes, now), devices[i].live_count,
               devices[i].live_count == 1 ? "" : "s", ui_size(devices[i].peak_bytes, peak));
        if (devices[i].reserved_bytes != 0) printf(", reserved %s", ui_size(devices[i].reserved_bytes, reserved));
        if (devices[i].ooms != 0) {
            put_colour(view, "31");
            printf(", %" PRIu64 " out of memory", devices[i].ooms);
            put_colour(view, "0");
        }
        end_line(live);
    }
    if (count == 0) {
        printf("  nothing yet");
        end_line(live);
    }
}

static void print_titles(const struct top_view *view, unsigned label_columns, bool live) {
    put_colour(view, "2");
    printf("  by ");
    print_cut(watch_by_name(view->by), label_columns - 3);
    printf("%*s %10s %10s %9s %10s", BAR, "", view->sort == TOP_BY_LIVE ? "[live]" : "live", view->sort == TOP_BY_PEAK ? "[peak]" : "peak",
           view->sort == TOP_BY_COUNT ? "[blocks]" : "blocks", view->sort == TOP_BY_MADE ? "[made]" : "made");
    put_colour(view, "0");
    end_line(live);
}

static void print_group(const struct top_view *view, const struct watch_group *group, uint64_t most, unsigned label_columns, bool live) {
    char now[UI_SIZE_CAPACITY], peak[UI_SIZE_CAPACITY];
    printf("  ");
    print_cut(group->label, label_columns);
    print_bar(view, sort_value(group), most);
    printf(" %10s %10s %9" PRIu64 " %10" PRIu64, ui_size(group->bytes, now), ui_size(group->peak_bytes, peak), group->count, group->made);
    end_line(live);
}

static void print_foot(const struct top_view *view, bool live) {
    if (!live) return;
    put_colour(view, "2");
    if (view->searching || view->search[0] != '\0')
        printf("  /%s%s", view->search, view->searching ? "_" : "   (Esc: all)");
    else
        printf("  1 library  2 kind  3 call site  4 stream  5 pool   s sort (%s)   / search   space pause   q end", sort_names[view->sort]);
    put_colour(view, "0");
    printf("\x1b[K");
}

// Prints a frame. With `live`, draws over the previous frame and fits the terminal's height.
static void top_draw(struct watch *watch, struct top_view *view, bool live) {
    const struct watch_group **shown = NULL;
    size_t devices = 0;
    (void)watch_devices(watch, &devices);
    const size_t count = select_groups(watch, view, &shown);
    const unsigned width = view->columns < 80 ? 80 : view->columns > 160 ? 160 : view->columns;
    const unsigned label_columns = width - BAR - NUMBERS;
    if (live) printf("\x1b[H");
    print_head(watch, view, live);
    const size_t leaks = print_leaks(watch, view, live);
    end_line(live);
    const size_t head = HEAD_ROWS - 1 + (devices == 0 ? 1 : devices) + leaks;
    const size_t room = !live ? count : view->rows > head + 1 ? view->rows - head - 1 : 1;
    if (view->first + room > count) view->first = count > room ? count - room : 0;
    print_titles(view, label_columns, live);
    const uint64_t most = count == 0 ? 0 : sort_value(shown[0]);
    for (size_t i = view->first; i < count && i < view->first + room; i++) print_group(view, shown[i], most, label_columns, live);
    if (live) printf("\x1b[J\n");
    print_foot(view, live);
    free(shown);
}

// --- JSON -------------------------------------------------------------------------------------------------------------------------------
static void put_device(struct vr_json *json, const struct watch_device *device) {
    vr_json_object(json, NULL);
    if (device->device == VRAM_LOG_HOST)
        vr_json_string(json, "device", "host");
    else
        vr_json_u64(json, "device", device->device);
    vr_json_u64(json, "live_bytes", device->live_bytes);
    vr_json_u64(json, "live_count", device->live_count);
    vr_json_u64(json, "peak_bytes", device->peak_bytes);
    vr_json_u64(json, "reserved_bytes", device->reserved_bytes);
    vr_json_u64(json, "ooms", device->ooms);
    vr_json_object_end(json);
}

static void put_group(struct vr_json *json, const struct watch_group *group) {
    vr_json_object(json, NULL);
    vr_json_string(json, "label", group->label);
    vr_json_u64(json, "live_bytes", group->bytes);
    vr_json_u64(json, "live_count", group->count);
    vr_json_u64(json, "peak_bytes", group->peak_bytes);
    vr_json_u64(json, "made", group->made);
    vr_json_object_end(json);
}

static void put_leaks(struct vr_json *json, struct watch *watch) {
    struct watch_leak leaks[WATCH_MOST_LEAKS];
    if (watch_leaks(watch, leaks) != 0) watch_name_sites(watch);
    const size_t count = watch_leaks(watch, leaks);
    vr_json_array(json, "leaks");
    for (size_t i = 0; i < count; i++) {
        vr_json_object(json, NULL);
        vr_json_string(json, "label", leaks[i].label);
        vr_json_u64(json, "bytes_per_hour", (uint64_t)leaks[i].bytes_per_hour);
        vr_json_u64(json, "since_ns", leaks[i].since_ns);
        vr_json_bool(json, "sure", leaks[i].sure);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

// Prints the frame's contents as one JSON object. Returns an exit code.
static int top_json(struct watch *watch, const struct top_view *view) {
    const struct watch_group **shown = NULL;
    size_t count = 0;
    const struct watch_device *devices = watch_devices(watch, &count);
    struct answer_json answer;
    struct vr_json *json = answer_json_begin(&answer);
    vr_json_object(json, NULL);
    vr_json_i64(json, "pid", view->pid);
    vr_json_string(json, "recording", view->path);
    vr_json_u64(json, "events", watch_events(watch));
    vr_json_bool(json, "ended", watch_ended(watch));
    vr_json_array(json, "devices");
    for (size_t i = 0; i < count; i++) put_device(json, &devices[i]);
    vr_json_array_end(json);
    put_leaks(json, watch);
    vr_json_string(json, "by", watch_by_name(view->by));
    vr_json_array(json, "groups");
    const size_t groups = select_groups(watch, view, &shown);
    for (size_t i = 0; i < groups; i++) put_group(json, shown[i]);
    vr_json_array_end(json);
    vr_json_object_end(json);
    free(shown);
    return answer_json_end(&answer, NULL);
}

// vram top: shows a recorded program's live memory in the terminal.

int cmd_top(int argc, char **argv);

enum { MOST_PROCESSES = 256, FRAME_MS = 500 };

// --- the terminal -------------------------------------------------------------------------------------------------------------------
static struct termios before;
static volatile sig_atomic_t terminal_taken;

// Restores the terminal. Async-signal-safe.
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

static void measure_terminal(struct top_view *view) {
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

// Handles a key. Returns false if the user quits.
static bool press_key(struct top_view *view, char key) {
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

// Handles a batch of input. Arrow keys are escape sequences; fast typing arrives as several keys at once.
static bool press_all(struct top_view *view, const char *keys, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char key = keys[i];
        if (key == 27 && i + 2 < count && keys[i + 1] == '[') {
            key = keys[i + 2] == 'B' ? 'j' : keys[i + 2] == 'A' ? 'k' : '\0';
            i += 2;
        }
        if (!press_key(view, key)) return false;
    }
    return true;
}

// --- the loop ---------------------------------------------------------------------------------------------------------------------------
static int watch_live(struct watch *watch, struct top_view *view) {
    if (!take_terminal()) {
        ui_say("vram: cannot use this terminal; try --once");
        return CLI_USAGE;
    }
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    enum vram_status status = VRAM_OK;
    for (bool going = true; going;) {
        uint64_t events = 0;
        if (!view->paused) status = watch_update(watch, &events, &error);
        if (status != VRAM_OK) break;
        if (view->by == WATCH_SITE) watch_name_sites(watch);
        measure_terminal(view);
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
    measure_terminal(view);
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
        printf(
            "No recorded processes found (that you can access). Start one with `vram run -- PROGRAM` or VRAM_HISTORY=...,file=PATTERN.\n");
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

static int show_target(const char *target, struct top_view *view, bool once, bool json) {
    struct recorded recorded = {.pid = 0};
    char *end;
    const long pid = strtol(target, &end, 10);
    if (*end == '\0' && pid > 0) {
        if (!recorded_find((int)pid, &recorded)) {
            ui_say("vram: process %ld is not being recorded, or you lack permission", pid);
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
    (void)watch_growth(watch); // without host memory, the frame lacks the leaks only
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
         .help = "how to group memory at first (default library)",
         .target = &by,
         .choices = choices},
        {.name = "once", .kind = ARGS_FLAG, .help = "print what is live now, and exit", .target = &once},
        {.name = "json", .kind = ARGS_FLAG, .help = "like --once, as one JSON object; keys in docs/reference/json.md", .target = &json},
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "top",
        .usage = "[options] [PID|FILE]",
        .summary = "Shows the live memory of a program that is being recorded (by `vram run`, or by vram's allocator with a "
                   "history\nfile), by library, kind, call site, stream or pool. It only reads the recording as it grows and does not "
                   "disturb the\nprogram. Without a PID it lists the recorded processes, or shows the only one.\n"
                   "Keys: 1 to 5 or Tab choose the grouping, s sorts, / searches, arrows scroll, space pauses, q ends.",
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
    if (count == 1) return show_target(argv[1], &view, once, json);
    struct recorded *list = calloc(2, sizeof *list);
    char target[16] = "";
    if (list != NULL && recorded_list(list, 2) == 1) snprintf(target, sizeof target, "%d", list[0].pid);
    free(list);
    return target[0] != '\0' ? show_target(target, &view, once, json) : list_processes(json);
}
