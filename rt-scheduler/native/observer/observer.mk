# SPDX-License-Identifier: Apache-2.0
# gpuseg-observer and its BPF program. Included by ../Makefile. They are built where clang and libbpf's headers are; a
# machine without them builds all the rest, and gpuseg doctor says what is missing. OBSERVER=yes makes that an error.
# STATIC_LIBBPF=yes links libbpf, libelf and zlib statically, for a machine without them.
OBSERVER_CLANG ?= clang
OBSERVER_INCLUDE ?= /usr/include/$(shell $(CC) -print-multiarch 2>/dev/null)
OBSERVER_LIBS := $(if $(filter yes,$(STATIC_LIBBPF)),-l:libbpf.a -l:libelf.a -l:libz.a,-lbpf)
# The headers are the same for all machines, the library is not: a cross-compiler may lack it.
HASH := \#
OBSERVER_PARTS := $(shell command -v $(OBSERVER_CLANG) >/dev/null 2>&1 && \
	printf '$(HASH)include <bpf/libbpf.h>\nint main(void) { return 0; }\n' | \
	$(CC) -x c - -o /dev/null $(OBSERVER_LIBS) >/dev/null 2>&1 && echo yes)
OBSERVER ?= $(if $(OBSERVER_PARTS),yes,no)
OBSERVER_ARCH := $(if $(findstring aarch64,$(shell $(CC) -dumpmachine)),arm64,x86)

.PHONY: observer-all
observer-all: $(if $(filter yes,$(OBSERVER)),$(BUILD)/gpuseg-observer)

$(BUILD)/observer.bpf.o: observer/observer.bpf.c observer/observer_abi.h
	@mkdir -p $(@D)
	$(OBSERVER_CLANG) -std=gnu11 -O2 -g -Wall -Wextra -Werror -Wno-unused-parameter -target bpf \
		$(filter -ffile-prefix-map=%,$(CFLAGS)) -D__TARGET_ARCH_$(OBSERVER_ARCH) -I$(OBSERVER_INCLUDE) -c -o $@ $<

# Never with sanitizers: libbpf is not built with them.
$(BUILD)/gpuseg-observer: observer/main.c observer/program.S observer/observer_abi.h common/base.c common/base.h \
		common/device_file.h $(BUILD)/observer.bpf.o
	$(CC) $(STRICT) -pthread -I. $(CFLAGS) -DGPUSEG_OBSERVER_PROGRAM='"$(BUILD)/observer.bpf.o"' -o $@ \
		observer/main.c observer/program.S common/base.c -pthread $(LDFLAGS) $(OBSERVER_LIBS)
