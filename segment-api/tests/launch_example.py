# SPDX-License-Identifier: Apache-2.0
"""Run a launch file with stand-ins of launch and launch_ros, and every prefix in it with a program that does nothing.

launch_example.py LAUNCH-FILE GPUSEG-EXEC
"""
import runpy
import shlex
import subprocess
import sys
import types


class Part(types.SimpleNamespace):
    """What a launch file makes: keeps what it was given."""

    def __init__(self, parts=None, **given):
        super().__init__(parts=parts, **given)


for module, names in (("launch", ["LaunchDescription"]), ("launch_ros", []), ("launch_ros.descriptions", ["ComposableNode"]),
                      ("launch_ros.actions", ["ComposableNodeContainer", "Node"])):
    sys.modules[module] = types.ModuleType(module)
    for name in names:
        setattr(sys.modules[module], name, type(name, (Part,), {}))

parts = runpy.run_path(sys.argv[1])["generate_launch_description"]().parts
components = [c for part in parts for c in getattr(part, "composable_node_descriptions", [])]
assert len({c.name for c in components}) == len(components) == 2, components
for component in components:
    assert {"gpuseg.priority", "gpuseg.period", "gpuseg.budget"} == set(component.parameters[0]), component
prefixes = [shlex.split(part.prefix) for part in parts if hasattr(part, "prefix")]
assert len(prefixes) == 1, parts
for prefix in prefixes:
    assert prefix[:2] == ["gpuseg", "exec"] and prefix[-1] == "--", prefix
    subprocess.run([sys.argv[2], *prefix[2:], "true"], check=True)
