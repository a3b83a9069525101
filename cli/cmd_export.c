#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "args.h"
#include "http_server.h"
#include "input.h"
#include "input_files.h"
#include "output.h"
#include "dataset.h"
#include "ui.h"
#include "watch.h"

// Returns the current text, borrowed until the next call. Returns false, which ends the server, when there is no more.
typedef bool export_answer(void *context, const char **text, size_t *length);
// Reads another part of the input that must be read before the first answer. Returns false when all of it has been read.
typedef bool export_read(void *context);

struct metrics_answer {
    export_answer *answer;
    export_read *read;
    void *context;
    bool is_read; // all input present at the start has been read
};

static bool read_metrics(void *context) {
    struct metrics_answer *metrics = context;
    metrics->is_read = !metrics->read(metrics->context);
    return !metrics->is_read;
}

static bool answer_metrics_request(void *context, const char *path, struct http_reply *reply) {
    const struct metrics_answer *metrics = context;
    if (strcmp(path, "/metrics") != 0) {
        http_reply_status(reply, 404);
        return true;
    }
    if (!metrics->is_read) {
        static const char text[] = "the recording is still being read\n";
        *reply = (struct http_reply){.status = 503, .bytes = text, .length = sizeof text - 1};
        return true;
    }
    reply->type = "text/plain; version=0.0.4; charset=utf-8";
    return metrics->answer(metrics->context, &reply->bytes, &reply->length);
}

// Reads short recordings completely before the address is printed.
static void read_what_is_little(struct metrics_answer *metrics) {
    enum { LONGEST_MS = 300 };
    const clock_t start = clock();
    while (!metrics->is_read && (clock() - start) * 1000 / CLOCKS_PER_SEC < LONGEST_MS) (void)read_metrics(metrics);
}

// Answers GET /metrics on the loopback interface until *ended is set or the answers end. Prints the address on standard error. Answers 503
// until all input is read, so that figures from the middle of a recording are not mistaken for current ones. Port 0 means any free port.
// Returns an exit code.
static int export_serve(uint16_t port, export_answer *answer, export_read *read, void *context, volatile sig_atomic_t *ended) {
    struct metrics_answer metrics = {.answer = answer, .read = read, .context = context};
    struct http_server *server = NULL;
    int code = http_server_create(port, &server);
    if (code != CLI_OK) return code;
    read_what_is_little(&metrics);
    ui_say("vram: http://127.0.0.1:%u/metrics", (unsigned)http_server_port(server));
    if (!http_server_run(server, answer_metrics_request, read_metrics, &metrics, ended)) code = CLI_BAD_INPUT;
    http_server_destroy(server);
    return code;
}

// vram export: serves a recorded program's memory figures for monitoring.

int cmd_export(int argc, char **argv);

enum { MOST_TEXT = 1 << 20 };

struct source {
    const char *path;
    struct watch *watch;
    char rank[24]; // "" if the file name has no rank
};

struct exporter {
    struct source *sources;
    int count;
    const char *output; // "-": standard output
    uint64_t interval_ms;
    char text[MOST_TEXT];
    size_t length;
};

static volatile sig_atomic_t ended;
static void on_signal(int number) { ended = number != 0; }

// --- the text

static void put_text(struct exporter *exporter, const char *format, ...) VRAM_PRINTF(2, 3);
static void put_text(struct exporter *exporter, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const size_t room = MOST_TEXT - exporter->length;
    const int length = vsnprintf(exporter->text + exporter->length, room, format, arguments);
    if (length > 0 && (size_t)length < room) exporter->length += (size_t)length;
    va_end(arguments);
}

// Appends a label's value, escaping quotes, backslashes and newlines.
static void put_label(struct exporter *exporter, const char *value) {
    for (; *value != '\0'; value++) {
        if (*value == '"' || *value == '\\') put_text(exporter, "\\");
        put_text(exporter, *value == '\n' ? "\\n" : "%c", *value);
    }
}

struct metric {
    const char *name, *type, *help;
    size_t field; // offset in struct watch_device
};
static const struct metric metrics[] = {
    {"vram_requested_bytes", "gauge", "Requested bytes of allocated blocks.", offsetof(struct watch_device, live_bytes)},
    {"vram_allocations", "gauge", "Allocated blocks.", offsetof(struct watch_device, live_count)},
    {"vram_peak_requested_bytes", "gauge", "Highest requested bytes of allocated blocks.", offsetof(struct watch_device, peak_bytes)},
    {"vram_reserved_bytes", "gauge", "Bytes held from the driver.", offsetof(struct watch_device, reserved_bytes)},
    {"vram_ooms_total", "counter", "Requests that failed for lack of memory.", offsetof(struct watch_device, ooms)},
};

static void put_labels(struct exporter *exporter, const struct source *source) {
    put_text(exporter, "{recording=\"");
    put_label(exporter, input_base_name(source->path));
    if (source->rank[0] != '\0') put_text(exporter, "\",rank=\"%s", source->rank);
    put_text(exporter, "\"");
}

// Returns whether the device's value of the metric is complete. Reserved bytes are not if they are fewer than the live bytes: the recording
// of a whole program sees only part of them.
static bool knows_metric(const struct watch_device *device, const struct metric *metric) {
    return metric->field != offsetof(struct watch_device, reserved_bytes) || device->reserved_bytes >= device->live_bytes;
}

static void put_metric(struct exporter *exporter, const struct metric *metric) {
    put_text(exporter, "# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help, metric->name, metric->type);
    for (int i = 0; i < exporter->count; i++) {
        size_t count;
        const struct watch_device *devices = watch_devices(exporter->sources[i].watch, &count);
        for (size_t d = 0; d < count; d++) {
            uint64_t value;
            if (!knows_metric(&devices[d], metric)) continue;
            memcpy(&value, (const char *)&devices[d] + metric->field, sizeof value);
            put_text(exporter, "%s", metric->name);
            put_labels(exporter, &exporter->sources[i]);
            if (devices[d].device == VRAM_LOG_HOST)
                put_text(exporter, ",device=\"host\"} %" PRIu64 "\n", value);
            else
                put_text(exporter, ",device=\"%" PRIu32 "\"} %" PRIu64 "\n", devices[d].device, value);
        }
    }
}

static void put_events(struct exporter *exporter) {
    put_text(exporter, "# HELP vram_events_total Events recorded.\n# TYPE vram_events_total counter\n");
    for (int i = 0; i < exporter->count; i++) {
        put_text(exporter, "vram_events_total");
        put_labels(exporter, &exporter->sources[i]);
        put_text(exporter, "} %" PRIu64 "\n", watch_events(exporter->sources[i].watch));
    }
}

// Marks each program as running or ended. An ended program's last figures stay in its recording.
static void put_up(struct exporter *exporter) {
    put_text(exporter, "# HELP vram_up 1 until the program has ended.\n# TYPE vram_up gauge\n");
    for (int i = 0; i < exporter->count; i++) {
        put_text(exporter, "vram_up");
        put_labels(exporter, &exporter->sources[i]);
        put_text(exporter, "} %d\n", watch_ended(exporter->sources[i].watch) ? 0 : 1);
    }
}

// Reads new events and writes the text again. Sets *running if a program is still recording. Returns an exit code.
static int update_text(struct exporter *exporter, bool *running) {
    *running = false;
    for (int i = 0; i < exporter->count; i++) {
        struct vram_error error;
        uint64_t events = 1;
        while (events != 0) {
            if (watch_update(exporter->sources[i].watch, &events, &error) != VRAM_OK) return ui_error(exporter->sources[i].path, &error);
        }
        *running = *running || !watch_ended(exporter->sources[i].watch);
    }
    exporter->length = 0;
    for (size_t m = 0; m < sizeof metrics / sizeof metrics[0]; m++) put_metric(exporter, &metrics[m]);
    put_events(exporter);
    put_up(exporter);
    return CLI_OK;
}

// --- output

static int write_text(const struct exporter *exporter) {
    struct output *output = output_open(exporter->output);
    if (output == NULL) return CLI_BAD_INPUT;
    return output_close(output, output_write(output, exporter->text, exporter->length));
}

static void sleep_ms(uint64_t ms) {
    const struct timespec time = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)nanosleep(&time, NULL);
}

static int keep_writing(struct exporter *exporter) {
    bool running = true;
    int code = CLI_OK;
    while (code == CLI_OK && running) {
        const bool last = ended != 0 || exporter->interval_ms == 0;
        code = update_text(exporter, &running);
        if (code == CLI_OK) code = write_text(exporter);
        if (last) break;
        if (code == CLI_OK && running) sleep_ms(exporter->interval_ms);
    }
    return code;
}

static bool answer_text(void *context, const char **text, size_t *length) {
    struct exporter *exporter = context;
    bool running;
    if (update_text(exporter, &running) != CLI_OK) return false;
    *text = exporter->text;
    *length = exporter->length;
    return true;
}

// Reads part of the files' initial contents. Leaves unreadable files for the first answer to report.
static bool read_on(void *context) {
    struct exporter *exporter = context;
    for (int i = 0; i < exporter->count; i++) {
        struct vram_error error;
        uint64_t events = 0;
        if (watch_step(exporter->sources[i].watch, &events, &error) == VRAM_OK && events != 0) return true;
    }
    return false;
}

// Returns whether a path is itself an operand or a growing recording file: a folder may also contain other recordings.
static bool is_meant(char **operands, int count, const char *path) {
    const size_t length = strlen(path), end = strlen(".vram");
    for (int i = 0; i < count; i++)
        if (strcmp(operands[i], path) == 0) return true;
    return length > end && strcmp(path + length - end, ".vram") == 0;
}

static int open_sources(struct exporter *exporter, char **operands, int count, const struct input_files *files) {
    exporter->sources = calloc((size_t)files->count, sizeof *exporter->sources);
    if (exporter->sources == NULL) return CLI_BAD_INPUT;
    for (int i = 0; i < files->count; i++) {
        struct vram_error error;
        struct source *source = &exporter->sources[exporter->count];
        uint64_t rank;
        if (!is_meant(operands, count, files->paths[i])) continue;
        if (watch_open(files->paths[i], &source->watch, &error) != VRAM_OK) return ui_error(NULL, &error);
        source->path = files->paths[i];
        if (rank_of_path(source->path, &rank)) (void)snprintf(source->rank, sizeof source->rank, "%" PRIu64, rank);
        exporter->count++;
    }
    if (exporter->count != 0) return CLI_OK;
    ui_say("vram: %s contains no recording file (.vram)", operands[0]);
    return CLI_BAD_INPUT;
}

static int export_files(char **operands, int count, struct exporter *exporter, uint64_t port) {
    struct input_files files;
    int code = input_files_open(operands, count, &files);
    if (code != CLI_OK) return code;
    code = open_sources(exporter, operands, count, &files);
    if (code == CLI_OK)
        code = port != UINT64_MAX ? export_serve((uint16_t)port, answer_text, read_on, exporter, &ended) : keep_writing(exporter);
    for (int i = 0; i < exporter->count; i++) watch_close(exporter->sources[i].watch);
    free(exporter->sources);
    input_files_close(&files);
    return code;
}

// Parses "15s", "500ms", or plain seconds.
static bool parse_interval(const char *text, uint64_t *ms) {
    char *unit;
    const unsigned long number = strtoul(text, &unit, 10);
    *ms = strcmp(unit, "ms") == 0 ? number : *unit == '\0' || strcmp(unit, "s") == 0 ? number * 1000 : 0;
    return text[0] >= '0' && text[0] <= '9' && number < 1000000 && *ms != 0;
}

int cmd_export(int argc, char **argv) {
    struct exporter *exporter = calloc(1, sizeof *exporter);
    const char *interval = NULL;
    uint64_t port = UINT64_MAX;
    int count, code;
    if (exporter == NULL) return CLI_BAD_INPUT;
    exporter->output = "-";
    const struct args_option options[] = {
        {.name = "output",
         .letter = 'o',
         .kind = ARGS_STRING,
         .value = "OUT",
         .help = "the file to write (.prom for the node exporter)",
         .target = &exporter->output},
        {.name = "interval",
         .kind = ARGS_STRING,
         .value = "15s",
         .help = "write again after each interval until the programs end",
         .target = &interval},
        {.name = "listen",
         .kind = ARGS_COUNT,
         .value = "PORT",
         .help = "serve on http://127.0.0.1:PORT/metrics (0: any free port)",
         .target = &port},
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "export",
        .usage = "[options] FILE.vram...",
        .summary = "Writes statistics of programs that are being recorded (vram run, VRAM_HISTORY=file=...) for Prometheus. A folder\nof "
                   "recordings is a job: each metric has the rank from the file name.",
        .examples = "  vram export run.vram\n"
                    "  vram export run.vram --interval 15s -o /var/lib/node_exporter/vram.prom\n"
                    "  vram export ranks/ --listen 9400\n",
        .options = options,
        .min_operands = 1,
        .max_operands = -1,
        .operand = "a recording file that is being written (FILE.vram)",
    };
    if (!args_parse(&command, argc, argv, &count, &code)) {
        free(exporter);
        return code;
    }
    if ((interval != NULL && !parse_interval(interval, &exporter->interval_ms)) || (port != UINT64_MAX && port > UINT16_MAX)) {
        code = ui_usage("export", "vram: %s",
                        interval != NULL && exporter->interval_ms == 0 ? "--interval takes a time, such as 15s or 500ms"
                                                                       : "--listen takes a port from 0 to 65535");
    } else {
        const struct sigaction action = {.sa_handler = on_signal};
        (void)sigaction(SIGINT, &action, NULL);
        (void)sigaction(SIGTERM, &action, NULL);
        code = export_files(argv + 1, count, exporter, port);
    }
    free(exporter);
    return code;
}
