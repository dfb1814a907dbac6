/* SPDX-License-Identifier: Apache-2.0 */
/* expected.c - wait until the daemon expects a begin. */
#include "internal.h"

#define EXPECTED_SINCE_MINOR 10
#define LOOK_NS (100 * NS_PER_MS) /* longest sleep: is there another daemon? */

/* Does the daemon of this connection say what it expects? */
static bool says_so(const struct gpuseg_client *client)
{
	return (__atomic_load_n(&client->session->version, __ATOMIC_ACQUIRE) & 0xffff) >= EXPECTED_SINCE_MINOR;
}

/*
 * The task's word, with the daemon asked to use it. The connection stays mapped until let_go(). NULL: the daemon says
 * nothing, or is lost and the task's thread has not switched to the next one.
 */
static const uint32_t *take(const gpuseg_task *task, struct gpuseg_client **client)
{
	const uint32_t *word = NULL;

	pthread_mutex_lock(&task->root->request_mutex);
	if (task->slot && says_so(task->client)) {
		struct gpuseg_slot *slot = task->slot;

		if (!__atomic_load_n(&slot->wants_expected, __ATOMIC_RELAXED))
			__atomic_store_n(&slot->wants_expected, 1, __ATOMIC_RELEASE);
		*client = task->client;
		(*client)->users++;
		word = &slot->expected;
	}
	pthread_mutex_unlock(&task->root->request_mutex);
	return word;
}

static void let_go(const gpuseg_task *task, struct gpuseg_client *client)
{
	pthread_mutex_lock(&task->root->request_mutex);
	client->users--;
	pthread_mutex_unlock(&task->root->request_mutex);
}

/* Sleep until the word changes, or until_ns. Lets the connection go. */
static uint32_t rest(const gpuseg_task *task, struct gpuseg_client *client, const uint32_t *word, uint32_t seen,
		     int64_t until_ns)
{
	uint32_t value = __atomic_load_n(word, __ATOMIC_ACQUIRE); /* pairs with the release in Session.expected */

	if (value == seen && now_ns() - until_ns < 0) {
		futex_wait(word, value, until_ns);
		value = __atomic_load_n(word, __ATOMIC_ACQUIRE);
	}
	let_go(task, client);
	return value;
}

int gpuseg_expected(const gpuseg_task *task, uint32_t *seen, int64_t timeout_ns)
{
	struct gpuseg_client *root = task->root;
	int64_t at_ns = now_ns();
	const int64_t until_ns = timeout_ns > INT64_MAX - at_ns ? INT64_MAX : at_ns + timeout_ns;

	if (timeout_ns < 0)
		return fail_with(root, -EINVAL, "task \"%s\": time to wait is %lld ns; give 0 or more", task->name,
				 (long long)timeout_ns);
	do {
		const int64_t look_ns = until_ns - at_ns < LOOK_NS ? until_ns : at_ns + LOOK_NS;
		struct gpuseg_client *client;
		const uint32_t *word;
		uint32_t value;

		if (!__atomic_load_n(root->own_process, __ATOMIC_RELAXED))
			return client_check(root, 0);
		word = take(task, &client);
		if (!word) {
			sleep_ns(look_ns - at_ns);
		} else if ((value = rest(task, client, word, *seen, look_ns)) != *seen) {
			*seen = value;
			return 0;
		}
		at_ns = now_ns();
	} while (at_ns - until_ns < 0);
	return -ETIMEDOUT;
}
