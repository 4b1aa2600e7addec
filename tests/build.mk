# How each kind of build is made: plain, quick, sanitized, for coverage, for fuzzers, for other
# processors and systems; and the goals of those who work on epctx. The Makefile includes it.
#
# kind          in                compiled                           for
# plain         build/            CFLAGS, -O2; tests at -O1          the tool, the library, make check
# quick         build/quick/      -O0, the headers at -O1            make test
# quick/asan    build/quick/asan/ ASan + UBSan, -O0                  make test: hostile bytes
# asan          build/asan/       ASan + UBSan, -O1                  make check
# tsan          build/tsan/       ThreadSanitizer, -O1               make check: threads, plugin
# coverage      build/coverage/   --coverage, -O0                    make coverage
# fuzz          build/fuzz/       clang, libFuzzer, ASan + UBSan     make fuzz, make check
# PLATFORM      build/PLATFORM/   a cross compiler, mostly static    other processors, Windows
#
# Each kind calls `rules` (objects, library, tests), `with_ort` (what includes ONNX Runtime's
# headers) and `plugins` (EPs), another processor `platform`.

# Of objects of tests, unless someone asks for other flags.
TEST_LEVEL := $(if $(filter file,$(origin CFLAGS)),-O1)
# `make check` only takes a short look.
FUZZ_SECONDS ?= $(if $(filter fuzz,$(MAKECMDGOALS)),30,8)
export FUZZ_SECONDS
# -O1: at -O2 gcc removes some of the wrong accesses that are to be found. -g1: sanitizers name
# lines, and where every variable is at -O1 takes gcc half as long again to write down.
# Every piece of an arena is an allocation of its own: an overrun is seen, and a test that fails
# each allocation in turn meets them all.
PIECES   = -DEPCTX_ARENA_BLOCK=0
# gcc's "undefined" leaves out casts of floats that no integer can hold.
SANITIZE = -O1 -g1 -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all \
           -fno-omit-frame-pointer -DEPCTX_DEBUG $(PIECES)

# Where there are no libraries but nanopb, everything is static: without `epctx package`, and without
# ONNX Runtime, which a static program cannot open.
BARE_SOURCES := $(filter-out %/package.c \
                  $(filter-out %/anyep.c %/ep_library.c %/find.c %/places.c %/process.c \
                  %/qnn.c %/qnn_read.c, $(wildcard examples/epctx/ort/*.c)), $(CLI_SOURCES))
# What includes ONNX Runtime's headers is built by `make plugin` and for the tests only.
ORT_TESTS    := tests/test_plugin.c $(wildcard tests/test_plugin_*.c)
TEST_SOURCES := $(filter-out $(ORT_TESTS),$(wildcard tests/test_*.c))
FUZZ_SOURCES := $(wildcard fuzz/fuzz_*.c fuzz/fuzz_*.cc)
# The fuzzers take longest, so they start first. Short programs end a run, lest one core waits.
TEST_SCRIPTS := $(sort $(wildcard tests/test_*.sh))
TEST_SCRIPTS := $(filter %/test_fuzz.sh,$(TEST_SCRIPTS)) \
                $(filter-out %/test_fuzz.sh,$(TEST_SCRIPTS))
PLUGINS        := $(if $(wildcard epctx_npu.h),libepctx_ep.so libfive_ep.so) \
                  libtoy_ep.so libtoy_oom_ep.so \
                  libmistaken_ep.so libbad_ep.so
# tests/ort/unloadable.c stands before these.
UNLOADABLE     := epctx_epnode_from_record epctx_ort_context_node_own
# Plain, under ASan + UBSan and, the threads of ORT's users with it, under ThreadSanitizer.
PLUGIN_KINDS   := build build/asan build/tsan
PLUGIN_TESTS   := $(foreach k,$(PLUGIN_KINDS),$(ORT_TESTS:%.c=$(k)/%))

# Other processors. Little- and big-endian, 32 and 64 bits are in `make check`.
PLATFORMS      := i386 s390x
MORE_PLATFORMS := arm64 armhf powerpc musl
CC_i386    := i686-linux-gnu-gcc
# Sizes of 32 bits overflow where those of 64 do not: the library traps there.
TRAPS_i386 := -fsanitize=undefined -fsanitize-undefined-trap-on-error
CC_s390x   := s390x-linux-gnu-gcc
CC_arm64   := aarch64-linux-gnu-gcc
CC_armhf   := arm-linux-gnueabihf-gcc
CC_powerpc := powerpc-linux-gnu-gcc
CC_musl    := musl-gcc
# What is printed is C99's, also with the C library that is part of every Windows.
CC_windows    := x86_64-w64-mingw32-gcc
FLAGS_windows := -D__USE_MINGW_ANSI_STDIO=1 -D_WIN32_WINNT=0x0601
LIBS_windows  := -lpthread
# Kernels have variants on x86-64 only: elsewhere these are test_npu_kernels, once more.
OF_X86_64  := tests/test_npu_kernels_avx2.c tests/test_npu_kernels_portable.c
tests_of    = $(foreach p,$(1),$(patsubst tests/%.c,build/$(p)/tests/%,$(if $(filter \
                  musl,$(p)),$(TEST_SOURCES),$(filter-out $(OF_X86_64),$(TEST_SOURCES)))))
programs_of = $(call tests_of,$(1)) $(1:%=build/%/epctx)
# What tests/windows.sh runs.
WINDOWS_TESTS := windows test_basics test_epnode test_npu_blob test_npu_compile test_npu_kernels \
                 test_onnx test_partition test_scan test_wire $(ORT_TESTS:tests/%.c=%)

TESTS      := $(TEST_SOURCES:tests/%.c=build/tests/%)
ASAN_TESTS := $(TEST_SOURCES:tests/%.c=build/asan/tests/%)
# What works in several threads, once more under ThreadSanitizer.
TSAN_TESTS := build/tsan/tests/test_share build/tsan/tests/test_threads \
              build/tsan/tests/test_npu_threads
FUZZERS    := $(addprefix build/,$(basename $(FUZZ_SOURCES)))
# The same for coverage. Without libFuzzer the fuzzers only replay.
replays_of = $(patsubst fuzz/%.c,build/$(1)/fuzz/%,$(filter %.c,$(FUZZ_SOURCES)))
COVERAGE_PROGRAMS := build/coverage/epctx $(TEST_SOURCES:tests/%.c=build/coverage/tests/%) \
                     $(call replays_of,coverage)

# `make test`: everything once, unoptimised, in build/quick.
QUICK_TESTS   := $(TESTS:build/%=build/quick/%)
QUICK_PLUGIN  := $(ORT_TESTS:%.c=build/quick/%)
# Once more under ASan + UBSan: the programs whose cases feed hostile bytes to a reader (of the wire,
# models, options, paths, blobs, files that change meanwhile) or let allocations fail in one. The
# others give well-formed input or look at single functions; `make check` runs them so, too.
QUICK_HOSTILE := facts wire scan scan_small onnx epnode io_outputs io_buffers io_changed option path \
                 payload load load_share lint sharding repair edit_fields npu_blob weights
QUICK_ASAN    := $(QUICK_HOSTILE:%=build/quick/asan/tests/test_%)
# Left out: what compares whole builds by other compilers and for other processors.
QUICK_SCRIPTS := $(filter-out %/test_platforms.sh,$(TEST_SCRIPTS))
# The plugin on Windows, where nothing has to be installed for it.
WINE          := $(and $(shell command -v wine),$(shell command -v x86_64-w64-mingw32-gcc),$(wildcard \
                 $(EPCTX_CACHE)/onnxruntime-*-win_amd64))
QUICK_WINDOWS := $(if $(WINE),$(addprefix build/quick/windows/,epctx_ep.dll toy_ep.dll \
                 tests/test_plugin.exe))
QUICK_PROGRAMS := build/quick/epctx build/quick/asan/epctx build/quick/encrypted \
                  build/quick/guide_tables \
                  $(QUICK_TESTS) \
                  $(if $(filter 1,$(EPCTX_TEST_BOTH)),,$(QUICK_ASAN)) $(QUICK_PLUGIN) $(PLUGINS:%=build/quick/%) \
                  build/quick/epctx-conformance \
                  $(call replays_of,quick/asan) build/quick/asan/fuzz/fuzz_wire $(QUICK_WINDOWS)

.PHONY: programs test-programs check-programs facts guide-tables vendors bench mutate size \
        coverage analyze \
        guards fuzz matrix format lint

programs: $(if $(CLI_SOURCES),build/epctx build/asan/epctx) $(TESTS) $(ASAN_TESTS) $(TSAN_TESTS)

## matrix   more processors, C libraries, Windows, packages; the plugin EP in ONNX Runtime's older
##          libraries and in those for Windows and arm64; both commands on a fresh Debian
matrix: deps-plugin deps-matrix build/epctx build/tests/test_npu_kernels \
        $(ORT_TESTS:tests/%.c=build/tests/%) \
        $(PLUGINS:%=build/%) $(call programs_of,$(MORE_PLATFORMS)) \
        $(WINDOWS_TESTS:%=build/windows/tests/%.exe) $(PLUGINS:lib%.so=build/windows/%.dll) \
        $(ORT_TESTS:tests/%.c=build/arm64/tests/%) $(PLUGINS:%=build/arm64/%)
	@EPCTX_PLATFORMS="$(MORE_PLATFORMS)" TEST_TIMEOUT=$(or $(TEST_TIMEOUT),7200) tests/run \
	    tests/fresh.sh tests/matrix.sh tests/test_platforms.sh tests/windows.sh tests/arm64.sh \
	    tests/packages.sh \
	    $(call tests_of,$(MORE_PLATFORMS))

## vendors  the bench: Qualcomm's and Intel's EPs judge what the tool writes and says
vendors: deps-vendors build/epctx build/epctx-conformance build/libepctx_ep.so build/libtoy_ep.so
	@TEST_TIMEOUT=$${TEST_TIMEOUT:-7200} tests/run tests/vendors.sh

## facts    what epctx.h has of the facts in examples/epctx/facts, again from them
facts: $(FACTS)
	@mkdir -p build
	awk -v MODE=header -f examples/epctx/facts/facts.awk $(FACTS) epctx.h >build/facts.h
	@cmp -s build/facts.h epctx.h || cp build/facts.h epctx.h

## guide-tables  the tables of examples/guides, again from the library and the tool
guide-tables: build/guide_tables
	@for page in $$(grep -l '^<!-- table ' examples/guides/*.md) examples/epctx/epctx.1; do \
	    $< "$$page" epctx.h >build/guide.md && cp build/guide.md "$$page" || exit 1; done

## bench    models beside libprotobuf and cp, the weight table beside XXH3, networks beside ORT
bench: deps-bench build/epctx build/tests/bench_protobuf build/tests/bench_weights
	@tests/judge/speed.py README.md
	@if grep -qs avx512f /proc/cpuinfo; then LEVEL=avx2 tests/bench_models.sh; fi
	@LEVEL=portable tests/bench_models.sh
	@if ! command -v clang >/dev/null; then echo "skip kernels built by clang: no clang here"; else \
	    for level in all avx2 portable; do \
	        NPU_CC=clang LEVEL=$$level tests/bench_models.sh --kernels '*' || exit 1; \
	    done; fi

## mutate   put faults into the sources one at a time, those that break a rule and a sample of all
##          others (SEED): does a test notice?
mutate: deps-test
	@tests/mutants.py --rules
	@tests/mutants.py --sample 100 --seed "$${SEED:-1}"

## size     what the firmware of examples/firmware needs: code, RAM, stack, instructions
size: deps-test build/epctx
	@tests/run tests/test_firmware.sh

## fuzz     every fuzzer for FUZZ_SECONDS, after a replay of its corpus
fuzz: deps-check $(FUZZERS)
	@tests/run tests/test_fuzz.sh

## coverage line and branch coverage of the headers, by section; the rest is listed in a file
coverage: deps-test $(COVERAGE_PROGRAMS)
	@sh tests/coverage.sh

## analyze  clang-tidy, gcc -fanalyzer, cppcheck, and stack use of the headers; takes minutes
analyze: deps-build
	@TEST_TIMEOUT=3600 tests/run tests/analyze.sh

## format   lay out the C and C++ sources as .clang-format says
format: deps-lint
	@tests/format.py

## lint     a look at the sources, a minute: layout, scripts, Python, YAML, man page, mutations,
##          and, in what is built of them, at files that need each other
lint: deps-lint
	@$(ALONE) $(MAKE) --no-print-directory build/quick/epctx
	@EPCTX_BUILD=build/quick tests/run tests/lint.sh

## guards   take the checks of epctx.h and of the blob verifier out, each of them, sanitized, too
guards: deps-test
	@tests/mutants.py --all --kinds check --sanitized --files epctx.h 'epctx_npu.h:blob*' \
	    'epctx_npu.h:arch:*' 'epctx_npu.h:exec: loading and running:*'

# ---------------------------------------------------------------- objects

IMPLEMENTATION_epctx     = -DEPCTX_IMPLEMENTATION -DEPCTX_PROFILES=facts_profiles
IMPLEMENTATION_epctx_npu = -DEPCTX_NPU_IMPLEMENTATION

# The NPU behind the plugin EP is the library's where that fits into a shared library: it takes
# longer to compile than all the rest.
npu_of = $(if $(filter arm64/ windows/ quick/windows/,$(1)),,build/$(1)obj/header/epctx_npu.o)

# The plugin EPs, and the tests that include ONNX Runtime's headers.
# $(1) the folder under build/, $(2) the compiler with its flags, $(3) more flags for plugins,
# $(4), $(5) how the names of libraries begin and end, $(6) how those of programs end
define plugins
build/$(1)plugin/%.o: %.c $(BUILD_FILES) | deps-plugin
	@mkdir -p $$(@D)
	$(2) $$(PLUGIN_FLAGS) $$(PLUGIN_CFLAGS) -c $$< -o $$@

build/$(1)plugin/examples/plugin_ep/device_npu.o: \
    PLUGIN_CFLAGS = $(if $(call npu_of,$(1)),-DEPCTX_NPU_IMPLEMENTED)
build/$(1)$(4)epctx_ep$(5): $(PLUGIN_SOURCES:%.c=build/$(1)plugin/%.o) \
                          build/$(1)plugin/examples/plugin_ep/device_npu.o $(call npu_of,$(1))
	$(2) -shared $$^ $(3) $$(PLUGIN_LIBS) -o $$@
build/$(1)$(4)toy_ep$(5): $(PLUGIN_SOURCES:%.c=build/$(1)plugin/%.o) \
                        build/$(1)plugin/tests/ort/device_toy.o \
                        build/$(1)plugin/tests/ort/unloadable.o
	$(2) -shared $$^ $$(UNLOADABLE:%=-Wl,--wrap=%) $(3) $$(PLUGIN_LIBS) -o $$@
# What the tests ask of any device, and no more.
build/$(1)$(4)five_ep$(5): $(PLUGIN_SOURCES:%.c=build/$(1)plugin/%.o) \
                         build/$(1)plugin/tests/ort/device_five.o \
                         build/$(1)plugin/examples/plugin_ep/device_npu.o $(call npu_of,$(1))
	$(2) -shared $$^ -Wl,--wrap=ep_device_get $(3) $$(PLUGIN_LIBS) -o $$@
# The template with one mistake of its author.
build/$(1)$(4)mistaken_ep$(5): $(PLUGIN_SOURCES:%.c=build/$(1)plugin/%.o) \
                             build/$(1)plugin/tests/ort/device_mistaken.o
	$(2) -shared $$^ $(3) $$(PLUGIN_LIBS) -o $$@
# The toy again, with allocations that fail on demand: its own, not those of what it is linked with.
build/$(1)plugin/toy_oom.o: $(PLUGIN_SOURCES:%.c=build/$(1)plugin/%.o) \
                            build/$(1)plugin/tests/ort/device_toy.o build/$(1)plugin/tests/ort/oom.o
	$(2) -r -nostdlib $$^ -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free -o $$@
build/$(1)$(4)toy_oom_ep$(5): build/$(1)plugin/toy_oom.o
	$(2) -shared $$^ $(3) $$(PLUGIN_LIBS) -o $$@
build/$(1)$(4)bad_ep$(5): build/$(1)plugin/tests/ort/bad_ep.o
	$(2) -shared $$^ $(3) -o $$@

$(ORT_TESTS:%.c=build/$(1)%$(6)): build/$(1)obj/examples/conformance/ort_driver.o

# The toy device also without ORT, for models that go from one to the other.
build/$(1)tests/test_plugin$(6): build/$(1)obj/tests/ort/device_toy.o
endef

# What includes ONNX Runtime's headers besides plugins.
# $(1) the folder under build/, $(2) the compiler with its flags
define with_ort
$(patsubst %.c,build/$(1)obj/%.o,$(sort $(ORT_TESTS) $(CONFORMANCE_SOURCES))): \
    build/$(1)obj/%.o: %.c $(BUILD_FILES) | deps-plugin
	@mkdir -p $$(@D)
	$(2) $$(TEST_CFLAGS) -isystem "$$(ORT_HEADERS)" -c $$< -o $$@
endef

# The same rules for every kind of build: plain, quick, sanitized, for coverage, and clang's for the
# fuzzers.
# $(1) the folder under build/, $(2) the compiler with its flags
define rules
build/$(1)obj/header/%.o: %.h $(BUILD_FILES) | deps-build
	@mkdir -p $$(@D)
	$(2) -fPIC -fvisibility=hidden $$(HEADER_CFLAGS) $$(IMPLEMENTATION_$$*) -x c -c $$< -o $$@

build/$(1)obj/%.o: %.c $(BUILD_FILES) | deps-build
	@mkdir -p $$(@D)
	$(2) $$(TEST_CFLAGS) -c $$< -o $$@

# An archive, so that a test which includes the implementation itself, to
# reach its insides, does not meet it twice. Its profiles are those of the facts, if a program has
# facts.
build/$(1)libepctx.a: $(HEADERS:%.h=build/$(1)obj/header/%.o) $(NO_FACTS:%.c=build/$(1)obj/%.o)
	@rm -f $$@
	ar rcs $$@ $$^

build/$(1)libepctx_ops.a: $(OPS_SOURCES:%.c=build/$(1)obj/%.o)
	@mkdir -p $$(@D)
	@rm -f $$@
	ar rcs $$@ $$^

# Any plugin EP, judged by the rules of ONNX Runtime's documents.
build/$(1)epctx-conformance: $(patsubst %.c,build/$(1)obj/%.o, \
                               $(CONFORMANCE_SOURCES) $(CONFORMANCE_SHARES)) \
                             build/$(1)libepctx_ops.a build/$(1)libepctx.a
	$(2) $$^ $$(LIBS) -o $$@

build/$(1)obj/examples/epctx/main.o: build/cli_libs
build/$(1)obj/examples/epctx/commands/view.o: build/view_page.h
build/$(1)obj/examples/conformance/keep.o: build/again.h
build/$(1)obj/examples/epctx/facts/facts.o: build/facts_table.h
# What `make install` has to know later.
build/$(1)config: force
	@mkdir -p $$(@D)
	@printf 'NANOPB_CFLAGS=%s\nNANOPB_LIBS=%s\n' "$$$$NANOPB_CFLAGS" "$$$$NANOPB_LIBS" >$$@.new
	@if cmp -s $$@.new $$@; then rm $$@.new; else mv $$@.new $$@; fi
build/$(1)epctx: build/$(1)config
build/$(1)epctx: $(CLI_SOURCES:%.c=build/$(1)obj/%.o) \
                 build/$(1)libepctx_ops.a build/$(1)libepctx.a
	$(2) $$(LDFLAGS) $$(filter-out %/config,$$^) $$(LIBS) $$(CLI_LIBS) -o $$@

# Fills the tables of the guides: the tool's rules, without its main.
build/$(1)guide_tables: build/$(1)obj/examples/guides/tables.o \
                        $(patsubst %.c,build/$(1)obj/%.o,$(filter-out %/main.c,$(CLI_SOURCES))) \
                        build/$(1)libepctx_ops.a build/$(1)libepctx.a
	$(2) $$^ $$(LIBS) $$(CLI_LIBS) -o $$@

# An application with a crypto library.
build/$(1)obj/examples/encrypted/%.o: | deps-test
build/$(1)encrypted: build/$(1)obj/examples/encrypted/encrypted.o build/$(1)libepctx.a
	$(2) $$^ $$(LIBS) -lsodium -o $$@

# Archives last: objects that other rules add need them, too.
build/$(1)tests/%: build/$(1)obj/tests/%.o build/$(1)libepctx_ops.a build/$(1)libepctx.a
	@mkdir -p $$(@D)
	$(2) $$(filter %.o,$$^) $$(filter %.a,$$^) $$(LIBS) -o $$@

-include $(wildcard build/$(1)obj/*/*.d build/$(1)obj/*/*/*.d build/$(1)obj/*/*/*/*.d \
                    build/$(1)plugin/*/*/*.d)
endef

PLUGIN_FLAGS = -fPIC -fvisibility=hidden -Iexamples/plugin_ep -isystem "$(ORT_HEADERS)"
# ORT reads the models, but for the sources of weightless ones: nanopb, hidden inside.
PLUGIN_LIBS  = $(LIBS) -lm -Wl,--exclude-libs,ALL

comma := ,
$(eval $(call rules,,$(COMPILE)))
$(eval $(call with_ort,,$(COMPILE)))
$(eval $(call plugins,,$(COMPILE),-Wl$$(comma)-z$$(comma)defs,lib,.so))
$(eval $(call rules,asan/,$(COMPILE) $(SANITIZE)))
$(eval $(call with_ort,asan/,$(COMPILE) $(SANITIZE)))
$(eval $(call plugins,asan/,$(COMPILE) $(SANITIZE),,lib,.so))
THREAD_SANITIZE = -O1 -g1 -fsanitize=thread -fno-omit-frame-pointer
$(eval $(call rules,tsan/,$(COMPILE) $(THREAD_SANITIZE)))
$(eval $(call with_ort,tsan/,$(COMPILE) $(THREAD_SANITIZE)))
$(eval $(call plugins,tsan/,$(COMPILE) $(THREAD_SANITIZE),,lib,.so))
COVERAGE = -O0 --coverage -fprofile-update=prefer-atomic -DEPCTX_COVERAGE $(PIECES)
$(eval $(call rules,coverage/,$(COMPILE) $(COVERAGE)))
$(eval $(call with_ort,coverage/,$(COMPILE) $(COVERAGE)))
$(eval $(call rules,quick/,$(COMPILE) -O0 -g))
$(eval $(call with_ort,quick/,$(COMPILE) -O0 -g))
$(eval $(call plugins,quick/,$(COMPILE) -O0 -g,,lib,.so))
# What everything calls is worth five seconds of optimising, the kernels most of all.
build/quick/obj/header/%.o: HEADER_CFLAGS = -O1 -g1
$(eval $(call rules,quick/asan/,$(COMPILE) $(SANITIZE) -O0 -g))
$(eval $(call with_ort,quick/asan/,$(COMPILE) $(SANITIZE) -O0 -g))

# What is to be optimised, and traced at -O1, is the library and the tool, not the tests, not even
# where they bring an implementation to reach its insides. Kernels that a test brings are its
# subject.
build/obj/tests/%.o: TEST_CFLAGS = $(TEST_LEVEL)
$(patsubst %,build/%/obj/tests/%.o,$(PLATFORMS) $(MORE_PLATFORMS)): TEST_CFLAGS = -O1
build/asan/obj/tests/%.o: TEST_CFLAGS = -O0
# It tries its operations tens of thousands of times.
build/asan/obj/tests/test_faults.o: TEST_CFLAGS =
$(foreach f,build $(patsubst %,build/%,asan $(PLATFORMS) $(MORE_PLATFORMS)),$(addprefix \
    $(f)/obj/tests/test_npu_,kernels_avx2.o kernels_portable.o fixed.o)): TEST_CFLAGS =

# Fuzzers that only replay.
define replay
build/$(1)/fuzz/%: build/$(1)/obj/fuzz/%.o build/$(1)/obj/fuzz/replay.o build/$(1)/libepctx_ops.a \
                   build/$(1)/libepctx.a
	@mkdir -p $$(@D)
	$(2) $$^ $$(LIBS) -o $$@
endef
$(eval $(call replay,coverage,$(COMPILE) $(COVERAGE)))
$(eval $(call replay,quick,$(COMPILE) -O0 -g))
$(eval $(call replay,quick/asan,$(COMPILE) $(SANITIZE) -O0 -g))

# The fuzzers want clang; libFuzzer brings main().
FUZZ_SANITIZE = -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all \
                -fsanitize-coverage-ignorelist=fuzz/uncovered.txt -DEPCTX_DEBUG
FUZZ_COMPILE  = clang $(WARNINGS) -MMD -MP $(INCLUDE) $(NANOPB_CFLAGS) -O1 -g1 $(FUZZ_SANITIZE)
$(eval $(call rules,fuzz/,$(FUZZ_COMPILE)))
build/fuzz/obj/%.o: | deps-test

# With another EPCTX_NO_PACKAGE than before the tool is built again.
build/cli_libs: force
	@mkdir -p $(@D)
	@echo "$(CLI_LIBS)" | cmp -s - $@ || echo "$(CLI_LIBS)" >$@

# The facts about vendors, for the tool.
build/facts_table.h: examples/epctx/facts/facts.awk $(FACTS)
	@mkdir -p $(@D)
	awk -v MODE=table -f $^ >$@

# The page of `epctx view`, for its sources.
VIEW_PAGE := $(addprefix examples/epctx/view/,embed.sh page.html page.css page.js)
build/view_page.h: $(VIEW_PAGE)
	@mkdir -p $(@D)
	sh $< >$@

# What the suite puts in front of each program that shows a failure again.
build/again.h: examples/epctx/view/embed.sh examples/conformance/again.py
	@mkdir -p $(@D)
	sh $< again_begin <$(word 2,$^) >$@

# The peer is C++.
build/tests/bench_protobuf: tests/bench_protobuf.cc build/libepctx.a epctx.h | deps-bench
	@mkdir -p $(@D)
	$(CXX) -std=c++17 -Wall -Wextra $(WERROR) -I. $(NANOPB_CFLAGS) $(CFLAGS) $< build/libepctx.a \
	    $(LIBS) -lonnx_proto -lprotobuf -o $@

build/fuzz/%: build/fuzz/obj/fuzz/%.o build/fuzz/libepctx_ops.a build/fuzz/libepctx.a
	clang -fsanitize=fuzzer,address,undefined $^ $(LIBS) -o $@

# libprotobuf is C++, so is what compares it with us.
build/fuzz/fuzz_wire: fuzz/fuzz_wire.cc build/fuzz/libepctx.a build/fuzz/onnx.desc epctx.h
	clang++ -std=c++17 -Wall -Wextra $(WERROR) -I. $(NANOPB_CFLAGS) -O1 -g \
	    -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all $< \
	    build/fuzz/libepctx.a $(LIBS) -lprotobuf -o $@
build/quick/asan/fuzz/fuzz_wire: fuzz/fuzz_wire.cc build/quick/asan/obj/fuzz/replay.o \
                                 build/quick/asan/libepctx.a build/fuzz/onnx.desc epctx.h
	@mkdir -p $(@D)
	$(CXX) -std=c++17 -Wall -Wextra $(WERROR) -I. $(NANOPB_CFLAGS) $(SANITIZE) -O0 -g \
	    $(filter-out epctx.h %.desc,$^) $(LIBS) -lprotobuf -o $@
build/fuzz/onnx.desc: tests/judge/onnx_schema.py | deps-test
	@mkdir -p $(@D)
	"$$(sh tests/deps.sh where python)" -B $< >$@

# A platform has no libraries of its own here: nanopb from its sources, everything static.
# $(1) its folder under build/, ends in its name, $(2) how its programs' names end
define platform
build/$(1)/obj/%.o: %.c $(BUILD_FILES) | deps-test
	@mkdir -p $$(@D)
	$$(CROSS) $$(TEST_CFLAGS) -c $$< -o $$@
build/$(1)/obj/header/%.o: %.h $(BUILD_FILES) | deps-test
	@mkdir -p $$(@D)
	$$(CROSS) $$(TRAPS_$(1)) $$(IMPLEMENTATION_$$*) -x c -c $$< -o $$@
build/$(1)/obj/nanopb/%.o: $(BUILD_FILES) | deps-test
	@mkdir -p $$(@D)
	$$(CC_$(notdir $(1))) -O2 -fPIC -fvisibility=hidden -c "$$(NANOPB_FOLDER)/$$*.c" -o $$@
build/$(1)/obj/examples/epctx/commands/view.o: build/view_page.h
build/$(1)/obj/examples/epctx/facts/facts.o: build/facts_table.h
build/$(1)/libepctx.a: $(HEADERS:%.h=build/$(1)/obj/header/%.o) $(NO_FACTS:%.c=build/$(1)/obj/%.o) \
                       $(patsubst %,build/$(1)/obj/nanopb/pb_%.o,common decode encode)
	@rm -f $$@
	ar rcs $$@ $$^
build/$(1)/libepctx_ops.a: $(OPS_SOURCES:%.c=build/$(1)/obj/%.o)
	@rm -f $$@
	ar rcs $$@ $$^
build/$(1)/tests/%$(2): build/$(1)/obj/tests/%.o build/$(1)/libepctx_ops.a build/$(1)/libepctx.a
	@mkdir -p $$(@D)
	$$(CC_$(notdir $(1))) $$(LINK) $$(filter %.o,$$^) $$(filter %.a,$$^) -lm \
	    $$(LIBS_$(notdir $(1))) -o $$@
build/$(1)/epctx: $(BARE_SOURCES:%.c=build/$(1)/obj/%.o) build/$(1)/libepctx_ops.a \
                build/$(1)/libepctx.a
	$$(CC_$(notdir $(1))) -static $$^ -lm -o $$@
build/$(1)/%: CROSS = $$(CC_$(notdir $(1))) $(WARNINGS) -MMD -MP $(INCLUDE) -isystem "$$(NANOPB_FOLDER)" \
                 $(if $(filter quick/%,$(1)),-O0,-O2) -D_FILE_OFFSET_BITS=64 -DEPCTX_CLI_NO_PACKAGE \
                 -DEPCTX_CLI_NO_ORT $$(FLAGS_$(notdir $(1))) $$(LAYER)
build/$(1)/%: LINK = -static
build/$(1)/%: PLUGIN_LIBS = $(patsubst %,build/$(1)/obj/nanopb/pb_%.o,common decode encode) -lm
$(PLUGINS:lib%.so=build/$(1)/%.dll) $(PLUGINS:%=build/$(1)/%): | build/$(1)/libepctx.a
-include $(wildcard build/$(1)/obj/*/*.d build/$(1)/obj/*/*/*.d build/$(1)/obj/*/*/*/*.d)
endef
NANOPB_FOLDER = $(shell sh tests/deps.sh where nanopb-source)
$(foreach p,$(PLATFORMS) $(MORE_PLATFORMS),$(eval $(call platform,$(p))))
# The plugin inside ONNX Runtime's library for another processor, which is loaded at run time.
$(eval $(call plugins,arm64/,$$(CROSS),,lib,.so))
$(eval $(call with_ort,arm64/,$$(CROSS)))
$(ORT_TESTS:tests/%.c=build/arm64/tests/%): LINK = -pthread -ldl
# In build/windows for `make matrix`, in build/quick/windows for `make test`. The tests see
# POSIX, and an isnan() that takes what it is given for a float.
$(foreach f,windows quick/windows,$(eval $(call platform,$(f),.exe)))
$(foreach f,windows quick/windows,$(eval $(call plugins,$(f)/,$$(CROSS),-static -lpthread,,.dll,.exe)))
$(foreach f,windows quick/windows,$(eval $(call with_ort,$(f)/,$$(CROSS))))
$(foreach f,windows quick/windows,$(addprefix build/$(f)/,obj/tests/%.o plugin/tests/%.o \
    obj/examples/conformance/%.o)): LAYER = -include tests/windows.h -Wno-float-conversion
$(call programs_of,$(MORE_PLATFORMS)) $(WINDOWS_TESTS:%=build/windows/tests/%.exe): | deps-matrix

.SECONDARY:
