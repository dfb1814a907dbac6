/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap.c - libgpuseg-wrap.so: calls of the CUDA driver pass through functions of ours.
 *
 * Preloaded by gpuseg-exec. A program has a function of the driver from the linker, from dlsym() or from
 * cuGetProcAddress(); each of them gives the wrapper of a followed function in place of the driver's. What is looked at
 * is the address that the driver gives, not the name that was asked for.
 *
 * A wrapper passes its arguments on as they are. While nothing follows it costs some nanoseconds; in a process without
 * CUDA the library does nothing, but for what last.c says.
 */
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#include "last.h"
#include "wrap.h"

#define API __attribute__((visibility("default")))
#define HIDDEN __attribute__((visibility("hidden")))
/* The library is there from the start, so its variables of a thread have room in the fast model. */
#define FAST __attribute__((tls_model("initial-exec")))

#define CUDA_SUCCESS 0
#define CUDA_ERROR_NOT_FOUND 500
#define OLDEST_VERSION 4000 /* of CUDA: functions of versions before that take 32-bit pointers, and are not followed */

typedef uintptr_t word;
typedef void *(*dlsym_function)(void *handle, const char *name);

HIDDEN dlsym_function wrap_real_dlsym; /* of the C library; also read by dlsym.S */

/* All atomic: threads that find the driver at the same time write the same. */
static void *real[FUNCTION_COUNT]; /* functions of the driver; NULL: it has none */
static void *real_get, *real_get_v2;
static uint32_t found; /* the above are set */
static const char *passing_by;
static const struct follower *follower;

static __thread unsigned int depth FAST; /* wrappers that the thread is in */
static __thread unsigned int initialising FAST;

/* ---- dlsym() of the C library ---- */

/* Weak, because musl has none, and a program that is linked with it is not to fail for that. */
extern __typeof__(dlvsym) dlvsym __attribute__((weak));

/* Where glibc's loader has made an address of it, and musl's has left the offset. */
static const void *at(const struct dl_phdr_info *library, ElfW(Addr) value)
{
	return (const void *)(value < library->dlpi_addr ? library->dlpi_addr + value : value);
}

/* dl_iterate_phdr(): a library that has a dlsym(), but for this one. Not 0: found. */
static int find_dlsym(struct dl_phdr_info *library, size_t size, void *result)
{
	const ElfW(Sym) *symbols = NULL;
	const ElfW(Dyn) *dynamic = NULL;
	const char *names = NULL;
	const uint32_t *hash = NULL;

	(void)size;
	for (size_t i = 0; i < library->dlpi_phnum; i++) {
		if (library->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dynamic = (const void *)(library->dlpi_addr + library->dlpi_phdr[i].p_vaddr);
	}
	for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
		if (dynamic->d_tag == DT_SYMTAB)
			symbols = at(library, dynamic->d_un.d_ptr);
		else if (dynamic->d_tag == DT_STRTAB)
			names = at(library, dynamic->d_un.d_ptr);
		else if (dynamic->d_tag == DT_HASH)
			hash = at(library, dynamic->d_un.d_ptr);
	}
	for (uint32_t i = 0; symbols && names && hash && i < hash[1]; i++) { /* its second word: how many symbols */
		void *const address = (void *)(library->dlpi_addr + symbols[i].st_value);

		if (symbols[i].st_shndx != SHN_UNDEF && address != (void *)dlsym &&
		    strcmp(names + symbols[i].st_name, "dlsym") == 0) {
			*(void **)result = address;
			return 1;
		}
	}
	return 0;
}

static void *real_symbol(void *handle, const char *name)
{
	/* From 2.34 on it is in libc, before in libdl; the oldest version depends on the processor. */
	static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};

	for (size_t i = 0; dlvsym && !wrap_real_dlsym && i < sizeof(versions) / sizeof(versions[0]); i++)
		wrap_real_dlsym = (dlsym_function)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
	if (!wrap_real_dlsym)
		dl_iterate_phdr(find_dlsym, &wrap_real_dlsym);
	return wrap_real_dlsym(handle, name);
}

/* ---- the driver ---- */

/* False: the driver is not loaded. */
static bool find_driver(void)
{
	void *driver;

	if (__atomic_load_n(&found, __ATOMIC_ACQUIRE))
		return true;
	driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD); /* kept, so that it stays loaded */
	if (!driver)
		return false;
	for (size_t i = 0; i < FUNCTION_COUNT; i++) {
		void *function = real_symbol(driver, functions[i].name);
		const void *next = function ? real_symbol(RTLD_NEXT, functions[i].name) : NULL;

		/* Of two libraries that wrap, the other one would be left out. */
		if (next && next != function)
			__atomic_store_n(&passing_by, "another library wraps the driver's functions", __ATOMIC_RELAXED);
		__atomic_store_n(&real[i], function, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&real_get, real_symbol(driver, "cuGetProcAddress"), __ATOMIC_RELAXED);
	__atomic_store_n(&real_get_v2, real_symbol(driver, "cuGetProcAddress_v2"), __ATOMIC_RELAXED);
	__atomic_store_n(&found, 1, __ATOMIC_RELEASE);
	return true;
}

static void *real_of(void *const *slot)
{
	return find_driver() ? __atomic_load_n(slot, __ATOMIC_RELAXED) : NULL;
}

/* ---- the wrappers ---- */

static inline const struct follower *enter(struct wrapped_call *call)
{
	const struct follower *f = __atomic_load_n(&follower, __ATOMIC_ACQUIRE);

	depth++;
	if (call->function == cuInit_INDEX) {
		initialising++;
		last_used();
	}
	if (f)
		f->entered(call);
	return f;
}

static inline int leave(const struct follower *f, struct wrapped_call *call)
{
	if (call->followed)
		f->left(call);
	if (call->function == cuInit_INDEX)
		initialising--;
	depth--;
	return call->result;
}

#define WRAPPER(f, parameters, ...)                                                                                    \
	API int f parameters;                                                                                          \
                                                                                                                       \
	int f parameters                                                                                               \
	{                                                                                                              \
		const word arguments[] = {__VA_ARGS__};                                                                \
		struct wrapped_call call = {.function = f##_INDEX, .arguments = arguments};                            \
		int(*const driver) parameters = (int(*) parameters)real_of(&real[f##_INDEX]);                          \
		const struct follower *by;                                                                             \
                                                                                                                       \
		if (!driver)                                                                                           \
			return CUDA_ERROR_NOT_FOUND;                                                                   \
		by = enter(&call);                                                                                     \
		call.result = driver(__VA_ARGS__);                                                                     \
		return leave(by, &call);                                                                               \
	}

/*
 * By number of arguments. Up to six are in registers, and all six registers are passed on, whatever is in those that
 * the function does not take. What lies on the stack is passed on exactly.
 */
#define IN_REGISTERS(f) WRAPPER(f, (word a, word b, word c, word d, word e, word g), a, b, c, d, e, g)
#define ARGUMENTS_0(f) IN_REGISTERS(f)
#define ARGUMENTS_1(f) IN_REGISTERS(f)
#define ARGUMENTS_2(f) IN_REGISTERS(f)
#define ARGUMENTS_3(f) IN_REGISTERS(f)
#define ARGUMENTS_4(f) IN_REGISTERS(f)
#define ARGUMENTS_5(f) IN_REGISTERS(f)
#define ARGUMENTS_6(f) IN_REGISTERS(f)
#define ARGUMENTS_8(f)                                                                                                 \
	WRAPPER(f, (word a, word b, word c, word d, word e, word g, word h, word i), a, b, c, d, e, g, h, i)
#define ARGUMENTS_9(f)                                                                                                 \
	WRAPPER(f, (word a, word b, word c, word d, word e, word g, word h, word i, word j), a, b, c, d, e, g, h, i, j)
#define ARGUMENTS_10(f)                                                                                                \
	WRAPPER(f, (word a, word b, word c, word d, word e, word g, word h, word i, word j, word k), a, b, c, d, e, g, \
		h, i, j, k)
#define ARGUMENTS_11(f)                                                                                                \
	WRAPPER(f, (word a, word b, word c, word d, word e, word g, word h, word i, word j, word k, word l), a, b, c,  \
		d, e, g, h, i, j, k, l)

#define WRAP_ONCE(f, arguments, ...) ARGUMENTS_##arguments(f)
#define WRAP_PTSZ(f, arguments, ...) ARGUMENTS_##arguments(f) ARGUMENTS_##arguments(f##_ptsz)
#define WRAP_PTDS(f, arguments, ...) ARGUMENTS_##arguments(f) ARGUMENTS_##arguments(f##_ptds)
FOLLOWED_FUNCTIONS(WRAP_ONCE, WRAP_PTSZ, WRAP_PTDS)

#define LIST_ONCE(f, ...) [f##_INDEX] = (void *)(f),
#define LIST_PTSZ(f, ...) LIST_ONCE(f) LIST_ONCE(f##_ptsz)
#define LIST_PTDS(f, ...) LIST_ONCE(f) LIST_ONCE(f##_ptds)
static void *const wrappers[FUNCTION_COUNT] = {FOLLOWED_FUNCTIONS(LIST_ONCE, LIST_PTSZ, LIST_PTDS)};

/* ---- what gives the program the address of a function ---- */

API int cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags);
API int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, void *status);

/* The wrapper of a function of the driver, else NULL. */
static void *wrapper_of(const void *function)
{
	if (!function || !find_driver())
		return NULL;
	if (function == real_get)
		return (void *)cuGetProcAddress;
	if (function == real_get_v2)
		return (void *)cuGetProcAddress_v2;
	for (size_t i = 0; i < FUNCTION_COUNT; i++) {
		if (function == real[i])
			return wrappers[i];
	}
	return NULL;
}

/* Is it followed in some form? Then this one is newer than the table. */
static bool followed_in_another_form(const char *symbol)
{
	const size_t length = strlen(symbol);

	for (size_t i = 0; i < FUNCTION_COUNT; i++) {
		const char *name = functions[i].name;

		if (functions[i].kind != OTHER && strncmp(name, symbol, length) == 0 &&
		    (name[length] == '\0' || strcmp(name + length, "_v2") == 0))
			return true;
	}
	return false;
}

static void give_wrapper(const char *symbol, void **function, int version)
{
	void *wrapper;

	if (!symbol || !function || !*function)
		return;
	wrapper = wrapper_of(*function);
	if (wrapper)
		*function = wrapper;
	else if (version >= OLDEST_VERSION && followed_in_another_form(symbol))
		__atomic_store_n(&passing_by, "the driver has newer forms of the functions that are followed",
				 __ATOMIC_RELAXED);
}

int cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
	int (*const get)(const char *, void **, int, uint64_t) =
		(int (*)(const char *, void **, int, uint64_t))real_of(&real_get);
	const int result = get ? get(symbol, function, version, flags) : CUDA_ERROR_NOT_FOUND;

	if (result == CUDA_SUCCESS)
		give_wrapper(symbol, function, version);
	return result;
}

int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, void *status)
{
	int (*const get)(const char *, void **, int, uint64_t, void *) =
		(int (*)(const char *, void **, int, uint64_t, void *))real_of(&real_get_v2);
	const int result = get ? get(symbol, function, version, flags, status) : CUDA_ERROR_NOT_FOUND;

	if (result == CUDA_SUCCESS)
		give_wrapper(symbol, function, version);
	return result;
}

static bool is_wrapper(const void *function)
{
	for (size_t i = 0; i < FUNCTION_COUNT; i++) {
		if (function == wrappers[i])
			return true;
	}
	return function == (const void *)cuGetProcAddress || function == (const void *)cuGetProcAddress_v2;
}

struct answer {
	uintptr_t ours; /* 0: dlsym() of the C library is to answer */
	void *value;
};

HIDDEN struct answer wrap_symbol(void *handle, const char *name);

/* Called by dlsym.S. */
struct answer wrap_symbol(void *handle, const char *name)
{
	const struct answer not_ours = {0, NULL};
	void *value;

	if (!wrap_real_dlsym)
		real_symbol(RTLD_DEFAULT, "dlsym");
	if (!name || name[0] != 'c' || name[1] != 'u' || handle == RTLD_NEXT)
		return not_ours;
	value = real_symbol(handle, name);
	if (is_wrapper(value)) /* found as a symbol of this library: only as long as the driver has it */
		return find_driver() ? not_ours : (struct answer){1, real_symbol(RTLD_NEXT, name)};
	value = wrapper_of(value);
	return value ? (struct answer){1, value} : not_ours;
}

/* ---- for libgpuseg-inject.so ---- */

static const char *is_passed_by(void)
{
	return __atomic_load_n(&passing_by, __ATOMIC_RELAXED);
}

static bool in_init(void)
{
	return initialising > 0;
}

static bool in_call(void)
{
	return depth > 0;
}

static void follow(const struct follower *f)
{
	__atomic_store_n(&follower, f, __ATOMIC_RELEASE);
}

API extern const struct wrap gpuseg_wrap;
const struct wrap gpuseg_wrap = {.count = FUNCTION_COUNT,
				 .passed_by = is_passed_by,
				 .in_init = in_init,
				 .in_call = in_call,
				 .symbol = real_symbol,
				 .follow = follow,
				 .used = last_used};
