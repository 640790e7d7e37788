"""Reads the machine and decides nothing; one seam (Host) to the outside world."""
