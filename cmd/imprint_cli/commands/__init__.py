"""The commands of `imprint`, one thin module each."""
