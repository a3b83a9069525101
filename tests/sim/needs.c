// A library as in a wheel, which needs a runtime under the wheel's name, and versioned symbols.
int cudaRuntimeGetVersion(int *version);
__attribute__((visibility("default"))) int cuInit(unsigned flags);

int cuInit(unsigned flags) {
    int version = (int)flags;
    return cudaRuntimeGetVersion(&version) != 0 || version < 0;
}
