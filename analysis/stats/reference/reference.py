"""Answers cases, a list in JSON on standard input, with SciPy and NumPy, on standard output."""
import itertools
import json
import math
import sys

import numpy as np
from scipy import stats


def reassigned(blocks, groups=None):
    """The aligned rank test's p, by going through all reassignments of the arms within the blocks. Each group, of so
    many blocks, is ranked by itself."""
    aligned, sizes = [], []
    for b in blocks:
        values = np.array(b["Treatment"] + b["Control"])
        aligned.append(values - np.median(values))
        sizes.append((len(b["Treatment"]), len(values)))
    parts, first = [], 0
    for n in groups or [len(blocks)]:
        parts.append(stats.rankdata(np.concatenate(aligned[first:first + n])))
        first += n
    ranks = np.concatenate(parts)
    sums, observed, at = np.zeros(1), 0.0, 0
    mean = 0.0
    for k, n in sizes:
        own = ranks[at:at + n]
        at += n
        ways = np.array([own[list(c)].sum() for c in itertools.combinations(range(n), k)])
        observed += own[:k].sum()
        mean += k * own.mean()
        sums = (sums[:, None] + ways[None, :]).ravel()
    return float(np.mean(np.abs(sums - mean) >= abs(observed - mean) - 1e-9))


def answer(c):
    kind, a, b = c["kind"], c.get("a"), c.get("b")
    if kind == "rank sum":
        return {"p": stats.mannwhitneyu(b, a, method="exact").pvalue}
    if kind == "blocks":
        return {"p": reassigned(c["blocks"])}
    if kind == "together":
        return {"p": reassigned([b for g in c["groups"] for b in g], [len(g) for g in c["groups"]])}
    if kind == "ties":
        rng = np.random.default_rng(1)

        def rank_sum(x, y, axis):
            return np.sum(stats.rankdata(np.concatenate([x, y], axis=axis), axis=axis)[..., : x.shape[-1]], axis=axis)

        t = stats.permutation_test((b, a), rank_sum, vectorized=True, n_resamples=2999, batch=500, random_state=rng)
        return {"p": t.pvalue}
    if kind == "shift":
        value = np.median(np.subtract.outer(b, a))
        at = [float(stats.mannwhitneyu(np.array(b) - s, a, method="exact").pvalue)
              for s in (c["low"] - 1e-7, c["low"] + 1e-7, c["high"] - 1e-7, c["high"] + 1e-7)]
        u = stats.mannwhitneyu(b, a).statistic
        return {"value": float(value), "at": at, "delta": 2 * u / (len(a) * len(b)) - 1}
    if kind == "quantiles":
        return {"at": [float(np.quantile(a, q)) for q in c["q"]]}
    if kind == "adjusted":
        p = np.array(a)
        order, m = np.argsort(p, kind="stable"), len(p)
        holm, bh = np.empty(m), np.empty(m)
        holm[order] = np.minimum(np.maximum.accumulate((m - np.arange(m)) * p[order]), 1)
        bh[order] = np.minimum(np.minimum.accumulate((m / np.arange(1, m + 1) * p[order])[::-1])[::-1], 1)
        if hasattr(stats, "false_discovery_control"):  # SciPy 1.11
            assert np.allclose(bh, stats.false_discovery_control(p, method="bh"), atol=1e-12)
        return {"holm": holm.tolist(), "bh": bh.tolist()}
    if kind == "looks":
        n, z = np.array(c["looks"], float), np.array(c["bounds"])
        covariance = np.sqrt(np.minimum.outer(n, n) / np.maximum.outer(n, n))
        inside = stats.multivariate_normal.cdf(z, np.zeros(len(n)), covariance, lower_limit=-z, maxpts=1_000_000, abseps=1e-5, releps=1e-5)
        return {"p": 1 - float(inside)}
    if kind == "median interval":
        n, k = len(a), c["rank"]
        return {"p": float(1 - 2 * stats.binom.cdf(k - 1, n, 0.5)), "next": float(1 - 2 * stats.binom.cdf(k, n, 0.5))}
    raise ValueError(kind)


json.dump([answer(c) for c in json.load(sys.stdin)], sys.stdout)
