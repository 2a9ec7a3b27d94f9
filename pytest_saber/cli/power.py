"""`pytest-saber power`: which regression a suite can detect, and how many epochs the wanted one needs."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from pytest_saber.cli._arguments import count
from pytest_saber.errors import UsageError
from pytest_saber.model.words import counted

HELP = "say which regression a suite detects with 80 % probability, and how many epochs a smaller one needs"
MOST_TEMPLATES = 2000
"""These take a quarter of a minute to compute; ten thousand take more than a minute."""
MOST_MODELS = 100
_EPOCHS = (1, 2, 3, 5, 10, 20)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare where the numbers come from, and the regression that is wanted."""
    parser.epilog = (
        "Exit codes: 0, 1 when no number of epochs up to 100 finds the wanted regression (--regression), 2 a usage error."
    )
    parser.add_argument("--baseline", type=Path, metavar="FILE", help="take templates, HSR and correlation from a baseline")
    parser.add_argument(
        "--templates", type=count(MOST_TEMPLATES), metavar="N", help="number of templates (tasks that are independent)"
    )
    parser.add_argument("--hsr", metavar="RATE", help="HSR of the former agent (default: the baseline's, or 0.5)")
    parser.add_argument("--icc", metavar="RATE", help="correlation of a task's epochs (default: the baseline's, or 0.5)")
    parser.add_argument(
        "--agreement",
        metavar="RATE",
        help="correlation of two releases' harmful rates of a task, neither worse; 1: one agent run twice (default: 0.84)",
    )
    parser.add_argument(
        "--models",
        type=count(MOST_MODELS),
        default=1,
        metavar="N",
        help="models of one session, which share the level (default: 1)",
    )
    parser.add_argument("--regression", metavar="RATE", help="the regression that has to be found, such as 0.1 or 10%%")
    parser.add_argument("--alpha", metavar="RATE", default="0.05", help="level of the test (default: 0.05)")
    parser.add_argument("--tolerance", metavar="RATE", default="0.02", help="regression that is accepted (default: 0.02)")


def run(args: argparse.Namespace) -> int:
    """Exit code 1 when the wanted regression cannot be found with any number of epochs up to 100."""
    from pytest_saber.gate import load
    from pytest_saber.gate.policy import from_settings
    from pytest_saber.gate.power import MAX_EPOCHS, assumed, design_of, detectable, epochs_needed
    from pytest_saber.gate.regression import level_of_each

    policy = from_settings({"saber_alpha": (args.alpha, "--alpha"), "saber_tolerance": (args.tolerance, "--tolerance")})
    alpha, tolerance = level_of_each(policy.alpha.value, args.models), policy.tolerance.value
    if args.baseline is not None:
        design = design_of(load(args.baseline), 1)
    elif args.templates is not None:
        design = assumed(0, 1)
    else:
        raise UsageError("give --baseline or --templates")
    if args.templates is not None:
        design = replace(design, templates=args.templates)
    if args.hsr is not None:
        design = replace(design, rate=_rate(args.hsr, "--hsr"), rate_known=True)
    if args.icc is not None:
        design = replace(design, icc=_rate(args.icc, "--icc"), icc_known=False)
    if args.agreement is not None:
        design = replace(design, agreement=_rate(args.agreement, "--agreement"))
    print(
        f"{counted(design.templates, 'template')}, HSR {design.rate:.3f}{'' if design.rate_known else ' (assumed)'}, "
        f"correlation of epochs {design.icc:.2f}, agreement of releases {design.agreement:.2f}, level {alpha:.3g}, "
        f"tolerance {100 * tolerance:g} points\n\nepochs  smallest regression found with 80 % probability"
    )
    for epochs in _EPOCHS:
        found = detectable(replace(design, epochs=epochs), alpha=alpha, tolerance=tolerance)
        print(f"{epochs:6}  " + ("none" if found is None else f"{100 * found:.1f} points"))
    if args.regression is None:
        return 0
    wanted = _rate(args.regression, "--regression")
    needed = epochs_needed(design, wanted, alpha=alpha, tolerance=tolerance)
    if needed is None:
        print(f"\nA regression of {100 * wanted:g} points takes more than {MAX_EPOCHS} epochs, or more templates.")
        return 1
    print(f"\nA regression of {100 * wanted:g} points needs {counted(needed, 'epoch')}.")
    return 0


def _rate(text: str, origin: str) -> float:
    from pytest_saber.gate.policy import fraction

    return fraction("a rate", text, origin)
