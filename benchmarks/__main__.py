"""`make bench`: every benchmark, each against a peer in the same run."""

from __future__ import annotations

from benchmarks import (
    bench_accuracy,
    bench_almost_all,
    bench_bars,
    bench_command,
    bench_coverage,
    bench_intervals,
    bench_ledger,
    bench_load,
    bench_median_sampler,
    bench_multiplicative_weights,
    bench_noise,
    bench_ranges,
    bench_tails,
    bench_theorems,
    bench_three_way,
    bench_throughput,
    bench_true_answer,
    bench_turbo,
    bench_votes,
    bench_warm_start,
)

BENCHMARKS = (
    bench_noise,
    bench_true_answer,
    bench_multiplicative_weights,
    bench_load,
    bench_theorems,
    bench_intervals,
    bench_ranges,
    bench_median_sampler,
    bench_almost_all,
    bench_votes,
    bench_warm_start,
    bench_turbo,
    bench_coverage,
    bench_bars,
    bench_tails,
    bench_throughput,
    bench_ledger,
    bench_command,
    bench_three_way,
    bench_accuracy,
)


def main() -> None:
    for benchmark in BENCHMARKS:
        print(f"\n== {benchmark.__doc__.splitlines()[0] if benchmark.__doc__ else benchmark.__name__}\n", flush=True)
        benchmark.main()


if __name__ == "__main__":
    main()
