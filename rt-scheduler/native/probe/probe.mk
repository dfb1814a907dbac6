# SPDX-License-Identifier: Apache-2.0
# make tarball: gpuseg-probe-VERSION-MACHINE.tar.gz, gpuseg latency and selftest for machines that have nothing but a
# driver. For arm64: make tarball CC=aarch64-linux-gnu-gcc
PROBE_MACHINE = $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
PROBE_VERSION = $(shell ../../config/version.sh)
PROBE_NAME = gpuseg-probe-$(PROBE_VERSION)-$(PROBE_MACHINE)
PROBE_BUILD = build/probe-$(PROBE_MACHINE)
PROBE_TIME = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null),0)
PROBE_STRIP = $(patsubst %gcc,%strip,$(if $(filter %gcc,$(CC)),$(CC),gcc))

# Also under glibc before 2.34, where threads and dlopen() are in libraries of their own.
PROBE_LDFLAGS = $(abspath $(PROBE_BUILD))/old_glibc.o -Wl,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -Wl,--as-needed
PROBE_FLAGS = BUILD=$(PROBE_BUILD) API_BUILD=$(PROBE_BUILD) OPT=-O2 CFLAGS="-O2 -include $(CURDIR)/probe/old_glibc.h" \
	LDFLAGS="$(PROBE_LDFLAGS)" \
	RM_CFLAGS="-std=c11 -O2 -Wall -Wextra -Werror -include $(CURDIR)/probe/old_glibc.h $(PROBE_LDFLAGS)"
PROBE_PROGRAMS := gpuseg-latency gpuseg-selftest gpuseg-watchdog libgpuseg-preload.so
PROBE_API := gpuseg-exec libgpuseg-inject.so libgpuseg-wrap.so
PROBE_FILES = $(PROBE_PROGRAMS:%=$(PROBE_BUILD)/%) $(PROBE_API:%=$(SEGMENT_API)/$(PROBE_BUILD)/%)

$(PROBE_BUILD)/libgpuseg-preload.so: probe/old_glibc.h

.PHONY: tarball
tarball:
	@mkdir -p $(PROBE_BUILD)
	$(CC) $(STRICT) -O2 -fPIC -include probe/old_glibc.h -c -o $(PROBE_BUILD)/old_glibc.o probe/old_glibc.c
	@$(MAKE) --no-print-directory -s -C $(SEGMENT_API) $(PROBE_FLAGS) $(PROBE_API:%=$(PROBE_BUILD)/%)
	@$(MAKE) --no-print-directory -s $(PROBE_FLAGS) $(PROBE_PROGRAMS:%=$(PROBE_BUILD)/%)
	probe/oldest-glibc 2.31 $(PROBE_FILES)
	rm -rf $(PROBE_BUILD)/$(PROBE_NAME)
	install -d $(PROBE_BUILD)/$(PROBE_NAME)/bin
	install -m 755 $(PROBE_FILES) $(PROBE_BUILD)/$(PROBE_NAME)/bin
	$(PROBE_STRIP) $(PROBE_BUILD)/$(PROBE_NAME)/bin/*
	install -m 755 probe/gpuseg $(PROBE_BUILD)/$(PROBE_NAME)
	install -m 644 probe/README.txt ../../LICENSE $(PROBE_BUILD)/$(PROBE_NAME)
	tar -C $(PROBE_BUILD) --sort=name --owner=0 --group=0 --numeric-owner --mtime=@$(PROBE_TIME) --mode=go=u-w \
		-c $(PROBE_NAME) | gzip -9n > $(BUILD)/$(PROBE_NAME).tar.gz.new
	mv $(BUILD)/$(PROBE_NAME).tar.gz.new $(BUILD)/$(PROBE_NAME).tar.gz
	@echo "$(BUILD)/$(PROBE_NAME).tar.gz"
