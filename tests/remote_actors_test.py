# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of what a learner does with the unrolls of its workers, without ray."""

from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pytest
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.acting import interface
from scalable_agent.experience import packing
from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.experience import unrolls
from scalable_agent.settings import config as config_lib

pytest.importorskip('ray')
from scalable_agent.distributed import cluster
from scalable_agent.distributed import crew
from scalable_agent.distributed import descriptions
from scalable_agent.distributed import remote_actors
from scalable_agent.distributed import workers

_DESCRIPTION = descriptions.Description(None, 1, 'host', 7, {})  # type: ignore
_SPEC = structs.ArraySpec((3,), np.dtype(np.float32))


def _message(**seconds):
  return remote_actors.Message(unrolls.allocate(
      4, ['a', 'b'], _SPEC, structs.AgentOutput(_SPEC, _SPEC, _SPEC), ()),
                               seconds)


class _Crew:
  """Workers that return what a test says."""

  def __init__(self):
    self.workers = [
        workers.Worker(interface.Share(range(2 * i, 2 * i + 2), i),
                    environments.Restarts(1), handle=mock.Mock())
        for i in range(2)]
    self.ready = lambda: self.workers
    self.record_result = mock.Mock()
    self.record_call = mock.Mock()
    self.wait_until_ready = mock.Mock()
    self.counts = dict


class RemoteActorsTest(parameterized.TestCase):

  def _make(self, store_bytes, num_learners=1, **flags):
    """Returns actors whose learner has a store of a size."""
    self.crew, self.inbox = _Crew(), mock.Mock(spec=queues.BoundedQueue)
    ray = self.enter_context(mock.patch.object(remote_actors, 'ray'))
    ray.nodes.return_value = [
        {'NodeID': 'other', 'Resources': {'object_store_memory': 1.}},
        {'NodeID': 'this', 'Resources': {'object_store_memory': store_bytes}}]
    self.enter_context(
        mock.patch.object(crew, 'Crew', return_value=self.crew))
    self.enter_context(
        mock.patch.object(cluster, 'this_node', return_value='this'))
    actors = remote_actors.RemoteActors(
        config_lib.Config(**{'ray_address': 'auto', **flags}), 0, 0,
        num_learners)
    actors._published = lambda: structs.Weights(0, [])
    return actors

  def _take(self, actors, worker, result):
    actors._take(self.crew.workers[worker], result, self.inbox)

  @parameterized.parameters(
      # Three in and around an inbox of one, and one of each worker.
      dict(num_unrolls=5, queue_capacity=1),
      dict(num_unrolls=8, queue_capacity=4),
      # Two learners share the store of their machine.
      dict(num_unrolls=10, queue_capacity=1, num_learners=2,
           ray_address='local'))
  def test_the_store_must_have_room_for_all_unrolls(self, num_unrolls, **flags):
    # ray keeps four fifths of its store in memory.
    store_bytes = num_unrolls * packing.num_bytes(_message().unroll) / .8
    actors = self._make(store_bytes + 1, **flags)
    self._take(actors, 0, _message())
    self._take(actors, 1, _message())
    self.assertEqual(self.inbox.put.call_count, 2)
    actors = self._make(store_bytes - 10, **flags)
    self._take(actors, 0, _message())
    with self.assertRaisesRegex(
        errors.ConfigError, '2 actor workers need .*--pack=zlib'):
      self._take(actors, 1, _message())

  def test_seconds_go_on_when_a_worker_is_replaced(self):
    actors = self._make(1e9)
    self._take(actors, 0, _message(step=2., policy=1.))
    self._take(actors, 1, _message(step=10.))
    self._take(actors, 0, _message(step=3., policy=1.))
    self.assertEqual(actors.seconds(), {'step': 13., 'policy': 1.})
    # Its replacement begins with 0.
    self._take(actors, 0, _DESCRIPTION)
    self.assertEqual(actors.seconds(), {'step': 13., 'policy': 1.})
    self._take(actors, 0, _message(step=.5))
    self._take(actors, 0, _DESCRIPTION)
    self._take(actors, 0, _message(step=.25))
    self.assertEqual(actors.seconds(), {'step': 13.75, 'policy': 1.})


# See `mutations.py`.
MUTATIONS = (
    dict(file='distributed/remote_actors',
         catches='test_the_store_must_have_room_for_all_unrolls', rows=(
        ('the whole store is used', '_MAX_STORE_SHARE * store_bytes',
         'store_bytes'),
        ('learners of one machine do not share its store',
         '* store_bytes / (\n'
         '        num_learners if',
         '* store_bytes / (\n'
         '        1 if'),
        ('the store of any machine',
         "if node['NodeID'] == cluster.this_node()]", ']'),
        ('unrolls on their way are not counted',
         'sum(\n'
         '        s.unroll_bytes for s in self._senders.values())',
         '0'),
        ('unrolls around the inbox are not counted',
         'config.queue_capacity + 2', 'config.queue_capacity'),
    )),
    dict(file='distributed/remote_actors',
         catches='test_seconds_go_on_when_a_worker_is_replaced', rows=(
        ('seconds of replaced workers are lost',
         '[sender.past_seconds, sender.seconds]', '[sender.past_seconds]'),
        ('seconds of replaced workers count twice', 'sender.seconds = {}',
         'pass'),
    )),
)


if __name__ == '__main__':
  absltest.main()
