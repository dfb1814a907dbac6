/* SPDX-License-Identifier: Apache-2.0 */
/* test_co_run.c - the budget of work beside the highest stream, against times that an adversary chooses. */
#include "../inject/co_run.h"
#include "check.h"

#define MS INT64_C(1000000)

static unsigned int seed = 20261123;

TEST(should_let_nothing_run_beside_jobs_until_the_time_alone_is_known)
{
	struct co_run c = {.job = 0};

	for (int job = 0; job < 8; job++) {
		CHECK(!co_run_begin(&c), "job %d", job);
		co_run_end(&c, 10, MS, false);
	}
	CHECK_EQ(c.alone_ns, MS);
}

/* Whatever the jobs take: what they took longer stays below what the budget allows, but for one of them. */
TEST(should_keep_the_budget_whatever_is_measured)
{
	for (int round = 0; round < 300; round++) {
		const unsigned int percent = 1 + (unsigned int)rand_r(&seed) % 100;
		const int64_t slow = 1 + rand_r(&seed) % 50;
		int64_t allowed = 0, excess = 0, largest = 0;
		struct co_run c = {.job = 0};

		for (int job = 0; job < 3000; job++) {
			const bool beside = co_run_begin(&c) && rand_r(&seed) % 8;
			int64_t took = MS;

			if (beside && rand_r(&seed) % 3 == 0)
				took = MS * (1 + rand_r(&seed) % slow);
			co_run_end(&c, percent, took, beside);
			allowed += MS * percent / 100;
			if (beside) {
				excess += took - MS;
				if (took - MS > largest)
					largest = took - MS;
			}
			CHECK(excess <= allowed + largest, "%lld of %lld", (long long)excess, (long long)allowed);
		}
	}
}

TEST(should_run_beside_most_jobs_if_that_costs_little)
{
	struct co_run c = {.job = 0};
	int beside = 0;

	for (int job = 0; job < 640; job++) {
		const bool may = co_run_begin(&c);

		beside += may;
		co_run_end(&c, 10, may ? MS + MS / 20 : MS, may);
	}
	CHECK(beside > 540, "%d of 640", beside);
	CHECK_EQ(c.unfit, 0);
}

TEST(should_try_ever_more_rarely_what_costs_too_much)
{
	struct co_run c = {.job = 0};
	int first = 0, second = 0;

	for (int job = 0; job < 10000; job++) {
		const bool may = co_run_begin(&c);

		*(job < 1000 ? &first : &second) += may;
		co_run_end(&c, 10, may ? 3 * MS : MS, may);
	}
	CHECK(first >= 2 && first <= 8, "%d of 1000", first);
	CHECK(second >= 1 && second <= 6, "%d of 9000", second);
	CHECK_EQ((int)c.unfit, first + second - 1);
}

TEST(should_follow_a_job_that_takes_another_time_now)
{
	struct co_run c = {.job = 0};
	int beside = 0;

	for (int job = 0; job < 2000; job++) {
		const int64_t alone = job < 500 ? MS : 4 * MS;
		const bool may = co_run_begin(&c);

		beside += job >= 1500 && may;
		co_run_end(&c, 10, may ? alone + alone / 50 : alone, may);
	}
	CHECK_EQ(c.alone_ns, 4 * MS);
	CHECK(beside > 300, "%d of 500", beside);
}

static const struct check_case cases[] = {
	CASE(should_let_nothing_run_beside_jobs_until_the_time_alone_is_known),
	CASE(should_keep_the_budget_whatever_is_measured),
	CASE(should_run_beside_most_jobs_if_that_costs_little),
	CASE(should_try_ever_more_rarely_what_costs_too_much),
	CASE(should_follow_a_job_that_takes_another_time_now),
};

CHECK_MAIN(cases)
