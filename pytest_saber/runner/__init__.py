"""One task variant to evidence and verdict, and the scheduling of many. Knows no pytest."""
