"""What is installed in a folder of packages: its distributions, whose each file is, and what our locks pin."""
