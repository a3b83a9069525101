// Tests a server with background work, which answers in between.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "http_server.h"

enum { PIECES = 100, PIECE_MS = 20 };

static struct http_server *server;
static volatile sig_atomic_t ended;
static volatile int done; // pieces of work done
static char reply[4096];

static bool answer(void *context, const char *path, struct http_reply *made) {
    (void)context;
    http_reply_status(made, strcmp(path, "/end") == 0 ? 404 : 200);
    return strcmp(path, "/end") != 0;
}

static bool work(void *context) {
    (void)context;
    const struct timespec piece = {.tv_nsec = PIECE_MS * 1000000L};
    (void)nanosleep(&piece, NULL);
    return ++done < PIECES;
}

static void *run(void *unused) {
    (void)unused;
    (void)http_server_run(server, answer, work, NULL, &ended);
    return NULL;
}

static void ask(const char *path) {
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(http_server_port(server)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char request[128];
    const int length = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nConnection: close\r\n\r\n", path,
                                (unsigned)http_server_port(server));
    const int to = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(0, connect(to, (const struct sockaddr *)&address, sizeof address));
    assert_int_equal(length, send(to, request, (size_t)length, 0));
    size_t filled = 0;
    for (ssize_t got = 1; got > 0 && filled < sizeof reply - 1; filled += (size_t)got) {
        got = recv(to, reply + filled, sizeof reply - 1 - filled, 0);
        if (got < 0) got = 0;
    }
    reply[filled] = '\0';
    (void)close(to);
}

static void work_delays_no_answer(void **state) {
    (void)state;
    pthread_t thread;
    assert_int_equal(0, http_server_create(0, &server));
    assert_int_equal(0, pthread_create(&thread, NULL, run, NULL));
    ask("/");
    assert_true(done < PIECES / 2);
    assert_non_null(strstr(reply, "HTTP/1.1 200 OK"));
    while (done < PIECES) (void)usleep(10000);
    ask("/end");
    assert_int_equal(0, pthread_join(thread, NULL));
    assert_int_equal(PIECES, done);
    http_server_destroy(server);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(work_delays_no_answer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
