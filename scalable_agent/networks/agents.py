# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Agents: a torso, perhaps a recurrent core, and a head that makes actions.

`T` is time, `B` the batch, `A` the number of actions. An agent is evaluated by
`unroll` on whole unrolls (learning) and by `step` on single steps (acting),
with the same weights and, up to rounding, the same results. Critics evaluate
actions and are separate from agents.
"""

import collections.abc
from collections.abc import Sequence
import random

import numpy as np
from scalable_agent import errors
from scalable_agent.experience import structs
from scalable_agent.networks import heads
from scalable_agent.networks import layers
from scalable_agent.processes import user_code
from scalable_agent.settings import declare
import tensorflow as tf

_LSTM_UNITS = 256


class Agent(tf.keras.Model):
  """Actions, and perhaps a baseline, from observations.

  An agent can also see the last action and the last reward. `make_agent` makes
  all variables; the order of variables depends only on the arguments.
  """

  def __init__(self, torso: tf.keras.layers.Layer,
               action_spec: structs.ActionSpec, head: heads.Head,
               params: tf.keras.layers.Layer, *,
               baseline: tf.keras.layers.Layer | None,
               instruction_encoder: layers.InstructionEncoder | None,
               core: layers.LSTM | None, use_last_action_reward: bool,
               has_epsilon: bool, action_seed: int):
    """Makes an agent of layers; most callers want `make_agent`.

    Args:
      torso: maps observations `[N, ...]` to features `[N, F]`.
      action_spec: spec of the actions.
      head: turns parameters into actions.
      params: maps features to the `P` parameters of `head`.
      baseline: maps features to `[N, 1]`; None for an agent without a baseline.
        Without a baseline, `step` returns no parameters.
      instruction_encoder: encodes the observations' `instruction`, or None.
      core: the recurrent core, or None for a feed-forward agent.
      use_last_action_reward: whether the agent sees the action that led to the
        observation, and the reward of this action, clipped to [-1, 1].
      has_epsilon: whether there is a variable `epsilon`, the probability of a
        uniformly random action, initially 1.
      action_seed: seed of the choice of actions.
    """
    super().__init__()
    self.action_spec = action_spec
    self.head = head
    self._torso = torso
    self._instruction_encoder = instruction_encoder
    self._core = core
    self._use_last_action_reward = use_last_action_reward
    self._params = params
    self._baseline = baseline
    self.epsilon = self.add_weight(
        shape=(), initializer='ones', trainable=False, dtype='float32',
        name='epsilon') if has_epsilon else None
    # Keeps the method only. Keras would save a generator in checkpoints, and
    # restored agents would repeat each other's choices.
    self._random_ints = tf.random.Generator.from_seed(
        action_seed, alg='philox').uniform_full_int

  @property
  def output_spec(self) -> structs.AgentOutput:
    """Specs of the output of `step` for one environment."""
    floats = lambda *shape: (structs.ArraySpec(shape, np.dtype(np.float32))
                             if self._baseline else ())
    return structs.AgentOutput(
        action=self.action_spec.array, policy=floats(self.head.num_params),
        baseline=floats())

  def initial_state(self, batch_size: int) -> structs.State:
    """Returns the recurrent state before the first step.

    The state is `(c, h)`, zeros, float32 `[batch_size, 256]`; `()` for
    feed-forward agents.
    """
    return self._core.initial_state(batch_size) if self._core else ()

  def tokenize(self, env_outputs: structs.StepOutput) -> structs.StepOutput:
    """Replaces instructions by numbers, see `layers.hash_words`.

    `unroll` and `step` do so themselves if instructions are still strings.
    Within a `tf.function` this is an error: tokenize the function's arguments.

    Args:
      env_outputs: `StepOutput` of `[...]`.

    Returns:
      `StepOutput` with int32 `[..., W]` for string `[...]`, or without
      instructions if the agent sees none. Without instructions, or with numbers
      instead of strings, `env_outputs` itself.

    Raises:
      ValueError: for strings within a `tf.function`.
    """
    observation = env_outputs.observation
    if (not isinstance(observation, collections.abc.Mapping)
        or 'instruction' not in observation):
      return env_outputs
    if self._instruction_encoder is None:
      return env_outputs._replace(observation={
          name: part for name, part in observation.items()
          if name != 'instruction'})
    instruction = observation['instruction']
    if tf.as_dtype(instruction.dtype) != tf.string:
      return env_outputs
    if tf.is_symbolic_tensor(instruction):
      raise ValueError('Words cannot be hashed within a tf.function: '
                       'call agent.tokenize on its arguments.')
    return env_outputs._replace(observation=dict(
        observation, instruction=layers.hash_words(instruction)))

  def step(self, last_action: tf.Tensor, env_output: structs.StepOutput,
           core_state: structs.State, greedy: bool = False
           ) -> tuple[structs.AgentOutput, structs.State]:
    """Chooses actions for single steps.

    Args:
      last_action: `[B, ...]`, the actions that led to `env_output`.
      env_output: `StepOutput` of `[B, ...]`; only the fields that `for_agent`
        keeps are read.
      core_state: the recurrent state, see `initial_state`.
      greedy: whether to take the best known actions, without exploration.

    Returns:
      `AgentOutput` of `[B, ...]`, and the next recurrent state.
    """
    add_time = lambda tensor: tf.expand_dims(tensor, 0)
    outputs, core_state = self.unroll(
        add_time(last_action),
        tf.nest.map_structure(add_time, env_output.for_agent()),
        core_state)
    params = outputs.policy[0]
    action = (self.head.distribution(params).mode() if greedy
              else self.explore(params, self._random_ints([3, 2], tf.int32)))
    if self._baseline is None:
      return structs.AgentOutput(action, (), ()), core_state
    return structs.AgentOutput(
        action, params, outputs.baseline[0]), core_state

  def unroll(self, last_actions: tf.Tensor, env_outputs: structs.StepOutput,
             core_state: structs.State
             ) -> tuple[structs.AgentOutput, structs.State]:
    """Evaluates the agent on unrolls, without a choice of actions.

    Args:
      last_actions: `[T, B, ...]`, the actions that led to `env_outputs`.
      env_outputs: `StepOutput` of `[T, B, ...]`; only the fields that
        `for_agent` keeps are read. Where `done[t]`, the recurrent state is set
        to zero before step `t`.
      core_state: the recurrent state before the first step.

    Returns:
      `AgentOutput` of `[T, B, ...]` with `()` for `action`, and for `baseline`
      if the agent has none; and the recurrent state after the last step.
    """
    env_outputs = self.tokenize(env_outputs)
    num_steps, batch_size = _dimensions(env_outputs.reward)
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
        policy=split(self._params(features)),
        baseline=(split(self._baseline(features)[:, 0])
                  if self._baseline else ())), core_state

  def explore(self, params: tf.Tensor, seeds: tf.Tensor) -> tf.Tensor:
    """Chooses actions as in training.

    Args:
      params: float32 `[B, P]`, the parameters of the head.
      seeds: integers `[3, 2]`. The same seeds give the same actions.

    Returns:
      `[B, ...]` of `action_spec.array`.
    """
    action_seed, which_seed, random_seed = tf.unstack(seeds)
    action = self.head.distribution(params).sample(action_seed)
    if self.epsilon is None:
      return action
    batch_size = tf.shape(params)[0]
    axes = [1] * (action.shape.rank - 1)
    is_random = tf.random.stateless_uniform(
        [batch_size, *axes], which_seed) < self.epsilon
    return tf.where(is_random, heads.uniform_actions(
        self.action_spec, batch_size, random_seed), action)

  def set_epsilon(self, value: float | tf.Tensor) -> None:
    """Sets the probability of a uniformly random action."""
    if self.epsilon is None:
      raise ValueError('This agent has no epsilon.')
    self.epsilon.assign(value)

  def params(self, observations: structs.Nest) -> tf.Tensor:
    """Returns the head's parameters `[N, P]` for observations `[N, ...]`.

    Only for agents that see just the observation and have no memory.
    """
    seen, _ = _split_instruction(observations)
    return self._params(tf.cast(self._torso(seen), tf.float32))

  def _features(self, last_action: tf.Tensor, reward: tf.Tensor,
                observation: structs.Nest) -> tf.Tensor:
    """Returns float32 `[N, F]`, the input of the core for `N` steps."""
    seen, instruction = _split_instruction(observation)
    features = [self._torso(seen)]
    if self._use_last_action_reward:
      features.append(tf.clip_by_value(reward, -1., 1.)[:, tf.newaxis])
      features += _action_features(self.action_spec, last_action)
    if self._instruction_encoder:
      features.append(self._instruction_encoder(instruction))
    return tf.concat([tf.cast(f, tf.float32) for f in features], axis=-1)


class Critic(tf.keras.Model):
  """Values of actions: `Q(o, a)`, or `Q(o, .)` for discrete actions."""

  def __init__(self, torso: tf.keras.layers.Layer,
               values: tf.keras.layers.Layer):
    """Makes a critic of layers; most callers want `make_critic`.

    Args:
      torso: maps observations, or pairs of observation and action, `[N, ...]`
        to features `[N, F]`.
      values: maps features to values.
    """
    super().__init__()
    self._torso = torso
    self._values = values

  def call(self, observations: structs.Nest,
           actions: tf.Tensor | None = None) -> tf.Tensor:
    """Computes values.

    Args:
      observations: nest of `[N, ...]`.
      actions: float32 `[N, ...]`, continuous; None for discrete actions.

    Returns:
      float32 `[N]`; for discrete actions `[N, A]`.
    """
    seen, _ = _split_instruction(observations)
    if actions is None:
      return self._values(tf.cast(self._torso(seen), tf.float32))
    features = self._torso(seen, actions)
    return self._values(tf.cast(features, tf.float32))[:, 0]


def make_agent(network: str, observation_spec: structs.ObservationSpec,
               action_spec: structs.ActionSpec,
               head: heads.Head | None = None, *,
               hidden_sizes: Sequence[int] = (64, 64), activation: str = 'tanh',
               layer_norm: bool = False, is_dueling: bool = False,
               has_baseline: bool = True, has_epsilon: bool = False,
               use_lstm: bool = True,
               use_last_action_reward: bool = True,
               use_instruction: bool = True, seed: int | None = None) -> Agent:
  """Makes an agent with all its variables.

  Args:
    network: `deep` (ResNet), `shallow` (two convolutions) or `nature` (three)
      for frames, `mlp` for vectors and tiny images. `module:function` is a
      function of the user. The function gets the observation spec of the agent
      (an `ArraySpec` or a dictionary of specs, without instructions) and
      returns a Keras layer or model that maps observations `[N, ...]` to
      features, float `[N, F]`.
    observation_spec: an `ArraySpec`, or a dictionary of specs: frames (uint8 or
      float, `[H, W, C]` or `[C, H, W]`), vectors, and perhaps `instruction`
      (string). The agent does not see `achieved_goal`.
    action_spec: spec of the actions.
    head: turns the network's output into actions; None for `heads.policy`.
    hidden_sizes: units of the dense layers of `mlp`, and of the layers that
      join frames with other arrays of an observation.
    activation: `tanh` or `relu`, the activation of the dense layers.
    layer_norm: whether the first dense layer is normalised, see
      `layers.MLPTorso`.
    is_dueling: whether parameters are a value plus advantages, see
      `layers.Dueling`.
    has_baseline: whether there is a baseline.
    has_epsilon: whether actions can be random, see `Agent`.
    use_lstm: whether there is a recurrent core, an LSTM with 256 units.
    use_last_action_reward: whether the agent sees the last action and reward.
    use_instruction: whether the agent sees instructions.
    seed: seed of the initial weights and of the choice of actions. Agents that
      act at the same time need different seeds. None for a seed from Python's
      `random`, which `tf.keras.utils.set_random_seed` seeds.

  Returns:
    An `Agent`. `deep` with everything on is the paper's agent for DMLab-30.

  Raises:
    ConfigError: the network is unknown or does not fit the observations.
    UserCodeError: the function of the user raises an error.
  """
  head = head or heads.policy(action_spec)
  observation_spec, instruction_spec = _split_instruction(observation_spec)
  if not use_instruction:
    instruction_spec = None
  if seed is None:
    seed = random.randrange(2**31)
  initializer_seed = tf.keras.random.SeedGenerator(seed)
  # With heads of zeros, the baseline finds the mean return before a gradient of
  # the baseline reaches the torso. Otherwise this gradient kills relu units.
  has_zero_heads = has_baseline and network in ('shallow', 'nature')
  initializer = ('zeros' if has_zero_heads else
                 layers.FanInTruncatedNormal(initializer_seed))
  # The heads and the loss are float32 under any dtype policy.
  dense = lambda units, name, bias='zeros': tf.keras.layers.Dense(
      units, dtype='float32', name=name, kernel_initializer=initializer,
      bias_initializer=bias)
  head_bias = ('zeros' if head.initial_bias is None else
               lambda _, dtype: tf.constant(head.initial_bias, dtype))
  torso = _make_torso(
      network, observation_spec, initializer_seed,
      layers.MLPTorso(hidden_sizes, activation, initializer_seed, layer_norm))
  agent = Agent(
      torso, action_spec, head,
      layers.Dueling(dense(1, 'value'), dense(head.num_params, 'advantages'))
      if is_dueling else dense(head.num_params, 'policy_logits', head_bias),
      baseline=dense(1, 'baseline') if has_baseline else None,
      instruction_encoder=(
          layers.InstructionEncoder(initializer_seed)
          if instruction_spec is not None else None),
      core=layers.LSTM(_LSTM_UNITS, initializer_seed) if use_lstm else None,
      use_last_action_reward=use_last_action_reward, has_epsilon=has_epsilon,
      action_seed=seed)
  _make_variables(agent, observation_spec, instruction_spec)
  return agent


def make_critic(network: str, observation_spec: structs.ObservationSpec,
                action_spec: structs.ActionSpec, *,
                hidden_sizes: Sequence[int], activation: str, seed: int,
                layer_norm: bool = False) -> Critic:
  """Makes a critic with all its variables, see `make_agent`.

  For discrete actions of one part, the critic returns the values of all
  actions; for continuous actions, the value of a given action.
  """
  observation_spec, _ = _split_instruction(observation_spec)
  initializer_seed = tf.keras.random.SeedGenerator(seed)
  num_values = 1 if action_spec.size else action_spec.num_values[0]
  critic = Critic(
      _make_torso(
          network, observation_spec, initializer_seed,
          layers.MLPTorso(
              hidden_sizes, activation, initializer_seed, layer_norm),
          with_actions=bool(action_spec.size)),
      tf.keras.layers.Dense(
          num_values, dtype='float32', kernel_initializer=(
              layers.FanInTruncatedNormal(initializer_seed))))
  actions = tf.zeros([1, action_spec.size]) if action_spec.size else None
  critic(_zeros([1], observation_spec), actions)
  return critic


def has_dense_layers(network: str, observation_spec: structs.ObservationSpec,
                     critics_see_actions: bool) -> bool:
  """Returns whether any network has the dense layers of `hidden_sizes`.

  Args:
    network: see `make_agent`.
    observation_spec: see `make_agent`.
    critics_see_actions: whether there are critics of continuous actions.
  """
  seen, _ = _split_instruction(observation_spec)
  return network == 'mlp' or critics_see_actions or (
      ':' not in network and isinstance(seen, dict))


def _make_variables(agent: Agent, observation_spec: structs.ObservationSpec,
                    instruction_spec: structs.ArraySpec | None) -> None:
  """Makes all variables: evaluates the agent on one step of zeros."""
  observation = _zeros([1, 1], observation_spec)
  if instruction_spec is not None:
    observation = {**(observation if isinstance(observation, dict)
                      else {'frame': observation}),
                   'instruction': _zeros([1, 1], instruction_spec)}
  agent.unroll(
      _zeros([1, 1], agent.action_spec.array),
      structs.StepOutput(reward=tf.zeros([1, 1]), info=structs.NO_INFO,
                         done=tf.zeros([1, 1], tf.bool),
                         observation=observation),
      agent.initial_state(1))
  agent.built = True


def _zeros(
    axes: list[int], spec: structs.ObservationSpec) -> layers.Observations:
  if isinstance(spec, dict):
    return {name: _zeros(axes, entry) for name, entry in spec.items()}
  return tf.zeros([*axes, *spec.shape], tf.as_dtype(spec.dtype))


def _make_torso(
    network: str, observation_spec: structs.ObservationSpec,
    seed: tf.keras.random.SeedGenerator, mlp: layers.MLPTorso,
    with_actions: bool = False) -> tf.keras.layers.Layer:
  """Returns the torso called `network`.

  Args:
    network: see `make_agent`.
    observation_spec: spec of the observations, without instructions.
    seed: seed of the initial weights.
    mlp: dense layers for arrays that are not frames, and for several arrays.
    with_actions: whether the torso also sees actions.

  Raises:
    ConfigError: the network is unknown or does not fit the observations.
  """
  parts = (observation_spec if isinstance(observation_spec, dict)
           else {'': observation_spec})
  if any(part.dtype == object for part in parts.values()):
    raise errors.ConfigError(
        'Of the observations, only `instruction` can be text: wrap the '
        'environment.')
  if network == 'mlp':
    return mlp
  if ':' in network:
    torso = _make_torso_of_user(network, observation_spec)
    return layers.JoinedTorso(torso, mlp) if with_actions else torso
  if network not in declare.NETWORKS:
    raise errors.ConfigError(f'Unknown agent {network!r}: use --agent= one of '
                             f'{", ".join(declare.NETWORKS)}.')
  frames = {name: _make_frame_torso(network, part.shape, seed)
            for name, part in parts.items() if len(part.shape) == 3}
  if not frames:
    shapes = [part.shape for part in parts.values()]
    raise errors.ConfigError(
        f'--agent={network} needs frames [height, width, channels], but '
        f'observations have shape {", ".join(map(str, shapes))}: use '
        '--agent=mlp.')
  if not isinstance(observation_spec, dict) and not with_actions:
    return frames['']
  return layers.PartsTorso(frames, mlp)


def _make_torso_of_user(
    name: str, observation_spec: structs.ObservationSpec
) -> tf.keras.layers.Layer:
  """Returns the torso from the user's function `name`, after checks."""
  make = user_code.load(name, 'agent')
  with user_code.errors_explained(f'{name} of --agent'):
    torso = make(observation_spec)
    if not isinstance(torso, tf.keras.layers.Layer):
      raise errors.ConfigError(
          f'{name} of --agent must return a Keras layer or model, not '
          f'{type(torso).__name__}.')
    features = torso(_zeros([2], observation_spec))
    shape = getattr(features, 'shape', None)
    if shape is None or len(shape) != 2 or shape[0] != 2 or (
        not tf.as_dtype(features.dtype).is_floating):
      found = (f'{tf.as_dtype(features.dtype).name} {list(shape)}'
               if shape is not None else type(features).__name__)
      raise errors.ConfigError(
          f'The torso of {name} must put out features, float [2, F], for 2 '
          f'observations, not {found}.')
  return torso


def _make_frame_torso(
    network: str, shape: tuple[int, ...], seed: tf.keras.random.SeedGenerator
) -> tf.keras.layers.Layer:
  data_format = _data_format(shape)
  if network == 'deep':
    return layers.DeepTorso(data_format, seed)
  torso = {'shallow': layers.ShallowTorso,
           'nature': layers.NatureTorso}[network]
  size = min(shape[1:] if data_format == 'channels_first' else shape[:2])
  min_size = declare.MIN_FRAME_SIZES[network]
  if size < min_size:
    raise errors.ConfigError(
        f'--agent={network} needs frames of at least {min_size} pixels a side, '
        f'but observations have shape {shape}: use --agent=deep or '
        '--agent=mlp.')
  return torso(data_format, seed)


def _data_format(frame_shape: tuple[int, ...]) -> str:
  """Returns the layout of frames; the channels are the smaller outer axis."""
  is_first = frame_shape[0] < frame_shape[2]
  return 'channels_first' if is_first else 'channels_last'


def _split_instruction(
    observation: structs.Nest) -> tuple[structs.Nest, structs.Nest | None]:
  """Splits an observation, or its spec, into torso input and instruction.

  A dictionary of one array becomes this array.
  """
  if not isinstance(observation, collections.abc.Mapping):
    return observation, None
  seen = {name: part for name, part in sorted(observation.items())
          if name not in ('instruction', 'achieved_goal')}
  if len(seen) == 1:
    [seen] = seen.values()
  return seen, observation.get('instruction')


def _action_features(
    action_spec: structs.ActionSpec, actions: tf.Tensor) -> list[tf.Tensor]:
  """Returns actions `[N, ...]` as inputs of an agent, a list of `[N, F]`."""
  if action_spec.size:
    return [tf.clip_by_value(actions, -1.0, 1.0)]
  parts = ([actions] if len(action_spec.num_values) == 1
           else tf.unstack(actions, axis=-1))
  return [tf.one_hot(part, num_values) for part, num_values
          in zip(parts, action_spec.num_values, strict=True)]


def _dimensions(tensor: tf.Tensor) -> list[int | tf.Tensor]:
  """Returns the shape, with integers for the static axes."""
  dynamic = tf.shape(tensor)
  return [dynamic[i] if static is None else static
          for i, static in enumerate(tensor.shape)]


def _reshape_leading(tensor: tf.Tensor, num_axes: int,
                     shape: list[int | tf.Tensor]) -> tf.Tensor:
  """Reshapes the first `num_axes` axes."""
  tensor = tf.convert_to_tensor(tensor)
  return tf.reshape(tensor, shape + _dimensions(tensor)[num_axes:])
