# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Atari-57: its games, human and random scores, and the normalised scores.

Human and random scores are those of DQN Zoo, which most comparisons with
Espeholt et al. 2018 (arXiv 1802.01561) use. With them, the published scores of
the games give the published medians (93.2 shallow, 191.8 deep, 59.7 multi-task)
but not the published means. The means need `PAPER_MEAN_BASELINES`, which differ
in two games: a human score of 9.3 in Pong and a random score of 0 in Video
Pinball. The paper does not say so, but these two values give its three means
(466.4, 957.6, 176.9). Both baselines give its medians.

All scores are in percent: 0 is random, 100 is human.
"""

from collections.abc import Mapping, Sequence
import difflib
from typing import NamedTuple

import numpy as np
from scalable_agent.scores import data


class Summary(NamedTuple):
  """Normalised scores over all 57 games, in percent."""
  median: float
  mean: float


class PublishedAgent(NamedTuple):
  """Published numbers of an agent.

  Attributes:
    name: as the paper writes it.
    scores: by game, for the games with a published score, which may be none.
    median: over the games, in percent, or None.
    median_verified: True if `median` was read or recomputed, False if it was
      written from memory.
    mean: over the games, in percent, or None.
    mean_verified: as `median_verified`, for `mean`.
    source: the publication.
    note: other remarks, or ''.
  """
  name: str
  scores: Mapping[str, float]
  median: float | None
  median_verified: bool
  mean: float | None
  mean_verified: bool
  source: str
  note: str


_ROWS = data.read('atari57.csv')
_SOURCES = {row['column']: row for row in data.read('atari57_sources.csv')}

# Names as ALE writes those of its ROMs: ms_pacman.
GAMES = tuple(row['game'] for row in _ROWS)
HUMAN_SCORES: dict[str, float] = data.column(_ROWS, 'game', 'human')
RANDOM_SCORES: dict[str, float] = data.column(_ROWS, 'game', 'random')
BASELINES = data.Baselines(HUMAN_SCORES, RANDOM_SCORES)
PAPER_MEAN_BASELINES = data.Baselines(
    data.column(_ROWS, 'game', 'human_paper_mean'),
    data.column(_ROWS, 'game', 'random_paper_mean'))
# From 'human', 'random', 'human_paper_mean', 'random_paper_mean'.
BASELINE_SOURCES: dict[str, str] = {
    name: row['source'] for name, row in _SOURCES.items()
    if name.startswith(('human', 'random'))}
PUBLISHED: dict[str, PublishedAgent] = {
    key: PublishedAgent(
        row['name'], data.column(_ROWS, 'game', key),
        data.number(row['median_percent']), row['median_status'] == 'verified',
        data.number(row['mean_percent']), row['mean_status'] == 'verified',
        row['source'], row['note'])
    for key, row in _SOURCES.items() if key not in BASELINE_SOURCES}

# From level names, as environments have them, to games.
_GAME_OF_LEVEL = {
    f'ALE/{game.title().replace("_", "")}-v5': game for game in GAMES}
LEVELS = tuple(_GAME_OF_LEVEL)


def game_of(name: str) -> str:
  """Returns the game (`ms_pacman`) of a level (`ALE/MsPacman-v5`) or game.

  Raises:
    ValueError: if it is not one of the 57; the message has similar names.
  """
  if name in HUMAN_SCORES:
    return name
  if name in _GAME_OF_LEVEL:
    return _GAME_OF_LEVEL[name]
  similar = difflib.get_close_matches(name, [*GAMES, *LEVELS], cutoff=0.5)
  hint = f' Did you mean {" or ".join(similar)}?' if similar else ''
  raise ValueError(f'{name!r} is not a game of Atari-57.{hint}')


def human_normalized_score(name: str, score: float,
                           baselines: data.Baselines = BASELINES) -> float:
  """Returns `(score - random) / (human - random)` in percent.

  Args:
    name: game or level.
    score: (mean) return of whole games.
    baselines: `data.Baselines`.
  """
  return float(baselines.normalized(game_of(name), score))


def human_normalized_scores(
    returns: Mapping[str, Sequence[float]],
    baselines: data.Baselines = BASELINES) -> dict[str, float]:
  """Returns the scores of the games' mean returns, in percent by game.

  Args:
    returns: returns of whole games by game or level.
    baselines: `data.Baselines`.

  Raises:
    ValueError: if a name is not in Atari-57 or has no returns, or if two names
      are of the same game.
  """
  scores = {}
  for name, values in returns.items():
    game = game_of(name)
    if game in scores:
      raise ValueError(f'{name!r} is {game}, which has returns already.')
    if not len(values):
      raise ValueError(f'Missing returns for game: {name!r}.')
    scores[game] = human_normalized_score(
        game, float(np.mean(values)), baselines)
  return scores


def summarize(scores: Mapping[str, float]) -> Summary:
  """Returns median and mean of normalised scores of all 57 games.

  Args:
    scores: percent by game or level.

  Raises:
    ValueError: if a game is missing, or a name is not in Atari-57.
  """
  by_game = {game_of(name): score for name, score in scores.items()}
  missing = [game for game in GAMES if game not in by_game]
  if missing:
    raise ValueError(f'Missing games: {missing}')
  values = [by_game[game] for game in GAMES]
  return Summary(float(np.median(values)), float(np.mean(values)))
