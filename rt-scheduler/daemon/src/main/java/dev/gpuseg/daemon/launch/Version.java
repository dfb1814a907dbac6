/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.launch;

import java.io.IOException;
import java.io.InputStream;
import java.util.Properties;
import picocli.CommandLine.IVersionProvider;

/** The version of this build. The root pom states it; Maven writes it into a resource of this package. */
public final class Version implements IVersionProvider {
    private static final String RESOURCE = "version.properties";

    /** The version, such as {@code 0.1.0}, without the mark of a snapshot. */
    public static String text() {
        try (InputStream in = Version.class.getResourceAsStream(RESOURCE)) {
            final Properties properties = new Properties();
            properties.load(in);
            return properties.getProperty("version").replace("-SNAPSHOT", "");
        } catch (final IOException e) {
            throw new IllegalStateException(RESOURCE + " of " + Version.class.getPackageName() + " cannot be read", e);
        }
    }

    @Override
    public String[] getVersion() {
        return new String[] {"gpuseg " + text()};
    }
}
