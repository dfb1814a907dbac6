/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.mechanisms.Layouts;

/**
 * The interfaces of the driver by which queues of another process can be disabled, best first. The order of the
 * constants is the order of choice.
 */
public enum ControlInterface {
    /** {@code /dev/gpuseg-kfd} of kmod-patch/amdkfd: by process and GPU, batched, new queues start disabled. */
    KFD("kfd", "/dev/gpuseg-kfd", "process and GPU", Layouts.AMD_KFD),
    /** UPDATE_QUEUE of the stock driver, called by the application itself. */
    AGENT("agent", "UPDATE_QUEUE inside the applications that run with libgpuseg-preload.so", "queue",
        Layouts.AMD_AGENT);

    private final String label;
    private final String description;
    private final String granularity;
    private final int number;

    ControlInterface(final String label, final String description, final String granularity, final int number) {
        this.label = label;
        this.description = description;
        this.granularity = granularity;
        this.number = number;
    }

    /** The name in files and reports; one word. */
    public String label() {
        return label;
    }

    /** What it is, for a report; a phrase. */
    public String description() {
        return description;
    }

    String granularity() {
        return granularity;
    }

    /** In the held payload; {@code enum gpuseg_amd_interface} in rt-scheduler/native/amd/gpuseg_amd.h. */
    int number() {
        return number;
    }
}
