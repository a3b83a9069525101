#include "http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "args.h"
#include "http.h"
#include "ui.h"

// A signal may arrive between the check of *ended and poll(), so *ended is checked again after LOOK_UP_MS.
enum { MOST_CONNECTIONS = 32, SEND_SECONDS = 20, LOOK_UP_MS = 250 };

struct connection {
    int socket;
    int64_t used; // the server's count of requests when bytes last arrived
    size_t filled;
    char bytes[HTTP_REQUEST_BYTES];
};

struct http_server {
    int socket;
    uint16_t port;
    http_answer *answer;
    void *context;
    const volatile sig_atomic_t *ended;
    bool is_over; // an answer ended the server
    struct connection *connections[MOST_CONNECTIONS];
    size_t count;
    int64_t clock;
};

static bool send_all(const struct http_server *server, int socket, const char *bytes, size_t length) {
    while (length != 0) {
        const ssize_t sent = send(socket, bytes, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR && !*server->ended) continue;
        if (sent <= 0) return false;
        bytes += sent;
        length -= (size_t)sent;
    }
    return true;
}

// Returns false if the connection is finished.
static bool send_reply(const struct http_server *server, int socket, const struct http_reply *reply, bool close) {
    char head[640];
    const int size = snprintf(head, sizeof head,
                              "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n"
                              "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nX-Frame-Options: DENY\r\n"
                              "Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\n%s%s\r\n",
                              reply->status, http_reason(reply->status), reply->type != NULL ? reply->type : "text/plain; charset=utf-8",
                              reply->length, reply->status == 405 ? "Allow: GET\r\n" : "", close ? "Connection: close\r\n" : "");
    return send_all(server, socket, head, (size_t)size) && send_all(server, socket, reply->bytes, reply->length) && !close;
}

void http_reply_status(struct http_reply *reply, int status) {
    const char *reason = http_reason(status);
    *reply = (struct http_reply){.status = status, .bytes = reason, .length = strlen(reason)};
}

static bool answer_one(struct http_server *server, int socket, const struct http_request *request) {
    struct http_reply reply;
    http_reply_status(&reply, request->status);
    if (request->status == 200 && !server->answer(server->context, request->path, &reply)) {
        server->is_over = true;
        return false;
    }
    const bool goes_on = send_reply(server, socket, &reply, request->close);
    if (reply.owned) free((void *)(uintptr_t)reply.bytes);
    return goes_on;
}

// Answers all complete requests. Returns false if the connection is finished.
static bool serve_requests(struct http_server *server, struct connection *connection) {
    for (size_t length; (length = http_length(connection->bytes, connection->filled)) != 0;) {
        struct http_request request;
        http_parse(server->port, connection->bytes, length, &request);
        if (!answer_one(server, connection->socket, &request)) return false;
        connection->filled -= length;
        memmove(connection->bytes, connection->bytes + length, connection->filled);
    }
    if (connection->filled < sizeof connection->bytes) return true;
    struct http_reply reply;
    http_reply_status(&reply, 431);
    (void)send_reply(server, connection->socket, &reply, true);
    return false;
}

static bool receive_request(struct http_server *server, struct connection *connection) {
    const ssize_t got = recv(connection->socket, connection->bytes + connection->filled, sizeof connection->bytes - connection->filled, 0);
    if (got < 0 && errno == EINTR) return true;
    if (got <= 0) return false;
    connection->filled += (size_t)got;
    connection->used = ++server->clock;
    return serve_requests(server, connection);
}

static void drop_connection(struct http_server *server, size_t index) {
    (void)close(server->connections[index]->socket);
    free(server->connections[index]);
    server->connections[index] = server->connections[--server->count];
}

// Accepts a connection. If there are too many, closes the one that was silent longest.
static void accept_one(struct http_server *server) {
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
        drop_connection(server, oldest);
    }
    connection->socket = socket;
    connection->used = ++server->clock;
    server->connections[server->count++] = connection;
}

bool http_server_run(struct http_server *server, http_answer *answer, http_idle *idle, void *context, const volatile sig_atomic_t *ended) {
    bool is_busy = idle != NULL;
    struct pollfd waits[MOST_CONNECTIONS + 1];
    server->answer = answer;
    server->context = context;
    server->ended = ended;
    while (!*ended && !server->is_over) {
        waits[0] = (struct pollfd){.fd = server->socket, .events = POLLIN};
        for (size_t i = 0; i < server->count; i++) waits[i + 1] = (struct pollfd){.fd = server->connections[i]->socket, .events = POLLIN};
        const int ready = poll(waits, server->count + 1, is_busy ? 0 : LOOK_UP_MS);
        if (is_busy) is_busy = idle(context);
        if (ready <= 0) continue;
        // Goes backwards, because drop_connection() moves the last connection into the gap.
        for (size_t i = server->count; i-- > 0;) {
            if (waits[i + 1].revents != 0 && !receive_request(server, server->connections[i])) drop_connection(server, i);
        }
        if (waits[0].revents != 0) accept_one(server);
    }
    return !server->is_over;
}

static int server_failed(const char *what) {
    ui_say("vram: %s: %s", what, strerror(errno));
    return CLI_DEVICE;
}

static int listen_on(struct http_server *server, uint16_t port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const int yes = 1;
    server->socket = socket(AF_INET, SOCK_STREAM, 0);
    if (server->socket < 0) return server_failed("no socket");
    (void)setsockopt(server->socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(server->socket, (struct sockaddr *)&address, sizeof address) != 0 || listen(server->socket, MOST_CONNECTIONS) != 0 ||
        getsockname(server->socket, (struct sockaddr *)&address, &length) != 0) {
        ui_say("vram: cannot use port %u: %s", (unsigned)port, strerror(errno));
        return CLI_DEVICE;
    }
    server->port = ntohs(address.sin_port);
    return CLI_OK;
}

int http_server_create(uint16_t port, struct http_server **server) {
    struct http_server *made = calloc(1, sizeof *made);
    if (made == NULL) return server_failed("not enough host memory");
    made->socket = -1;
    const int code = listen_on(made, port);
    if (code == CLI_OK)
        *server = made;
    else
        http_server_destroy(made);
    return code;
}

void http_server_destroy(struct http_server *server) {
    if (server == NULL) return;
    while (server->count != 0) drop_connection(server, server->count - 1);
    if (server->socket >= 0) (void)close(server->socket);
    free(server);
}

uint16_t http_server_port(const struct http_server *server) { return server->port; }
