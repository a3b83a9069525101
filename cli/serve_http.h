// serve_http.h: requests of the page's server, taken apart and judged. Pure text, no socket.
#ifndef CLI_SERVE_HTTP_H
#define CLI_SERVE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_REQUEST_BYTES = 16384, HTTP_TOKEN_LENGTH = 32 };

// What a request asks for.
enum http_target {
    HTTP_PAGE,     // "/TOKEN/"
    HTTP_QUESTION, // "/TOKEN/ask?QUESTION"
    HTTP_REFUSED   // see status
};

struct http_request {
    enum http_target target;
    int status;           // 200, or why it is refused: 400, 403, 404, 405
    const char *question; // within the request
    bool close;           // the connection ends after the answer
};

struct http_server {
    char token[HTTP_TOKEN_LENGTH + 1];
    uint16_t port;
};

// The length of the first request in the buffer, with its empty line; 0 while it is not complete.
size_t http_length(const char *bytes, size_t length);
// Takes a complete request apart, in place.
void http_parse(const struct http_server *server, char *text, size_t length, struct http_request *request);
// The reason of a status ("Not Found").
const char *http_reason(int status);

#endif
