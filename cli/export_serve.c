#include "export_serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "args.h"
#include "ui.h"

// Whoever connects has this long for the request; one at a time is served.
enum { REQUEST_BYTES = 4096, PATIENCE_SECONDS = 2, WAITING = 8, LOOK_UP_MS = 250 };

static bool send_all(int socket, const char *bytes, size_t length) {
    while (length != 0) {
        const ssize_t sent = send(socket, bytes, length, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        bytes += sent;
        length -= (size_t)sent;
    }
    return true;
}

static void reply(int socket, const char *status, const char *type, const char *text, size_t length) {
    char head[256];
    const int bytes = snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
                               status, type, length);
    if (send_all(socket, head, (size_t)bytes)) (void)send_all(socket, text, length);
}

// Up to the empty line that ends the head. False when it does not come in time, or is too long.
static bool read_head(int socket, char *head) {
    size_t length = 0;
    while (length < REQUEST_BYTES - 1) {
        const ssize_t got = recv(socket, head + length, REQUEST_BYTES - 1 - length, 0);
        if (got <= 0) return false;
        length += (size_t)got;
        head[length] = '\0';
        if (strstr(head, "\r\n\r\n") != NULL || strstr(head, "\n\n") != NULL) return true;
    }
    return false;
}

// False ends the server.
static bool serve_one(int socket, export_answer *answer, void *context) {
    static const char refusal[] = "GET /metrics is answered\n";
    const struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
    char head[REQUEST_BYTES];
    const char *text;
    size_t length;
    (void)setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    (void)setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (!read_head(socket, head)) return true;
    if (strncmp(head, "GET /metrics ", 13) != 0) {
        reply(socket, strncmp(head, "GET ", 4) == 0 ? "404 Not Found" : "405 Method Not Allowed", "text/plain", refusal,
              sizeof refusal - 1);
        return true;
    }
    if (!answer(context, &text, &length)) return false;
    reply(socket, "200 OK", "text/plain; version=0.0.4; charset=utf-8", text, length);
    return true;
}

int export_serve(uint16_t port, export_answer *answer, void *context, volatile sig_atomic_t *ended) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const int yes = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    int code = CLI_OK;
    if (listener >= 0) (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, WAITING) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0) {
        ui_say("vram: port %u cannot be used: %s", (unsigned)port, strerror(errno));
        code = CLI_DEVICE;
    } else {
        ui_say("vram: http://127.0.0.1:%u/metrics", (unsigned)ntohs(address.sin_port));
    }
    while (code == CLI_OK && !*ended) {
        struct pollfd wait = {.fd = listener, .events = POLLIN};
        if (poll(&wait, 1, LOOK_UP_MS) <= 0) continue;
        const int socket = accept(listener, NULL, NULL);
        if (socket < 0) continue;
        if (!serve_one(socket, answer, context)) code = CLI_BAD_INPUT;
        (void)close(socket);
    }
    if (listener >= 0) (void)close(listener);
    return code;
}
