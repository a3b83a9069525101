#define _GNU_SOURCE
#include "fit_ready.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

// vLLM and uvicorn, SGLang, llama.cpp, TGI, LMDeploy, Ollama, Triton's second, Gradio
static const uint16_t usual_ports[] = {8000, 30000, 8080, 3000, 23333, 11434, 8001, 7860};

#define LISTENING 0x0A // of /proc/net/tcp: TCP_LISTEN
#define EVERY     5    // ticks
#define SEND_MS   400
#define PATIENCE  300 // ticks until it asks again: SGLang generates a token before it answers, which takes a second or more

static bool listens_in(const char *path, uint16_t port) {
    char line[512];
    unsigned local, state;
    bool found = false;
    FILE *file = fopen(path, "r");
    // " sl: ADDRESS:PORT ADDRESS:PORT STATE ...", hexadecimal
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL)
        found = sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &local, &state) == 2 && local == port && state == LISTENING;
    if (file != NULL) (void)fclose(file);
    return found;
}

static bool port_listens(uint16_t port) { return listens_in("/proc/net/tcp", port) || listens_in("/proc/net/tcp6", port); }

static void add_port(struct fit_ready *ready, unsigned long port) {
    if (port == 0 || port > UINT16_MAX || ready->port_count == FIT_READY_PORTS) return;
    for (size_t i = 0; i < ready->port_count; i++)
        if (ready->ports[i].number == port) return;
    ready->ports[ready->port_count++] = (struct fit_asked_port){.number = (uint16_t)port};
}

static void add_unless_taken(struct fit_ready *ready, unsigned long port) {
    if (port <= UINT16_MAX && !port_listens((uint16_t)port)) add_port(ready, port);
}

void fit_ready_begin(struct fit_ready *ready, char **program) {
    *ready = (struct fit_ready){.port_count = 0};
    for (char **at = program; *at != NULL; at++) {
        if (strncmp(*at, "--port=", 7) == 0) add_unless_taken(ready, strtoul(*at + 7, NULL, 10));
        if (strcmp(*at, "--port") == 0 && at[1] != NULL) add_unless_taken(ready, strtoul(at[1], NULL, 10));
    }
    const bool has_none = ready->port_count == 0;
    for (size_t i = 0; has_none && i < sizeof usual_ports / sizeof *usual_ports; i++)
        if (!port_listens(usual_ports[i])) add_port(ready, usual_ports[i]);
}

void fit_ready_line(struct fit_ready *ready, const char *line) {
    static const char *const hosts[] = {"http://0.0.0.0:", "http://127.0.0.1:", "http://localhost:", "http://[::]:"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        const char *found = strstr(line, hosts[i]);
        if (found != NULL) add_port(ready, strtoul(found + strlen(hosts[i]), NULL, 10));
    }
}

static int connect_to(uint16_t port) {
    const struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    const struct timeval patience = {.tv_usec = SEND_MS * 1000};
    const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (file < 0) return -1;
    (void)setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(file, (const struct sockaddr *)&address, sizeof address) == 0) return file;
    (void)close(file);
    return -1;
}

static void stop_asking(struct fit_asked_port *port) {
    if (port->socket > 0) (void)close(port->socket);
    port->socket = 0;
}

static void ask(struct fit_asked_port *port) {
    static const char request[] = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    port->socket = connect_to(port->number);
    port->ticks = 0;
    if (port->socket > 0 && send(port->socket, request, strlen(request), MSG_NOSIGNAL) < 0) stop_asking(port);
}

// Asks a port, or looks for its answer to the last question. Returns whether it answered with anything but 503 ("not yet").
static bool port_answers(struct fit_asked_port *port) {
    char answer[64] = "";
    unsigned code = 0;
    if (port->socket <= 0) ask(port);
    if (port->socket <= 0) return false;
    const ssize_t got = recv(port->socket, answer, sizeof answer - 1, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) && ++port->ticks < PATIENCE) return false;
    stop_asking(port);
    if (got > 0) answer[got] = '\0';
    return got > 0 && sscanf(answer, "HTTP/%*s %u", &code) == 1 && code != 503;
}

bool fit_ready_is(struct fit_ready *ready) {
    const bool asks = ready->ticks++ % EVERY == 0;
    for (size_t i = 0; i < ready->port_count && !ready->is_server; i++)
        ready->is_server = (asks || ready->ports[i].socket > 0) && port_listens(ready->ports[i].number) && port_answers(&ready->ports[i]);
    for (size_t i = 0; i < ready->port_count && ready->is_server; i++) stop_asking(&ready->ports[i]);
    return ready->is_server;
}
