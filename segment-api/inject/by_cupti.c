/* SPDX-License-Identifier: Apache-2.0 */
/* by_cupti.c - follow calls by CUPTI's callbacks, or count those that the preloaded wrappers do not see. */
#include <string.h>

#include "../src/internal.h"
#include "by_cupti.h"
#include "driver.h"
#include "calls.h"
#include "cupti.h"
#include "inject.h"
#include "settings.h"
#include "wrap/wrap.h"

#define IDS_MAX 4096

/* By id of the callback; written before the first one comes. */
static const struct function *followed[IDS_MAX];

/* The parameters of cuLaunchKernel() and cuLaunchCooperativeKernel(), as CUPTI lays them out. */
struct launch {
	uintptr_t function;
	uint32_t shape[7];
	uintptr_t stream;
};
_Static_assert(offsetof(struct launch, stream) == 40, "natural alignment");

/* Those of cuLaunchGridAsync(). Of all other functions each parameter begins at a multiple of eight bytes. */
struct launch_grid {
	uintptr_t function;
	uint32_t width, height;
	uintptr_t stream;
};

#define ARGUMENTS_MAX 9

/* The arguments one by one; `room` is used if they do not lie so already. */
static const uintptr_t *arguments_of(const struct function *f, const void *parameters, uintptr_t room[ARGUMENTS_MAX])
{
	if (f->kind == LAUNCH_KERNEL) {
		const struct launch *launch = parameters;

		room[0] = launch->function;
		for (size_t i = 0; i < sizeof(launch->shape) / sizeof(launch->shape[0]); i++)
			room[1 + i] = launch->shape[i];
		room[8] = launch->stream;
		return room;
	}
	if (f == &functions[cuLaunchGridAsync_INDEX]) {
		const struct launch_grid *launch = parameters;

		room[0] = launch->function;
		room[3] = launch->stream;
		return room;
	}
	return parameters;
}

static void on_call(void *user, uint32_t domain, uint32_t id, const void *data)
{
	const struct cupti_call *seen = data;
	uintptr_t room[ARGUMENTS_MAX];
	struct call call;

	(void)user;
	if (domain != CUPTI_DOMAIN_DRIVER_API || id >= IDS_MAX || !followed[id] || call_is_our_own())
		return;
	call = (struct call){.function = followed[id],
			     .arguments = arguments_of(followed[id], seen->parameters, room),
			     .context = seen->context,
			     .context_uid = seen->context_uid,
			     .word = seen->correlation};
	if (seen->site == CUPTI_SITE_ENTER) {
		call_entered(&call);
	} else {
		call.result = *seen->result;
		call_left(&call);
	}
}

/* ---- what passes the wrappers by ---- */

static uint64_t calls_seen[FUNCTION_COUNT], passed_by[FUNCTION_COUNT]; /* atomic */
static pid_t watched; /* this process; 0 = none, and a child has another pid */

static void on_watched_call(void *user, uint32_t domain, uint32_t id, const void *data)
{
	const struct cupti_call *seen = data;
	const struct wrap *wrap = user;
	size_t index;

	if (domain != CUPTI_DOMAIN_DRIVER_API || id >= IDS_MAX || !followed[id] || seen->site != CUPTI_SITE_ENTER ||
	    call_is_our_own())
		return;
	index = (size_t)(followed[id] - functions);
	__atomic_fetch_add(&calls_seen[index], 1, __ATOMIC_RELAXED);
	if (!wrap->in_call())
		__atomic_fetch_add(&passed_by[index], 1, __ATOMIC_RELAXED);
}

void cupti_say_what_passed_by(void)
{
	uint64_t all = 0, lost = 0;

	if (watched != getpid())
		return;
	for (size_t i = 0; i < FUNCTION_COUNT; i++) {
		const uint64_t n = __atomic_load_n(&passed_by[i], __ATOMIC_RELAXED);

		all += __atomic_load_n(&calls_seen[i], __ATOMIC_RELAXED);
		lost += n;
		if (n)
			say("%llu calls of %s came by no wrapper", (unsigned long long)n, functions[i].name);
	}
	if (lost)
		say("%llu of %llu calls came by no wrapper: set GPUSEG_EXEC_CALLS=cupti for this program",
		    (unsigned long long)lost, (unsigned long long)all);
	else
		say("all %llu calls came by the wrappers", (unsigned long long)all);
}

/* ---- subscribing ---- */

static const struct function *function_named(const char *name)
{
	for (size_t i = 0; i < FUNCTION_COUNT; i++) {
		if (functions[i].kind != OTHER && strcmp(functions[i].name, name) == 0)
			return &functions[i];
	}
	return NULL;
}

static void *subscriber;

static bool subscribe(cupti_callback callback, const void *user)
{
	int result = cupti.cuptiSubscribe(&subscriber, callback, (void *)(uintptr_t)user);
	unsigned int enabled = 0, launches = 0;

	if (result != CUPTI_SUCCESS) {
		if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS)
			say("a profiler is attached already, and the driver allows one; runs unmanaged");
		else
			say("cuptiSubscribe failed with %d; runs unmanaged", result);
		return false;
	}
	for (uint32_t id = 1; id < IDS_MAX; id++) {
		const char *name;

		if (cupti.cuptiGetCallbackName(CUPTI_DOMAIN_DRIVER_API, id, &name) != CUPTI_SUCCESS || !name)
			continue;
		followed[id] = function_named(name);
		if (!followed[id])
			continue;
		if (cupti.cuptiEnableCallback(1, subscriber, CUPTI_DOMAIN_DRIVER_API, id) != CUPTI_SUCCESS) {
			followed[id] = NULL;
			continue;
		}
		enabled++;
		launches += followed[id]->kind == LAUNCH_KERNEL || followed[id]->kind == LAUNCH_EX;
	}
	if (!launches) {
		cupti.cuptiUnsubscribe(subscriber);
		say("libcupti knows no launch of a kernel; runs unmanaged");
		return false;
	}
	if (inject.settings.verbose)
		say("follows %u functions of the driver, by CUPTI", enabled);
	return true;
}

bool cupti_follow(void)
{
	return subscribe(on_call, NULL);
}

bool cupti_watch(void)
{
	if (!subscribe(on_watched_call, wrappers()))
		return false;
	watched = getpid();
	return true;
}
