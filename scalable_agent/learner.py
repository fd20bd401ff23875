# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The learner: one compiled update from a batch to new weights."""

from collections.abc import Mapping

import numpy as np
from scalable_agent import optimizers as optimizers_lib
from scalable_agent import structs
from scalable_agent import unrolls
from scalable_agent.algorithms import base
import tensorflow as tf
import tree


class Learner:
  """Updates the weights of an algorithm, counts frames, publishes weights.

  The counters are on the host: no update waits for the device.

  Attributes:
    algorithm: the algorithm that it learns by.
    agent: the agent of the algorithm.
    num_env_frames: int, environment frames learned from.
    num_updates: int, updates made.
  """

  def __init__(self, algorithm: base.Algorithm,
               optimizers: Mapping[str, optimizers_lib.Scheduled], *,
               seed: int = 0, clip_gradient_norm: float | None = None,
               micro_batch_size: int | None = None,
               jit_compile: bool = False):
    """Makes a learner.

    Args:
      algorithm: computes the losses, which are sums over the batch.
      optimizers: an optimizer and its learning rate for each group of the
        algorithm.
      seed: seed of the losses' random numbers.
      clip_gradient_norm: the largest global norm of the gradient of a group,
        or None.
      micro_batch_size: how many columns of a batch are processed at once; None
        for all. Micro-batches are processed one after the other. The update is
        that of the whole batch, but needs the memory of one micro-batch only.
      jit_compile: whether XLA compiles the update.

    Raises:
      ValueError: if the optimizers are not those of the groups.
    """
    if set(optimizers) != set(algorithm.groups):
      raise ValueError(f'There are optimizers for {sorted(optimizers)}, but '
                       f'the groups are {sorted(algorithm.groups)}.')
    self.algorithm = algorithm
    self.agent = algorithm.agent
    self.num_env_frames = 0
    self.num_updates = 0
    self._optimizers = dict(optimizers)
    self._seed = seed
    self._clip_gradient_norm = clip_gradient_norm
    self._micro_batch_size = micro_batch_size
    self._compiled_update = tf.function(self._update, autograph=False)
    self._compiled_gradients = self._gradients
    self._compiled_apply = self._apply
    # XLA compiles these functions, and all micro-batches share them. Otherwise
    # a function of its own only costs time.
    if jit_compile or micro_batch_size:
      self._compiled_gradients, self._compiled_apply = (
          tf.function(function, autograph=False, jit_compile=jit_compile)
          for function in (self._gradients, self._apply))
    for group, variables in algorithm.groups.items():
      self._optimizers[group].optimizer.build(variables)

  @property
  def state(self) -> dict[str, list[tf.Variable]]:
    """All variables that a checkpoint must hold, by kind."""
    return {
        'variables': self.agent.variables,
        'optimizer': [variable for group in self.algorithm.groups for variable
                      in self._optimizers[group].optimizer.variables],
        'targets': self.algorithm.targets}

  def to_device(self, unroll: structs.Unroll,
                num_new_frames: int) -> structs.Batch:
    """Copies a batch of arrays to the default device; splits instructions.

    The arrays can be overwritten afterwards. Level names, statistics and last
    observations are left out: no loss reads them.

    Args:
      unroll: `Unroll` of arrays `[T + 1, B, ...]`.
      num_new_frames: environment frames that no update has learned from.
    """
    steps = unroll.steps._replace(env_outputs=self.agent.tokenize(
        unroll.steps.env_outputs._replace(
            info=structs.NO_INFO, last_observation=())))
    start = unroll.start._replace(
        level_name=(), environment=(), policy_version=())
    data = tree.map_structure(
        lambda array: tf.identity(tf.convert_to_tensor(array)),
        structs.Unroll(steps, start))
    return structs.Batch(data, num_new_frames)

  def step(self, batch: structs.Batch) -> dict[str, tf.Tensor]:
    """Makes one update.

    Args:
      batch: from `to_device`.

    Returns:
      Scalars by name: those of the loss, `learning_rate`, and `gradient_norm`
      before clipping. With several groups, each has these two, as
      `<group>/learning_rate` and `<group>/gradient_norm`.
    """
    rates = {group: np.array(schedule(self.num_env_frames), np.float32)
             for group, (_, schedule) in self._optimizers.items()}
    seed = np.array([self._seed, self.num_updates], np.int32)
    scalars = self._compiled_update(batch.data, rates, seed)
    self.num_env_frames += batch.num_new_frames
    self.num_updates += 1
    return scalars

  def weights(self) -> structs.Weights:
    """Returns a copy of the weights that later updates do not change."""
    return structs.Weights(
        version=self.num_updates,
        values=[tf.convert_to_tensor(v) for v in self.agent.variables])

  def _update(self, data, learning_rates, seed):
    batch_size = data.steps.env_outputs.reward.shape[1]
    step = self._micro_batch_size or batch_size
    gradients = None
    sums: dict[str, tf.Tensor] = {}
    means: dict[str, tf.Tensor] = {}
    for start in range(0, batch_size, step):
      part = unrolls.columns(data, start, min(start + step, batch_size))
      with tf.control_dependencies(list(sums.values())[:1]):
        # One after the other: at once they would need the memory of all.
        part = tree.map_structure(tf.identity, part)
      part_gradients, part_sums, part_means = self._compiled_gradients(
          part, tf.random.experimental.stateless_fold_in(seed, start))
      share = part.steps.env_outputs.reward.shape[1] / batch_size
      gradients = part_gradients if gradients is None else {
          group: [_add(g, p) for g, p in zip(gradients[group], new,
                                             strict=True)]
          for group, new in part_gradients.items()}
      sums = {k: sums.get(k, 0.0) + v for k, v in part_sums.items()}
      means = {k: means.get(k, 0.0) + share * v for k, v in part_means.items()}
    scalars = self._compiled_apply(gradients, learning_rates)
    self.algorithm.after_update()
    return {**sums, **means, **scalars}

  def _gradients(self, data, seed):
    groups = self.algorithm.groups
    with tf.GradientTape(persistent=len(groups) > 1) as tape:
      loss = self.algorithm.loss(data, seed)
    gradients = {group: tape.gradient(loss.by_group[group], variables)
                 for group, variables in groups.items()}
    return gradients, dict(loss.sums), dict(loss.means)

  def _apply(self, gradients, learning_rates):
    scalars = {}
    for group, variables in self.algorithm.groups.items():
      prefix = f'{group}/' if len(self.algorithm.groups) > 1 else ''
      scalars[f'{prefix}gradient_norm'] = self._apply_group(
          self._optimizers[group].optimizer, gradients[group], variables,
          learning_rates[group])
      scalars[f'{prefix}learning_rate'] = tf.identity(learning_rates[group])
    return scalars

  def _apply_group(self, optimizer, gradients, variables, learning_rate):
    """Updates the variables of a group; returns its gradient's norm."""
    # `tf.IndexedSlices` lose the variable's static shape between functions.
    gradients = [
        tf.IndexedSlices(g.values, g.indices, tf.constant(v.shape.as_list()))
        if isinstance(g, tf.IndexedSlices) else g
        for g, v in zip(gradients, variables, strict=True)]
    norm = optimizers_lib.global_norm(gradients)
    if self._clip_gradient_norm is not None:
      gradients, _ = tf.clip_by_global_norm(
          gradients, self._clip_gradient_norm, use_norm=norm)
    optimizer.learning_rate.assign(learning_rate)
    optimizer.apply(gradients, variables)
    return norm


def _add(gradient, other):
  if isinstance(gradient, tf.IndexedSlices):
    return tf.IndexedSlices(
        tf.concat([gradient.values, other.values], 0),
        tf.concat([gradient.indices, other.indices], 0), gradient.dense_shape)
  return gradient + other
