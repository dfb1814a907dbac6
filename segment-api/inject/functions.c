/* SPDX-License-Identifier: Apache-2.0 */
/* functions.c - the table of the functions that are followed. */
#include "functions.h"

#define ONCE(f, arguments, what, at) [f##_INDEX] = {.name = #f, .kind = (what), .stream = (at)},
#define WITH(f, suffix, arguments, what, at)                                                                           \
	ONCE(f, arguments, what, at)                                                                                   \
	[f##suffix##_INDEX] = {.name = #f #suffix, .kind = (what), .stream = (at), .per_thread = true},
#define WITH_PTSZ(f, arguments, what, at) WITH(f, _ptsz, arguments, what, at)
#define WITH_PTDS(f, arguments, what, at) WITH(f, _ptds, arguments, what, at)

const struct function functions[FUNCTION_COUNT] = {FOLLOWED_FUNCTIONS(ONCE, WITH_PTSZ, WITH_PTDS)};
