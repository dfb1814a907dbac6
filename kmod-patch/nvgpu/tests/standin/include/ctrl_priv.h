/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CTRL_PRIV_H
#define CTRL_PRIV_H

struct gk20a;

struct gk20a_ctrl_priv {
	struct gk20a *g;
};

#endif
