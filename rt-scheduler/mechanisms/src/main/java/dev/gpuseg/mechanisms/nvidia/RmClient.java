/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.mechanisms.Layouts;
import org.agrona.collections.Int2IntHashMap;
import org.agrona.collections.IntHashSet;

/**
 * One RM client of a process and the objects in it. RM is asked for the class and the parent of handles: of those that
 * the application's own report names, else of the ranges that the user-mode driver uses. What the observer saw made is
 * taken as the process says, save subdevices. All questions are read-only.
 * Not thread-safe.
 */
final class RmClient {
    static final int ENGINE_GR0 = Layouts.RM_ENGINE_GR0;
    private static final int HANDLE_BASE = 0x5c000000;
    private static final int HANDLE_SCAN = 0x400;
    private static final int HANDLE_SCAN_MAX = 0x10000;
    private static final int HANDLE_MISSES = 0x100;
    private static final int INVALID_OBJECT = 0x31;
    private static final int NOT_ASKED = -2;

    private final ControlFile file;
    private final int handle;
    private final RmObjects objects = new RmObjects();
    /** Groups on other engines with their channels, as the process says. */
    private final RmObjects copying = new RmObjects();
    private final IntHashSet reportedGr0 = new IntHashSet();
    private final Int2IntHashMap gpus = new Int2IntHashMap(NOT_ASKED);
    private int highest = HANDLE_BASE - 1;
    /** An answer of this update was neither yes nor no. */
    private boolean unsure;

    RmClient(final ControlFile file, final int handle) {
        this.file = file;
        this.handle = handle;
    }

    ControlFile file() {
        return file;
    }

    int handle() {
        return handle;
    }

    RmObjects objects() {
        return objects;
    }

    /** Channel groups that the application's report places on the engine for compute and graphics. */
    IntHashSet reportedGr0() {
        return reportedGr0;
    }

    /**
     * The GPU of a subdevice. RM is asked once for its number.
     *
     * @param rm        to ask with
     * @param index     of the GPUs
     * @param subdevice its handle
     * @return from 0; {@link GpuIndex#UNKNOWN} if RM does not say, or it is not listed
     */
    int gpu(final RmControl rm, final GpuIndex index, final int subdevice) {
        final int known = gpus.get(subdevice);
        if (known != NOT_ASKED) {
            return known;
        }
        if (rm.gpuId(file.fd(), handle, subdevice) != RmStatus.OK) {
            return GpuIndex.UNKNOWN;
        }
        final int gpu = index.of(rm.word());
        gpus.put(subdevice, gpu);
        return gpu;
    }

    /**
     * Asks for its objects.
     *
     * @param rm     to ask with
     * @param report of the application, null if there is none that is complete
     * @param full   whether to search all of the handle range, or only beyond what is known
     * @param interlude called before each question of a search
     * @return false if some answer was neither yes nor no; then nothing can be concluded from what is missing
     */
    boolean update(final RmControl rm, final CaptureReport report, final boolean full, final Runnable interlude) {
        unsure = false;
        if (report == null) {
            search(rm, full, interlude);
        } else {
            read(rm, report);
        }
        return !unsure;
    }

    /** Forgets all that is known of it. */
    void forget() {
        objects.clear();
        copying.clear();
        gpus.clear();
        reportedGr0.clear();
        highest = HANDLE_BASE - 1;
    }

    private void read(final RmControl rm, final CaptureReport report) {
        objects.clear();
        gpus.clear();
        reportedGr0.clear();
        for (int i = 0; i < report.size(); i++) {
            if (report.exists(i) && report.client(i) == handle && report.classId(i) != RmClass.CLIENT) {
                ask(rm, report.handle(i));
                if (RmClass.isTsg(report.classId(i)) && report.engine(i) == ENGINE_GR0) {
                    reportedGr0.add(report.handle(i));
                }
            }
        }
    }

    /**
     * Takes over an object that the observer saw made, as the process says. RM is asked for subdevices alone: each
     * question waits for the driver's lock behind all that make and end contexts. An object of a client can be none of
     * another process, and a false handle is refused when it is used; then the process is {@code doubted}.
     *
     * @param rm      to ask with
     * @param object  its handle
     * @param parent  handle of its parent
     * @param classId its class
     * @param gr0     whether it is a channel group on the engine for compute and graphics
     * @param scope   which channels matter
     * @param doubted whether RM is asked for class and parent
     * @return false if RM's answer was neither yes nor no
     */
    boolean made(final RmControl rm, final int object, final int parent, final int classId, final boolean gr0,
        final Scope scope, final boolean doubted) {
        final int above = objects.place(parent);
        if (RmClass.isComputeOrGraphics(classId) && above != RmObjects.NONE
            && RmClass.isChannel(objects.classId(above)) && reportedGr0.contains(objects.parent(above))) {
            return true;   // it could only tell the engine of that group, which is known
        }
        if (scope == Scope.COMPUTE && (RmClass.isTsg(classId) && !gr0
            || RmClass.isChannel(classId) && copying.place(parent) != RmObjects.NONE)) {
            copying.put(object, classId, parent);
            return true;
        }
        unsure = false;
        final int channel = RmClass.isComputeOrGraphics(classId) ? copying.place(parent) : RmObjects.NONE;
        if (channel != RmObjects.NONE) {
            takeCopying(rm, copying.parent(channel), doubted);
        }
        take(rm, object, parent, classId, doubted);
        final int place = objects.place(object);
        if (gr0 && place != RmObjects.NONE && RmClass.isTsg(objects.classId(place))) {
            reportedGr0.add(object);
        }
        return !unsure;
    }

    /** A group that was thought to copy computes. */
    private void takeCopying(final RmControl rm, final int group, final boolean doubted) {
        for (int i = 0; i < copying.size(); i++) {
            if (copying.handle(i) == group || copying.parent(i) == group) {
                take(rm, copying.handle(i), copying.parent(i), copying.classId(i), doubted);
            }
        }
        copying.removeTree(group);   // a process can claim thousands: not one by one
    }

    private void take(final RmControl rm, final int object, final int parent, final int classId,
        final boolean doubted) {
        if (doubted || RmClass.isSubdevice(classId)) {   // a false one would be asked for its GPU again and again
            ask(rm, object);
        } else if (RmClass.matters(classId)) {
            objects.put(object, classId, parent);
        }
    }

    /** An object was freed, with all that is below it. */
    void freed(final int object) {
        copying.removeTree(object);
        objects.removeTree(object);
        reportedGr0.removeIfInt(objects::wasRemoved);
        for (final Int2IntHashMap.KeyIterator subdevices = gpus.keySet().iterator(); subdevices.hasNext();) {
            if (objects.wasRemoved(subdevices.nextValue())) {
                subdevices.remove();
            }
        }
    }

    private void search(final RmControl rm, final boolean full, final Runnable interlude) {
        if (full) {
            objects.clear();
            gpus.clear();
            highest = HANDLE_BASE - 1;
        }
        final int floor = full ? HANDLE_BASE + HANDLE_SCAN : 0;
        int misses = 0;
        for (int h = highest + 1; h < HANDLE_BASE + HANDLE_SCAN_MAX; h++) {
            interlude.run();
            if (ask(rm, h)) {
                highest = h;
                misses = 0;
            } else if (++misses >= HANDLE_MISSES && h >= floor) {
                return;
            }
        }
    }

    private boolean ask(final RmControl rm, final int object) {
        final int status = rm.handleInfo(file.fd(), handle, object, RmControl.INFO_CLASS);
        if (status != RmStatus.OK) {
            unsure |= !meansAbsent(status);
            return false;
        }
        final int classId = rm.result();
        if (RmClass.matters(classId)) {
            if (rm.handleInfo(file.fd(), handle, object, RmControl.INFO_PARENT) == RmStatus.OK) {
                objects.put(object, classId, rm.result());
            } else {
                unsure = true;
            }
        }
        return true;
    }

    /** Any other refusal (busy, out of memory, no permission) says nothing about whether the object exists. */
    static boolean meansAbsent(final int status) {
        return status == RmStatus.OBJECT_NOT_FOUND || status == RmStatus.INVALID_OBJECT_HANDLE
            || status == INVALID_OBJECT || status == RmStatus.INVALID_CLIENT;
    }
}
