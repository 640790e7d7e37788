"""The managed target: generations under the home, made from a recipe and switched at once."""
