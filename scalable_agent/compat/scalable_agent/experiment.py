# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The names of DeepMind's `experiment`.

Functions read the flags, as there; before flags are parsed, their defaults.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import dataclasses
from typing import NamedTuple
import weakref

from absl import flags
from scalable_agent import errors
from scalable_agent import experiment as program
from scalable_agent.compat import pytorch_seed_rl
from scalable_agent.compat.scalable_agent import dmlab30
from scalable_agent.compat.scalable_agent import environments
from scalable_agent.compat.scalable_agent import py_process
from scalable_agent.compat.scalable_agent import vtrace
from scalable_agent.compat.scalable_agent.agent import Agent
from scalable_agent.compat.scalable_agent.agent import AgentOutput
from scalable_agent.compat.scalable_agent.agent import LstmState
from scalable_agent.environments import dmlab
from scalable_agent.experience import structs
from scalable_agent.learning import optimizers
from scalable_agent.losses import actor_critic
from scalable_agent.losses.actor_critic import compute_baseline_loss
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import lab_levels
from scalable_agent.vtrace import TensorLike
import tensorflow as tf

__all__ = [
    'ActorOutput', 'Agent', 'AgentOutput', 'build_actor', 'build_learner',
    'compute_baseline_loss', 'compute_entropy_loss',
    'compute_policy_gradient_loss', 'create_environment', 'is_single_machine',
    'main', 'pin_global_variables', 'test', 'train']

FLAGS = flags.FLAGS


class ActorOutput(NamedTuple):
  """An unroll of an actor. The difference: the fields have types.

  Attributes:
    level_name: name of the level.
    agent_state: the state of the LSTM before the first entry, `[...]`.
    env_outputs: `StepOutput` of `[T + 1, ...]`.
    agent_outputs: `AgentOutput` of `[T + 1, ...]`; entry `t` has led to entry
      `t` of `env_outputs`.
  """
  level_name: str
  agent_state: LstmState
  env_outputs: environments.StepOutput
  agent_outputs: AgentOutput


class _ActorState(NamedTuple):
  """An actor between two unrolls."""
  env_state: environments.State
  env_output: environments.StepOutput
  agent_state: LstmState
  agent_output: AgentOutput


class _Learner(NamedTuple):
  """The optimizer of an agent, and the frames so far, int64."""
  optimizer: optimizers.RMSProp
  num_env_frames: tf.Variable


_ACTORS: weakref.WeakKeyDictionary[object, _ActorState] = (
    weakref.WeakKeyDictionary())
_LEARNERS: weakref.WeakKeyDictionary[object, _Learner] = (
    weakref.WeakKeyDictionary())


def _config(is_new: bool = True) -> config_lib.Config:
  if not FLAGS.is_parsed():
    return config_lib.Config(level_name=lab_levels.DEFAULT)
  return program.config_of(FLAGS, is_new)


def is_single_machine() -> bool:
  """Returns whether `--task` is -1. There is no difference."""
  return _config().task == -1


def build_actor(
    agent: Agent, env: environments.FlowEnvironment, level_name: str,
    action_set: Sequence[Sequence[int]]) -> ActorOutput:
  """Plays an unroll of `--unroll_length` steps.

  The difference: each call plays the next unroll of `env`. The state between
  unrolls is kept as long as `env`.
  """
  state = _ACTORS.get(env) or _start(agent, env)
  actions = tf.constant(action_set)
  states = [state]
  for _ in range(_config().unroll_length):
    agent_output, agent_state = agent(
        (state.agent_output.action, _with_batch(state.env_output)),
        state.agent_state)
    env_output, env_state = env.step(
        tf.gather(actions, agent_output.action[0]), state.env_state)
    state = _ActorState(env_state, env_output, agent_state, agent_output)
    states.append(state)
  _ACTORS[env] = state
  stack = lambda *tensors: tf.stack(tensors)
  return ActorOutput(
      level_name, _without_batch(states[0].agent_state),
      tf.nest.map_structure(stack, *(s.env_output for s in states)),
      tf.nest.map_structure(
          stack, *(_without_batch(s.agent_output) for s in states)))


def _start(agent: Agent, env: environments.FlowEnvironment) -> _ActorState:
  env_output, env_state = env.initial()
  agent_state = agent.initial_state(1)
  agent_output, _ = agent(
      (tf.zeros([1], tf.int32), _with_batch(env_output)), agent_state)
  return _ActorState(env_state, env_output, agent_state,
                     tf.nest.map_structure(tf.zeros_like, agent_output))


def _with_batch(nest: structs.Nest) -> structs.Nest:
  return tf.nest.map_structure(lambda x: x[tf.newaxis], nest)


def _without_batch(nest: structs.Nest) -> structs.Nest:
  return tf.nest.map_structure(lambda x: x[0], nest)


def compute_entropy_loss(logits: TensorLike) -> tf.Tensor:
  """Returns minus the sum of the entropies. There is no difference."""
  return pytorch_seed_rl.entropy(logits)


def compute_policy_gradient_loss(
    logits: TensorLike, actions: TensorLike,
    advantages: TensorLike) -> tf.Tensor:
  """Returns the loss of the policy. The difference: shapes are checked.

  Args:
    logits: `[T, B, A]`.
    actions: `[T, B]`, in `[0, A)`.
    advantages: `[T, B]`; no gradient flows through.
  """
  return pytorch_seed_rl.policy_gradient(logits, actions, advantages)


def build_learner(
    agent: Agent, agent_state: LstmState, env_outputs: environments.StepOutput,
    agent_outputs: AgentOutput
) -> tuple[tf.Tensor, environments.StepOutputInfo, tf.Tensor]:
  """Makes an update with a batch of unrolls.

  The difference: each call makes an update, and writes no summaries. The
  optimizer and the number of frames are kept as long as `agent`.

  Args:
    agent: the agent to train.
    agent_state: state before the first entries, `[B, ...]`.
    env_outputs: `StepOutput` of `[T + 1, B, ...]`.
    agent_outputs: `AgentOutput` of `[T + 1, B, ...]`.

  Returns:
    Whether episodes ended, `[T, B]`; the statistics of the episodes, `[T, B]`;
    the number of frames after the update, int64.
  """
  config = _config()
  with tf.GradientTape() as tape:
    loss = _loss(config, agent, agent_state, env_outputs, agent_outputs)
  if agent not in _LEARNERS:
    _LEARNERS[agent] = _Learner(
        optimizers.RMSProp(config.learning_rate, config.decay, config.momentum,
                           config.epsilon),
        tf.Variable(0, dtype=tf.int64, trainable=False))
  optimizer, num_env_frames = _LEARNERS[agent]
  optimizer.learning_rate.assign(optimizers.linear_decay(
      config.learning_rate, int(num_env_frames),
      config.total_environment_frames))
  variables = agent.trainable_variables
  optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
  num_env_frames.assign_add(
      config.batch_size * config.unroll_length * config.num_action_repeats)
  return (env_outputs.done[1:],
          tf.nest.map_structure(lambda x: x[1:], env_outputs.info),
          tf.identity(num_env_frames))


def _loss(config: config_lib.Config, agent: Agent, agent_state: LstmState,
          env_outputs: environments.StepOutput,
          agent_outputs: AgentOutput) -> tf.Tensor:
  outputs, _ = agent.unroll(agent_outputs.action, env_outputs, agent_state)
  # The learner's output at `t` and the next entry belong to one action.
  logits, baseline = outputs.policy_logits[:-1], outputs.baseline[:-1]
  actions = agent_outputs.action[1:]
  returns = vtrace.from_logits(
      agent_outputs.policy_logits[1:], logits, actions,
      discounts=config.discounting * tf.cast(
          ~env_outputs.done[1:], tf.float32),
      rewards=actor_critic.clip_rewards(
          env_outputs.reward[1:], config.reward_clipping),
      values=baseline, bootstrap_value=outputs.baseline[-1])
  return (
      compute_policy_gradient_loss(logits, actions, returns.pg_advantages)
      + config.baseline_cost * compute_baseline_loss(returns.vs - baseline)
      + config.entropy_cost * compute_entropy_loss(logits))


def create_environment(level_name: str, seed: int, is_test: bool = False
                       ) -> environments.FlowEnvironment:
  """Makes a level of DeepMind Lab, in its own process.

  The difference: the first call of a method starts the process. Other levels
  need `scalable_agent.environments.make_vec`.
  """
  if level_name in dmlab30.ALL_LEVELS:
    level_name = lab_levels.DMLAB30_PREFIX + level_name
  config = _config()
  return environments.FlowEnvironment(py_process.PyProcess(
      environments.PyProcessDmLab, level_name,
      dmlab.lab_config(config, is_test), config.num_action_repeats,
      seed).proxy)


@contextlib.contextmanager
def pin_global_variables(device: str) -> Iterator[None]:
  """Variables that are made in the context are on a device.

  The difference: TensorFlow 2 has no scopes of variables, so the context has
  no value.
  """
  def make(next_creator: Callable[..., tf.Variable],
           **kwargs: object) -> tf.Variable:
    with tf.device(device):
      return next_creator(**kwargs)

  with tf.variable_creator_scope(make):
    yield


def train(action_set: Sequence[Sequence[int]],
          level_names: Sequence[str]) -> int:
  """Trains on the levels, with the program; returns the exit code.

  The difference: `action_set` must be `DEFAULT_ACTION_SET`.
  """
  return _run('train', action_set, level_names)


def test(action_set: Sequence[Sequence[int]],
         level_names: Sequence[str]) -> int:
  """Tests on the levels, with the program; returns the exit code.

  The difference: `action_set` must be `DEFAULT_ACTION_SET`, and scores are
  written to a table, too.
  """
  return _run('test', action_set, level_names)


def main(argv: Sequence[str]) -> int:
  """Runs the program with the parsed flags.

  The difference: returns the exit code, and prints errors of users in a line.
  """
  return program.main(argv)


def _run(mode: str, action_set: Sequence[Sequence[int]],
         level_names: Sequence[str]) -> int:
  if [*map(tuple, action_set)] != [*environments.DEFAULT_ACTION_SET]:
    raise errors.ConfigError(
        'action_set must be DEFAULT_ACTION_SET. For other actions, make a '
        'gymnasium environment, and train with --level_name=module:id.')
  suite = (dmlab30.LEVEL_MAPPING.values() if mode == 'test'
           else dmlab30.LEVEL_MAPPING)
  config = dataclasses.replace(
      _config(is_new=False), mode=mode, level_name=(
          lab_levels.SUITE if [*level_names] == [*suite]
          else ','.join(level_names)))
  return program.import_mode(config)(config)
