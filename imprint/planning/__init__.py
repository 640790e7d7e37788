"""Facts to plan: pure functions over plain values, the standard library alone, no I/O."""
