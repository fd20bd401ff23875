# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Observations: an array, or a dictionary of arrays, perhaps with a mask."""

from collections.abc import Callable
from typing import Any

# The part of an observation that marks the valid actions.
MASK = 'action_mask'


def parts_of(observation: Any) -> dict[str, Any]:
  """Returns arrays, or specs, by name; a dictionary is returned as it is.

  The name of an array alone is ''.
  """
  return observation if isinstance(observation, dict) else {'': observation}


def map_nests(fn: Callable[..., object], *nests: Any) -> Any:
  """Calls `fn` with the arrays, or specs, of observations of the same form."""
  # `tree.map_structure` takes longer than a draw from a replay, and walks into
  # specs, which are named tuples.
  if isinstance(nests[0], dict):
    return {name: fn(*[nest[name] for nest in nests]) for name in nests[0]}
  return fn(*nests)
