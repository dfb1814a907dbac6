/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

/** The ways to take queues off an AMD GPU, best first. The order of the constants is the order of choice. */
public enum Rung {
    /** {@code /dev/gpuseg-kfd} of kmod-patch/amdkfd: by process and GPU, batched, new queues start held. */
    KFD("kfd", "/dev/gpuseg-kfd", "process and GPU", 1),
    /** DBG_TRAP of the stock driver: the debugger's suspend and resume of queues. */
    DEBUG("debug", "the debugger's suspend and resume (DBG_TRAP)", "queue", 2),
    /** CRIU_OP of the stock driver: the checkpoint's pause of a whole process. */
    CRIU("criu", "the checkpoint's pause (CRIU_OP)", "process", 3),
    /** UPDATE_QUEUE of the stock driver, by the application itself. */
    AGENT("agent", "UPDATE_QUEUE inside the applications that run with libgpuseg-preload.so", "queue", 4);

    private final String word;
    private final String text;
    private final String granularity;
    private final int number;

    Rung(final String word, final String text, final String granularity, final int number) {
        this.word = word;
        this.text = text;
        this.granularity = granularity;
        this.number = number;
    }

    /**
     * The name in files and reports.
     *
     * @return one word
     */
    public String word() {
        return word;
    }

    /**
     * What it is, for a report.
     *
     * @return a phrase
     */
    public String text() {
        return text;
    }

    String granularity() {
        return granularity;
    }

    /** In the held payload; {@code enum gpuseg_amd_rung} in rt-scheduler/native/amd/gpuseg_amd.h. */
    int number() {
        return number;
    }
}
