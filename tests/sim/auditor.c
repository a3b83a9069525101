// An LD_AUDIT library that the program itself installs.
#define _GNU_SOURCE
#include <link.h>
#include <unistd.h>

__attribute__((visibility("default"))) unsigned la_version(unsigned version);

unsigned la_version(unsigned version) {
    const ssize_t written = write(STDERR_FILENO, "audited\n", 8);
    (void)written;
    return version < LAV_CURRENT ? version : LAV_CURRENT;
}
