/* SPDX-License-Identifier: Apache-2.0 */
/*
 * standin_cupti.c - CUPTI's callback interface on the stand-in of the driver. STANDIN_CUPTI_VERSION: what it says it
 * is. STANDIN_CUPTI_BUSY: there is a subscriber already.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "standin.h"

#define ERROR_INVALID_PARAMETER 1

static cupti_callback callback;
static void *user_data;
static bool enabled[CALL_END]; /* atomic */

STANDIN int cuptiGetVersion(uint32_t *version);
STANDIN int cuptiSubscribe(void **subscriber, cupti_callback function, void *user);
STANDIN int cuptiUnsubscribe(void *subscriber);
STANDIN int cuptiEnableCallback(uint32_t enable, void *subscriber, uint32_t domain, uint32_t id);
STANDIN int cuptiGetCallbackName(uint32_t domain, uint32_t id, const char **name);

static void trace(enum standin_call call, struct cupti_call *data)
{
	if (__atomic_load_n(&enabled[call], __ATOMIC_ACQUIRE))
		callback(user_data, CUPTI_DOMAIN_DRIVER_API, call, data);
}

int cuptiGetVersion(uint32_t *version)
{
	const char *text = getenv("STANDIN_CUPTI_VERSION");

	*version = text ? (uint32_t)strtoul(text, NULL, 10) : 130001;
	return CUPTI_SUCCESS;
}

int cuptiSubscribe(void **subscriber, cupti_callback function, void *user)
{
	if (getenv("STANDIN_CUPTI_BUSY") || callback)
		return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS;
	callback = function;
	user_data = user;
	*subscriber = &callback;
	standin_trace(trace);
	return CUPTI_SUCCESS;
}

int cuptiUnsubscribe(void *subscriber)
{
	if (subscriber != &callback)
		return ERROR_INVALID_PARAMETER;
	standin_trace(NULL);
	return CUPTI_SUCCESS;
}

int cuptiEnableCallback(uint32_t enable, void *subscriber, uint32_t domain, uint32_t id)
{
	if (subscriber != &callback || domain != CUPTI_DOMAIN_DRIVER_API || id >= CALL_END)
		return ERROR_INVALID_PARAMETER;
	__atomic_store_n(&enabled[id], enable != 0, __ATOMIC_RELEASE);
	return CUPTI_SUCCESS;
}

int cuptiGetCallbackName(uint32_t domain, uint32_t id, const char **name)
{
	*name = domain == CUPTI_DOMAIN_DRIVER_API ? standin_call_name(id) : NULL;
	return *name ? CUPTI_SUCCESS : ERROR_INVALID_PARAMETER;
}
