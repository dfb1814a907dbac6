/* SPDX-License-Identifier: Apache-2.0 */
/*
 * by_wrapper.c - follow calls by the wrappers that gpuseg-exec has preloaded (wrap/wrap.c).
 *
 * A call costs some tens of nanoseconds more. As soon as CUPTI has a subscriber, each kernel of a graph takes longer,
 * even if nothing is followed. What CUPTI would say, the current context and its number, the driver is asked for.
 */
#include <dlfcn.h>

#include "../src/internal.h"
#include "by_wrapper.h"
#include "calls.h"
#include "driver.h"
#include "inject.h"
#include "settings.h"
#include "wrap/wrap.h"

/* atomic: changes when contexts end, since the next one may have the same handle */
static uint32_t generation;

/* The latest context of the thread. */
static __thread struct {
	CUcontext handle;
	uint32_t uid;
	uint32_t generation;
} latest THREAD_MODEL;

static void find_context(struct wrapped_call *call)
{
	const uint32_t now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
	unsigned long long id = 0;
	CUcontext handle = NULL;

	if (identity.cuCtxGetCurrent(&handle) != CUDA_SUCCESS || !handle)
		return;
	if (unlikely(handle != latest.handle || latest.generation != now)) {
		if (identity.cuCtxGetId(handle, &id) != CUDA_SUCCESS)
			return;
		latest.handle = handle;
		latest.uid = (uint32_t)id;
		latest.generation = now;
	}
	call->context = handle;
	call->context_uid = latest.uid;
}

static struct call call_of(struct wrapped_call *call)
{
	return (struct call){.function = &functions[call->function],
			     .arguments = call->arguments,
			     .context = call->context,
			     .context_uid = call->context_uid,
			     .result = call->result,
			     .word = &call->word};
}

static void entered(struct wrapped_call *wrapped)
{
	struct call call;

	if (functions[wrapped->function].kind == OTHER || call_is_our_own())
		return;
	find_context(wrapped);
	call = call_of(wrapped);
	wrapped->followed = call_entered(&call);
}

static void left(struct wrapped_call *wrapped)
{
	const struct call call = call_of(wrapped);
	const uint8_t kind = call.function->kind;

	call_left(&call);
	if (kind == CONTEXT_DESTROY || kind == DEVICE_RESET)
		__atomic_fetch_add(&generation, 1, __ATOMIC_RELEASE);
}

bool wrappers_follow(const char **why)
{
	static const struct follower follower = {.entered = entered, .left = left};
	const struct wrap *wrap = wrappers();

	*why = NULL;
	if (!wrap)
		return false;
	*why = !identity.cuCtxGetId ? "the driver has no cuCtxGetId"
	       : !wrap->in_init()   ? "cuInit was not called through the preloaded wrappers"
				    : wrap->passed_by();
	if (*why)
		return false;
	wrap->follow(&follower);
	if (inject.settings.verbose)
		say("follows %d functions of the driver, by wrappers", FUNCTION_COUNT - 1);
	return true;
}

void wrappers_stop(void)
{
	const struct wrap *wrap = wrappers();

	if (wrap)
		wrap->follow(NULL);
}
