"""The pytest plugin (entry point `saber`)."""
