/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import org.agrona.collections.Int2IntHashMap;
import org.agrona.collections.IntArrayList;

/**
 * Objects of one RM client in the order in which they were found: handle, class and handle of the parent. Found by
 * their place, or by handle. Allocates only where there are more than ever before. Not thread-safe.
 */
final class RmObjects {
    static final int NONE = -1;

    private final IntArrayList handles = new IntArrayList();
    private final IntArrayList classes = new IntArrayList();
    private final IntArrayList parents = new IntArrayList();
    private final Int2IntHashMap places = new Int2IntHashMap(NONE);

    void clear() {
        handles.clear();
        classes.clear();
        parents.clear();
        places.clear();
    }

    int size() {
        return handles.size();
    }

    int handle(final int place) {
        return handles.getInt(place);
    }

    int classId(final int place) {
        return classes.getInt(place);
    }

    int parent(final int place) {
        return parents.getInt(place);
    }

    /** {@link #NONE} if there is no object of this handle. */
    int place(final int handle) {
        return places.get(handle);
    }

    /** Adds an object, or changes it. */
    void put(final int handle, final int classId, final int parent) {
        final int place = places.get(handle);
        if (place == NONE) {
            places.put(handle, handles.size());
            handles.addInt(handle);
            classes.addInt(classId);
            parents.addInt(parent);
        } else {
            classes.setInt(place, classId);
            parents.setInt(place, parent);
        }
    }

    void remove(final int handle) {
        final int place = places.remove(handle);
        if (place == NONE) {
            return;
        }
        handles.removeAt(place);
        classes.removeAt(place);
        parents.removeAt(place);
        for (int i = place; i < handles.size(); i++) {
            places.put(handles.getInt(i), i);
        }
    }
}
