// Version that a stand-in reports, that of NVIDIA's library with the same soname. Compiled once per soname.
#include "common.h"

const int standin_library_version = STANDIN_LIBRARY_VERSION;
const char standin_library_name[] = STANDIN_LIBRARY_NAME;
