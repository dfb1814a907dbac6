/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

/**
 * What the theorems of {@code analysis/docs} assume. The documents define each under the same id; {@link Hypotheses}
 * checks those that a task set can break.
 */
public enum Hypothesis {
    /** The task model. */
    M0("M0", "jobs arrive at least a period apart and run their segments in order on one core; nobody exceeds its "
        + "declared times"),
    /** Holder. */
    M1("M1", "of the open windows of a GPU, the scheduler lets one have it, by the order of the analysis, from begin "
        + "to end"),
    /** Gate. */
    G4("G4", "every process marks its work on the GPU, and best-effort jobs end before the next one of their task"),
    /** Updates. */
    M2("M2", "an update takes at most epsilon, an update in progress is completed, and only a change of the holder "
        + "starts one"),
    /** Device. */
    M3("M3", "the device part of the holder is served once its update is complete"),
    /** Host. */
    M4("M4", "host parts and the call of end run at the priority of their task"),
    /** What threads do while the GPU works. */
    M5("M5", "threads wait as the analysis assumes: they sleep (suspend) or keep their core (busy)"),
    /** Order. */
    M6("M6", "of two tasks of one core and GPU, the one with the higher priority has the higher gpu_priority"),
    /** Surroundings. */
    M7("M7", "best-effort threads run below all real-time threads, and updates on no core of a task"),
    /** Boost. */
    M8("M8", "inside their windows all threads run above the unboosted threads of their core"),
    /** Nothing outside of windows. */
    M9("M9", "a real-time task uses its GPU only inside its windows"),
    /** Contexts. */
    M10("M10", "no real-time task shares its GPU context with another task, or with real-time tasks alone and the "
        + "bound contains the waiting for them"),
    /** The scheduler lives. */
    M11("M11", "daemon and watchdog are alive, and the time from a mark to the decision is part of epsilon"),
    /** Blocking. */
    M12("M12", "a task waits for its declared blocking outside of its windows"),
    /** New contexts. */
    N1("N1", "no process makes a context of the GPU while a real-time task is open, or only as the platform declares "
        + "it (newcomers)"),
    /** Clock of the GPU. */
    K1("K1", "device parts take no longer than declared also at the lowest clock, beside the heaviest load, or by no "
        + "more than the factor clock of the platform"),
    /** Throttling by the kernel. */
    T1("T1", "the kernel takes no core away from real-time threads"),
    /** Stops of the GPU. */
    S1("S1", "nothing but the scheduler stops a GPU, or only as the platform declares it (stall)"),
    /** Work beside segments. */
    B1("B1", "work that runs beside a GPU segment makes no part of it longer than by slowdown of the platform's "
        + "space"),
    /** Work in flight. */
    B2("B2", "all that best-effort programs inside have on the GPU when a segment of a task without a part of the "
        + "reserve begins ends within in_flight of the platform's space"),
    /** Nothing else. */
    B3("B3", "while real-time tasks are open, every program that uses the GPU is inside, and the limits of all that "
        + "run at one time leave the reserve free"),
    /** Deadlines. */
    E1("E1", "jobs mark their release, so that the deadline of a window is that of its job"),
    /** Deadlines on cores. */
    E2("E2", "cores run the thread whose job has the earliest absolute deadline"),
    /** Ties of deadlines. */
    E3("E3", "two threads that spin for one GPU on one core never have the same absolute deadline"),
    /** Partitions. */
    P1("P1", "the daemon follows the window table of the policy file"),
    /** Begins. */
    U1("U1", "begins of real-time tasks wait for no driver call"),
    /** Turns of the device. */
    U2("U2", "while a device part waits for the GPU, each other context has at most one turn of a switch and its time "
        + "slice, and one of them one more"),
    /** Best effort. */
    U3("U3", "such a wait meets at most as many best-effort contexts, with slices at most as long, as the platform "
        + "says (turns)"),
    /** Bursts. */
    U4("U4", "the GPU gets work of a window after it had none left at most as often as the set says (bursts)"),
    /** Real-time contexts. */
    U5("U5", "contexts of real-time tasks are never disabled, and their slices are as long as the analysis takes them "
        + "to be"),
    /** Calls. */
    U6("U6", "in a window at most two driver calls for each of those best-effort contexts are made, and two for a new "
        + "one; each takes at most theta from the context that is served, and leaves it its turn"),
    /** Overload. */
    W1("W1", "overload jobs are as far apart, and other jobs as short, as the set says; late jobs go on, and no "
        + "overrun action acts");

    private final String id;
    private final String text;

    Hypothesis(final String id, final String text) {
        this.id = id;
        this.text = text;
    }

    /** Its number in the documents; a letter and a number. */
    public String id() {
        return id;
    }

    /** What is assumed; one sentence without a full stop. */
    public String text() {
        return text;
    }
}
