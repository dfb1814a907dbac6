/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class RmObjectsTest {
    private static final int DEEP = 16_384;

    private final RmObjects objects = new RmObjects();

    private List<Integer> handles() {
        final List<Integer> handles = new ArrayList<>();
        for (int i = 0; i < objects.size(); i++) {
            assertEquals(i, objects.place(objects.handle(i)));
            handles.add(objects.handle(i));
        }
        return handles;
    }

    @Test
    void shouldRemoveAnObjectAndAllBelowIt() {
        objects.put(1, 0x80, 0);
        objects.put(2, 0xa06c, 1);
        objects.put(3, 0xc86f, 2);
        objects.put(4, 0x2080, 1);
        objects.put(5, 0x80, 0);
        objects.put(6, 0x2080, 5);
        objects.removeTree(1);
        assertEquals(List.of(5, 6), handles());
        assertEquals(RmObjects.NONE, objects.place(3));
        assertEquals(0x2080, objects.classId(objects.place(6)));
        assertTrue(objects.wasRemoved(3));
        assertFalse(objects.wasRemoved(6));
    }

    @Test
    void shouldRemoveWhatIsBelowAnObjectThatIsNotHere() {
        objects.put(2, 0x2080, 1);
        objects.removeTree(1);
        assertEquals(List.of(), handles());
    }

    /** A process can claim any depth, and circles. */
    @Test
    void shouldRemoveATreeOfAnyDepth() {
        for (int i = 1; i <= DEEP; i++) {
            objects.put(i, 0x2080, i - 1);
        }
        objects.put(1, 0x2080, DEEP);
        objects.removeTree(1);
        assertEquals(List.of(), handles());
    }
}
