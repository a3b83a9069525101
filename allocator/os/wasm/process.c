// process.c: there is one process, and no descriptor.
#include "os/os.h"

uint64_t vr_os_process_id(void) { return 1; }
void vr_os_close_descriptor(int descriptor) { (void)descriptor; }
