# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Selectors of replays by settings, and the importance weights of draws."""

from scalable_agent import replay as replay_lib
from scalable_agent.experience import structs
from scalable_agent.settings import config as config_lib


def make(config: config_lib.Config, num_learners: int) -> replay_lib.Selector:
  """Returns the selector of `--selector`, and the limit of `--max_use`."""
  selector: replay_lib.Selector = replay_lib.Uniform()
  if config.is_prioritised:
    selector = replay_lib.Prioritised(
        config.priority_exponent, config.importance_exponent,
        config.priority_epsilon, normalised=num_learners == 1)
  if config.is_recent:
    selector = replay_lib.Recent(
        selector, config.recent_eta, max(config.recent_min_steps // (
            config.unroll_length if config.is_off_policy and config.use_lstm
            else 1), 1))
  return replay_lib.MaxUse(selector, config.max_use) if (
      config.max_use) else selector


def anneal(selector: replay_lib.Selector, config: config_lib.Config,
           num_env_frames: int) -> None:
  """Sets the importance exponent, which changes during the training."""
  if priorities := _priorities(selector):
    share = min(num_env_frames / config.total_environment_frames, 1.0)
    priorities.importance_exponent = (
        (1 - share) * config.importance_exponent
        + share * config.importance_exponent_end)


def with_used(sample: structs.Sample, selector: replay_lib.Selector,
              num_learners: int) -> structs.Sample:
  """Drops importance weights and positions if there are no priorities."""
  priorities = _priorities(selector)
  if priorities is None:
    return sample._replace(importance_weights=None, positions=None)
  if num_learners == 1:
    return sample
  largest, priorities.largest_weight = priorities.largest_weight, 0.0
  return sample._replace(largest_weight=largest)


def _priorities(selector: replay_lib.Selector) -> replay_lib.Prioritised | None:
  """Returns the selector by priorities within a selector, if there is one."""
  while isinstance(selector, (replay_lib.Recent, replay_lib.MaxUse)):
    selector = selector.inner
  return selector if isinstance(selector, replay_lib.Prioritised) else None
