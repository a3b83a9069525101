"""NVIDIA's runtime in Python. It is linked into the module cuda.bindings.runtime, so it does not find the simulated device: each of its functions returns
"not supported". Engines call a few of them, which the driver's functions can do as well; those are replaced here.

FlashInfer calls cudaSetDevice() for the memory in which several GPUs reduce (SymmDeviceMemory: 2 GiB of each H100 in vLLM). Without it, the engine continues
without that memory, so the answer would be too small."""
SUCCESS = 0


def set_device(driver, device):
    code, context = driver.cuDevicePrimaryCtxRetain(device)
    return (code,) if code != SUCCESS else driver.cuCtxSetCurrent(context)


def get_device(driver):
    code, device = driver.cuCtxGetDevice()
    return (code, None if code != SUCCESS else int(device))


# Name, and the function that returns the driver's result (a CUresult, which has the same number as the runtime's error) and values.
FUNCTIONS = {
    "cudaSetDevice": set_device,
    "cudaGetDevice": get_device,
    "cudaGetDeviceCount": lambda driver: driver.cuDeviceGetCount(),
    "cudaDeviceSynchronize": lambda driver: driver.cuCtxSynchronize(),
    "cudaMemGetInfo": lambda driver: driver.cuMemGetInfo(),
}


def replacement(errors, name, function):
    """Returns the function of that name. Errors that the runtime does not number become its unknown error."""

    def call(*args):
        from cuda.bindings import driver

        code, *values = function(driver, *args)
        try:
            return (errors(int(code)), *values)
        except ValueError:
            return (errors.cudaErrorUnknown, *values)

    call.__name__ = name
    return call


def replace(module):
    for name, function in FUNCTIONS.items():
        if hasattr(module, name):
            setattr(module, name, replacement(module.cudaError_t, name, function))


def modules(_):
    """Maps each module to the function to call after its import."""
    return {"cuda.bindings.runtime": replace}
