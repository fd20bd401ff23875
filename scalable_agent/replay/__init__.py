# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Replay: what was experienced, to learn from it again. NumPy only.

A store keeps it (`steps.StepStore`, `unrolls.Replay`), a selector chooses
(`selectors`), and a view makes transitions of steps (`views`, `hindsight`). All
combinations exist. `transitions.TransitionReplay` puts them together, `rate`
says when to draw.
"""

from scalable_agent.replay.hindsight import Hindsight
from scalable_agent.replay.rate import batches as batches_at_rate
from scalable_agent.replay.rate import Rate
from scalable_agent.replay.rate import Ready
from scalable_agent.replay.selectors import Prioritised
from scalable_agent.replay.selectors import Recent
from scalable_agent.replay.selectors import Selector
from scalable_agent.replay.selectors import Uniform
from scalable_agent.replay.steps import num_bytes as num_step_bytes
from scalable_agent.replay.steps import StepStore
from scalable_agent.replay.transitions import Drawn
from scalable_agent.replay.transitions import TransitionReplay
from scalable_agent.replay.unrolls import collected_batches
from scalable_agent.replay.unrolls import DrawnColumns
from scalable_agent.replay.unrolls import mixed_batches
from scalable_agent.replay.unrolls import num_bytes
from scalable_agent.replay.unrolls import Replay
from scalable_agent.replay.views import NStep

__all__ = [
    'Drawn',
    'DrawnColumns',
    'Hindsight',
    'NStep',
    'Prioritised',
    'Rate',
    'Ready',
    'Recent',
    'Replay',
    'Selector',
    'StepStore',
    'TransitionReplay',
    'Uniform',
    'batches_at_rate',
    'collected_batches',
    'mixed_batches',
    'num_bytes',
    'num_step_bytes',
]
