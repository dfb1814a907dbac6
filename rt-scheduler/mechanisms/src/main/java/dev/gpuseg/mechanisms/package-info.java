/* SPDX-License-Identifier: Apache-2.0 */
/**
 * What disables and enables contexts on a GPU: the {@link dev.gpuseg.mechanisms.Mechanism} interface, its
 * implementations (one package each), and what they share. A new mechanism is one package and one row of the
 * {@link dev.gpuseg.mechanisms.MechanismCatalog}.
 */
package dev.gpuseg.mechanisms;
