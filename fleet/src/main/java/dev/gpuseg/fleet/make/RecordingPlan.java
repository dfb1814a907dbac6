/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.make;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;

/**
 * Which recordings are made. Recording i is a function of the plan, the task sets and i.
 *
 * @param count        recordings, 1..1000000
 * @param robots       1..100000
 * @param versions     at least one name of letters, digits, dots, underscores, hyphens, plus signs
 * @param seconds      simulated length of each, 1..9000
 * @param driftPercent how much longer the device parts of one task are in the last version, 0..1000
 * @param damaged      how many files are damaged afterwards, 0..count
 * @param seed         of the random numbers
 */
public record RecordingPlan(int count, int robots, List<String> versions, int seconds, int driftPercent, int damaged,
    long seed) implements Serializable {
    /** Checks the ranges. */
    public RecordingPlan {
        require("--count", count, 1, 1_000_000);
        require("--robots", robots, 1, 100_000);
        require("--seconds", seconds, 1, 9_000);
        require("--drift", driftPercent, 0, 1_000);
        require("--damaged", damaged, 0, count);
        versions = new ArrayList<>(versions);   // serializable
        if (versions.isEmpty()) {
            throw new IllegalArgumentException("--versions is empty; name at least one");
        }
        for (final String version : versions) {
            if (!version.matches("[A-Za-z0-9._+-]{1,64}")) {
                throw new IllegalArgumentException("--versions has '" + version
                    + "'; a name has 1..64 letters, digits and . _ + -");
            }
        }
    }

    private static void require(final String option, final int value, final int least, final int most) {
        if (value < least || value > most) {
            throw new IllegalArgumentException(option + " is " + value + "; it must be " + least + ".." + most);
        }
    }

    /** The robot of recording i. */
    int robot(final int i) {
        return i % robots;
    }

    /** The version of recording i: each robot goes through all of them. */
    String version(final int i) {
        return versions.get(i / robots % versions.size());
    }

    /** Whether recording i is of the version in which one task takes longer. */
    boolean isSlower(final int i) {
        return versions.size() > 1 && version(i).equals(versions.get(versions.size() - 1));
    }

    /** Where recording i lies below the directory. */
    String path(final int i) {
        return String.format("robot=r%03d/version=%s/%06d.gpuseg", robot(i), version(i), i);
    }

    /** Whether the file of recording i is damaged afterwards: they are spread over all. */
    boolean isDamaged(final int i) {
        return (long) (i + 1) * damaged / count > (long) i * damaged / count;
    }
}
