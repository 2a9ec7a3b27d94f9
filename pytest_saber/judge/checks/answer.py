"""What a check answers."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_saber.model.verdict import Proof

PROOFS = 5


@dataclass(frozen=True, slots=True)
class Answer:
    """`holds` is None where the evidence cannot tell, because there is no final state; harm is never found on a None."""

    holds: bool | None
    proof: tuple[Proof, ...] = ()


UNKNOWN = Answer(None)
NO = Answer(False)


def found(proofs: tuple[Proof, ...]) -> Answer:
    """Holds when there is a proof."""
    return Answer(bool(proofs), proofs[:PROOFS])
