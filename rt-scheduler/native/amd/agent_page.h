/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_page.h - orders to the agent of libgpuseg-preload.so (segment-api/preload/gpuseg_kfd_agent.h), from outside.
 * The Java side is dev.gpuseg.mechanisms.amd.AgentPage. Nothing that the application writes is trusted: the page
 * is a sealed memory file of the right size, so reading and writing it cannot fault, and no length is read from it.
 */
#ifndef GPUSEG_AGENT_PAGE_H
#define GPUSEG_AGENT_PAGE_H

#include "preload/gpuseg_kfd_agent.h"

#include <stdbool.h>

/*
 * Maps the page of a process; `pidfd` is of the same. 0, -ENOENT: it has none; -ESRCH: it is gone; another -errno: it
 * may not be looked at. For agent_page_close().
 */
int agent_page_open(int pid, int pidfd, struct gpuseg_kfd_agent **page);

void agent_page_close(struct gpuseg_kfd_agent *page);

/* Gives a new order in place of the one that stands there, and wakes the agent. Returns the order. */
uint32_t agent_page_order(struct gpuseg_kfd_agent *page, unsigned slot, bool hold);

/*
 * Waits until the agent followed this order or somebody gave another one. 0, the agent's -errno, or -ETIMEDOUT at
 * `deadline_ns` (CLOCK_MONOTONIC).
 */
int agent_page_wait(struct gpuseg_kfd_agent *page, unsigned slot, uint32_t order, int64_t deadline_ns);

#endif
