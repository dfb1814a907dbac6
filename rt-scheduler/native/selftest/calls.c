/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "checks.h"
#include "driver.h"

#include <errno.h>
#include <string.h>

/* After a call that did not return: another helper enables all and restores the slices, else the children end. */
static void recover(void)
{
	struct order order = {.code = ORDER_ATTACH};
	struct answer answer;
	bool given_back = helper_start() == 0;

	for (int i = 0; i < CHILDREN && given_back; i++) {
		if (!lives(&children[i]) || !children[i].attached)
			continue;
		order.child = i;
		order.pid = children[i].pid;
		order.argument = children[i].own_us;
		given_back = helper_call(&order, &answer) == 0;
	}
	order.code = ORDER_GIVE_BACK;
	given_back = given_back && helper_call(&order, &answer) == 0 && answer.status == 0;
	for (int i = 0; i < CHILDREN && !given_back; i++)
		end_child(&children[i], NULL);
}

int call(enum order_code code, int child, uint64_t argument, struct answer *answer)
{
	const struct order order = {.code = code, .child = child, .pid = children[child].pid, .argument = argument};
	int rc;

	*answer = (struct answer){0};
	if (over[0])
		return -ECANCELED;
	rc = helper_call(&order, answer);
	if (rc == -ETIMEDOUT || rc == -EPIPE) {
		give_up(rc == -ETIMEDOUT ? "a call of the driver did not return" : "the helper died in a call");
		recover();
	}
	return rc;
}

static const char *status_text(int64_t status)
{
	static char text[96];

	if (status < 0)
		snprintf(text, sizeof(text), "%s", strerror((int)-status));
	else
		snprintf(text, sizeof(text), "RM status 0x%x%s", (unsigned)status,
			 status == 0x56 ? ", not supported" : "");
	return text;
}

static bool is_unsupported(int64_t status)
{
	return status == 0x56 || (!driver->gsp && (status == -ENOTTY || status == -EOPNOTSUPP));
}

void refused(enum row_id row, const char *what, int rc, int64_t status)
{
	if (rc != 0)
		row_set(row, DOES_NOT, "", "%s: %s", what, over[0] ? over : strerror(-rc));
	else
		row_set(row, is_unsupported(status) ? NOT_SUPPORTED : DOES_NOT, "", "%s: %s", what,
			status_text(status));
}
