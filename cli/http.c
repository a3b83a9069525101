#include "http.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

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
    case 503: return "Service Unavailable";
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
    const char *host; // the last one
    size_t host_count;
    bool foreign; // sent on behalf of a page of another origin
    bool close;
    bool broken;
};

// --- syntax (RFC 9112): refuses whatever two readers might read differently ------------------------------------------------------------

static bool is_token(const char *text) {
    static const char others[] = "!#$%&'*+-.^_`|~";
    size_t i = 0;
    while ((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'A' && text[i] <= 'Z') || (text[i] >= 'a' && text[i] <= 'z') ||
           (text[i] != '\0' && strchr(others, text[i]) != NULL))
        i++;
    return i != 0 && text[i] == '\0';
}

// Allows no control characters except tabs, and CR and LF only as a pair.
static bool is_clean(const char *text) {
    for (const char *c = text; *c != '\0'; c++) {
        const bool ends = c[0] == '\r' && c[1] == '\n';
        if (!ends && ((unsigned char)*c < 0x20 || *c == 0x7F) && *c != '\t') return false;
        c += ends;
    }
    return true;
}

static bool is_version(const char *text) { return strncmp(text, "HTTP/1.", 7) == 0 && text[7] >= '0' && text[7] <= '9' && text[8] == '\0'; }

// Returns whether a comma-separated list contains the word.
static bool has_word(const char *list, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = list; *at != '\0'; at += strcspn(at, ","), at += *at == ',') {
        at += strspn(at, " \t");
        const char *end = at + length;
        if (strncasecmp(at, word, length) == 0 && end[strspn(end, " \t")] != '\0' && end[strspn(end, " \t")] != ',') continue;
        if (strncasecmp(at, word, length) == 0) return true;
    }
    return false;
}

// --- headers ----------------------------------------------------------------------------------------------------------------------------

static void take_header(struct headers *headers, const char *name, const char *value) {
    if (strcasecmp(name, "host") == 0) {
        headers->host = value;
        headers->host_count++;
    } else if (strcasecmp(name, "sec-fetch-site") == 0) {
        headers->foreign = headers->foreign || (strcasecmp(value, "same-origin") != 0 && strcasecmp(value, "none") != 0);
    } else if (strcasecmp(name, "connection") == 0) {
        headers->close = headers->close || has_word(value, "close");
    } else if (strcasecmp(name, "content-length") == 0) {
        headers->broken = headers->broken || strcmp(value, "0") != 0; // a body would be read as the next request
    } else if (strcasecmp(name, "transfer-encoding") == 0) {
        headers->broken = true;
    }
}

// Refuses a name followed by a space, and a line that continues the previous one.
static void read_header(struct headers *headers, char *line) {
    char *value = strchr(line, ':');
    if (value != NULL) *value++ = '\0';
    if (value == NULL || !is_token(line)) {
        headers->broken = true;
        return;
    }
    value += strspn(value, " \t");
    for (size_t end = strlen(value); end != 0 && (value[end - 1] == ' ' || value[end - 1] == '\t'); end--) value[end - 1] = '\0';
    take_header(headers, line, value);
}

// Reads the lines after the first, each ended by CR LF.
static void read_headers(struct headers *headers, char *lines) {
    for (char *end = strstr(lines, "\r\n"); end != NULL && end != lines; end = strstr(lines, "\r\n")) {
        *end = '\0';
        read_header(headers, lines);
        lines = end + 2;
    }
}

// --- the request ------------------------------------------------------------------------------------------------------------------------

static void refuse_request(struct http_request *request, int status) {
    request->status = status;
    request->close = true;
}

// Splits "http://host/path", a form that every server must accept; its host then replaces the Host header. Leaves plain paths unchanged.
static void take_absolute(struct headers *headers, char **target) {
    static const char scheme[] = "http://";
    if (strncasecmp(*target, scheme, sizeof scheme - 1) != 0) return;
    char *host = *target + sizeof scheme - 1, *path = strchr(host, '/');
    if (path == NULL) {
        headers->broken = true;
        return;
    }
    // Move the host to the front, which makes room for its terminator.
    memmove(*target, host, (size_t)(path - host));
    (*target)[path - host] = '\0';
    headers->host = *target;
    *target = path;
}

static void judge_request(uint16_t port, const char *method, const struct headers *headers, struct http_request *request) {
    if (headers->broken || headers->host_count != 1)
        refuse_request(request, 400);
    else if (!is_own_host(port, headers->host) || headers->foreign)
        refuse_request(request, 403);
    else if (strcmp(method, "GET") != 0)
        refuse_request(request, 405);
}

void http_parse(uint16_t port, char *text, size_t length, struct http_request *request) {
    *request = (struct http_request){.status = 200};
    struct headers headers = {0};
    // A complete request ends with an empty line, whose first character is replaced by the terminator.
    text[length - 2] = '\0';
    const bool clean = strlen(text) == length - 2 && is_clean(text);
    char *line_end = clean ? strstr(text, "\r\n") : NULL, *target = clean ? strchr(text, ' ') : NULL;
    if (line_end == NULL || target == NULL || target > line_end) {
        refuse_request(request, 400);
        return;
    }
    *line_end = '\0';
    *target++ = '\0';
    char *version = strchr(target, ' ');
    read_headers(&headers, line_end + 2);
    if (version == NULL || !is_version(version + 1) || !is_token(text) || strchr(target, '\t') != NULL) {
        refuse_request(request, 400);
        return;
    }
    *version = '\0';
    take_absolute(&headers, &target);
    request->path = target;
    request->close = headers.close || strcmp(version + 1, "HTTP/1.1") != 0;
    judge_request(port, text, &headers, request);
}

// Compares in constant time, so that timing does not reveal a partly correct guess.
static bool same_token(const char *a, const char *b) {
    unsigned different = 0;
    for (size_t i = 0; i < SERVE_TOKEN_LENGTH; i++) different |= (unsigned)(unsigned char)a[i] ^ (unsigned char)b[i];
    return different == 0;
}

enum serve_target serve_path(const char *token, const char *path, const char **question) {
    const size_t length = strlen(path);
    if (length < SERVE_TOKEN_LENGTH + 2 || path[0] != '/' || path[SERVE_TOKEN_LENGTH + 1] != '/' || !same_token(path + 1, token))
        return SERVE_NOTHING;
    const char *rest = path + SERVE_TOKEN_LENGTH + 2;
    if (*rest == '\0') return SERVE_PAGE;
    if (strncmp(rest, "ask?", 4) != 0) return SERVE_NOTHING;
    *question = rest + 4;
    return SERVE_QUESTION;
}
