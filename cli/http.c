#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "http.h"

size_t http_length(const char *bytes, size_t length) {
    for (size_t i = 0; i + 4 <= length; i++) {
        if (memcmp(bytes + i, "\r\n\r\n", 4) == 0) return i + 4;
    }
    return 0;
}

const char *http_reason(int status) {
    switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 431: return "Request Header Fields Too Large";
    default: return "Internal Server Error";
    }
}

static bool is_own_host(uint16_t port, const char *host) {
    static const char *const names[] = {"127.0.0.1", "localhost"};
    char own[32];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)snprintf(own, sizeof own, "%s:%u", names[i], (unsigned)port);
        if (strcasecmp(own, host) == 0) return true;
    }
    return false;
}

struct headers {
    const char *host; // NULL: none, or more than one
    size_t host_count;
    bool foreign; // sent on behalf of a page from elsewhere
    bool close;
    bool broken;
};

static void read_header(struct headers *headers, char *line) {
    char *value = strchr(line, ':');
    if (value == NULL || value == line) {
        headers->broken = true;
        return;
    }
    *value++ = '\0';
    value += strspn(value, " \t");
    for (size_t end = strlen(value); end != 0 && (value[end - 1] == ' ' || value[end - 1] == '\t'); end--) value[end - 1] = '\0';
    if (strcasecmp(line, "host") == 0) {
        headers->host = value;
        headers->host_count++;
    } else if (strcasecmp(line, "sec-fetch-site") == 0) {
        headers->foreign = strcasecmp(value, "cross-site") == 0 || strcasecmp(value, "same-site") == 0;
    } else if (strcasecmp(line, "connection") == 0) {
        headers->close = strcasecmp(value, "close") == 0;
    } else if (strcasecmp(line, "content-length") == 0 || strcasecmp(line, "transfer-encoding") == 0) {
        headers->broken = headers->broken || strcmp(value, "0") != 0; // a body would be read as the next request
    }
}

// The lines after the first one, each ended by CR LF.
static void read_headers(struct headers *headers, char *lines) {
    for (char *end = strstr(lines, "\r\n"); end != NULL && end != lines; end = strstr(lines, "\r\n")) {
        *end = '\0';
        read_header(headers, lines);
        lines = end + 2;
    }
}

static void refuse(struct http_request *request, int status) {
    request->status = status;
    request->close = true;
}

void http_parse(uint16_t port, char *text, size_t length, struct http_request *request) {
    *request = (struct http_request){.status = 200};
    struct headers headers = {0};
    // Complete: it ends with an empty line, whose first character makes room for the end of a C string.
    text[length - 2] = '\0';
    char *line_end = strlen(text) == length - 2 ? strstr(text, "\r\n") : NULL, *path = strchr(text, ' ');
    if (line_end == NULL || path == NULL || path > line_end) {
        refuse(request, 400);
        return;
    }
    *line_end = '\0';
    *path++ = '\0';
    char *version = strchr(path, ' ');
    read_headers(&headers, line_end + 2);
    if (version == NULL || strncmp(version + 1, "HTTP/1.", 7) != 0 || headers.broken) {
        refuse(request, 400);
        return;
    }
    *version = '\0';
    request->path = path;
    request->close = headers.close || strcmp(version + 1, "HTTP/1.1") != 0;
    if (headers.host_count != 1 || !is_own_host(port, headers.host) || headers.foreign)
        refuse(request, 403);
    else if (strcmp(text, "GET") != 0)
        refuse(request, 405);
}
