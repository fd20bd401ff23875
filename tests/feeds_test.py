# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of feeds: from environments in actor threads to batches.

Counting environments and a counting agent prove by equality what a transition
holds, however it was drawn.
"""

import contextlib
import dataclasses
import functools
import io
import multiprocessing
import os
import pathlib
import shutil
import threading
from unittest import mock

from absl.testing import parameterized
import counting_agent
import numpy as np
import pytest
from scalable_agent import algorithms
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.acting import interface
from scalable_agent.acting import local
from scalable_agent.acting import policies
from scalable_agent.experience import packing
from scalable_agent.experience import structs
from scalable_agent.experience import unrolls
from scalable_agent.learning import collectives as collectives_lib
from scalable_agent.learning import feeds
from scalable_agent.learning import learner as learner_lib
from scalable_agent.learning import memory_check
from scalable_agent.learning import sources
from scalable_agent.networks import heads
from scalable_agent.replay import saving
from scalable_agent.runs import setup
from scalable_agent.runs import training
from scalable_agent.settings import config as config_lib
import tensorflow as tf
import tree

_GAMMA = 0.9
# What the episodes of counting environments count to.
_ENDS = frozenset(10 * i + j for i in range(1000) for j in (2, 5, 10))


class _Learner:
  """Takes batches, and learns nothing."""

  agent = counting_agent.CountingAgent()

  def __init__(self, updates_per_call, num_env_frames=0):
    self.updates_per_call = updates_per_call
    self.num_env_frames = num_env_frames
    self.num_updates = 0
    self.num_batches = 0

  def to_device(self, data, num_new_frames, weights):
    self.num_batches += 1
    return structs.Batch(data, weights, num_new_frames)


class _SequenceLearner(_Learner):
  """Takes batches of unrolls; copies them, as they are overwritten."""

  def __init__(self):
    super().__init__(updates_per_call=1)
    self.agent = counting_agent.CountingAgent()

  def to_device(self, data, num_new_frames, weights):
    return super().to_device(
        tf.nest.map_structure(np.copy, data), num_new_frames, weights)


class _WideAgent(counting_agent.CountingAgent):
  """Acts by MPO's Gaussian, which is so wide that it leaves the bounds."""

  def __init__(self):
    super().__init__()
    spec = structs.ActionSpec(size=2)
    self.output_spec = structs.AgentOutput(spec.array, (), ())
    self._policy = heads.policy(spec, squashed=False).distribution

  def initial_state(self, batch_size):
    return ()

  def step(self, last_action, env_output, state, greedy=False):
    params = tf.zeros([tf.shape(env_output.reward)[0], 4])
    return structs.AgentOutput(self._policy(params).sample(), (), ()), state


def _config(**settings):
  return config_lib.Config(**{
      'algorithm': 'ddqn', 'level_name': 'counting', 'agent': 'mlp',
      'hidden_sizes': '8', 'xla': 'none', 'num_actors': 3,
      'num_actor_groups': 2, 'unroll_length': 2, 'dynamic_batching': False,
      'discounting': _GAMMA, 'min_replay_steps': 40, 'replay_steps': 2000,
      'batch_size': 16, 'updates_per_step': .5, 'updates_per_call': 2,
      'logdir': '/nowhere',
      **settings})


def _agent(env, config=None):
  return algorithms.make_agent(config or _config(), env.spec, 0)


@contextlib.contextmanager
def _running(config, learner=None, agent=counting_agent.CountingAgent,
             collectives=None, first=0, say=print):
  """Yields a feed whose actors act, and its batches."""
  learner = learner or _Learner(config.updates_per_call)
  with contextlib.ExitStack() as stack:
    envs = environments.make_groups(
        [config.level_name] * config.num_actors, list(range(config.num_actors)),
        config, config.num_actor_groups, first_index=first)
    for env in envs:
      stack.callback(env.close)
    stop = threading.Event()
    with contextlib.redirect_stdout(io.StringIO()):
      feed = sources.make_feed(
          config, envs[0].spec, learner, collectives=collectives,
          first_environment=first, say=say)
    if agent is None:
      used = local.make_policies(
          config, envs[0].spec, len(envs), 0, interface.Share(range(1)))
      weights = setup.make_learner(config, envs[0].spec).weights()
    else:
      used = [policies.AgentPolicy(agent()) for _ in envs]
      weights = structs.Weights(0, [tf.constant(1.0)])
    actors = local.Local(
        envs, lambda: used, range(first, first + config.num_actors),
        unroll_length=config.unroll_length, num_buffers=2,
        bootstrap_truncated=False)
    stack.callback(feed.join, 10)
    stack.callback(actors.stop, 10)
    stack.callback(feed.close)
    actors.start(lambda: weights, feed.inbox)
    feed.start()
    yield feed, feed.batches(stop)


def _take(config, num, **kwargs):
  with _running(config, **kwargs) as (_, batches):
    return [next(batches) for _ in range(num)]


def _joined(taken, axes=2):
  """Returns all transitions of some batches, one after the other."""
  return tf.nest.map_structure(
      lambda *xs: np.concatenate([x.reshape(-1, *x.shape[axes:]) for x in xs]),
      *[b.data for b in taken])


class _Learners(collectives_lib.Alone):
  """Two learners, of which this is one, and the numbers of the other."""
  size = 2

  def __init__(self, rank, *others):
    self.rank = rank
    self._others = list(others)

  def total(self, numbers):
    return [n + other for n, other in zip(numbers, self._others.pop(0))]


class SeveralLearnersTest(parameterized.TestCase, tf.test.TestCase):

  def test_each_has_its_environments_and_all_have_the_same_updates(self):
    config = _config(
        num_learners=2, num_actor_groups=1, ray_address='auto',
        logdir=self.create_tempdir().full_path, updates_per_step=.1)
    drawn = []
    for rank, (first, num_environments) in enumerate([(0, 2), (2, 1)]):
      num_steps = 0
      mine = config.of_learner(num_environments)
      with _running(mine, collectives=_Learners(rank, [0, 0]), first=first
                    ) as (feed, batches):
        for count in range(1, 31):
          batch = next(batches)
          self.assertEqual(batch.data.reward.shape, (2, 8))
          num_steps += batch.num_new_frames
          # Of 40 + 20 n steps of both, each learner has a half.
          self.assertBetween(num_steps, 20 + 10 * count,
                             20 + 10 * count + 2 * num_environments - 1)
        feed.save()
        self.assertEqual(feed._source.rate.num_steps // 2 % num_environments, 0)
        self.assertAlmostEqual(feed.updates_per_step, .1, delta=.01)
        drawn.append(batch.data)
    self.assertNotAllEqual(drawn[0].reward, drawn[1].reward)
    self.assertContainsSubset(
        ['replay', 'replay-1'], os.listdir(config.logdir))

  @parameterized.parameters(0, 1)
  def test_importance_weights_are_divided_by_the_largest_of_all(self, rank):
    # Two learners with half of the items each, importance exponent 1: each
    # item, drawn with P, has a weight that is proportional to 1 / P.
    priorities = np.float32([[1, 3], [2, 10]])
    probabilities = priorities / priorities.sum(1, keepdims=True)
    largest = (2 * probabilities.min(1)) ** -1
    collectives = _Learners(rank)
    collectives.largest = lambda number: max(number, largest.max())
    batch = feeds.normalised(structs.Batch(
        (), tf.constant([1, *1 / (2 * probabilities[rank])]), 1,
        num_new_columns=1, largest_weight=largest[rank]), collectives)
    weights = 1 / probabilities
    self.assertAllClose(
        [1, *(weights / weights.max())[rank]], batch.importance_weights)

  def test_batches_have_the_largest_weight(self):
    config = _config(selector='prioritised')
    for batch in _take(config, 2, collectives=_Learners(0, [0, 0])):
      self.assertAllClose(batch.largest_weight, 1)  # Priorities are equal.
    [batch] = _take(config, 1)
    self.assertIsNone(batch.largest_weight)

  def test_going_on_counts_every_step_once(self):
    config = _config(
        num_learners=2, num_actors=2, num_actor_groups=1, ray_address='auto',
        logdir=self.create_tempdir().full_path).of_learner(1)
    drawn, num_saved = [], []
    for rank in range(2):  # Each adds 50 steps or a few more.
      with _running(config, collectives=_Learners(rank, [0, 0]), first=rank
                    ) as (feed, batches):
        drawn.append([next(batches).data.reward for _ in range(15)])
        feed.close()
        feed.join(10)  # It would go on adding steps.
        feed.save()
        num_saved.append(feed._source.rate.num_steps)
    self.assertNotAllEqual(*drawn)  # Of the same steps.
    for rank in range(2):
      learner = _Learner(2, 90)
      learner.num_updates = 28
      with _running(config, learner, collectives=_Learners(rank, [60, 0]),
                    first=rank) as (feed, batches):
        # With the last update that is due.
        new = next(filter(None, (b.num_new_frames for b in batches)))
        if rank == 0:
          self.assertEqual(new, num_saved[0] + 60 - 90)
        else:  # Of new unrolls.
          self.assertLess(new, 10)
        feed.close()
        feed.join(10)
        self.assertEqual(feed._source.rate.num_updates,
                         28 + 2 * learner.num_batches)
        # No more than a few batches ahead, for its own steps.
        self.assertBetween(feed._source.rate.num_steps, num_saved[rank],
                           num_saved[rank] + 10)

  def test_a_new_number_of_learners_counts_no_step_twice(self):
    logdir = self.create_tempdir().full_path
    learner = _Learner(2)

    def train(config, collectives=None):
      with _running(config, learner, collectives=collectives) as (
          feed, batches):
        new = []
        for _ in range(15):
          new.append(next(batches).num_new_frames)
          learner.num_env_frames += new[-1]
          learner.num_updates += 2
        feed.close()
        feed.join(10)
        feed.save()
        return feed._source.rate.num_steps, max(new)

    settings = dict(logdir=logdir, num_actor_groups=1)
    train(_config(num_actors=2, **settings))
    counted = learner.num_env_frames
    self.assertGreater(counted, 60)
    config = _config(num_actors=4, num_learners=2, replay_steps=4000,
                     ray_address='auto', **settings).of_learner(2)
    # The other learner has no replay and no step.
    num_steps, new = train(config, _Learners(0, [0, 0]))
    # An update for each step of its own.
    self.assertBetween(num_steps, counted // 2 + 30, counted // 2 + 50)
    self.assertLess(new, 20)
    # Steps that were added, but not yet counted, are counted later.
    num_uncounted = 2 * num_steps - learner.num_env_frames
    _, new = train(config, _Learners(0, [num_steps, 0]))
    self.assertBetween(new, num_uncounted, num_uncounted + 20)

  def test_a_replay_that_is_missing_or_old_does_not_owe_for_others(self):
    config = _config(
        num_learners=2, num_actors=2, num_actor_groups=1, ray_address='auto',
        logdir=self.create_tempdir().full_path).of_learner(1)
    learner = _Learner(2, 1000)
    learner.num_updates = 230
    # Nothing was saved here, and the other has 480 of its 500 steps.
    with _running(config, learner, collectives=_Learners(1, [480, 0]), first=1
                  ) as (feed, batches):
      new = next(batches).num_new_frames
      self.assertBetween(new, 20, 25)  # A warm-up of 20 steps, not more.
      self.assertGreaterEqual(feed._source.rate.num_steps, 500 + 20)


class ResumeTest(parameterized.TestCase):

  def _train(self, learner, say=print, **settings):
    """Counts the updates of five batches, as a learner does; saves."""
    config = _config(logdir=self.logdir, **settings)
    with _running(config, learner, say=say) as (feed, batches):
      for _ in range(5):
        batch = next(batches)
        learner.num_env_frames += batch.num_new_frames
        learner.num_updates += 2
      feed.save()

  def setUp(self):
    super().setUp()
    self.logdir = self.create_tempdir().full_path

  def test_updates_that_were_drawn_but_not_made_are_due_again(self):
    learner = _Learner(2)
    for part in range(1, 4):
      self._train(learner)
      self.assertEqual(learner.num_updates, 10 * part)
      # 40 steps owe nothing, then two steps owe an update. The last unroll may
      # have up to four steps, of which some are more than were due.
      self.assertBetween(learner.num_env_frames, 40 + 20 * part,
                         40 + 20 * part + 3)

  def test_the_replay_of_another_run_stays_as_it_is(self):
    with _running(_config(logdir=self.logdir), _Learner(2)) as (feed, batches):
      next(batches)
      os.rename(
          self.logdir, f'{self.create_tempdir().full_path}/moved')
      for _ in range(2):  # None, and one of another run.
        with self.assertRaisesRegex(
            errors.SaveError, f'^{self.logdir} was deleted, moved or replaced'):
          feed.save()
        self.assertFalse(os.path.exists(f'{self.logdir}/replay'))
        os.makedirs(self.logdir, exist_ok=True)

  def test_a_newer_replay_owes_updates_before_its_steps_count(self):
    config = _config(logdir=self.logdir)
    with _running(config, _Learner(2)) as (feed, batches):
      for _ in range(5):
        next(batches)
      feed.close()
      feed.join(10)
      feed.save()
      num_steps = feed._source.rate.num_steps
    # An older checkpoint: 44 steps, and the updates that were due for these.
    learner = _Learner(2, 44)
    learner.num_updates = 2
    num_batches = ((num_steps - 40) // 2 - 2) // 2
    said = []
    with (mock.patch.object(sources, '_MAX_AHEAD', 1),
          _running(config, learner, say=said.append) as (feed, batches)):
      new = [next(batches).num_new_frames for _ in range(num_batches)]
    self.assertEqual(new, [0] * (num_batches - 1) + [num_steps - 44])
    self.assertGreater(num_batches, 3)
    self.assertRegex(
        ' '.join(said), 'newer than the checkpoint: [0-9]+ updates')

  def test_without_a_saved_replay_there_is_a_warm_up(self):
    learner = _Learner(2)
    for part in range(3):
      before = learner.num_env_frames
      with mock.patch.object(sources, 'print', create=True) as say:
        self._train(learner, save_replay='no')
      self.assertEqual(mock.call(sources._REFILLS) in say.mock_calls, part > 0)
      self.assertBetween(learner.num_env_frames - before, 60, 63)

  def test_a_replay_of_unrolls_is_not_saved(self):
    config = config_lib.Config(
        level_name='counting', agent='mlp', replay_capacity=8)
    env = environments.make_vec(['counting'], [0], config)
    self.addCleanup(env.close)
    learner = _SequenceLearner()
    for learner.num_updates in (0, 1):
      with mock.patch.object(sources, 'print', create=True) as say:
        sources.make_feed(config, env.spec, learner).close()
      self.assertEqual(
          say.mock_calls, learner.num_updates * [
              mock.call('The replay was not saved: it begins empty.')])

  @parameterized.parameters(False, True)
  def test_large_replays_are_saved_by_deterministic_runs(self, deterministic):
    with mock.patch.object(sources, '_MAX_SAVED_BYTES', 0):
      self._train(_Learner(2), deterministic=deterministic, num_actor_groups=1)
    self.assertEqual(os.path.isdir(os.path.join(self.logdir, 'replay')),
                     deterministic)

  def test_a_damaged_replay_is_filled_anew(self):
    learner = _Learner(2)
    self._train(learner)
    before = learner.num_env_frames
    directory = os.path.join(self.logdir, 'replay')
    path = os.path.join(directory, max(
        name for name in os.listdir(directory) if name != 'state.npz'))
    os.truncate(path, os.path.getsize(path) - 7)
    lines = []
    self._train(learner, say=lines.append)
    self.assertEqual(
        lines, [f'{path} is damaged and not used.', sources._REFILLS])
    self.assertGreaterEqual(learner.num_env_frames - before, 60)
    lines.clear()
    self._train(learner, say=lines.append)
    self.assertEmpty(lines)

  def test_a_run_without_an_update_is_refused(self):
    with self.assertRaisesRegex(
        errors.ConfigError, 'Nothing would be learned: at --updates_per_step'):
      self._train(_Learner(2), updates_per_step=1e-9)
    # 60 steps of warm-up, and 2 updates at 1 in 8 steps.
    settings = dict(updates_per_step=.125, updates_per_call=2,
                    min_replay_steps=60)
    with self.assertRaisesRegex(
        errors.ConfigError, 'of --updates_per_call=2, is due after 76 frames'):
      self._train(_Learner(2), **settings, total_environment_frames=75)
    self._train(_Learner(2), **settings, total_environment_frames=76)
    # As floats, 21 / .7 is more than 30.
    self._train(_Learner(21), updates_per_step=.7, updates_per_call=21,
                total_environment_frames=70)

  def test_a_replay_of_an_earlier_part_is_not_used(self):
    learner = _Learner(2)
    self._train(learner)
    before = learner.num_env_frames
    self._train(learner, save_replay='no')
    self.assertBetween(learner.num_env_frames - before, 60, 63)
    self._train(learner)
    with mock.patch.object(
        os, 'remove', side_effect=PermissionError(1, 'No rights')
    ), self.assertRaisesRegex(
        errors.CheckpointError,
        r'replay of an earlier part cannot be removed \(No rights\), and'):
      self._train(learner, save_replay='no')

  def test_replays_of_learners_that_are_gone_are_not_kept(self):
    directory = pathlib.Path(self.logdir)
    for name in ('replay-1', 'replay-4', 'replay-1x', 'replay-2026-10-03'):
      (directory / name).mkdir(parents=True)
      (directory / name / 'state.npz').touch()
    self._train(_Learner(2))
    self.assertCountEqual(
        (path.name for path in directory.glob('replay*')),
        ['replay', 'replay-1x', 'replay-2026-10-03'])

  def test_a_start_that_fails_keeps_the_replays_of_all_learners(self):
    learner = _Learner(2)
    self._train(learner)
    other = pathlib.Path(self.logdir) / 'replay-1'
    other.mkdir()
    (other / 'state.npz').touch()
    with mock.patch.object(
        sources.replay_lib.Replay, 'load',
        side_effect=errors.CheckpointError('No.')
    ), self.assertRaisesRegex(errors.CheckpointError, 'No.'):
      self._train(learner)
    self.assertTrue(other.exists())

  def test_a_replay_without_a_checkpoint_is_not_used(self):
    self._train(_Learner(2))
    learner = _Learner(2)
    with mock.patch.object(saving, 'print', create=True) as say:
      self._train(learner)
    say.assert_called_once_with(f'{self.logdir}/replay of an earlier part was '
                                'removed: there is no checkpoint.')
    self.assertBetween(learner.num_env_frames, 60, 63)
    # What was saved is the replay of the second training.
    self._train(learner)
    self.assertBetween(learner.num_env_frames, 80, 83)


class TransitionsTest(parameterized.TestCase, tf.test.TestCase):

  @parameterized.parameters((1, 'none', 1.), (3, 'none', 1.),
                            (2, 'abs_one', .25))
  def test_what_a_transition_holds(self, n_step, reward_clipping, scale):
    found = _joined(_take(_config(
        n_step=n_step, reward_clipping=reward_clipping, reward_scale=scale),
                          40))
    self.assertEqual(found.observation.shape, (40 * 2 * 16, 2))
    lengths, num_short = set(), 0
    for o, action, reward, discount, o_t in zip(*found):
      # The agent acts on what it counts; rewards count, too.
      self.assertEqual(action, o[0] % 3)
      count, total, length = o[0], 0.0, 0
      # A window also ends at the newest step.
      for _ in range(int(o_t[0] - o[0])):
        count += 1
        total += _GAMMA**length * (
            count if reward_clipping == 'none' else min(count, 1))
        length += 1
        if count in _ENDS:
          break
      self.assertBetween(length, 1, n_step)
      num_short += length < n_step and count not in _ENDS
      self.assertAllClose(reward, scale * total, rtol=1e-6)
      self.assertEqual(o_t[0], count)
      self.assertEqual(o_t[1], (count - 1) % 3)  # The last action.
      self.assertAllClose(
          discount, 0 if count in _ENDS else _GAMMA**length, rtol=1e-6)
      lengths.add((length, discount == 0))
    self.assertContainsSubset(  # Ends after 1 to n steps, and none.
        [(n_step, False), *((n + 1, True) for n in range(n_step))], lengths)
    self.assertLess(num_short, 0.1 * len(found.reward))
    self.assertGreater(len(np.unique(found.observation[:, 0])), 15)

  @parameterized.parameters((.5, 2, 1), (.25, 1, 1), (2., 8, 2), (.1, 3, 4))
  def test_the_ratio_is_exact(self, ratio, updates_per_call, repeats):
    config = _config(updates_per_step=ratio, updates_per_call=updates_per_call,
                     num_action_repeats=repeats, num_actor_groups=1)
    steps_of_unroll = 3 * 2
    num_steps = num_updates = num_before = 0
    for batch in _take(config, 20):
      new = batch.num_new_frames // repeats
      self.assertEqual(batch.num_new_frames, new * repeats)
      # Each step is counted once, with its unroll.
      self.assertEqual(new, steps_of_unroll * len(batch.notes))
      num_steps += new
      num_updates += updates_per_call
      if new:  # All updates that are due were made.
        due = lambda steps: np.floor((steps - 40) * ratio + 1e-9)
        self.assertBetween(due(num_steps) - num_updates, 0,
                           updates_per_call - 1)
        # Not one unroll too many was waited for.
        self.assertLess(due(num_steps - steps_of_unroll) - num_before,
                        updates_per_call)
        num_before = num_updates

  def test_notes_have_every_step_once(self):
    taken = _take(_config(num_actor_groups=1), 15)
    notes = [note for b in taken for note in b.notes]
    actions = np.concatenate([n.actions for n in notes])
    # Actions of three environments that count in step.
    self.assertAllEqual(actions, np.repeat(np.arange(len(actions) // 3), 3) % 3)
    self.assertEqual(set(np.concatenate([n.policy_version for n in notes])),
                     {0})
    returns = [e.episode_return for n in notes for e in n.episodes]
    self.assertEqual(returns[:9], [3] * 3 + [12] * 3 + [40] * 3)

  def test_one_update_per_call_has_no_axis_for_it(self):
    [batch] = _take(_config(updates_per_call=1), 1)
    self.assertEqual(batch.data.observation.shape, (16, 2))
    self.assertIsNone(batch.importance_weights)
    self.assertIsNone(batch.positions)

  def test_a_time_limit_is_no_end(self):
    config = _config(level_name='time_limit', n_step=3)
    found = _joined(_take(config, 30, agent=None))
    lengths = np.round(np.log(found.discount) / np.log(_GAMMA))
    self.assertEqual(set(lengths), {1, 2, 3})  # Cut off by the limit.
    self.assertAllClose(
        found.reward, (1 - _GAMMA**lengths) / (1 - _GAMMA), rtol=1e-5)
    found = _joined(_take(
        _config(level_name='terminating', n_step=3), 30, agent=None))
    time = found.observation[:, 1]
    self.assertAllGreater(found.discount[time < .65], 0)
    self.assertGreater(np.mean(found.discount[time > .65] == 0), .8)

  def test_continuous_actions(self):
    config = _config(algorithm='sac', level_name='time_limit_box')
    found = _joined(_take(config, 10, agent=None))
    self.assertEqual(found.action.shape, (10 * 2 * 16, 1))
    self.assertAllInRange(found.action, -1, 1)
    self.assertGreater(np.std(found.action), .4)  # Random in the warm-up.

  def test_actions_out_of_bounds_are_stored_as_they_were_executed(self):
    config = _config(algorithm='mpo', level_name='target')
    found = _joined(_take(config, 10, agent=_WideAgent))
    self.assertAllInRange(found.action, -1, 1)
    self.assertBetween(np.mean(np.abs(found.action) == 1), .2, .5)
    # The reward tells which point of [-2, 2] x [0, 1] it was.
    executed = [-2, 0] + (found.action + 1) / 2 * [4, 1]
    self.assertAllClose(
        found.reward, -np.sum((executed - found.observation)**2, -1),
        rtol=1e-4, atol=1e-5)

  def test_a_warm_up_that_leaves_nothing(self):
    with self.assertRaisesRegex(
        errors.ConfigError, '^Nothing would be learned: the warm-up of '
        '--min_replay_steps takes 80 frames, and --total_environment_frames='
        '80.$'):
      _take(_config(num_action_repeats=2, total_environment_frames=80), 1)
    # Two updates, each for two steps of two frames, make a call.
    _take(_config(num_action_repeats=2, total_environment_frames=88), 1)

  def test_too_large_for_the_memory(self):
    env = environments.make_vec(['counting'], [0], _config())
    self.addCleanup(env.close)
    with self.assertRaisesRegex(
        errors.ConfigError, '--replay_steps=1000000000000: .* GB'):
      memory_check.check_memory(
          _config(replay_steps=10**12), env.spec, _agent(env))

  @parameterized.parameters(
      (dict(num_actors=10**6, unroll_length=10**4),
       '^--num_actors=1000000 with --unroll_length=10000 and '
       '--queue_capacity=1: '),
      (dict(queue_capacity=10**6, unroll_length=10**5), '--queue_capacity='),
      (dict(batch_size=10**6, unroll_length=10**4, num_actors=1),
       '^--batch_size=1000000 with --unroll_length=10000: [0-9.,]+ GB are '
       r'needed, but this machine has [0-9.,]+ GB\. Choose smaller numbers\.$'),
      (dict(algorithm='appo', updates_per_call=10**6, passes=10**6,
            batch_size=1, num_actors=1, unroll_length=10**4),
       '^--batch_size=1, --updates_per_call=1000000 with --unroll_length='),
      (dict(algorithm='ddqn', updates_per_call=10**5, batch_size=10**6),
       '^--batch_size=1000000, --updates_per_call=100000: '),
      (dict(algorithm='ddqn', use_lstm=True, batch_size=10**6,
            updates_per_call=1, sequence_length=10**5),
       '^--batch_size=1000000: '),
      (dict(replay_capacity=10**9, unroll_length=10**4),
       '^--replay_capacity=1000000000: '),
      (dict(replay_capacity=10**9, unrolls_per_collect=10**9, num_actors=1),
       '^--unrolls_per_collect=1000000000 with --unroll_length=100: '),
      (dict(num_actors=10**6, unroll_length=10**4, ray_address='auto',
            inference='central_on_cpu'), '^--num_actors=1000000 with'))
  def test_unrolls_too_large_for_the_memory(self, settings, message):
    config = config_lib.Config(level_name='counting', agent='mlp', **settings)
    env = environments.make_vec(['counting'], [0], config)
    self.addCleanup(env.close)
    with self.assertRaisesRegex(errors.ConfigError, message):
      memory_check.check_memory(config, env.spec, _agent(env, config))

  @parameterized.parameters(('local', 400), ('auto', 200))
  def test_learners_of_one_machine_share_its_memory(self, address, expected):
    config = _config(num_learners=2, ray_address=address, replay_steps=400)
    actors = mock.Mock(environments=range(2))
    with mock.patch.multiple(
        setup, make_learner=mock.DEFAULT, checkpointing=mock.DEFAULT
    ), mock.patch.object(
        setup.memory_check, 'check_memory',
        side_effect=errors.ConfigError('No.')
    ) as check, self.assertRaisesRegex(errors.ConfigError, 'No.'):
      setup.restore_learner(config, actors, 0, _Learners(0), None)
    self.assertEqual(check.call_args.args[0].replay_steps, expected)

  def test_all_batches_are_counted(self):
    config = config_lib.Config(level_name='counting', agent='mlp',
                               num_actor_groups=1)
    env = environments.make_vec(['counting'], [0], config)
    self.addCleanup(env.close)
    agent = _agent(env, config)
    for deterministic, number in (False, 4), (True, 3):
      asked = dataclasses.replace(config, deterministic=deterministic)
      with mock.patch.object(memory_check.memory, 'check') as check:
        memory_check.check_memory(asked, env.spec, agent)
      sizes = dict(call.args for call in check.call_args_list)
      self.assertEqual(
          sizes['--batch_size=2 with --unroll_length=100'],
          number * 2 * memory_check.num_unroll_bytes(config, env.spec, agent))

  def test_size_of_an_unroll(self):
    config = config_lib.Config(level_name='counting', agent='mlp')
    env = environments.make_vec(['counting'], [0], config)
    self.addCleanup(env.close)
    agent = _agent(env, config)
    for length in (1, 2, 7, 100):
      config = dataclasses.replace(config, unroll_length=length)
      self.assertEqual(
          memory_check.num_unroll_bytes(config, env.spec, agent),
          packing.num_bytes(unrolls.allocate(
              length, [''], env.spec.observation, agent.output_spec,
              agent.initial_state(1))))

  def test_size_of_a_replay_of_stacks(self):
    config = config_lib.Config(level_name='ALE/Pong-v5', agent='mlp',
                               unroll_length=20, replay_capacity=640)
    spec = structs.EnvironmentSpec(
        structs.ArraySpec((4, 84, 84), np.dtype(np.uint8)),
        structs.ActionSpec((3,)), 4)
    agent = mock.Mock(output_spec=structs.AgentOutput((), (), ()))
    agent.initial_state.return_value = ()
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
      memory_check.check_memory(config, spec, agent)
    # Four frames of the first stack, and the newest frames of 20 steps, are
    # 640 x 24 x 84 x 84 = 0.108 GB; 640 x 21 whole stacks are 0.379 GB.
    self.assertIn('Replay of 640 unrolls: 0.11 GB', output.getvalue())

  def test_batches_end_with_a_stop(self):
    config = _config()
    with _running(config) as (feed, _):
      stop = threading.Event()
      batches = feed.batches(stop)
      next(batches)
      stop.set()
      self.assertEmpty(list(batches))
    self.assertNotIn('batches', [t.name for t in threading.enumerate()])

  def test_an_error_of_an_actor_arrives(self):
    class Broken(counting_agent.CountingAgent):

      def step(self, last_action, env_output, state, greedy=False):
        raise ValueError('Broken agent')

    with _running(_config(), agent=Broken) as (_, batches):
      with self.assertRaisesRegex(ValueError, 'Broken agent'):
        next(batches)


def _acted(num_steps):
  """Returns what a counting environment and a counting agent make together.

  Returns:
    `num_steps + 1` entries: observation, reward, done, action, logits; and the
    agent's state before each of them.
  """
  entries, states = [], []
  state, action, logits = 0, 0, [0, 0, 0]
  for count in range(num_steps + 1):
    done = count == 0 or count in _ENDS
    shown = [count, action if count else -1]
    entries.append((shown, count, done, action, logits))
    states.append(state)
    state = (0 if done else state) + 1
    logits, action = [count, state, action], count % 3
  return entries, states


def _check_unrolls(test, batch, num_added, entries, states):
  """Checks that a batch has the unrolls of its positions, as they were acted.

  There are eight of four steps, from the last thirty of `num_added`. Three
  environments count in step; their unrolls come in turn.
  """
  (env_outputs, agent_outputs, _), start, _ = batch.data
  test.assertEqual(batch.positions.shape, (8,))
  for column, position in enumerate(batch.positions.tolist()):
    test.assertBetween(position, max(0, num_added - 30), num_added - 1)
    number, environment = divmod(position, 3)
    found = zip(*[x[:, column].tolist() for x in (
        env_outputs.observation, env_outputs.reward, env_outputs.done,
        agent_outputs.action, agent_outputs.policy)], strict=True)
    test.assertEqual(list(found), entries[4 * number:4 * number + 5])
    test.assertEqual(start.agent_state[0][column], states[4 * number])
    test.assertEqual(start.environment[column], environment)


class SequencesTest(tf.test.TestCase):
  """Tests of sequences that an agent with an LSTM learns from."""

  def _config(self):
    # Forty steps of each of three environments are kept.
    return _config(
        use_lstm=True, num_actor_groups=1, unroll_length=4, replay_steps=120,
        min_replay_steps=48, batch_size=8, updates_per_step=.25, n_step=2,
        burn_in_steps=1, sequence_length=4, updates_per_call=1,
        selector='prioritised', priority_exponent=1., priority_epsilon=1e-6)

  def test_they_are_as_they_were_acted(self):
    entries, states = _acted(400)
    taken = _take(self._config(), 60, learner=_SequenceLearner())
    # Three updates for each unroll; the last one has its steps.
    self.assertEqual([batch.num_new_frames for batch in taken],
                     [0, 0, 60] + [0, 0, 12] * 19)
    num_added, seen, ages = 0, set(), set()
    for index, batch in enumerate(taken):
      if index % 3 == 0:
        num_added += len(taken[index + 2].notes)
      self.assertEqual(batch.num_new_frames, 12 * len(batch.notes))
      self.assertAllEqual(batch.importance_weights, np.ones([8]))
      data = batch.data
      for column, position in enumerate(batch.positions.tolist()):
        start = 4 * (position // 3)
        # One entry is before the steps; six entries are a sequence.
        self.assertBetween(start, 4 * num_added - 39, 4 * num_added - 5)
        ages.add(4 * num_added - start)
        found = zip(*[x[:, column].tolist() for x in (
            data.env_outputs.observation, data.env_outputs.reward,
            data.env_outputs.done, data.actions)], strict=True)
        self.assertEqual(list(found),
                         [e[:4] for e in entries[start:start + 6]])
        self.assertEqual(data.state[0][column], states[start])
        for i, first in enumerate(range(start + 1, start + 5)):
          steps = entries[first + 1:min(first + 3, start + 6)]
          last = next((k for k, e in enumerate(steps) if e[2]), None)
          steps = steps if last is None else steps[:last + 1]
          self.assertAllClose(data.reward[i, column], sum(
              _GAMMA**k * e[1] for k, e in enumerate(steps)), rtol=1e-6)
          self.assertAllClose(
              data.discount[i, column],
              _GAMMA**len(steps) if last is None else 0, rtol=1e-6)
          self.assertEqual(data.next[i, column], i + len(steps))
      self.assertAllEqual(data.known, np.ones([4, 8]))
      seen.update(batch.positions.tolist())
    # 48 steps owe nothing, and 60 batches are owed for four steps each.
    self.assertEqual(12 * num_added, 48 + 60 * 4)
    self.assertGreater(len(seen), .8 * 3 * num_added)
    self.assertEqual(ages, {*range(8, 40, 4)})  # All starts in the replay.
    self.assertEqual({states[4 * (p // 3)] for p in seen}, {0, 1, 2, 3, 5})

  def test_the_warm_up_has_a_sequence(self):
    config = dataclasses.replace(
        self._config(), min_replay_steps=1, updates_per_step=1.)
    # After four steps of three environments, there is no sequence yet; after
    # eight, six updates are due.
    taken = _take(config, 6, learner=_SequenceLearner())
    self.assertEqual(sum(batch.num_new_frames for batch in taken), 24)

  def test_errors_decide_what_is_drawn(self):
    shares = []
    with _running(self._config(), _SequenceLearner()) as (feed, batches):
      for _ in range(60):
        batch = next(batches)
        is_second = batch.positions % 3 == 1
        feed.learned(batch, learner_lib.Learned(
            {}, tf.constant(np.where(is_second, 9, 0), tf.float32)))
        shares.append(np.mean(is_second))
    self.assertLess(shares[0], .7)  # Later draws may know the errors.
    self.assertGreater(np.mean(shares[30:]), .7)


class UnrollsTest(parameterized.TestCase, tf.test.TestCase):
  """Tests of IMPALA's prioritised replay of unrolls."""

  def _config(self, num_fresh, **settings):
    how = ({'replay_fraction': 1 - num_fresh / 8} if num_fresh else
           {'unrolls_per_collect': 6, 'updates_per_collect': 2})
    return config_lib.Config(**{
        'level_name': 'counting', 'agent': 'mlp', 'xla': 'none',
        'num_actors': 3, 'num_actor_groups': 1, 'unroll_length': 4,
        'batch_size': 8, 'replay_capacity': 30, 'selector': 'prioritised',
        'priority_exponent': 1., 'priority_epsilon': .01, 'logdir': '/nowhere',
        **how, **settings})

  @parameterized.parameters(2, 4, 0)
  def test_positions_are_those_of_the_columns(self, num_fresh):
    entries, states = _acted(400)
    num_added, seen = 0, set()
    taken = _take(self._config(num_fresh), 40, learner=_SequenceLearner())
    for index, batch in enumerate(taken):
      if num_fresh:
        num_added += num_fresh
        self.assertAllEqual(batch.positions[:num_fresh],
                            np.arange(num_added - num_fresh, num_added))
      elif index % 2 == 0:  # A batch needs eight unrolls.
        num_added += 6 if index else 12
      _check_unrolls(self, batch, num_added, entries, states)
      seen.update(batch.positions.tolist())
    self.assertGreater(len(seen), .8 * num_added)

  @parameterized.parameters(4, 0)
  def test_errors_decide_what_is_drawn(self, num_fresh):
    shares = []
    # Errors are known before the next draw.
    config = self._config(num_fresh, replay_capacity=60, deterministic=True)
    with _running(config, _SequenceLearner()) as (feed, batches):
      for _ in range(60):
        batch = next(batches)
        is_second = batch.data.start.environment == 1
        feed.learned(batch, learner_lib.Learned(
            {}, tf.constant(np.where(is_second, 9, 0), tf.float32)))
        shares.append(np.mean(is_second[num_fresh:]))
    self.assertLess(shares[0], .7)  # Later draws may know the errors.
    self.assertGreater(np.mean(shares[30:]), .7)

  @parameterized.parameters(4, 0)
  def test_the_exponent_of_weights_rises(self, num_fresh):
    weights = []
    for num_env_frames in (0, 500, 1000):
      learner = _SequenceLearner()
      learner.num_env_frames = num_env_frames
      config = self._config(num_fresh, importance_exponent=.2,
                            total_environment_frames=1000)
      with _running(config, learner) as (feed, batches):
        for _ in range(30):
          batch = next(batches)
          self.assertAllEqual(batch.importance_weights[:num_fresh],
                              np.ones([num_fresh]))
          is_second = batch.data.start.environment == 1
          feed.learned(batch, learner_lib.Learned(
              {}, tf.constant(np.where(is_second, 15., .5), tf.float32)))
      weights.append(np.min(batch.importance_weights))
    self.assertAllClose(
        weights, [(.51 / 15.01)**e for e in (.2, .6, 1)], rtol=1e-3)


  def test_fresh_unrolls_keep_their_weight_with_several_learners(self):
    collectives = _Learners(0)
    collectives.largest = lambda number: 2.0
    [batch] = _take(self._config(2), 1, learner=_SequenceLearner(),
                    collectives=collectives)
    self.assertAllClose(
        feeds.normalised(batch, collectives).importance_weights
        / batch.importance_weights, [1] * 2 + [.5] * 6)


class RecentTest(tf.test.TestCase):

  def test_batches_are_drawn_from_newer_and_newer_steps(self):
    counts = []
    config = _config(selector='recent', recent_eta=.99, recent_min_steps=30,
                     min_replay_steps=600, num_actor_groups=1,
                     updates_per_step=5., updates_per_call=1, batch_size=64)
    for batch in _take(config, 50):
      # The steps of three environments count from 0 on.
      counts.append(batch.data.observation[:, 0])
    # 50 batches are a round. It ends with the last 30 steps of all together.
    self.assertLess(np.mean(counts[0]), 120)
    self.assertGreater(np.min(counts[-1]), 180)


class PrioritiesTest(tf.test.TestCase, parameterized.TestCase):

  def test_errors_decide_what_is_drawn(self):
    config = _config(
        selector='prioritised', priority_exponent=1., priority_epsilon=1e-6,
        importance_exponent=0.5, updates_per_step=8., batch_size=32)
    shares = []
    with _running(config) as (feed, batches):
      for _ in range(60):
        batch = next(batches)
        observation = batch.data.observation
        self.assertEqual(batch.positions.shape, (2, 32))
        self.assertEqual(batch.importance_weights.shape, (2, 32))
        is_seven = observation[..., 0] == 7
        feed.learned(batch, learner_lib.Learned(
            {}, tf.constant(np.where(is_seven, 9, 0), tf.float32)))
        shares.append(np.mean(is_seven))
    # There are as many sevens as other numbers. New steps are drawn, too.
    self.assertLess(shares[0], .2)
    self.assertGreater(np.mean(shares[30:]), .4)

  @parameterized.parameters('prioritised', 'recent_prioritised')
  def test_the_exponent_of_weights_rises(self, selector):
    weights = []
    for num_env_frames in (0, 500, 1000):
      config = _config(
          selector=selector, priority_exponent=1.,
          importance_exponent=0.2, batch_size=64,
          total_environment_frames=1000)
      learner = _Learner(2, num_env_frames)
      with _running(config, learner) as (feed, batches):
        for _ in range(20):
          batch = next(batches)
          # Errors of .5 and 15 and an epsilon of .01.
          is_even = batch.data.observation[..., 0] % 2 == 0
          feed.learned(batch, learner_lib.Learned(
              {}, tf.constant(np.where(is_even, 15., .5), tf.float32)))
      weights.append(np.min(batch.importance_weights))
    ratio = .51 / 15.01
    self.assertAllClose(weights, [ratio**e for e in (.2, .6, 1)], rtol=1e-3)

  def test_without_errors_or_priorities_nothing_is_noted(self):
    found = tf.ones([2, 16])
    for selector in ('prioritised', 'uniform'):
      noted = []
      with _running(_config(selector=selector)) as (feed, batches):
        feed._source = feed._source._replace(
            set_errors=lambda *args, noted=noted: noted.append(args))
        batch = next(batches)
        feed.learned(batch, learner_lib.Learned({}, None))
        self.assertEmpty(noted)
        feed.learned(batch, learner_lib.Learned({}, found))
        if selector == 'uniform':
          self.assertEmpty(noted)
          continue
        [(positions, errors)] = noted
        self.assertAllEqual(positions, batch.positions)
        self.assertAllEqual(errors, found)


class HindsightTest(parameterized.TestCase, tf.test.TestCase):

  def _take(self, num_batches=20, level_name='bit_flipping_6', **settings):
    return _joined(_take(_config(
        level_name=level_name, num_actors=2, num_actor_groups=1,
        min_replay_steps=100, **settings), num_batches, agent=None))

  @parameterized.parameters(('future', 1.), ('final', 1.), ('episode', 2.))
  def test_rewards_are_those_of_the_goals(self, hindsight, scale):
    # Some of the many episodes reach their true goal.
    found = self._take(60, hindsight=hindsight, reward_scale=scale)
    goal = found.observation['desired_goal']
    self.assertAllEqual(goal, found.next_observation['desired_goal'])
    is_reached = np.all(found.next_observation['achieved_goal'] == goal, -1)
    self.assertAllEqual(found.reward, np.where(is_reached, 0, -scale))
    # Success ends an episode, also if the goal is a pretended one; that of the
    # true goal ends none for another goal.
    self.assertAllEqual(found.discount == 0, is_reached)
    self.assertGreater(np.mean(is_reached), .1)
    without = self._take(hindsight='none')
    self.assertLess(np.mean(without.reward == 0), .07)
    # An action flips its bit.
    flipped = np.argmax(found.observation['observation']
                        != found.next_observation['observation'], -1)
    self.assertAllEqual(flipped, found.action)

  def test_more_goals_are_reached_with_more_pretended_ones(self):
    shares = [np.mean(self._take(hindsight='future', hindsight_goals=n).reward
                      == 0) for n in (1, 20)]
    self.assertGreater(shares[1], 1.4 * shares[0])

  def test_the_process_of_the_rewards_ends(self):
    config = _config(level_name='bit_flipping_6', hindsight='future')
    with environments.make_vec([config.level_name], [0], config) as env:
      spec, learner = env.spec, _Learner(config.updates_per_call)
    feed = sources.make_feed(config, spec, learner)
    self.assertLen(multiprocessing.active_children(), 1)
    feed.close()
    feed.join(1.)
    self.assertEmpty(multiprocessing.active_children())
    with self.assertRaisesRegex(errors.ConfigError, 'Nothing would be learned'):
      sources.make_feed(dataclasses.replace(
          config, total_environment_frames=9), spec, learner)
    self.assertEmpty(multiprocessing.active_children())
    with mock.patch.object(
        feeds.Feed, 'save', side_effect=errors.SaveError), self.assertRaises(
            errors.SaveError):
      sources.make_feed(dataclasses.replace(
          config, deterministic=True, num_actor_groups=1), spec, learner)
    self.assertEmpty(multiprocessing.active_children())

  def test_a_damaged_replay_leaves_no_process(self):
    config = _config(level_name='bit_flipping_6', hindsight='future',
                     logdir=self.create_tempdir().full_path)
    with environments.make_vec([config.level_name], [0], config) as env:
      spec, learner = env.spec, _Learner(config.updates_per_call)
    os.mkdir(f'{config.logdir}/replay')
    with open(f'{config.logdir}/replay/state.npz', 'w') as f:
      f.write('damaged')
    learner.num_updates, said = 2, []
    feed = sources.make_feed(config, spec, learner, say=said.append)
    self.assertIn('is damaged and not used.', said[0])
    self.assertLen(multiprocessing.active_children(), 1)
    feed.join(1.)

  def test_levels_without_goals(self):
    with self.assertRaisesRegex(errors.EnvironmentSpecError, 'has no goals'):
      _take(_config(hindsight='future'), 1)

  def test_an_episode_goes_on_only_where_an_action_is_valid(self):
    take = functools.partial(
        self._take, level_name='fake_environments:fake/MaskedGoals-v0')
    with self.assertRaisesRegex(
        errors.ConfigError, '^--hindsight=episode cannot .* an action_mask'):
      take(hindsight='episode')
    found = take(hindsight='future')
    is_valid = found.next_observation['action_mask'].any(-1)
    self.assertNotEmpty(found.discount[~is_valid])
    self.assertAllEqual(found.discount[~is_valid], np.zeros(sum(~is_valid)))


class DeterministicTest(tf.test.TestCase):

  @pytest.mark.slow
  def test_runs_can_be_repeated_and_killed(self):
    whole, copies = self._copied(self.create_tempdir().full_path)
    self.assertGreater(whole.num_updates, 20)
    self.assertLen(copies, 3)  # The first save is that of the beginning.
    self._check_same(whole, copies[1], 'the beginning')
    self._check_same(whole, copies[2], 'ckpt-[0-9]+')

  @pytest.mark.slow
  def test_runs_that_begin_with_a_checkpoint_alone(self):
    _, copies = self._copied(self.create_tempdir().full_path)
    shutil.rmtree(os.path.join(copies[1], 'replay'))
    whole, copies = self._copied(copies[1], differs=True)
    self.assertLen(copies, 2)
    self._check_same(whole, copies[1], 'ckpt-[0-9]+')

  def _copied(self, logdir, differs=False):
    """Trains; returns the learner, and the directories before each save."""
    root, copies = self.create_tempdir().full_path, []
    save = feeds.Feed.save

    def copy_and_save(feed):  # The checkpoint is written, the replay is not.
      copies.append(os.path.join(root, f'killed{len(copies)}'))
      shutil.copytree(logdir, copies[-1])
      save(feed)

    with mock.patch.object(feeds.Feed, 'save', copy_and_save), \
        contextlib.redirect_stdout(io.StringIO()) as output:
      learner = self._train(logdir)
    self.assertEqual(sources._DIFFERS in output.getvalue(), differs)
    return learner, copies

  def _check_same(self, whole, logdir, earlier):
    """Resumes a killed run."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
      resumed = self._train(logdir)
    self.assertRegex(
        output.getvalue(),
        rf'The replay of ckpt-\d+ was not saved: goes back to {earlier}\.')
    self.assertNotIn(sources._DIFFERS, output.getvalue())
    self.assertEqual(resumed.num_updates, whole.num_updates)
    for one, other in zip(tree.flatten(whole.state),
                          tree.flatten(resumed.state), strict=True):
      self.assertAllEqual(one, other)

  def _train(self, logdir):
    learners = []
    training.train(_config(
        algorithm='ddqn', level_name='catch', deterministic=True,
        num_actor_groups=1, total_environment_frames=100,
        save_checkpoint_frames=50, logdir=logdir),
        hooks=[lambda update: learners.append(update.learner)])
    return learners[-1]

  def test_settings_may_change_before_the_first_checkpoint(self):
    logdir = self.create_tempdir().full_path
    for num_steps in 200, 300:
      with _running(_config(
          logdir=logdir, deterministic=True, num_actor_groups=1,
          replay_steps=num_steps)) as (_, batches):
        next(batches)

  def test_a_replay_of_another_checkpoint_is_said(self):
    logdir = self.create_tempdir().full_path
    config = _config(logdir=logdir, deterministic=True, num_actor_groups=1)
    for num_updates, is_said in (0, False), (10, False), (9, True):
      learner = _Learner(2)
      learner.num_updates = num_updates
      lines = []
      with _running(config, learner, say=lines.append) as (feed, batches):
        for _ in range(5 * (num_updates == 0)):
          learner.num_env_frames += next(batches).num_new_frames
        feed.save()
      self.assertEqual(sources._DIFFERS in lines, is_said)


# See `mutations.py`.
MUTATIONS = (
    dict(file='learning/sources',
         catches='test_a_new_number_of_learners_counts_no_step_twice', rows=(
        ('a whole replay is one learner\'s share',
         'share if is_new else max(rate.num_steps, share)',
         'max(rate.num_steps, share)'),
    )),
    dict(file='replay/rate',
         catches='test_a_new_number_of_learners_counts_no_step_twice', rows=(
        ('the number of learners is not saved',
         "str(self._ratio), 'num_learners': self._num_learners}",
         'str(self._ratio)}'),
    )),
    dict(file='learning/sources',
         catches='test_runs_that_begin_with_a_checkpoint_alone', rows=(
        ('an empty replay is not saved', 'source.is_new:',
         'not learner.num_updates:'),
    )),
    dict(file='learning/sources',
         catches='test_the_process_of_the_rewards_ends', rows=(
        ('the processes of the source stay after an error',
         '    ends.close()\n    raise', '    raise'),
    )),
    dict(file='learning/sources',
         catches='test_a_damaged_replay_leaves_no_process', rows=(
        ('each replay has a process for rewards',
         '    place.ends.close()  #', '    #'),
    )),
    dict(file='learning/feeds', catches='test_the_process_of_the_rewards_ends',
         rows=(
        ('the processes of the source stay', '    self._ended()\n', ''),
    )),
    dict(file='replay/saving',
         catches='test_replays_of_learners_that_are_gone_are_not_kept', rows=(
        ('one learner too many', 'int(number) >= num_learners',
         'int(number) > num_learners'),
    )),
    dict(file='runs/setup', catches=(
        'test_learners_of_one_machine_share_its_memory0'), rows=(
        ('each learner has the whole memory',
         'config if config.learners_share_a_machine else', ''),
    )),
    dict(file='learning/sources', catches=(
        'test_a_start_that_fails_keeps_the_replays_of_all_learners'), rows=(
        ('a start that fails removes replays',
         '  try:\n    # Settings may change',
         '  saving.remove_others(config.logdir, place.collectives.size)\n'
         '  try:\n    # Settings may change'),
    )),
    dict(file='learning/sources',
         catches='test_the_replay_of_another_run_stays_as_it_is', rows=(
        ('the replay of a run in the directory of another run',
         '    logdir.check()\n', ''),
    )),
    dict(file='runs/setup', catches='test_runs_can_be_repeated_and_killed',
         rows=(
        ('a deterministic run never goes back', 'elif saved == 0 and',
         'elif saved == -1 and'),
        ('a deterministic run goes back to its beginning only',
         'if saved and saved < latest and', 'if saved and latest < saved and'),
    )),
    dict(file='replay/rate',
         catches='test_a_newer_replay_owes_updates_before_its_steps_count',
         rows=(
        ('steps count before their updates',
         'if due.num_owed >= num_updates:\n        yield sample',
         'if due.num_owed >= num_updates and not num_new_steps:\n'
         '        yield sample'),
    )),
    dict(file='learning/sources',
         catches='test_a_replay_of_another_checkpoint_is_said', rows=(
        ('another replay is not said',
         'if config.deterministic and num_again:',
         'if config.use_lstm and num_again:'),
    )),
    dict(file='learning/sources',
         catches='test_runs_can_be_repeated_and_killed', rows=(
        ('a deterministic run does not save its first replay',
         'if config.deterministic and source.is_new:', 'if False:'),
    )),
    dict(file='learning/sources',
         catches='test_settings_may_change_before_the_first_checkpoint', rows=(
        ('the first replay of a deterministic run is loaded',
         'directory and learner.num_updates)', 'directory)'),
    )),
    dict(file='learning/sources', catches='test_what_a_transition_holds2',
         rows=(
        ('rewards keep their size',
         'config.reward_clipping, config.reward_scale)',
         'config.reward_clipping)'),
    )),
    dict(file='learning/feeds',
         catches='test_each_has_its_environments_and_all_have_the_same_updates',
         rows=(
        ('the ratio of one learner is said',
         'rate.achieved / self._num_learners', 'rate.achieved'),
    )),
    dict(file='learning/feeds',
         catches='test_importance_weights_are_divided_by_the_largest_of_all0',
         rows=(
        ('each learner divides by its own largest weight',
         'collectives.largest(batch.largest_weight)', 'batch.largest_weight'),
        ('fresh unrolls are scaled', 'is_fresh, 1, 1 /', 'is_fresh, 1 /'
         ' collectives.largest(batch.largest_weight), 1 /'),
    )),
    dict(file='learning/selection',
         catches='test_batches_have_the_largest_weight', rows=(
        ('the largest weight of all batches so far',
         'priorities.largest_weight, 0.0', 'priorities.largest_weight, 7.0'),
    )),
    dict(file='learning/feeds', catches='test_the_ratio_is_exact', rows=(
        ('frames without repeats',
         'sample.num_new_steps * self._num_action_repeats',
         'sample.num_new_steps'),
    )),
    dict(file='learning/feeds',
         catches='test_without_errors_or_priorities_nothing_is_noted', rows=(
        ('priorities not noted',
         'self._source.set_errors(batch.positions, learned.errors.numpy())',
         'pass'),
        ('priorities without errors or positions noted',
         'batch.positions is not None and learned.errors', 'learned.errors'),
    )),
    dict(file='learning/sources',
         catches='test_each_has_its_environments_and_all_have_the_same_updates',
         rows=(
        ('environments of other learners counted', '- place.first_environment',
         '- 0'),
        ('replays in one directory', "f'replay-{rank}' if rank else 'replay'",
         "'replay'"),
        ('two updates counted for each sample',
         'rate, _note, learner.updates_per_call, num_uncounted)',
         'rate, _note, 2 * learner.updates_per_call, num_uncounted)'),
    )),
    dict(file='learning/sources',
         catches='test_going_on_counts_every_step_once', rows=(
        ('each learner owes for the steps of all',
         'num_counted // place.collectives.size', 'num_counted'),
        ('uncounted steps counted by all learners',
         '0 if place.collectives.rank or is_new else', '0 if is_new else'),
        ('uncounted steps of this learner only',
         '[rate.num_steps, rate.is_new_share]', '[0, rate.is_new_share]'),
        ('learners draw the same', "'replay', self.collectives.rank,",
         "'replay', 0,"),
    )),
    dict(file='learning/sources',
         catches='test_without_a_saved_replay_there_is_a_warm_up', rows=(
        ('warm-up left out', 'updates_per_step, min_steps, ',
         'updates_per_step, 1, '),
    )),
    dict(file='learning/sources',
         catches='test_a_warm_up_that_leaves_nothing', rows=(
        ('a warm-up without an update', 'if num_frames >= ',
         'if num_frames > '),
    )),
    dict(file='learning/sources', catches='test_a_time_limit_is_no_end', rows=(
        ('n-step left out', 'config.discounting, config.n_step,',
         'config.discounting, 1,'),
    )),
    dict(file='learning/sources', catches='test_what_a_transition_holds', rows=(
        ('rewards not clipped', 'config.reward_clipping, config.reward_scale)',
         "'none', config.reward_scale)"),
    )),
    dict(file='learning/selection',
         catches='UnrollsTest.test_the_exponent_of_weights_rises', rows=(
        ('exponent of importance weights does not rise',
         'share * config.importance_exponent_end',
         'share * config.importance_exponent'),
    )),
    dict(file='learning/sources',
         catches='test_a_run_without_an_update_is_refused', rows=(
        ('the warm-up is left out', 'num_frames += (rate',
         'num_frames = (rate'),
        ('one update of a call', 'steps_until(config.updates_per_call)',
         'steps_until(1)'),
    )),
    dict(file='replay/rate',
         catches='test_a_run_without_an_update_is_refused', rows=(
        ('the ratio as a float', 'math.ceil(num_updates / self._ratio)',
         'math.ceil(num_updates / float(self._ratio))'),
    )),
    dict(file='learning/sources',
         catches='UnrollsTest.test_the_exponent_of_weights_rises', rows=(
        ('unrolls: exponent of importance weights does not rise',
         '    selection.anneal(selector, config, learner.num_env_frames)\n',
         ''),
    )),
    dict(file='learning/selection',
         catches='PrioritiesTest.test_the_exponent_of_weights_rises', rows=(
        ('importance weights of a prioritised replay left out',
         'if num_learners == 1:\n    return sample',
         'if num_learners == 1:\n'
         '    return sample._replace(importance_weights=None)'),
        ('exponent of importance weights of recent steps does not rise',
         '    selector = selector.inner\n', '    break\n'),
    )),
    dict(file='learning/selection',
         catches='test_without_errors_or_priorities_nothing_is_noted', rows=(
        ('importance weights and positions without priorities',
         'sample._replace(importance_weights=None, positions=None)', 'sample'),
    )),
    dict(file='learning/sources',
         catches='test_more_goals_are_reached_with_more_pretended_ones', rows=(
        ('no pretended goals', 'config.hindsight, config.hindsight_goals,',
         'config.hindsight, 0,'),
        ('number of pretended goals ignored',
         'config.hindsight, config.hindsight_goals,', 'config.hindsight, 4,'),
    )),
    dict(file='learning/sources', catches='HindsightTest.'
         'test_an_episode_goes_on_only_where_an_action_is_valid', rows=(
        ('an episode goes on without a valid action',
         "config.hindsight == 'episode' and masks", 'False and masks'),
    )),
    dict(file='learning/sources',
         catches='test_rewards_are_those_of_the_goals', rows=(
        ('a pretended success does not end the episode',
         'config.hindsight_goals, terminated)',
         'config.hindsight_goals, None)'),
    )),
    dict(file='learning/sources',
         catches='test_they_are_as_they_were_acted', rows=(
        ('sequences: steps counted as unrolls',
         'config.num_entries, config.unroll_length)',
         'config.num_entries, 2 * config.unroll_length)'),
    )),
    dict(file='settings/sections', catches='test_the_warm_up_has_a_sequence',
         rows=(
        ('sequences: updates before there is one',
         'self.num_actors * self.num_entries if self.use_lstm else 0', '0'),
    )),
    dict(file='learning/sources',
         catches='SequencesTest.test_errors_decide_what_is_drawn', rows=(
        ('sequences: priorities have no effect',
         'starts, selector, replay_lib.Sequences(',
         'starts, replay_lib.Uniform(), replay_lib.Sequences('),
        ('errors are lost at a fixed rate', 'samples(), replay.update, rate,',
         'samples(), lambda *_: None, rate,'),
    )),
    dict(file='learning/sources',
         catches='UnrollsTest.test_errors_decide_what_is_drawn', rows=(
        ('unrolls: priorities have no effect',
         'draw, due, _note),\n'
         '      replay.update)',
         'draw, due, _note),\n'
         '      lambda *_: None)'),
        ('unrolls: priorities of other unrolls',
         '[np.arange(end - num_fresh, end), sample.positions]))',
         '[np.arange(end - num_fresh, end), sample.positions[::-1]]))'),
    )),
    dict(file='learning/selection',
         catches='test_batches_are_drawn_from_newer_and_newer_steps', rows=(
        ('recent steps are not preferred', 'if config.is_recent:', 'if False:'),
    )),
    dict(file='learning/sources',
         catches='test_notes_have_every_step_once', rows=(
        ('notes of the first entries, too',
         'unroll.steps.agent_outputs.action[1:].copy()',
         'unroll.steps.agent_outputs.action.copy()'),
    )),
    dict(file='learning/memory_check',
         catches='test_all_batches_are_counted', rows=(
        ('batches in turns counted as others',
         '3 if config.takes_turns else 4', '4'),
    )),
    dict(file='learning/memory_check',
         catches='test_unrolls_too_large_for_the_memory', rows=(
        ('buffers of central inference not counted',
         "if not config.ray_address or config.inference != 'local':",
         'if not config.ray_address:'),
        ('collections not counted', 'config.unrolls_per_collect * unroll_bytes',
         '0'),
    )),
    dict(file='replay/replay',
         catches='test_each_has_its_environments_and_all_have_the_same_updates',
         rows=(
        ('batches without the axis of updates', 'if num_batches == 1:',
         'if num_batches < 9:'),
    )),
    dict(file='replay/rate',
         catches='test_a_replay_that_is_missing_or_old_does_not_owe_for_others',
         rows=(
        ('entries counted, not steps', 'env_outputs.done[1:].size',
         'env_outputs.done.size'),
    )),
    dict(file='replay/rate',
         catches='test_each_has_its_environments_and_all_have_the_same_updates',
         rows=(
        ('one update counted per draw', 'due.add_updates(num_updates)',
         'due.add_updates(1)'),
        ('one draw too many', 'while due.num_owed >= num_updates:',
         'while due.num_owed > -num_updates:'),
        ('new steps counted again with the next sample',
         'notes=notes)\n'
         '        num_new_steps, notes = 0, []\n',
         'notes=notes)\n'),
    )),
    dict(file='replay/rate', catches='test_the_ratio_is_exact', rows=(
        ('steps with the first draw',
         'draw()\n'
         '      if due.num_owed >= num_updates:',
         'draw()\n'
         '      if False:'),
        ('ratio per environment', 'env_outputs.done[1:].size',
         'env_outputs.done[1:].shape[0]'),
    )),
    dict(file='replay/views', catches='test_a_time_limit_is_no_end', rows=(
        ('end left out', 'np.where(terminated, 0.0, powers[length])',
         'powers[length]'),
    )),
    dict(file='replay/steps', catches='test_a_time_limit_is_no_end', rows=(
        ('cut off taken for an end', 'at_end & TERMINATED != 0)',
         'at_end & (TERMINATED | TRUNCATED) != 0)'),
    )),
)


if __name__ == '__main__':
  tf.test.main()
