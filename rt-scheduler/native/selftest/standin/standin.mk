# SPDX-License-Identifier: Apache-2.0
# The GPU behind the stand-ins of nvgpu and KFD, and the runtimes on it. Included by ../../Makefile.
SELFTEST_STANDINS := $(BUILD)/gpuseg-gpu-standin $(BUILD)/standin/tegra/libcuda.so.1 $(BUILD)/standin/amd/libamdhip64.so
SELFTEST_STANDIN_FLAGS := -std=c11 -O2 -g -Wall -Wextra -Werror -I.
RUNTIME_DEPENDS := selftest/standin/runtime.c selftest/standin/runtime.h selftest/standin/runtime_fault.h selftest/spin.h
RUNTIME_GROUP := selftest/standin/runtime.c selftest/standin/runtime_group.c

.PHONY: selftest-standin
selftest-standin: $(SELFTEST_STANDINS)

$(BUILD)/gpuseg-gpu-standin: selftest/standin/gpu.c selftest/standin/gpu.h
	@mkdir -p $(@D)
	$(CC) $(SELFTEST_STANDIN_FLAGS) -o $@ selftest/standin/gpu.c

$(BUILD)/standin/tegra/libcuda.so.1: $(RUNTIME_GROUP) selftest/standin/gpu.h tegra/gpuseg_tegra.h tegra/tegra_state.h $(RUNTIME_DEPENDS)
	@mkdir -p $(@D)
	$(CC) $(SELFTEST_STANDIN_FLAGS) -fPIC -fvisibility=hidden -shared -o $@ $(RUNTIME_GROUP)

$(BUILD)/standin/amd/libamdhip64.so: $(RUNTIME_GROUP) selftest/standin/gpu.h $(RUNTIME_DEPENDS)
	@mkdir -p $(@D)
	$(CC) $(SELFTEST_STANDIN_FLAGS) -DRUNTIME_HIP -fPIC -fvisibility=hidden -shared -o $@ $(RUNTIME_GROUP) -lpthread
