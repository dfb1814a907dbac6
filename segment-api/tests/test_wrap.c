/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_wrap.c - libgpuseg-wrap.so with a driver that notes its calls. The library is linked first, which puts it where
 * a preloaded one stands; the driver is loaded later.
 */
#include <dlfcn.h>

#include "../inject/wrap/wrap.h"
#include "check.h"
#include "cuda/recorder.h"

extern const struct wrap gpuseg_wrap;
/* Of libgpuseg-wrap.so, as the linker finds them for a program that is linked with the driver. */
int cuGraphLaunch(uintptr_t graph, uintptr_t stream);

static const struct recorded *noted;
static void *const *driver_functions;
static void *driver;

static void load_driver(void)
{
	char path[4096];
	const ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 64);

	CHECK(n > 0);
	path[n] = '\0';
	strcpy(strrchr(path, '/') + 1, "cuda/recorder/libcuda.so.1");
	driver = dlopen(path, RTLD_NOW);
	CHECK(driver != NULL, "%s", dlerror());
	noted = dlsym(driver, "recorded");
	driver_functions = dlsym(driver, "recorder_functions");
	CHECK(noted && driver_functions);
}

/* Arguments that differ from each other, and use all bits. */
static uintptr_t argument(size_t i)
{
	return UINT64_C(0x0102030405060708) * (i + 1) + UINT64_C(0x8000000000000000);
}

typedef int (*any)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
		   uintptr_t, uintptr_t);

static int call(void *function)
{
	return ((any)function)(argument(0), argument(1), argument(2), argument(3), argument(4), argument(5),
			       argument(6), argument(7), argument(8), argument(9), argument(10));
}

static void passed_on(size_t i)
{
	CHECK_EQ(noted->function, i);
	for (size_t a = 0; a < noted->count; a++)
		CHECK(noted->arguments[a] == argument(a), "argument %zu of %s is %#lx", a, functions[i].name,
		      (unsigned long)noted->arguments[a]);
}

TEST(should_pass_on_every_argument_and_the_result_of_every_function)
{
	load_driver();
	for (size_t i = 0; i < FUNCTION_COUNT; i++) {
		void *function = dlsym(driver, functions[i].name);

		CHECK(function && function != driver_functions[i], "%s is not wrapped", functions[i].name);
		CHECK_EQ(call(function), RECORDED_RESULT + (int)i);
		passed_on(i);
	}
}

TEST(should_give_the_wrapper_however_the_function_is_found)
{
	int (*get)(const char *, void **, int, uint64_t) = NULL;
	int (*get_v2)(const char *, void **, int, uint64_t, void *) = NULL, (*got)(int *) = NULL;
	void *function, *by_get;
	int version;

	load_driver();
	*(void **)&get = dlsym(driver, "cuGetProcAddress");
	*(void **)&get_v2 = dlsym(driver, "cuGetProcAddress_v2");
	for (size_t i = 0; i < FUNCTION_COUNT; i++) {
		function = dlsym(driver, functions[i].name);
		CHECK_EQ(get(functions[i].name, &by_get, 12000, 0), 0);
		CHECK(by_get == function, "cuGetProcAddress gives another %s", functions[i].name);
		CHECK_EQ(get_v2(functions[i].name, &by_get, 12000, 0, NULL), 0);
		CHECK(by_get == function, "cuGetProcAddress_v2 gives another %s", functions[i].name);
	}
	/* The runtime asks cuGetProcAddress for itself. */
	CHECK_EQ(get("cuGetProcAddress", &by_get, 12000, 0), 0);
	CHECK(by_get == (void *)get_v2);
	CHECK(dlsym(RTLD_DEFAULT, "cuGraphLaunch") == dlsym(driver, "cuGraphLaunch"));
	CHECK_EQ(cuGraphLaunch(argument(0), argument(1)), RECORDED_RESULT + cuGraphLaunch_INDEX);
	passed_on(cuGraphLaunch_INDEX);
	CHECK(gpuseg_wrap.passed_by() == NULL);
	/* What is not followed is the driver's own. */
	*(void **)&got = dlsym(driver, "cuDriverGetVersion");
	CHECK_EQ(got(&version), 0);
	CHECK_EQ(version, 13000);
	CHECK_EQ(get("cuNoSuchFunction", &by_get, 12000, 0), 500);
	CHECK(dlsym(driver, "cuNoSuchFunction") == NULL && strstr(dlerror(), "cuNoSuchFunction"));
	/* The library beside it gets those of the driver. */
	CHECK(gpuseg_wrap.symbol(driver, "cuGraphLaunch") == driver_functions[cuGraphLaunch_INDEX]);
}

TEST(should_leave_the_program_without_a_driver_as_it_is)
{
	CHECK(dlsym(RTLD_DEFAULT, "cuLaunchKernel") == NULL);
	CHECK_CONTAINS(dlerror(), "cuLaunchKernel");
	CHECK(dlsym(dlopen(NULL, RTLD_NOW), "cuGetProcAddress_v2") == NULL);
	CHECK(dlsym(RTLD_DEFAULT, "malloc") == (void *)malloc);
	CHECK(dlsym(RTLD_NEXT, "malloc") != NULL);
	CHECK(dlsym(RTLD_DEFAULT, "no_such_function") == NULL);
	CHECK_CONTAINS(dlerror(), "no_such_function");
	CHECK_EQ(cuGraphLaunch(0, 0), 500);
}

static unsigned int entries, exits;
static uintptr_t first;
static bool in_init, in_call;

static void entered(struct wrapped_call *c)
{
	entries++;
	first = c->arguments[0];
	in_init = gpuseg_wrap.in_init();
	in_call = gpuseg_wrap.in_call();
	c->word = 7 + c->function;
	c->followed = c->function != cuLaunch_INDEX;
}

static void left(struct wrapped_call *c)
{
	exits++;
	CHECK_EQ(c->word, 7 + c->function);
	CHECK_EQ(c->result, RECORDED_RESULT + (int)c->function);
}

TEST(should_report_calls_to_the_follower)
{
	static const struct follower follower = {entered, left};
	void *launch, *graph, *init;

	load_driver();
	launch = dlsym(driver, "cuLaunch");
	graph = dlsym(driver, "cuGraphLaunch");
	init = dlsym(driver, "cuInit");
	call(graph);
	CHECK_EQ(entries, 0);
	CHECK(!gpuseg_wrap.in_call());
	gpuseg_wrap.follow(&follower);
	CHECK_EQ(call(graph), RECORDED_RESULT + cuGraphLaunch_INDEX);
	CHECK(entries == 1 && exits == 1 && first == argument(0) && in_call && !in_init);
	call(launch); /* is not followed, so its end does not count */
	CHECK(entries == 2 && exits == 1);
	call(init);
	CHECK(entries == 3 && in_init);
	CHECK(!gpuseg_wrap.in_init() && !gpuseg_wrap.in_call());
	gpuseg_wrap.follow(NULL);
	call(graph);
	CHECK_EQ(entries, 3);
}

TEST(should_say_that_newer_forms_pass_the_wrappers_by)
{
	int (*get)(const char *, void **, int, uint64_t) = NULL;
	void *function;

	load_driver();
	*(void **)&get = dlsym(driver, "cuGetProcAddress");
	/* Forms with 32-bit pointers are not followed. */
	setenv("RECORDER_NEW_FORM", "cuMemcpyHtoD", 1);
	CHECK_EQ(get("cuMemcpyHtoD", &function, 2000, 0), 0);
	CHECK(gpuseg_wrap.passed_by() == NULL);
	CHECK_EQ(get("cuMemcpyHtoD", &function, 14000, 0), 0);
	CHECK_CONTAINS(gpuseg_wrap.passed_by(), "newer forms");
}

TEST(should_say_that_another_library_wraps_the_driver)
{
	char path[4096];
	const ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 64);

	CHECK(n > 0);
	path[n] = '\0';
	strcpy(strrchr(path, '/') + 1, "cuda/recorder/libother.so");
	CHECK(dlopen(path, RTLD_NOW | RTLD_GLOBAL) != NULL, "%s", dlerror());
	load_driver();
	call(dlsym(driver, "cuGraphLaunch"));
	CHECK_CONTAINS(gpuseg_wrap.passed_by(), "another library");
}

static const struct check_case cases[] = {
	CASE(should_pass_on_every_argument_and_the_result_of_every_function),
	CASE(should_give_the_wrapper_however_the_function_is_found),
	CASE(should_leave_the_program_without_a_driver_as_it_is),
	CASE(should_report_calls_to_the_follower),
	CASE(should_say_that_newer_forms_pass_the_wrappers_by),
	CASE(should_say_that_another_library_wraps_the_driver),
};

CHECK_MAIN_APART(cases)
