/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.policy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.core.Policy;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.PolicyProvider;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PolicyJarTest {
    private static final String BODY = """
        public int compare(SegmentView a, SegmentView b) {
            return a.isRealTime() == b.isRealTime() ? 0 : a.isRealTime() ? -1 : 1;
        }
        public boolean mayRunBeside(SegmentView l, SegmentView o) { return !l.isRealTime() && !o.isRealTime(); }
        public boolean admitsBackground(SegmentView l) { return !l.isRealTime(); }
        public int pregrantCeiling(SegmentView b) { return b.isRealTime() ? Priority.MAX : Priority.BELOW_ALL; }
        """;

    @TempDir
    private Path directory;
    private TestJar jar;

    @BeforeEach
    void setUp() throws IOException {
        jar = new TestJar(directory.resolve("jar"));
    }

    private static String policy(final String name, final String constructor) {
        return "import dev.gpuseg.core.*;\npublic class First implements Policy {\n    public First() { " + constructor
            + " }\n    public String name() { return \"" + name + "\"; }\n" + BODY + "}\n";
    }

    private static String refusal(final Path file) {
        final String message = assertThrows(IllegalArgumentException.class,
            () -> PolicyJar.open(file, PolicyCatalog.builtIn()).close()).getMessage();
        assertFalse(message.contains("\n"), message);
        assertTrue(message.startsWith(file + ": "), message);
        return message.substring(file.toString().length() + 2);
    }

    @Test
    void shouldOfferAPolicyOfAJarUnderItsName() throws IOException {
        final Path file = jar.source("First", policy("first", "")).service(Policy.class, "First").build("first.jar");
        try (PolicyJar open = PolicyJar.open(file, PolicyCatalog.builtIn())) {
            assertEquals(PolicyCatalog.builtIn().names().replace(" or ", ", ") + " or first", open.catalog().names());
            assertEquals(1, open.offered().size());
            final Policy policy = open.catalog().create("first");
            assertEquals("first", policy.name());
            assertTrue(policy.enforces());
            assertEquals("From " + file + ": First.", open.offered().get(0).summary());
        }
        assertTrue(PolicyCatalog.builtIn().find("first").isEmpty(), "the built-in catalogue does not change");
    }

    @Test
    void shouldOfferAPolicyWithParametersThroughItsProvider() throws IOException {
        jar.source("First", "import dev.gpuseg.core.*;\npublic class First implements Policy {\n"
            + "    final long n;\n    First(long n) { this.n = n; }\n"
            + "    public String name() { return \"first\"; }\n"
            + "    public String describe() { return \"first of \" + n; }\n" + BODY + "}\n");
        jar.source("Offer", """
            import dev.gpuseg.core.*;
            import java.util.*;
            public class Offer implements PolicyProvider {
                public PolicyDescription description() {
                    return new PolicyDescription("first", "One.", List.of(PolicyParameter.integer("n", 1, 9, 3L, "n")),
                        Set.of(), true, List.of(), a -> new First(a.number("n")));
                }
            }
            """);
        final Path file = jar.service(PolicyProvider.class, "Offer").build("offer.jar");
        try (PolicyJar open = PolicyJar.open(file, PolicyCatalog.builtIn())) {
            assertEquals("first of 3", open.catalog().create("first").describe());
            assertEquals("first of 7", open.catalog().create("first", Map.of("n", 7)).describe());
            assertEquals("policy first: n is 10; it must be 1..9", assertThrows(IllegalArgumentException.class,
                () -> open.catalog().create("first", Map.of("n", 10))).getMessage());
        }
    }

    @Test
    void shouldRefuseWhatIsNoJar() throws IOException {
        assertEquals("there is no such file, or it cannot be read", refusal(directory.resolve("absent.jar")));
        final Path text = Files.writeString(directory.resolve("text.jar"), "no jar");
        assertTrue(refusal(text).startsWith("it is no jar file ("), refusal(text));
    }

    @Test
    void shouldRefuseAJarWithoutAPolicy() throws IOException {
        assertEquals("it offers no policy; name the class in META-INF/services/dev.gpuseg.core.Policy",
            refusal(jar.build("empty.jar")));
    }

    @Test
    void shouldRefuseANameThatIsTaken() throws IOException {
        final Path file = jar.source("First", policy("edf", "")).service(Policy.class, "First").build("edf.jar");
        assertEquals("policy \"edf\" exists already; give yours another name", refusal(file));
    }

    @Test
    void shouldRefuseANameThatCannotBeWrittenDown() throws IOException {
        final Path file = jar.source("First", policy("My Policy", "")).service(Policy.class, "First").build("my.jar");
        assertTrue(refusal(file).startsWith("policy \"My Policy\": a name is 1..31 lower-case letters"));
    }

    @Test
    void shouldRefuseAPolicyWhoseConstructorThrowsWithItsReason() throws IOException {
        final Path file = jar.source("First", policy("first", "if (System.nanoTime() != 0) "
            + "{ throw new IllegalStateException(\"no luck\"); }")).service(Policy.class, "First").build("throws.jar");
        final String said = refusal(file);
        assertTrue(said.contains("First could not be instantiated") && said.contains("no luck"), said);
    }

    @Test
    void shouldRefuseAClassThatIsNoPolicyOrIsNotThere() throws IOException {
        final Path file = jar.source("First", "public class First { public First() { } }\n")
            .service(Policy.class, "First").build("class.jar");
        assertTrue(refusal(file).contains("First not a subtype"), refusal(file));
        final Path absent = new TestJar(directory.resolve("other")).service(Policy.class, "Absent").build("absent.jar");
        assertTrue(refusal(absent).contains("Provider Absent not found"), refusal(absent));
    }

    @Test
    void shouldRefuseAProviderThatClaimsAnAnalysis() throws IOException {
        jar.source("First", policy("first", "")).source("Offer", """
            import dev.gpuseg.core.*;
            import java.util.*;
            public class Offer implements PolicyProvider {
                public PolicyDescription description() {
                    return new PolicyDescription("first", "One.", List.of(), Set.of(), true,
                        PolicyCatalog.builtIn().get("fp").analyses(), a -> new First());
                }
            }
            """);
        assertEquals("policy first: a policy from a jar cannot name an analysis that holds for it; leave analyses "
            + "empty", refusal(jar.service(PolicyProvider.class, "Offer").build("claim.jar")));
    }
}
