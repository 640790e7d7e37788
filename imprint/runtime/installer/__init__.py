"""uv, the only installer: calls, limits, space, and bundles of wheels for machines without a network."""
