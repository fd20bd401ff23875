# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Networks: layers, heads, action distributions and agents."""

from scalable_agent.networks import backend  # noqa: F401  Checks Keras first.
from scalable_agent.networks.frame_torsos import DeepTorso
from scalable_agent.networks.frame_torsos import NatureTorso
from scalable_agent.networks.frame_torsos import ShallowTorso
from scalable_agent.networks.torsos import MLPTorso

__all__ = ['DeepTorso', 'MLPTorso', 'NatureTorso', 'ShallowTorso']
