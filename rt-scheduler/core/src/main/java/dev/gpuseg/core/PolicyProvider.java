/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/**
 * Offers a policy with parameters from outside. A jar names its provider in
 * {@code META-INF/services/dev.gpuseg.core.PolicyProvider}; the class is public and has a public constructor without
 * arguments. A policy without parameters needs no provider: its own class is named in
 * {@code META-INF/services/dev.gpuseg.core.Policy}.
 */
public interface PolicyProvider {
    /**
     * The policy's row of the catalogue.
     *
     * @return the row; its {@link PolicyDescription#analyses()} must be empty, since admission trusts only proofs that
     *     come with the program
     */
    PolicyDescription description();
}
