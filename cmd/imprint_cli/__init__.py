"""The terminal face of Imprint: parses options, calls one operation, renders its result."""
