// pthread.h: runs everything on WebAssembly's one thread. pthread_create() does the thread's work before it returns.
#ifndef CLI_WASI_PTHREAD_H
#define CLI_WASI_PTHREAD_H

#define __NEED_pthread_t
#include <bits/alltypes.h>
#include <stddef.h>

static inline int pthread_create(pthread_t *thread, const void *attributes, void *(*work)(void *), void *argument) {
    (void)attributes;
    *thread = NULL;
    (void)work(argument);
    return 0;
}
static inline int pthread_join(pthread_t thread, void **result) {
    (void)thread, (void)result;
    return 0;
}

#endif
