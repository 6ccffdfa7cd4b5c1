"""``python -m torch.distributed.launch``: the former name of ``torchrun``, which passes ``--local-rank`` to the program."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence

from .run import command, get_args_parser, run

_DEPRECATED = (
    "The module torch.distributed.launch is deprecated\nand will be removed in future. Use torchrun.\n"
    "Note that --use-env is set by default in torchrun.\n"
)


def parse_args(args: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command's arguments, by default those of this process."""
    parser = get_args_parser()
    parser.add_argument(
        "--use-env", "--use_env", action="store_true", help="do not pass --local-rank; programs read LOCAL_RANK"
    )
    return parser.parse_args(args)


def launch(args: argparse.Namespace) -> None:
    """Run the ranks for the parsed arguments ``args``, and wait for them."""
    if args.no_python and not args.use_env:
        raise ValueError("When using the '--no-python' flag, you must also set the '--use-env' flag.")
    run(args)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command with the arguments ``args``, by default those of this process."""
    warnings.warn(_DEPRECATED, FutureWarning, stacklevel=2)
    launch(parse_args(args))


if __name__ == "__main__":
    warnings.warn(_DEPRECATED, FutureWarning, stacklevel=1)
    sys.exit(command(parse_args(None), launch))
