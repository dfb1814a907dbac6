/* SPDX-License-Identifier: Apache-2.0 */
/* last.h - what is said at the end of a program without CUDA. */
#ifndef GPUSEG_INJECT_WRAP_LAST_H
#define GPUSEG_INJECT_WRAP_LAST_H

#include <stdbool.h>

/* The number of the process that gpuseg-exec becomes. */
#define EXEC_FIRST_ENV "GPUSEG_EXEC_FIRST"

/* CUDA is used here, or the program marks segments itself. Any thread, any number of times. */
void last_used(void);

#endif /* GPUSEG_INJECT_WRAP_LAST_H */
