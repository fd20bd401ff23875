# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Sets up a part of a run: restores the learner, opens the evaluator."""

from collections.abc import Iterator, Mapping
import contextlib
import dataclasses
import os
import zlib

from scalable_agent import algorithms
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent import replay as replay_lib
from scalable_agent.acting import interface
from scalable_agent.acting import policies
from scalable_agent.acting import shares
from scalable_agent.algorithms import addons as addons_lib
from scalable_agent.algorithms import appo
from scalable_agent.experience import structs
from scalable_agent.learning import collectives as collectives_lib
from scalable_agent.learning import learner as learner_lib
from scalable_agent.learning import memory_check
from scalable_agent.learning import optimizers as optimizers_lib
from scalable_agent.networks import agents
from scalable_agent.processes import user_code
from scalable_agent.replay import saving
from scalable_agent.runs import checkpoint_files
from scalable_agent.runs import checkpointing
from scalable_agent.runs import context as context_lib
from scalable_agent.runs import earlier
from scalable_agent.runs import evaluation
from scalable_agent.runs import logdirs
from scalable_agent.runs import metrics
from scalable_agent.scores import evaluations
from scalable_agent.scores import files as score_files
from scalable_agent.scores import levels
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import flag_texts
from scalable_agent.settings import sections
import tensorflow as tf

# Default interval between checkpoints of deterministic runs.
_MAX_FRAMES_BETWEEN = 1_000_000
# Names of files that a killed run leaves behind.
TEMPORARY_NAMES = (
    checkpointing.TEMPORARY_NAMES, config_lib.TEMPORARY_NAME,
    evaluations.TEMPORARY_NAME, saving.TEMPORARY_NAME)


def settings_before(config: config_lib.Config) -> config_lib.Config | None:
  """Returns the settings of the last part; ConfigError for another task."""
  before = config_lib.trained_with(config.logdir)
  if before:
    config.check_same_task(before)
  return before


def with_clipping_of_run(config: config_lib.Config) -> config_lib.Config:
  """Replaces the default `reward_clipping` by that of the run; prints so."""
  default = config_lib.Config(
      algorithm=config.algorithm, level_name=config.level_name)
  if config.reward_clipping != default.reward_clipping:
    return config
  kept = config_lib.with_saved_clipping(config)
  if kept != config:
    print(f'{config.logdir} was trained with reward_clipping='
          f'{kept.reward_clipping}, and stays so.', flush=True)
  return kept


def restore_learner(
    config: config_lib.Config, actors: interface.Acting, part: int,
    collectives: collectives_lib.Collectives,
    addons: Mapping[str, addons_lib.Addon] | None
) -> tuple[learner_lib.Learner, checkpointing.Checkpointer]:
  """Makes a learner and restores the latest checkpoint, if there is one."""
  learner = make_learner(config, actors.spec, part, addons, collectives)
  memory_check.check_memory(
      config if config.learners_share_a_machine else
      config.of_learner(len(actors.environments)), actors.spec, learner.agent)
  checkpointer = checkpointing.Checkpointer(
      config.logdir, learner, algorithms.describe(config, actors.spec),
      level=config.level_name, allow_other_level=config.allow_other_task)
  try:
    restored = checkpointer.restore(put_aside=collectives.rank == 0)
  except errors.CheckpointError as e:
    before = config_lib.trained_with(config.logdir)
    changes = before and flag_texts.changes_said(before, config)
    raise errors.CheckpointError(f'{e} {changes or ""}'.rstrip()) from e
  _check_same_start(learner, checkpointer, collectives)
  if restored:
    print(f'Resuming from {restored}, {learner.num_env_frames:,} frames.')
    if collectives.rank == 0:
      if config.eval_every_frames:
        earlier.put_evaluations_aside(config)
      # A part without evaluations, too: the weights of later lines are lost.
      if evaluations.read(config.logdir):
        evaluations.start(config.logdir, learner.num_env_frames)
  elif collectives.rank == 0:
    earlier.put_results_aside(config.logdir, score_files.NAMES)
  return learner, checkpointer


def number_of_part(config: config_lib.Config) -> int:
  """Returns the number of the checkpoint that the next part begins with, or 0.

  A kill between a checkpoint and its replay leaves the replay of the checkpoint
  before. A deterministic run goes back to that checkpoint.
  """
  latest = checkpoint_files.latest_number(config.logdir)
  if not (config.deterministic and config.is_off_policy and latest):
    return latest
  saved = replay_lib.saved_num_updates(os.path.join(config.logdir, 'replay'))
  names = checkpoint_files.names(config.logdir)
  if saved and saved < latest and f'ckpt-{saved}' in names:
    checkpoint_files.make_latest(config.logdir, f'ckpt-{saved}')
    print(f'The replay of ckpt-{latest} was not saved: goes back to '
          f'ckpt-{saved}.')
  elif saved == 0 and len(names) == 1:
    checkpoint_files.put_aside(config.logdir, names[0])
    print(f'The replay of ckpt-{latest} was not saved: goes back to the '
          'beginning. The checkpoint is kept as '
          f'{checkpoint_files.DAMAGED}ckpt-{latest}.')
  else:
    return latest
  return saved


def _check_same_start(learner: learner_lib.Learner,
                      checkpointer: checkpointing.Checkpointer,
                      collectives: collectives_lib.Collectives) -> None:
  """Raises ConfigError if learner 0 starts from another checkpoint or agent."""
  mine = [learner.num_env_frames, learner.num_updates,
          zlib.crc32(checkpointer.description.encode())]
  of_first = collectives.total([0] * len(mine) if collectives.rank else mine)
  if of_first != mine:
    raise errors.ConfigError(
        f'The learners start from different checkpoints or agents, {of_first} '
        f'and {mine} (frames, updates, agent): --logdir must be shared by all '
        'machines, and all levels must have the same observations and actions.')


def check_first_update(config: sections.AllSections) -> None:
  """Raises ConfigError if the whole run is shorter than the first update."""
  # `sources` checks the warm-up of a replay of steps.
  if not config.is_off_policy and (
      config.num_first_frames > config.total_environment_frames):
    size, batch_size = config.unrolls_per_collect, config.batch_size
    unrolls = (f'--batch_size={batch_size} unrolls' if not size else
               f'--unrolls_per_collect={size} unrolls' if size >= batch_size
               else f'--batch_size={batch_size} unrolls, in collections of '
                    f'--unrolls_per_collect={size},')
    raise errors.ConfigError(
        f'Nothing would be learned: {unrolls} '
        f'of --unroll_length={config.unroll_length} steps take '
        f'{config.num_first_frames:,} frames, and --total_environment_frames='
        f'{config.total_environment_frames}.')


def is_finished(config: sections.RunSettings,
                learner: learner_lib.Learner) -> bool:
  """Returns whether no frames are left; then prints a line."""
  if learner.num_env_frames < config.total_environment_frames:
    return False
  print('This run is finished: raise --total_environment_frames, or use '
        'another --logdir.')
  return True


def evaluate_last(config: config_lib.Config, spec: structs.EnvironmentSpec,
                  checkpointer: checkpointing.Checkpointer, part: int,
                  context: context_lib.RunContext) -> None:
  """Evaluates the last weights of a finished run, unless this was done.

  A stop may have prevented the evaluation at the end of the run. Learners other
  than learner 0 do nothing.
  """
  learner = checkpointer.learner
  done = evaluations.read(config.logdir)
  if context.rank or not config.eval_every_frames or (
      done and done[-1].num_env_frames == learner.num_env_frames):
    return
  with open_evaluator(
      config, spec, learner, part) as evaluator, contextlib.closing(
          metrics.MetricsWriter(
              config.logdir, spec.num_action_repeats)) as writer:
    games = evaluator.evaluate(checkpointer.train_time_s, context.stop)
    if games is not None:
      writer.write_evaluation(games, evaluator.metrics)


def end_frames(config: config_lib.Config, num_env_frames: int) -> int:
  """Returns the frames at the end of a part that begins at `num_env_frames`."""
  total = config.total_environment_frames
  if not config.deterministic:
    return total
  every = config.save_checkpoint_frames or min(
      -(-total // 10), _MAX_FRAMES_BETWEEN)
  return min((num_env_frames // every + 1) * every, total)


def _checked(function: addons_lib.Addon, who: str) -> addons_lib.Addon:
  """Returns the function, with UserCodeErrors for its errors and results."""
  def term(agent: agents.Agent, data: structs.Nest) -> tf.Tensor:
    with user_code.errors_explained(who):
      result = function(agent, data)
      loss = result if result is None else tf.convert_to_tensor(
          result, tf.float32)
    if loss is None or loss.shape.rank != 0:
      found = 'None' if loss is None else f'shape {loss.shape}'
      raise errors.UserCodeError(f'{who} must return a scalar, not {found}.')
    return loss

  return term


def make_learner(config: config_lib.Config, spec: structs.EnvironmentSpec,
                 part: int = 0,
                 addons: Mapping[str, addons_lib.Addon] | None = None,
                 collectives: collectives_lib.Collectives | None = None
                 ) -> learner_lib.Learner:
  """Makes a learner.

  Args:
    spec: the spec of the environments. No environment is needed.
    part: a number that differs between the parts of a run.
    addons: further terms of the policy's loss, by name.
    collectives: connects several learners. The batch size of the settings is
      the sum over all learners.

  Raises:
    ConfigError: the algorithm or the agent does not fit the environments.
  """
  collectives = collectives or collectives_lib.Alone()
  # All learners start with equal weights, but draw different noise in losses.
  algorithm = algorithms.make(
      config, spec, config.derive_seed('learner', 0, part))
  target_policy = algorithm.target_policy if isinstance(
      algorithm, appo.Appo) else None
  addons = {name: _checked(function, f'{name} of addons')
            for name, function in (addons or {}).items()}
  if config.addon:
    addons[config.addon.rpartition(':')[2]] = _checked(
        user_code.load(config.addon, 'addon'), f'{config.addon} of --addon')
  if addons:  # Terms are means; gradients are summed over learners.
    algorithm = addons_lib.WithAddons(
        algorithm, addons,
        share=1.0 if config.is_off_policy else 1 / collectives.size)
  # None for algorithms without these groups.
  multipliers = {name: config.temperature_learning_rate or 0.
                 for name in ('temperature', 'duals')}
  critic = config.critic_learning_rate or config.learning_rate
  rates = {'critic': critic, 'memory': config.memory_learning_rate or critic,
           **multipliers}
  is_cut = 0 < config.micro_batch_size < config.batch_size
  return learner_lib.Learner(
      algorithm,
      {group: _make_optimizer(config, rates.get(group, config.learning_rate))
       for group in algorithm.groups},
      seed=config.derive_seed('learner', collectives.rank, part),
      clip_gradient_norm=config.clip_gradient_norm or None,
      clip_gradient_value=config.clip_gradient_value or None,
      micro_batch_size=config.micro_batch_size if is_cut else None,
      updates_per_call=config.updates_per_call or 1,
      jit_compile=config.xla == 'all', collectives=collectives,
      has_mean_losses=config.is_off_policy, unclipped=multipliers,
      return_rate=1e-3 if config.algorithm == 'appo' else 1e-4,
      target_policy=target_policy)


def _make_optimizer(config: config_lib.Config,
                    rate: float) -> optimizers_lib.Scheduled:
  optimizer = optimizers_lib.make_optimizer(
      config.optimizer, learning_rate=rate, decay=config.decay,
      momentum=config.momentum, epsilon=config.epsilon,
      beta_1=config.adam_beta1, beta_2=config.adam_beta2)
  if config.learning_rate_schedule == 'kl':
    return optimizers_lib.Scheduled(
        optimizer, optimizers_lib.KlSchedule(rate, config.learning_rate_kl))
  if config.learning_rate_schedule == 'constant':
    return optimizers_lib.Scheduled(optimizer, lambda num_env_frames: rate)
  return optimizers_lib.Scheduled(
      optimizer, lambda num_env_frames: optimizers_lib.linear_decay(
          rate, num_env_frames, config.total_environment_frames))


def evaluation_environments(
    config: config_lib.Config) -> environments.FlowEnvironment:
  """Makes the environments of evaluations while training.

  The environments play whole games on the levels of the training, with other
  seeds. There are at most as many environments as in the training. The numbers
  follow the numbers of the training, which runs at the same time.
  """
  names = levels.played(
      levels.level_names(config.level_name, config.is_test),
      config.num_actors)
  # The levels take turns, so that each level plays the same number of games.
  names *= min(config.eval_num_episodes, config.num_actors // len(names))
  return environments.make_vec(
      # All evaluations of a run play the same games.
      names, [config.derive_seed('evaluation', i) for i in range(len(names))],
      dataclasses.replace(config, life_loss_ends_episode=False),
      first_index=config.num_actors,
      restarts=shares.restarts_of(config, same_seeds=True))


@contextlib.contextmanager
def open_evaluator(
    config: config_lib.Config, spec: structs.EnvironmentSpec,
    learner: learner_lib.Learner, part: int) -> Iterator[
        evaluation.Evaluator]:
  """Yields the evaluator of a learner; closes its environments at the exit.

  Raises LockedError if a training uses `best` as its log directory.
  """
  directory = os.path.join(config.logdir, 'best')
  # On a cluster, a learner that was lost can have the lock for a while.
  lock = (contextlib.nullcontext() if config.ray_address
          else logdirs.locked(directory))
  with lock, evaluation_environments(config) as env:
    logdirs.remove_leftovers(
        directory, TEMPORARY_NAMES, score_files.TEMPORARY_NAME)
    policy = policies.AgentPolicy(
        algorithms.make_agent(
            config, spec, config.derive_seed('evaluation', env.num_envs, part)),
        greedy=config.test_greedy, jit_compile=config.xla != 'none')
    best = checkpointing.BestCheckpoint(
        config.logdir, learner, algorithms.describe(config, spec),
        config.level_name)
    dataclasses.replace(config, logdir=best.logdir).save(learner.num_updates)
    checkpointing.save_spec(best.logdir, spec)
    yield evaluation.Evaluator(env, policy, learner, config, best)
