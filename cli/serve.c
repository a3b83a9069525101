#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "browser.h"
#include "serve.h"
#include "serve_http.h"
#include "ui.h"
#include "view_page.h"

enum { MOST_CONNECTIONS = 32, SEND_SECONDS = 20 };

struct connection {
    int socket;
    int64_t used; // when something came last, by a count of requests
    size_t filled;
    char bytes[HTTP_REQUEST_BYTES];
};

struct server {
    struct http_server http;
    struct vram_explorer *explorer;
    int socket;
    char *page; // the whole HTML
    size_t page_length;
    struct connection *connections[MOST_CONNECTIONS];
    size_t count;
    int64_t clock;
};

static volatile sig_atomic_t ended;

static void on_signal(int number) {
    (void)number;
    ended = 1;
}

// Text that grows; for the page and for one answer.
struct body {
    char *bytes;
    size_t length, capacity;
};

static bool keep(void *user, const char *bytes, size_t length) {
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

static bool send_all(int socket, const char *bytes, size_t length) {
    while (length != 0) {
        const ssize_t sent = send(socket, bytes, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR && !ended) continue;
        if (sent <= 0) return false;
        bytes += sent;
        length -= (size_t)sent;
    }
    return true;
}

static bool respond(int socket, int status, const char *type, const char *bytes, size_t length, bool close) {
    char head[640];
    const int size =
        snprintf(head, sizeof head,
                 "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n"
                 "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nX-Frame-Options: DENY\r\n"
                 "Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\n%s%s\r\n",
                 status, http_reason(status), type, length, status == 405 ? "Allow: GET\r\n" : "", close ? "Connection: close\r\n" : "");
    return send_all(socket, head, (size_t)size) && send_all(socket, bytes, length) && !close;
}

static bool respond_text(int socket, int status, const char *text, bool close) {
    return respond(socket, status, "text/plain; charset=utf-8", text, strlen(text), close);
}

static bool answer_question(struct server *server, int socket, const struct http_request *request) {
    struct body body = {0};
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    const enum vram_status status = vram_explorer_ask(server->explorer, request->question, keep, &body, &error);
    const bool goes_on = status == VRAM_OK
                             ? respond(socket, 200, "application/octet-stream", body.bytes, body.length, request->close)
                             : respond_text(socket, status == VRAM_INVALID_ARGUMENT ? 400 : 500, error.message, request->close);
    free(body.bytes);
    return goes_on;
}

static bool answer(struct server *server, int socket, const struct http_request *request) {
    switch (request->target) {
    case HTTP_PAGE: return respond(socket, 200, "text/html; charset=utf-8", server->page, server->page_length, request->close);
    case HTTP_QUESTION: return answer_question(server, socket, request);
    default: return respond_text(socket, request->status, http_reason(request->status), request->close);
    }
}

// Answers what has come in completely. False when the connection is done.
static bool serve_requests(struct server *server, struct connection *connection) {
    for (size_t length; (length = http_length(connection->bytes, connection->filled)) != 0;) {
        struct http_request request;
        http_parse(&server->http, connection->bytes, length, &request);
        if (!answer(server, connection->socket, &request)) return false;
        connection->filled -= length;
        memmove(connection->bytes, connection->bytes + length, connection->filled);
    }
    if (connection->filled < sizeof connection->bytes) return true;
    (void)respond_text(connection->socket, 431, "the question is too long", true);
    return false;
}

static bool receive(struct server *server, struct connection *connection) {
    const ssize_t got = recv(connection->socket, connection->bytes + connection->filled, sizeof connection->bytes - connection->filled, 0);
    if (got < 0 && errno == EINTR) return true;
    if (got <= 0) return false;
    connection->filled += (size_t)got;
    connection->used = ++server->clock;
    return serve_requests(server, connection);
}

static void drop(struct server *server, size_t index) {
    (void)close(server->connections[index]->socket);
    free(server->connections[index]);
    server->connections[index] = server->connections[--server->count];
}

// A new connection; where there are too many, the one that was silent longest gives way.
static void accept_one(struct server *server) {
    const int socket = accept(server->socket, NULL, NULL);
    struct connection *connection = socket < 0 ? NULL : calloc(1, sizeof *connection);
    if (connection == NULL) {
        if (socket >= 0) (void)close(socket);
        return;
    }
    const struct timeval limit = {.tv_sec = SEND_SECONDS};
    (void)setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (server->count == MOST_CONNECTIONS) {
        size_t oldest = 0;
        for (size_t i = 1; i < server->count; i++) {
            if (server->connections[i]->used < server->connections[oldest]->used) oldest = i;
        }
        drop(server, oldest);
    }
    connection->socket = socket;
    connection->used = ++server->clock;
    server->connections[server->count++] = connection;
}

static void loop(struct server *server) {
    struct pollfd waits[MOST_CONNECTIONS + 1];
    while (!ended) {
        waits[0] = (struct pollfd){.fd = server->socket, .events = POLLIN};
        for (size_t i = 0; i < server->count; i++) waits[i + 1] = (struct pollfd){.fd = server->connections[i]->socket, .events = POLLIN};
        if (poll(waits, server->count + 1, -1) < 0) continue;
        // From the end, since a dropped one is replaced by the last.
        for (size_t i = server->count; i-- > 0;) {
            if (waits[i + 1].revents != 0 && !receive(server, server->connections[i])) drop(server, i);
        }
        if (waits[0].revents != 0) accept_one(server);
    }
}

static int failed(const char *what) {
    ui_say("vram: %s: %s", what, strerror(errno));
    return CLI_DEVICE;
}

static bool make_token(char token[HTTP_TOKEN_LENGTH + 1]) {
    unsigned char random[HTTP_TOKEN_LENGTH / 2];
    FILE *file = fopen("/dev/urandom", "rb");
    const bool read = file != NULL && fread(random, 1, sizeof random, file) == sizeof random;
    if (file != NULL) (void)fclose(file);
    for (size_t i = 0; i < sizeof random && read; i++) (void)snprintf(token + 2 * i, 3, "%02x", random[i]);
    return read;
}

static int listen_on(struct server *server, uint16_t port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const int yes = 1;
    server->socket = socket(AF_INET, SOCK_STREAM, 0);
    if (server->socket < 0) return failed("no socket");
    (void)setsockopt(server->socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(server->socket, (struct sockaddr *)&address, sizeof address) != 0 || listen(server->socket, MOST_CONNECTIONS) != 0 ||
        getsockname(server->socket, (struct sockaddr *)&address, &length) != 0)
        return failed("the port cannot be used");
    server->http.port = ntohs(address.sin_port);
    return CLI_OK;
}

static int put_server(vram_write write, void *user, void *context) {
    const struct server *server = context;
    char meta[128];
    const int length = snprintf(meta, sizeof meta, "<meta name=\"vram-server\" content=\"/%s/\">", server->http.token);
    return write(user, meta, (size_t)length) ? CLI_OK : CLI_BAD_INPUT;
}

static int make_page(struct server *server) {
    struct body body = {0};
    const int code = view_page_write(true, put_server, server, keep, &body);
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

static int run(struct server *server, const struct serve_options *options) {
    char url[96];
    if (!make_token(server->http.token)) return failed("no random numbers");
    int code = make_page(server);
    if (code == CLI_OK) code = listen_on(server, options->port);
    if (code != CLI_OK) return code;
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/%s/", server->http.port, server->http.token);
    handle_signals();
    printf("%s\n", url);
    if (!ui_finish()) return CLI_BAD_INPUT;
    if (options->open && !browser_open(url)) ui_say("vram: no browser could be opened: open the address above");
    loop(server);
    return CLI_OK;
}

int serve(struct vram_explorer *explorer, const struct serve_options *options) {
    struct server *server = calloc(1, sizeof *server);
    if (server == NULL) return failed("no host memory");
    server->explorer = explorer;
    server->socket = -1;
    const int code = run(server, options);
    while (server->count != 0) drop(server, server->count - 1);
    if (server->socket >= 0) (void)close(server->socket);
    free(server->page);
    free(server);
    return code;
}
