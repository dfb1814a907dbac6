/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * One RM client of a process and the objects in it. RM is asked for the class and the parent of handles: of those that
 * the application's own report names, else of the ranges that the user-mode driver uses. All questions are read-only.
 * Not thread-safe.
 */
final class RmClient {
    /** An object: its class and the handle of its parent. */
    record Node(int classId, int parent) {
        boolean isSubdevice() {
            return classId == CLASS_SUBDEVICE;
        }

        /** Whether it is a channel group. */
        boolean isTsg() {
            return classId == CLASS_TSG;
        }

        boolean isChannel() {
            return (classId & 0xff) == 0x6f && classId >= 0xa06f;
        }

        boolean isComputeOrGraphics() {
            return classId > 0xff && ((classId & 0xff) == 0xc0 || (classId & 0xff) == 0x97);
        }

        /** Whether contexts are built from it. */
        private boolean matters() {
            return isSubdevice() || isTsg() || isChannel() || isComputeOrGraphics();
        }
    }

    private static final int HANDLE_BASE = 0x5c000000;
    private static final int HANDLE_SCAN = 0x400;
    private static final int HANDLE_SCAN_MAX = 0x10000;
    private static final int HANDLE_MISSES = 0x100;
    private static final int CLASS_CLIENT = 0x41;
    private static final int CLASS_SUBDEVICE = 0x2080;
    private static final int CLASS_TSG = 0xa06c;
    static final int ENGINE_GR0 = 1;
    private static final int INVALID_OBJECT = 0x31;

    private final ControlFile file;
    private final int handle;
    private final Map<Integer, Node> objects = new LinkedHashMap<>();
    private final Set<Integer> reportedGr0 = new HashSet<>();
    private final Map<Integer, Integer> gpuIds = new HashMap<>();
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

    /** By handle, in the order in which they were found. */
    Map<Integer, Node> objects() {
        return objects;
    }

    /** Channel groups that the application's report places on the engine for compute and graphics. */
    Set<Integer> reportedGr0() {
        return reportedGr0;
    }

    /**
     * RM's number of the GPU of a subdevice. It is asked for once.
     *
     * @param rm        to ask with
     * @param subdevice its handle
     * @return null if RM does not say
     */
    Integer gpuId(final RmControl rm, final int subdevice) {
        Integer id = gpuIds.get(subdevice);
        if (id == null && rm.gpuId(file.fd(), handle, subdevice) == RmStatus.OK) {
            id = rm.word();
            gpuIds.put(subdevice, id);
        }
        return id;
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

    private void read(final RmControl rm, final CaptureReport report) {
        objects.clear();
        gpuIds.clear();
        reportedGr0.clear();
        for (final CaptureReport.Entry e : report.objects()) {
            if (e.client() == handle && e.classId() != CLASS_CLIENT) {
                ask(rm, e.handle());
                if (e.classId() == CLASS_TSG && e.engine() == ENGINE_GR0) {
                    reportedGr0.add(e.handle());
                }
            }
        }
    }

    /**
     * Takes over an object that the observer saw made, if RM says that it exists.
     *
     * @param rm      to ask with
     * @param object  its handle
     * @param parent  handle of its parent, as the process says
     * @param classId its class, as the process says
     * @param gr0     whether it is a channel group on the engine for compute and graphics
     * @return false if RM's answer was neither yes nor no
     */
    boolean made(final RmControl rm, final int object, final int parent, final int classId, final boolean gr0) {
        final Node above = objects.get(parent);
        if (new Node(classId, parent).isComputeOrGraphics() && above != null && above.isChannel()
            && reportedGr0.contains(above.parent())) {
            return true;   // it could only tell the engine of that group, which is known
        }
        unsure = false;
        ask(rm, object);
        final Node node = objects.get(object);
        if (gr0 && node != null && node.isTsg()) {
            reportedGr0.add(object);
        }
        return !unsure;
    }

    /** An object was freed, with all that is below it. */
    void freed(final int object) {
        objects.remove(object);
        reportedGr0.remove(object);
        gpuIds.remove(object);
        final List<Integer> below = objects.entrySet().stream().filter(e -> e.getValue().parent() == object
            && e.getKey() != object).map(Map.Entry::getKey).toList();
        below.forEach(this::freed);
    }

    private void search(final RmControl rm, final boolean full, final Runnable interlude) {
        if (full) {
            objects.clear();
            gpuIds.clear();
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
        if (new Node(classId, 0).matters()) {
            if (rm.handleInfo(file.fd(), handle, object, RmControl.INFO_PARENT) == RmStatus.OK) {
                objects.put(object, new Node(classId, rm.result()));
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
