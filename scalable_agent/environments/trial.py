# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""A trial of an environment: random steps, and the facts that they show."""

import collections
from collections.abc import Iterator, Mapping, Sequence
import contextlib
import re
import signal
import time
from typing import Any, NamedTuple
import warnings

import gymnasium
from gymnasium.utils import env_checker
import numpy as np
from scalable_agent import errors
from scalable_agent.environments import base
from scalable_agent.environments import encoding
from scalable_agent.environments import goals
from scalable_agent.environments import spaces
from scalable_agent.experience import structs
from scalable_agent.processes import shared_arrays
from scalable_agent.processes import user_code
from scalable_agent.processes import workers

# A trial takes at most as many times its seconds, with gymnasium's checker.
MAX_TRIALS = 4
_MAX_STEPS, _MAX_WARNINGS = 5_000, 8
# Steps of each of the three episodes that are compared.
_COMPARED_STEPS = 20
# Resets that gymnasium's checker makes, at most.
_CHECKER_RESETS = 20
# Agents act within [-1, 1] and need no bounds of observations.
_NEEDLESS = re.compile(
    'symmetric and normalized space|(max|min)imum value is -?infinity')
_COLOURS = re.compile(r'\x1b\[[0-9;]*m')
_ACTION_SEED = 1
_SLOW_RESET_S = 0.02
# A policy step of a few environments, for the order of magnitude.
_POLICY_STEP_S = 0.001
_CLOSE_TIMEOUT_S, _NEVER_S = 10., 1e6  # `setitimer` refuses more seconds.


class Part(NamedTuple):
  """A part of the observations: its space as text, and the numbers seen."""
  space: str
  low: float = float('inf')
  high: float = float('-inf')


class Facts(NamedTuple):
  """The facts of a trial.

  Attributes:
    parts: parts of the observation by name; `frame` if there is one only.
    action_space: the space of actions, as text.
    spec: observations and actions of agents.
    outside: number of observations that are not in their space, by part.
    rewards: float64 `[N]`.
    lengths: steps of each episode that ended.
    returns: sum of the rewards of each episode that ended.
    num_terminated: episodes that ended without a time limit.
    step_s: seconds in `step`.
    num_resets: calls of `reset`.
    reset_s: seconds in `reset`.
    repeats: whether a seed gives the same episode again; None if not tried.
    differs: whether another seed gives another episode; None if not tried.
    checker: the fault that gymnasium's checker found, '' for none, None if the
      checker was not run: resets are slow, or some actions are invalid.
    warnings: warnings of the environment and of the checker, each once.
    has_time_limit: whether the environment is registered with a time limit;
      None if the environment is not registered.
    can_use_hindsight: see `goals.can_use_hindsight`.
    unused_masks: places that may have masks of actions, which agents do not
      look at.
  """
  parts: dict[str, Part]
  action_space: str
  spec: structs.EnvironmentSpec
  outside: dict[str, int]
  rewards: np.ndarray
  lengths: list[int]
  returns: list[float]
  num_terminated: int
  step_s: float
  num_resets: int
  reset_s: float
  repeats: bool | None
  differs: bool | None
  checker: str | None
  warnings: list[str]
  has_time_limit: bool | None = None
  can_use_hindsight: bool = False
  unused_masks: Sequence[str] = ()

  @property
  def mean_step_s(self) -> float:
    """Seconds of a step, without resets."""
    return self.step_s / len(self.rewards)

  @property
  def reset_s_per_step(self) -> float:
    """Seconds of a reset, spread over the steps of an episode."""
    return self.reset_s / self.num_resets / float(
        np.mean(self.lengths or [len(self.rewards)]))

  def resets_hold_up(self, num_environments: int) -> bool:
    """Whether a group mostly waits for the resets of its environments."""
    return self.reset_s / self.num_resets > _SLOW_RESET_S and (
        num_environments * self.reset_s_per_step
        > self.mean_step_s + _POLICY_STEP_S)


_Trace = collections.deque[tuple[dict[str, np.ndarray], float]]


class Trial:
  """An environment, in its own process, see `processes.remote`."""

  def __init__(self, level_name: str, factory: base.Factory,
               step_timeout_s: float, reset_timeout_s: float):
    self._name, self._factory = level_name, factory
    self._step_timeout_s = step_timeout_s
    self._reset_timeout_s = reset_timeout_s  # Also of `__init__`.
    self._method = '__init__'
    self._env: gymnasium.Env | None = None
    self._outside: collections.Counter[str] = collections.Counter()
    self._num_terminated = self._num_resets = 0
    self._info: object = None  # Of the last reset.
    self._rewards: list[float] = []
    self._lengths: list[int] = []
    self._returns: list[float] = []
    self._num_steps, self._return = 0, 0.  # Of the running episode.
    self._step_s = self._reset_s = 0.

  def play(self, seconds: float, checks: bool) -> Facts:
    """Plays at least one step, at most 5,000 steps or about some seconds.

    `checks` also compares seeds and runs gymnasium's checker. Without `checks`,
    the first reset does not count: this reset may load or compile.

    Raises EnvironmentProcessError with the frames of the user if the
    environment raises an error, or returns a wrong value.
    """
    with warnings.catch_warnings(record=True) as caught:
      warnings.simplefilter('default')
      try:
        return self._play(seconds, checks, caught)
      except errors.UserError:
        raise
      except Exception as e:
        raise user_code.report(e, self._env, self._method).error(
            self._name) from e
      finally:
        if self._env is not None:
          with user_code.errors_of_close_ignored(), self._limited('close'):
            self._env.close()

  @contextlib.contextmanager
  def _limited(self, method: str) -> Iterator[None]:
    """Raises TimeoutError in a method of the environment that hangs."""
    self._method = method
    reset_s, step_s = self._reset_timeout_s, self._step_timeout_s
    limit_s = {'step': step_s, 'close': min(reset_s, _CLOSE_TIMEOUT_S)}.get(
        method, reset_s)

    def end(*unused_args: object) -> None:
      more_s = limit_s - self._step_timeout_s
      more = f', and {more_s:g} s more' if more_s else ''
      raise TimeoutError(
          f'`{method}` did not return within {limit_s:g} seconds '
          f'(--step_timeout_s{more})')

    previous = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, min(limit_s, _NEVER_S))
    try:
      yield
    finally:
      signal.setitimer(signal.ITIMER_REAL, 0)
      signal.signal(signal.SIGALRM, previous)

  def _play(self, seconds: float, checks: bool,
            caught: list[warnings.WarningMessage]) -> Facts:
    end_s = time.monotonic() + seconds
    workers.seed_process(_ACTION_SEED)
    with self._limited('__init__'):
      env = self._env = base.build(self._name, self._factory)
    self._action = spaces.action_spec(env.action_space, self._name)
    self._layout = spaces.layout(
        env.observation_space, self._action, self._name)
    self._encode = encoding.Encoder(env.observation_space, env.action_space)
    self._arrays = {
        name: np.zeros([1, *spec.shape], spec.dtype)
        for name, spec in self._layout.arrays.items()}
    self._spaces = spaces.parts_of(env.observation_space)
    self._parts = {name: Part(_text_of(part))
                   for name, part in self._spaces.items()}
    repeats = differs = None
    if checks:
      repeats, differs = self._compare(env, end_s)
    else:
      self._reset(env)
      # The next reset may take as long, before the steps.
      end_s = time.monotonic() + self._reset_s + seconds
      self._num_resets, self._reset_s = 0, 0.
    if not self._rewards or time.monotonic() < end_s:
      self._run(env, _MAX_STEPS - len(self._rewards), end_s)
    checker = None
    # The checker plays invalid actions.
    if checks and not spaces.has_mask(env.observation_space) and (
        _CHECKER_RESETS * self._reset_s / self._num_resets < seconds):
      checker = self._check(env)
    texts = (_COLOURS.sub('', str(warning.message)) for warning in caught)
    return Facts(
        self._parts, _text_of(env.action_space),
        structs.EnvironmentSpec(self._layout.spec, self._action, 1),
        dict(self._outside), np.array(self._rewards),
        self._lengths, self._returns, self._num_terminated, self._step_s,
        self._num_resets, self._reset_s, repeats, differs, checker,
        [text for text in dict.fromkeys(texts)
         if not _NEEDLESS.search(text)][:_MAX_WARNINGS],
        env.spec and env.spec.max_episode_steps is not None,
        goals.can_use_hindsight(env), self._unused_masks(env))

  def _unused_masks(self, env: gymnasium.Env) -> list[str]:
    """Returns `unused_masks` of `Facts`."""
    size = sum(self._action.num_values)
    if spaces.MASK in self._spaces or not size:  # Continuous: no masks.
      return []
    found = {
        "info['action_mask']": isinstance(self._info, Mapping) and (
            spaces.MASK in self._info),
        'action_masks()': env.has_wrapper_attr('action_masks'),
        **{f'the part {name}': 'mask' in str(name).lower()
           and part.shape == (size,)
           for name, part in self._spaces.items()}}
    return [place for place, is_there in found.items() if is_there]

  def _compare(self, env: gymnasium.Env,
               end_s: float) -> tuple[bool | None, bool | None]:
    """Returns `repeats` and `differs` of `Facts`."""
    traces: list[_Trace] = []
    for seed in (1, 1, 2, 3):
      if traces and time.monotonic() > end_s:
        break
      trace = self._run(env, _COMPARED_STEPS, end_s, seed)
      if traces and time.monotonic() > end_s:
        break  # The trace may be cut.
      traces.append(trace)
    return (_same(traces[0], traces[1]) if len(traces) > 1 else None,
            not all(_same(traces[0], trace) for trace in traces[2:])
            if len(traces) > 2 else None)

  def _run(self, env: gymnasium.Env, num_steps: int, end_s: float,
           seed: int | None = None) -> _Trace:
    """Plays some steps, with a seed of only one episode."""
    rng = np.random.default_rng(_ACTION_SEED)
    trace: _Trace = collections.deque(  # Without a seed, nothing is compared.
        [(self._reset(env, seed), 0.)], maxlen=1 if seed is None else None)
    for _ in range(num_steps):
      observation, reward, is_over = self._step(env, rng, trace[-1][0])
      trace.append((observation, reward))
      if time.monotonic() > end_s or is_over and seed is not None:
        break
      if is_over:
        trace.append((self._reset(env), 0.))
    return trace

  def _reset(self, env: gymnasium.Env,
             seed: int | None = None) -> dict[str, np.ndarray]:
    if seed is not None:
      workers.seed_process(seed)
    self._num_steps, self._return = 0, 0.
    with self._limited('reset'):
      start_s = time.monotonic()
      observation, self._info = env.reset(seed=seed)
      self._reset_s += time.monotonic() - start_s
    self._num_resets += 1
    return self._look(observation)

  def _step(self, env: gymnasium.Env, rng: np.random.Generator,
            before: dict[str, np.ndarray]
            ) -> tuple[dict[str, np.ndarray], float, bool]:
    """Returns the observation, the reward, and whether the episode ended."""
    action = spaces.random_action(rng, env.action_space, before)
    with self._limited('step'):
      start_s = time.monotonic()
      observation, reward, terminated, truncated, _ = env.step(action)
      self._step_s += time.monotonic() - start_s
    terminated, truncated = user_code.ends_of_step(terminated, truncated)
    number = user_code.number_of_reward(reward)
    if not np.isfinite(number):
      raise ValueError(f'the reward is {number}, but must be finite')
    self._rewards.append(number)
    self._num_steps, self._return = self._num_steps + 1, self._return + number
    arrays = self._look(observation, terminated)
    if terminated or truncated:
      self._num_terminated += terminated
      self._lengths.append(self._num_steps)
      self._returns.append(self._return)
    return arrays, number, terminated or truncated

  def _look(self, observation: base.RawObservation,
            is_over: bool = False) -> dict[str, np.ndarray]:
    """Records an observation; returns copies of the arrays of agents."""
    encoded = self._encode(observation, is_over)
    shared_arrays.write(self._arrays, 0, encoded)
    for name, array in self._arrays.items():
      if array.dtype.kind == 'f' and not np.isfinite(array).all():
        raise ValueError(
            f'{shared_arrays.called(name, self._arrays)} has '
            f'{array[~np.isfinite(array)][0]}, but must be finite')
    raw: Any = observation
    if not isinstance(raw, Mapping):
      raw = dict(zip(
          self._parts, [raw] if spaces.ONLY_ARRAY in self._parts else raw))
    for name, part in self._parts.items():
      self._outside[name] += not self._spaces[name].contains(raw[name])
      numbers = np.asarray(encoded[name] if name == spaces.MASK else raw[name])
      if numbers.dtype.kind in 'biuf':
        self._parts[name] = part._replace(
            low=min(part.low, float(numbers.min())),
            high=max(part.high, float(numbers.max())))
    return {name: array[0].copy() for name, array in self._arrays.items()}

  def _check(self, env: gymnasium.Env) -> str:
    """Returns the fault that gymnasium's checker finds, or ''."""
    raw, step = env.unwrapped, env.unwrapped.step
    # The checker refuses a time limit of one step, and False as a `np.bool_`.
    vars(raw)['step'] = lambda a: (*(out := step(a))[:3], False, out[4])
    try:
      env_checker.check_env(raw, skip_render_check=True, skip_close_check=True)
    except Exception as e:
      return ' '.join(user_code.report(e).text.split())
    return ''


def _text_of(space: gymnasium.Space) -> str:
  """Returns a space as text, of many different bounds the outermost."""
  if isinstance(space, gymnasium.spaces.Box) and (
      np.unique(space.low).size > 1 or np.unique(space.high).size > 1):
    return (f'Box({space.low.min():g} to {space.high.max():g}, {space.shape}, '
            f'{space.dtype})')
  return spaces.in_a_line(space)


def _same(one: _Trace, other: _Trace) -> bool:
  return len(one) == len(other) and all(
      x == y and all(np.array_equal(a[name], b[name]) for name in a)
      for (a, x), (b, y) in zip(one, other, strict=True))
