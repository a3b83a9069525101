// http_server.h: a small HTTP server on the loopback interface, for `vram view --serve` and `vram export --listen`.
//
// One thread serves many connections: half a request does not block the others. If there are too many connections, the one that was silent
// longest is closed. http.h checks every request first.
#ifndef CLI_HTTP_SERVER_H
#define CLI_HTTP_SERVER_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// An answer. The bytes are borrowed until the next answer, or freed if `owned`.
struct http_reply {
    int status;
    const char *type; // content type; NULL: plain text
    const char *bytes;
    size_t length;
    bool owned; // free after sending
};

struct http_server;

// Creates a server that listens on 127.0.0.1; port 0 means any free port. Release *server with http_server_destroy(). Returns an exit code
// (args.h), after a message if it is not CLI_OK.
int http_server_create(uint16_t port, struct http_server **server);
// Accepts NULL.
void http_server_destroy(struct http_server *server);
uint16_t http_server_port(const struct http_server *server);

// Answers the request for a path. Returns false to end the server.
typedef bool http_answer(void *context, const char *path, struct http_reply *reply);
// Makes a reply that is only a status.
void http_reply_status(struct http_reply *reply, int status);
// Called between requests: does some milliseconds of background work. Returns false when no work is left.
typedef bool http_idle(void *context);
// Serves until *ended is set, or until an answer ends it and the function returns false. idle may be NULL.
bool http_server_run(struct http_server *server, http_answer *answer, http_idle *idle, void *context, const volatile sig_atomic_t *ended);

#endif
