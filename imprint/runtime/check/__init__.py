"""Programs that run inside a target, how they are started, and what their answers and their ends prove."""
