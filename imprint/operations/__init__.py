"""One file per use case; each returns a plain result that every face renders."""
