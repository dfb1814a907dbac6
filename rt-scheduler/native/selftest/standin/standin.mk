# SPDX-License-Identifier: Apache-2.0
# The GPU behind the stand-ins of nvgpu and KFD, and the runtimes on it. Included by ../../Makefile.
SELFTEST_STANDINS := $(BUILD)/gpuseg-gpu-standin $(BUILD)/standin/tegra/libcuda.so.1 $(BUILD)/standin/amd/libamdhip64.so
SELFTEST_STANDIN_FLAGS := -std=c11 -O2 -g -Wall -Wextra -Werror -I.
SELFTEST_STANDIN_DEPENDS := selftest/standin/gpu.h selftest/standin/runtime_fault.h selftest/spin.h

.PHONY: selftest-standin
selftest-standin: $(SELFTEST_STANDINS)

$(BUILD)/gpuseg-gpu-standin: selftest/standin/gpu.c $(SELFTEST_STANDIN_DEPENDS)
	@mkdir -p $(@D)
	$(CC) $(SELFTEST_STANDIN_FLAGS) -o $@ selftest/standin/gpu.c

$(BUILD)/standin/tegra/libcuda.so.1: selftest/standin/runtime.c tegra/gpuseg_tegra.h tegra/tegra_state.h $(SELFTEST_STANDIN_DEPENDS)
	@mkdir -p $(@D)
	$(CC) $(SELFTEST_STANDIN_FLAGS) -fPIC -fvisibility=hidden -shared -o $@ selftest/standin/runtime.c

$(BUILD)/standin/amd/libamdhip64.so: selftest/standin/runtime.c $(SELFTEST_STANDIN_DEPENDS)
	@mkdir -p $(@D)
	$(CC) $(SELFTEST_STANDIN_FLAGS) -DRUNTIME_HIP -fPIC -fvisibility=hidden -shared -o $@ selftest/standin/runtime.c -lpthread
