# SPDX-License-Identifier: Apache-2.0
# Mechanism tegra for tests: a fake nvgpu (preload library) and an application. Included by ../Makefile.
TEGRA_TARGETS := $(BUILD)/libgpuseg-tegra-fake.so $(BUILD)/gpuseg-tegra-app

.PHONY: tegra-all
tegra-all: $(TEGRA_TARGETS)

$(BUILD)/libgpuseg-tegra-fake.so: tegra/tegra_fake.c tegra/gpuseg_tegra.h tegra/tegra_state.h selftest/standin/gpu.h
	@mkdir -p $(@D)
	$(CC) -std=c11 -O2 -g -Wall -Wextra -Werror -I. -fPIC -fvisibility=hidden -shared -o $@ tegra/tegra_fake.c

$(BUILD)/gpuseg-tegra-app: tegra/tegra_app.c tegra/gpuseg_tegra.h tegra/tegra_state.h
	@mkdir -p $(@D)
	$(CC) -std=c11 -O2 -g -Wall -Wextra -Werror -o $@ tegra/tegra_app.c
