/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_page.h - gives orders to the agent of libgpuseg-preload.so in another process
 * (segment-api/preload/gpuseg_kfd_agent.h); AgentPage is the Java side. Nothing that the application writes is trusted:
 * the page is a sealed memory file of the right size, so an access cannot fault, and no length is read from it.
 */
#ifndef GPUSEG_AGENT_PAGE_H
#define GPUSEG_AGENT_PAGE_H

#include "preload/gpuseg_kfd_agent.h"

#include <stdbool.h>

/*
 * Maps the page of a process; `pidfd` is of the same process. 0; -ENOENT: no agent; -ESRCH: it has ended; another
 * -errno: access denied. Unmap the page with agent_page_close().
 */
int agent_page_open(int pid, int pidfd, struct gpuseg_kfd_agent **page);

void agent_page_close(struct gpuseg_kfd_agent *page);

/* Replaces the current order and wakes the agent. Returns the order. */
uint32_t agent_page_order(struct gpuseg_kfd_agent *page, unsigned slot, bool hold);

/*
 * Waits until the agent has followed this order, or another order has replaced it. 0, the agent's -errno, or -ETIMEDOUT
 * at `deadline_ns` (CLOCK_MONOTONIC).
 */
int agent_page_wait(struct gpuseg_kfd_agent *page, unsigned slot, uint32_t order, int64_t deadline_ns);

#endif
