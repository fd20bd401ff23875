# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""A search for settings with Optuna, which stops bad trials early.

  pip install optuna
  mkdir /tmp/search
  for i in $(seq 20); do python examples/optuna_search.py; done

Each process makes one trial, so that no trial gets the memory or the settings
of TensorFlow of another one. Start the loop in two terminals for two trials at
a time: the file of the study coordinates the processes.
"""

import collections
import csv
import os
import statistics

import optuna
import scalable_agent

OUT = '/tmp/search'


def score(logdir):
  """Returns the mean return of the last 100 episodes of a run."""
  with open(os.path.join(logdir, 'episodes.csv'), encoding='utf-8') as f:
    last = collections.deque(csv.DictReader(f), maxlen=100)
  return statistics.fmean(float(row['episode_return']) for row in last)


def objective(trial, out=OUT, report_frames=50_000, **settings):
  """Trains with the settings of a trial; returns the trial's score."""
  config = scalable_agent.Config.from_recipe(
      'cartpole', logdir=f'{out}/{trial.number}', seed=trial.number + 1,
      learning_rate=trial.suggest_float('learning_rate', 1e-4, 1e-2, log=True),
      **settings)
  returns = collections.deque(maxlen=100)
  step, is_pruned = 0, False

  def report(update):
    nonlocal step, is_pruned
    returns.extend(episode.episode_return for episode in update.episodes)
    if returns and update.learner.num_env_frames >= (step + 1) * report_frames:
      step += 1
      trial.report(statistics.fmean(returns), step)
      is_pruned = trial.should_prune()
      if is_pruned:
        raise scalable_agent.StopTraining(f'trial {trial.number} is pruned')

  agent = scalable_agent.train(config, hooks=[report])
  if is_pruned:
    raise optuna.TrialPruned()
  if agent.num_env_frames < config.total_environment_frames:
    raise KeyboardInterrupt  # A signal has stopped the training.
  return score(config.logdir)


if __name__ == '__main__':
  study = optuna.create_study(
      study_name='cartpole', storage=f'sqlite:///{OUT}/trials.db',
      direction='maximize', load_if_exists=True,
      pruner=optuna.pruners.MedianPruner())
  study.optimize(objective, n_trials=1)
  print(study.best_trial.params, study.best_value)
