/* SPDX-License-Identifier: Apache-2.0 */
/*
 * held.c - launches that the daemon holds.
 *
 * While other work has the GPU, the daemon sets the word `hold` of this process (gpuseg_abi.h), and launches wait at
 * their entry. What is queued already runs on, so best effort has a bound on its work in flight where nothing else
 * preempts it: flight.c.
 *
 * The word does not count while the daemon is silent, nor after it has dropped this process. A launch that has waited
 * for settings.wait_ns goes on, and the process runs unmanaged for a minute.
 */
#include "../src/internal.h"
#include "gpu.h"
#include "held.h"
#include "inject.h"
#include "threads.h"

#define HELD_STEP_NS (20 * NS_PER_MS) /* longest sleep before a look whether the daemon is alive */
#define LEVEL_DEACTIVATE 2
/* In flight while nobody waits for it: the GPU idles when it has ended, and so seldom. The first begins of a task that
 * just opened meet it: each waits for 50 ms at most. */
#define RELAXED_NS (200 * NS_PER_MS)

_Static_assert(GPUSEG_HOLD_SILENCE_NS >= 2 * HELD_STEP_NS, "the daemon's heartbeat comes every 20 ms");

/* The word of the GPU if it says to wait, else NULL. Lock held, and so the session stays mapped. */
static const uint32_t *waits(const struct gpu *gpu)
{
	const gpuseg_task *task = gpu->task;
	const uint32_t *word;

	if (!task || !task->slot || (unsigned int)gpu->index >= GPUSEG_GPUS_MAX)
		return NULL;
	word = &task->client->session->hold[gpu->index];
	/* acquire; pairs with the release of LaunchHold */
	return likely(__atomic_load_n(word, __ATOMIC_ACQUIRE) != GPUSEG_HOLD_WAIT) ? NULL : word;
}

/* Does the word count? Real-time work is held where nothing else can preempt it. */
static bool counts(const struct gpu *gpu, int64_t at_ns)
{
	const gpuseg_client *client = gpu->task->client;

	if (inject.settings.priority > 0 && client->status->mechanism_level >= LEVEL_DEACTIVATE)
		return false;
	return gpu->unmanaged_until_ns - at_ns <= 0 && !__atomic_load_n(&client->lost, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&client->session->poisoned, __ATOMIC_ACQUIRE) &&
	       at_ns - __atomic_load_n(&client->status->heartbeat_ns, __ATOMIC_ACQUIRE) <= GPUSEG_HOLD_SILENCE_NS;
}

static bool follows(void)
{
	return is_active() && !__atomic_load_n(&inject.by_hand, __ATOMIC_ACQUIRE);
}

bool held_now(const struct gpu *gpu)
{
	return waits(gpu) != NULL;
}

bool held_wait(struct gpu *gpu)
{
	const uint32_t *word = waits(gpu);
	int64_t begin_ns, at_ns;

	if (likely(!word))
		return true;
	begin_ns = at_ns = now_ns();
	gpu->held++;
	while (gpu->segment.state == SEGMENT_OPEN && follows() && (word = waits(gpu)) && counts(gpu, at_ns)) {
		if (at_ns - begin_ns >= inject.settings.wait_ns) {
			gpu_give_up(gpu, "a launch was not let go");
			break;
		}
		inject_unlock();
		/* If the session is unmapped meanwhile, the kernel says so, and the loop looks at the new one. */
		futex_wait(word, GPUSEG_HOLD_WAIT, at_ns + HELD_STEP_NS);
		inject_lock();
		at_ns = now_ns();
	}
	gpu->held--;
	thread_wake_later(); /* the library's thread did not see to the end of the segment meanwhile */
	return gpu->segment.state == SEGMENT_OPEN;
}

int64_t held_bound(const struct gpu *gpu)
{
	const struct gpuseg_status *status;
	const int64_t bound_ns = inject.settings.bound_ns;

	if (!gpu->segment.marked || inject.settings.priority > 0)
		return 0;
	status = gpu->task->client->status;
	if (!status->holds_launches || status->mechanism_level >= LEVEL_DEACTIVATE)
		return 0;
	return bound_ns > 0 && bound_ns < RELAXED_NS && __atomic_load_n(&status->nobody_waits, __ATOMIC_ACQUIRE)
		       ? RELAXED_NS
		       : bound_ns;
}
