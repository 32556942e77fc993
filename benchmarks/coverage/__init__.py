"""The parts of `bench_coverage`: its tables, and the analysts who ask about them. For it and for tests."""
