/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.recordings;

import java.io.Serializable;

/**
 * What became of one file.
 *
 * @param name       relative to the directory of all recordings
 * @param robot      that recorded it
 * @param version    of its software
 * @param status     {@link #OK}, or why nothing of it is in the tables
 * @param reason     one line; empty if all is well
 * @param bytes      size of the file
 * @param events     in it
 * @param lostEvents missing in it
 * @param durationNs from the first event to the last
 * @param mechanism  of the daemon
 * @param simulated  whether the GPU was the virtual one
 * @param createdUtc when it was written, ISO 8601
 * @param commit     that the daemon was built from
 * @param sha256     of its events
 * @param jobs       rows
 * @param segments   rows
 * @param decisions  rows
 */
public record Outcome(String name, String robot, String version, String status, String reason, long bytes, long events,
    long lostEvents, long durationNs, String mechanism, boolean simulated, String createdUtc, String commit,
    String sha256, long jobs, long segments, long decisions) implements Serializable {
    /** Its rows are in the tables. */
    public static final String OK = "ok";
    /** The file begins as a recording and has no end. */
    public static final String TRUNCATED = "truncated";
    /** The file is a recording, and its events are not what its manifest says, or cannot be understood. */
    public static final String DAMAGED = "damaged";
    /** The file is something else. */
    public static final String FOREIGN = "not-a-recording";

    static Outcome unusable(final RecordingFile file, final String status, final String reason) {
        return new Outcome(file.name(), name(file.robot()), name(file.version()), status, reason, file.bytes(), 0, 0, 0,
            "", false, "", "", "", 0, 0, 0);
    }

    /** The name of what has none. */
    static String name(final String given) {
        return given == null || given.isEmpty() ? "unknown" : given;
    }

    /** Whether its rows are in the tables: false if it was left out. */
    public boolean isOk() {
        return status.equals(OK);
    }
}
