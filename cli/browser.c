#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "browser.h"

extern char **environ;

bool browser_open(const char *target) {
#ifdef __APPLE__
    const char *opener = "open";
#else
    const char *opener = "xdg-open";
    const char *display = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
    if ((display == NULL || *display == '\0') && (wayland == NULL || *wayland == '\0') && getenv("BROWSER") == NULL) return false;
#endif
    char *const arguments[] = {(char *)(uintptr_t)opener, (char *)(uintptr_t)target, NULL};
    posix_spawn_file_actions_t quiet;
    pid_t pid;
    if (posix_spawn_file_actions_init(&quiet) != 0) return false;
    // What browsers say belongs to nobody.
    (void)posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
    (void)posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
    const int result = posix_spawnp(&pid, opener, &quiet, NULL, arguments, environ);
    (void)posix_spawn_file_actions_destroy(&quiet);
    return result == 0;
}
