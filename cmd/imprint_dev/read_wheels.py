import argparse


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    pass
