"""Exact noise beside numpy's (floating point, unsafe) and OpenDP's (exact) on one core, as ratios of one run."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import opendp.prelude as dp

from discreet.noise import discrete_gaussian, discrete_laplace
from timing import best_of

SIZE = 10**6
PEER_SIZE = 10**4
"""OpenDP is measured on fewer draws and scaled: its cost is linear in the size."""


def main() -> None:
    dp.enable_features("contrib")
    generator = np.random.default_rng(1)
    zeros = [0] * PEER_SIZE
    space = dp.vector_domain(dp.atom_domain(T="i64"))
    peer_laplace = dp.m.make_laplace(space, dp.l1_distance(T="i64"), scale=1000.0)
    peer_gaussian = dp.m.make_gaussian(space, dp.l2_distance(T="f64"), scale=1000.0)
    seconds = best_of(
        {
            "discrete_laplace": lambda: discrete_laplace(1000, SIZE),
            "numpy laplace": lambda: generator.laplace(0, 1000, SIZE),
            "discrete_gaussian": lambda: discrete_gaussian(1000, SIZE),
            "numpy normal": lambda: generator.normal(0, 1000, SIZE),
        }
    )
    peers = best_of({"laplace": lambda: peer_laplace(zeros), "gaussian": lambda: peer_gaussian(zeros)}, rounds=3)
    print(f"{SIZE:,} draws, scale 1000")
    for name, other, peer, wanted in (
        ("discrete_laplace", "numpy laplace", "laplace", 1.0),
        ("discrete_gaussian", "numpy normal", "gaussian", 0.6),
    ):
        ours, numpys, theirs = seconds[name], seconds[other], peers[peer] * SIZE / PEER_SIZE
        print(
            f"  {name:18s} {SIZE / ours / 1e6:6.1f} M/s   {numpys / ours:5.2f}× {other} (wanted ≥ {wanted})"
            f"   {theirs / ours:6.0f}× OpenDP (wanted ≥ 300)"
        )
    scales = [1, 10, 10**3, 10**5, 10**7, 10**9]
    for name, sampler in (("discrete_laplace", discrete_laplace), ("discrete_gaussian", discrete_gaussian)):
        spread = best_of({str(scale): lambda s=scale, f=sampler: f(s, SIZE) for scale in scales})
        ratio = max(spread.values()) / min(spread.values())
        times = "  ".join(f"{float(scale):.0e}: {value * 1e3:.1f} ms" for scale, value in spread.items())
        print(f"  {name:18s} slowest/fastest over scales {ratio:.2f} (wanted ≤ 2)   {times}")
    program = "import time; t = time.perf_counter(); import discreet; print(time.perf_counter() - t)"
    imports = [float(subprocess.check_output([sys.executable, "-c", program])) for _ in range(7)]
    print(f"  import discreet: {min(imports):.2f} s (wanted < 0.3)")


if __name__ == "__main__":
    main()
