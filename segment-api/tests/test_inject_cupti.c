/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_inject_cupti.c - those cases of test_inject.c that depend on how calls are seen, once more with calls followed
 * by CUPTI, as where nothing can be preloaded.
 */
#define CALLS "cupti"
#define ONLY_HOW_CALLS_ARE_SEEN
#pragma GCC diagnostic ignored "-Wunused-function"

#include "test_inject.c"
