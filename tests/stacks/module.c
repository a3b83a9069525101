// A module with one function, which calls back. Built twice, with names of equal length, so that both look alike to the loader.
#ifndef MODULE_FUNCTION
#error "MODULE_FUNCTION names the function"
#endif

__attribute__((visibility("default"))) void MODULE_FUNCTION(void (*call)(void *), void *data);
void MODULE_FUNCTION(void (*call)(void *), void *data) {
    call(data);
    __asm__ volatile("");
}
