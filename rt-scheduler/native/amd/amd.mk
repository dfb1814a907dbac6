# SPDX-License-Identifier: Apache-2.0
# Mechanism amd for tests: a fake KFD (preload library) and an application. Included by ../Makefile.
AMD_TARGETS := $(BUILD)/libgpuseg-amd-fake.so $(BUILD)/gpuseg-amd-app
AMD_FLAGS := -std=c11 -O2 -g -Wall -Wextra -Werror -I. -I$(KMOD_PATCH)/amdkfd/include

.PHONY: amd-all
amd-all: $(AMD_TARGETS)

$(BUILD)/libgpuseg-amd-fake.so: amd/amd_fake.c amd/gpuseg_amd.h amd/amd_state.h selftest/standin/gpu.h
	@mkdir -p $(@D)
	$(CC) $(AMD_FLAGS) -fPIC -fvisibility=hidden -shared -o $@ amd/amd_fake.c

$(BUILD)/gpuseg-amd-app: amd/amd_app.c amd/gpuseg_amd.h amd/amd_state.h
	@mkdir -p $(@D)
	$(CC) $(AMD_FLAGS) -o $@ amd/amd_app.c
