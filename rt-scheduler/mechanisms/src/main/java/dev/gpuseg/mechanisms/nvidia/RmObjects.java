/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import org.agrona.collections.Int2IntHashMap;
import org.agrona.collections.IntArrayList;
import org.agrona.collections.IntHashSet;

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
    private final IntHashSet gone = new IntHashSet();

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

    /** Removes an object, whether it is here or not, and all below it: those that were found after their parents. */
    void removeTree(final int handle) {
        gone.clear();
        gone.add(handle);
        int kept = 0;
        for (int i = 0; i < handles.size(); i++) {
            final int each = handles.getInt(i);
            if (gone.contains(parents.getInt(i))) {
                gone.add(each);
            }
            if (gone.contains(each)) {
                places.remove(each);
                continue;
            }
            if (kept != i) {
                handles.setInt(kept, each);
                classes.setInt(kept, classes.getInt(i));
                parents.setInt(kept, parents.getInt(i));
                places.put(each, kept);
            }
            kept++;
        }
        while (handles.size() > kept) {
            handles.removeAt(handles.size() - 1);
            classes.removeAt(classes.size() - 1);
            parents.removeAt(parents.size() - 1);
        }
    }

    /** Whether the last removal removed this one. */
    boolean wasRemoved(final int handle) {
        return gone.contains(handle);
    }
}
