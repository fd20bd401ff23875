# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Prints rliable's values of three sets of scores, for statistics_test.py.

  pip install rliable 'pandas<3' && python tests/rliable_values.py

rliable 1.2.0 with 20,000 resamples for intervals. rliable is no dependency of
the package: with arch, pandas, statsmodels, seaborn and scipy, rliable takes
510 MB, and arch 7.2 does not import with pandas 3.
"""

import numpy as np

THRESHOLDS = (0., 50., 100., 150.)


def score_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
  """Returns two groups of scores `[runs, levels]`, in percent, by name."""
  sets = {}
  for name in 'normal', 'skewed', 'ties':
    rng = np.random.default_rng(0)
    if name == 'normal':
      x, y = (rng.normal(mean, 30, (5, 10)) for mean in (100, 110))
    elif name == 'skewed':
      x, y = (rng.exponential(mean, (3, 26)) for mean in (80, 100))
    else:
      x, y = (rng.integers(0, most, (runs, 3)) * 50.
              for most, runs in ((4, 10), (5, 8)))
    sets[name] = x.round(2), y.round(2)
  return sets


def main() -> None:
  from rliable import library
  from rliable import metrics

  def aggregates(x: np.ndarray) -> np.ndarray:
    return np.array([
        metrics.aggregate_iqm(x), metrics.aggregate_median(x),
        metrics.aggregate_mean(x), metrics.aggregate_optimality_gap(x, 100)])

  def probability(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.array([metrics.probability_of_improvement(x, y)])

  for name, (x, y) in score_sets().items():
    values, intervals = library.get_interval_estimates(
        {'x': x}, aggregates, reps=20_000)
    print(name, 'values', values['x'].round(6).tolist())
    print(name, 'intervals', intervals['x'].round(2).T.tolist())
    values, intervals = library.get_interval_estimates(
        {'y,x': (y, x)}, probability, reps=2000)
    print(name, 'probability', values['y,x'].round(6).tolist(),
          intervals['y,x'].round(3).T.tolist())
    profile, _ = library.create_performance_profile(
        {'x': x}, np.array(THRESHOLDS), reps=100)
    print(name, 'profile', profile['x'].round(6).tolist())


if __name__ == '__main__':
  main()
