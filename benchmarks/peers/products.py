# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The matrix products of an update of SAC: the least time an update can take.

An update computes more, such as activations, Adam and the targets. The share of
the products in the time of an update says how much could still be saved.
"""

import collections
from collections.abc import Callable, Sequence
import functools
import statistics
import time
from typing import NamedTuple

import tensorflow as tf

_REPEATS = 100
_TURNS = 7


class Product(NamedTuple):
  """A product of float32, `[rows, inner] x [inner, columns]`.

  `transposed` is the factor that is stored transposed: `a`, `b` or none.
  """
  rows: int
  inner: int
  columns: int
  transposed: str = ''


def of_sac(policy: Sequence[tuple[int, int]],
           critic: Sequence[tuple[int, int]], num_critics: int,
           batch_size: int) -> collections.Counter[Product]:
  """Returns the products of an update, with the number of each.

  Args:
    policy: numbers of inputs and outputs of each layer of the policy.
    critic: the same for one critic.
    num_critics: the number of critics.
    batch_size: transitions of the batch.
  """
  found: collections.Counter[Product] = collections.Counter()
  # The policy sees the observations before and after the actions. A critic sees
  # the actions of the batch, its target the next actions, and then the critic
  # sees the policy's actions, whose gradient flows through the first layer.
  for layers, networks, forward, first in (
      (policy, 1, 2, 0), (critic, num_critics, 3, 1)):
    for index, (inputs, outputs) in enumerate(layers):
      found[Product(batch_size, inputs, outputs)] += networks * forward
      found[Product(inputs, batch_size, outputs, 'a')] += networks
      found[Product(batch_size, outputs, inputs, 'b')] += networks * (
          first + (index > 0))
  return +found  # Without zeros.


def num_multiply_adds(products: collections.Counter[Product]) -> int:
  """Returns the multiply-adds of all products."""
  return sum(count * product.rows * product.inner * product.columns
             for product, count in products.items())


def cpu_ms(products: collections.Counter[Product]) -> float:
  """Returns milliseconds of processor time of all products, as TensorFlow's."""
  calls = {product: _repeated(product) for product in products}
  for call in calls.values():  # Compiles.
    call()
  turns = []
  for _ in range(_TURNS):
    turns.append(0.0)
    for product, call in calls.items():
      start = time.process_time()
      call()
      seconds = time.process_time() - start
      turns[-1] += 1e3 * products[product] * seconds / _REPEATS
  return statistics.median(turns)


def _repeated(product: Product) -> Callable[[], None]:
  """Returns a function that computes the product `_REPEATS` times."""
  shapes = [(product.rows, product.inner), (product.inner, product.columns)]
  factors = [
      tf.random.normal(shape[::-1] if product.transposed == name else shape)
      for name, shape in zip('ab', shapes)]
  result = tf.Variable(tf.zeros([product.rows, product.columns]))

  @tf.function(autograph=False)
  def repeated(a: tf.Tensor, b: tf.Tensor) -> None:
    # TensorFlow merges equal products, and drops products that nobody reads.
    # So each result is kept, which copies nothing, and the next product waits.
    kept: list[tf.Operation] = []
    for _ in range(_REPEATS):
      with tf.control_dependencies(kept):
        kept = [result.assign(tf.matmul(
            a, b, transpose_a=product.transposed == 'a',
            transpose_b=product.transposed == 'b'), read_value=False)]

  return functools.partial(repeated.get_concrete_function(*factors), *factors)
