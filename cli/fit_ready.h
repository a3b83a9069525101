// fit_ready.h: finds out whether a program is a server that takes requests.
//
// vLLM, SGLang, TGI and llama.cpp have the same health endpoint: "/health" returns 200 when the server takes requests. An HTTP server
// without it returns 404 and takes requests. Only ports known to be a server's get a request: a program's other sockets (its ranks' store)
// use other protocols.
#ifndef CLI_FIT_READY_H
#define CLI_FIT_READY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIT_READY_PORTS 16

struct fit_asked_port {
    uint16_t number;
    int socket;     // waits for an answer; 0: none
    unsigned ticks; // since it was asked
};

struct fit_ready {
    struct fit_asked_port ports[FIT_READY_PORTS]; // candidates; ports in use before the start are left out
    size_t port_count;
    unsigned ticks;
    bool is_server; // one of the ports answers
};

// Collects the ports named by the program's options; without any, the servers' default ports.
void fit_ready_begin(struct fit_ready *ready, char **program);
// Adds a port that a line of output names: "http://HOST:PORT" of this machine.
void fit_ready_line(struct fit_ready *ready, const char *line);
// Returns whether a port answers "GET /health" with anything but 503. Called about ten times a second.
bool fit_ready_is(struct fit_ready *ready);

#endif
