"""One file per use case; each returns a typed result that every face renders."""
