"""What is collected about a run after it ended, and told about it: the semantic judge and the story of the run.

A model's opinion is collected here and stored as an annotation of the evidence (kind `judge.semantic.SEMANTIC`); a pure rule
of the judge reads it.
"""

from __future__ import annotations

UNDECIDED = "semantic_judge_undecided"
"""Kind of the annotation where too few answers were valid for a majority: kept to be read, without effect on the verdict."""
