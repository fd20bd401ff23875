# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Further terms of the loss of a policy, of `--addon` and of programs."""

from collections.abc import Callable, Collection, Mapping, Sequence
import dataclasses
from typing import TypeVar

from scalable_agent import errors
from scalable_agent.algorithms import base
from scalable_agent.experience import structs
from scalable_agent.networks import agents
from scalable_agent.settings import config as config_lib
import tensorflow as tf

# A term of the policy's loss: a function of the agent and the data of
# `Algorithm.loss` that returns a scalar.
Addon = Callable[[agents.Agent, structs.Nest], tf.Tensor]

T = TypeVar('T')


def with_whole_batches(config: config_lib.Config,
                       addons: Mapping[str, Addon] | None) -> config_lib.Config:
  """Returns settings for addons, whose terms are means of whole batches.

  Without addons, and with `config.addon`, for which `Config` has this rule,
  returns the same settings. Raises ConfigError if `micro_batch_size` is a part
  of a batch.
  """
  if not addons or config.is_off_policy or config.addon:
    return config
  if 0 < config.micro_batch_size < config.batch_size:
    raise errors.ConfigError(
        f'--micro_batch_size={config.micro_batch_size} cannot be used with '
        'addons: a part of a batch has another mean.')
  return dataclasses.replace(config, micro_batch_size=config.batch_size)


class WithAddons:
  """An algorithm with more terms in the loss of its policy."""

  def __init__(self, algorithm: base.Algorithm, addons: Mapping[str, Addon],
               share: float):
    """Wraps `algorithm`; `share` is the factor of the terms in the loss.

    Raises ConfigError if no group of variables is named `policy` or `agent`.
    `loss` raises ConfigError if a term uses trainable variables that are
    neither in a group nor saved.
    """
    self.agent = algorithm.agent
    self.groups = algorithm.groups
    self.delayed = algorithm.delayed
    self.delay = algorithm.delay
    self.targets = algorithm.targets
    self.after_update = algorithm.after_update
    self._loss = algorithm.loss
    self._addons = dict(addons)
    self._share = share
    self._saved = {v.ref() for v in _watched(lambda: [
        tf.convert_to_tensor(v) for v in (
            *algorithm.agent.variables, *algorithm.targets,
            *(v for group in self.groups.values() for v in group))])[1]}
    self._group = 'policy' if 'policy' in self.groups else 'agent'
    if self._group not in self.groups:
      raise errors.ConfigError('An addon needs a group named policy or agent.')

  def loss(self, data: structs.Nest, importance_weights: tf.Tensor | None,
           groups: Collection[str], seed: tf.Tensor) -> base.Loss:
    """Adds the terms to the loss of the policy, and to the log by name."""
    loss = self._loss(data, importance_weights, groups, seed)
    if self._group not in groups:
      return loss
    terms = {name: self._term(name, data) for name in self._addons}
    return loss._replace(
        by_group={**loss.by_group, self._group: loss.by_group[self._group]
                  + self._share * tf.add_n([*terms.values()])},
        means={**loss.means, **terms})

  def _term(self, name: str, data: structs.Nest) -> tf.Tensor:
    """Returns a term; ConfigError if it uses variables that nobody learns."""
    with tf.name_scope('addon'):  # A layer of a user may have any name.
      term, variables = _watched(
          lambda: self._addons[name](self.agent, data))
    if others := [v for v in variables if v.ref() not in self._saved]:
      listed = ', '.join(f'{v.name.partition(":")[0]} {v.shape.as_list()}'
                         for v in others)
      raise errors.ConfigError(
          f'The addon {name} uses variables that are not learned and not saved:'
          f' {listed}. Make their layer a part of the network '
          '(--agent=module:function), or set trainable=False.')
    return term


def _watched(
    function: Callable[[], T]) -> tuple[T, Sequence[tf.Variable]]:
  """Returns the result, and the trainable variables that `function` reads."""
  with tf.GradientTape() as tape:
    result = function()
  return result, tape.watched_variables()
