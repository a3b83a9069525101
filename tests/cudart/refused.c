// Refuses each driver call that cudaGetDeviceProperties makes, once, in its own process. The call returns an error and leaves the struct
// unchanged, or fills it as without a refusal: a 0 instead of a value that the driver did not report would make programs divide by zero.
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int cudaGetDeviceProperties(void *prop, int device);

enum { MOST_BYTES = 1032, MOST_CALLS = 400, UNTOUCHED = 0x5a };
enum { EQUAL, REFUSED, WRONG };

static int ask(unsigned char *prop) {
    memset(prop, UNTOUCHED, MOST_BYTES);
    return cudaGetDeviceProperties(prop, 0);
}

static int is_untouched(const unsigned char *prop) {
    size_t at = 0;
    while (at < MOST_BYTES && prop[at] == UNTOUCHED) at++;
    return at == MOST_BYTES;
}

// Runs in a child: the environment makes the driver refuse a call.
static int ask_with_refusal(int nth, const unsigned char *wanted) {
    char text[32];
    unsigned char prop[MOST_BYTES];
    (void)snprintf(text, sizeof text, "%d:2", nth);
    if (setenv("VRAM_SIM_FAIL", text, 1) != 0 || freopen("/dev/null", "w", stderr) == NULL) return WRONG;
    if (ask(prop) != 0) return is_untouched(prop) ? REFUSED : WRONG;
    return memcmp(prop, wanted, sizeof prop) == 0 ? EQUAL : WRONG;
}

static int in_child(int nth, unsigned char *prop) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) _exit(ask_with_refusal(nth, prop));
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : WRONG;
}

// Gets the struct without a refusal through a pipe: this process never starts the driver.
static int ask_in_child(unsigned char *prop) {
    int ends[2], status = 0;
    if (pipe(ends) != 0) return WRONG;
    const pid_t child = fork();
    if (child == 0) _exit(ask(prop) == 0 && write(ends[1], prop, MOST_BYTES) == MOST_BYTES ? EQUAL : WRONG);
    const ssize_t got = child > 0 ? read(ends[0], prop, MOST_BYTES) : -1;
    return child > 0 && waitpid(child, &status, 0) == child && got == MOST_BYTES ? WEXITSTATUS(status) : WRONG;
}

int main(void) {
    unsigned char prop[MOST_BYTES];
    int refused = 0;
    if (ask_in_child(prop) != EQUAL) return 1;
    for (int nth = 1; nth <= MOST_CALLS; nth++) {
        const int answer = in_child(nth, prop);
        if (answer == WRONG) {
            (void)fprintf(stderr, "call %d refused: neither an error nor the properties\n", nth);
            return 1;
        }
        refused += answer == REFUSED;
    }
    return refused > 50 ? 0 : 1;
}
