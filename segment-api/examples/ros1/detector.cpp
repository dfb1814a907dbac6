/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ROS 1: a node whose callback is a job of a gpuseg task, with 5 ms of work on the virtual GPU (SIMULATED).
 *
 *   c++ -I../../include detector.cpp ../../build/libgpuseg.a ../../build/libgpuseg_sim.a \
 *       $(pkg-config --cflags --libs roscpp) -o detector && ./detector [DEADLINE_MS [MESSAGES [TASK [PERIOD_MS]]]]
 */
#include <gpuseg.hpp>
#include <gpuseg_sim.h>

#include <ros/ros.h>
#include <std_msgs/Header.h>

#include <cstdlib>
#include <iostream>

using namespace std::chrono_literals;

static const std::int64_t KERNEL_NS = 5000000;

int main(int argc, char **argv)
{
	ros::init(argc, argv, "detector");
	ros::NodeHandle node;
	int left = argc > 2 ? std::atoi(argv[2]) : 100;
	gpuseg_sim *gpu = nullptr;

	if (gpuseg_sim_open(nullptr, &gpu) < 0) {
		std::cerr << "detector: no virtual GPU\n";
		return 1;
	}
	try {
		gpuseg::Client client;
		gpuseg::TaskOptions options;
		options.name = argc > 3 ? argv[3] : "detector";
		options.priority = 70;
		options.period = std::chrono::milliseconds(argc > 4 ? std::atoi(argv[4]) : 50);
		options.deadline = std::chrono::milliseconds(argc > 1 ? std::atoi(argv[1]) : 50);
		gpuseg::Task task(client, options);
		ros::Subscriber images =
			node.subscribe<std_msgs::Header>("image", 1, [&](const std_msgs::Header::ConstPtr &image) {
				/* first: if this thread is held up in between, the image looks older, not younger */
				const gpuseg::Nanoseconds now = gpuseg::now();
				const gpuseg::Nanoseconds age((ros::Time::now() - image->stamp).toNSec());
				/* not of a bag that is played, nor by a clock that disagrees */
				const bool known = !ros::Time::isSimTime() && age >= 0s && age <= 60s && age < now;
				std::uint64_t fence;

				if (known)
					task.release(now, now - age, image->stamp.toNSec());
				else
					task.release(now);
				{
					gpuseg::Segment segment(task);
					gpuseg_sim_submit(gpu, KERNEL_NS, &fence);
					gpuseg_sim_wait(gpu, fence, GPUSEG_SIM_BLOCK, -1);
				}
				task.complete();
				if (--left == 0)
					ros::shutdown();
			});
		ros::spin();
		std::cout << "detector: " << client.counters().begins << " segments, SIMULATED\n";
	} catch (const gpuseg::Error &e) {
		std::cerr << "detector: " << e.what() << "\n";
		return 1;
	}
	gpuseg_sim_close(gpu);
}
