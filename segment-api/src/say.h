/* SPDX-License-Identifier: Apache-2.0 */
/* say.h - the one way of saying something. */
#ifndef GPUSEG_SAY_H
#define GPUSEG_SAY_H

/*
 * One line on stderr: "gpuseg: NAME[PID]: ...". None if the program has closed its stderr, whose number may stand for a
 * file of its own. Thread-safe, allocates nothing.
 */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif /* GPUSEG_SAY_H */
