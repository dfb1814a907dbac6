/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Mechanism;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class HoldingMechanismTest {
    private static final List<String> OWN = List.of("joined", "left");

    private final HeldSession session = new HeldSession();
    private final ContextRef context = new ContextRef(1, 0, 101, 1, "a");
    private final List<String> calls = new ArrayList<>();
    /** What the client's word said when the device was called. */
    private final List<Boolean> heldThen = new ArrayList<>();
    private final Mechanism device = (Mechanism) Proxy.newProxyInstance(Mechanism.class.getClassLoader(),
        new Class<?>[] {Mechanism.class}, (proxy, method, arguments) -> answer(method));

    private Object answer(final Method method) {
        calls.add(method.getName());
        heldThen.add(session.isHeld(0));
        return switch (method.getReturnType().getName()) {
            case "int" -> 3;
            case "boolean" -> true;
            case "java.lang.String" -> "the device's";
            case "[B" -> new byte[] {5};
            default -> method.getReturnType() == Capabilities.class
                ? new Capabilities(Capabilities.INTERRUPT, 11, 12, 13, 14, 15, true, "TSG") : null;
        };
    }

    @Test
    void shouldHoldLaunchesBeforeTheDeviceDisablesAndLetThemGoAfterItEnables() {
        try (HoldingMechanism both = new HoldingMechanism(device)) {
            both.attach(context);
            both.joined(context, session.session, session.word(0));
            calls.clear();
            heldThen.clear();
            assertEquals(3, both.apply(new ContextRef[] {context}, 1, new ContextRef[0], 0), "failures are its own");
            assertTrue(session.isHeld(0));
            both.apply(new ContextRef[0], 0, new ContextRef[] {context}, 1);
            assertFalse(session.isHeld(0));
            assertEquals(List.of("apply", "apply"), calls);
            assertEquals(List.of(true, true), heldThen);
        }
    }

    @Test
    void shouldSayThatItHoldsLaunchesAndElseWhatTheDeviceSays() {
        try (HoldingMechanism both = new HoldingMechanism(device)) {
            assertEquals(new Capabilities(Capabilities.INTERRUPT, 11, 12, 13, 14, 15, true, "TSG", true),
                both.capabilities());
        }
    }

    @Test
    void shouldPassEveryOtherCallOn() throws ReflectiveOperationException {
        final HoldingMechanism both = new HoldingMechanism(device);
        for (final Method method : Mechanism.class.getMethods()) {
            if (OWN.contains(method.getName()) || method.getDeclaringClass() == Object.class) {
                continue;
            }
            calls.clear();
            call(both, method);
            assertTrue(calls.contains(method.getName()), method.getName() + " does not reach the device");
        }
    }

    private void call(final HoldingMechanism both, final Method method) throws ReflectiveOperationException {
        final Object[] arguments = new Object[method.getParameterCount()];
        for (int i = 0; i < arguments.length; i++) {
            final Class<?> type = method.getParameterTypes()[i];
            arguments[i] = type == ContextRef.class ? context : type == boolean.class ? Boolean.TRUE
                : type == int.class ? Integer.valueOf(0) : type == long.class ? Long.valueOf(0)
                : type == ContextRef[].class ? new ContextRef[0] : null;
        }
        try {
            method.invoke(both, arguments);
        } catch (final InvocationTargetException e) {
            throw new AssertionError(method.getName(), e.getCause());
        }
    }

    @Test
    void shouldOfferTheDevicesRehearsalOnlyIfItHasOne() {
        try (HoldingMechanism both = new HoldingMechanism(device)) {
            assertEquals(null, both.rehearsal());
        }
    }
}
