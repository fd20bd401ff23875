# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""What every environment must keep to, as a mixin for its test case."""

import multiprocessing

import gymnasium
import numpy as np
from scalable_agent import environments


def leaves(observation):
  """The arrays of an observation."""
  if isinstance(observation, dict):
    return [observation[key] for key in sorted(observation)]
  return [observation]


def mapped(fn, observation):
  """An observation, or `()`, with `fn` applied to its arrays."""
  if isinstance(observation, dict):
    return {key: fn(value) for key, value in observation.items()}
  return fn(observation) if isinstance(observation, np.ndarray) else ()


def copied(step_output):
  """A step output that outlives the next call."""
  copy = lambda array: array.copy()
  return step_output._replace(
      observation=mapped(copy, step_output.observation),
      last_observation=mapped(copy, step_output.last_observation))


class EnvironmentContract:
  """Mixin of `absltest.TestCase`; a subclass names a level.

  Attributes:
    level_name: the level.
    settings: `EnvironmentSettings`.
    num_steps: steps after which at least one episode has ended.
  """
  level_name = None
  settings = environments.EnvironmentSettings(num_action_repeats=1)
  num_steps = 60

  def make(self, seeds):
    env = environments.make_vec(
        [self.level_name] * len(seeds), seeds, self.settings)
    self.addCleanup(env.close)
    return env

  def actions(self, env, seed=0):
    """Random actions `[num_steps, E, ...]`, from a stream per column."""
    return np.stack([
        self._column_actions(env.spec.action, np.random.default_rng(
            [seed, column])) for column in range(env.num_envs)], axis=1)

  def _column_actions(self, spec, rng):
    shape, dtype = spec.array
    shape = (self.num_steps, *shape)
    if spec.size:
      # Every third one is out of bounds. Scaling rounds none of them.
      return (rng.integers(-192, 193, shape) / 128).astype(dtype)
    num_values = spec.num_values if shape[1:] else spec.num_values[0]
    return rng.integers(num_values, size=shape, dtype=dtype)

  def run_steps(self, env, actions):
    """Returns `num_steps + 1` step outputs."""
    return [copied(env.initial())] + [copied(env.step(a)) for a in actions]

  def assert_same(self, first, second):
    """Asserts that two step outputs are equal, bit for bit."""
    np.testing.assert_array_equal(first.reward, second.reward)
    np.testing.assert_array_equal(first.done, second.done)
    np.testing.assert_array_equal(first.truncated, second.truncated)
    for a, b in zip(first.info, second.info):
      np.testing.assert_array_equal(a, b)
    for a, b in zip(leaves(first.observation), leaves(second.observation),
                    strict=True):
      np.testing.assert_array_equal(a, b)
    for i in np.flatnonzero(first.info.episode_end):
      for a, b in zip(leaves(first.last_observation),
                      leaves(second.last_observation), strict=True):
        np.testing.assert_array_equal(a[i], b[i])

  def column(self, step_output, index):
    """Environment `index` of a step output, as a vector of one."""
    take = lambda array: array[index:index + 1]
    return type(step_output)(
        take(step_output.reward),
        type(step_output.info)(*map(take, step_output.info[:3])),
        take(step_output.done), mapped(take, step_output.observation),
        take(step_output.truncated),
        mapped(take, step_output.last_observation))

  def test_attributes_and_first_outputs(self):
    env = self.make([1, 2])
    self.assertEqual(env.num_envs, 2)
    self.assertEqual(env.level_names, (self.level_name,) * 2)
    self.assertEqual(env.spec.num_action_repeats,
                     self.settings.num_action_repeats)
    num_values, size = env.spec.action
    self.assertIs(type(size), int)
    self.assertEqual(bool(num_values), size == 0)
    for number in num_values:
      self.assertIs(type(number), int)
      self.assertGreater(number, 1)
    output = env.initial()
    np.testing.assert_array_equal(output.reward, [0, 0])
    np.testing.assert_array_equal(output.done, [True, True])
    np.testing.assert_array_equal(output.truncated, [False, False])
    self.assertEqual(output.last_observation, ())
    np.testing.assert_array_equal(output.info.episode_return, [0, 0])
    np.testing.assert_array_equal(output.info.episode_step, [0, 0])
    np.testing.assert_array_equal(output.info.episode_end, [False, False])

  def test_outputs_match_specs_and_episodes(self):
    env = self.make([1, 2, 3])
    outputs = self.run_steps(env, self.actions(env))
    self._check_statistics(outputs)
    for output in outputs:
      self.assertEqual(output.reward.dtype, np.float32)
      self.assertEqual(output.done.dtype, bool)
      self.assertEqual(output.info.episode_return.dtype, np.float32)
      self.assertEqual(output.info.episode_step.dtype, np.int32)
      self.assertEqual(output.info.episode_end.dtype, bool)
      self.assertEqual(output.truncated.dtype, bool)
      for array in (output.reward, output.done, output.truncated,
                    *output.info[:3]):
        self.assertEqual(array.shape, (3,))
      self.assert_fits(output.observation, env.spec.observation)
      self.assertTrue(output.info.episode_end[output.truncated].all())
      if output.info.episode_end.any():
        self.assert_fits(output.last_observation, env.spec.observation)
      else:
        self.assertEqual(output.last_observation, ())

  def assert_fits(self, observation, spec):
    """Asserts that an observation of three environments is as `spec` says."""
    specs = [spec]
    if isinstance(spec, dict):
      self.assertEqual(set(spec), set(observation))
      specs = [spec[key] for key in sorted(spec)]
    for one, array in zip(specs, leaves(observation), strict=True):
      self.assertIsInstance(one.dtype, np.dtype)
      self.assertEqual(array.dtype, one.dtype)
      self.assertEqual(array.shape, (3,) + one.shape)
      if one.dtype == object:
        self.assertTrue(all(isinstance(text, bytes) for text in array))

  def _check_statistics(self, outputs):
    """Asserts that returns and steps are of whole episodes."""
    num_ends = 0
    for i in range(3):
      episode_return, episode_step = 0.0, 0
      for output in outputs[1:]:
        episode_return += float(output.reward[i])  # In float64.
        episode_step += 1
        self.assertEqual(
            output.info.episode_return[i], np.float32(episode_return))
        self.assertEqual(output.info.episode_step[i], episode_step)
        if output.info.episode_end[i]:
          self.assertTrue(output.done[i])
          episode_return, episode_step = 0.0, 0
          num_ends += 1
    self.assertGreater(num_ends, 0, 'num_steps is too small to test anything.')

  def test_same_seeds_same_stream(self):
    env = self.make([5, 6])
    actions = self.actions(env)
    first = self.run_steps(env, actions)
    again = self.run_steps(env, actions)
    other = self.run_steps(self.make([5, 6]), actions)
    for a, b, c in zip(first, again, other):
      self.assert_same(a, b)
      self.assert_same(a, c)

  def test_vector_agrees_with_single_environments(self):
    seeds = [5, 3]
    vector = self.make(seeds)
    actions = self.actions(vector)
    outputs = self.run_steps(vector, actions)
    for i, seed in enumerate(seeds):
      single = self.run_steps(self.make([seed]), actions[:, i:i + 1])
      for output, expected in zip(outputs, single):
        self.assert_same(self.column(output, i), expected)

  def test_refuses_bad_actions(self):
    env = self.make([1, 2])
    good = self.actions(env)[0]
    with self.assertRaisesRegex(RuntimeError, 'initial'):
      env.step(good)
    env.initial()
    is_discrete = env.spec.action.size == 0
    bad = [good[:1], np.concatenate([good, good[:1]]), good[..., np.newaxis],
           good.astype(np.float32 if is_discrete else np.int32),
           good.astype(bool)]
    # In turn, each part of the second action is bad.
    for index in np.ndindex(good.shape[1:]):
      for value in ([-1, env.spec.action.num_values[index[0] if index else 0]]
                    if is_discrete else [np.nan]):
        bad.append(good.copy())
        bad[-1][(1, *index)] = value
    for actions in bad:
      with self.assertRaisesRegex(ValueError, 'Actions must be'):
        env.step(actions)
    env.step(good)

  def test_close_leaves_nothing_behind(self):
    before = set(multiprocessing.active_children())
    env = self.make([1, 2])
    env.initial()
    env.close()
    env.close()
    self.assertEqual(set(multiprocessing.active_children()) - before, set())
    with self.assertRaisesRegex(RuntimeError, 'closed'):
      env.step(np.zeros([2], np.int32))


class SerialReference:
  """Mixin: the environment itself, stepped by hand in this process."""

  def make_serial(self):
    return gymnasium.make(self.level_name)

  def test_same_as_serial_with_reset_in_the_same_step(self):
    env = self.make([5])
    actions = self.actions(env)
    serial = self.make_serial()
    self.addCleanup(serial.close)
    observation, _ = serial.reset(seed=5)
    self.assert_is(env.initial().observation, observation)
    for action in actions[:, 0]:
      observation, reward, terminated, truncated, _ = serial.step(
          _in_space(action, serial.action_space))
      done = terminated or truncated
      last = observation
      if done:
        observation, _ = serial.reset()
      output = env.step(np.array([action]))
      self.assertEqual(output.reward[0], np.float32(reward))
      self.assertEqual(output.done[0], done)
      self.assertEqual(output.info.episode_end[0], done)
      self.assert_is(output.observation, observation)
      self.assertEqual(output.truncated[0], truncated and not terminated)
      if done:
        self.assert_is(output.last_observation, last)
      else:
        self.assertEqual(output.last_observation, ())

  def assert_is(self, batched, single):
    """Asserts that a vector of one shows an observation of gymnasium."""
    if not isinstance(single, dict):
      batched, single = {'': batched}, {'': single}
    self.assertEqual(set(batched), set(single))
    for name, value in single.items():
      if isinstance(value, str):
        self.assertEqual(batched[name][0], value.encode())
      else:
        value = np.asarray(value)
        if value.dtype == np.float64:
          value = value.astype(np.float32)
        np.testing.assert_array_equal(batched[name][0], value)


def _in_space(action, space):
  """An agent's action as gymnasium takes it."""
  if isinstance(space, gymnasium.spaces.MultiBinary):
    return action.astype(np.int8).reshape(space.shape)
  if not isinstance(space, gymnasium.spaces.Box):
    return action + space.start
  action = np.clip(action.astype(np.float64), -1, 1).reshape(space.shape)
  scaled = space.low + (action + 1) / 2 * (space.high - space.low)
  return scaled.astype(space.dtype)
