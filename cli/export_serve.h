// export_serve.h: a text at http://127.0.0.1:PORT/metrics, for Prometheus to fetch.
#ifndef CLI_EXPORT_SERVE_H
#define CLI_EXPORT_SERVE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The text of this moment, borrowed until the next call. False when there is none any more, which ends the server.
typedef bool export_answer(void *context, const char **text, size_t *length);
// Answers GET /metrics on the loopback interface, until *ended or the answers end. Prints the address on
// standard error. Port 0: any free one. An exit code.
int export_serve(uint16_t port, export_answer *answer, void *context, volatile sig_atomic_t *ended);

#endif
