# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Gradients are summed over micro-batches and learners, clipped and applied.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from scalable_agent.experience import structs
from scalable_agent.experience import unrolls
from scalable_agent.learning import collectives as collectives_lib
from scalable_agent.learning import optimizers as optimizers_lib
import tensorflow as tf
import tree

fold = tf.random.experimental.stateless_fold_in

Gradient: TypeAlias = optimizers_lib.Gradient
# The gradients of each group, in the order of the variables; None where the
# loss does not depend on the variable.
Gradients: TypeAlias = dict[str, list[Gradient | None]]
Scalars: TypeAlias = dict[str, tf.Tensor]
# Gradients, sums, means, errors and targets of a batch, see `base.Loss`.
Outputs: TypeAlias = tuple[
    Gradients, Scalars, Scalars, tf.Tensor | None, tf.Tensor | None]


def of_groups(tape: tf.GradientTape, losses: Mapping[str, tf.Tensor],
              groups: Mapping[str, Sequence[tf.Variable]]) -> Gradients:
  """Returns the gradients of the loss of each group.

  Groups of one tensor, such as memory and critics, are computed at once.
  """
  by_loss: dict[int, list[str]] = {}
  for group, loss in losses.items():
    by_loss.setdefault(id(loss), []).append(group)
  gradients: Gradients = {}
  for names in by_loss.values():
    gradients.update(tape.gradient(
        losses[names[0]], {group: groups[group] for group in names}))
  return {group: gradients[group] for group in losses}


def add(gradients: Gradients, others: Gradients) -> Gradients:
  """Returns the sums of the gradients of two micro-batches."""
  return {group: [_add(g, o) for g, o in zip(gradients[group], of_group,
                                             strict=True)]
          for group, of_group in others.items()}


def of_parts(
    compute: Callable[..., Outputs], size: int, groups: tuple[str, ...],
    data: structs.Nest, importance_weights: tf.Tensor | None, seed: tf.Tensor
) -> Outputs:
  """Computes the gradients of a batch, in micro-batches of `size` columns.

  `compute` returns the gradients of a micro-batch, with the other arguments of
  this function; each micro-batch has a seed of its own.
  """
  batch_size = data.steps.env_outputs.reward.shape[1]
  gradients: Gradients = {}
  sums: Scalars = {}
  means: Scalars = {}
  errors, targets = [], []
  for start in range(0, batch_size, size):
    end = min(start + size, batch_size)
    part = unrolls.columns(data, start, end)
    with tf.control_dependencies(
        [g for of_group in gradients.values() for g in of_group
         if g is not None]):
      # All micro-batches at once would need the memory of the batch.
      part = tree.map_structure(tf.identity, part)
    part_gradients, part_sums, part_means, part_errors, part_targets = compute(
        groups, part, None if importance_weights is None
        else importance_weights[start:end], fold(seed, start))
    errors.append(part_errors)
    targets.append(part_targets)
    share = (end - start) / batch_size
    gradients = add(gradients, part_gradients) if gradients else part_gradients
    sums = {k: sums.get(k, 0.0) + v for k, v in part_sums.items()}
    means = {k: means.get(k, 0.0) + share * v for k, v in part_means.items()}
  join = lambda x, axis: None if x[0] is None else tf.concat(x, axis)
  return gradients, sums, means, join(errors, 0), join(targets, 1)


def part_of(data: structs.Nest, importance_weights: Sequence[tf.Tensor],
            index: tf.Tensor | int, num_parts: int
            ) -> tuple[structs.Nest, Sequence[tf.Tensor]]:
  """Returns the data of one of several updates.

  Of unrolls, update `index` has the columns from `index * B` on with their
  weights, where `B` is the number of columns divided by `num_parts`. Other data
  and weights have an axis of updates in front.
  """
  if not isinstance(data, structs.Unroll):
    return tf.nest.map_structure(
        lambda x: x[index], (data, importance_weights))

  def columns(x: tf.Tensor, axis: int) -> tf.Tensor:
    size = x.shape[axis] // num_parts
    is_axis = [i == axis for i in range(len(x.shape))]
    return tf.slice(
        x, [index * size if i else 0 for i in is_axis],
        [size if i else -1 for i in is_axis])

  of_columns = lambda x: columns(x, 0)
  return structs.Unroll(
      tree.map_structure(lambda x: columns(x, 1), data.steps),
      tree.map_structure(of_columns, data.start)), tree.map_structure(
          of_columns, importance_weights)


def joined(targets: Sequence[tf.Tensor]) -> tf.Tensor | None:
  """Returns `[T, K * B]` of the only tensor `[K, T, B]`, if there is one."""
  return tf.concat(tf.unstack(targets[0]), axis=1) if targets else None


def _add(gradient: Gradient | None, other: Gradient | None) -> Gradient | None:
  if gradient is None or other is None:
    return other if gradient is None else gradient
  if isinstance(gradient, tf.IndexedSlices):
    return tf.IndexedSlices(
        tf.concat([gradient.values, other.values], 0),
        tf.concat([gradient.indices, other.indices], 0), gradient.dense_shape)
  return gradient + other


def sum_over_learners(
    gradients: Gradients, sums: Scalars, means: Scalars,
    groups: Mapping[str, Sequence[tf.Variable]],
    collectives: collectives_lib.Collectives, share: float
) -> tuple[Gradients, Scalars, Scalars]:
  """Returns gradients and scalars of the batches of all learners.

  `sums` are added, `means` averaged. `groups` are the variables of each group,
  and `share` is the factor of the gradients of this learner.
  """
  dense: dict[tuple[str, int], tf.Tensor] = {}
  counts: dict[tuple[str, int], tf.Tensor] = {}
  for group, of_group in gradients.items():
    for index, (gradient, variable) in enumerate(zip(
        of_group, groups[group], strict=True)):
      key = group, index
      if isinstance(gradient, tf.IndexedSlices):
        # Rows without a slice in any learner must stay untouched.
        counts[key] = optimizers_lib.slices_per_row(gradient, variable.shape)
        gradient = optimizers_lib.sum_slices(gradient, variable.shape)
      if gradient is not None:
        dense[key] = share * gradient
  means = {name: mean / collectives.size for name, mean in means.items()}
  addends = dense, counts, dict(sums), means
  dense, counts, sums, means = tf.nest.pack_sequence_as(
      addends, collectives.sum(tf.nest.flatten(addends)))
  for key, count in counts.items():
    dense[key] = optimizers_lib.to_slices(dense[key], count)
  return {
      group: [dense.get((group, index)) for index in range(len(of_group))]
      for group, of_group in gradients.items()}, sums, means


def apply(optimizer: tf.keras.optimizers.Optimizer,
          variables: Sequence[tf.Variable],
          gradients: Sequence[Gradient | None], learning_rate: tf.Tensor,
          clip_value: float | None, clip_norm: float | None) -> tf.Tensor:
  """Updates the variables of a group; returns the norm before clipping."""
  # `tf.IndexedSlices` lose the variable's static shape between functions.
  gradients = [
      tf.IndexedSlices(g.values, g.indices, tf.constant(v.shape.as_list()))
      if isinstance(g, tf.IndexedSlices) else g
      for g, v in zip(gradients, variables, strict=True)]
  norm = optimizers_lib.global_norm(gradients)
  if clip_value is not None:
    gradients = optimizers_lib.clip_by_value(gradients, clip_value)
  if clip_norm is not None:
    gradients = optimizers_lib.clip_by_norm(gradients, clip_norm)
  # Nothing changes before the gradients are summed over the learners.
  with tf.control_dependencies([norm]):
    _update(optimizer, variables, gradients, learning_rate)
  return norm


def mean_where(values: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
  """Returns the mean of the values where the mask is True."""
  count = tf.reduce_sum(tf.cast(mask, tf.float32))
  return tf.reduce_sum(tf.where(mask, values, 0.0)) / count


def _update(optimizer: tf.keras.optimizers.Optimizer,
            variables: Sequence[tf.Variable],
            gradients: Sequence[Gradient | None],
            learning_rate: tf.Tensor) -> None:
  optimizer.learning_rate.assign(learning_rate)
  # `optimizer.apply` would sum gradients over one replica. TensorFlow keeps the
  # graph of that sum, and thus of the update, until the program ends.
  pairs = [(gradient, variable) for gradient, variable in zip(
      gradients, variables, strict=True) if gradient is not None]
  if isinstance(optimizer, optimizers_lib.Adam):
    optimizer.update_steps(pairs, learning_rate)
  else:
    for gradient, variable in pairs:
      optimizer.update_step(gradient, variable, learning_rate)
  for _, variable in pairs:
    if variable.constraint is not None:
      variable.assign(variable.constraint(variable))
  optimizer.iterations.assign_add(1)
