/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorder.c - a libcuda.so.1 that notes with which arguments each followed function is called, for test_wrap. It is
 * generated from the table of these functions, so it has all of them, with exactly as many parameters.
 */
#include <stdlib.h>
#include <string.h>

#include "recorder.h"

struct recorded recorded;

static int note(enum function_index index, size_t count, const uintptr_t *arguments)
{
	recorded.function = index;
	recorded.count = count;
	memcpy(recorded.arguments, arguments, count * sizeof(*arguments));
	return RECORDED_RESULT + (int)index;
}

#define W uintptr_t
#define PARAMETERS_0 (void)
#define PARAMETERS_1 (W a)
#define PARAMETERS_2 (W a, W b)
#define PARAMETERS_3 (W a, W b, W c)
#define PARAMETERS_4 (W a, W b, W c, W d)
#define PARAMETERS_5 (W a, W b, W c, W d, W e)
#define PARAMETERS_6 (W a, W b, W c, W d, W e, W f)
#define PARAMETERS_8 (W a, W b, W c, W d, W e, W f, W g, W h)
#define PARAMETERS_9 (W a, W b, W c, W d, W e, W f, W g, W h, W i)
#define PARAMETERS_10 (W a, W b, W c, W d, W e, W f, W g, W h, W i, W j)
#define PARAMETERS_11 (W a, W b, W c, W d, W e, W f, W g, W h, W i, W j, W k)
#define VALUES_0 0
#define VALUES_1 a
#define VALUES_2 a, b
#define VALUES_3 a, b, c
#define VALUES_4 a, b, c, d
#define VALUES_5 a, b, c, d, e
#define VALUES_6 a, b, c, d, e, f
#define VALUES_8 a, b, c, d, e, f, g, h
#define VALUES_9 a, b, c, d, e, f, g, h, i
#define VALUES_10 a, b, c, d, e, f, g, h, i, j
#define VALUES_11 a, b, c, d, e, f, g, h, i, j, k

#define RECORD_CALL(name, n)                                                                                           \
	RECORDER int name PARAMETERS_##n;                                                                              \
	int name PARAMETERS_##n                                                                                        \
	{                                                                                                              \
		const uintptr_t arguments[] = {VALUES_##n};                                                            \
		return note(name##_INDEX, n, arguments);                                                               \
	}
#define RECORD_ONCE(name, n, ...) RECORD_CALL(name, n)
#define RECORD_PTSZ(name, n, ...) RECORD_CALL(name, n) RECORD_CALL(name##_ptsz, n)
#define RECORD_PTDS(name, n, ...) RECORD_CALL(name, n) RECORD_CALL(name##_ptds, n)
FOLLOWED_FUNCTIONS(RECORD_ONCE, RECORD_PTSZ, RECORD_PTDS)

#define ADDRESS_ONCE(name, ...) [name##_INDEX] = (void *)(name),
#define ADDRESS_PTSZ(name, ...) ADDRESS_ONCE(name) ADDRESS_ONCE(name##_ptsz)
#define ADDRESS_PTDS(name, ...) ADDRESS_ONCE(name) ADDRESS_ONCE(name##_ptds)
void *const recorder_functions[FUNCTION_COUNT] = {FOLLOWED_FUNCTIONS(ADDRESS_ONCE, ADDRESS_PTSZ, ADDRESS_PTDS)};

int cuDriverGetVersion(int *version)
{
	*version = 13000;
	return 0;
}

/* By the full name. RECORDER_NEW_FORM: a function that has an address of its own, as a form newer than the table. */
int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, void *status)
{
	(void)version;
	(void)flags;
	(void)status;
	if (getenv("RECORDER_NEW_FORM") && strcmp(getenv("RECORDER_NEW_FORM"), symbol) == 0) {
		*function = (void *)cuDriverGetVersion;
		return 0;
	}
	if (strcmp(symbol, "cuGetProcAddress") == 0) {
		*function = (void *)cuGetProcAddress_v2;
		return 0;
	}
	*function = NULL;
	for (size_t i = 0; i < FUNCTION_COUNT && !*function; i++) {
		if (strcmp(functions[i].name, symbol) == 0)
			*function = recorder_functions[i];
	}
	return *function ? 0 : 500;
}

int cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
	return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}
