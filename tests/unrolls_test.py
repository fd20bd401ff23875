# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of how steps become unrolls and unrolls become batches."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from scalable_agent import queues
from scalable_agent import structs
from scalable_agent import unrolls
import tree

_SPEC = structs.ArraySpec((2,), np.dtype(np.uint8))
_TEXT = {'frame': _SPEC,
         'instruction': structs.ArraySpec((), np.dtype(object))}
_STATE = (np.zeros([1, 3]), np.zeros([1, 4]))
_LENGTH = 2


def _unroll(columns, spec=_SPEC, pool=None):
  """An unroll whose entries in column i all say columns[i]."""
  unroll = unrolls.allocate(_LENGTH, [f'level{c}' for c in columns], spec,
                            num_actions=3, agent_state=_STATE, pool=pool)
  unroll.policy_version[:] = columns

  def fill(axis):
    def fill_array(array):
      shape = [1] * array.ndim
      shape[axis] = len(columns)
      if array.dtype == object:
        array[:] = np.array([b'%d' % c for c in columns],
                            object).reshape(shape)
      else:
        array[:] = np.reshape(columns, shape).astype(array.dtype)
    return fill_array

  tree.map_structure(fill(0), unroll.output.agent_state)
  tree.map_structure(fill(1), unroll.output.env_outputs)
  tree.map_structure(fill(1), unroll.output.agent_outputs)
  fill(1)(unroll.output.truncation_values)
  return unroll


class UnrollsTest(parameterized.TestCase):

  def test_allocate(self):
    unroll = unrolls.allocate(5, ['a', 'b', 'b'], _TEXT, 4, _STATE)
    output = unroll.output
    self.assertEqual(unroll.num_columns, 3)
    self.assertEqual(list(output.level_name), ['a', 'b', 'b'])
    self.assertEqual([s.shape for s in output.agent_state], [(3, 3), (3, 4)])
    frame = output.env_outputs.observation['frame']
    self.assertEqual((frame.shape, frame.dtype), ((6, 3, 2), np.uint8))
    instruction = output.env_outputs.observation['instruction']
    self.assertEqual((instruction.shape, instruction.dtype), ((6, 3), object))
    self.assertEqual(output.agent_outputs.policy_logits.shape, (6, 3, 4))

  def test_write_touches_one_step(self):
    unroll = _unroll([7, 7])
    step = tree.map_structure(lambda a: np.ones_like(a[0]),
                              unroll.output.env_outputs)
    action = structs.AgentOutput(
        np.array([1, 2]), np.full([2, 3], 9.0), np.array([3.0, 4.0]))
    unrolls.write(unroll, 1, step, action, np.array([5.0, 6.0]))
    np.testing.assert_array_equal(
        unroll.output.agent_outputs.action, [[7, 7], [1, 2], [7, 7]])
    np.testing.assert_array_equal(
        unroll.output.agent_outputs.baseline, [[7, 7], [3, 4], [7, 7]])
    np.testing.assert_array_equal(
        unroll.output.truncation_values, [[7, 7], [5, 6], [7, 7]])
    np.testing.assert_array_equal(
        unroll.output.env_outputs.observation[:, :, 0],
        [[7, 7], [1, 1], [7, 7]])

  @parameterized.parameters(
      (1, 1), (2, 2), (2, 4), (6, 2), (4, 3), (3, 4), (5, 2))
  def test_batches_lose_and_repeat_no_column(self, num_envs, batch_size):
    queue = queues.BoundedQueue(100)
    pool = queues.BoundedQueue(100)
    total = 3 * num_envs * batch_size
    for start in range(0, total, num_envs):
      queue.put(_unroll(range(start, start + num_envs), _TEXT, pool))
    batch = _unroll([0] * batch_size, _TEXT)
    source = unrolls.batches(queue, batch)
    for start in range(0, total, batch_size):
      expected = _unroll(range(start, start + batch_size), _TEXT)
      found = next(source)
      np.testing.assert_array_equal(found.policy_version,
                                    expected.policy_version)
      tree.map_structure(np.testing.assert_array_equal,
                         found.output, expected.output)
    self.assertLen(pool, 3 * batch_size)  # Every unroll came back, once.

  def test_an_unroll_is_released_only_when_all_of_it_is_copied(self):
    queue, pool = queues.BoundedQueue(9), queues.BoundedQueue(9)
    queue.put(_unroll([0, 1, 2], pool=pool))
    source = unrolls.batches(queue, _unroll([0, 0]))
    next(source)
    self.assertEmpty(pool)
    queue.put(_unroll([3, 4, 5], pool=pool))
    next(source)
    self.assertLen(pool, 1)

  def test_errors_of_the_queue_pass_through(self):
    queue = queues.BoundedQueue(1)
    queue.fail(RuntimeError('environment 3'))
    with self.assertRaisesRegex(RuntimeError, 'environment 3'):
      next(unrolls.batches(queue, _unroll([0])))


if __name__ == '__main__':
  absltest.main()
