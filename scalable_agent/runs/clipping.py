# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Lines about clipped rewards, actions and observations."""

from collections.abc import Sequence
import math

import numpy as np
from scalable_agent.experience import structs
from scalable_agent.settings import sections

# Steps that are judged together.
_NUM_STEPS = 1000
# Earlier actions are not judged: a policy begins with large noise.
_NUM_FIRST_STEPS = 10_000
# The least share of clipped numbers for a line. By Chebyshev's
# inequality, at most 4 % of normalised numbers are beyond 5 deviations.
_SHARE, _SHARE_OF_OBSERVATIONS = .1, .01
# Actions beyond this size count as actions at a bound: tanh never reaches 1.
_AT_BOUND = .99
# The size beyond which rewards count as clipped, by --reward_clipping.
_LIMITS = {'abs_one': 1., 'soft_asymmetric': 5.}
_TREATMENT = {
    'none': 'not changed', 'abs_one': 'clipped to [-1, 1]',
    'soft_asymmetric': 'squashed to [-1.5, 5]'}


def said(settings: sections.AllSections, actions: structs.ActionSpec) -> str:
  """Returns a line about the treatment of numbers, for the start of a run."""
  mode = settings.reward_clipping
  steps = [f'{_TREATMENT[mode]} (--reward_clipping={mode})']
  if settings.is_off_policy and settings.reward_scale != 1:
    scaled = f'multiplied by {settings.reward_scale:g} (--reward_scale)'
    steps = [scaled] if mode == 'none' else [*steps, scaled]
  text = f'Rewards are {", then ".join(steps)}.'
  if settings.normalise_returns:
    text += (' Returns are normalised by their mean and standard deviation '
             '(--normalise_returns).')
  if settings.normalise_observations not in (None, 'none'):
    text += (f' Observations{_kinds(settings)} are normalised, and clipped to '
             '5 standard deviations (--normalise_observations='
             f'{settings.normalise_observations}).')
  if actions.size and _clips_actions(settings):
    text += ' Actions beyond a bound of the action space are clipped.'
  return text


def _kinds(settings: sections.AllSections) -> str:
  """Returns what `auto` normalises, see `normalisers.part_names`."""
  if settings.normalise_observations != 'auto':
    return ''
  return ' of floats' + ('' if ':' in settings.agent else ' or uint8')


def _clips_actions(settings: sections.AllSections) -> bool:
  """Whether actions are samples of a Gaussian without tanh."""
  return settings.algorithm == 'mpo' or settings.squash_actions is False


def at_bounds(actions: np.ndarray) -> float:
  """Returns the share of numbers at a bound, of continuous actions."""
  return float(np.mean(np.abs(actions) >= _AT_BOUND))


class Watch:
  """Looks for clipped rewards, actions and observations.

  Rewards are judged once, after 1,000 steps. Actions after the first 10,000
  steps, and observations, are judged again and again, since a policy changes,
  until a line was printed.
  """

  def __init__(self, settings: sections.AllSections):
    """Counts nothing yet."""
    self._settings = settings
    self._notes: list[structs.Note] = []
    self._num_steps = 0
    # At the bounds of [-1, 1], of samples of the Gaussian of a new policy.
    self._share_at_start = math.erfc(
        _AT_BOUND / settings.initial_scale / math.sqrt(2)) if (
            _clips_actions(settings)) else 0.
    self._actions_said = self._observations_said = False

  def __call__(self, notes: Sequence[structs.Note],
               observations: tuple[int, int] = (0, 0)) -> list[str]:
    """Returns new lines to print.

    Args:
      notes: about the unrolls that have arrived since the last call.
      observations: how many normalised numbers were counted, and how many of
        these numbers were clipped, see `statistics.Mover`.
    """
    lines = []
    num_seen, num_clipped = observations
    if not self._observations_said and (
        num_clipped > _SHARE_OF_OBSERVATIONS * num_seen):
      self._observations_said = True
      lines.append(
          f'{_percent(num_clipped / num_seen)} of the numbers of observations '
          'are beyond 5 standard deviations, and are clipped '
          '(--normalise_observations).')
    if self._actions_said:
      return lines
    self._notes.extend(notes)
    rewards, actions = ([getattr(note, name) for note in self._notes]
                        for name in ('rewards', 'actions'))
    if sum(map(len, rewards)) < _NUM_STEPS:
      return lines
    self._notes = []
    if not self._num_steps:
      lines += self._of_rewards(np.concatenate(rewards))
    return lines + self._of_actions(np.concatenate(actions))

  def _of_rewards(self, rewards: np.ndarray) -> list[str]:
    mode = self._settings.reward_clipping
    limit = _LIMITS.get(mode, np.inf)
    share = float(np.mean(np.abs(rewards) > limit))
    if share <= _SHARE:
      return []
    flag = ('--reward_scale' if self._settings.is_off_policy
            else '--normalise_returns')
    return [f'{_percent(share)} of the first {len(rewards):,} rewards are '
            f'outside [-{limit:g}, {limit:g}] (from '
            f'{rewards.min():.4g} to {rewards.max():.4g}), and are '
            f'{_TREATMENT[mode]}: sizes are lost. If sizes count, use '
            f'--reward_clipping=none, perhaps with {flag}.']

  def _of_actions(self, actions: np.ndarray) -> list[str]:
    self._num_steps += len(actions)
    if actions.dtype.kind != 'f':  # Discrete actions have no bounds.
      self._actions_said = True
      return []
    share = at_bounds(actions)
    if (self._num_steps < _NUM_FIRST_STEPS
        or share <= _SHARE + self._share_at_start):
      return []
    self._actions_said = True
    return [f'{_percent(share)} of the numbers of the last {len(actions):,} of '
            f'{self._num_steps:,} actions are at a bound of the action space'
            + (': actions beyond a bound are clipped; --squash_actions '
               'or, with appo, a smaller --initial_scale helps.'
               if self._settings.squash_actions is False else '.')]


def _percent(share: float) -> str:
  return f'{100 * share:.0f} %'
