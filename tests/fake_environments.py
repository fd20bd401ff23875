# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Environments that are special, or misbehave, in one way each.

Registered as `fake/<class name>-v0` on import; workers need not import this.
"""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
import warnings

import gymnasium
from gymnasium import spaces
import numpy as np

WORDS = ('', 'go', 'gehe zur Tür', 'a b c d e f')


class _Fake(gymnasium.Env):
  observation_space = spaces.Box(0, 1000, (1,), np.float64)
  action_space = spaces.Discrete(2)

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self._steps = 0
    return self._observation(), {}

  def step(self, action):
    self._steps += 1
    return self._observation(), 1.0, self._steps == 5, False, {}

  def _observation(self):
    return np.array([self._steps], np.float64)


class Instructed(_Fake):
  """Random frames and instructions; the reward is the action."""
  observation_space = spaces.Dict({
      'frame': spaces.Box(0, 255, (4, 6, 3), np.uint8),
      'instruction': spaces.Text(
          12, min_length=0, charset='abcdefghijklmnopqrstuvwxyzüT '),
  })
  action_space = spaces.Discrete(3)

  def step(self, action):
    self._steps += 1
    truncated = bool(self.np_random.random() < 0.2)
    return self._observation(), float(action), False, truncated, {}

  def _observation(self):
    return {
        'frame': self.np_random.integers(256, size=(4, 6, 3), dtype=np.uint8),
        'instruction': WORDS[self.np_random.integers(len(WORDS))],
    }


class TimeLimited(_Fake):
  """Ends after 3 steps, by a time limit; every other time also by itself."""

  def reset(self, *, seed=None, options=None):
    self._episode = 0 if seed is not None else self._episode + 1
    return super().reset(seed=seed)

  def step(self, action):
    self._steps += 1
    limit = self._steps == 3
    return (self._observation(), 1.0, limit and self._episode % 2 == 1, limit,
            {})


class Informing(_Fake):
  """Episodes of 1, 2, 3, 1, ... steps; the last `info` is as `last_info`."""
  first = 0

  def reset(self, *, seed=None, options=None):
    self._episode = self.first if seed is not None else self._episode + 1
    return super().reset(seed=seed)

  def step(self, action):
    self._steps += 1
    is_last = self._steps == 1 + self._episode % 3
    info = self.last_info(self._steps) if is_last else {'length': -1}
    return self._observation(), 1.0, is_last, False, info

  @staticmethod
  def last_info(length):
    info = {'is_success': np.bool_(length == 2), 'length': length,
            'half': np.array([length / 2]), 'text': 'a'}
    return info | {'odd': True} if length % 2 else info


class InformingFromTwo(Informing):
  first = 1


class InformingFromThree(Informing):
  first = 2


class FrameOnly(_Fake):
  observation_space = spaces.Dict({'frame': spaces.Box(0, 255, (2, 2, 3),
                                                       np.uint8)})

  def _observation(self):
    return {'frame': np.full((2, 2, 3), self._steps, np.uint8)}


class ActionsFromOne(_Fake):
  """The observation is the last action."""
  action_space = spaces.Discrete(3, start=1)

  def reset(self, *, seed=None, options=None):
    self._action = 0
    return super().reset(seed=seed)

  def step(self, action):
    assert self.action_space.contains(action)
    self._action = action
    return super().step(action)

  def _observation(self):
    return np.array([self._action], np.float64)


class OtherBounds(_Fake):
  """Like `_Fake`, but for the bounds."""
  observation_space = spaces.Box(0, 2000, (1,), np.float64)


class Plain(_Fake):
  pass


class Unlike(_Fake):
  """No observation comes twice. Rewards are large and small; games end early.
  """
  observation_space = spaces.Box(-1, 1, (3,), np.float32)
  action_space = spaces.Discrete(4)

  def step(self, action):
    reward = self.np_random.choice([100., -100., .5, -.2])
    end = self.np_random.random()
    return self._observation(), float(reward), end < .15, end > .85, {}

  def _observation(self):
    return self.np_random.uniform(-1, 1, 3).astype(np.float32)


class UnlikeBox(Unlike):
  action_space = spaces.Box(-1, 1, (2,), np.float32)


class _Echo(_Fake):
  """The observation is the last action, after a check that it is one."""
  observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float64)

  def reset(self, *, seed=None, options=None):
    self._action = np.zeros([3])
    self._copy = self._action.copy()
    return super().reset(seed=seed)

  def step(self, action):
    # The action of the step before, as this environment kept it.
    np.testing.assert_array_equal(self._action, self._copy)
    assert action.dtype == self.action_space.dtype, action.dtype
    assert action.shape == self.action_space.shape, action.shape
    assert self.action_space.contains(action), action
    self._action, self._copy = action, np.copy(action)
    return super().step(action)

  def _observation(self):
    return np.ravel(self._action).astype(np.float64)


class EchoBox(_Echo):
  action_space = spaces.Box(
      np.array([-2, 0.1, 5], np.float32), np.array([3, 0.7, 5], np.float32))


class EchoWide(_Echo):
  action_space = spaces.Box(-3, 3, (3,), np.float32)


class EchoDouble(_Echo):
  """A row of three, float64."""
  action_space = spaces.Box(
      np.array([[-2, 0.1, 5]]), np.array([[3, 0.7, 5.5]]), dtype=np.float64)


class EchoScalar(_Echo):
  action_space = spaces.Box(0.1, 0.7, (), np.float32)
  observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)

  def reset(self, *, seed=None, options=None):
    observation, _ = super().reset(seed=seed)
    return observation[:1], {}


class EchoParts(_Echo):
  action_space = spaces.MultiDiscrete([3, 2, 4], start=[0, 5, -1])


class EchoPartsFromZero(_Echo):
  action_space = spaces.MultiDiscrete([3, 2, 4])


class EchoOnePart(_Echo):
  """An agent's action is a plain number, the environment's is a list of one."""
  action_space = spaces.MultiDiscrete([4], start=[2], dtype=np.int32)
  observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)

  def reset(self, *, seed=None, options=None):
    observation, _ = super().reset(seed=seed)
    return observation[:1], {}


class UnboundedActions(_Fake):
  action_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)


class HalfBoundedActions(_Fake):
  action_space = spaces.Box(np.array([0, 0], np.float32),
                            np.array([1, np.inf], np.float32))


class HugeActions(_Fake):
  """Bounds that stand for no bounds, as in an environment of ViZDoom."""
  action_space = spaces.Box(np.finfo(np.float32).min, np.finfo(np.float32).max,
                            (2,), np.float32)


class IntegerActions(_Fake):
  action_space = spaces.Box(0, 9, (2,), np.int64)


class TableOfActions(_Fake):
  action_space = spaces.MultiDiscrete([[2, 3], [4, 5]])


class PairOfActions(_Fake):
  action_space = spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2)])


class Nested(_Fake):
  observation_space = spaces.Dict({'a': spaces.Dict({
      'b': spaces.Box(0, 1, (2,), np.float32)})})


class Pair(_Fake):
  observation_space = spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2)])


class OnlyInstruction(_Fake):
  observation_space = spaces.Dict({'instruction': spaces.Text(5)})


class InstructionFrame(_Fake):
  """Its instruction is no text."""
  observation_space = spaces.Dict({'a': spaces.Box(0, 1, (2,), np.float32),
                                   'instruction': spaces.Box(0, 1, (2,))})


class Sampled(_Fake):
  """Observations are samples of its space; episodes are random."""

  def reset(self, *, seed=None, options=None):
    if seed is not None:
      self.observation_space.seed(seed)
    return super().reset(seed=seed)

  def step(self, action):
    self._steps += 1
    terminated, truncated = self.np_random.random(2) < 0.15
    return (self._observation(), float(action), bool(terminated),
            bool(truncated), {})

  def _observation(self):
    return self.observation_space.sample()


class Many(Sampled):
  """Vectors and frames, with text."""
  observation_space = spaces.Dict({
      'camera': spaces.Box(0, 255, (4, 6, 3), np.uint8),
      'wrist': spaces.Box(0, 255, (2, 2, 1), np.uint8),
      'joints': spaces.Box(-1, 1, (5,), np.float64),
      'map': spaces.Box(-1, 1, (2, 3), np.float32),
      'height': spaces.Box(-1, 1, (), np.float32),
      'instruction': spaces.Text(7, min_length=0, charset='abü')})


class Goals(Sampled):
  """A goal environment whose rewards are computed one by one."""
  observation_space = spaces.Dict({
      'observation': spaces.Box(-1, 1, (4,), np.float64),
      'achieved_goal': spaces.Box(-1, 1, (2,), np.float64),
      'desired_goal': spaces.Box(-1, 1, (2,), np.float64)})

  def compute_reward(self, achieved_goal, desired_goal, info):
    assert achieved_goal.dtype == desired_goal.dtype == np.float64
    return -np.abs(achieved_goal - 2 * desired_goal).sum()


class Twice(gymnasium.Wrapper):
  """Makes two steps in one, and returns the reward of the second."""

  def step(self, action):
    self.env.step(action)
    return self.env.step(action)


class SparseGoals(Goals):
  """A goal environment whose random steps never reach the goal."""

  def compute_reward(self, achieved_goal, desired_goal, info):
    return -np.any(achieved_goal != desired_goal, axis=-1).astype(np.float64)

  def compute_terminated(self, achieved_goal, desired_goal, info):
    return bool(np.all(achieved_goal == desired_goal))

  def step(self, action):
    observation, *_ = super().step(action)
    return observation, -1.0, False, False, {'is_success': 0.0}


class Bonus(gymnasium.Wrapper):
  """Adds to the reward if `is_goal` says so of the result of a step."""

  def __init__(self, env, is_goal):
    super().__init__(env)
    self._is_goal = is_goal

  def step(self, action):
    observation, reward, *others = self.env.step(action)
    bonus = 10.0 * self._is_goal(observation, reward, *others)
    return observation, reward + bonus, *others


class UnitGoals(Goals):
  """Goals are unit vectors; most others have no finite reward."""

  def _observation(self):
    return {name: part / np.linalg.norm(part)
            for name, part in super()._observation().items()}

  def compute_reward(self, achieved_goal, desired_goal, info):
    with np.errstate(invalid='ignore'):
      return -2 * np.arccos(
          np.abs((achieved_goal * desired_goal).sum()) - 1e-6)


class GoalsByColumn(Goals):
  """Of two or more pairs of goals, its result has a plausible shape."""

  def compute_reward(self, achieved_goal, desired_goal, info):
    return -np.abs(achieved_goal - 2 * desired_goal).sum(axis=0)


class SparseGoalsByColumn(Goals):
  """Like `GoalsByColumn`, of seven numbers: all are reached, or it is -1."""
  observation_space = spaces.Dict({
      name: spaces.Box(-1, 1, (7,), np.float64)
      for name in ('achieved_goal', 'desired_goal')})

  def compute_reward(self, achieved_goal, desired_goal, info):
    return -np.any(achieved_goal != desired_goal, axis=0).astype(np.float64)


class VectorGoals(Goals):
  """Counts the calls of all environments of this class."""
  num_calls = 0

  def compute_reward(self, achieved_goal, desired_goal, info):
    VectorGoals.num_calls += 1
    return -np.abs(achieved_goal - 2 * desired_goal).sum(axis=-1)


class GoalsWithoutRewards(Sampled):
  observation_space = Goals.observation_space


class Counted(Sampled):
  observation_space = spaces.Discrete(7, start=-2)


class CountedParts(Sampled):
  observation_space = spaces.Dict({
      'parts': spaces.MultiDiscrete([3, 2]), 'bits': spaces.MultiBinary(4),
      'one': spaces.Discrete(3)})


class UnknownKeys(_Fake):
  observation_space = spaces.Dict({'frame': spaces.Box(0, 255, (2, 2, 3),
                                                       np.uint8),
                                   'mission': spaces.Text(5)})


class MissingPackage(_Fake):

  def __init__(self):
    raise gymnasium.error.DependencyNotInstalled('pip install somephysics.')


class ImportsTensorFlow(_Fake):
  """The observation is whether TensorFlow is imported."""

  def _observation(self):
    return np.array(['tensorflow' in sys.modules], np.float64)


class AwkwardError(Exception):
  """Can neither be pickled nor be built from one argument."""

  def __init__(self, first, second):
    super().__init__(f'{first} and {second}')
    self.unpicklable = lambda: None


class Prints(_Fake):
  """Prints at the start and in all steps."""

  def __init__(self):
    print('Built.', flush=True)

  def step(self, action):
    print('A step.', flush=True)
    print('A step.', file=sys.stderr, flush=True)
    return super().step(action)


class Raises(_Fake):
  """Raises in step 2, if it was seeded with 1."""

  def reset(self, *, seed=None, options=None):
    if seed is not None:
      self._raises = seed == 1
    return super().reset(seed=seed)

  def step(self, action):
    if self._raises and self._steps == 1:
      self._fail()
    return super().step(action)

  def _fail(self):
    raise AwkwardError('this', 'that')


class RaisesLater(Raises):
  """Raises in step 200, whatever its seed."""

  def __init__(self):
    self._steps_left = 200
    self._raises = False

  def step(self, action):
    self._steps_left -= 1
    if not self._steps_left:
      self._fail()
    return super().step(action)


class Dies(Raises):

  def _fail(self):
    os.kill(os.getpid(), signal.SIGKILL)


class Hangs(Raises):

  def _fail(self):
    time.sleep(10_000)


class RaisesInReset(_Fake):

  def reset(self, *, seed=None, options=None):
    raise ValueError('no way to begin')


class WrongShape(_Fake):
  """Its observations could be broadcast to its space."""
  observation_space = spaces.Box(0, 1000, (3,), np.float32)


class RaisesOrHangs(Raises):
  """Raises in step 2, if it was seeded with 1, and else hangs there."""

  def step(self, action):
    if not self._raises and self._steps == 1:
      time.sleep(10_000)
    return super().step(action)


class FloatFrames(_Fake):
  """Its observations would all be rounded to 0."""
  observation_space = spaces.Box(0, 255, (1,), np.uint8)

  def _observation(self):
    return np.array([0.5])


class BoxOnly(_Fake):
  """`FrameOnly` without a dictionary."""
  observation_space = spaces.Box(0, 255, (2, 2, 3), np.uint8)


class HangsInClose(_Fake):

  def close(self):
    time.sleep(10_000)


class DiesInClose(_Fake):

  def close(self):
    os._exit(3)


def _is_asked_for_its_spaces():
  return multiprocessing.current_process().name == 'remote'


class RaisesAtStart(_Fake):
  """Can only be asked for its spaces."""

  def __init__(self):
    if not _is_asked_for_its_spaces():
      raise ValueError('no way to be' + ' so long' * 10_000)


class DiesAtStart(_Fake):
  """Can only be asked for its spaces."""

  def __init__(self):
    if not _is_asked_for_its_spaces():
      os._exit(3)


class Meets(_Fake):
  """Is built as soon as `number` processes build such an environment.

  A process that is asked for the spaces is counted, too, but does not wait.
  Each process makes a file in `directory`.
  """

  def __init__(self, directory, number):
    with open(os.path.join(
        directory, 'asked' if _is_asked_for_its_spaces() else 'built'
    ) + f'-{os.getpid()}', 'x'):
      pass
    deadline = time.monotonic() + 30  # Then, the test has failed.
    while not _is_asked_for_its_spaces() and len(
        [name for name in os.listdir(directory) if 'built' in name]) < number:
      if time.monotonic() > deadline:
        raise ValueError('nobody else is here')
      time.sleep(.01)


class NeverBuilt(_Fake):

  def __init__(self):
    raise ValueError('no way to be')


class NeverThere(_Fake):

  def __init__(self):
    os._exit(0)


class NeverReady(_Fake):

  def __init__(self):
    time.sleep(10_000)


class Sleeps(_Fake):
  """Takes two seconds per step."""

  def step(self, action):
    time.sleep(2)
    return super().step(action)


class Warns(_Fake):
  """Warns when it is built, and in its first step."""

  def __init__(self):
    warnings.warn('It is built.', stacklevel=2)

  def step(self, action):
    if self._steps == 0:
      warnings.warn('It is stepped.', stacklevel=2)
    return super().step(action)


class Tail(_Fake):
  observation_space = spaces.Dict(
      tail=spaces.Sequence(spaces.Box(0, 1, (2,), np.float32)))


class EmptyPart(_Fake):
  observation_space = spaces.Dict(
      a=spaces.Box(0, 1, (2,), np.float32),
      b=spaces.Box(0, 1, (0,), np.float32))


class NoActions(_Fake):
  action_space = spaces.Box(0, 1, (0,), np.float32)


class Children(_Fake):
  """Uses a pool of processes, and leaves a process behind."""

  def __init__(self):
    with multiprocessing.Pool(1) as pool:
      assert pool.map(abs, [-1]) == [1]
    self._child = multiprocessing.Process(target=time.sleep, args=(10_000,))
    self._child.start()

  def _observation(self):
    return np.array([self._child.pid], np.float64)
  observation_space = spaces.Box(0, 2**24, (1,), np.float64)


class StartsProgram(_Fake):
  """Starts a program."""

  def __init__(self):
    self._program = subprocess.Popen(['/bin/sleep', '10000'])


class RaisesInClose(_Fake):
  def close(self):
    raise AttributeError('no viewer')


class ArrayReward(_Fake):
  """The reward is an array."""
  reward = np.array([[1.5]])

  def step(self, action):
    observation, _, *rest = super().step(action)
    return observation, self.reward, *rest


class VectorReward(ArrayReward):
  reward = np.array([1., 2.])


class HugeReward(ArrayReward):
  reward = 1e39


class NoEnd(_Fake):

  def step(self, action):
    return self._observation(), 1.0, False, None, {}


class OldStep(_Fake):
  """The four values of the old gym."""

  def step(self, action):
    observation, reward, done, _, info = super().step(action)
    return observation, reward, done, info


class NoReset(_Fake):
  """A reset that returns nothing."""

  def reset(self, **kwargs):
    super().reset(**kwargs)


class Outside(_Fake):
  """Numbers that the space does not hold; a subclass says which ones."""
  observation_space, number = spaces.Box(0, 255, (1,), np.uint8), -1

  def _observation(self):
    return np.array([self.number])


class OutsideWide(Outside):
  observation_space, number = spaces.Box(0, 9, (1,), np.int32), 2**40


class OutsideSmall(Outside):
  observation_space, number = spaces.Box(0, 9, (1,), np.uint8), -2


class OutsideFloat(Outside):
  observation_space, number = spaces.Box(0, 9, (1,), np.float64), 1e39


class OutsideParts(Outside):
  """The 3 would be the first place of the next part."""
  observation_space, number = spaces.MultiDiscrete([3]), 3


class OutsideBinary(Outside):
  observation_space, number = spaces.MultiBinary(1), 256


class OutsideDiscrete(Outside):
  observation_space = spaces.Discrete(5)

  def _observation(self):
    return -1


class OutsideLater(_Fake):
  """Returns two numbers of one, from the second reset on."""
  _num_resets = 0

  def reset(self, *, seed=None, options=None):
    self._num_resets += 1
    observation, info = super().reset(seed=seed)
    return np.repeat(observation, min(self._num_resets, 2)), info

  def step(self, action):
    return *super().step(action)[:2], True, False, {}


class Marks(_Fake):
  """uint8 from 0 to 10, which is no picture."""
  observation_space = spaces.Box(0, 10, (2,), np.uint8)

  def _observation(self):
    return np.array([1, 10], np.uint8)


class GlobalRandom(_Fake):
  """Draws from the generators of the process: in `__init__`, then always."""
  observation_space = spaces.Box(0, 1, (3,), np.float64)

  def __init__(self):
    self._built = np.random.rand()

  def _observation(self):
    return np.array([self._built, np.random.rand(), random.random()])


class Masked(_Fake):
  """Four steps; 1 for the action that is shown. Invalid actions raise.

  At the end of an episode, no action is valid.
  """
  observation_space = spaces.Dict({
      'shown': spaces.Box(0, 1, (5,), np.float32),
      'action_mask': spaces.MultiBinary(5)})
  action_space = spaces.Discrete(5, start=3)

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self._steps = 0
    return self._observation(), {}

  def step(self, action):
    action = int(action) - 3
    if not self._mask[action]:
      raise ValueError(f'action {action} is not valid now: {self._mask}')
    self._steps += 1
    reward = float(action == self._best)
    return self._observation(), reward, self._steps == 4, False, {}

  def _observation(self):
    self._best = int(self.np_random.integers(5))
    self._mask = self.np_random.integers(2, size=5).astype(np.int8)
    self._mask[self._best] = 1
    if self._steps == 4:
      self._mask[:] = 0
    return {'shown': np.eye(5, dtype=np.float32)[self._best],
            'action_mask': self._mask.copy()}


class MaskedGoals(Masked):
  """Four steps to the goal, 4; no action is valid at the end."""
  observation_space = spaces.Dict({
      'action_mask': spaces.MultiBinary(5),
      'achieved_goal': spaces.Box(0, 4, (1,), np.float32),
      'desired_goal': spaces.Box(0, 4, (1,), np.float32)})

  def compute_reward(self, achieved_goal, desired_goal, info):
    return (achieved_goal == desired_goal).all(-1).astype(np.float32)

  def compute_terminated(self, achieved_goal, desired_goal, info):
    return self.compute_reward(achieved_goal, desired_goal, info) == 1

  def step(self, action):
    observation, _, terminated, truncated, info = super().step(action)
    return observation, float(terminated), terminated, truncated, info

  def _observation(self):
    return {'action_mask': super()._observation()['action_mask'],
            'achieved_goal': np.array([self._steps], np.float32),
            'desired_goal': np.array([4], np.float32)}


class MaskedParts(_Fake):
  """Two parts of an action, with a mask for each. Invalid actions raise."""
  observation_space = spaces.Dict({
      'action_mask': spaces.Tuple([
          spaces.MultiBinary(3), spaces.Box(0, 1, (2,), np.float32)]),
      'steps': spaces.Box(0, 5, (1,), np.float32)})
  action_space = spaces.MultiDiscrete([3, 2], start=[1, 2])

  def step(self, action):
    if not all(mask[i] for mask, i in zip(self._masks, action - [1, 2])):
      raise ValueError(f'{action} is not valid now: {self._masks}')
    return super().step(action)

  def _observation(self):
    self._masks = tuple(
        self.np_random.permutation([1] + (size - 1) * [self._steps % 2])
        for size in (3, 2))
    return {'action_mask': self._masks, 'steps': super()._observation()}


class MaskedBits(MaskedParts):
  """Four bits, with a mask of eight numbers in one array."""
  observation_space = spaces.Dict({
      'action_mask': spaces.Box(0, 1, (2, 2, 2), np.int8),
      'steps': spaces.Box(0, 5, (1,), np.float32)})
  action_space = spaces.MultiBinary((2, 2))

  def step(self, action):
    if not self._mask.reshape(4, 2)[range(4), action.reshape(-1)].all():
      raise ValueError(f'{action} is not valid now: {self._mask}')
    return _Fake.step(self, action)

  def _observation(self):
    self._mask = self.np_random.integers(2, size=(2, 2, 2)).astype(np.int8)
    self._mask[..., 0] |= self._mask[..., 1] == 0
    return {'action_mask': self._mask, 'steps': _Fake._observation(self)}


class NothingValid(Masked):
  """After two steps, no action is valid, but the game goes on."""

  def _observation(self):
    observation = super()._observation()
    if self._steps == 2:
      observation['action_mask'][:] = 0
    return observation


class OneInvalidPart(MaskedParts):
  """No value of the second part is valid."""

  def _observation(self):
    observation = super()._observation()
    observation['action_mask'][1][:] = 0
    return observation


class MaskOfTwos(Masked):
  """A mask that is a count."""

  def _observation(self):
    observation = super()._observation()
    return {**observation, 'action_mask': 2 * observation['action_mask']}


class ShortMask(Masked):
  """One number less than the space has."""

  def _observation(self):
    observation = super()._observation()
    return {**observation, 'action_mask': observation['action_mask'][1:]}


class MaskOfOtherSize(Masked):
  observation_space = spaces.Dict({
      'shown': spaces.Box(0, 1, (5,), np.float32),
      'action_mask': spaces.MultiBinary(4)})


class MaskOfOtherKind(Masked):
  observation_space = spaces.Dict({
      'shown': spaces.Box(0, 1, (5,), np.float32),
      'action_mask': spaces.Box(-1, 1, (5,), np.float32)})


class OnlyMask(Masked):
  observation_space = spaces.Dict({'action_mask': spaces.MultiBinary(5)})


class MaskOfBox(Masked):
  action_space = spaces.Box(-1, 1, (5,), np.float32)


class Bits(_Echo):
  """Actions are bits."""
  observation_space = spaces.Box(0, 1, (4,), np.float64)
  action_space = spaces.MultiBinary((2, 2))

  def _observation(self):
    return np.resize(super()._observation(), 4)


class Sized(_Fake):
  """Its size and label are arguments; it shows the number in the run."""

  def __init__(self, size=3, label=None):
    self.observation_space = spaces.Box(-1, 1000, (size,), np.float32)
    self._shown = np.full([size], os.environ[
        'SCALABLE_AGENT_ENVIRONMENT_NUMBER'], np.float32)
    if label is not None:
      self._shown[0] = label['number'][-1]

  def _observation(self):
    return self._shown


class Wide(Sized):
  """Hands its arguments on."""

  def __init__(self, **kwargs):
    super().__init__(**kwargs)


class RaisesTypeError(_Fake):
  """Its own mistake is no argument of the user."""

  def __init__(self, size=3):
    Sized(size, bad=1)


class NumberedGoals(Goals):
  """Rewards of goals are the number in the run."""

  def __init__(self):
    self._number = float(os.environ['SCALABLE_AGENT_ENVIRONMENT_NUMBER'])

  def compute_reward(self, achieved_goal, desired_goal, info):
    return np.full(np.shape(achieved_goal)[:-1], self._number)


class Steps(gymnasium.Env):
  """The reward of each of three steps is `reward`."""
  observation_space = spaces.Box(-1, 1, (2,), np.float32)
  action_space = spaces.Discrete(2)

  def __init__(self, reward=1.):
    self._reward = reward

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self._step = 0
    return np.zeros(2, np.float32), {}

  def step(self, action):
    self._step += 1
    return np.zeros(2, np.float32), self._reward, self._step == 3, False, {}


class TupleOfParts(Sampled):
  """Vectors and a number in a tuple, of more than ten parts."""
  observation_space = spaces.Tuple([
      spaces.Box(-1, 1, (3,), np.float64), spaces.Discrete(4),
      *(spaces.Box(0, i, (1,), np.float32) for i in range(1, 11))])


class GoalsInArrays(Goals):
  """Each reward is an array of one number."""

  def compute_reward(self, achieved_goal, desired_goal, info):
    return np.reshape(super().compute_reward(
        achieved_goal, desired_goal, info), [-1])

  def step(self, action):
    observation, reward, *rest = super().step(action)
    return observation, np.reshape(reward, [1]), *rest


class OddForms(_Fake):
  """Results whose forms trainings accept, and gymnasium's vectors do not."""
  observation_space = spaces.Box(0, 255, (3,), np.uint8)

  def reset(self, *, seed=None, options=None):
    self._steps = 0
    return [0, 100, 200], {'a': 2**70}

  def step(self, action):
    self._steps += 1
    return [self._steps, 100, 200], np.array([1.]), self._steps == 3, False, {
        'a': 2**70}


class ListOfParts(_Fake):
  """A tuple, returned as a list."""
  observation_space = spaces.Tuple([
      spaces.Box(-1, 1, (2,), np.float32), spaces.Discrete(3)])

  def _observation(self):
    return [np.zeros(2, np.float32), 1]


class NothingToDo(_Fake):
  action_space = spaces.MultiDiscrete(np.zeros(0, np.int64))


class OwnSpace(_Fake):
  observation_space = spaces.Dict({'a': type('Own', (spaces.Space,), {})()})


class PlaceFromZero(_Fake):
  observation_space = spaces.Discrete(4)

  def _observation(self):
    return int(self.observation_space.start)


class PlaceFromThree(PlaceFromZero):
  observation_space = spaces.Discrete(4, start=3)


def _minigrid(wrapper):
  """Returns a function that makes a level of MiniGrid, in a wrapper."""

  def make(**kwargs):
    from minigrid import wrappers  # Few tests need the package.
    if wrapper == 'ViewSizeWrapper':
      return wrappers.ViewSizeWrapper(
          gymnasium.make('BabyAI-PutNextS5N2Carrying-v0', **kwargs), 5)
    env = gymnasium.make('MiniGrid-Empty-5x5-v0', **kwargs)
    if wrapper == 'Told':
      return gymnasium.wrappers.TransformObservation(
          env, lambda o: {**o, 'mission': 'go'}, env.observation_space)
    return getattr(wrappers, wrapper)(env) if wrapper else env.unwrapped

  return make


def _doom(wraps):
  """Returns a function that makes a level of ViZDoom, perhaps in a wrapper."""

  def make(**kwargs):
    from vizdoom.gymnasium_wrapper import gymnasium_env_defns
    env = gymnasium_env_defns.VizdoomScenarioEnv('basic.cfg', **kwargs)
    return gymnasium.wrappers.TransformObservation(
        env, lambda o: o['screen'],
        env.observation_space['screen']) if wraps else env

  return make


gymnasium.register('MiniGridFake-v0', f'{__name__}:Plain')
gymnasium.register('VizdoomEnvironmentOfAUser-v0', f'{__name__}:Plain')
gymnasium.register('VizdoomEnvironmentOfAUserScreen-v0', _doom(False))
gymnasium.register('VizdoomEnvironmentOfAUserWrapped-v0', _doom(True))
gymnasium.register('MinAtar/Fake-v0', f'{__name__}:Plain')
for _name, _wrapper in (('Own', ''), ('Image', 'ImgObsWrapper'),
                        ('Whole', 'FullyObsWrapper'), ('Told', 'Told'),
                        ('Small', 'ViewSizeWrapper')):
  gymnasium.register(f'MiniGrid-Fake{_name}-v0', _minigrid(_wrapper))

for _class in list(globals().values()):
  if (isinstance(_class, type) and issubclass(_class, _Fake)
      and not _class.__name__.startswith('_')):
    gymnasium.register(
        id=f'fake/{_class.__name__}-v0',
        entry_point=f'{__name__}:{_class.__name__}')
