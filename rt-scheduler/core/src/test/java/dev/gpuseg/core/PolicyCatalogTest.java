/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

class PolicyCatalogTest {
    private static final PolicyCatalog CATALOG = PolicyCatalog.builtIn();
    private static final Map<String, Object> WINDOW = Map.of("partition", 1, "offset", 0, "length", 40_000_000L);
    private static final Map<String, Object> FRAME =
        Map.of("frame", 100_000_000L, "guard", 2_000_000L, "windows", List.of(WINDOW));

    private static String refusal(final String name, final Map<String, ?> arguments) {
        return assertThrows(IllegalArgumentException.class, () -> CATALOG.create(name, arguments)).getMessage();
    }

    private static Map<String, Object> frameWith(final String key, final Object value) {
        final Map<String, Object> all = new java.util.HashMap<>(FRAME);
        all.put(key, value);
        return all;
    }

    @Test
    void shouldDescribeEveryPolicyAsItsClassDoes() {
        for (final PolicyDescription row : CATALOG.all()) {
            final Policy policy = CATALOG.create(row.name(), row.hasDefaults() ? Map.of() : FRAME);
            assertEquals(row.name(), policy.name());
            assertEquals(row.enforces(), policy.enforces(), row.name());
            final Set<TaskNeed> needs = new HashSet<>(row.needs());
            if (policy.ordering() != policy) {
                needs.addAll(policy.ordering().needs());
            }
            assertEquals(needs, policy.needs(), row.name());
            assertEquals(policy.isTimed(), policy.timetable().isPresent(), row.name());
        }
    }

    @Test
    void shouldRefuseAnUnknownPolicyNamingThoseThatExist() {
        assertEquals("policy \"lottery\" is unknown; use " + CATALOG.names(),
            refusal("lottery", Map.of()));
        assertEquals("policy \"lottery\" is unknown; use " + CATALOG.names(),
            refusal("partitions", frameWith("inside", "lottery")));
    }

    @Test
    void shouldRefuseValuesOfTheWrongKindOrOutOfRange() {
        assertEquals("policy classes: class_width is 100; it must be 1..99",
            refusal("classes", Map.of("class_width", 100)));
        assertEquals("policy classes: class_width is wide; it must be 1..99",
            refusal("classes", Map.of("class_width", "wide")));
        assertEquals("policy partitions: frame is 0 ns; it must be 1..3600000000000 ns",
            refusal("partitions", frameWith("frame", 0)));
        assertEquals("policy partitions: lend_idle is 1; it must be true or false",
            refusal("partitions", frameWith("lend_idle", 1)));
        assertEquals("policy partitions: windows is a list of 0; it must be a list of 1..1024 entries",
            refusal("partitions", frameWith("windows", List.of())));
        assertEquals("policy partitions: inside is 3; it must be the name of a policy",
            refusal("partitions", frameWith("inside", 3)));
        assertEquals("policy partitions: windows[0]: length is missing (guard included)",
            refusal("partitions", frameWith("windows", List.of(Map.of("partition", 1, "offset", 0)))));
        assertEquals("policy partitions: windows[0] is 7; it must have fields",
            refusal("partitions", frameWith("windows", List.of(7))));
        assertEquals("policy partitions: windows[0]: \"lenght\" is unknown", refusal("partitions",
            frameWith("windows", List.of(Map.of("partition", 1, "offset", 0, "length", 9, "lenght", 9)))));
    }

    @Test
    void shouldRefuseWhatIsMissingOrUnknown() {
        assertEquals("policy partitions: frame is missing (length of the major frame)",
            refusal("partitions", Map.of()));
        assertEquals("policy fp: \"class_width\" is none of its parameters; it has none",
            refusal("fp", Map.of("class_width", 2)));
        assertEquals("policy classes: \"width\" is none of its parameters; use class_width",
            refusal("classes", Map.of("width", 2)));
        assertEquals("policy partitions: \"class_width\" is none of its parameters; use frame, guard, phase, inside, "
            + "lend_idle, windows", refusal("partitions", frameWith("class_width", 2)));
    }

    @Test
    void shouldMakePoliciesWithTheirParameters() {
        assertSame(FixedPriority.INSTANCE, CATALOG.create("fp"));
        final Map<String, Object> arguments = frameWith("inside", "classes");
        arguments.put("class_width", 10);
        arguments.put("phase", 5L);
        final TimePartitions made = assertInstanceOf(TimePartitions.class, CATALOG.create("partitions", arguments));
        assertEquals("classes", made.ordering().name());
        assertEquals("partitions (frame 100ms, inside classes)", made.describe());
        assertEquals(-1, made.ownerAt(4), "the guard before the first window");
        assertEquals(1, made.ownerAt(5));
        assertTrue(made.isOpen(1, 38_000_004));
        assertFalse(made.isOpen(1, 38_000_005), "the guard has begun");
    }

    @Test
    void shouldNameThePoliciesOfADaemonThatIsToldNothing() {
        assertEquals("fp", CATALOG.standard().name());
        assertEquals("rr", CATALOG.observing().name());
        assertFalse(CATALOG.observing().enforces());
    }

    /** Rows are looked up by the name of a policy: one that borrows a name would borrow its analyses. */
    @Test
    void shouldRefuseAFactoryWhosePolicyHasTheNameOfAnotherRow() {
        final PolicyCatalog more = CATALOG.with(new PolicyDescription("borrower", "Calls itself fp.", List.of(),
            Set.of(), true, List.of(), a -> FixedPriority.INSTANCE));
        assertEquals("policy borrower: its factory makes a policy that calls itself \"fp\"; give both one name",
            assertThrows(IllegalArgumentException.class, () -> more.create("borrower")).getMessage());
    }

    @Test
    void shouldRefuseARowThatClashesOrCannotBeWrittenDown() {
        assertEquals("policy \"fp\" exists already; give yours another name", assertThrows(
            IllegalArgumentException.class, () -> CATALOG.with(PolicyDescription.of(FixedPriority.INSTANCE, "again")))
            .getMessage());
        assertThrows(IllegalArgumentException.class, () -> new PolicyDescription("Two Words", "x", List.of(), Set.of(),
            true, List.of(), a -> FixedPriority.INSTANCE));
        assertThrows(IllegalArgumentException.class, () -> new PolicyDescription("x", "two\nlines", List.of(),
            Set.of(), true, List.of(), a -> FixedPriority.INSTANCE));
    }
}
