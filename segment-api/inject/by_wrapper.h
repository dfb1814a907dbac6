/* SPDX-License-Identifier: Apache-2.0 */
/* by_wrapper.h - follow calls by the preloaded wrappers. */
#ifndef GPUSEG_INJECT_BY_WRAPPER_H
#define GPUSEG_INJECT_BY_WRAPPER_H

#include <stdbool.h>

/* Follow calls by them. False: they are not there, or calls can pass them by; then *why says so, or is NULL. */
bool wrappers_follow(const char **why);
void wrappers_stop(void);

#endif /* GPUSEG_INJECT_BY_WRAPPER_H */
