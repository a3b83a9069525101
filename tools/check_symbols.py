#!/usr/bin/env python3
"""Checks with nm the library's exports, names and imports.

Usage: check_symbols.py [--nm NM] [--shared LIBVRAM.so] [--static LIBVRAM.a] [--without PREFIX...]

The shared library may export only vram_*, and no name that begins with a PREFIX (of another product). Global names in the archive must
begin with vr_ or vram_. The archive may import only the names listed below: the library never prints, exits, aborts or reads standard input
on its own, except for the report of verify:True. Exits 1 and names each symbol that breaks a rule.
"""
import argparse
import re
import subprocess
import sys

EXPORTED = re.compile(r"^vram_")
INTERNAL = re.compile(r"^(vr_|vram_)")

# The library's imports, by purpose. A new name here is a decision, not a formality.
IMPORTS = {
    "memory of the host": "malloc calloc realloc free aligned_alloc posix_memalign",
    "bytes and strings": """memchr memcmp memcpy memmove memset strchr strcmp strcspn strlen strncmp strpbrk strrchr strspn strstr strnlen""",
    "text to and from numbers": "snprintf vsnprintf strtod strtoll strtoul strtoull",
    "arithmetic": "nextafterf ceil floor fmod frexp ldexp llround log2 lround nearbyint rint round trunc",
    "sorting": "qsort bsearch",
    "searching text: recordings/analyze/text_search.c": "regcomp regexec regerror regfree",
    "failed assertions, in builds that have them": "__assert_fail",
    "recordings/snapshot: reading the file that the caller named": "fopen fread ferror fclose setvbuf",
    "allocator/history: following a recording file": "fopen fread fseek ftell clearerr fclose",
    "allocator/os/posix: the program's own streams, where the caller named them": "fcntl fdopen fstat lstat",
    "allocator/os/posix: files that are made": "open lstat fchmod fdopen geteuid getrandom unlink close",
    "allocator/os/posix: a stack of its own": "mmap munmap sigfillset sigdelset pthread_sigmask",
    "allocator/os/posix: a process that helps this one": """clone pipe2 poll read write waitpid kill dup2 prctl getppid sigaction sigemptyset
        __libc_current_sigrtmin""",
    "allocator/os/posix: files that grow": "open lstat fstat flock fcntl readlink unlink getrlimit posix_fallocate ftruncate close",
    "allocator/driver: writing the text of a graph that the program named": "fwrite ferror fclose rename remove",
    "allocator/live: writing the file that the caller named": "fopen fwrite ferror fclose rename remove strerror",
    "allocator/os/posix: threads": """pthread_attr_destroy pthread_attr_init pthread_attr_setdetachstate pthread_cond_broadcast pthread_cond_destroy
        pthread_cond_init pthread_cond_timedwait pthread_cond_wait pthread_condattr_destroy pthread_condattr_init pthread_condattr_setclock
        pthread_create pthread_detach pthread_join pthread_mutex_destroy pthread_mutex_init pthread_mutex_lock pthread_mutex_unlock pthread_once pthread_self sched_yield sched_getaffinity __sched_cpucount syscall gettid
        __libc_single_threaded""",
    "allocator/os/posix: clock": "clock_gettime time gmtime_r strftime gethostname",
    "allocator/os/posix: environment": "getenv secure_getenv",
    "allocator/os/posix: libraries": "dlopen dlsym dlclose dlerror",
    "allocator/os/posix: memory and files": "mmap munmap mprotect madvise memfd_create ftruncate fallocate close sysconf getpagesize getpid",
    "allocator/os/posix: memory files of other processes, descriptors through a socket": "open read pread pwrite lseek fcntl fstat stat recv recvmsg sendmsg",
    "allocator/os/posix: modules of the process, bounds of stacks, forks": """dl_iterate_phdr dladdr1 readlink fgets sscanf msync gnu_get_libc_version pthread_getattr_np
        pthread_attr_getstack pthread_atfork __register_atfork __dso_handle""",
    "filled by libvram-recordings, where it is there": "vram_recordings_library",
    "the compiler and the loader": """_GLOBAL_OFFSET_TABLE_ __stack_chk_fail __tls_get_addr __errno_location _ITM_deregisterTMCloneTable
        _ITM_registerTMCloneTable __cxa_finalize __gmon_start__""",
}
# Symbols that only one object may import: the option verify:True prints a fault and ends the process.
IMPORTS_OF = {"process.c.o": {"abort"}}
ALLOWED = {name for names in IMPORTS.values() for name in names.split()}
# _FORTIFY_SOURCE and newer C libraries rename some functions.
RENAMED = re.compile(r"^__(?:isoc\d+_)?(\w+?)(?:_chk)?$")


def nm(tool, arguments):
    """Returns (symbol, type) of every line of nm, without versions and without the symbols that its object may import."""
    result = subprocess.run([tool, "-P"] + arguments, check=True, capture_output=True, text=True)
    allowed = set()
    for line in result.stdout.splitlines():
        fields = line.split()
        if line.endswith("]:"):
            allowed = IMPORTS_OF.get(line[line.rindex("[") + 1 : -2], set())
        elif len(fields) >= 2 and len(fields[1]) == 1 and not (fields[1] == "U" and fields[0] in allowed):
            yield fields[0].split("@")[0], fields[1]


# libgcc on aarch64: atomic instructions chosen by the processor's features, and long double, which has 16 bytes there.
AARCH64 = re.compile(r"__aarch64_(cas|swp|ldadd|ldclr|ldeor|ldset)[1248]_(relax|acq|rel|acq_rel)$"
                     r"|__(divtf3|multf3|floatunditf|trunctfdf2|stack_chk_guard)$")


def is_allowed(name):
    if name in ALLOWED or AARCH64.match(name):
        return True
    match = RENAMED.match(name)
    return bool(match) and match.group(1) in ALLOWED


def check_shared(exported, without):
    problems = [f"exported, but not vram_*: {name}" for name in sorted(exported) if not EXPORTED.match(name)]
    problems += [f"exported, but another library's: {name}" for name in sorted(exported) if name.startswith(without)]
    return problems if exported else ["the shared library exports nothing"]


def check_static(symbols):
    defined = {name for name, kind in symbols if kind.isupper() and kind not in "UWV"}
    wanted = {name for name, kind in symbols if kind in "UwWvV"}
    problems = [f"global, but neither vr_* nor vram_*: {name}" for name in sorted(defined) if not INTERNAL.match(name)]
    problems += [f"imported, but not in the list: {name}" for name in sorted(wanted - defined) if not is_allowed(name)]
    return problems if defined else ["the archive defines nothing"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--shared")
    parser.add_argument("--static")
    parser.add_argument("--without", nargs="*", default=[])
    arguments = parser.parse_args()
    problems = []
    if arguments.shared:
        exported = {name for name, _ in nm(arguments.nm, ["-D", "--defined-only", arguments.shared])}
        problems += check_shared(exported, tuple(arguments.without))
    if arguments.static:
        problems += check_static(list(nm(arguments.nm, [arguments.static])))
    for problem in problems:
        print(problem)
    print(f"{len(problems)} symbols that should not be")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
