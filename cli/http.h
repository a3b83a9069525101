// http.h: requests to our servers, taken apart and judged, and what their paths ask for. Pure text, no socket.
#ifndef CLI_HTTP_H
#define CLI_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Requests to our servers, taken apart and judged. Pure text, no socket.

enum { HTTP_REQUEST_BYTES = 16384 };

struct http_request {
    int status;       // 200, or why it is refused: 400, 403, 405
    const char *path; // what is asked for, within the request; where the status is 200
    bool close;       // the connection ends after the answer
};

// The length of the first request in the buffer, with its empty line; 0 while it is not complete.
size_t http_length(const char *bytes, size_t length);
// Takes a complete request to the server of this port apart, in place. The Host header must name this machine and the port, so that a
// foreign page cannot reach the server under a name of its own; only GET is answered.
void http_parse(uint16_t port, char *text, size_t length, struct http_request *request);
// The reason of a status ("Not Found").
const char *http_reason(int status);

// What a path of the page's server asks for. Every one begins with the server's token.

enum { SERVE_TOKEN_LENGTH = 32 };

enum serve_target {
    SERVE_PAGE,     // "/TOKEN/"
    SERVE_QUESTION, // "/TOKEN/ask?QUESTION": *question is in the path
    SERVE_NOTHING
};

enum serve_target serve_path(const char *token, const char *path, const char **question);

#endif
