"""Configuration, verdicts, receipts and the mutex: atomic, versioned files."""
