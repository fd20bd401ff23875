# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Agents with discrete actions: a torso, a recurrent core, two heads.

`T` is time, `B` the batch, `A` the number of actions. An agent is evaluated by
`unroll` on whole unrolls (learning) and by `step` on single steps (acting),
with the same weights and, up to rounding, the same results.
"""

import collections.abc
import random

import numpy as np
from scalable_agent import config
from scalable_agent import errors
from scalable_agent import networks
from scalable_agent import structs
import tensorflow as tf

NETWORKS = ('deep', 'shallow', 'mlp')
_LSTM_UNITS = 256


class Agent(tf.keras.Model):
  """Policy and baseline from observations, last action and last reward.

  `make_agent` makes all variables. Their order depends only on its arguments.
  """

  def __init__(self, torso: tf.keras.layers.Layer, num_actions: int, *,
               instruction_encoder: networks.InstructionEncoder | None,
               core: networks.LSTM | None, use_last_action_reward: bool,
               head_initializer: str | tf.keras.Initializer,
               action_seed: int):
    """Puts an agent together; most callers want `make_agent`.

    Args:
      torso: maps frames `[N, ...]` to features `[N, F]`.
      num_actions: `A`.
      instruction_encoder: encodes the observations' `instruction`, or None.
      core: the recurrent core, or None for a feed-forward agent.
      use_last_action_reward: whether the agent sees the action that led to the
        observation, and its reward, clipped to [-1, 1].
      head_initializer: Keras initializer of the heads' kernels.
      action_seed: seeds the choice of actions.
    """
    super().__init__()
    self.num_actions = num_actions
    self._torso = torso
    self._instruction_encoder = instruction_encoder
    self._core = core
    self._use_last_action_reward = use_last_action_reward
    # The heads and the loss are float32 under any dtype policy.
    self._policy_logits, self._baseline = (
        tf.keras.layers.Dense(
            units, dtype='float32', name=name,
            kernel_initializer=head_initializer)
        for units, name in ((num_actions, 'policy_logits'), (1, 'baseline')))
    # Only the method is kept. Keras would save a generator in checkpoints, and
    # then restored agents would repeat each other's choices.
    self._uniform = tf.random.Generator.from_seed(
        action_seed, alg='philox').uniform

  @property
  def output_spec(self) -> structs.AgentOutput:
    """`AgentOutput` of `ArraySpec`s: what `step` returns per environment.
    """
    return structs.AgentOutput(
        action=structs.ArraySpec((), np.dtype(np.int32)),
        policy=structs.ArraySpec((self.num_actions,), np.dtype(np.float32)),
        baseline=structs.ArraySpec((), np.dtype(np.float32)))

  def initial_state(self, batch_size: int) -> structs.State:
    """Returns the recurrent state before the first step.

    Args:
      batch_size: `B`.

    Returns:
      `(c, h)`, zeros, float32 `[B, 256]`; `()` for feed-forward agents.
    """
    return self._core.initial_state(batch_size) if self._core else ()

  def tokenize(self, env_outputs: structs.StepOutput) -> structs.StepOutput:
    """Replaces instructions by numbers, see `networks.hash_words`.

    `unroll` and `step` call this if instructions are still strings. Within a
    `tf.function` that is an error: call it on the function's arguments.

    Args:
      env_outputs: `StepOutput` of `[...]`.

    Returns:
      `StepOutput` with int32 `[..., W]` for string `[...]`, or without the
      instructions if the agent does not see them. If there are none, or they
      are numbers already, it is `env_outputs` itself.

    Raises:
      ValueError: for strings within a `tf.function`.
    """
    observation = env_outputs.observation
    if self._instruction_encoder is None:
      frame, instruction = _frame_and_instruction(observation)
      return env_outputs if instruction is None else env_outputs._replace(
          observation={'frame': frame})
    instruction = observation['instruction']
    if tf.as_dtype(instruction.dtype) != tf.string:
      return env_outputs
    if tf.is_symbolic_tensor(instruction):
      raise ValueError('Words cannot be hashed within a tf.function: '
                       'call agent.tokenize on its arguments.')
    return env_outputs._replace(observation=dict(
        observation, instruction=networks.hash_words(instruction)))

  def step(self, last_action: tf.Tensor, env_output: structs.StepOutput,
           core_state: structs.State
           ) -> tuple[structs.AgentOutput, structs.State]:
    """Chooses actions for single steps.

    Args:
      last_action: int32 `[B]`, the actions that led to `env_output`.
      env_output: `StepOutput` of `[B, ...]`; only the fields that `for_agent`
        keeps are read.
      core_state: the recurrent state, see `initial_state`.

    Returns:
      `AgentOutput` of `[B, ...]` with actions sampled from the policy, and the
      next recurrent state.
    """
    add_time = lambda tensor: tf.expand_dims(tensor, 0)
    outputs, core_state = self.unroll(
        add_time(last_action),
        tf.nest.map_structure(add_time, env_output.for_agent()),
        core_state)
    logits = outputs.policy[0]
    return structs.AgentOutput(
        action=self._sample(logits), policy=logits,
        baseline=outputs.baseline[0]), core_state

  def unroll(self, last_actions: tf.Tensor, env_outputs: structs.StepOutput,
             core_state: structs.State
             ) -> tuple[structs.AgentOutput, structs.State]:
    """Evaluates the agent on unrolls; chooses no actions.

    Args:
      last_actions: int32 `[T, B]`, the actions that led to `env_outputs`.
      env_outputs: `StepOutput` of `[T, B, ...]`; only the fields that
        `for_agent` keeps are read. Where `done[t]`, the recurrent state is set
        to zero before step `t`.
      core_state: the recurrent state before the first step.

    Returns:
      `AgentOutput` of `[T, B, ...]` whose `action` is `()`, and the recurrent
      state after the last step.
    """
    env_outputs = self.tokenize(env_outputs)
    num_steps, batch_size = _dimensions(last_actions)
    merge = lambda x: _reshape_leading(x, 2, [-1])
    split = lambda x: _reshape_leading(x, 1, [num_steps, batch_size])

    features = self._features(
        merge(last_actions), merge(env_outputs.reward),
        tf.nest.map_structure(merge, env_outputs.observation))
    if self._core:
      core_output, core_state = self._core(
          split(features), core_state, env_outputs.done)
      features = merge(core_output)
    return structs.AgentOutput(
        action=(),
        policy=split(self._policy_logits(features)),
        baseline=split(self._baseline(features)[:, 0])), core_state

  def _features(self, last_action, reward, observation):
    """Returns float32 `[N, F]`: what the core sees of `N` steps."""
    frame, instruction = _frame_and_instruction(observation)
    features = [self._torso(frame)]
    if self._use_last_action_reward:
      features.append(tf.clip_by_value(reward, -1., 1.)[:, tf.newaxis])
      features.append(tf.one_hot(last_action, self.num_actions))
    if self._instruction_encoder:
      features.append(self._instruction_encoder(instruction))
    return tf.concat([tf.cast(f, tf.float32) for f in features], axis=-1)

  def _sample(self, logits):
    """Samples actions int32 `[B]` from logits `[B, A]`, by the Gumbel trick.

    XLA does not compile `tf.random.stateless_categorical`, and ignores the seed
    of `tf.random.categorical`.
    """
    gumbel = -tf.math.log(-tf.math.log(self._uniform(tf.shape(logits))))
    return tf.argmax(logits + gumbel, axis=-1, output_type=tf.int32)


def make_agent(network: str, observation_spec: structs.ObservationSpec,
               action_spec: structs.ActionSpec, *,
               use_lstm: bool = True, use_last_action_reward: bool = True,
               use_instruction: bool = True,
               seed: int | None = None) -> Agent:
  """Makes an agent with all its variables.

  Args:
    network: `deep` (ResNet) or `shallow` (two convolutions) for frames, `mlp`
      for vectors and tiny images.
    observation_spec: an `ArraySpec`; or a dictionary of them, with `frame` and
      perhaps `instruction` (string). Frames are uint8 or float, `[H, W, C]` or
      `[C, H, W]`.
    action_spec: discrete actions of one part.
    use_lstm: whether there is a recurrent core, an LSTM with 256 units.
    use_last_action_reward: whether the agent sees its last action and reward.
    use_instruction: whether the agent sees the instructions, if there are any.
    seed: seed of the initial weights and of the choice of actions. Agents that
      act at the same time need different seeds. None: it is drawn from Python's
      `random`, which `tf.keras.utils.set_random_seed` seeds.

  Returns:
    An `Agent`. `deep` with everything on is the paper's agent for DMLab-30.

  Raises:
    ConfigError: the network is unknown or does not fit the observations, or
      the actions are of another kind.
  """
  if len(action_spec.num_values) != 1:
    raise errors.ConfigError(
        f'Agents need discrete actions of one part, but these are '
        f'{action_spec}.')
  [num_actions] = action_spec.num_values
  frame_spec, instruction_spec = _frame_and_instruction(observation_spec)
  if not use_instruction:
    instruction_spec = None
  if seed is None:
    seed = random.randrange(2**31)
  initializer_seed = tf.keras.random.SeedGenerator(seed)
  agent = Agent(
      _make_torso(network, frame_spec, initializer_seed), num_actions,
      instruction_encoder=(
          networks.InstructionEncoder(initializer_seed)
          if instruction_spec is not None else None),
      core=networks.LSTM(_LSTM_UNITS, initializer_seed) if use_lstm else None,
      use_last_action_reward=use_last_action_reward,
      # With heads of zeros, the baseline finds the mean return before its
      # gradient reaches the torso. Otherwise this gradient switches off relu
      # units for good.
      head_initializer=('zeros' if network == 'shallow' else
                        networks.FanInTruncatedNormal(initializer_seed)),
      action_seed=seed)
  _make_variables(agent, frame_spec, instruction_spec)
  return agent


def _make_variables(agent, frame_spec, instruction_spec):
  """Makes all variables: evaluates the agent on one step of zeros."""
  zeros = lambda spec: tf.zeros([1, 1, *spec.shape], tf.as_dtype(spec.dtype))
  observation = zeros(frame_spec)
  if instruction_spec is not None:
    observation = {'frame': observation, 'instruction': zeros(instruction_spec)}
  agent.unroll(
      tf.zeros([1, 1], tf.int32),
      structs.StepOutput(reward=tf.zeros([1, 1]), info=structs.NO_INFO,
                         done=tf.zeros([1, 1], tf.bool),
                         observation=observation),
      agent.initial_state(1))
  agent.built = True


def make(settings: config.AgentSettings, spec: structs.EnvironmentSpec,
         seed: int) -> Agent:
  """Makes the agent that the settings ask for, see `make_agent`."""
  return make_agent(
      settings.agent, spec.observation, spec.action,
      use_lstm=settings.use_lstm,
      use_last_action_reward=settings.use_last_action_reward,
      use_instruction=settings.use_instruction, seed=seed)


def describe(settings: config.AgentSettings, spec: structs.EnvironmentSpec,
             optimizer: str) -> str:
  """Returns a line that is equal for agents that can exchange weights."""
  observation = spec.observation
  shapes = ({name: entry.shape for name, entry in observation.items()}
            if isinstance(observation, dict) else observation.shape)
  return (f'{settings.agent}, use_lstm={settings.use_lstm}, '
          f'use_last_action_reward={settings.use_last_action_reward}, '
          f'{"" if settings.use_instruction else "use_instruction=False, "}'
          f'observations {shapes}, {spec.action.num_values[0]} actions, '
          f'{optimizer}')


def _make_torso(network, frame_spec, seed):
  """Returns the torso called `network`; raises if it does not fit."""
  shape = tuple(frame_spec.shape)
  if network not in NETWORKS:
    raise errors.ConfigError(f'Unknown agent {network!r}: use --agent= one of '
                             f'{", ".join(NETWORKS)}.')
  if tf.as_dtype(frame_spec.dtype) == tf.string:
    raise errors.ConfigError('Observations of strings need a dictionary with a '
                             'frame and an instruction.')
  if network == 'mlp':
    return networks.MLPTorso(seed=seed)
  if len(shape) != 3:
    raise errors.ConfigError(
        f'--agent={network} needs frames [height, width, channels], but '
        f'observations have shape {shape}: use --agent=mlp.')
  data_format = _data_format(shape)
  if network == 'deep':
    return networks.DeepTorso(data_format, seed)
  size = min(shape[1:] if data_format == 'channels_first' else shape[:2])
  if size < networks.ShallowTorso.MIN_FRAME_SIZE:
    raise errors.ConfigError(
        f'--agent=shallow needs frames of at least '
        f'{networks.ShallowTorso.MIN_FRAME_SIZE} pixels a side, but '
        f'observations have shape {shape}: use --agent=deep or --agent=mlp.')
  return networks.ShallowTorso(data_format, seed)


def _data_format(frame_shape):
  """Returns where the channels are: on the smaller of the outer axes."""
  is_first = frame_shape[0] < frame_shape[2]
  return 'channels_first' if is_first else 'channels_last'


def _frame_and_instruction(observation):
  """Returns frame and instruction of an observation, or of its spec."""
  if not isinstance(observation, collections.abc.Mapping):
    return observation, None
  if not {'frame'} <= set(observation) <= {'frame', 'instruction'}:
    raise errors.ConfigError(
        'Observations must be one array, or a dictionary with frame and '
        f'perhaps instruction, but they have {sorted(observation)}: wrap the '
        'environment.')
  return observation['frame'], observation.get('instruction')


def _dimensions(tensor):
  """Returns the shape as a list, of integers where they are known."""
  dynamic = tf.shape(tensor)
  return [dynamic[i] if static is None else static
          for i, static in enumerate(tensor.shape)]


def _reshape_leading(tensor, num_axes, shape):
  """Reshapes the first `num_axes` axes."""
  tensor = tf.convert_to_tensor(tensor)
  return tf.reshape(tensor, shape + _dimensions(tensor)[num_axes:])
