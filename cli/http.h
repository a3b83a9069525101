// http.h: parses and checks requests to our servers, and finds what their paths ask for. Uses only text, no sockets.
#ifndef CLI_HTTP_H
#define CLI_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_REQUEST_BYTES = 16384 };

struct http_request {
    int status;       // 200, or why the request is refused: 400, 403, 405
    const char *path; // the requested path, within the request; only if the status is 200
    bool close;       // close the connection after the answer
};

// Returns the length of the first request in the buffer, including its empty line; 0 while it is incomplete.
size_t http_length(const char *bytes, size_t length);
// Parses a complete request to the server on this port, in place. Requires a Host header with this machine and port, so that a foreign page
// cannot reach the server under its own name. Accepts only GET.
void http_parse(uint16_t port, char *text, size_t length, struct http_request *request);
// Returns the reason phrase of a status ("Not Found").
const char *http_reason(int status);

// The targets of a path on the page's server. Every path begins with the server's token.

enum { SERVE_TOKEN_LENGTH = 32 };

enum serve_target {
    SERVE_PAGE,     // "/TOKEN/"
    SERVE_QUESTION, // "/TOKEN/ask?QUESTION": *question points into the path
    SERVE_NOTHING
};

enum serve_target serve_path(const char *token, const char *path, const char **question);

#endif
