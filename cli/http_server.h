// http_server.h: a small HTTP server on the loopback interface, for `vram view --serve` and `vram export --listen`.
//
// One thread, many connections: who sends half a request keeps nobody waiting; where there are too many, the one that was silent longest
// gives way. Requests are judged by http.h before anybody sees them.
#ifndef CLI_HTTP_SERVER_H
#define CLI_HTTP_SERVER_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What is answered. The bytes are borrowed until the next answer, or given where `owned` is set.
struct http_reply {
    int status;
    const char *type; // of the content; NULL: plain text
    const char *bytes;
    size_t length;
    bool owned; // freed after it was sent
};

struct http_server;

// Makes a server that listens on 127.0.0.1. Port 0: any free one. Prints what is wrong and returns an exit code (args.h); *server is the
// caller's then, for http_server_destroy().
int http_server_create(uint16_t port, struct http_server **server);
// NULL is fine.
void http_server_destroy(struct http_server *server);
uint16_t http_server_port(const struct http_server *server);

// Answers the request for a path. False ends the server.
typedef bool http_answer(void *context, const char *path, struct http_reply *reply);
// A reply that is only its status.
void http_reply_status(struct http_reply *reply, int status);
// Called between requests: does some milliseconds of background work. Returns false when no work is left.
typedef bool http_idle(void *context);
// Serves until *ended is set or an answer ends it (false then). idle may be NULL.
bool http_server_run(struct http_server *server, http_answer *answer, http_idle *idle, void *context, const volatile sig_atomic_t *ended);

#endif
