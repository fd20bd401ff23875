# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Test mode: plays whole games, and writes a table of scores."""

import dataclasses
import os

from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.acting import policies
from scalable_agent.experience import episodes
from scalable_agent.modes import loading
from scalable_agent.networks import layers
from scalable_agent.processes import starts
from scalable_agent.runs import checkpoint_files
from scalable_agent.runs import checkpointing
from scalable_agent.runs import evaluation
from scalable_agent.runs import messages
from scalable_agent.runs import metrics
from scalable_agent.scores import dmlab30
from scalable_agent.scores import files
from scalable_agent.scores import levels as levels_lib
from scalable_agent.scores import table as table_lib
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import flag_texts
from scalable_agent.settings import lab_levels
import tensorflow as tf


def run(config: config_lib.Config) -> int:
  """Calls `test`; returns the exit code of the program."""
  test(config)
  return 0


@layers.state_of_caller_kept()
def test(config: config_lib.Config) -> dict[str, list[float]]:
  """Plays whole games on every level with the latest checkpoint.

  Prints the scores with published scores, and writes a table to `logdir`, after
  every level: a stopped test loses little. Returns the unclipped returns of
  each level.

  Raises:
    ConfigError: `logdir` holds no checkpoint.
    SaveError: the table cannot be written; raised at the end.
  """
  tf.keras.utils.set_random_seed(config.seed)
  layers.set_compute_dtype(config.compute_dtype)
  if not checkpointing.holds_agent(config.logdir):
    raise errors.ConfigError(
        f'--logdir={config.logdir} holds no checkpoint to test. Train first, '
        'or name the directory of a trained agent.')
  trained_with = config_lib.trained_with(config.logdir)
  if trained_with:
    print(flag_texts.settings_said(trained_with, config))
  number = checkpoint_files.latest_number(config.logdir)
  changed = flag_texts.changes_within(config.logdir, number)
  if line := messages.best_is_better(config.logdir):
    print(f'{line} To test the best weights: '
          f'--logdir={os.path.join(config.logdir, "best")}.')
  # Code of a user may change the directory.
  config = dataclasses.replace(config, life_loss_ends_episode=False,
                               logdir=os.path.abspath(config.logdir))
  level_names = list(dict.fromkeys(
      levels_lib.level_names(config.level_name, config.is_test)))
  # A wrong level ends the test now, not after hours; metrics need whole games.
  environments.check_levels(
      level_names, dataclasses.replace(config, episode_metrics=''))
  if not os.access(config.logdir, os.W_OK):
    print(f'{config.logdir} cannot be written: the table is only printed.')
  num_envs = _num_environments(config, trained_with)
  print(f'Environments that play at a time: {num_envs}.', flush=True)
  policy, path, rows = None, None, []
  for level in level_names:
    with loading.make_environments(config, level, num_envs) as env:
      if policy is None:  # All levels have one spec: one agent.
        config = config.resolved(
            env.spec.observation, on_cpu=layers.on_cpu(), num_groups=1)
        agent, num_env_frames = loading.restore(config, env.spec)
        policy = policies.AgentPolicy(agent, greedy=config.test_greedy,
                                      jit_compile=config.xla != 'none')
      games = evaluation.play(env, policy, config.test_num_episodes, config)
      means = episodes.in_words(episodes.mean_metrics(games.metrics))
      row = table_lib.make_row(level, games.all_returns, len(games.cut))
    rows.append(row)
    if config.log_episodes:
      print(f'Testing level: {level}\nMean episode return: {row.mean:f}')
    print(f'{level}: mean {row.mean:.2f}, standard deviation {row.std:.2f} '
          f'over {len(row.returns)} episodes at {num_env_frames:,} frames'
          f'{means}')
    print('  returns: ' + ' '.join(map(metrics.shortest, row.returns)),
          flush=True)
    table = table_lib.make_table([table_lib.Run(
        config, num_env_frames, trained_with, tuple(rows), changed=changed)])
    path, error = _write_table(table, path)
  of_levels = {row.level: list(row.returns) for row in rows}
  if config.log_episodes and config.level_name == lab_levels.SUITE:
    no_cap, cap_100 = (dmlab30.compute_human_normalized_score(of_levels, cap)
                       for cap in (None, 100))
    print(f'No cap.: {no_cap:f} Cap 100: {cap_100:f}')
  print(f'\n{files.to_markdown(table)}', flush=True)
  if error:
    raise errors.SaveError(error)
  print(f'Wrote {path}.json, .csv and .md.', flush=True)
  return of_levels


def _num_environments(config: config_lib.Config,
                      trained_with: config_lib.Config | None) -> int:
  num_envs = min(config.num_actors, config.test_num_episodes)
  # The training's --num_actors was chosen for a cluster, not for this machine.
  if trained_with and trained_with.ray_address and (
      trained_with.num_actors == config.num_actors):
    num_envs = min(num_envs, starts.num_cores())
  return num_envs


def _write_table(table: table_lib.Table,
                 path: str | None) -> tuple[str | None, str]:
  """Writes the table so far; returns the path and an error text, or ''.

  `path` is that of an earlier call; None for a new path.
  """
  [run_of_table] = table.runs
  try:
    path = path or files.reserve_path(
        run_of_table.config.logdir, run_of_table.num_env_frames)
    files.write(table, path)
  except OSError as e:
    return path, (f'{path or run_of_table.config.logdir} could not be '
                  f'written: {e.strerror}.')
  return path, ''
