# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Draws statistics over seeds: intervals, profiles, sample efficiency."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TYPE_CHECKING

import numpy as np
from scalable_agent.scores import groups as groups_lib
from scalable_agent.scores import statistics
from scalable_agent.settings import sections

if TYPE_CHECKING:
  from matplotlib.axes import Axes
  from matplotlib.figure import Figure

_NUM_FRAMES = 40
_NUM_THRESHOLDS = 41
_NUM_RESAMPLES = 1000


class CurvesOfRun(NamedTuple):
  """The settings of a run, and frames and mean returns `[N]` by level.

  `group` is as in `groups.SeedRun`.
  """
  config: sections.AllSections
  lines: Mapping[str, tuple[np.ndarray, np.ndarray]]
  group: str


def make(runs: Sequence[CurvesOfRun]) -> 'Figure | None':
  """Draws three panels of the groups of runs; matplotlib must be installed.

  All groups are compared at the last frames that all their runs have reached.
  Returns None without several seeds. Prints a line for each group that is not
  drawn, and the remarks of `groups.of_runs`.
  """
  if len({run.config.seed for run in runs}) < 2:
    return None
  (starts, _), (ends, remarks) = (_groups_at(runs, [
      reduce(frames[index] for frames, _ in run.lines.values())
      for run in runs]) for reduce, index in ((max, 0), (min, -1)))
  for remark in remarks:
    print(remark)
  possible = [group for group in ends if group.num_runs > 1
              and group.joint_scores() is not None]
  if not possible:
    print('No picture of statistics over seeds: no group has several seeds, '
          'and a scale for all its levels.')
    return None
  drawable = {group.name for group in possible}
  omitted = [group.name for group in ends if group.name not in drawable]
  if omitted:
    print('The picture of statistics over seeds omits groups without several '
          f'seeds and a scale for all levels: {", ".join(omitted)}.')
  names = {group.name for group in _like_the_first(possible)}
  start = max(most for g in starts if g.name in names
              for _, most in g.lengths.values())
  end = min(least for g in ends if g.name in names
            for least, _ in g.lengths.values())
  if start >= end:
    print('No picture of statistics over seeds: the runs have no range of '
          'frames in common.')
    return None
  grid = np.linspace(start, end, _NUM_FRAMES)
  at_grid = [_groups_at(runs, [frames] * len(runs))[0] for frames in grid]
  drawn = [group for group in at_grid[-1] if group.name in names]
  from matplotlib import figure as figure_lib
  figure = figure_lib.Figure(figsize=(18, 5), layout='constrained')
  _draw(figure.subplots(1, 3), drawn, grid, at_grid)
  return figure


def _like_the_first(
    groups: Sequence[groups_lib.Group]) -> list[groups_lib.Group]:
  """Returns the groups with the first group's levels and scale.

  Prints the names of the others.
  """
  kinds = [(tuple(group.scores), group.percents() is None) for group in groups]
  omitted = [group.name for group, kind in zip(groups, kinds)
             if kind != kinds[0]]
  if omitted:
    print('The picture of statistics over seeds omits groups of other levels, '
          f'or of another scale, than {groups[0].name}: {", ".join(omitted)}.')
  return [group for group, kind in zip(groups, kinds) if kind == kinds[0]]


def _draw(panels: Sequence['Axes'], drawn: Sequence[groups_lib.Group],
          grid: np.ndarray,
          at_grid: Sequence[Sequence[groups_lib.Group]]) -> None:
  intervals, profiles, efficiency = panels
  _draw_intervals(intervals, drawn)
  scores = np.concatenate([_joint(group).ravel() for group in drawn])
  thresholds = np.linspace(scores.min(), scores.max(), _NUM_THRESHOLDS)
  for group in drawn:
    _draw_band(profiles, thresholds, statistics.profile(
        _joint(group), thresholds.tolist(), _NUM_RESAMPLES), group.name)
    _draw_band(efficiency, grid, [
        statistics.estimates(_joint(same), [statistics.interquartile_mean],
                             _NUM_RESAMPLES)[0]
        for groups in at_grid for same in groups if same.name == group.name],
               group.name)
  unit = 'normalised score, percent' if drawn[0].percents() is not None else (
      'mean return')
  intervals.set_title(f'95 % intervals over seeds at {grid[-1]:,.0f} frames',
                      loc='left', fontsize='medium')
  profiles.set_title('performance profile', loc='left', fontsize='medium')
  efficiency.set_title('sample efficiency', loc='left', fontsize='medium')
  intervals.set_xlabel(unit)
  profiles.set_xlabel(unit)
  profiles.set_ylabel('runs with a higher score, percent')
  efficiency.set_xlabel('environment frames')
  efficiency.set_ylabel(f'interquartile mean of {unit}')
  efficiency.legend(frameon=False)
  for axes in intervals, profiles, efficiency:
    axes.grid(alpha=0.3)


def _joint(group: groups_lib.Group) -> np.ndarray:
  scores = group.joint_scores()
  assert scores is not None
  return scores


def _groups_at(runs: Sequence[CurvesOfRun],
               num_frames: Sequence[float]
               ) -> tuple[list[groups_lib.Group], list[str]]:
  """Returns groups and remarks; `num_frames` has the frames of each run."""
  return groups_lib.of_runs([
      groups_lib.SeedRun(run.config, int(frames), {
          level: float(np.interp(frames, *line))
          for level, line in run.lines.items()}, run.group)
      for run, frames in zip(runs, num_frames)])


def _draw_intervals(axes: 'Axes', groups: Sequence[groups_lib.Group]) -> None:
  labels: list[str] = []
  found = [dict(zip(group.functions(), statistics.estimates(
      _joint(group), list(group.functions().values()))))
           for group in groups]
  for name in found[0]:
    for i, estimates in enumerate(found):
      value, low, high = estimates[name]
      axes.plot([low, high], [len(labels)] * 2, color=f'C{i}', linewidth=6,
                alpha=.4, solid_capstyle='butt')
      axes.plot([value], [len(labels)], 'o', color=f'C{i}')
      labels.append('' if i else name)
  axes.set_yticks(range(len(labels)), labels)
  axes.invert_yaxis()


def _draw_band(axes: 'Axes', x: np.ndarray,
               found: Sequence[statistics.Estimate], label: str) -> None:
  values, low, high = np.array(found).T
  [line] = axes.plot(x, values, label=label)
  axes.fill_between(x, low, high, alpha=.25, linewidth=0,
                    color=line.get_color())
