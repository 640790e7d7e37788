"""Changes and inspects target environments: uv, generations, inventory, the check."""
