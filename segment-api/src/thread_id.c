/* SPDX-License-Identifier: Apache-2.0 */
/* thread_id.c - who calls. */
#include "internal.h"

static __thread uint32_t cached_thread_id THREAD_MODEL;

void thread_id_forked(void)
{
	cached_thread_id = 0;
}

uint32_t thread_id(void)
{
	if (unlikely(!cached_thread_id))
		cached_thread_id = (uint32_t)syscall(SYS_gettid);
	return cached_thread_id;
}
