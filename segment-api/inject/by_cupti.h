/* SPDX-License-Identifier: Apache-2.0 */
/* by_cupti.h - follow calls by CUPTI. */
#ifndef GPUSEG_INJECT_BY_CUPTI_H
#define GPUSEG_INJECT_BY_CUPTI_H

#include <stdbool.h>

/* Follow calls by CUPTI's callbacks. False: one line has said why not. */
bool cupti_follow(void);
/* Follow none, but count those that come by no wrapper. */
bool cupti_watch(void);
/* Say how many there were, if they were watched in this process. */
void cupti_say_what_passed_by(void);

#endif /* GPUSEG_INJECT_BY_CUPTI_H */
