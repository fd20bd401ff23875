# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Lines that a run prints at its start and at its end."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import functools
import os
import shlex

from scalable_agent import errors
from scalable_agent.acting import interface
from scalable_agent.algorithms import appo
from scalable_agent.algorithms import base
from scalable_agent.experience import structs
from scalable_agent.experience import timing
from scalable_agent.learning import learner as learner_lib
from scalable_agent.networks import layers
from scalable_agent.runs import checkpoint_files
from scalable_agent.runs import clipping
from scalable_agent.scores import evaluations
from scalable_agent.scores import levels
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import declare
from scalable_agent.settings import flag_texts
from scalable_agent.settings import program
from scalable_agent.settings import sections

# The levels that settings of some tasks change.
_CHANGES = {
    'frames': levels.has_frame_size, 'atari': declare.is_atari,
    'atari_training': declare.is_atari}
_print = functools.partial(print, flush=True)
# Settings that only a new agent takes.
_FIRST_VALUES = ('initial_temperature', 'initial_scale',
                 'initial_mean_multiplier', 'initial_scale_multiplier')
# Updates of appo with fewer steps are noisy.
_FEW_STEPS = 128


def print_start(
    asked: config_lib.Config, config: config_lib.Config,
    before: config_lib.Config | None, actors: interface.Acting,
    num_learners: int) -> None:
  """Prints the task of the training, and the settings that were chosen.

  Args:
    asked: the settings as given by the user.
    config: the settings, resolved.
    before: the settings of the part before, None for the first part.
    actors: the actors of learner 0.
  """
  level_names = levels.level_names(config.level_name, config.is_test)
  for line in (not before and _long_default(config),
               levels.unplayed_message(level_names, config.num_actors),
               _without_effect(config, level_names),
               _unused_sizes(config, actors.spec),
               _choices(asked, config), _unlearned(config),
               clipping.said(config, actors.spec.action),
               *_about_appo(config, actors.spec.action),
               before and flag_texts.changes_said(before, config),
               before and _not_taken(before, config)):
    if line:
      print(line)
  sharing = (' that share their policy steps'
             if config.dynamic_batching else '')
  device = 'CPU' if layers.on_cpu() else 'GPU'
  num_workers = actors.counts().get('wanted')
  where = f' in each of {num_workers} actor workers' if num_workers else ''
  if config.inference != 'local':
    where = f', stepped by {num_workers} workers'
  if num_learners > 1:
    where += f' for each of {num_learners} learners'
  print(f'{count(config.num_actors, "environment")}, '
        f'{count(actors.num_groups, "group")}{sharing}{where}, '
        f'{count(config.num_action_repeats, "frame")} per action, learning '
        f'on {device}. Progress is printed after the first '
        f'update, which compiles. Curves: tensorboard --logdir={config.logdir}',
        flush=True)


def _long_default(config: config_lib.Config) -> str:
  """Returns a line if the length is the default of IMPALA, otherwise ''."""
  num_frames = config.total_environment_frames
  if num_frames != config_lib.Config().total_environment_frames:
    return ''
  return (f'The training has {num_frames:,} frames by default '
          '(--total_environment_frames). --help=recipes lists shorter '
          'trainings, --mode=check proposes settings for a level.')


def _choices(asked: config_lib.Config, config: config_lib.Config) -> str:
  """Returns a line with the flags that `asked.resolved` chose, or ''."""
  reasons = {'--agent=deep': ' for frames', '--agent=nature': ' for frames',
             '--agent=mlp': ' for observations that are not frames'}
  flags = [flag_texts.as_flags(config, [name])
           for name in sections.names_with('automatic')
           if getattr(asked, name) != getattr(config, name)]
  return flags and 'Chosen: ' + ', '.join(
      flag + reasons.get(flag, '') for flag in flags) + '.' or ''


def _without_effect(
    config: config_lib.Config, level_names: Sequence[str]) -> str:
  """Returns a line with the settings that change none of the levels, or ''."""
  unused = [
      flag_texts.as_flags(config, [field.name])
      for field in dataclasses.fields(config)
      if field.metadata['task'] in _CHANGES
      and getattr(config, field.name) != field.default
      and not any(map(_CHANGES[field.metadata['task']], level_names))]
  return unused and (
      f'Without effect on {", ".join(level_names[:3])}: '
      f'{", ".join(unused)}.') or ''


def _unused_sizes(config: config_lib.Config,
                  spec: structs.EnvironmentSpec) -> str:
  """Returns a line about `hidden_sizes` that no network has, or ''."""
  usual = config_lib.Config(algorithm=config.algorithm).hidden_sizes
  if config.hidden_sizes == usual or base.has_dense_layers(
      config, config.algorithm, spec):
    return ''
  return (f'Without effect: --hidden_sizes={config.hidden_sizes}, as no '
          f'network has dense layers besides those of --agent={config.agent}.')


def _not_taken(before: config_lib.Config, config: config_lib.Config) -> str:
  """Returns a line about settings that a resumed run does not take, or ''."""
  names = [*_FIRST_VALUES]
  if before.learning_rate_schedule == config.learning_rate_schedule == 'kl':
    names.append('learning_rate')
  changed = [name for name in names
             if getattr(config, name) != getattr(before, name)]
  return changed and (
      f'Without effect: {flag_texts.as_flags(config, changed)}, as a resumed '
      'run goes on with the values of its checkpoint.') or ''


def _unlearned(config: config_lib.Config) -> str:
  """Returns a line about steps that are in no learned sequence, or ''."""
  length, learned = config.unroll_length, config.sequence_length
  if not (config.is_off_policy and config.use_lstm and length > learned):
    return ''
  return (f'Of each unroll of {length} steps, {length - learned} are never '
          f'learned: sequences of --sequence_length={learned} steps begin '
          f'where unrolls begin. Set --unroll_length={learned} or less.')


def _about_appo(config: config_lib.Config,
                actions: structs.ActionSpec) -> Iterator[str]:
  """Yields lines about the settings of appo."""
  if config.algorithm != 'appo':
    return
  if config.entropy_cost == -1:
    yield (f'Chosen: --entropy_cost={appo.entropy_cost(config, actions):g} for '
           f'{"continuous" if actions.size else "discrete"} actions.')
  num_steps = config.batch_size * config.unroll_length
  # With normalised advantages, as in appo_vectors, more steps were worse.
  if num_steps < _FEW_STEPS and not config.normalise_advantages:
    yield (f'An update has {num_steps} steps, which are few for appo: raise '
           '--batch_size, --num_actors or --unroll_length if the return does '
           'not rise.')
  norm = config.clip_gradient_norm
  if config.reduction == 'sum' and norm:
    yield (f'Gradients with --reduction=sum are {num_steps} times as large as '
           f'with mean, and --clip_gradient_norm={norm:g} is for means: raise '
           'this norm, or set 0 for no clip.')


def workers(counts: Mapping[str, int]) -> str:
  """Returns the number of workers for the line of progress, '' without any."""
  if 'workers' not in counts:
    return ''
  return (f', {counts["workers"]} of {counts["wanted"]} workers '
          f'({counts["restarts"]} restarts)')


@contextlib.contextmanager
def retry_later(say: Callable[[str], None] = _print) -> Iterator[None]:
  """Says a `SaveError`: the run continues, and saves the next time."""
  try:
    yield
  except errors.SaveError as e:
    say(f'{e} The program continues, and saves the next time.')


def print_episodes(episodes: Iterable[structs.Episode]) -> None:
  """Prints each finished episode in the words of DeepMind's program."""
  for episode in episodes:
    print(f'Level: {episode.level_name} '
          f'Episode return: {episode.episode_return:f}', flush=True)


def waiting(config: config_lib.Config, learner: learner_lib.Learner,
            actors: interface.Acting, num_learners: int) -> Callable[[], None]:
  """Returns a function that prints the frames before the first update.

  The function does nothing if called within --progress_secs after a line.
  """
  is_due = timing.Interval(config.progress_secs)

  def say() -> None:
    if not learner.num_updates and is_due():
      num_frames = (
          actors.num_steps() * num_learners * config.num_action_repeats)
      print(f'{min(num_frames, config.num_first_frames):,} of '
            f'{config.num_first_frames:,} frames collected for the first '
            'update.', flush=True)

  return say


def best_is_better(logdir: str) -> str:
  """Returns a line if tests should take `best/`, not the latest weights.

  '' if the latest weights were evaluated and are as good, or without `best/`.
  """
  done, best = evaluations.read(logdir), checkpoint_files.best_mean(logdir)
  if not done or best is None:
    return ''
  last, is_evaluated = _last(logdir, done)
  if is_evaluated and last.mean >= best:
    return ''
  line = (f'The best evaluation, mean {best:.2f}, is of the weights in '
          f'{os.path.join(logdir, "best")}; the last evaluation has mean '
          f'{last.mean:.2f} at {last.num_env_frames:,} frames.')
  return line if is_evaluated else (
      f'{line} The latest weights, of update '
      f'{checkpoint_files.latest_number(logdir):,}, were not evaluated.')


def _last(logdir: str, done: Sequence[evaluations.Evaluation]
          ) -> tuple[evaluations.Evaluation, bool]:
  """Returns the evaluation of the latest weights, or else the last one.

  The bool is whether the latest weights were evaluated. A kill may have lost
  the weights of later evaluations.
  """
  latest = checkpoint_files.latest_number(logdir)
  of_latest = [games for games in done if games.num_updates == latest]
  return (of_latest or done)[-1], bool(of_latest)


def print_next(logdir: str, only_here: bool) -> None:
  """Prints the best evaluation, and the commands that usually come next.

  `only_here` leaves out commands that make environments: no other process knows
  the level.
  """
  agent, done = logdir, evaluations.read(logdir)
  if line := best_is_better(logdir):
    agent = os.path.join(logdir, 'best')
    print(line)
  elif done and checkpoint_files.best_mean(logdir) is not None:
    last, _ = _last(logdir, done)
    print(f'The last evaluation is the best one: mean {last.mean:.2f} at '
          f'{last.num_env_frames:,} frames.')
  if only_here:
    commands = [('plot', logdir)]
    print('Next, draw the curves:')
  else:
    commands = [('test', agent), ('plot', logdir), ('video', agent)]
    print('Next, test the agent, draw the curves, record videos (of '
          'environments with pictures):')
  for mode, directory in commands:
    print(f'  {program.name()} --logdir={shlex.quote(directory)} '
          f'--mode={mode}', flush=True)


def print_updates(num_updates: int, updates_per_step: float) -> None:
  """Prints the number of updates."""
  print(f'{num_updates:,} updates, {updates_per_step:.4f} per agent step since '
        'the warm-up.')


def print_time(shares: Mapping[str, float]) -> None:
  """Prints the share of each stage."""
  print('Time: ' + ', '.join(f'{name} {100 * share:.0f} %'
                             for name, share in shares.items()), flush=True)


def print_unrolls(config: config_lib.Config, actors: interface.Acting,
                  counts: Mapping[str, int], num_learned: int) -> None:
  """Prints how many unrolls were not learned from, and where each unroll is.

  Args:
    actors: the actors of learner 0.
    counts: the counts of the actors of all learners.
    num_learned: unrolls that learner 0 has learned from, or has added to a
      replay.
  """
  num_arrived = actors.counts().get('unrolls')
  if num_arrived is not None:
    where = ' at learner 0' if config.num_learners > 1 else ''
    print(f'{num_arrived:,} unrolls have arrived{where}, of which '
          f'{num_arrived - num_learned:,} were waiting at the end.')
    if counts['restarts']:
      num_unrolls = _num_in_worker(config, actors)
      print(f'{count(counts["restarts"], "time")} an actor worker was '
            f'replaced, each time with at most {num_unrolls:,} unrolls that '
            'have not arrived.')
  num_lost = counts.get('lost_groups')
  if num_lost:
    print(f'{count(num_lost, "time")} the process of a group of '
          'environments was lost, with an unroll that was not finished.')


def _num_in_worker(config: config_lib.Config, actors: interface.Acting) -> int:
  """Returns how many unrolls, one per environment, a worker can hold."""
  num_of_group = -(-actors.num_environments // actors.num_groups)
  # Unrolls on their way, unrolls in the queue, and unrolls being made.
  return ((1 + config.queue_capacity) * num_of_group + actors.num_environments)


def count(number: int, noun: str) -> str:
  """Returns a number and its noun, such as `1 game` or `2,000 games`."""
  return f'{number:,} {noun}' + 's' * (number != 1)
