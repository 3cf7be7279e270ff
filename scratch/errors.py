"""What can go wrong with a scratch server, each as one clear line."""

from __future__ import annotations


class ScratchError(Exception):
    """The scratch server cannot do what was asked; `str()` is one line for the user."""
