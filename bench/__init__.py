"""Side-by-side benchmarks: the reference and Moorage on the same machine, in one run."""
