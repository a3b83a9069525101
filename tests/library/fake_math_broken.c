// A library that lacks most of the required functions.
__attribute__((visibility("default"))) int cublasSetStream_v2(void *handle, void *stream);
__attribute__((visibility("default"))) int cufftCreate(int *plan);

int cublasSetStream_v2(void *handle, void *stream) { return handle == stream; }
int cufftCreate(int *plan) { return *plan; }
