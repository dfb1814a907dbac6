# SPDX-License-Identifier: Apache-2.0
# The C side of the nvidia mechanism: gpuseg-rm (a tool), the RM stand-in with its fake library and application (tests).
# Included by ../Makefile, or on its own: make -f rm/rm.mk rm-all, in rt-scheduler/native.
RM_BUILD ?= build
RM_CC ?= $(CC)
RM_CFLAGS ?= -std=c11 -O2 -g -Wall -Wextra -Werror
RM_API ?= ../../segment-api

RM_TARGETS := $(RM_BUILD)/gpuseg-rm $(RM_BUILD)/gpuseg-rm-standin $(RM_BUILD)/gpuseg-rm-app \
	$(RM_BUILD)/libgpuseg-rm-fake.so $(RM_BUILD)/libgpuseg-preload.so

.PHONY: rm-all
rm-all: $(RM_TARGETS)

$(RM_BUILD):
	mkdir -p $@

$(RM_BUILD)/gpuseg-rm: rm/rm_tool.c rm/gpuseg_rm.c rm/gpuseg_rm.h rm/rm_wire.h | $(RM_BUILD)
	$(RM_CC) $(RM_CFLAGS) -o $@ rm/rm_tool.c rm/gpuseg_rm.c

$(RM_BUILD)/gpuseg-rm-standin: rm/rm_standin.c rm/gpuseg_rm.h rm/rm_wire.h | $(RM_BUILD)
	$(RM_CC) $(RM_CFLAGS) -o $@ rm/rm_standin.c

$(RM_BUILD)/gpuseg-rm-app: rm/rm_app.c rm/rm_context.h rm/gpuseg_rm.h rm/rm_wire.h | $(RM_BUILD)
	$(RM_CC) $(RM_CFLAGS) -o $@ rm/rm_app.c -lpthread

$(RM_BUILD)/libgpuseg-rm-fake.so: rm/rm_fake.c rm/gpuseg_rm.h rm/rm_wire.h | $(RM_BUILD)
	$(RM_CC) $(RM_CFLAGS) -fPIC -fvisibility=hidden -shared -o $@ rm/rm_fake.c

# CUDA's driver API on the stand-in, under the name by which programs load it.
$(RM_BUILD)/standin/libcuda.so.1: rm/rm_cuda.c selftest/standin/runtime.c selftest/standin/runtime.h selftest/standin/runtime_fault.h selftest/spin.h rm/rm_context.h rm/gpuseg_rm.h rm/rm_wire.h
	@mkdir -p $(@D)
	$(RM_CC) $(RM_CFLAGS) -fPIC -fvisibility=hidden -shared -o $@ rm/rm_cuda.c selftest/standin/runtime.c

PRELOAD := $(RM_API)/preload
$(RM_BUILD)/libgpuseg-preload.so: $(wildcard $(PRELOAD)/*.c $(PRELOAD)/*.h) $(RM_API)/src/descriptor.c $(RM_API)/src/descriptor.h | $(RM_BUILD)
	$(RM_CC) $(RM_CFLAGS) $(SANITIZE) -fPIC -fvisibility=hidden -shared -o $@ $(filter %.c,$^) -ldl -lpthread
