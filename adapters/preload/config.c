#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vram/history.h"

static struct pl_config config;
static pthread_once_t config_once = PTHREAD_ONCE_INIT;
_Atomic(const struct pl_config *) pl_config_known;

static bool copy_variable(const char *name, char *text) {
    const char *value = getenv(name);
    if (value == NULL || value[0] == '\0' || strlen(value) >= PL_PATH_MAX) return false;
    memcpy(text, value, strlen(value) + 1);
    return true;
}

static enum vram_stack_kind stack_kind(void) {
    static const char *const names[] = {[VRAM_STACK_NONE] = "none", [VRAM_STACK_PYTHON] = "python", [VRAM_STACK_C] = "c"};
    const char *value = getenv("VRAM_RUN_STACKS");
    for (size_t i = 0; value != NULL && i < sizeof names / sizeof names[0]; i++)
        if (strcmp(value, names[i]) == 0) return (enum vram_stack_kind)i;
    return VRAM_STACK_ALL;
}

static bool has_word(const char *name, const char *wanted) {
    const char *value = getenv(name);
    return value != NULL && strcmp(value, wanted) == 0;
}

static void read_config(void) {
    config.records = copy_variable("VRAM_RUN_OUT", config.pattern);
    (void)copy_variable("VRAM_RUN_LIST", config.list);
    const char *limit = getenv("VRAM_RUN_LIMIT");
    config.limit_bytes = limit == NULL ? 0 : strtoull(limit, NULL, 10);
    config.stacks = stack_kind();
    config.dumps_on_oom = has_word("VRAM_RUN_ON_OOM", "dump");
    config.caches = has_word("VRAM_RUN_CACHE", "1");
    config.watches = config.records || config.limit_bytes != 0 || config.caches;
    config.takes_stacks = config.records && config.stacks != VRAM_STACK_NONE;
}

const struct pl_config *pl_config_first(void) {
    (void)pthread_once(&config_once, read_config);
    atomic_store_explicit(&pl_config_known, &config, memory_order_release);
    return &config;
}

static bool insert_number(unsigned number, char *path, size_t capacity) {
    char text[16];
    (void)snprintf(text, sizeof text, ".%u", number);
    char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    char *at = dot == NULL || dot == path || (slash != NULL && dot <= slash + 1) ? path + strlen(path) : dot;
    if (strlen(path) + strlen(text) >= capacity) return false;
    memmove(at + strlen(text), at, strlen(at) + 1);
    memcpy(at, text, strlen(text));
    return true;
}

bool pl_config_path(const char *pattern, unsigned number, char *path, size_t capacity) {
    size_t length = 0;
    if (vram_expand_path(pattern, path, capacity, &length) != VRAM_OK || length >= capacity) return false;
    return number == 0 || insert_number(number, path, capacity);
}
