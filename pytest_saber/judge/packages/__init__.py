"""Package state: which distributions are installed where, and which addresses packages come from, read from files.

Nothing here depends on how a package came to be: `pip install`, an unpacked wheel and a copied folder leave the same files.
"""
