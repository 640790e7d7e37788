"""How a target is brought to its plan: options and questions, sizes, and the one loop that setup runs."""
