// Tests requests to the page's server: which are answered, and which are refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "http.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

enum { PORT = 8123 };

static struct http_request parsed;
static const char *question;
static char text[4096];

// Returns the page server's status; 200 means an answer.
static int status_of(enum serve_target *target) {
    *target = SERVE_NOTHING;
    if (parsed.status != 200) return parsed.status;
    *target = serve_path(TOKEN, parsed.path, &question);
    return *target == SERVE_NOTHING ? 404 : 200;
}

static enum serve_target parse(const char *request) {
    const size_t length = strlen(request);
    enum serve_target target;
    assert_true(length < sizeof text);
    memcpy(text, request, length);
    assert_int_equal(length, http_length(text, length));
    for (size_t i = 0; i < length; i++) assert_int_equal(0, http_length(text, i));
    http_parse(PORT, text, length, &parsed);
    (void)status_of(&target);
    return target;
}

static void refused(int status, const char *request) {
    enum serve_target target = parse(request);
    assert_int_equal(SERVE_NOTHING, target);
    if (status_of(&target) != status) fail_msg("%d instead of %d for %s", parsed.status, status, request);
}

static void the_page_and_questions_are_answered(void **state) {
    (void)state;
    assert_int_equal(SERVE_PAGE, parse("GET /" TOKEN "/ HTTP/1.1\r\nHost: 127.0.0.1:8123\r\n\r\n"));
    assert_false(parsed.close);
    assert_int_equal(SERVE_QUESTION,
                     parse("GET /" TOKEN "/ask?curve?from=1&to=2 HTTP/1.1\r\nhost:localhost:8123\r\nConnection: close\r\n\r\n"));
    assert_string_equal("curve?from=1&to=2", question);
    assert_true(parsed.close);
    assert_int_equal(SERVE_PAGE, parse("GET /" TOKEN "/ HTTP/1.0\r\nHost: 127.0.0.1:8123\r\n\r\n"));
    assert_true(parsed.close);
    assert_int_equal(SERVE_PAGE, parse("GET /" TOKEN "/ HTTP/1.1\r\nHost: 127.0.0.1:8123\r\nSec-Fetch-Site: same-origin\r\n\r\n"));
}

static void foreign_names_and_pages_are_refused(void **state) {
    (void)state;
    refused(403, "GET /" TOKEN "/ HTTP/1.1\r\nHost: rebound.example:8123\r\n\r\n");
    refused(403, "GET /" TOKEN "/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    refused(400, "GET /" TOKEN "/ HTTP/1.1\r\nHost: 127.0.0.1:8123\r\nHost: rebound.example\r\n\r\n");
    refused(400, "GET /" TOKEN "/ HTTP/1.1\r\n\r\n");
    refused(403, "GET http://rebound.example:8123/" TOKEN "/ HTTP/1.1\r\nHost: 127.0.0.1:8123\r\n\r\n");
    refused(403, "GET /" TOKEN "/ HTTP/1.1\r\nHost: 127.0.0.1:8123\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Site: none\r\n\r\n");
    assert_int_equal(SERVE_PAGE, parse("GET http://127.0.0.1:8123/" TOKEN "/ HTTP/1.1\r\nHost: 127.0.0.1:8123\r\n\r\n"));
    refused(403, "GET /" TOKEN "/ask?list HTTP/1.1\r\nHost: 127.0.0.1:8123\r\nSec-Fetch-Site: cross-site\r\n\r\n");
}

static void without_the_token_nothing_is_found(void **state) {
    (void)state;
    refused(404, "GET / HTTP/1.1\r\nHost: 127.0.0.1:8123\r\n\r\n");
    refused(404, "GET /ask?list HTTP/1.1\r\nHost: 127.0.0.1:8123\r\n\r\n");
    refused(404, "GET /0123456789abcdef0123456789abcdee/ HTTP/1.1\r\nHost: 127.0.0.1:8123\r\n\r\n");
    refused(404, "GET /" TOKEN " HTTP/1.1\r\nHost: 127.0.0.1:8123\r\n\r\n");
    refused(404, "GET /" TOKEN "/../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1:8123\r\n\r\n");
}

static void only_reading_is_possible(void **state) {
    (void)state;
    refused(405, "POST /" TOKEN "/ HTTP/1.1\r\nHost: 127.0.0.1:8123\r\n\r\n");
    refused(405, "OPTIONS /" TOKEN "/ask?list HTTP/1.1\r\nHost: 127.0.0.1:8123\r\n\r\n");
    refused(400, "GET /" TOKEN "/ HTTP/1.1\r\nHost: 127.0.0.1:8123\r\nContent-Length: 5\r\n\r\n");
    refused(400, "GET /" TOKEN "/ HTTP/1.1\r\nHost: 127.0.0.1:8123\r\nTransfer-Encoding: chunked\r\n\r\n");
}

static void what_is_no_request_is_refused(void **state) {
    (void)state;
    refused(400, "\r\n\r\n");
    refused(400, "GET\r\n\r\n");
    refused(400, "GET /\r\nHost: 127.0.0.1:8123\r\n\r\n");
    refused(400, "GET / GOPHER/1\r\nHost: 127.0.0.1:8123\r\n\r\n");
    refused(400, "GET /" TOKEN "/ HTTP/1.1\r\nno colon\r\nHost: 127.0.0.1:8123\r\n\r\n");
    char zero[] = "GET /\0 HTTP/1.1\r\nHost: 127.0.0.1:8123\r\n\r\n";
    http_parse(PORT, zero, sizeof zero - 1, &parsed);
    assert_int_equal(400, parsed.status);
}

// Requests that a proxy or another server may read differently (RFC 9112) are refused.
static void what_two_readers_read_differently_is_refused(void **state) {
    (void)state;
#define OWN "Host: 127.0.0.1:8123\r\n"
    static const char *const lines[] = {
        "Host : rebound.example\r\n" OWN,
        "Host\t: rebound.example\r\n" OWN,
        " Host: rebound.example\r\n" OWN,
        OWN " rebound.example\r\n",
        OWN "\tfolded\r\n",
        OWN "Na me: x\r\n",
        OWN "N(me: x\r\n",
        OWN ": x\r\n",
        OWN "X: a\nHost: rebound.example\r\n",
        OWN "X: a\rb\r\n",
        OWN "X: a\x01\r\n",
        OWN "X: a\x7f\r\n",
        OWN "Transfer-Encoding: 0\r\n",
        OWN "Content-Length: 0\r\nContent-Length: 5\r\n",
        "Host:\r\n" OWN,
    };
    char request[512];
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        (void)snprintf(request, sizeof request, "GET /" TOKEN "/ HTTP/1.1\r\n%s\r\n", lines[i]);
        refused(400, request);
    }
    static const char *const first[] = {"GET /" TOKEN "/ HTTP/1.1x",         "GET /" TOKEN "/ HTTP/1.12", "GET /" TOKEN "/ HTTP/1.",
                                        "GET /" TOKEN "/ HTTP/2.0",          "GET  /" TOKEN "/ HTTP/1.1", "G T /" TOKEN "/ HTTP/1.1",
                                        "G\"T /" TOKEN "/ HTTP/1.1",         " GET /" TOKEN "/ HTTP/1.1", "GET /" TOKEN "/\tx HTTP/1.1",
                                        "GET http://127.0.0.1:8123 HTTP/1.1"};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        (void)snprintf(request, sizeof request, "%s\r\n" OWN "\r\n", first[i]);
        refused(400, request);
    }
    (void)parse("GET /" TOKEN "/ HTTP/1.1\r\n" OWN "Connection: keep-alive , CLOSE\r\n\r\n");
    assert_true(parsed.close);
    (void)parse("GET /" TOKEN "/ HTTP/1.1\r\n" OWN "Connection: closed, x-close\r\n\r\n");
    assert_false(parsed.close);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_and_questions_are_answered), cmocka_unit_test(foreign_names_and_pages_are_refused),
        cmocka_unit_test(without_the_token_nothing_is_found),  cmocka_unit_test(only_reading_is_possible),
        cmocka_unit_test(what_is_no_request_is_refused),       cmocka_unit_test(what_two_readers_read_differently_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
