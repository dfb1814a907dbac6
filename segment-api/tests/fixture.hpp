/* SPDX-License-Identifier: Apache-2.0 */
/* fixture.hpp - fixture.h for C++: a daemon as long as a scope. Declare it before the clients that are to find it. */
#ifndef FIXTURE_HPP
#define FIXTURE_HPP

#include "fixture.h"

struct Daemon : fake_daemon {
	Daemon() : fake_daemon()
	{
		fake_daemon_start(this);
	}
	~Daemon()
	{
		fake_daemon_stop(this);
	}
	Daemon(const Daemon &) = delete;
	Daemon &operator=(const Daemon &) = delete;
};

#endif /* FIXTURE_HPP */
