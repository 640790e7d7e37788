"""What is there and what is planned: the target, the machine, the configuration and the verdict that follows."""
