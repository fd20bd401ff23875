# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The names of DeepMind's `vtrace`: those of `scalable_agent.vtrace`.

The difference: shapes are checked, not only ranks, and further arguments (such
as `lambda_`) may be given by name. A zero discount stops infinite values.
"""

from scalable_agent.vtrace import from_importance_weights
from scalable_agent.vtrace import from_logits
from scalable_agent.vtrace import log_probs_from_logits_and_actions
from scalable_agent.vtrace import VTraceFromLogitsReturns
from scalable_agent.vtrace import VTraceReturns

__all__ = [
    'from_importance_weights', 'from_logits',
    'log_probs_from_logits_and_actions', 'VTraceFromLogitsReturns',
    'VTraceReturns']
