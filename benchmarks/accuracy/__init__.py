"""The parts of `bench_accuracy`: tables, analysts, ways to answer, and what they need. For it and for tests."""
