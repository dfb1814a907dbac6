/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.kubernetes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;

class AgentMainTest {
    @Test
    void shouldSayTheVersionOfTheBuild() throws Exception {
        final Matcher version = Pattern.compile("<artifactId>gpuseg</artifactId>\\s*<version>(.*)</version>")
            .matcher(Files.readString(Path.of(System.getProperty("gpuseg.root"), "pom.xml")));
        assertTrue(version.find(), "the root pom states it");
        final StringWriter out = new StringWriter();
        assertEquals(0, new CommandLine(new AgentMain()).setOut(new PrintWriter(out)).execute("--version"));
        assertEquals("gpuseg " + version.group(1), out.toString().strip());
    }
}
