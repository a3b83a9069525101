#include "export_serve.h"

#include <string.h>
#include <time.h>

#include "args.h"
#include "http_server.h"
#include "ui.h"

struct metrics {
    export_answer *answer;
    export_read *read;
    void *context;
    bool is_read; // all that there was at the start
};

static bool read_on(void *context) {
    struct metrics *metrics = context;
    metrics->is_read = !metrics->read(metrics->context);
    return !metrics->is_read;
}

static bool answer_metrics(void *context, const char *path, struct http_reply *reply) {
    const struct metrics *metrics = context;
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

// What is soon read is there before the address is.
static void read_what_is_little(struct metrics *metrics) {
    enum { LONGEST_MS = 300 };
    const clock_t start = clock();
    while (!metrics->is_read && (clock() - start) * 1000 / CLOCKS_PER_SEC < LONGEST_MS) (void)read_on(metrics);
}

int export_serve(uint16_t port, export_answer *answer, export_read *read, void *context, volatile sig_atomic_t *ended) {
    struct metrics metrics = {.answer = answer, .read = read, .context = context};
    struct http_server *server = NULL;
    int code = http_server_create(port, &server);
    if (code != CLI_OK) return code;
    read_what_is_little(&metrics);
    ui_say("vram: http://127.0.0.1:%u/metrics", (unsigned)http_server_port(server));
    if (!http_server_run(server, answer_metrics, read_on, &metrics, ended)) code = CLI_BAD_INPUT;
    http_server_destroy(server);
    return code;
}
