#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws before-after.svg from the samples of a recorded run: the response time of every job of a 5 ms kernel.

usage: before_after.py [RUN] [OUT]     RUN: a directory of traces/runs (default: 2026-11-21-h200-complete); OUT: - for standard output
"""
import csv
import io
import pathlib
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
RUNS = HERE.parents[2] / "traces" / "runs"
WIDTH, HEIGHT = 880, 330
LEFT, RIGHT, TOP, BOTTOM = 60, 200, 56, 52
MS_MAX = 30
SERIES = (("samples-long-3-none.csv", "driver by itself", "#c0392b"),
          ("samples-long-3-optimistic.csv", "with gpuseg", "#1e8449"))


def responses_ms(archive, name):
    """The response times of one samples file, in ms, in the order of the jobs."""
    with io.TextIOWrapper(archive.extractfile(f"bench/{name}"), newline="", encoding="utf-8") as lines:
        return [int(row["response_ns"]) / 1e6 for row in csv.DictReader(line for line in lines if line[0] != "#")]


def p99(values):
    """The 99th percentile, nearest rank."""
    ranked = sorted(values)
    return ranked[-(-99 * len(ranked) // 100) - 1]


def draw(run):
    """The picture as SVG text."""
    with tarfile.open(RUNS / run / "samples.tar.xz") as archive:
        alone = p99(responses_ms(archive, "samples-long-alone.csv"))
        jobs = [responses_ms(archive, name) for name, _, _ in SERIES]
    count = max(map(len, jobs))

    def x(job):
        return LEFT + (job + 0.5) * (WIDTH - LEFT - RIGHT) / count

    def y(ms):
        return HEIGHT - BOTTOM - ms * (HEIGHT - TOP - BOTTOM) / MS_MAX

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">',
           f'<title>Response times on an H200, run {run}</title>',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
           f'<text x="{LEFT}" y="22" font-size="16" font-weight="bold" fill="#222222">'
           'A 5 ms GPU kernel beside three busy programs, H200, stock driver</text>',
           f'<text x="{LEFT}" y="41" fill="#555555">response time of each of {count} jobs, lower is better</text>']
    for ms in range(0, MS_MAX + 1, 5):
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(ms):.1f}" y2="{y(ms):.1f}" stroke="#dddddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y(ms) + 4:.1f}" text-anchor="end" fill="#555555">{ms}</text>')
    out.append(f'<text x="{LEFT - 42}" y="{y(MS_MAX / 2):.1f}" text-anchor="middle" fill="#555555" '
               f'transform="rotate(-90 {LEFT - 42} {y(MS_MAX / 2):.1f})">ms</text>')
    for (_, label, colour), values in zip(SERIES, jobs):
        for job, ms in enumerate(values):
            out.append(f'<circle cx="{x(job):.1f}" cy="{y(ms):.1f}" r="2.6" fill="{colour}"/>')
        at = y(sum(values) / len(values))
        out.append(f'<text x="{WIDTH - RIGHT + 10}" y="{at - 6:.1f}" font-weight="bold" fill="{colour}">{label}</text>')
        out.append(f'<text x="{WIDTH - RIGHT + 10}" y="{at + 11:.1f}" fill="{colour}">p99 {p99(values):.1f} ms, '
                   f'{p99(values) / alone:.2f} × alone</text>')
    out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(alone):.1f}" y2="{y(alone):.1f}" stroke="#2c3e50" '
               'stroke-dasharray="6 4"/>')
    out.append(f'<text x="{WIDTH - RIGHT + 10}" y="{y(alone) + 28:.1f}" fill="#2c3e50">dashed: alone, p99 {alone:.2f} ms</text>')
    out.append(f'<text x="{LEFT}" y="{HEIGHT - 16}" fill="#555555">jobs 1 to {count}; '
               f'samples in traces/runs/{run}/samples.tar.xz</text>')
    out.append('</svg>')
    return "\n".join(out) + "\n"


def main():
    run = sys.argv[1] if len(sys.argv) > 1 else "2026-11-21-h200-complete"
    picture = draw(run)
    if len(sys.argv) > 2 and sys.argv[2] == "-":
        sys.stdout.write(picture)
    else:
        out = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else HERE / "before-after.svg"
        out.write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
