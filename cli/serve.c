#include "serve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "http.h"
#include "http_server.h"
#include "ui.h"
#include "view_kinds.h"
#include "view_page.h"

extern char **environ;

bool browser_open(const char *target) {
#ifdef __APPLE__
    const char *opener = "open";
#else
    const char *opener = "xdg-open";
    const char *display = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
    if ((display == NULL || *display == '\0') && (wayland == NULL || *wayland == '\0') && getenv("BROWSER") == NULL) return false;
#endif
    char *const arguments[] = {(char *)(uintptr_t)opener, (char *)(uintptr_t)target, NULL};
    posix_spawn_file_actions_t quiet;
    pid_t pid;
    if (posix_spawn_file_actions_init(&quiet) != 0) return false;
    // Discard browsers' output.
    (void)posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
    (void)posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
    const int result = posix_spawnp(&pid, opener, &quiet, NULL, arguments, environ);
    (void)posix_spawn_file_actions_destroy(&quiet);
    return result == 0;
}

struct server {
    char token[SERVE_TOKEN_LENGTH + 1];
    struct vram_explorer *explorer;
    struct http_server *http;
    const char *kinds;
    char *page; // the complete HTML
    size_t page_length;
};

static volatile sig_atomic_t ended;

static void on_signal(int number) {
    (void)number;
    ended = 1;
}

// A growing text, for the page or an answer.
struct body {
    char *bytes;
    size_t length, capacity;
};

static bool keep_answer(void *user, const char *bytes, size_t length) {
    struct body *body = user;
    if (length > body->capacity - body->length) {
        const size_t capacity = (body->length + length) * 2;
        char *grown = realloc(body->bytes, capacity);
        if (grown == NULL) return false;
        body->bytes = grown;
        body->capacity = capacity;
    }
    memcpy(body->bytes + body->length, bytes, length);
    body->length += length;
    return true;
}

static void answer_question(struct server *server, const char *question, struct http_reply *reply) {
    struct body body = {0};
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    const enum vram_status status = vram_explorer_ask(server->explorer, question, keep_answer, &body, &error);
    if (status == VRAM_OK) {
        *reply = (struct http_reply){200, "application/octet-stream", body.bytes, body.length, .owned = true};
        return;
    }
    free(body.bytes);
    char *message = strdup(error.message);
    http_reply_status(reply, status == VRAM_INVALID_ARGUMENT ? 400 : 500);
    if (message != NULL) *reply = (struct http_reply){reply->status, NULL, message, strlen(message), .owned = true};
}

static bool answer_request(void *context, const char *path, struct http_reply *reply) {
    struct server *server = context;
    const char *question = NULL;
    switch (serve_path(server->token, path, &question)) {
    case SERVE_PAGE:
        *reply = (struct http_reply){200, "text/html; charset=utf-8", server->page, server->page_length, .owned = false};
        break;
    case SERVE_QUESTION: answer_question(server, question, reply); break;
    default: http_reply_status(reply, 404); break;
    }
    return true;
}

static int serve_failed(const char *what) {
    ui_say("vram: %s: %s", what, strerror(errno));
    return CLI_DEVICE;
}

static bool make_token(char token[SERVE_TOKEN_LENGTH + 1]) {
    unsigned char random[SERVE_TOKEN_LENGTH / 2];
    FILE *file = fopen("/dev/urandom", "rb");
    const bool read = file != NULL && fread(random, 1, sizeof random, file) == sizeof random;
    if (file != NULL) (void)fclose(file);
    for (size_t i = 0; i < sizeof random && read; i++) (void)snprintf(token + 2 * i, 3, "%02x", random[i]);
    return read;
}

static int put_server(vram_write write, void *user, void *context) {
    const struct server *server = context;
    char meta[128];
    const int length = snprintf(meta, sizeof meta, "<meta name=\"vram-server\" content=\"/%s/\">", server->token);
    return write(user, meta, (size_t)length) ? view_kinds_put(server->kinds, write, user) : CLI_BAD_INPUT;
}

static int make_page(struct server *server) {
    struct body body = {0};
    const int code = view_page_write(true, put_server, server, keep_answer, &body);
    server->page = body.bytes;
    server->page_length = body.length;
    return code;
}

static void handle_signals(void) {
    struct sigaction action = {.sa_handler = on_signal};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

static int run_server(struct server *server, const struct serve_options *options) {
    char url[96];
    if (!make_token(server->token)) return serve_failed("no random numbers available");
    int code = make_page(server);
    if (code == CLI_OK) code = http_server_create(options->port, &server->http);
    if (code != CLI_OK) return code;
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/%s/", (unsigned)http_server_port(server->http), server->token);
    handle_signals();
    printf("%s\n", url);
    if (!ui_finish()) return CLI_BAD_INPUT;
    if (options->open && !browser_open(url)) ui_say("vram: cannot open a browser; open the address above yourself");
    (void)http_server_run(server->http, answer_request, NULL, server, &ended);
    return CLI_OK;
}

int serve(struct vram_explorer *explorer, const struct serve_options *options) {
    struct server *server = calloc(1, sizeof *server);
    if (server == NULL) return serve_failed("not enough host memory");
    server->explorer = explorer;
    const int code = run_server(server, options);
    http_server_destroy(server->http);
    free(server->page);
    free(server);
    return code;
}
