# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The paper's table 2: V-trace and other corrections, on DeepMind Lab.

The scores are final returns, unclipped. Each score is the mean of the best 3 of
24 sets of hyperparameters (Espeholt et al. 2018, arXiv 1802.01561).
"""

from collections.abc import Mapping

from scalable_agent.scores import data

_ROWS = data.read('vtrace_ablation.csv')
# Value of `--correction` by the paper's name.
_CORRECTIONS = {'V-trace': 'vtrace', '1-Step': 'one_step',
                'eps-correction': 'epsilon', 'No-correction': 'none'}
_NO_LEVELS = ('replay', 'method', 'status', 'source')

LEVELS: tuple[str, ...] = tuple(
    name for name in _ROWS[0] if name not in _NO_LEVELS)
# Final return by level, by (whether a replay was used, correction).
RETURNS: Mapping[tuple[bool, str], dict[str, float]] = {
    (row['replay'] == 'yes', _CORRECTIONS[row['method']]): {
        level: float(row[level]) for level in LEVELS}
    for row in _ROWS}
[SOURCE] = {row['source'] for row in _ROWS}
