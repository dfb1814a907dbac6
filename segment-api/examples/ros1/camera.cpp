/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ROS 1: a camera. Publishes the header of an image at a rate.
 *
 *   c++ camera.cpp $(pkg-config --cflags --libs roscpp) -o camera && ./camera [RATE_HZ]
 */
#include <ros/ros.h>
#include <std_msgs/Header.h>

#include <cstdlib>

int main(int argc, char **argv)
{
	ros::init(argc, argv, "camera");
	ros::NodeHandle node;
	ros::Publisher images = node.advertise<std_msgs::Header>("image", 1);
	ros::Rate rate(argc > 1 ? std::atof(argv[1]) : 20);

	while (ros::ok()) {
		std_msgs::Header image;

		image.stamp = ros::Time::now();
		images.publish(image);
		rate.sleep();
	}
}
