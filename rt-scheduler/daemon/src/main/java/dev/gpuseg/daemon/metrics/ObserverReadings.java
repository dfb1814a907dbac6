/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.metrics;

/**
 * How GPU processes are seen: by the observer (BPF), or by scans.
 *
 * @param live     whether they are observed now; false: they are scanned
 * @param records  of the observer since start
 * @param lost     of these, not received; a scan answers
 * @param restarts times since start that the observer ended and was started or connected to again
 */
public record ObserverReadings(boolean live, long records, long lost, long restarts) {
    /** Without an observer. */
    public static final ObserverReadings NONE = new ObserverReadings(false, 0, 0, 0);
}
