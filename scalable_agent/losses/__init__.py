# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Losses of all algorithms, as functions of tensors."""

from scalable_agent.losses.actor_critic import clip_rewards
from scalable_agent.losses.actor_critic import compute_baseline_loss
from scalable_agent.losses.actor_critic import compute_entropy_loss
from scalable_agent.losses.actor_critic import compute_policy_gradient_loss

__all__ = ['clip_rewards', 'compute_baseline_loss', 'compute_entropy_loss',
           'compute_policy_gradient_loss']
