# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Replay buffers: earlier experience, to learn from again. NumPy only.

A `Replay` has a store, which keeps steps or unrolls, a selector, which chooses
items, and a view, which makes data from the chosen items. `rate` decides when a
sample is drawn.
"""

from scalable_agent.replay.hindsight import Hindsight
from scalable_agent.replay.prioritised import Prioritised
from scalable_agent.replay.rate import PerCollection
from scalable_agent.replay.rate import Rate
from scalable_agent.replay.rate import samples
from scalable_agent.replay.replay import Replay
from scalable_agent.replay.replay import saved_num_updates
from scalable_agent.replay.saving import DamagedError
from scalable_agent.replay.selectors import MaxUse
from scalable_agent.replay.selectors import Recent
from scalable_agent.replay.selectors import Uniform
from scalable_agent.replay.sequences import Sequences
from scalable_agent.replay.starts import Starts
from scalable_agent.replay.steps import StepStore
from scalable_agent.replay.unrolls import Passes
from scalable_agent.replay.unrolls import Unrolls
from scalable_agent.replay.unrolls import UnrollStore
from scalable_agent.replay.views import NStep
from scalable_agent.replay.views import View
