# SPDX-License-Identifier: Apache-2.0
"""Two components with marks in one container, and a node as it is under `gpuseg exec`: each a task of the scheduler."""
from launch import LaunchDescription
from launch_ros.actions import ComposableNodeContainer, Node
from launch_ros.descriptions import ComposableNode


def detector(name, priority):
    """A component of detector.cpp. Give period and budget as times with their unit."""
    return ComposableNode(package="robot", plugin="robot::Detector", name=name, remappings=[("image", f"{name}/image")],
                          parameters=[{"gpuseg.priority": priority, "gpuseg.period": "33ms", "gpuseg.budget": "8ms"}])


def generate_launch_description():
    return LaunchDescription([
        ComposableNodeContainer(
            package="rclcpp_components", executable="component_container_isolated", name="perception", namespace="",
            composable_node_descriptions=[detector("front", 70), detector("rear", 60)]),
        # no marks: segments are found; signals reach the node, whose process this becomes
        Node(package="robot", executable="segmentation", prefix="gpuseg exec --priority 40 --period 100ms --"),
    ])
