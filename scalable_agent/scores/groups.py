# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Groups of runs that differ by seed only, and their statistics."""

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
import dataclasses
import itertools
from typing import NamedTuple

import numpy as np
from scalable_agent.scores import levels as levels_lib
from scalable_agent.scores import statistics
from scalable_agent.scores import suites
from scalable_agent.settings import sections

_MAX_SETTINGS_IN_NAME = 3
# A run ends with a whole batch.
_MAX_RATIO_OF_FRAMES = 1.1


class SeedRun(NamedTuple):
  """A run, and its score on each level.

  Attributes:
    config: the settings of the training.
    num_env_frames: the frames of the training.
    scores: mean return by level.
    group: name of the runs to count together; '' for runs of equal settings.
  """
  config: sections.AllSections
  num_env_frames: int
  scores: Mapping[str, float]
  group: str = ''


class Group(NamedTuple):
  """Runs that differ by seed and level only.

  Attributes:
    name: the settings that differ from those of other groups.
    scores: float64 `[R]`, the score of each seed, by level.
    lengths: the least and the most frames of a training, by level.
    unscaled: the levels without a known scale.
  """
  name: str
  scores: Mapping[str, np.ndarray]
  lengths: Mapping[str, tuple[int, int]]
  unscaled: Sequence[str]

  @property
  def is_repeated(self) -> bool:
    """Whether any level has several seeds."""
    return any(len(scores) > 1 for scores in self.scores.values())

  @property
  def num_runs(self) -> int:
    """The number of runs of each level; 0 if levels have other numbers."""
    numbers = {len(scores) for scores in self.scores.values()}
    return numbers.pop() if len(numbers) == 1 else 0

  def percents(self) -> np.ndarray | None:
    """Returns normalised scores `[R, L]`; None if these are not known."""
    if not self.num_runs or self.unscaled:
      return None
    return np.stack([suites.percent(level, scores)
                     for level, scores in self.scores.items()], axis=-1)

  def joint_scores(self) -> np.ndarray | None:
    """Returns scores `[R, L]` with a common scale; None without such a scale.

    Scores are normalised, or the returns of the only level.
    """
    percents = self.percents()
    if percents is None and len(self.scores) == 1:
      return next(iter(self.scores.values()))[:, None]
    return percents

  def functions(self) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Returns the statistics of `joint_scores` by name."""
    return (statistics.OF_LEVEL if self.percents() is None
            else statistics.OVER_LEVELS)


class Line(NamedTuple):
  """Statistics of a group on one level, or over all its levels.

  Attributes:
    group: name of the group.
    level: name of the level; '' for all levels, with scores in percent.
    num_runs: runs on each level.
    estimates: `statistics.Estimate` by name of the statistic.
    profile: `statistics.profile` at `PROFILE_PERCENTS`; empty for one level.
  """
  group: str
  level: str
  num_runs: int
  estimates: Mapping[str, statistics.Estimate]
  profile: tuple[statistics.Estimate, ...] = ()


class Comparison(NamedTuple):
  """A comparison of two groups.

  Attributes:
    first: name of a group.
    second: name of another group.
    is_percent: whether the difference is one of normalised scores; if not, of
      the returns of the only level.
    contest: the comparison; None for levels without known normalisation, where
      only `probability` is defined.
    probability: as `statistics.Contest.probability`.
  """
  first: str
  second: str
  is_percent: bool
  contest: statistics.Contest | None
  probability: statistics.Estimate


class RunStatistics(NamedTuple):
  """The statistics over runs of all groups."""
  lines: tuple[Line, ...] = ()
  comparisons: tuple[Comparison, ...] = ()
  remarks: tuple[str, ...] = ()


def key(config: sections.AllSections) -> tuple[tuple[str, object], ...]:
  """Returns all settings but those that vary within an experiment."""
  return tuple((field.name, getattr(config, field.name))
               for field in dataclasses.fields(config)
               if not field.metadata['varies'])


def experiment(run: SeedRun) -> tuple[tuple[str, object], ...]:
  """Returns the settings that tell the experiment of a run from others.

  Agents of one level each are one experiment, as the experts of the paper. An
  agent of several levels, or one that plays another level here, is not.
  """
  trained_on = set(map(levels_lib.test_level, levels_lib.level_names(
      run.config.level_name, is_test=True)))
  is_expert = len(trained_on) == 1 and (
      trained_on == set(map(levels_lib.test_level, run.scores)))
  return tuple(
      (name, 'one each' if is_expert and name == 'level_name' else value)
      for name, value in key(run.config))


def of_runs(runs: Sequence[SeedRun]) -> tuple[list[Group], list[str]]:
  """Returns the groups of runs, and remarks on runs without a group."""
  by_key: dict[tuple, list[SeedRun]] = {}
  named: dict[str, list[SeedRun]] = {}
  for run in runs:
    if run.group:
      named.setdefault(run.group, []).append(run)
    else:
      by_key.setdefault(experiment(run), []).append(run)
  groups, remarks = [], []
  for name, members in (
      *named.items(), *zip(_names(list(by_key)), by_key.values())):
    tests = collections.Counter(
        (level, run.config.seed) for run in members for level in run.scores)
    twice = [(*test, number) for test, number in tests.items() if number > 1]
    if twice:
      level, seed, number = twice[0]
      if len({run.config.seed for run in members}) > 1:
        remarks.append(
            f'No statistics over the seeds of {name}: seed {seed} on {level} '
            f'is there {number} times.')
      else:
        runs_text = ('runs' if len(named) + len(by_key) == 1
                     else f'the runs of {name}')
        remarks.append(
            f'No statistics over {runs_text}: all have --seed={seed}.')
      continue
    group = _group(name, members)
    if group.is_repeated:
      remarks += _different_lengths(group, is_suite=bool(members[0].group))
      remarks += _different_settings(name, members)
    groups.append(group)
  seeds = [run.config.seed for run in runs]
  if 1 < len(by_key) == len(runs) == len(set(seeds)):
    remarks.append(
        f'No statistics over seeds {", ".join(map(str, seeds))}: the runs also '
        f'differ in other settings ({", ".join(_names(list(by_key)))}).')
  return groups, remarks


def _group(name: str, runs: Sequence[SeedRun]) -> Group:
  """Returns a group, with the scores in the order of the seeds."""
  found = _by_level(sorted(runs, key=lambda run: run.config.seed))
  frames = {level: [run.num_env_frames for run in of_level]
            for level, of_level in found.items()}
  return Group(
      name,
      {level: np.array([run.scores[level] for run in of_level], np.float64)
       for level, of_level in found.items()},
      {level: (min(of_level), max(of_level))
       for level, of_level in frames.items()},
      # Arguments may make another task of a level.
      [level for level, of_level in found.items() if not suites.range_of(level)
       or any(run.config.environment_kwargs for run in of_level)])


def _by_level(runs: Sequence[SeedRun]) -> dict[str, list[SeedRun]]:
  levels = sorted({level for run in runs for level in run.scores})
  return {level: [run for run in runs if level in run.scores]
          for level in levels}


def _are_unequal(*frames: int) -> bool:
  return max(frames) > _MAX_RATIO_OF_FRAMES * min(frames)


def _different_lengths(group: Group, is_suite: bool) -> Iterator[str]:
  lengths = {f' on {level}': ends for level, ends in group.lengths.items()}
  if not is_suite:  # Levels of a suite may have lengths of their own.
    ends = [frames for ends in lengths.values() for frames in ends]
    lengths = {'': (min(ends), max(ends))}
  for where, (low, high) in lengths.items():
    if _are_unequal(low, high):
      yield (f'Different lengths in {group.name}{where}: {low:,} to {high:,} '
             'frames.')


def _different_settings(name: str, runs: Sequence[SeedRun]) -> Iterator[str]:
  """Yields a line if the seeds of a level differ in other settings."""
  differ = {level: _differ([dict(key(run.config)) for run in found])
            for level, found in _by_level(runs).items()}
  differ = {level: names for level, names in differ.items() if names}
  if differ:
    names = list(dict.fromkeys(itertools.chain(*differ.values())))
    yield (f'Seeds of {name} differ in other settings: {_some(names)} on '
           f'{_some(list(differ))}.')


def _differ(settings: Sequence[dict[str, object]]) -> list[str]:
  return [name for name in settings[0]
          if len({str(one[name]) for one in settings}) > 1]


def _names(keys: Sequence[tuple[tuple[str, object], ...]]) -> list[str]:
  """Returns the names of groups: the first settings that tell these apart."""
  if len(keys) <= 1:
    return ['all runs'] * len(keys)
  settings = [dict(key) for key in keys]
  differ = sorted(_differ(settings), key=lambda name: name != 'algorithm')
  names: list[str] = []
  for size in range(1, _MAX_SETTINGS_IN_NAME + 1):
    names = [' '.join(f'{name}={group[name]}' for name in differ[:size])
             for group in settings]
    if len(set(names)) == len(names):
      return names
  return [f'{number} {name} ...' for number, name in enumerate(names, 1)]


def report(groups: Sequence[Group],
           remarks: Sequence[str] = ()) -> RunStatistics:
  """Returns the statistics of groups; only remarks without two seeds."""
  repeated = [group for group in groups if group.is_repeated]
  if not repeated:
    return RunStatistics(remarks=tuple(remarks))
  lines = [line for group in repeated for line in _lines(group)]
  pairs = list(itertools.combinations(repeated, 2))
  comparisons = [_compare(*pair) for pair in pairs if not _obstacle(*pair)]
  single = [group.name for group in groups if not group.is_repeated]
  if single:
    remarks = [*remarks, f'No statistics of {_some(single)}, and no comparison '
               'with other runs: each level has one seed only.']
  return RunStatistics(tuple(lines), tuple(comparisons), (
      *remarks, *_remarks(repeated),
      *itertools.chain(*itertools.starmap(_remarks_on_pair, pairs))))


def _lines(group: Group) -> Iterator[Line]:
  for level, scores in group.scores.items():
    functions = statistics.OF_LEVEL
    found = statistics.estimates(scores[:, None], list(functions.values()))
    yield Line(group.name, level, len(scores), dict(zip(functions, found)))
  percents = group.percents()
  if percents is not None:
    functions = statistics.OVER_LEVELS
    found = statistics.estimates(percents, list(functions.values()))
    yield Line(group.name, '', group.num_runs, dict(zip(functions, found)),
               tuple(statistics.profile(percents, statistics.PROFILE_PERCENTS)))


def _some(names: Sequence[str]) -> str:
  return f'{", ".join(names[:3])}{", ..." if names[3:] else ""}'


def _obstacle(first: Group, second: Group) -> str:
  """Returns the reason against a comparison of two groups; '' if none."""
  missing = sorted(first.scores.keys() ^ second.scores.keys())
  if missing:
    return f'only one of both has {_some(missing)}'
  if first.unscaled != second.unscaled:
    return 'their --environment_kwargs are different tasks'
  uneven = [group.name for group in (first, second) if not group.num_runs]
  if uneven:
    return (f'the levels of {" and of ".join(uneven)} have different numbers '
            'of seeds')
  return ''


def _compare(first: Group, second: Group) -> Comparison:
  """Compares two groups without an `_obstacle`."""
  joint = [group.joint_scores() for group in (first, second)]
  x, y = [np.stack(list(group.scores.values()), axis=-1) if scores is None
          else scores for group, scores in zip((first, second), joint)]
  contest = statistics.contest(x, y)
  return Comparison(first.name, second.name, first.percents() is not None,
                    None if joint[0] is None else contest, contest.probability)


def _remarks(groups: Sequence[Group]) -> Iterator[str]:
  fewest = min(len(scores) for group in groups
               for scores in group.scores.values())
  if fewest < statistics.MIN_RUNS:
    yield (f'Too few seeds: {fewest}. With fewer than {statistics.MIN_RUNS} '
           'the intervals over runs are too narrow to be relied on.')
  for group in groups:
    numbers = {len(scores) for scores in group.scores.values()}
    if len(numbers) > 1:
      yield (f'No numbers over the levels of {group.name}: '
             f'{min(numbers)} to {max(numbers)} seeds, the same number of each '
             'level is needed.')
    if group.unscaled and len(group.scores) > 1:
      yield (f'No numbers over the levels of {group.name}: returns of '
             f'{_some(group.unscaled)} have no known scale.')


def _remarks_on_pair(first: Group, second: Group) -> Iterator[str]:
  obstacle = _obstacle(first, second)
  if obstacle:
    yield f'No comparison of {first.name} with {second.name}: {obstacle}.'
    return
  unequal = [level for level in first.lengths if any(map(
      _are_unequal, first.lengths[level], second.lengths[level]))]
  if unequal:
    of_both = ' and '.join(
        ' to '.join(f'{n:,}' for n in dict.fromkeys(group.lengths[unequal[0]]))
        for group in (first, second))
    more = f', one of {len(unequal)} such levels' if unequal[1:] else ''
    yield (f'Different lengths of {first.name} and {second.name}, which are '
           f'compared: {of_both} frames on {unequal[0]}{more}.')
