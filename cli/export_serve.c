#include "export_serve.h"

#include <string.h>

#include "args.h"
#include "http_server.h"
#include "ui.h"

struct metrics {
    export_answer *answer;
    void *context;
};

static bool answer_metrics(void *context, const char *path, struct http_reply *reply) {
    const struct metrics *metrics = context;
    if (strcmp(path, "/metrics") != 0) {
        http_reply_status(reply, 404);
        return true;
    }
    reply->type = "text/plain; version=0.0.4; charset=utf-8";
    return metrics->answer(metrics->context, &reply->bytes, &reply->length);
}

int export_serve(uint16_t port, export_answer *answer, void *context, volatile sig_atomic_t *ended) {
    struct metrics metrics = {.answer = answer, .context = context};
    struct http_server *server = NULL;
    int code = http_server_create(port, &server);
    if (code != CLI_OK) return code;
    ui_say("vram: http://127.0.0.1:%u/metrics", (unsigned)http_server_port(server));
    if (!http_server_run(server, answer_metrics, &metrics, ended)) code = CLI_BAD_INPUT;
    http_server_destroy(server);
    return code;
}
