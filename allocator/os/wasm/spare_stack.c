// spare_stack.c: a page has one stack, and no signals.
#include "base/base.h"
#include "os/os.h"

void vr_os_on_spare_stack(void (*function)(void *argument), void *argument) {
    assert(function != NULL);
    function(argument);
}
