/* SPDX-License-Identifier: Apache-2.0 */
/* thread.h - what the library's own thread does: connects, opens tasks, sees to it that segments end. */
#ifndef GPUSEG_INJECT_THREAD_H
#define GPUSEG_INJECT_THREAD_H

void *thread_run(void *unused);

#endif /* GPUSEG_INJECT_THREAD_H */
