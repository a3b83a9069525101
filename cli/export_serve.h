// export_serve.h: a text at http://127.0.0.1:PORT/metrics, for Prometheus to fetch.
#ifndef CLI_EXPORT_SERVE_H
#define CLI_EXPORT_SERVE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The text of this moment, borrowed until the next call. False when there is none any more, which ends the server.
typedef bool export_answer(void *context, const char **text, size_t *length);
// Takes in a piece of what there is to read before the first text; false when there is no more.
typedef bool export_read(void *context);
// Answers GET /metrics on the loopback interface, until *ended or the answers end. Prints the address on
// standard error. Until everything is read the answer is 503, for figures of the middle of a recording would be taken for today's. Port 0:
// any free one. An exit code.
int export_serve(uint16_t port, export_answer *answer, export_read *read, void *context, volatile sig_atomic_t *ended);

#endif
