# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Atari-57: its games, and human, random and published scores.

Human and random scores come from DQN Zoo, as in most comparisons with Espeholt
et al. 2018 (arXiv 1802.01561). With these numbers, the published scores of the
games give the published medians (93.2 shallow, 191.8 deep, 59.7 multi-task) but
not the published means (466.4, 957.6, 176.9). The means need
`PAPER_MEAN_BASELINES`, which the paper does not mention: a human score of 9.3
in Pong and a random score of 0 in Video Pinball. Both baselines give the
medians.

`suites.ATARI57` has the normalised scores, in percent: 0 is random, 100 is
human.
"""

from scalable_agent.scores import data

TABLES = data.read_suite('atari57', 'game', 'paper_mean')

BASELINES = TABLES.baselines
PAPER_MEAN_BASELINES = TABLES.paper_baselines
HUMAN_SCORES, RANDOM_SCORES = BASELINES
PUBLISHED = TABLES.published

# The games, as ALE names its ROMs: ms_pacman.
GAMES = tuple(HUMAN_SCORES)
# Game by level, as environments name levels: ALE/MsPacman-v5.
GAME_OF_LEVEL = {
    f'ALE/{game.title().replace("_", "")}-v5': game for game in GAMES}
LEVELS = tuple(GAME_OF_LEVEL)
