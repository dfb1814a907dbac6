/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.conformance;

import java.util.Locale;

/** The properties of a policy that can be used. The order is that of reports. */
enum Law {
    EFFECTS("its classes use java.lang, java.util and dev.gpuseg.core only: no clock, thread, file or chance"),
    STATELESS("all its fields are final"),
    ANTISYMMETRIC("compare(a, b) and compare(b, a) have opposite signs; compare(a, a) is 0"),
    TRANSITIVE("compare orders segments: a before b and b before c makes a before c, and so do ties"),
    REAL_TIME_FIRST("every real-time segment comes before every best-effort one (if the policy enforces)"),
    REAL_TIME_APART("best effort is not granted beside a real-time segment that leads (if the policy enforces)"),
    SYMMETRIC("mayRunBeside(a, b) equals mayRunBeside(b, a)"),
    PREGRANT_SOUND("a task above the pre-grant ceiling that begins later comes before the begun segment or runs "
        + "beside it"),
    WINDOWS("isOpen and lendsIdle change only where nextChangeNs says, and later than now"),
    PURE("the same question has the same answer, whenever and however often it is asked"),
    EXCLUSIVE("while a real-time segment leads, enabled contexts are those of running segments and of idle tasks above "
        + "the ceiling (invariants 1, 2)"),
    ONE_STATE("a begun segment is waiting, running or preempted, as grants, preemptions and resumptions say (3)"),
    LOCAL_END("the end or death of a segment that does not run changes the state of no other (4)"),
    POLICY_ORDER("exactly the first segment in policy order runs, and those that may run beside it (5)"),
    WORK_CONSERVING("no GPU is idle while a segment of an open partition is begun, and all that began can end (6)"),
    REPLAY("the same events give the same decisions (7)"),
    NO_ALLOCATION("no question allocates memory after warm-up (8)"),
    TIME("a question takes 20 us at most, as a median of many, and every one returns");

    private final String statement;

    Law(final String statement) {
        this.statement = statement;
    }

    String statement() {
        return statement;
    }

    String word() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
}
