/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

/** The page of a timeline as a browser shows it. */
final class TimelinePage {
    private static final Path CHROMIUM = Path.of("/usr/bin/chromium");

    private TimelinePage() {
    }

    static void assumeBrowser() {
        assumeTrue(Files.isExecutable(CHROMIUM), "no browser: " + CHROMIUM + " missing");
    }

    /**
     * Opens the page and waits until its script has run to its end.
     *
     * @param page      the file
     * @param hash      what follows its address, {@code #from=...}; may be empty
     * @param directory for the browser's files
     * @return what the page has become, without its scripts
     */
    static String shown(final Path page, final String hash, final Path directory) throws Exception {
        final Path dom = directory.resolve("dom.html");
        final Process browser = new ProcessBuilder(CHROMIUM.toString(), "--headless", "--no-sandbox", "--disable-gpu",
            "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", "--user-data-dir=" + directory.resolve("profile"), "--virtual-time-budget=5000",
            "--dump-dom", page.toUri() + hash).redirectOutput(dom.toFile())
            .redirectError(ProcessBuilder.Redirect.DISCARD).start();
        try {
            assertTrue(browser.waitFor(60, TimeUnit.SECONDS), "the browser does not end");
        } finally {
            browser.descendants().forEach(ProcessHandle::destroyForcibly);
            browser.destroyForcibly();
        }
        final String text = Files.readString(dom).replaceAll("(?s)<script.*?</script>", "");
        assertTrue(text.contains("data-ready=\"1\""), "the script ran to its end");
        return text;
    }
}
