# epctx: build, test, demo, install. `make help` lists the targets. How each kind of build is made,
# and what only those need who work on epctx, is in tests/build.mk.
#
# Variables, all optional, on the command line or in the environment:
#   CC, CXX, CFLAGS    compilers and extra compiler flags
#   CPPFLAGS, LDFLAGS  more of them, LDFLAGS for the tool
#   WERROR             empty: a warning does not stop the build
#   PREFIX, DESTDIR    where `make install` puts things; the GNU folder variables work, too, see
#                      examples/packaging/README.md
#   NANOPB_CFLAGS      where pb_decode.h is       (default: the system's)
#   NANOPB_LIBS        nanopb to link with        (default: -lprotobuf-nanopb)
#   EPCTX_OFFLINE      1: install and download nothing; stop when something is missing (default:
#                      1 for goals that only build, so for `make` alone)
#   EPCTX_CACHE        where downloads are kept   (default: build/deps)
#   ORT_HOME           an ONNX Runtime that is there already: no download
#   PYTHON             a Python with what tests/requirements.txt lists: no download
#   ORT_INCLUDE        a folder with ONNX Runtime's C headers: no download
#   EPCTX_TEST_MODELS  a folder of further models to test with
#   FUZZ_SECONDS       time for each fuzzer       (default: 30; in `make check` 8)
#   TEST_JOBS          tests run side by side     (default: one more than there are cores)
#   NANOPB_SOURCE      nanopb's sources, for other processors and `make amalgamate`
#                      (default: Debian's source package)
#   EPCTX_NO_PACKAGE   1: the tool without `epctx package` and libsodium (not for the tests)

ifeq ($(origin CC),default)
CC = gcc
endif
ifeq ($(origin CXX),default)
CXX = g++
endif
# Optimised code has few variables to show: their whereabouts take a fifth of the compiler's time.
CFLAGS ?= -O2 -g1
NANOPB_LIBS ?= -lprotobuf-nanopb
EPCTX_CACHE ?= $(CURDIR)/build/deps
export CC CXX NANOPB_CFLAGS NANOPB_LIBS EPCTX_CACHE
# Only these goals install what is missing: a plain build never changes the system.
INSTALLING := demo test check bench plugin conformance matrix vendors deb amalgamate docs web \
              lint format \
              mutate guards size coverage fuzz fetch deps-% %-programs
ifeq ($(filter $(INSTALLING),$(MAKECMDGOALS)),)
EPCTX_OFFLINE ?= 1
endif
# A variable that is not set would be exported as an empty string.
EXPORTED := ORT_HOME ORT_INCLUDE EPCTX_TEST_MODELS EPCTX_NO_PACKAGE EPCTX_OFFLINE PYTHON
$(foreach v,$(EXPORTED),$(if $($(v)),$(eval export $(v))))

# Without a -j of the caller's: all cores. A `make` below ours shares its jobs.
ifeq ($(filter -j%,$(MAKEFLAGS))$(MAKELEVEL:0=),)
MAKEFLAGS += -j$(shell nproc)
endif

WERROR  ?= -Werror
WARNINGS = -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-qual \
           -Wstrict-prototypes $(WERROR)
# Files of the tool name those in its other folders as "core/cli.h".
INCLUDE  = -I. -Iexamples/epctx
# The same bytes in whatever folder: debug information and __FILE__ do not name it.
COMPILE  = $(CC) $(WARNINGS) -MMD -MP $(INCLUDE) $(NANOPB_CFLAGS) $(CPPFLAGS) $(CFLAGS) \
           "-ffile-prefix-map=$(CURDIR)=."
LIBS     = $(NANOPB_LIBS) -lm -pthread

# ort/ opens ONNX Runtime at run time, ops/ is an archive of its own.
CLI_SOURCES  := $(wildcard $(addprefix examples/epctx/,*.c commands/*.c compile/*.c core/*.c \
                  delivery/*.c ort/*.c view/*.c))
CLI_LIBS     := -lsodium -ldl
# What the tool does to whole models, what it reads of binaries, and the facts about vendors: an
# archive of their own, for the tests and fuzzers, too.
NO_FACTS     := examples/epctx/facts/without_facts.c
OPS_SOURCES  := $(wildcard examples/epctx/ops/*.c examples/epctx/binary/*.c) \
                $(filter-out $(NO_FACTS),$(wildcard examples/epctx/facts/*.c))
FACTS        := $(sort $(wildcard examples/epctx/facts/*.facts))
ifneq ($(filter-out 0,$(EPCTX_NO_PACKAGE)),)
CLI_SOURCES  := $(filter-out %/package.c,$(CLI_SOURCES))
CLI_LIBS     := -ldl
override CFLAGS += -DEPCTX_CLI_NO_PACKAGE
endif
ORT_HEADERS   = $(shell sh tests/deps.sh where ort-headers)
# Every header, compiled as a source with its implementation switched on: a
# program that does not bring the implementation itself takes it from here.
HEADERS := $(wildcard epctx.h epctx_npu.h)

# The plugin EP: everything but the device is the same for every device.
PLUGIN_SOURCES := $(filter-out examples/plugin_ep/device_%.c,$(wildcard examples/plugin_ep/*.c))
CONFORMANCE_SOURCES := $(wildcard examples/conformance/*.c)
# What a library is registered as, and ONNX Runtime's, are looked up in one place for the tool and
# the suite.
CONFORMANCE_SHARES := $(addprefix examples/epctx/,ort/ep_library.c ort/places.c core/vendors.c)

.DELETE_ON_ERROR:
.PHONY: force all demo test check plugin conformance install install-headers install-tool uninstall \
        dist deb amalgamate docs web fetch clean help

## all      build/epctx and the libraries in it (the default)
all: $(if $(CLI_SOURCES),build/epctx) build/libepctx.a build/libepctx_ops.a

# What is built of what; when one of these files changes, everything is built again.
BUILD_FILES := Makefile tests/build.mk
include tests/build.mk

## demo     compile a real model, look into it, run it, compare with ONNX Runtime
demo: deps-demo build/epctx
	@sh examples/demo/demo.sh

# Of two runs in one tree one builds; they test side by side.
ALONE = mkdir -p build && flock build/lock

## test     the quick tests, minutes: everything built once, unoptimised; readers also under ASan
test:
	@$(ALONE) $(MAKE) --no-print-directory test-programs
	@EPCTX_BUILD=build/quick EPCTX_TEST_QUICK=1 tests/run $(QUICK_SCRIPTS) tests/windows.sh \
	    $(QUICK_TESTS) \
	    $(QUICK_ASAN) $(QUICK_PLUGIN)
test-programs: deps-test $(QUICK_PROGRAMS)

## check    lint; all tests, optimised and sanitized; compile matrix, fuzzers, other processors
check:
	@$(ALONE) $(MAKE) --no-print-directory check-programs
	@TEST_TIMEOUT=$${TEST_TIMEOUT:-1800} tests/run tests/lint.sh $(TEST_SCRIPTS) \
	    $(PLUGIN_TESTS) $(call tests_of,$(PLATFORMS)) \
	    $(TSAN_TESTS) $(ASAN_TESTS) $(TESTS)
check-programs: deps-check programs $(FUZZERS) $(foreach k,$(PLUGIN_KINDS),$(PLUGINS:%=$(k)/%)) \
                $(PLUGIN_TESTS) $(call programs_of,$(PLATFORMS)) build/encrypted build/asan/encrypted \
                build/guide_tables build/epctx-conformance

## plugin   build/libepctx_ep.so, the plugin EP for ONNX Runtime
plugin: $(filter build/libepctx_ep.so,$(PLUGINS:%=build/%))

## conformance  build/epctx-conformance, which judges any plugin EP by the rules of ORT's documents
conformance: deps-plugin build/epctx-conformance

# What the environment says now does not matter, but for folders: what was built is copied.
# A variable of the command line is an order.
INSTALL = $(foreach v,NANOPB_CFLAGS NANOPB_LIBS,$(if $(filter command,$(firstword $(origin \
          $(v)))),EPCTX_$(v)="$$$(v)")) sh examples/packaging/install.sh
## install  headers, tool, man page, completions, pkg-config and CMake files, in PREFIX (/usr/local):
##          copies what `make` built
install: install-headers install-tool
## install-headers   only what a program needs to build with epctx
install-headers:
	@$(INSTALL) install headers
## install-tool      only the tool, its man page and completions
install-tool:
	@$(INSTALL) install tool

## uninstall  remove what `make install` with the same variables installed
uninstall:
	@sh examples/packaging/install.sh uninstall headers tool

## amalgamate  build/amalgamate: epctx.h and epctx_all.c with nanopb inside
amalgamate: deps-nanopb
	@sh examples/packaging/amalgamate.sh

## dist     build/dist: the release archive, its checksum, recipes for Meson, vcpkg and Conan
dist:
	@sh examples/packaging/dist.sh

## deb      build/deb: Debian's source package and the packages libepctx-dev and epctx
deb: deps-deb dist
	@sh examples/packaging/deb.sh

## docs     build/docs/html: the reference, of the headers' comments, and the guides
docs: deps-docs
	@sh examples/guides/reference/build.sh build/docs

## web      build/web/epctx.html: the tool's view, lint and info in one page, as WebAssembly
web: deps-web
	@mkdir -p build/web
	@sh examples/web/build.sh build/web/epctx.html

## fetch    all that any goal downloads, but Debian's packages, into EPCTX_CACHE: to be carried to a
##          machine without a network
fetch:
	@sh tests/deps.sh fetch

## deps-X   only what goal X needs (demo, test, check, plugin, bench, matrix, vendors, docs, web, deb)
DEPS := demo test check bench plugin matrix vendors deb nanopb docs web lint
.PHONY: deps-build $(DEPS:%=deps-%)
# Compiler and tools come first: what is missing is said before anything is installed.
deps-build:
	@sh tests/deps.sh build $(filter demo test check bench plugin matrix vendors deb,\
	    $(patsubst conformance,plugin,$(MAKECMDGOALS:%-programs=%)))
# These need no compiler.
$(filter-out deps-nanopb deps-docs deps-web deps-lint,$(DEPS:%=deps-%)): deps-build
$(DEPS:%=deps-%): deps-%:
	@sh tests/deps.sh $*

## clean    remove what was built; downloads stay
clean:
	rm -rf $(filter-out build/deps,$(wildcard build/*))

## help     this list
help:
	@echo "make TARGET, where TARGET is one of"
	@sed -n 's/^## /  /p' $(BUILD_FILES)
	@echo "Variables:"
	@sed -n '/^# Variables/,/^$$/s/^#   /  /p' Makefile
