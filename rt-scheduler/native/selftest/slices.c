/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "checks.h"
#include "driver.h"

#include <errno.h>

#define RATIO_MIN 2.5 /* 8 is asked for */
#define RATIO_NS (300 * NS_PER_MS)
#define RATIO_LIMIT_NS (20 * NS_PER_S)
#define BEGINS 20
#define LONG_KERNEL 10 /* short ones */

/*
 * Kernels of a for each of b, over the time between two looks in which neither can have run out of work, had it had the
 * GPU alone at twice the speed; 0 = there was too little of it.
 */
static double ratio(void)
{
	struct child *a = &children[CHILD_A], *b = &children[CHILD_B];
	const int64_t kernel_ns = a->page->kernel_ns > 0 ? a->page->kernel_ns : 1;
	uint64_t sum_a = 0, sum_b = 0;
	int64_t sum_ns = 0;
	const int64_t from_ns = now_ns();

	nap(50 * NS_PER_MS); /* slices of before have ended */
	while ((sum_ns < RATIO_NS || sum_a + sum_b < 10 * PROGRESS) && now_ns() - from_ns < RATIO_LIMIT_NS &&
	       all_live()) {
		const uint64_t had_a = queued(a), had_b = queued(b), least = had_a < had_b ? had_a : had_b;
		const uint64_t first_a = count_of(a), first_b = count_of(b);
		const int64_t look_ns = now_ns();

		nap(LOOK_NS);
		const uint64_t more_a = count_of(a) - first_a, more_b = count_of(b) - first_b;
		const int64_t passed_ns = now_ns() - look_ns;

		if (least < 2 * (uint64_t)(passed_ns / kernel_ns) + 4)
			continue;
		sum_a += more_a;
		sum_b += more_b;
		sum_ns += passed_ns;
	}
	return sum_a + sum_b < 10 * PROGRESS ? 0 : (double)sum_a / (double)(sum_b ? sum_b : 1);
}

bool set_slice(int i, uint64_t us)
{
	struct answer answer;
	int rc = call(ORDER_SLICE, i, us, &answer);

	if (rc != 0 || answer.status != 0) {
		if (rc != -EINTR)
			refused(ROW_SLICE, "set", rc, answer.status);
		return false;
	}
	series_add(SERIES_SET_SLICE, answer.took_ns);
	rc = call(ORDER_GET_SLICE, i, 0, &answer);
	if (rc != 0 || answer.status != 0) {
		if (rc != -EINTR)
			refused(ROW_SLICE, "query", rc, answer.status);
		return false;
	}
	if (answer.value != us) {
		row_set(ROW_SLICE, DOES_NOT, "", "success, but asked for %llu us the driver tells %llu",
			(unsigned long long)us, (unsigned long long)answer.value);
		return false;
	}
	return true;
}

static bool own_slices(void)
{
	bool same = true;

	for (int i = 0; i < CHILDREN; i++)
		if (children[i].own_us)
			same = set_slice(i, children[i].own_us) && same;
	return same;
}

void check_slices(void)
{
	double long_a, long_b;
	char value[96];

	if (over[0] || driver->long_us == 0)
		return;
	if (children[CHILD_A].own_us == 0 || children[CHILD_B].own_us == 0) {
		row_set(ROW_SLICE, DOES_NOT, "", "the driver does not tell a child's own, so none is changed");
		return;
	}
	if (!set_slice(CHILD_A, driver->long_us) || !set_slice(CHILD_B, driver->short_us)) {
		own_slices();
		return;
	}
	long_a = ratio();
	if (!set_slice(CHILD_A, driver->short_us) || !set_slice(CHILD_B, driver->long_us)) {
		own_slices();
		return;
	}
	long_b = ratio();
	if (!own_slices() || over[0] || stopping)
		return;
	snprintf(value, sizeof(value), "own: %llu us", (unsigned long long)children[CHILD_A].own_us);
	row_set(ROW_SLICE, WORKS, value, "set, asked for and given back");
	snprintf(value, sizeof(value), "a:b %.1f at %u:%u us, %.2f at %u:%u", long_a, driver->long_us, driver->short_us,
		 long_b, driver->short_us, driver->long_us);
	if (long_a == 0 || long_b == 0)
		row_set(ROW_SLICE_HOLDS, SKIPPED, value, "the machine was too busy to keep work queued; run it again");
	else if (long_a < RATIO_MIN * RATIO_MIN * long_b)
		row_set(ROW_SLICE_HOLDS, DOES_NOT, value, "success, but the shares of the GPU do not follow them");
	else
		row_set(ROW_SLICE_HOLDS, WORKS, value, "the shares of the GPU follow them");
}

/* So long a short kernel of child a takes; < 0: it did not end. With the call: b is disabled meanwhile. */
static int64_t begin(bool with_call)
{
	static uint32_t request;
	struct child_page *page = children[CHILD_A].page;
	const int64_t limit_ns = now_ns() + PROGRESS_LIMIT_NS;
	struct answer answer;

	__atomic_store_n(&page->request, ++request, __ATOMIC_RELEASE);
	if (with_call && (call(ORDER_SWITCH, CHILD_B, 1, &answer) != 0 || answer.status != 0))
		return -1;
	while (__atomic_load_n(&page->answered, __ATOMIC_ACQUIRE) != request && now_ns() < limit_ns && all_live())
		nap(LOOK_NS);
	if (with_call && (call(ORDER_SWITCH, CHILD_B, 0, &answer) != 0 || answer.status != 0))
		return -1;
	return __atomic_load_n(&page->answered, __ATOMIC_ACQUIRE) == request ? page->took_ns : -1;
}

static bool begins(enum series_id series)
{
	for (int n = 0; n < BEGINS && !stopping; n++) {
		const int64_t took_ns = begin(series == SERIES_BEGIN_CALL);

		if (took_ns < 0)
			return false;
		series_add(series, took_ns);
		nap((4 + n * 7 % 9) * NS_PER_MS); /* in another phase of the other's slice */
	}
	return true;
}

void check_begin(void)
{
	const bool can_disable = report.rows[ROW_DISABLE].verdict == WORKS && report.rows[ROW_ENABLE].verdict == WORKS;
	const bool can_slice = report.rows[ROW_SLICE].verdict == WORKS;
	struct child *b = &children[CHILD_B];
	char value[96];
	bool ended;

	if (over[0] || (!can_slice && !can_disable))
		return;
	set_mode(&children[CHILD_A], CHILD_IDLE, 1);
	set_mode(b, CHILD_IDLE, 1);
	ended = begins(SERIES_BEGIN_ALONE);
	set_mode(b, CHILD_ENDLESS, LONG_KERNEL);
	ended = ended && progresses(b, 2) && begins(SERIES_BEGIN_DRIVER);
	if (ended && can_slice)
		ended = set_slice(CHILD_A, driver->whole_us) && set_slice(CHILD_B, driver->short_us) &&
			begins(SERIES_BEGIN_SLICES);
	if (ended && can_disable)
		ended = begins(SERIES_BEGIN_CALL);
	if (can_slice)
		ended = own_slices() && ended;
	for (int i = 0; i < CHILDREN; i++)
		set_mode(&children[i], CHILD_ENDLESS, 1);
	if (stopping || over[0])
		return;
	snprintf(value, sizeof(value), "max ms: alone %.2f, %s %.2f, call %.2f",
		 series_quantile(SERIES_BEGIN_ALONE, 1) / 1e3, driver->long_us ? "slices" : "beside",
		 series_quantile(driver->long_us ? SERIES_BEGIN_SLICES : SERIES_BEGIN_DRIVER, 1) / 1e3,
		 series_quantile(SERIES_BEGIN_CALL, 1) / 1e3);
	if (ended)
		row_set(ROW_BEGIN, WORKS, value, "beside endless kernels; as the driver shares the GPU %.2f",
			series_quantile(SERIES_BEGIN_DRIVER, 1) / 1e3);
	else
		row_set(ROW_BEGIN, DOES_NOT, value, "a short kernel beside endless ones did not end, or a call failed");
}
