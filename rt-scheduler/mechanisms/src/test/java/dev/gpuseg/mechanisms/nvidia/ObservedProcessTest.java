/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.mechanisms.observer.Observation;
import java.util.List;
import org.junit.jupiter.api.Test;

class ObservedProcessTest {
    private static final int CLIENT = 0xc1d00001;
    private static final int FIRST = 100;
    private static final int DEEP = 4_000;

    private static Observation record(final Observation.Kind kind, final int parent, final int handle,
        final int classId) {
        return new Observation(kind, 10, 20, true, 0, 5, 10, CLIENT, parent, handle, classId, 0, 0, 0);
    }

    private static ObservedProcess process() {
        final Observation open = record(Observation.Kind.OPEN, 0, 0, 0);
        final ObservedProcess p = new ObservedProcess(open);
        p.take(open);
        p.take(record(Observation.Kind.ALLOC, 0, CLIENT, 0x41));
        p.take(record(Observation.Kind.ALLOC, CLIENT, 1, 0x80));
        p.take(record(Observation.Kind.ALLOC, 1, 2, 0xa06c));
        p.take(record(Observation.Kind.ALLOC, 2, 3, 0xc86f));
        return p;
    }

    private static List<Integer> handles(final ObservedProcess p) {
        return p.objects().stream().map(Observation::handle).toList();
    }

    @Test
    void shouldForgetWhatIsBelowAFreedObject() {
        final ObservedProcess p = process();
        p.take(record(Observation.Kind.FREE, 0, 1, 0));
        assertEquals(List.of(CLIENT), handles(p));
    }

    /** A process can claim any depth; a recursion would end the thread that follows all processes. */
    @Test
    void shouldForgetATreeOfAnyDepth() {
        final ObservedProcess p = process();
        for (int i = 0; i < DEEP; i++) {
            p.take(record(Observation.Kind.ALLOC, FIRST + i, FIRST + i + 1, 0x2080));
        }
        assertTrue(p.isWhole());
        p.take(record(Observation.Kind.FREE, 0, FIRST + 1, 0));
        assertEquals(List.of(CLIENT, 1, 2, 3), handles(p));
    }

    @Test
    void shouldForgetAllOfAFreedClient() {
        final ObservedProcess p = process();
        p.take(record(Observation.Kind.FREE, 0, CLIENT, 0));
        assertEquals(List.of(), handles(p));
        assertTrue(p.isWhole());
    }

    @Test
    void shouldTellNewsInOrderAndOnce() {
        final ObservedProcess p = process();
        assertEquals(CLIENT, p.nextNews().handle());
        p.take(record(Observation.Kind.FREE, 0, 3, 0));
        assertEquals(1, p.nextNews().handle());
        assertEquals(2, p.nextNews().handle());
        assertEquals(Observation.Kind.ALLOC, p.nextNews().kind());
        assertEquals(Observation.Kind.FREE, p.nextNews().kind());
        assertFalse(p.hasNews());
    }

    @Test
    void shouldKnowWhichDescriptorsTheProcessOpened() {
        final ObservedProcess p = process();
        assertTrue(p.opened(5));
        assertTrue(p.takeFilesChanged());
        assertFalse(p.takeFilesChanged());
        p.take(record(Observation.Kind.CLOSE, 0, 0, 0));
        assertFalse(p.opened(5));
        assertTrue(p.takeFilesChanged());
    }

    @Test
    void shouldNotBeWholeOnceSomethingWasNotSeen() {
        final ObservedProcess p = process();
        p.take(record(Observation.Kind.UNSEEN, 0, 0, 0));
        p.take(record(Observation.Kind.ALLOC, 2, 4, 0xc86f));
        assertFalse(p.isWhole());
        assertEquals(List.of(), handles(p));
        assertFalse(p.hasNews());
    }

    @Test
    void shouldNotFillTheMemoryForAProcessThatMakesObjectsWithoutEnd() {
        final ObservedProcess p = process();
        for (int handle = 100; handle < 40_000; handle++) {
            p.take(record(Observation.Kind.ALLOC, 2, handle, 0xc86f));
        }
        assertFalse(p.isWhole());
        assertEquals(List.of(), handles(p));
    }
}
