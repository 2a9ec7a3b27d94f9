"""`pytest-saber image`: build the workspace image ahead of the first session, and print its name."""

from __future__ import annotations

import argparse
import sys

HELP = "build the workspace image when it is missing and print its name"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "--prune",
        action="store_true",
        help="also remove what earlier versions made, more than an hour ago, and nothing uses",
    )
    parser.epilog = (
        "Exit code 3: the base image can neither be pulled nor, without mmdebstrap, be made. Any other failure is 1."
    )


def run(args: argparse.Namespace) -> int:
    """Print the tag on stdout, and on stderr what is being done."""
    from docker.errors import DockerException

    from pytest_saber.errors import InfrastructureFault
    from pytest_saber.sandbox import engine, image

    try:
        client = engine.client()
        try:
            client.ping()
            print(image.ensure(client, progress=_say))
            if args.prune:
                image.prune(client, progress=_say)
        finally:
            client.close()
    except (DockerException, OSError) as error:
        print(f"pytest-saber image: no Docker engine answers: {error}\n`pytest-saber doctor` says what to do.", file=sys.stderr)
        return 1
    except InfrastructureFault as fault:
        print(f"pytest-saber image: {fault}", file=sys.stderr)
        return 3 if isinstance(fault, image.BaseUnavailable) else 1
    return 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
