/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c - find the functions of libcuda. */
#include <dlfcn.h>
#include <string.h>

#include "driver.h"
#include "settings.h"
#include "wrap/wrap.h"

struct driver driver;
struct occupancy occupancy;
struct identity identity;
struct touching touching;

const struct wrap *wrappers(void)
{
	const struct wrap *wrap = dlsym(RTLD_DEFAULT, "gpuseg_wrap");

	return wrap && wrap->count == FUNCTION_COUNT ? wrap : NULL;
}

/* Find a function of a loaded library; never a wrapper of it. */
static void *symbol_of(void *library, const char *name)
{
	const struct wrap *wrap = wrappers();

	return wrap ? wrap->symbol(library, name) : dlsym(library, name);
}

const char *resolve(void *library, void *table, const char *const *names, size_t count)
{
	void **slots = table;

	for (size_t i = 0; i < count; i++) {
		slots[i] = symbol_of(library, names[i]);
		if (!slots[i])
			return names[i];
	}
	return NULL;
}

bool driver_load(void)
{
	static const char *const names[] = {"cuDriverGetVersion",
					    "cuCtxGetDevice",
					    "cuDeviceGetPCIBusId",
					    "cuCtxPushCurrent_v2",
					    "cuCtxPopCurrent_v2",
					    "cuMemHostRegister_v2",
					    "cuMemHostUnregister",
					    "cuMemHostGetDevicePointer_v2",
					    "cuStreamWriteValue32_v2",
					    "cuStreamQuery",
					    "cuStreamIsCapturing",
					    "cuStreamGetPriority",
					    "cuThreadExchangeStreamCaptureMode"};
	static const char *const optional[] = {"cuDeviceGetAttribute", "cuOccupancyMaxActiveBlocksPerMultiprocessor"};
	static const char *const for_touching[] = {"cuStreamCreate", "cuMemsetD32Async"};
	static const char *const identities[] = {"cuCtxGetCurrent", "cuCtxGetId"};
	void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	const char *missing;

	_Static_assert(sizeof(names) / sizeof(names[0]) == sizeof(struct driver) / sizeof(void *), "one name each");
	if (!library) {
		say("libcuda.so.1 is not loaded in this process; runs unmanaged");
		return false;
	}
	/* The handle is kept: the library stays loaded as long as this one. */
	missing = resolve(library, &driver, names, sizeof(names) / sizeof(names[0]));
	if (missing) {
		say("the CUDA driver has no %s, it is too old; runs unmanaged", missing);
		return false;
	}
	if (resolve(library, &occupancy, optional, sizeof(optional) / sizeof(optional[0])))
		occupancy = (struct occupancy){NULL, NULL};
	if (resolve(library, &touching, for_touching, sizeof(for_touching) / sizeof(for_touching[0])))
		touching = (struct touching){NULL, NULL};
	if (resolve(library, &identity, identities, sizeof(identities) / sizeof(identities[0])))
		identity = (struct identity){NULL, NULL};
	return true;
}
