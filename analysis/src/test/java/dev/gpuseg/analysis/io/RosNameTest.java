/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import dev.gpuseg.core.TaskName;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

class RosNameTest {
    @Test
    void shouldShortenANameLikeTheLibraryForRosAndKeepOneThatFits() {
        final String fits = "/" + "n".repeat(TaskName.BYTES_MAX - 1);
        assertEquals(fits, RosName.shortened(fits));
        assertNotEquals(fits + "n", RosName.shortened(fits + "n"));
        // what task_name of gpuseg_ros2.hpp returns
        assertEquals("/perception/object_recogni~b88af9a6~nterpoint/lidar_centerpoint",
            RosName.shortened("/perception/object_recognition/detection/centerpoint/lidar_centerpoint"));
        assertEquals("/sensing/camera/camera_fro~531055e4~(/sensing/camera/image_raw)",
            RosName.shortened("/sensing/camera/camera_front_left/traffic_light_rectifier/node"
                + "@Subscription(/sensing/camera/image_raw)"));
        final String umlauts = RosName.shortened("/" + "\u00e4".repeat(32));
        assertEquals("/" + "\u00e4".repeat(12) + "~5057820f~" + "\u00e4".repeat(13), umlauts);
        assertEquals(61, umlauts.getBytes(StandardCharsets.UTF_8).length, "no half a character");
        assertNull(TaskName.refusal(umlauts));
    }
}
