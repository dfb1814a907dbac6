/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.concurrent.TimeoutException;

/** A part of {@code gpuseg bench gpu}: which programs compete. */
public interface GpuScenario {
    /** As {@code --scenarios} and results.json call it. */
    String name();

    /**
     * Measures it. A cell that cannot be measured has the reason in {@code failed}, and the others continue.
     *
     * @param bench the GPU and the programs
     * @param into  results; {@code alone} and {@code cells} at least, or {@code not_run} with a reason
     * @throws IOException           a file cannot be written
     * @throws InterruptedException  the command is to end
     * @throws TimeoutException      what all cells need does not end
     * @throws IllegalStateException what all cells need does not work
     */
    void measure(GpuBench bench, ObjectNode into) throws IOException, InterruptedException, TimeoutException;
}
