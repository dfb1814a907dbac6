/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import org.junit.jupiter.api.Test;

/** The core stays pure: it knows the JDK and Agrona's collections, opens nothing, starts nothing, reads no clock. */
class ArchitectureTest {
    private static final JavaClasses CORE = new ClassFileImporter()
        .withImportOption(new ImportOption.DoNotIncludeTests()).importPackages("dev.gpuseg.core");

    @Test
    void shouldDependOnTheJdkAndAgronaCollectionsOnly() {
        classes().that().resideInAPackage("dev.gpuseg.core..")
            .should().onlyDependOnClassesThat()
            .resideInAnyPackage("java..", "org.agrona.collections..", "dev.gpuseg.core..").check(CORE);
    }

    @Test
    void shouldOpenNothing() {
        noClasses().should().dependOnClassesThat()
            .resideInAnyPackage("java.io..", "java.nio..", "java.net..", "java.util.logging..", "java.time..",
            "java.util.concurrent..").check(CORE);
    }

    @Test
    void shouldStartNothing() {
        noClasses().should().dependOnClassesThat()
            .belongToAnyOf(Thread.class, ProcessBuilder.class, Runtime.class, java.util.Timer.class).check(CORE);
    }

    @Test
    void shouldReadNoClock() {
        noClasses().should().callMethod(System.class, "nanoTime")
            .orShould().callMethod(System.class, "currentTimeMillis")
            .orShould().accessField(System.class, "out").orShould().accessField(System.class, "err")
            .orShould().callMethod(Math.class, "random").check(CORE);
    }

    @Test
    void shouldKeepPoliciesFreeOfStateAndEffects() {
        classes().that().implement(Policy.class)
            .should().haveOnlyFinalFields()
            .andShould().onlyDependOnClassesThat(
                JavaClass.Predicates.resideInAnyPackage("java.lang..", "java.util", "dev.gpuseg.core")).check(CORE);
    }
}
