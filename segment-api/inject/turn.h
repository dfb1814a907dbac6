/* SPDX-License-Identifier: Apache-2.0 */
/* turn.h - is it the turn of a launch, and is there room for it? */
#ifndef GPUSEG_INJECT_TURN_H
#define GPUSEG_INJECT_TURN_H

struct stream;

/* Wait until a launch on the stream may go ahead. inject.lock held, released meanwhile. */
void flight_wait(struct stream *stream);

#endif /* GPUSEG_INJECT_TURN_H */
