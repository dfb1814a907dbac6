/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSEG_BENCH_PACE_H
#define GPUSEG_BENCH_PACE_H

#include "common/base.h"

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
	__asm__ volatile("yield");
#endif
}

static inline void spin_until(int64_t time_ns)
{
	while (now_ns() < time_ns)
		relax();
}

#endif /* GPUSEG_BENCH_PACE_H */
