/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.doctor;

/**
 * One line of the doctor's report.
 *
 * @param name    what was looked at
 * @param verdict fine, could be better, or in the way
 * @param found   what was found
 * @param remedy  what to do, empty if fine
 */
public record DoctorCheck(String name, Verdict verdict, String found, String remedy) {
    /** What a finding means. */
    public enum Verdict {
        OK, ADVICE, FAULT
    }

    static DoctorCheck of(final String name, final boolean good, final String found, final String remedy) {
        return new DoctorCheck(name, good ? Verdict.OK : Verdict.ADVICE, found, good ? "" : remedy);
    }
}
