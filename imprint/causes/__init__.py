"""The catalogue of causes and remedies, and the choice of the remedies that can work where somebody is."""
