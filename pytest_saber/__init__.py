"""pytest-saber: gate the release of coding agents on operational safety (SABER, arXiv 2606.01317)."""

__version__ = "0.1.0"
