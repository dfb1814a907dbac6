/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.calibrate;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.TimeoutException;

/** A GPU on which the constants can be measured. One thread. Times in nanoseconds. */
public interface CalibrationRig extends AutoCloseable {
    /** Which processes may use the GPU while a kernel is timed. */
    enum Mode {
        /** No other process. */
        ALONE,
        /** One other process, shared by the driver. */
        SHARED,
        /** Others, disabled by the daemon; begin waits for that. */
        BLOCKING,
        /** Others, held back by the daemon; begin does not wait. */
        OPTIMISTIC,
        /** Others, which take turns with short time slices; begin waits for the GPU alone, and for no driver call. */
        TURNS;

        /** Whether a daemon schedules the GPU meanwhile. */
        boolean isScheduled() {
            return this == BLOCKING || this == OPTIMISTIC || this == TURNS;
        }
    }

    /**
     * From now on, others are held back in company of processes that come and go and of monitors that poll, where there
     * are any, and calls and returns of before are forgotten.
     *
     * @param perSecond how many processes are started in a second
     */
    void churn(double perSecond);

    /** How many processes came and went in the measurements since {@link #churn}. */
    int cameAndWent();

    /** The monitors that polled meanwhile; empty before {@link #churn}, or if there are none. */
    List<String> monitors();

    /** How often a context was enabled while {@link Mode#TURNS} was measured; 0 = nobody took turns. */
    int turnsTaken();

    /** Times kernels of a set length, one after the other with pauses. */
    long[] responses(Mode mode, int jobs) throws IOException, InterruptedException, TimeoutException;

    /** How long the measurement of so many kernels takes on a machine that is idle otherwise, with its start, s. */
    int seconds(int jobs);

    /** Kernels per second of this many processes together, without scheduling. */
    double rate(int processes) throws IOException, InterruptedException, TimeoutException;

    /** What the driver calls of the last held-back measurements took. */
    long[] calls();

    /** What bringing all others back took in these measurements: the driver calls of one update together. */
    long[] returns();

    /** What the driver says its time slice is; 0 = it does not say. Known after {@link #rate}. */
    default long timesliceNs() {
        return 0;
    }

    /** What was measured on: mechanism, driver, whether it is simulated. */
    void describe(ObjectNode into) throws InterruptedException;

    @Override
    void close();
}
