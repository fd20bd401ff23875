# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Sources: the road from unrolls in the inbox to samples."""

from collections.abc import Callable, Iterator
import contextlib
import functools
import os
from typing import NamedTuple

import numpy as np
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent import replay as replay_lib
from scalable_agent.experience import episodes
from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.experience import unrolls
from scalable_agent.learning import collectives as collectives_lib
from scalable_agent.learning import feeds
from scalable_agent.learning import learner as learner_lib
from scalable_agent.learning import memory_check
from scalable_agent.learning import selection
from scalable_agent.learning import statistics
from scalable_agent.networks import agents
from scalable_agent.networks import masks
from scalable_agent.replay import saving
from scalable_agent.scores import levels
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import declare
from scalable_agent.settings import files

# --save_replay=auto saves replays of at most this size.
_MAX_SAVED_BYTES = 2e9

_REFILLS = ('The replay was not saved: --min_replay_steps are collected before '
            'learning resumes.')
# Samples that are drawn before their updates are made, at most.
_MAX_AHEAD = 10
_DIFFERS = ('There is no replay of this checkpoint: from here on, the run '
            'differs from a run that was never stopped.')


class Place(NamedTuple):
  """The learner and the run part of a source, for seeds and paths.

  Attributes:
    part: a number that differs between the parts of a run.
    first_environment: the lowest number of an environment in the unrolls.
    say: takes lines of this learner for the user; only learner 0 prints.
    ends: ends the processes of the source.
  """
  collectives: collectives_lib.Collectives
  part: int
  first_environment: int
  say: Callable[[str], None]
  ends: contextlib.ExitStack

  def replay_seed(self, config: config_lib.Config) -> int:
    """Returns the seed of the draws."""
    return config.derive_seed('replay', self.collectives.rank, self.part)


def make_feed(config: config_lib.Config, spec: structs.EnvironmentSpec,
              learner: learner_lib.Learner, part: int = 0,
              collectives: collectives_lib.Collectives | None = None,
              first_environment: int = 0, num_groups: int = 1,
              say: Callable[[str], None] = print) -> feeds.Feed:
  """Makes the feed of a learner of resolved settings, see `Place`.

  If acting takes turns, `num_groups` groups of environments act.
  """
  collectives = collectives or collectives_lib.Alone()
  inbox = queues.BoundedQueue[unrolls.Delivery](config.queue_capacity)
  turns = feeds.TurnTaker(inbox, num_groups) if config.takes_turns else None
  ends = contextlib.ExitStack()
  try:
    source = make(config, spec, learner, turns or inbox,
                  Place(collectives, part, first_environment, say, ends))
    feed = feeds.Feed(inbox, source, learner, spec.num_action_repeats,
                      collectives.size, turns, ends.close)
    if config.deterministic and source.is_new:
      feed.save()  # See `setup.number_of_part`.
  except BaseException:
    ends.close()
    raise
  return feed


def make(config: config_lib.Config, spec: structs.EnvironmentSpec,
         learner: learner_lib.Learner, inbox: unrolls.Inbox,
         place: Place) -> feeds.Source:
  """Makes the source of an algorithm; see `make_feed`."""
  make_source = _off_policy if config.is_off_policy else (
      _appo if config.algorithm == 'appo' and not config.replay_capacity
      else _unrolls)
  return make_source(config, spec, learner, inbox, place)


def _note(unroll: structs.Unroll) -> structs.Note:
  actions = unroll.steps.agent_outputs.action[1:].copy()
  return structs.Note(episodes.finished_episodes(unroll),
                      actions.reshape(-1, *actions.shape[2:]),
                      unroll.steps.env_outputs.reward[1:].flatten(),
                      unroll.start.policy_version.copy())


def _unrolls(config: config_lib.Config, spec: structs.EnvironmentSpec,
             learner: learner_lib.Learner, inbox: unrolls.Inbox,
             place: Place) -> feeds.Source:
  """Returns a source of unrolls: fresh, replayed, or both."""
  allocate = functools.partial(allocate_unroll, config, spec, learner.agent)
  batch = allocate(config.batch_size)
  if not config.replay_capacity:
    return feeds.Source(replay_lib.samples(
        feeds.Columns(inbox, batch), lambda unroll: None,
        lambda: structs.Sample(batch, num_new_columns=batch.num_columns),
        replay_lib.PerCollection(), _note))
  num_fresh = 0 if config.unrolls_per_collect else config.num_fresh_unrolls
  selector = selection.make(config, place.collectives.size)
  replay = replay_lib.Replay(
      replay_lib.UnrollStore(config.replay_capacity), selector,
      replay_lib.Unrolls(batch, num_fresh), place.replay_seed(config))
  if learner.num_updates:
    print('The replay was not saved: it begins empty.')
  # Only fresh unrolls are logged: replayed unrolls were logged before.
  fresh = unrolls.columns(batch, 0, num_fresh)
  due = replay_lib.PerCollection()
  if config.unrolls_per_collect:
    fresh = allocate(config.unrolls_per_collect)
    counted = selector if isinstance(selector, replay_lib.MaxUse) else replay
    due = replay_lib.PerCollection(
        config.updates_per_collect,
        lambda: counted.num_items >= config.batch_size)

  def draw() -> structs.Sample:
    selection.anneal(selector, config, learner.num_env_frames)
    sample = replay.draw(1, config.batch_size - num_fresh)
    return selection.with_used(
        _with_fresh(sample, num_fresh, int(replay.store.end[0])), selector,
        place.collectives.size)

  return feeds.Source(
      replay_lib.samples(
          feeds.Columns(inbox, fresh), replay.add, draw, due, _note),
      replay.update)


def _appo(config: config_lib.Config, spec: structs.EnvironmentSpec,
          learner: learner_lib.Learner, inbox: unrolls.Inbox,
          place: Place) -> feeds.Source:
  """Returns a source of batches from several passes over collections."""
  allocate = functools.partial(allocate_unroll, config, spec, learner.agent)
  collected = allocate(config.unrolls_per_collect)
  passes = replay_lib.Passes(
      collected, allocate(learner.updates_per_call * config.batch_size),
      declare.used(config.passes), place.replay_seed(config))
  return feeds.Source(replay_lib.samples(
      feeds.Columns(inbox, collected), lambda unroll: None, passes,
      replay_lib.PerCollection(passes.num_draws), _note))


def _with_fresh(sample: structs.Sample, num_fresh: int,
                end: int) -> structs.Sample:
  """Returns the sample with entries for fresh columns in front."""
  return sample._replace(
      num_new_columns=num_fresh,
      importance_weights=np.concatenate(
          [np.ones([num_fresh], np.float32), sample.importance_weights]),
      positions=np.concatenate(
          [np.arange(end - num_fresh, end), sample.positions]))


def _off_policy(config: config_lib.Config, spec: structs.EnvironmentSpec,
                learner: learner_lib.Learner, inbox: unrolls.Inbox,
                place: Place) -> feeds.Source:
  """Returns a source of replayed transitions, or sequences for an LSTM."""
  replay = _make_replay(config, spec, learner, place)
  rate = _make_rate(config, spec, place)
  logdir = files.SameDirectory(config.logdir)
  directory = _replay_directory(config, spec, learner, place.collectives)
  try:
    # Settings may change until there is a checkpoint.
    counters = replay.load(directory) if (
        directory and learner.num_updates) else None
  except replay_lib.DamagedError as e:
    place.say(f'{e.damaged} is damaged and not used.')
    place.ends.close()  # The new replay starts a process for rewards, too.
    counters, replay = None, _make_replay(config, spec, learner, place)
  if counters is not None:
    rate.state = counters
    items = 'sequences' if config.use_lstm else 'transitions'
    print(f'The saved replay has {replay.num_items:,} {items}.')
  elif learner.num_updates:
    # Without a directory, no learner has a replay, and learner 0 says so.
    (place.say if directory else print)(_REFILLS)
  num_again = rate.num_updates - learner.num_updates
  if config.deterministic and num_again:
    place.say(_DIFFERS)
  elif num_again > _MAX_AHEAD * learner.updates_per_call:
    place.say(f'The saved replay is newer than the checkpoint: {num_again:,} '
              'updates are made again before steps are collected.')
  num_uncounted = _resume(rate, learner, spec, counters is None, place)
  rows = statistics.NewRows(learner.agent.observation_normaliser,
                            config.hindsight != 'none')

  def add(unroll: structs.Unroll) -> None:
    rows.add(unroll.steps.env_outputs.observation)
    # The replay counts environments from 0 on.
    replay.add(unroll._replace(start=unroll.start._replace(
        environment=unroll.start.environment - place.first_environment)))

  def draw() -> structs.Sample:
    selection.anneal(replay.selector, config, learner.num_env_frames)
    return selection.with_used(
        replay.draw(learner.updates_per_call, config.batch_size),
        replay.selector, place.collectives.size)

  def samples() -> Iterator[structs.Sample]:
    if not place.collectives.rank:  # A start that failed has removed nothing.
      saving.remove_others(config.logdir, place.collectives.size)
    for sample in replay_lib.samples(
        inbox, add, draw, rate, _note, learner.updates_per_call, num_uncounted):
      yield sample._replace(new_rows=rows.take())

  def save() -> None:
    logdir.check()
    with rate.lock:
      replay.save(directory, rate.state)

  return feeds.Source(samples(), replay.update, rate,
                      save if directory else None, counters is None)


def _make_replay(config: config_lib.Config, spec: structs.EnvironmentSpec,
                 learner: learner_lib.Learner, place: Place
                 ) -> (replay_lib.Replay[replay_lib.StepStore]
                       | replay_lib.Replay[replay_lib.Starts]):
  seed = place.replay_seed(config)
  selector = selection.make(config, place.collectives.size)
  store = replay_lib.StepStore(
      spec, config.replay_steps, config.num_actors,
      levels.are_stacked(config.level_name, config.is_test))
  n_step = replay_lib.NStep(config.discounting, config.n_step,
                            config.reward_clipping, config.reward_scale)
  if not config.use_lstm:
    return replay_lib.Replay(
        store, selector, _make_view(config, spec, n_step, place.ends), seed)
  starts = replay_lib.Starts(store, learner.agent.initial_state(1),
                             config.num_entries, config.unroll_length)
  return replay_lib.Replay(
      starts, selector, replay_lib.Sequences(
          n_step, declare.used(config.burn_in_steps)), seed)


def _replay_directory(config: config_lib.Config, spec: structs.EnvironmentSpec,
                      learner: learner_lib.Learner,
                      collectives: collectives_lib.Collectives) -> str:
  """Returns the directory of the saved replay; '' if the replay is not saved.

  If the replay is not saved, the replay of an earlier part is removed: a later
  part would take it for the replay of this part. A replay without a checkpoint
  is removed, too, as it may be of another task; a deterministic run overwrites
  it at once.
  """
  rank = collectives.rank
  directory = os.path.join(
      config.logdir, f'replay-{rank}' if rank else 'replay')
  # Each part of a deterministic run would else begin with an empty replay.
  is_saved = config.deterministic or config.save_replay == 'yes' or (
      config.save_replay == 'auto'
      and memory_check.num_step_bytes(config, spec, learner.agent)
      <= _MAX_SAVED_BYTES)
  if is_saved and (learner.num_updates or config.deterministic):
    return directory
  saving.remove(directory, 'there is no checkpoint.' if is_saved else
                'this part does not save its replay (--save_replay).')
  return directory if is_saved else ''


def _make_rate(config: config_lib.Config, spec: structs.EnvironmentSpec,
               place: Place) -> replay_lib.Rate:
  min_steps = config.num_warm_up_steps
  num_frames = min_steps * place.collectives.size * spec.num_action_repeats
  if num_frames >= config.total_environment_frames:
    sequences = (', or of a sequence of each environment,'
                 if config.use_lstm else '')
    raise errors.ConfigError(
        'Nothing would be learned: the warm-up of --min_replay_steps'
        f'{sequences} takes {num_frames} frames, and '
        f'--total_environment_frames={config.total_environment_frames}.')
  updates_per_step = declare.used(config.updates_per_step)
  rate = replay_lib.Rate(updates_per_step, min_steps, place.collectives.size)
  num_frames += (rate.steps_until(config.updates_per_call)
                 * place.collectives.size * spec.num_action_repeats)
  if num_frames > config.total_environment_frames:
    raise errors.ConfigError(
        f'Nothing would be learned: at --updates_per_step={updates_per_step} '
        f'the first call, of --updates_per_call={config.updates_per_call}, is '
        f'due after {num_frames} frames, and --total_environment_frames='
        f'{config.total_environment_frames}.')
  return rate


def _resume(rate: replay_lib.Rate, learner: learner_lib.Learner,
            spec: structs.EnvironmentSpec, is_empty: bool,
            place: Place) -> int:
  """Resumes the rate from the learner's counters.

  Updates that were drawn but not made before the stop are due again, and steps
  that only such updates have counted are new, unless the number of learners is
  another. Returns the new steps of all learners for learner 0; else 0.
  """
  num_counted = learner.num_env_frames // spec.num_action_repeats
  num_added, is_new = place.collectives.total(
      [rate.num_steps, rate.is_new_share])
  # Learners have equal shares, as all make the same updates.
  share = num_counted // place.collectives.size
  rate.resume(share if is_new else max(rate.num_steps, share),
              learner.num_updates, is_new > 0)
  if is_empty and num_counted:
    rate.warm_up()
  return 0 if place.collectives.rank or is_new else max(
      num_added - num_counted, 0)


def _make_view(config: config_lib.Config, spec: structs.EnvironmentSpec,
               n_step: replay_lib.NStep, ends: contextlib.ExitStack
               ) -> replay_lib.View[replay_lib.StepStore]:
  if config.hindsight == 'none':
    return n_step
  level_name, *others = dict.fromkeys(
      levels.level_names(config.level_name, config.is_test))
  if others:
    raise errors.ConfigError('--hindsight can be used with one level only.')
  rewards, terminated = environments.goal_functions(level_name, config, ends)
  if config.hindsight == 'episode' and masks.NAME in spec.observation:
    raise errors.ConfigError(
        '--hindsight=episode cannot be used with an action_mask: at the end of '
        'an episode no action may be valid, but for a goal that was reached '
        'earlier the episode would go on. Use --hindsight=future.')
  return replay_lib.Hindsight(
      n_step, rewards, config.hindsight, config.hindsight_goals, terminated)


def allocate_unroll(config: config_lib.Config, spec: structs.EnvironmentSpec,
                    agent: agents.Agent, num_columns: int) -> structs.Unroll:
  """Allocates an unroll, or a batch, of columns of any levels."""
  return unrolls.allocate(
      config.unroll_length, [''] * num_columns, spec.observation,
      agent.output_spec, agent.initial_state(1), config.metric_names)
