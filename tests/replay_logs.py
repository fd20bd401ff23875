# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Random streams of steps, as lists; and the unrolls that are made of them."""

import dataclasses

import numpy as np
from scalable_agent.experience import structs


@dataclasses.dataclass
class Step:
  """A step of one environment, as it came from the environment.

  The numbers of observations are different in all steps of all streams.
  """
  observation: float
  action: int
  reward: float
  done: bool = False
  truncated: bool = False
  episode_end: bool = False
  episode_step: int = 0
  last_observation: float = -1.0


SPEC = structs.EnvironmentSpec(
    structs.ArraySpec((2,), np.dtype(np.float32)),
    structs.ActionSpec(num_values=(1000,)), 1)
GOAL_SPEC = SPEC._replace(observation={
    'observation': structs.ArraySpec((2,), np.dtype(np.float32)),
    'achieved_goal': structs.ArraySpec((1,), np.dtype(np.float32)),
    'desired_goal': structs.ArraySpec((1,), np.dtype(np.float32))})
GOAL = -7.0  # Of all steps.


def random_log(rng, stream, length, end=0.3):
  """Returns `length` steps after a first one that nothing led to."""
  log = [Step(1000.0 * stream, -1, np.nan, done=True)]
  for i in range(1, length + 1):
    step = Step(1000.0 * stream + i, int(rng.integers(1000)),
                float(rng.integers(-9, 10)),
                episode_step=1 if log[-1].episode_end
                else log[-1].episode_step + 1)
    if rng.random() < end:
      kind = rng.integers(4)
      step.done = True
      step.episode_end = kind in (1, 2)  # Otherwise the game goes on.
      step.truncated = kind in (2, 3)
      if step.episode_end:
        step.last_observation = step.observation + 0.5
    log.append(step)
  return log


def unroll(logs, environments, start, length):
  """Returns the entries `start` to `start + length` of some logs."""
  columns = [logs[e][start:start + length + 1] for e in environments]
  get = lambda name, dtype: np.array(
      [[getattr(step, name) for step in column] for column in columns],
      dtype).T
  observation = lambda x: np.array([x, -x], np.float32)
  nothing = np.zeros([length + 1, len(columns)], np.float32)
  lasts = [
      structs.LastObservation(t, c, observation(step.last_observation))
      for t in range(1, length + 1) for c, column in enumerate(columns)
      for step in [column[t]] if step.episode_end]
  return structs.Unroll(
      structs.Steps(
          structs.StepOutput(
              get('reward', np.float32),
              structs.StepOutputInfo(
                  nothing, get('episode_step', np.int32),
                  get('episode_end', bool)),
              get('done', bool),
              np.stack([get('observation', np.float32),
                        -get('observation', np.float32)], -1),
              get('truncated', bool)),
          structs.AgentOutput(get('action', np.int32), nothing, nothing),
          nothing),
      structs.Start(
          np.array([''] * len(columns), object),
          np.array(environments, np.int64), (),
          np.zeros([len(columns)], np.int64)),
      tuple(lasts))


def goals(observation):
  """Returns the dictionary of `[..., 2]`; achieved is twice the number."""
  achieved = 2 * observation[..., :1]
  return {'observation': observation, 'achieved_goal': achieved,
          'desired_goal': np.full_like(achieved, GOAL)}


def with_goals(unroll_):
  """Returns the unroll with dictionaries for observations."""
  env_outputs = unroll_.steps.env_outputs
  return unroll_._replace(
      steps=unroll_.steps._replace(env_outputs=env_outputs._replace(
          observation=goals(env_outputs.observation))),
      last_observations=tuple(
          last._replace(observation=goals(last.observation))
          for last in unroll_.last_observations))


def transition(log, i, num_steps, discount):
  """Returns the transition from step `i` of a log, straight from its meaning.

  Returns:
    Observation, action, reward, discount, next observation.
  """
  reward, factor = 0.0, 1.0
  for j in range(i + 1, min(i + num_steps, len(log) - 1) + 1):
    step = log[j]
    reward += factor * step.reward
    factor *= discount
    after = step.last_observation if step.episode_end else step.observation
    if step.done:
      if not step.truncated:
        factor = 0.0
      break
  return log[i].observation, log[i + 1].action, reward, factor, after


def as_tuples(transitions):
  """Returns the same form of `structs.Transition` of `[N, ...]`."""
  for observation in (transitions.observation, transitions.next_observation):
    np.testing.assert_array_equal(observation[:, 0], -observation[:, 1])
  return sorted(
      (float(o[0]), int(a), round(float(r), 3), round(float(d), 5),
       float(o2[0])) for o, a, r, d, o2 in zip(*transitions, strict=True))


def rounded(transitions):
  return sorted((o, a, round(r, 3), round(d, 5), o2)
                for o, a, r, d, o2 in transitions)
