/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C++ interface: a segment ends with its guard, however the block is left.
 *
 *   ./05_raii [JOBS]
 */
#include <gpuseg.hpp>

#include <cstdlib>
#include <iostream>
#include <thread>

using namespace std::chrono_literals;

int main(int argc, char **argv)
{
	const int jobs = argc > 1 ? std::atoi(argv[1]) : 20;

	try {
		gpuseg::Client client(GPUSEG_CONNECT_UNMANAGED_OK);
		gpuseg::TaskOptions options;

		options.name = "planner";
		options.priority = 55;
		options.period = 50ms;
		gpuseg::Task task(client, options);
		for (int i = 0; i < jobs; i++) {
			task.release();
			{
				gpuseg::Segment segment(task);
				std::this_thread::sleep_for(2ms); // launch and synchronise
			}
			task.complete();
		}
		std::cout << client.counters().begins << " segments, " << (client.managed() ? "managed" : "unmanaged")
			  << "\n";
	} catch (const gpuseg::Error &e) {
		std::cerr << e.what() << "\n";
		return 1;
	}
}
