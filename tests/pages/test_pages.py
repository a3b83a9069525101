#!/usr/bin/env python3
"""Runs unit tests on a system with larger pages. usage: test_pages.py LARGE-PAGES BYTES PROGRAM...      (LARGE-PAGES: the library of
large_pages.c)"""
import mmap
import os
import subprocess
import sys

library, page_bytes, programs = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
environment = {**os.environ, "LD_PRELOAD": library, "VRAM_TEST_PAGE_BYTES": str(page_bytes)}

# Without the library the tests would prove nothing. A system with even larger pages cannot simulate these.
said = subprocess.run(["getconf", "PAGESIZE"], env=environment, capture_output=True, text=True, check=True).stdout.strip()
if mmap.PAGESIZE > page_bytes:
    print("skipped: this system's own pages are of %d bytes" % mmap.PAGESIZE)
    sys.exit(77)
assert said == str(page_bytes), "a program is told pages of %s bytes" % said

failed = []
for program in programs:
    done = subprocess.run([program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    if done.returncode != 0:
        failed.append(os.path.basename(program))
        print("%s ended with %d:\n%s" % (program, done.returncode, done.stdout[-3000:]))
print("pages of %d bytes: %d programs, %d failed%s" % (page_bytes, len(programs), len(failed), ": " + " ".join(failed) if failed else ""))
sys.exit(1 if failed or not programs else 0)
