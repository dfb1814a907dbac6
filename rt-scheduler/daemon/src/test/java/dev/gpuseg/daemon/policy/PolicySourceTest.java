/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.policy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.policy.TestJar;
import dev.gpuseg.analysis.rta.CoreOrder;
import dev.gpuseg.analysis.rta.SoundAnalysis;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.PolicyDescription;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.MechanismCatalog;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(120)
class PolicySourceTest {
    /** Fixed priority, but where priorities are equal each comes before the other. */
    private static final String UNFAIR = """
        public final class Unfair implements dev.gpuseg.core.Policy {
            @Override
            public String name() {
                return "unfair";
            }

            @Override
            public int compare(final dev.gpuseg.core.SegmentView a, final dev.gpuseg.core.SegmentView b) {
                return a.gpuPriority() >= b.gpuPriority() ? -1 : 1;
            }

            @Override
            public boolean mayRunBeside(final dev.gpuseg.core.SegmentView a, final dev.gpuseg.core.SegmentView b) {
                return !a.isRealTime() && !b.isRealTime();
            }

            @Override
            public boolean admitsBackground(final dev.gpuseg.core.SegmentView leader) {
                return !leader.isRealTime();
            }

            @Override
            public int pregrantCeiling(final dev.gpuseg.core.SegmentView begun) {
                return 99;
            }
        }
        """;

    @TempDir
    private Path directory;

    private Path unfair() throws IOException {
        return new TestJar(directory.resolve("unfair")).source("Unfair", UNFAIR).service(Policy.class, "Unfair")
            .build("unfair.jar");
    }

    private static void mode(final Path path, final String mode) throws IOException {
        Files.setPosixFilePermissions(path, PosixFilePermissions.fromString(mode));
    }

    @Test
    void shouldRefuseAPolicyThatBreaksALawWithACounterexampleInOneLine() throws IOException {
        try (PolicySource source = PolicySource.open(unfair())) {
            final Policy policy = source.standard();
            assertEquals("unfair", policy.name());
            assertFalse(source.isAccepted(policy));
            final String refused = source.refusal(policy);
            assertTrue(refused.startsWith("policy unfair of ") && refused.contains("breaks the law antisymmetric (")
                && refused.contains("gpuseg policy verify"), refused);
            assertEquals(1, refused.lines().count(), refused);
            assertEquals(refused, source.refusal(), "a daemon would refuse the jar");
            assertFalse(source.isAccepted(policy));
        }
    }

    @Test
    void shouldAcceptAPolicyThatConformsAndOneOfPartitionsAroundIt() throws IOException {
        try (PolicySource source = PolicySource.open(TestJar.leastSlackFirst(directory.resolve("jar")))) {
            final Policy policy = source.standard();
            assertFalse(source.isAccepted(policy));
            final Policy around = source.reader().read(Files.writeString(directory.resolve("p.yaml"), "policy: "
                + "partitions\nframe: 9ms\nguard: 1ms\ninside: least-slack\n"
                + "windows: [{partition: 1, offset: 0ms, length: 4ms}]\n")).policy();
            assertFalse(source.isAccepted(around), "what decides inside is not checked yet");
            assertNull(source.refusal());
            assertTrue(source.isAccepted(policy));
            assertTrue(source.isAccepted(around));
            assertTrue(source.isAccepted(PolicyCatalog.builtIn().standard()));
        }
    }

    @Test
    void shouldHaveNoSoundAnalysisForAPolicyOfAJar() throws IOException {
        try (PolicySource source = PolicySource.open(TestJar.leastSlackFirst(directory.resolve("jar")))) {
            for (int level = 1; level <= 3; level++) {
                final SoundAnalysis none = SoundAnalysis.of(source.standard(), level, WaitMode.SUSPEND, CoreOrder.FP,
                    MechanismCatalog.interrupting());
                assertFalse(none.exists());
                assertEquals("policy least-slack has no sound analysis; use fp or edf, or --admission off",
                    none.reason());
            }
        }
    }

    @Test
    void shouldRunNoCodeThatAnotherUserCouldHaveWritten() throws IOException {
        final int self = ProcessStatus.effectiveUid();
        final Path jar = Files.writeString(directory.toRealPath().resolve("a.jar"), "x");
        mode(jar, "rw-r--r--");
        assertNull(PolicySource.distrust(jar, self));
        for (final String open : new String[] {"rw-rw-r--", "rw-r--rw-"}) {
            mode(jar, open);
            final String why = PolicySource.distrust(jar, self);
            assertTrue(why.startsWith(jar + " can be written by other users (mode 6") && why.endsWith("chmod go-w "
                + jar), why);
        }
        mode(jar, "rw-r--r--");
        mode(directory, "rwxrwxrwx");
        assertTrue(PolicySource.distrust(jar, self).startsWith(directory.toRealPath() + " can be written"));
        mode(directory, "rwx------");
        if (self == 0) {
            Files.setAttribute(jar, "unix:uid", 1234);
            assertTrue(PolicySource.distrust(jar, 0).contains("belongs to user 1234, and its code would run"));
            assertTrue(assertThrows(IllegalArgumentException.class, () -> PolicySource.openOwned(jar)).getMessage()
                .contains("belongs to user 1234"));
            assertTrue(assertThrows(IllegalArgumentException.class, () -> PolicySource.openOwned(jar, 4321))
                .getMessage().contains("belongs to user 1234"), "the packages' daemon is not root");
        }
    }

    @Test
    void shouldNameThePoliciesWhereItMustBeSaidWhichOne() throws IOException {
        final Path two = new TestJar(directory.resolve("two")).source("Unfair", UNFAIR)
            .source("Other", UNFAIR.replace("Unfair", "Other").replace("unfair", "other"))
            .service(Policy.class, "Unfair\nOther").build("two.jar");
        try (PolicySource source = PolicySource.open(two)) {
            assertEquals("unfair, other", String.join(", ",
                source.offered().stream().map(PolicyDescription::name).toList()));
            assertTrue(assertThrows(IllegalArgumentException.class, source::standard).getMessage()
                .endsWith("two.jar offers unfair, other; name one with --policy, or in a policy file with its "
                + "parameters"));
        }
    }
}
