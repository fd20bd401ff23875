# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Moves the statistics of an agent's normalisers, see `networks.normalisers`.

Sums over new unrolls are collected while the statistics stay the same, and
move the statistics after the last update of a collection. So all updates of a
collection, and the actors of a version, see the same statistics. The sums of
several learners are added, which gives the statistics of all rows.
"""

from collections.abc import Mapping
import functools
import math

import numpy as np
from scalable_agent import errors
from scalable_agent.experience import structs
from scalable_agent.learning import collectives as collectives_lib
from scalable_agent.networks import agents
from scalable_agent.networks import flat_function
from scalable_agent.networks import instructions
from scalable_agent.networks import normalisers
import tensorflow as tf
import tree

# Numbers of observations that are summed at once, which need memory as floats.
_MAX_NUMBERS = 4_000_000
_RETURNS = '/returns'  # No name of a part of an observation.


class NewRows:
  """Sums over the observations of unrolls that arrive at a replay."""

  def __init__(self, normaliser: normalisers.ObservationNormaliser | None,
               has_hindsight: bool = False):
    """Makes sums of zeros; no sums without a normaliser.

    With hindsight, achieved goals count as desired goals, too.
    """
    self._normaliser = normaliser
    self._has_hindsight = has_hindsight
    self._sums = self._zeros()

  def add(self, observation: structs.Nest) -> None:
    """Adds the entries 1 to `T` of observations `[T + 1, E, ...]`."""
    seen, _ = instructions.split(observation)
    newest = self._normaliser.newest(
        seen, slice(1, None)) if self._normaliser else {}
    if self._has_hindsight and 'desired_goal' in newest:
      newest['desired_goal'] = np.concatenate(
          [newest['desired_goal'], observation['achieved_goal'][1:]])
    for name, x in newest.items():
      rows = x.reshape(-1, *x.shape[2:]).astype(np.float64)
      if x.dtype == np.uint8:
        rows /= 255
      for total, value in zip(self._sums[name], (
          len(rows), rows.sum(0), np.square(rows).sum(0)), strict=True):
        total += value

  def take(self) -> dict[str, tuple[structs.Array, ...]]:
    """Returns the sums so far, and begins anew.

    By the name of the part: the number of observations, the sum of the
    observations, and the sum of the squares, float64.
    """
    sums, self._sums = self._sums, self._zeros()
    return sums

  def _zeros(self) -> dict[str, tuple[np.ndarray, ...]]:
    parts = self._normaliser.statistics if self._normaliser else {}
    return {name: tuple(np.zeros(shape) for shape in (
        (), part.mean.shape, part.mean.shape)) for name, part in parts.items()}


class Mover:
  """Collects sums, and moves the statistics of an agent.

  Attributes:
    variables: the sums, float64, which are saved and not published.
    counted: how many numbers of observations the latest counted batch has,
      and how many of these were clipped; (0, 0) before. Batches 1, 2, 4, 8 and
      so on are counted.
  """

  def __init__(self, agent: agents.Agent, return_rate: float,
               collectives: collectives_lib.Collectives):
    """Makes sums of zeros.

    Args:
      agent: the agent of the learner.
      return_rate: see `pop_art.PopArt.move`.
      collectives: the other learners.
    """
    self._observations = agent.observation_normaliser
    self._returns = agent.returns
    self._collectives = collectives
    self._return_rate = return_rate
    parts = dict(self._observations.statistics) if self._observations else {}
    if self._returns:
      parts[_RETURNS] = self._returns.statistics
    zeros = lambda shape: tf.Variable(
        np.zeros(shape), dtype=tf.float64, trainable=False)
    # Sums of ones, of the first and of the second moments.
    self._sums = {
        name: tuple(zeros(v.shape) for v in (part.count, part.mean, part.mean))
        for name, part in parts.items()}
    self.variables: list[tf.Variable] = [
        v for of_part in self._sums.values() for v in of_part]
    self._unset = [part.count for part in parts.values()]
    self._compiled_add = flat_function.FlatFunction(self._add)
    self._compiled_move = flat_function.FlatFunction(self._move)
    self._compiled_add_rows = flat_function.FlatFunction(self._add_rows)
    self._are_finite: dict[str, tf.Tensor] = {}
    self.counted = 0, 0
    self._num_batches = 0

  @property
  def is_set(self) -> bool:
    """Whether all statistics have moved, so that the agent can learn."""
    # Once set, the counts stay set, and the device need not be asked. Of
    # several levels, the losses leave out levels without statistics.
    self._unset = [count for count in self._unset
                   if not float(tf.reduce_max(count))]
    return not self._unset

  def add(self, batch: structs.Batch, targets: tf.Tensor | None) -> None:
    """Adds the new columns of a batch, and their targets, to the sums.

    The last batch of a collection, which counts the frames, moves the
    statistics by the sums of all learners, and clears the sums; sums of few
    rows wait for the next collection, see `ObservationNormaliser.is_due`.

    Args:
      batch: the batch. Entry 0 of a column was the last entry of another one.
      targets: see `base.Loss`.
    """
    if not self.variables:
      return
    if not isinstance(batch.data, structs.Unroll):
      self._count(batch.data.observation
                  if isinstance(batch.data, structs.Transition)
                  else batch.data.env_outputs.observation)
      return
    if batch.num_new_columns:
      self._add_batch(batch, targets)
    if batch.num_new_frames:
      self._are_finite = self._compiled_move()

  def add_rows(self, rows: Mapping[str, tuple[structs.Array, ...]]) -> None:
    """Moves the statistics by rows of `NewRows`.

    All learners call this function together; some may have zeros only.
    """
    if rows:
      self._are_finite = self._compiled_add_rows(dict(rows))

  def _count(self, observation: structs.Nest,
             num_columns: int | None = None) -> None:
    """Sets `counted`, if due, by the first numbers of an observation.

    Of an unroll, entries 1 to `T` of at most `num_columns` columns count.
    """
    if self._observations and self.is_set:
      self._num_batches += 1
      if self._num_batches.bit_count() == 1:
        seen, _ = instructions.split(observation)
        axis = 1 if num_columns else 0
        num_numbers = sum(math.prod(x.shape) // x.shape[axis]
                          for x in tree.flatten(seen))
        end = max(_MAX_NUMBERS // num_numbers, 1)
        seen = tree.map_structure(
            lambda x: x[1:, :min(end, num_columns)] if num_columns else x[:end],
            seen)
        self.counted = self._observations.clipped(seen)

  def check(self) -> None:
    """Raises EnvironmentValueError if the last moments were not finite.

    Such moments have moved nothing.
    """
    for name, is_finite in self._are_finite.items():
      if not bool(is_finite):
        what, how = (
            'Returns', 'rewards, use --reward_clipping=abs_one, or lower '
            '--learning_rate'
        ) if name == _RETURNS else (
            f'Observations {name}'.strip(),
            'observations, or use --normalise_observations=none')
        raise errors.EnvironmentValueError(
            f'{what} are too large to be normalised: scale the {how}.')

  def _add_rows(self, rows: dict[str, tuple[tf.Tensor, ...]]
                ) -> dict[str, tf.Tensor]:
    """Adds rows to the sums, about the old means, and moves the statistics."""
    assert self._observations
    for name, (count, total, squares) in rows.items():
      mean = tf.cast(self._observations.statistics[name].mean, tf.float64)
      for variable, value in zip(self._sums[name], (
          count, total - count * mean,
          squares - 2 * mean * total + count * mean**2), strict=True):
        variable.assign_add(value)
    return self._move()

  def _add_batch(self, batch: structs.Batch,
                 targets: tf.Tensor | None) -> None:
    assert isinstance(batch.data, structs.Unroll)
    observation = batch.data.steps.env_outputs.observation
    size = num_columns = batch.num_new_columns
    if self._observations:
      seen, _ = instructions.split(observation)
      num_numbers = batch.data.steps.env_outputs.done.shape[0] * sum(
          math.prod(part.mean.shape)
          for part in self._observations.statistics.values())
      size = max(_MAX_NUMBERS // num_numbers, 1)
    self._count(observation, num_columns)
    for start in range(0, num_columns, size):
      columns = slice(start, min(start + size, num_columns))
      # The older planes of stacks are not copied.
      new: dict[str, structs.Nest] = {'observations': self._observations.newest(
          seen, slice(1, None), columns) if self._observations else {}}
      if self._returns:
        assert targets is not None
        new['targets'] = targets[:, columns], tree.map_structure(
            lambda x, columns=columns: x[columns], batch.data.start.level_name)
      self._compiled_add(new)

  def _add(self, new: dict[str, structs.Nest]) -> None:
    """Adds entries `[T, B, ...]`, all new, to the sums."""
    num_steps, num_columns, *_ = tree.flatten(new)[0].shape
    num_rows = num_steps * num_columns
    sums = {name: (num_rows, *moments) for name, moments in (
        self._observations.moments(new['observations'])
        if self._observations else {}).items()}
    if self._returns:
      sums[_RETURNS] = self._returns.moments(*new['targets'])
    for name, values in sums.items():
      for total, value in zip(self._sums[name], values, strict=True):
        total.assign_add(tf.cast(value, tf.float64))

  def _move(self) -> dict[str, tf.Tensor]:
    """Moves all statistics that are due; returns whether sums were finite."""
    sums = {name: [tf.identity(v) for v in of_part]
            for name, of_part in self._sums.items()}
    if self._collectives.size > 1:
      sums = tf.nest.pack_sequence_as(
          sums, self._collectives.sum(tf.nest.flatten(sums)))
    are_finite = {}
    for name, (count, first, second) in sums.items():
      is_due = tf.constant(True)
      if name != _RETURNS:
        assert self._observations
        is_due = self._observations.is_due(name, count, second)
        are_finite[name] = tf.cond(is_due, functools.partial(
            self._observations.move, name, count, first, second),
                                   lambda: tf.constant(True))
      elif self._returns:
        mean = functools.partial(tf.math.divide_no_nan, y=count)
        are_finite[name] = self._returns.move(
            tf.constant(self._return_rate, tf.float64), mean(first),
            mean(second), count > 0)
      for variable in self._sums[name]:
        variable.assign(tf.where(is_due, tf.zeros_like(variable), variable))
    return are_finite
