"""What the commands of a trace mean: parsed as shell, wrappers looked through, never run."""
