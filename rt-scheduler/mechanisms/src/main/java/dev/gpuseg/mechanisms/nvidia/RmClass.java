/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.mechanisms.Layouts;

/** What the numbers of RM's classes say. Source: public driver headers, 580. */
final class RmClass {
    static final int CLIENT = Layouts.RM_CLASS_CLIENT;
    static final int TSG = Layouts.RM_CLASS_TSG;
    private static final int SUBDEVICE = Layouts.RM_CLASS_SUBDEVICE;
    private static final int OLDEST_CHANNEL = 0xa06f;

    private RmClass() {
    }

    static boolean isSubdevice(final int classId) {
        return classId == SUBDEVICE;
    }

    /** Whether it is a channel group. */
    static boolean isTsg(final int classId) {
        return classId == TSG;
    }

    static boolean isChannel(final int classId) {
        return (classId & 0xff) == 0x6f && classId >= OLDEST_CHANNEL;
    }

    static boolean isComputeOrGraphics(final int classId) {
        return classId > 0xff && ((classId & 0xff) == 0xc0 || (classId & 0xff) == 0x97);
    }

    /** Whether contexts are built from it. */
    static boolean matters(final int classId) {
        return isSubdevice(classId) || isTsg(classId) || isChannel(classId) || isComputeOrGraphics(classId);
    }
}
