# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The learner: compiled updates from a batch to new weights."""

from collections.abc import Collection, Mapping, Sequence
import functools
from typing import NamedTuple

import numpy as np
from scalable_agent.algorithms import base
from scalable_agent.experience import structs
from scalable_agent.learning import collectives as collectives_lib
from scalable_agent.learning import gradients as gradients_lib
from scalable_agent.learning import optimizers as optimizers_lib
from scalable_agent.learning import statistics
from scalable_agent.networks import flat_function
import tensorflow as tf
import tree


class Learned(NamedTuple):
  """The result of one call of the learner.

  Attributes:
    scalars: float32 scalars by name, means over the updates of the call. Means
      of a group are over the updates in which the group learned.
    errors, targets: see `base.Loss`; `errors` are `[B]` or `[K, B]`.
    values: those of `Learner.weights`; empty if the agent has statistics.
  """
  scalars: dict[str, tf.Tensor]
  errors: tf.Tensor | None
  targets: tf.Tensor | None = None
  values: Sequence[tf.Tensor] = ()


class Learner:
  """Updates the weights of an algorithm, counts frames, publishes weights.

  Updates wait for the device only for the last move of statistics.

  Attributes:
    algorithm, agent: the algorithm, and its agent.
    num_env_frames: environment frames that have arrived.
    num_updates, updates_per_call: updates made, and `K`.
    is_consistent: False if `step` failed and may have made a part of its work.
  """

  def __init__(self, algorithm: base.Algorithm,
               optimizers: Mapping[str, optimizers_lib.Scheduled], *,
               seed: int = 0, clip_gradient_norm: float | None = None,
               clip_gradient_value: float | None = None,
               micro_batch_size: int | None = None,
               updates_per_call: int = 1, jit_compile: bool = False,
               collectives: collectives_lib.Collectives | None = None,
               has_mean_losses: bool = False,
               unclipped: Collection[str] = (), return_rate: float = 1e-4,
               target_policy: base.TargetPolicy | None = None):
    """Makes a learner.

    Args:
      algorithm: computes the losses. With micro-batches, losses must be sums
        over the batch.
      optimizers: an optimizer and its learning rate for each group.
      seed: seed of the losses' random numbers.
      clip_gradient_norm: the largest norm of the gradient of a group, or None.
      clip_gradient_value: the largest size of its numbers before that, or None.
      micro_batch_size: the number of columns that are processed at once, which
        saves memory; None for all. The update is that of the whole batch.
      updates_per_call: `K`, the updates of one compiled loop.
      jit_compile: whether XLA compiles updates, no loop of several learners.
      collectives: the other learners, if there are any. Each learner has a part
        of the batch, and all learners make the update of the whole batch.
      has_mean_losses: whether losses are means over the batch, not sums.
      unclipped: groups whose gradients are not clipped.
      return_rate: see `pop_art.PopArt.move`.
      target_policy: moved after updates, as its period says.

    Raises:
      ValueError: wrong optimizers, or several updates with micro-batches.
    """
    if set(optimizers) != set(algorithm.groups):
      raise ValueError(f'There are optimizers for {sorted(optimizers)}, but '
                       f'the groups are {sorted(algorithm.groups)}.')
    if updates_per_call > 1 and micro_batch_size:
      raise ValueError('Several updates per call cannot have micro-batches.')
    self.algorithm = algorithm
    self.agent = algorithm.agent
    self.num_env_frames = 0
    self.num_updates = 0
    self.updates_per_call = updates_per_call
    self.is_consistent = True
    self._optimizers = dict(optimizers)
    self._seed = seed
    self._delayed_names: set[str] = set()  # Scalars of delayed groups.
    self._clip_gradient_norm = clip_gradient_norm
    self._clip_gradient_value = clip_gradient_value
    self._unclipped = unclipped
    self._micro_batch_size = micro_batch_size
    self._compiled_gradients = self._gradients
    self._compiled_apply = self._apply
    self._collectives = collectives or collectives_lib.Alone()
    self._target_policy = target_policy
    self._kl_schedules = [
        schedule for _, schedule in optimizers.values()
        if isinstance(schedule, optimizers_lib.KlSchedule)]
    self._mover = statistics.Mover(self.agent, return_rate, self._collectives)
    # Gradients are summed over the learners, or averaged.
    self._share = 1 / self._collectives.size if has_mean_losses else 1.0
    is_loop = updates_per_call > 1
    # XLA cannot compile sums over processes. Updates of statistics are few.
    has_xla = jit_compile and is_loop and self._collectives.size == 1
    self._compiled_updates = {learns: flat_function.FlatFunction(
        self._loop if is_loop else self._update_groups,
        jit_compile=has_xla and learns) for learns in (False, True)}
    self._compiled_copy = flat_function.FlatFunction(self._copy_weights)
    # All micro-batches share these functions; else two functions cost time.
    if not is_loop and (jit_compile or micro_batch_size):
      self._compiled_gradients, self._compiled_apply = (
          tf.function(function, autograph=False, jit_compile=jit_compile)
          for function in (self._gradients, self._apply))
    for group, variables in algorithm.groups.items():
      self._optimizers[group].optimizer.build(variables)

  @property
  def state(self) -> dict[str, list[tf.Variable]]:
    """All variables that a checkpoint must hold, by kind."""
    published = {id(variable) for variable in self.agent.variables}
    return {
        'variables': self.agent.variables,
        'optimizer': [variable for group in self.algorithm.groups for variable
                      in self._optimizers[group].optimizer.variables],
        'unpublished': [v for group in self.algorithm.groups.values()
                        for v in group if id(v) not in published],
        'targets': self.algorithm.targets,
        'statistics': [*self._mover.variables, *(
            v for schedule in self._kl_schedules for v in schedule.variables)]}

  @property
  def observations_clipped(self) -> tuple[int, int]:
    """Numbers of observations of a recent batch: all, and clipped ones."""
    return self._mover.counted

  def to_device(self, data: structs.Unroll | structs.Transition
                | structs.Sequence, num_new_frames: int,
                importance_weights: np.ndarray | None = None
                ) -> structs.Batch:
    """Copies arrays to the default device; splits instructions.

    The arrays can be overwritten afterwards. Level names, statistics and last
    observations are left out: no loss reads these. Statistics of returns of
    several levels need the numbers of the levels.
    """
    if isinstance(data, structs.Unroll):
      steps = data.steps._replace(env_outputs=self.agent.tokenize(
          data.steps.env_outputs._replace(
              info=structs.NO_INFO, last_observation=())))
      start = data.start._replace(
          level_name=self.agent.returns.levels(data.start.level_name)
          if self.agent.returns else (), environment=(), policy_version=())
      data = structs.Unroll(steps, start)
    elif isinstance(data, structs.Sequence):
      data = data._replace(env_outputs=self.agent.tokenize(data.env_outputs))
    data, importance_weights = tree.map_structure(
        lambda array: None if array is None else tf.identity(
            tf.convert_to_tensor(array)), (data, importance_weights))
    return structs.Batch(data, importance_weights, num_new_frames)

  def step(self, batch: structs.Batch) -> Learned:
    """Makes `K` updates with a batch of `to_device`.

    The scalars are the loss's, `learning_rate`, and `gradient_norm` before
    clipping; with several groups, `<group>/learning_rate` and
    `<group>/gradient_norm` of each group that learned in an update.
    """
    rates = {
        group: rate if tf.is_tensor(rate := schedule(self.num_env_frames))
        else np.array(rate, np.float32)
        for group, (_, schedule) in self._optimizers.items()}
    num_env_frames = self.num_env_frames + batch.num_new_frames
    progress = base.Progress(np.array(self.num_updates, np.int64),
                             np.array(num_env_frames, np.int64))
    is_due = -self.num_updates % self.algorithm.delay < self.updates_per_call
    self._mover.check()
    self._mover.add_rows(batch.new_rows)
    # The first collection of unrolls only sets the statistics.
    groups = self._groups(is_due) if self._mover.is_set else ()
    # A single update is made completely, or not at all.
    self.is_consistent = self.updates_per_call == 1
    learned = self._compiled_updates[bool(groups)](
        batch.data, [] if batch.importance_weights is None
        else [batch.importance_weights], rates, progress, static=(groups,))
    self.is_consistent = False  # Statistics and counts must follow.
    self._mover.add(batch, learned.targets)
    for schedule in self._kl_schedules if groups else ():
      schedule.add(learned.scalars['policy_kl'], bool(batch.num_new_frames))
    self.num_env_frames = num_env_frames
    self.num_updates += self.updates_per_call
    # The copy has the weights' statistics. Runs may resume within a period.
    if self._target_policy and (not groups or (
        self.num_updates % self._target_policy.period < self.updates_per_call)):
      self._target_policy.follow(1.0)
    self.is_consistent = True
    return learned

  def copy_from_first(self) -> None:
    """Takes the state of learner 0, whose sums of a collection count once."""
    self._collectives.copy_from_first(tree.flatten(self.state))
    for variable in self._mover.variables if self._collectives.rank else ():
      variable.assign(tf.zeros_like(variable))
    for schedule in self._kl_schedules:
      schedule.forget()

  def weights(self, learned: Learned | None = None) -> structs.Weights:
    """Returns a copy of the weights that later updates do not change.

    `learned` of the last `step` spares a call, 1/8 of a small network's time.
    """
    return structs.Weights(version=self.num_updates, values=(
        learned.values if learned else ()) or self._compiled_copy())

  def _copy_weights(self) -> list[tf.Tensor]:
    return [tf.identity(v) for v in self.agent.variables]

  def _copy_if_final(self) -> list[tf.Tensor]:
    """Copies the weights, unless statistics move after the updates."""
    return [] if self._mover.variables else self._copy_weights()

  def _groups(self, is_due: bool) -> tuple[str, ...]:
    """Returns the groups that learn in an update."""
    return tuple(group for group in self.algorithm.groups
                 if is_due or group not in self.algorithm.delayed)

  def _loop(self, groups: tuple[str, ...], data: structs.Nest,
            importance_weights: Sequence[tf.Tensor],
            learning_rates: Mapping[str, tf.Tensor],
            progress: base.Progress) -> Learned:
    """Makes `K` updates; `groups` learn in at least one update."""
    part = lambda index: gradients_lib.part_of(
        data, importance_weights, index, self.updates_per_call)
    update = tf.function(self._update, autograph=False)
    traced = update.get_concrete_function(
        groups, *part(0), learning_rates, progress)
    outputs = tf.nest.map_structure(
        lambda spec: tf.TensorArray(
            tf.float32, self.updates_per_call, element_shape=spec.shape),
        _outputs(traced.structured_outputs))

    def body(index: tf.Tensor, outputs: structs.Nest
             ) -> tuple[tf.Tensor, structs.Nest]:
      now = progress._replace(
          num_updates=progress.num_updates + tf.cast(index, tf.int64))
      learned = update(groups, *part(index), learning_rates, now)
      return index + 1, tf.nest.map_structure(
          lambda array, value: array.write(index, value), outputs,
          _outputs(learned))

    _, outputs = tf.while_loop(
        lambda index, _: index < self.updates_per_call, body, (0, outputs),
        maximum_iterations=self.updates_per_call)
    scalars, errors, targets = tf.nest.map_structure(
        lambda x: x.stack(), outputs)
    learns = (progress.num_updates + tf.range(
        self.updates_per_call, dtype=tf.int64)) % self.algorithm.delay == 0
    return Learned({
        name: (gradients_lib.mean_where(values, learns)
               if name in self._delayed_names else tf.reduce_mean(values))
        for name, values in scalars.items()}, errors[0] if errors else None,
                   gradients_lib.joined(targets), self._copy_if_final())

  def _update(self, groups: tuple[str, ...], data: structs.Nest,
              importance_weights: Sequence[tf.Tensor],
              learning_rates: Mapping[str, tf.Tensor],
              progress: base.Progress) -> Learned:
    """Makes an update of the groups, without delayed groups if not due."""
    update = lambda groups: self._update_groups(
        groups, data, importance_weights, learning_rates, progress)
    always = self._groups(is_due=False)
    if groups == always or self.algorithm.delay == 1:
      return update(groups)
    names: list[str] = []

    def all_groups() -> Learned:
      learned = update(groups)
      names.extend(learned.scalars)
      return learned

    def not_delayed() -> Learned:
      learned = update(always)
      self._delayed_names = set(names) - set(learned.scalars)
      return learned._replace(scalars={
          name: learned.scalars.get(name, tf.constant(0.0)) for name in names})

    return tf.cond(progress.num_updates % self.algorithm.delay == 0,
                   all_groups, not_delayed)

  def _update_groups(self, groups: tuple[str, ...], data: structs.Nest,
                     importance_weights: Sequence[tf.Tensor],
                     learning_rates: Mapping[str, tf.Tensor],
                     progress: base.Progress) -> Learned:
    seed = tf.stack([self._seed, tf.cast(progress.num_updates, tf.int32)])
    compute = (functools.partial(
        gradients_lib.of_parts, self._compiled_gradients,
        self._micro_batch_size) if self._micro_batch_size
               else self._compiled_gradients)
    gradients, sums, means, errors, targets = compute(
        groups, data, importance_weights[0] if importance_weights else None,
        seed if self._micro_batch_size else gradients_lib.fold(seed, 0))
    if self._collectives.size > 1:
      gradients, sums, means = gradients_lib.sum_over_learners(
          gradients, sums, means, self.algorithm.groups, self._collectives,
          self._share)
    scalars = self._compiled_apply(gradients, learning_rates)
    with tf.control_dependencies(list(scalars.values())):
      self.algorithm.after_update(
          groups, progress._replace(num_updates=progress.num_updates + 1))
    return Learned({**sums, **means, **scalars}, errors, targets,
                   () if self.updates_per_call > 1 else self._copy_if_final())

  def _gradients(
      self, groups: tuple[str, ...], data: structs.Nest,
      importance_weights: tf.Tensor | None, seed: tf.Tensor
  ) -> gradients_lib.Outputs:
    with tf.GradientTape(persistent=len(groups) > 1) as tape:
      loss = self.algorithm.loss(data, importance_weights, groups, seed)
    gradients = gradients_lib.of_groups(
        tape, {group: loss.by_group[group] for group in groups},
        self.algorithm.groups)
    return (gradients, dict(loss.sums), dict(loss.means), loss.errors,
            loss.targets)

  def _apply(self, gradients: gradients_lib.Gradients,
             learning_rates: Mapping[str, tf.Tensor]) -> gradients_lib.Scalars:
    scalars = {}
    # Without gradients, the update only sets statistics.
    for group in gradients or self.algorithm.groups:
      prefix = f'{group}/' if len(self.algorithm.groups) > 1 else ''
      limits = (None, None) if group in self._unclipped else (
          self._clip_gradient_value, self._clip_gradient_norm)
      scalars[f'{prefix}gradient_norm'] = gradients_lib.apply(
          self._optimizers[group].optimizer, self.algorithm.groups[group],
          gradients[group], learning_rates[group], *limits
      ) if gradients else tf.constant(0.0)
      scalars[f'{prefix}learning_rate'] = tf.identity(learning_rates[group])
    return scalars


def _outputs(learned: Learned) -> tuple[
    dict[str, tf.Tensor], list[tf.Tensor], list[tf.Tensor]]:
  """Returns scalars, errors and targets as a nest of tensors only."""
  return (learned.scalars, [] if learned.errors is None else [learned.errors],
          [] if learned.targets is None else [learned.targets])
