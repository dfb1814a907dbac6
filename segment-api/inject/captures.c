/* SPDX-License-Identifier: Apache-2.0 */
/* captures.c - streams that are being captured: for none of them the driver is called, nor for any other meanwhile. */
#include "captures.h"
#include "driver.h"
#include "inject.h"

static uintptr_t captures[CAPTURES_MAX];
unsigned int captures_open;

static void set_open(unsigned int count)
{
	__atomic_store_n(&captures_open, count, __ATOMIC_RELAXED);
}

bool captures_add(uintptr_t handle)
{
	if (captures_open == CAPTURES_MAX)
		return false;
	captures[captures_open] = handle;
	set_open(captures_open + 1);
	return true;
}

void captures_drop(uintptr_t handle)
{
	for (unsigned int i = 0; i < captures_open; i++) {
		if (captures[i] == handle) {
			captures[i] = captures[captures_open - 1];
			set_open(captures_open - 1);
			return;
		}
	}
}

void captures_check(void)
{
	for (unsigned int i = 0; i < captures_open; i++) {
		const uintptr_t handle = captures[i];
		int status = CAPTURE_STATUS_NONE;
		CUresult result;

		inject_unlock();
		result = driver.cuStreamIsCapturing((CUstream)handle, &status); /* NOLINT: a handle */
		inject_lock();
		if (result == CUDA_SUCCESS && status == CAPTURE_STATUS_NONE && i < captures_open &&
		    captures[i] == handle) {
			captures[i--] = captures[captures_open - 1];
			set_open(captures_open - 1);
		}
	}
}
