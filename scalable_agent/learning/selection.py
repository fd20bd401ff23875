# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Selectors of replays by settings, and the importance weights of draws."""

from scalable_agent.experience import structs
from scalable_agent.replay import selectors
from scalable_agent.replay.prioritised import Prioritised
from scalable_agent.settings import config as config_lib


def make(config: config_lib.Config, num_learners: int) -> selectors.Selector:
  """Returns the selector of `--selector`, and the limit of `--max_use`."""
  selector: selectors.Selector = selectors.Uniform()
  if config.is_prioritised:
    selector = Prioritised(
        config.priority_exponent, config.importance_exponent,
        config.priority_epsilon, normalised=num_learners == 1)
  if config.is_recent:
    selector = selectors.Recent(
        selector, config.recent_eta, max(config.recent_min_steps // (
            config.unroll_length if config.is_off_policy and config.use_lstm
            else 1), 1))
  return selectors.MaxUse(selector, config.max_use) if (
      config.max_use) else selector


def anneal(selector: selectors.Selector, config: config_lib.Config,
           num_env_frames: int) -> None:
  """Sets the importance exponent, which changes during the training."""
  if priorities := _priorities(selector):
    share = min(num_env_frames / config.total_environment_frames, 1.0)
    priorities.importance_exponent = (
        (1 - share) * config.importance_exponent
        + share * config.importance_exponent_end)


def with_used(sample: structs.Sample, selector: selectors.Selector,
              num_learners: int) -> structs.Sample:
  """Drops importance weights and positions if there are no priorities."""
  priorities = _priorities(selector)
  if priorities is None:
    return sample._replace(importance_weights=None, positions=None)
  if num_learners == 1:
    return sample
  largest, priorities.largest_weight = priorities.largest_weight, 0.0
  return sample._replace(largest_weight=largest)


def _priorities(selector: selectors.Selector) -> Prioritised | None:
  """Returns the selector by priorities within a selector, if there is one."""
  while isinstance(selector, (selectors.Recent, selectors.MaxUse)):
    selector = selector.inner
  return selector if isinstance(selector, Prioritised) else None
