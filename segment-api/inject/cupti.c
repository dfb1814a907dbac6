/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cupti.c - find the libcupti that belongs to the process.
 *
 * libcupti must be of the major version of the driver's API: one of an older version loads, but gives no callbacks, and
 * PyTorch ended silently beside it. It lies in the toolkit, and in the Python packages that PyTorch brings along. Where
 * those are is known from the libraries that the process has loaded already.
 */
#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cupti.h"
#include "driver.h"
#include "inject.h"
#include "settings.h"

struct cupti cupti;

/* From CUPTI 13.0 on the version is major * 10000 + ...; before, it counts: 13 to 18 are CUDA 11, 19 to 28 CUDA 12. */
static int cuda_major_of(uint32_t cupti_version)
{
	if (cupti_version >= 10000)
		return (int)(cupti_version / 10000);
	return cupti_version >= 19 ? 12 : cupti_version >= 13 ? 11 : 10;
}

struct search {
	int major;	      /* wanted */
	uint32_t other;	      /* version of one that does not fit; 0 = none was seen */
	char other_path[200]; /* where that is */
};

/* Load the file and keep it if it fits. */
static bool try_file(struct search *search, const char *path, bool any_version)
{
	static const char *const names[] = {"cuptiGetVersion", "cuptiSubscribe", "cuptiUnsubscribe",
					    "cuptiEnableCallback", "cuptiGetCallbackName"};
	uint32_t version;
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	_Static_assert(sizeof(names) / sizeof(names[0]) == sizeof(struct cupti) / sizeof(void *), "one name each");
	if (!library)
		return false;
	if (!resolve(library, &cupti, names, sizeof(names) / sizeof(names[0])) &&
	    cupti.cuptiGetVersion(&version) == CUPTI_SUCCESS) {
		if (any_version || cuda_major_of(version) == search->major) {
			if (inject.settings.verbose)
				say("%s has version %u", path, version);
			return true;
		}
		search->other = version;
		snprintf(search->other_path, sizeof(search->other_path), "%s", path);
	}
	dlclose(library);
	return false;
}

static bool try_pattern(struct search *search, const char *pattern)
{
	glob_t found;
	bool fits = false;

	if (glob(pattern, 0, NULL, &found) != 0)
		return false;
	for (size_t i = 0; i < found.gl_pathc && !fits; i++)
		fits = try_file(search, found.gl_pathv[i], false);
	globfree(&found);
	return fits;
}

static bool try_directory(struct search *search, const char *directory)
{
	char pattern[PATH_MAX + 32];

	/* CUDA 11 put its minor version into the name. */
	snprintf(pattern, sizeof(pattern), search->major == 11 ? "%s/libcupti.so.11*" : "%s/libcupti.so.%d", directory,
		 search->major);
	return try_pattern(search, pattern);
}

/* `site` is a directory of Python packages. */
static bool try_packages(struct search *search, const char *site)
{
	char directory[PATH_MAX];

	snprintf(directory, sizeof(directory), "%s/nvidia/cu%d/lib", site, search->major);
	if (try_directory(search, directory))
		return true;
	snprintf(directory, sizeof(directory), "%s/nvidia/cuda_cupti/lib", site);
	return try_directory(search, directory);
}

/* Beside what the process has loaded: a libcupti itself, then the Python packages around PyTorch, JAX and CUDA. */
static bool try_loaded(struct search *search)
{
	static const char *const within[] = {"/nvidia/", "/torch/",	    "/jaxlib/",	 "/tensorflow/",
					     "/cupy/",	 "/cupy_backends/", "/tensorrt", "/numpy/"};
	char line[PATH_MAX + 256], site[PATH_MAX] = "";
	bool fits = false;
	FILE *maps = fopen("/proc/self/maps", "re");

	if (!maps)
		return false;
	while (!fits && fgets(line, sizeof(line), maps)) {
		char *path = strchr(line, '/'), *name;

		if (!path)
			continue;
		path[strcspn(path, "\n")] = '\0';
		name = strrchr(path, '/') + 1;
		if (strncmp(name, "libcupti.so", 11) == 0)
			fits = try_file(search, path, false);
	}
	rewind(maps);
	while (!fits && fgets(line, sizeof(line), maps)) {
		char *path = strchr(line, '/');

		if (!path)
			continue;
		path[strcspn(path, "\n")] = '\0';
		for (size_t i = 0; i < sizeof(within) / sizeof(within[0]) && !fits; i++) {
			char *at = strstr(path, within[i]);

			if (!at || (size_t)(at - path) >= sizeof(site) ||
			    (strlen(site) == (size_t)(at - path) && strncmp(site, path, (size_t)(at - path)) == 0))
				continue;
			memcpy(site, path, (size_t)(at - path));
			site[at - path] = '\0';
			fits = try_packages(search, site);
		}
	}
	fclose(maps);
	return fits;
}

/* The packages of the interpreter, if the program is one: PREFIX/lib/python3.x/site-packages. */
static bool try_prefix(struct search *search, const char *prefix)
{
	static const char *const kinds[] = {"site-packages", "dist-packages"};
	char pattern[PATH_MAX + 64];
	glob_t found;
	bool fits = false;

	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]) && !fits; kind++) {
		snprintf(pattern, sizeof(pattern), "%s/lib/python3*/%s", prefix, kinds[kind]);
		if (glob(pattern, 0, NULL, &found) != 0)
			continue;
		for (size_t i = 0; i < found.gl_pathc && !fits; i++)
			fits = try_packages(search, found.gl_pathv[i]);
		globfree(&found);
	}
	return fits;
}

static bool try_interpreter(struct search *search)
{
	const char *virtual_env = secure_getenv("VIRTUAL_ENV"), *conda = secure_getenv("CONDA_PREFIX");
	char program[PATH_MAX];
	const ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	char *slash;

	if (virtual_env && *virtual_env && try_prefix(search, virtual_env))
		return true;
	if (conda && *conda && try_prefix(search, conda))
		return true;
	if (n <= 0)
		return false;
	program[n] = '\0';
	for (int levels = 0; levels < 2; levels++) { /* PREFIX/bin/python3 */
		slash = strrchr(program, '/');
		if (!slash)
			return false;
		*slash = '\0';
	}
	return try_prefix(search, program) || (strcmp(program, "/usr") == 0 && try_prefix(search, "/usr/local"));
}

static bool try_toolkit(struct search *search)
{
	static const char *const below[] = {"lib64", "lib", "extras/CUPTI/lib64", "targets/x86_64-linux/lib",
					    "targets/sbsa-linux/lib"};
	const char *roots[4] = {secure_getenv("CUDA_HOME"), secure_getenv("CUDA_PATH"), NULL, "/usr/local/cuda"};
	char versioned[64], directory[PATH_MAX];

	snprintf(versioned, sizeof(versioned), "/usr/local/cuda-%d*", search->major);
	roots[2] = versioned;
	for (size_t r = 0; r < sizeof(roots) / sizeof(roots[0]); r++) {
		for (size_t i = 0; roots[r] && *roots[r] && i < sizeof(below) / sizeof(below[0]); i++) {
			snprintf(directory, sizeof(directory), "%s/%s", roots[r], below[i]);
			if (try_directory(search, directory))
				return true;
		}
	}
	return false;
}

static bool try_linker(struct search *search)
{
	char name[32];

	snprintf(name, sizeof(name), "libcupti.so.%d", search->major);
	return try_file(search, name, false) || try_file(search, "libcupti.so", false);
}

bool cupti_load(void)
{
	const char *given = secure_getenv("GPUSEG_CUPTI");
	struct search search = {.major = 0};
	int version;

	if (driver.cuDriverGetVersion(&version) != CUDA_SUCCESS) {
		say("the CUDA driver does not tell its version; runs unmanaged");
		return false;
	}
	search.major = version / 1000;
	if (given && *given) {
		if (try_file(&search, given, true))
			return true;
		say("GPUSEG_CUPTI is %s, which is no libcupti that can be loaded; runs unmanaged", given);
		return false;
	}
	if (try_loaded(&search) || try_interpreter(&search) || try_toolkit(&search) || try_linker(&search))
		return true;
	if (search.other)
		say("%s is of CUDA %d, the driver is of CUDA %d; install libcupti.so.%d (package cuda-cupti, or `pip "
		    "install nvidia-cuda-cupti`), or name one in GPUSEG_CUPTI; runs unmanaged",
		    search.other_path, cuda_major_of(search.other), search.major, search.major);
	else
		say("no libcupti.so.%d is installed; it is in the CUDA toolkit and in PyTorch's packages (`pip install "
		    "nvidia-cuda-cupti`), or name one in GPUSEG_CUPTI; runs unmanaged",
		    search.major);
	return false;
}
