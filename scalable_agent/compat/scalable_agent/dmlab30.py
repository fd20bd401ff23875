# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The names of DeepMind's `dmlab30`: those of `scalable_agent.scores.dmlab30`.

The difference: `compute_human_normalized_score` ignores levels outside of
DMLab-30. DeepMind's function says so, but raises a `KeyError`.
"""

from scalable_agent.scores.dmlab30 import ALL_LEVELS
from scalable_agent.scores.dmlab30 import compute_human_normalized_score
from scalable_agent.scores.dmlab30 import HUMAN_SCORES
from scalable_agent.scores.dmlab30 import LEVEL_MAPPING
from scalable_agent.scores.dmlab30 import RANDOM_SCORES

__all__ = ['ALL_LEVELS', 'compute_human_normalized_score', 'HUMAN_SCORES',
           'LEVEL_MAPPING', 'RANDOM_SCORES']
