// Represents one of NVIDIA's libraries that a program ships. Copies of it get many names.
__attribute__((visibility("default"))) int cudaRuntimeGetVersion(int *version);
__attribute__((visibility("default"))) int cuInit(unsigned flags);

int cudaRuntimeGetVersion(int *version) {
    *version = -1;
    return 0;
}

int cuInit(unsigned flags) {
    (void)flags;
    return -1;
}
