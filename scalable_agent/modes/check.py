# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Check mode: random steps in a level, a report, and the flags that fit."""

from collections.abc import Iterator, Sequence
import dataclasses
import json
import math
import re
import shlex
import textwrap
from typing import NamedTuple

import numpy as np
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.acting import shares
from scalable_agent.environments import spaces
from scalable_agent.environments import trial
from scalable_agent.experience import structs
from scalable_agent.runs import clipping
from scalable_agent.scores import levels
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import environment_settings
from scalable_agent.settings import lab_levels
from scalable_agent.settings import program
from scalable_agent.settings import sections
from scalable_agent.settings import values

_SECONDS = 20.
_WIDTH = 79
_GOALS = {'achieved_goal', 'desired_goal'}
# More numbers make a large network.
_MANY_NUMBERS = 2_000
# SAC does not normalise rewards. The first temperature hides tiny rewards.
_MIN_REWARD, _MAX_REWARD = .01, 5_000.
# Beyond this mean size, SAC gets a scale: with rewards of 9,
# InvertedDoublePendulum had a return of 2,513 without and 9,360 with a scale.
# LunarLander has 2.9 to 3.1 and was trained without, Pendulum has 6.
_LARGE_REWARD = 4.
_SLOW_STEP_S, _SHORT_STEP_S = 0.005, 0.0002
# Environments of the recipes for your own environment.
_NUM_ACTORS = 16
_MAX_EPISODE_STEPS = 1_000


class Advice(NamedTuple):
  """A recipe and the reason for this recipe; flags, and remarks."""
  recipe: str
  reason: str
  flags: dict[str, str]
  remarks: list[str]


def run(config: config_lib.Config) -> int:
  """Prints the report; returns 1 if the environment has a fault, else 0."""
  [level, *others] = dict.fromkeys(
      levels.level_names(config.level_name, config.is_test))
  if others:
    raise errors.ConfigError(
        f'--mode=check plays one level: choose one of {config.level_name}.')
  if lab_levels.is_level(level):
    raise errors.ConfigError(
        f'{level} needs no check: the recipes dmlab_single_level and dmlab30 '
        'fit the levels of DeepMind Lab.')
  print(f'{level}: random steps, for up to {_SECONDS:g} seconds.', flush=True)
  facts = environments.play_trial(level, config, _SECONDS)
  facts = facts._replace(can_use_hindsight=(
      facts.can_use_hindsight and config.num_action_repeats == 1))
  found = faults(facts)
  advice = advise(facts, has_processes=shares.has_processes(level))
  lines = [f'  {name:13} {text}' for name, text in _report(facts)]
  for title, texts in (('Faults of the environment:', found),
                       ('Warnings:', facts.warnings),
                       ('Remarks:', advice.remarks)):
    if texts:
      lines += ['', title, *(_item(text) for text in texts)]
  lines += ['', f'Train with {advice.recipe}, {advice.reason}:', '',
            command(config, level, advice), '',
            textwrap.fill(_treatment(config, level, facts, advice), _WIDTH)]
  print('\n'.join(lines), flush=True)
  return int(bool(found))


def faults(facts: trial.Facts) -> list[str]:
  """Returns a text for each broken rule of the API."""
  texts: list[str] = []
  num_seen = len(facts.rewards) + facts.num_resets
  are_not = lambda name: (
      'are not in their' if _has_no_parts(facts)
      else f'have a part {name} that is not in its')
  texts += [f'{number:,} of {num_seen:,} observations {are_not(name)} space: '
            'bounds, shape or dtype differ.'
            for name, number in facts.outside.items() if number]
  if facts.repeats is False:
    texts.append(
        'The same seed and actions gave another episode: draw all random '
        'numbers from self.np_random, and call super().reset(seed=seed) in '
        'reset. A wrapper that normalises by the episodes so far, as '
        "gymnasium's NormalizeReward, does so, too: APPO normalises by itself.")
  if facts.checker:
    texts.append(f"gymnasium's checker: {facts.checker}")
  return texts


def advise(facts: trial.Facts, has_processes: bool = True) -> Advice:
  """Returns the recipe and the flags that fit an environment.

  `has_processes`: whether training steps such environments in processes.
  """
  recipe, reason = _recipe(facts)
  flags: dict[str, str] = {}
  remarks = [*_about_rules(facts), *_about_episodes(facts),
             *_about_steps(recipe, facts), *_about_sizes(facts),
             *_about_integers(facts)]
  if not facts.lengths and facts.has_time_limit is False:
    flags['environment_kwargs'] = (
        f'{{"max_episode_steps": {_MAX_EPISODE_STEPS}}}')
  mean_size = _mean_size(facts.rewards)
  if recipe == 'sac_vectors' and mean_size > _LARGE_REWARD:
    flags['reward_scale'] = f'{float(f"{1 / mean_size:.0e}"):g}'
  if has_processes and facts.resets_hold_up(_NUM_ACTORS):
    flags['num_actor_groups'] = str(_NUM_ACTORS)
    remarks.append('Resets are slow: in groups of one, an environment waits '
                   "for its own resets only (--num_actor_groups).")
  elif has_processes and (  # C++ threads need no flags.
      facts.mean_step_s + facts.reset_s_per_step < _SHORT_STEP_S):
    flags['environments_per_process'] = '8'
  return Advice(recipe, reason, flags, remarks)


def _about_rules(facts: trial.Facts) -> Iterator[str]:
  """Yields remarks about actions, seeds, masks, the checker, and goals."""
  if facts.spec.action.size and not facts.action_space.startswith(
      'Box(-1.0, 1.0,'):
    yield ('Agents act within [-1, 1], scaled to the bounds of '
           f'{facts.action_space}.')
  if facts.differs is False:
    yield ('Three seeds gave the same episode. A random environment draws from '
           'self.np_random.')
  if facts.unused_masks:
    yield (f'Not used as a mask of actions: {", ".join(facts.unused_masks)}. A '
           f'mask is the part {spaces.MASK} of a Dict observation.')
  if facts.checker is None:
    yield "gymnasium's checker was not run: " + (
        'it does not know the action_mask.' if spaces.MASK in facts.parts else
        'its resets would take too long.')
  if _GOALS <= set(facts.parts) and not facts.can_use_hindsight:
    yield ('Goals are taken as a part of the observation: hindsight needs '
           'goals of type Box, compute_reward, and --num_action_repeats=1.')


def _about_episodes(facts: trial.Facts) -> Iterator[str]:
  """Yields remarks about the ends of episodes, and about rewards."""
  if not facts.lengths:
    limit = {True: '', False: 'max_episode_steps', None: (
        'gymnasium.wrappers.TimeLimit')}[facts.has_time_limit]
    yield f'No episode ended in {len(facts.rewards):,} steps.' + (
        ' If episodes never end, a time limit lets the program report returns: '
        f'{limit}.' if limit else '')
  elif (len(set(facts.lengths)) > 1 and facts.has_time_limit is False
        and facts.num_terminated == len(facts.lengths)):
    yield ('No time limit is known: an agent may find actions that never end '
           'an episode. A limit: max_episode_steps of --environment_kwargs, or '
           'of gymnasium.register.')
  if not facts.rewards.any():
    yield (f'All {len(facts.rewards):,} rewards were 0. An agent learns '
           'nothing before the first other reward: reward steps on the way, '
           'too.')


def _about_steps(recipe: str, facts: trial.Facts) -> Iterator[str]:
  """Yields a remark if other algorithms fit the time of a step."""
  is_slow = facts.mean_step_s >= _SLOW_STEP_S
  if recipe == 'sac_vectors' and not is_slow:
    yield ('Steps are fast: appo_vectors needs more frames, but may reach the '
           'same return in less time.')
  if (is_slow and recipe.startswith('appo_') and _fits_replay(facts)
      and not facts.spec.action.size):
    yield ('Steps are slow: --algorithm=ddqn, in place of --recipe, learns '
           'from each step many times.')


def _about_sizes(facts: trial.Facts) -> Iterator[str]:
  """Yields a remark for each part of the observations that is large."""
  for name, spec in _specs(facts):
    what = _the_part(facts, name)
    if len(spec.shape) == 3 or math.prod(spec.shape) <= _MANY_NUMBERS:
      continue
    if len(spec.shape) == 4:
      yield (f'{what} seems to be a stack of pictures, but is learned as a '
             'vector: a picture has three axes, the channels of all pictures '
             'of a stack in the last.')
      continue
    if len(spec.shape) == 2 and spec.dtype == np.uint8:
      height, width = spec.shape
      yield (f'{what} seems to be a picture, but is learned as a vector: a '
             f'picture needs a channel axis, [{height}, {width}, 1], for '
             'example by gymnasium.wrappers.ReshapeObservation.')
    else:
      yield f'{what} is large: {math.prod(spec.shape):,} numbers' + (
          ', as a Discrete has one for each value.'
          if facts.parts[name].space.startswith('Discrete') else '.')


def _about_integers(facts: trial.Facts) -> Iterator[str]:
  """Yields a remark for each part of the observations with large integers."""
  for name, spec in _specs(facts):
    if spec.dtype.kind not in 'iu' or spec.dtype == np.uint8:
      continue
    low, high = facts.parts[name].low, facts.parts[name].high
    largest = max(abs(low), abs(high)) if high >= low else 0
    if largest > spaces.MAX_COUNT:
      yield (f'{_the_part(facts, name)} has integers of {spec.dtype}, up to '
             f'{largest:,.0f}, which are not scaled, and which '
             '--normalise_observations=auto leaves out: choose uint8 for '
             'pictures, float32 for quantities, MultiDiscrete for codes.')


def _recipe(facts: trial.Facts) -> tuple[str, str]:
  """Returns a recipe and the reason for this recipe."""
  is_continuous = facts.spec.action.size > 0
  if (_GOALS <= set(facts.parts) and facts.can_use_hindsight
      and _fits_replay(facts)):
    return (('sac_fetch_reach' if is_continuous else 'ddqn_bit_flipping'),
            'for goals: with hindsight')
  if any(len(spec.shape) == 3 for _, spec in _specs(facts)):
    return 'appo_frames', 'for frames'
  mean_size = _mean_size(facts.rewards)
  if is_continuous and _fits_replay(facts) and (
      not mean_size or _MIN_REWARD <= mean_size <= _MAX_REWARD):
    return 'sac_vectors', 'for continuous actions: needs the fewest frames'
  return 'appo_vectors', 'for vectors, with normalisation'


def _fits_replay(facts: trial.Facts) -> bool:
  """Whether off-policy recipes fit: an action of one part, no instruction."""
  return not facts.spec.action.num_values[1:] and spaces.TEXT not in facts.parts


def _mean_size(rewards: np.ndarray) -> float:
  """Returns the mean size of the rewards that are not 0; 0 if all are 0."""
  sizes = np.abs(rewards[rewards != 0])
  return float(sizes.mean()) if sizes.size else 0.


def command(config: config_lib.Config, level: str, advice: Advice) -> str:
  """Returns the command of the training, for a shell."""
  flags = {**advice.flags, **_given(config, level)}
  if 'environment_kwargs' in advice.flags:
    flags['environment_kwargs'] = json.dumps(
        {'max_episode_steps': _MAX_EPISODE_STEPS, **config.kwargs})
  name = re.sub(r'\W+', '_', level.rpartition(':')[2])
  words = [f'--recipe={advice.recipe}', f'--level_name={level}',
           f'--logdir=/tmp/scalable_agent/{name}',
           *(f'--{flag}={value}' for flag, value in flags.items())]
  return ' \\\n      '.join([f'  {program.name()}', *map(shlex.quote, words)])


def _treatment(config: config_lib.Config, level: str, facts: trial.Facts,
               advice: Advice) -> str:
  """Returns the frames, and what happens to rewards, observations, actions."""
  settings = config_lib.Config.from_recipe(
      advice.recipe, level_name=level,
      num_action_repeats=config.num_action_repeats,
      reward_scale=float(advice.flags.get('reward_scale', 1)))
  times = settings.num_action_repeats
  repeats = (f'Each action is repeated for {times} frames' if times > 1 else
             'Actions are not repeated')
  return (
      f'The training ends after {settings.total_environment_frames:,} frames '
      '(--total_environment_frames). '
      f'{clipping.said(settings, facts.spec.action)} {repeats} '
      f'(--num_action_repeats={times}).')


def _given(config: config_lib.Config, level: str) -> dict[str, str]:
  """Returns the flags of the environment that have no default value."""
  default = config_lib.Config(level_name=level, algorithm=config.algorithm)
  if config.step_timeout_s == environment_settings.CHECK_TIMEOUT_S:
    config = dataclasses.replace(config, step_timeout_s=default.step_timeout_s)
  names = [field.name for field in dataclasses.fields(
      sections.EnvironmentSettings) if field.name != 'mode']
  return {name: values.as_text(getattr(config, name)) for name in names
          if getattr(config, name) != getattr(default, name)}


def _percent(share: float) -> str:
  return ('under 1' if 0 < share < .005 else
          'over 99' if .995 <= share < 1 else f'{100 * share:.0f}')


def _report(facts: trial.Facts) -> Iterator[tuple[str, str]]:
  """Yields the names and texts of the lines of the report."""
  short = lambda text: textwrap.shorten(text, _WIDTH - 40, placeholder=' ...')
  for name, part in facts.parts.items():
    seen = (f'; seen {_range([part.low, part.high])}'
            if part.low <= part.high else '')
    yield ('observations' if _has_no_parts(facts) else str(name)), (
        short(part.space) + seen)
  yield 'actions', short(facts.action_space)
  rewards, lengths = facts.rewards, facts.lengths
  yield 'rewards', (
      f'{_range(rewards)}, mean {_number(rewards.mean())}, standard deviation '
      f'{_number(rewards.std())}; {_percent(np.mean(rewards == 0))} % are 0')
  yield 'episodes', (
      f'{len(lengths):,}, of {_range(lengths)} steps each; '
      f'{facts.num_terminated:,} terminated, '
      f'{len(lengths) - facts.num_terminated:,} truncated (time limit)'
      if lengths else f'none ended in {len(rewards):,} steps')
  if lengths:
    yield 'returns', (f'{_range(facts.returns)}, mean '
                      f'{_number(np.mean(facts.returns))} (random actions)')
  yield 'speed', (
      f'{len(rewards) / max(facts.step_s, 1e-9):,.0f} steps/s of one '
      f'environment, {_number(1000 * facts.reset_s / facts.num_resets)} ms per '
      'reset')
  yield 'seeds', {True: 'the same seed repeats an episode', False: (
      'the same seed does not repeat an episode'), None: 'not compared'}[
          facts.repeats] + {True: ', other seeds differ', False: (
              ', other seeds do not differ'), None: ''}[facts.differs]
  yield 'gymnasium', {None: 'its checker was not run', '': (
      'its checker finds no fault')}.get(facts.checker, 'a fault, see below')


def _range(values: Sequence[float] | np.ndarray) -> str:
  low, high = _number(min(values)), _number(max(values))
  return low if low == high else f'{low} to {high}'


def _number(value: float | np.floating) -> str:
  return f'{value:,.0f}' if abs(float(value)) >= 1000 else f'{value:.3g}'


def _has_no_parts(facts: trial.Facts) -> bool:
  return list(facts.parts) == ['frame']


def _the_part(facts: trial.Facts, name: str) -> str:
  return 'The observation' if _has_no_parts(facts) else f'The part {name}'


def _specs(facts: trial.Facts) -> list[tuple[str, structs.ArraySpec]]:
  """Returns the parts of the observations of agents, with names."""
  seen = facts.spec.observation
  return list(seen.items()) if isinstance(seen, dict) else [('frame', seen)]


def _item(text: str) -> str:
  return textwrap.fill(text, _WIDTH, initial_indent='- ',
                       subsequent_indent='  ')
