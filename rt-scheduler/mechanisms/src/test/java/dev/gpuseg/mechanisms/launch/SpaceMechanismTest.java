/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.launch;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Mechanism;
import dev.gpuseg.mechanisms.ProcessListener;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class SpaceMechanismTest {
    private static final int INSIDE = 101;
    private static final int OUTSIDE = 102;
    private static final ContextRef[] NOBODY = new ContextRef[0];

    private final HeldSession session = new HeldSession();
    private final ContextRef inside = new ContextRef(1, 0, INSIDE, 1, "inside");
    private final ContextRef outside = new ContextRef(2, 0, OUTSIDE, 1, "outside").ofOutside();
    private final List<String> calls = new ArrayList<>();
    private ProcessListener listener;
    private final Mechanism device = (Mechanism) Proxy.newProxyInstance(Mechanism.class.getClassLoader(),
        new Class<?>[] {Mechanism.class}, (proxy, method, arguments) -> answer(method.getName(), arguments));
    private final SpaceMechanism both = new SpaceMechanism(new LaunchMechanism(true), device, pid -> pid == INSIDE);

    private Object answer(final String name, final Object[] arguments) {
        return switch (name) {
            case "apply" -> {
                calls.add("off " + names((ContextRef[]) arguments[0], (int) arguments[1]) + " on "
                    + names((ContextRef[]) arguments[2], (int) arguments[3]) + " held " + session.isHeld(0));
                yield (int) arguments[1] + (int) arguments[3];
            }
            case "processListener" -> {
                listener = (ProcessListener) arguments[0];
                yield null;
            }
            case "id" -> 7;
            case "heldPayload" -> new byte[] {5};
            default -> {
                calls.add(name + " " + (arguments == null ? "" : arguments[0]));
                yield null;
            }
        };
    }

    private static List<String> names(final ContextRef[] contexts, final int count) {
        return Arrays.stream(contexts, 0, count).map(ContextRef::name).toList();
    }

    @BeforeEach
    void attach() {
        both.attach(inside);
        both.joined(inside, session.session, session.word(0));
        both.attach(outside);
    }

    @AfterEach
    void close() {
        both.close();
        assertEquals("close ", calls.get(calls.size() - 1));
    }

    @Test
    void shouldHoldWhoIsInsideAndHaveTheDeviceDisableWhoIsNot() {
        assertEquals(List.of("attach " + outside), calls, "the device knows nothing of who is inside");
        calls.clear();
        assertEquals(1, both.apply(new ContextRef[] {inside, outside}, 2, NOBODY, 0), "failures are the device's");
        assertTrue(session.isHeld(0));
        both.apply(NOBODY, 0, new ContextRef[] {outside, inside}, 2);
        assertFalse(session.isHeld(0));
        assertEquals(List.of("off [outside] on [] held false", "off [] on [outside] held false"), calls);
    }

    @Test
    void shouldDisableAllBeforeItEnablesAny() {
        both.apply(new ContextRef[] {inside}, 1, NOBODY, 0);
        calls.clear();
        both.apply(new ContextRef[] {outside}, 1, new ContextRef[] {inside}, 1);
        assertEquals(List.of("off [outside] on [] held true"), calls);
        assertFalse(session.isHeld(0));
    }

    @Test
    void shouldTakeContextsInAnyNumber() {
        final ContextRef[] many = new ContextRef[200];
        for (int i = 0; i < many.length; i++) {
            many[i] = new ContextRef(i + 3, 0, 1000 + i, 1, "p");
            if (i % 2 == 0) {
                many[i].ofOutside();
            }
            both.attach(many[i]);
        }
        assertEquals(100, both.apply(many, many.length, NOBODY, 0));
    }

    @Test
    void shouldFindOnlyWhoIsOutside() {
        final List<Integer> found = new ArrayList<>();
        both.processListener((pid, startTicks, name) -> found.add(pid));
        listener.found(INSIDE, 1, "server");
        listener.found(OUTSIDE, 1, "stranger");
        assertEquals(List.of(OUTSIDE), found);
        assertTrue(both.isOutside(OUTSIDE));
        assertFalse(both.isOutside(INSIDE));
    }

    @Test
    void shouldBeAGateWhoseHeldEntriesAreTheDevices() {
        assertEquals("launch", both.name());
        assertEquals(Capabilities.GATE, both.capabilities().level());
        assertEquals(7, both.id());
        assertArrayEquals(new byte[] {5}, both.heldPayload(outside));
        assertArrayEquals(new byte[0], both.heldPayload(inside));
    }
}
