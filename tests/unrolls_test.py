# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of how steps become unrolls and unrolls become batches."""

import pickle

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.experience import unrolls
import tree

_SPEC = structs.ArraySpec((2,), np.dtype(np.uint8))
_TEXT = {'frame': _SPEC,
         'instruction': structs.ArraySpec((), np.dtype(object))}
_OUTPUT = structs.AgentOutput(
    structs.ArraySpec((), np.dtype(np.int32)),
    structs.ArraySpec((3,), np.dtype(np.float32)),
    structs.ArraySpec((), np.dtype(np.float32)))
_STATE = (np.zeros([1, 3]), np.zeros([1, 4]))
_LENGTH = 2


def _unroll(columns, spec=_SPEC):
  """An unroll whose entries in column i all say columns[i]."""
  unroll = unrolls.allocate(_LENGTH, [f'level{c}' for c in columns], spec,
                            _OUTPUT, _STATE)
  unroll.start.policy_version[:] = columns
  unroll.start.environment[:] = [10 * c for c in columns]

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

  tree.map_structure(fill(0), unroll.start.agent_state)
  tree.map_structure(fill(1), unroll.steps)
  # Odd columns were cut off once, the others were not.
  return unroll._replace(last_observations=tuple(
      structs.LastObservation(1, i, np.array(c))
      for i, c in enumerate(columns) if c % 2))


def _delivery(columns, released=None):
  """A `Delivery` that notes in `released` that it was released."""
  released = [] if released is None else released
  return unrolls.Delivery(
      _unroll(columns, _TEXT), lambda: released.append(columns))


class UnrollsTest(parameterized.TestCase):

  def test_allocate(self):
    output = structs.AgentOutput(
        structs.ArraySpec((2,), np.dtype(np.float32)),
        structs.ArraySpec((4,), np.dtype(np.float32)),
        structs.ArraySpec((), np.dtype(np.float32)))
    unroll = unrolls.allocate(5, ['a', 'b', 'b'], _TEXT, output, _STATE)
    start, steps = unroll.start, unroll.steps
    self.assertEqual(unroll.num_columns, 3)
    self.assertEqual(list(start.level_name), ['a', 'b', 'b'])
    self.assertEqual([s.shape for s in start.agent_state], [(3, 3), (3, 4)])
    frame = steps.env_outputs.observation['frame']
    self.assertEqual((frame.shape, frame.dtype), ((6, 3, 2), np.uint8))
    instruction = steps.env_outputs.observation['instruction']
    self.assertEqual((instruction.shape, instruction.dtype), ((6, 3), object))
    action = steps.agent_outputs.action
    self.assertEqual((action.shape, action.dtype), ((6, 3, 2), np.float32))
    self.assertEqual(steps.agent_outputs.policy.shape, (6, 3, 4))

  def test_unrolls_can_be_sent_to_another_process(self):
    unroll = _unroll([1, 2], _TEXT)
    copy = pickle.loads(pickle.dumps(unroll))
    self.assertIsInstance(copy, structs.Unroll)
    tree.map_structure(np.testing.assert_array_equal, unroll, copy)

  def test_last_observations_are_copies_of_the_ends_of_episodes(self):
    frames = np.arange(6, dtype=np.uint8).reshape(3, 2)
    step = structs.StepOutput(
        reward=np.zeros(3),
        info=structs.StepOutputInfo((), (), np.array([True, False, True])),
        done=np.ones(3, bool), observation=(),
        truncated=np.array([False, False, True]),
        last_observation={'frame': frames})
    first, second = unrolls.last_observations(4, step)
    frames[:] = 99
    self.assertEqual((first.time, first.column), (4, 0))
    self.assertEqual((second.time, second.column), (4, 2))
    np.testing.assert_array_equal(first.observation['frame'], [0, 1])
    np.testing.assert_array_equal(second.observation['frame'], [4, 5])

  def test_columns_share_their_memory(self):
    unroll = _unroll([3, 5, 6, 7, 9])
    part = unrolls.columns(unroll, 1, 4)
    expected = _unroll([5, 6, 7])
    tree.map_structure(np.testing.assert_array_equal, part, expected)
    unroll.steps.env_outputs.reward[:, 1] = 50
    unroll.start.policy_version[3] = 70
    self.assertEqual(part.steps.env_outputs.reward[0, 0], 50)
    self.assertEqual(part.start.policy_version[2], 70)

  def test_write_touches_one_step(self):
    unroll = _unroll([7, 7])
    step = tree.map_structure(lambda a: np.ones_like(a[0]),
                              unroll.steps.env_outputs)
    step = step._replace(last_observation=np.full([2, 2], 55))
    action = structs.AgentOutput(
        np.array([1, 2]), np.full([2, 3], 9.0), np.array([3.0, 4.0]))
    unrolls.write(unroll, 1, step, action, np.array([5.0, 6.0]))
    np.testing.assert_array_equal(
        unroll.steps.agent_outputs.action, [[7, 7], [1, 2], [7, 7]])
    np.testing.assert_array_equal(
        unroll.steps.agent_outputs.baseline, [[7, 7], [3, 4], [7, 7]])
    np.testing.assert_array_equal(
        unroll.steps.truncation_values, [[7, 7], [5, 6], [7, 7]])
    np.testing.assert_array_equal(
        unroll.steps.env_outputs.observation[:, :, 0],
        [[7, 7], [1, 1], [7, 7]])

  @parameterized.parameters(
      (1, 1), (2, 2), (2, 4), (6, 2), (4, 3), (3, 4), (5, 2))
  def test_batches_lose_and_repeat_no_column(self, num_envs, batch_size):
    queue = queues.BoundedQueue(100)
    released = []
    total = 3 * num_envs * batch_size
    for start in range(0, total, num_envs):
      queue.put(_delivery(range(start, start + num_envs), released))
    batch = _unroll([0] * batch_size, _TEXT)._replace(last_observations=())
    source = unrolls.batches(queue, batch)
    for start in range(0, total, batch_size):
      expected = _unroll(
          range(start, start + batch_size), _TEXT)._replace(
              last_observations=())
      found = next(source)
      tree.map_structure(np.testing.assert_array_equal, found, expected)
    # Every unroll came back, once.
    self.assertEqual(released, [range(start, start + num_envs)
                                for start in range(0, total, num_envs)])

  def test_an_unroll_is_released_only_when_all_of_it_is_copied(self):
    queue, released = queues.BoundedQueue(9), []
    queue.put(_delivery([0, 1, 2], released))
    source = unrolls.batches(queue, _unroll([0, 0], _TEXT))
    next(source)
    self.assertEmpty(released)
    queue.put(_delivery([3, 4, 5], released))
    next(source)
    self.assertEqual(released, [[0, 1, 2]])

  def test_errors_of_the_queue_pass_through(self):
    queue = queues.BoundedQueue(1)
    queue.fail(RuntimeError('environment 3'))
    with self.assertRaisesRegex(RuntimeError, 'environment 3'):
      next(unrolls.batches(queue, _unroll([0])))


# See `mutations.py`.
MUTATIONS = (
    dict(file='experience/unrolls',
         catches='test_batches_lose_and_repeat_no_column', rows=(
        ('columns without their recurrent state',
         'tree.map_structure(copy_start, batch.start, unroll.start)',
         'tree.map_structure(copy_start, '
         'batch.start._replace(agent_state=()),\n'
         '                     unroll.start._replace(agent_state=()))'),
        ('columns from the beginning of each unroll',
         'copy_columns(batch, filled, unroll, start, count)',
         'copy_columns(batch, filled, unroll, 0, count)'),
    )),
    dict(file='experience/unrolls',
         catches='test_columns_share_their_memory', rows=(
        ('last observations keep their columns',
         'last._replace(column=last.column - start)', 'last'),
        ('last observations of other columns',
         'if start <= last.column < end))', 'if last.column < end))'),
    )),
    dict(file='experience/unrolls',
         catches='test_last_observations_are_copies_of_the_ends_of_episodes',
         rows=(
        ("last observations of learner's ends",
         'np.flatnonzero(env_output.info.episode_end)',
         'np.flatnonzero(env_output.done)'),
        ('last observations are not copied', 'np.array(array[column])',
         'array[column]'),
    )),
)


if __name__ == '__main__':
  absltest.main()
