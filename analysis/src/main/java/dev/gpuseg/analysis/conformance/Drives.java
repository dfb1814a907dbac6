/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.conformance;

import dev.gpuseg.core.Policy;
import java.util.ArrayList;
import java.util.List;

/** Many random scenarios. What one of them contradicts is told with as few of its events as contradict it too. */
final class Drives {
    private final Policy policy;
    private final Effort effort;
    private final Findings findings;

    Drives(final Policy policy, final Effort effort, final Findings findings) {
        this.policy = policy;
        this.effort = effort;
        this.findings = findings;
    }

    void run() {
        for (int i = 0; i < effort.sequences(); i++) {
            final Scenario scenario = Scenario.random(effort.seed() * 1_000_003 + i, effort.events());
            final Findings here = new Findings();
            final List<String> first = new Drive(policy, scenario, here).run();
            final List<String> second = new Drive(policy, scenario, new Findings()).run();
            here.require(Law.REPLAY, first.equals(second), () -> "two runs differ: " + difference(first, second));
            for (final Law law : Law.values()) {
                if (here.has(law) && !findings.has(law)) {
                    findings.add(law, law == Law.REPLAY ? told(here, law) + " after " + scenario.text()
                        : shortened(law, scenario));
                }
            }
        }
    }

    private static String difference(final List<String> a, final List<String> b) {
        int at = 0;
        while (at < a.size() && at < b.size() && a.get(at).equals(b.get(at))) {
            at++;
        }
        return (at < a.size() ? a.get(at) : "nothing") + " against " + (at < b.size() ? b.get(at) : "nothing");
    }

    private static String told(final Findings here, final Law law) {
        return here.results().get(law.ordinal()).counterexample();
    }

    private Findings run(final Scenario scenario) {
        final Findings here = new Findings();
        new Drive(policy, scenario, here).run();
        return here;
    }

    /** Leaves out halves, quarters, ... single events while the law stays broken. */
    private String shortened(final Law law, final Scenario whole) {
        Scenario best = whole;
        for (int chunk = whole.events().size() / 2; chunk > 0; chunk /= 2) {
            for (int from = 0; from < best.events().size();) {
                final List<Scenario.Event> fewer = new ArrayList<>(best.events());
                fewer.subList(from, Math.min(from + chunk, fewer.size())).clear();
                final Scenario candidate = best.with(fewer);
                if (run(candidate).has(law)) {
                    best = candidate;
                } else {
                    from += chunk;
                }
            }
        }
        final Findings here = run(best);
        // a policy that answers at random may keep the law this time
        return (here.has(law) ? told(here, law) : "seen once, not every time") + " after " + best.text();
    }
}
