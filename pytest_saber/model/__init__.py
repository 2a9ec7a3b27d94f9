"""Frozen values and the Protocols between the layers. Imports nothing of the package but `errors`."""
