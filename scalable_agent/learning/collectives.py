# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Sums over several learners, one process each, that learn the same weights.

Every learner makes the same updates, so all learners must call the same sums in
the same order. A learner waits in a sum until all learners have called the sum.

TensorFlow's strategy for several workers only connects the learners: optimizers
and variables are made outside of the scope of the strategy. Within the scope,
Keras would sum gradients a second time.
"""

import collections
from collections.abc import Sequence
from typing import Protocol
import zlib

import numpy as np
import tensorflow as tf

# Errors of a sum in the other learners when a learner has died or hangs.
SUM_ERRORS = (tf.errors.UnavailableError, tf.errors.AbortedError,
              tf.errors.CancelledError, tf.errors.DeadlineExceededError,
              tf.errors.InternalError, tf.errors.FailedPreconditionError,
              tf.errors.UnknownError)
# A compiled step raises the same classes for other failures. Only this part of
# the text, of `Collective` or `collective`, shows that a sum failed.
IN_SUM_ERRORS = 'ollective'

# The strategy numbers its own groups from 1 on.
_GROUP_KEY = 1_000_000


class Collectives(Protocol):
  """The connection of a learner to all learners.

  Attributes:
    size: the number of learners.
    rank: the number of this learner, from 0 on.
  """
  size: int
  rank: int

  def sum(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Returns sums over all learners; called within a `tf.function`.

    Tensors are floats or integers, with the same shapes and dtypes in all
    learners.
    """

  def total(self, numbers: Sequence[int]) -> list[int]:
    """Returns sums of numbers over all learners; waits for all learners."""

  def largest(self, number: float) -> float:
    """Returns the largest number of all learners; waits for all learners."""

  def copy_from_first(self, variables: Sequence[tf.Variable]) -> None:
    """Sets variables to the values in learner 0, bit for bit."""


class Alone:
  """Collectives of a single learner."""
  size = 1
  rank = 0

  def sum(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    return list(tensors)

  def total(self, numbers: Sequence[int]) -> list[int]:
    return list(numbers)

  def largest(self, number: float) -> float:
    return number

  def copy_from_first(self, variables: Sequence[tf.Variable]) -> None:
    """See `Collectives`."""


class VectorCollectives:
  """Collectives by sums of vectors; subclasses have `_sum_vector`."""

  def __init__(self, size: int, rank: int):
    self.size, self.rank = size, rank
    self._compiled_sum = tf.function(self.sum, autograph=False)

  def _sum_vector(self, vector: tf.Tensor) -> tf.Tensor:
    """Returns the sum over all learners; called within a `tf.function`."""
    raise NotImplementedError

  def sum(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Sums the tensors of each dtype as one vector."""
    places = collections.defaultdict(list)
    for index, tensor in enumerate(tensors):
      places[tensor.dtype].append(index)
    sums = list(tensors)
    for indices in places.values():
      flat = self._sum_vector(
          tf.concat([tf.reshape(tensors[i], [-1]) for i in indices], axis=0))
      parts = tf.split(flat, [tf.size(tensors[i]) for i in indices])
      for i, part in zip(indices, parts, strict=True):
        sums[i] = tf.reshape(part, tf.shape(tensors[i]))
        sums[i].set_shape(tensors[i].shape)
    return sums

  def total(self, numbers: Sequence[int]) -> list[int]:
    # float64 has every integer up to 2^53.
    [sums] = self._compiled_sum([tf.constant(numbers, tf.float64)])
    return [int(number) for number in sums.numpy()]

  def largest(self, number: float) -> float:
    # The sum has the number of each learner in a place of its own. TensorFlow
    # keeps each Python number that becomes a tensor, but no array.
    own = np.zeros([self.size], np.float64)
    own[self.rank] = number
    [numbers] = self._compiled_sum([tf.constant(own)])
    return float(numbers.numpy().max())

  def copy_from_first(self, variables: Sequence[tf.Variable]) -> None:
    """Adds the values of learner 0 to the zeros of all other learners."""
    values = [v if self.rank == 0 else tf.zeros_like(v) for v in variables]
    for variable, value in zip(
        variables, self._compiled_sum([tf.identity(v) for v in values]),
        strict=True):
      variable.assign(value)


class TensorFlowCollectives(VectorCollectives):
  """Collectives by TensorFlow, in a ring of all learners."""

  def __init__(self, addresses: Sequence[str], rank: int):
    """Connects to the other learners; waits for all learners.

    TensorFlow must not have run before in this process. A sum fails if another
    learner dies, and so do all later sums: the process cannot be used any more.
    A sum waits without limit for a learner that lives; the driver ends the wait
    if all learners are silent (`--hang_timeout_s`).

    Args:
      addresses: `HOST:PORT` of each learner. TensorFlow listens there.
    """
    distribute = tf.distribute
    # A thread of the strategy looks for dead learners, and ends their sums.
    self._strategy = distribute.MultiWorkerMirroredStrategy(
        distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec({'worker': list(addresses)}),
            task_type='worker', task_id=rank, rpc_layer='grpc',
            # Without a GPU here, the strategy sums on the CPU. With several
            # GPUs, the strategy would count each vector more than once.
            num_accelerators={'GPU': 1} if tf.config.get_visible_devices('GPU')
            else {}))
    self._device = self._strategy.extended.worker_devices[0]
    with tf.device(self._device):
      self._order = tf.Variable(0., trainable=False)
    super().__init__(len(addresses), rank)

  def _sum_vector(self, vector: tf.Tensor) -> tf.Tensor:
    # The strategy's `all_reduce` has a new key for each sum, and TensorFlow
    # keeps 1.6 KB for each key. With a time limit, each sum also has two
    # threads that sleep until the limit. Sums of the same variable `_order`
    # follow each other, so a key may serve again; TensorFlow may remember the
    # shape of the first sum of a key.
    key = zlib.crc32(f'{vector.dtype.name}{vector.shape}'.encode())
    with tf.device(self._device):
      return tf.raw_ops.CollectiveReduceV2(
          input=vector, group_size=self.size, group_key=_GROUP_KEY,
          instance_key=key & 0x7fffffff, ordering_token=[self._order.handle],
          merge_op='Add', final_op='Id')
