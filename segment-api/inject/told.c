/* SPDX-License-Identifier: Apache-2.0 */
/* told.c - what this library's own copy of libgpuseg tells, in place of ../src/by_hand.c. */
#include "../src/internal.h"
#include "settings.h"

/* The tasks that this library opens are no marks of the program. */
void tell_injection(void)
{
}

/* No call of the program can return an error of ours, so this says it. */
void tell_disowned(void)
{
	static uint32_t said;

	if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
		say("the program has closed descriptors that it did not open; connects again (said once)");
}
