// The version that a stand-in tells, of NVIDIA's library with the same soname: one object per soname.
#include "common.h"

const int standin_library_version = STANDIN_LIBRARY_VERSION;
const char standin_library_name[] = STANDIN_LIBRARY_NAME;
