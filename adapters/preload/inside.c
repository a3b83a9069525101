// inside.c: the state of a thread within a watched call.
#include <errno.h>
#include <pthread.h>

#include "preload.h"

_Thread_local int pl_depth;
_Thread_local struct pl_caller pl_caller;

void pl_end(const struct pl_call *call) {
    (void)pthread_setcancelstate(call->cancel_state, NULL);
    pl_depth--;
    errno = call->saved_errno;
}
