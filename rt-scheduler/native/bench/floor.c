/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "floor.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench/pace.h"
#include "common/base.h"
#include "gpuseg_abi.h"

#define STOP UINT32_MAX

/* One writer per line, as in the session: request and reply must not share a line. */
static struct {
	_Alignas(GPUSEG_CACHE_LINE) uint32_t request; /* W measuring thread (release), R peer (acquire) */
	_Alignas(GPUSEG_CACHE_LINE) uint32_t reply;   /* W peer (release), R measuring thread (acquire); futex */
	_Alignas(GPUSEG_CACHE_LINE) uint32_t waiting; /* W measuring thread, R peer */
	_Alignas(GPUSEG_CACHE_LINE) int peer_error;   /* W peer before its first reply */
} line;

struct peer {
	const struct floor_setting *setting;
};

static void *answer(void *argument)
{
	const struct floor_setting *setting = ((const struct peer *)argument)->setting;
	uint32_t seen = 0;

	line.peer_error = pin_to_cpu(setting->peer_cpu);
	for (;;) {
		uint32_t request;

		while ((request = __atomic_load_n(&line.request, __ATOMIC_ACQUIRE)) == seen)
			relax();
		if (request == STOP)
			return NULL;
		seen = request;
		__atomic_store_n(&line.reply, request, __ATOMIC_RELEASE);
		if (!setting->futex)
			continue;
		/* Store, then look (ADR 30): either the sleeper sees the reply, or this load sees that it waits. */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (__atomic_load_n(&line.waiting, __ATOMIC_RELAXED))
			syscall(SYS_futex, &line.reply, FUTEX_WAKE, 1, NULL, NULL, 0);
	}
}

static void await(uint32_t round, bool futex)
{
	if (!futex) {
		while (__atomic_load_n(&line.reply, __ATOMIC_ACQUIRE) != round)
			relax();
		return;
	}
	__atomic_store_n(&line.waiting, 1, __ATOMIC_SEQ_CST);
	for (uint32_t reply; (reply = __atomic_load_n(&line.reply, __ATOMIC_SEQ_CST)) != round;)
		syscall(SYS_futex, &line.reply, FUTEX_WAIT, reply, NULL, NULL, 0);
	__atomic_store_n(&line.waiting, 0, __ATOMIC_RELAXED);
}

int measure_floor(const struct floor_setting *setting, struct latencies *latencies)
{
	struct peer peer = {setting};
	pthread_t thread;
	int rc = pin_to_cpu(setting->cpu);

	if (rc != 0)
		return rc;
	line.request = line.reply = line.waiting = 0;
	rc = -pthread_create(&thread, NULL, answer, &peer);
	if (rc != 0)
		return rc;
	for (size_t i = 0; i < setting->warmup + latencies->capacity && rc == 0; i++) {
		/* Any two neighbouring rounds differ, and none is STOP or the initial 0. */
		const uint32_t round = (uint32_t)(i % 0x7fffffff) + 1;
		const int64_t begin_ns = now_ns();

		__atomic_store_n(&line.request, round, __ATOMIC_RELEASE);
		await(round, setting->futex);
		const int64_t end_ns = now_ns();
		if (i >= setting->warmup)
			latencies_add(latencies, end_ns - begin_ns);
		rc = line.peer_error;
		spin_until(end_ns + setting->pace_ns);
	}
	__atomic_store_n(&line.request, STOP, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	return rc;
}
