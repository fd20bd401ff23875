# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Export mode: a trained agent as a SavedModel, and for TensorFlow Lite.

The exported files need TensorFlow, or TensorFlow Lite, but not this package.
"""

from collections.abc import Iterable, Mapping
import dataclasses
import itertools
import json
import os
import re
import tempfile

import gymnasium
import numpy as np
from scalable_agent import errors
from scalable_agent.environments import spaces
from scalable_agent.environments import units
from scalable_agent.experience import structs
from scalable_agent.modes import loading
from scalable_agent.networks import agents
from scalable_agent.networks import instructions
from scalable_agent.networks import layers
from scalable_agent.networks import masks
from scalable_agent.networks import user_layers
from scalable_agent.runs import checkpoint_files
from scalable_agent.runs import logdirs
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import flag_texts
import tensorflow as tf

_GREEDY = 'step_greedy'


class ExportedAgent(tf.Module):
  """An agent whose functions take and return named tensors.

  `B`, the number of environments, is free. Inputs depend on the agent:
  `observation`, or `observation_NAME` for each part of a dictionary that the
  agent sees, where all but ASCII letters and digits in a name become `_`, and
  `observation_instruction` is string `[B]`; `last_action` and `reward` with
  `--use_last_action_reward`; with a memory `done`, and `c` and `h` of an LSTM,
  or `state_1`, ... of another core. Observations and actions have the units of
  the environment: a `Discrete` is int32 `[B]`.

  Attributes:
    inputs: the inputs of `step` and `step_greedy`, a `tf.TensorSpec` by name.
    names_of_parts: the input of each part of a dictionary, by the part's name.
  """

  def __init__(self, agent: agents.Agent, spec: structs.EnvironmentSpec,
               sees_last_action_reward: bool):
    """Wraps an agent that observes and acts as in `spec`.

    With `sees_last_action_reward`, the last action and reward are inputs, too.
    """
    super().__init__()
    # TensorFlow does not find the variables in all containers of user layers.
    self._tracked = [*checkpoint_files.tf_variables(agent.variables),
                     *user_layers.resources(agent)]
    self._agent = lambda: agent
    self._action_spec = spec.action
    self._units = units.Units(spec.units)
    tensor = lambda spec: tf.TensorSpec(
        [None, *spec.shape],
        tf.string if spec.dtype == object else tf.as_dtype(spec.dtype))
    parts, self.names_of_parts = {spaces.ONLY_ARRAY: spec.observation}, {}
    if isinstance(spec.observation, dict):
      unseen = instructions.not_seen(spec.observation)
      if not agent.reads_instructions:
        unseen.add('instruction')
      parts = {name: part for name, part in spec.observation.items()
               if name not in unseen}
      self.names_of_parts = _input_names(parts)
    # The space of each input that is counted.
    self._counted = {
        self.names_of_parts.get(name, 'observation'): space
        for name, space in self._units.counted.items() if name in parts}
    self.inputs = {
        self.names_of_parts.get(name, 'observation'): tensor(part)
        for name, part in parts.items()}
    for name, space in self._counted.items():
      self.inputs[name] = tf.TensorSpec([None, *(space.shape or ())], tf.int32)
    if sees_last_action_reward:
      self.inputs['last_action'] = tensor(spec.action.array)
      self.inputs['reward'] = tf.TensorSpec([None], tf.float32)
    if agent.has_memory:
      self.inputs['done'] = tf.TensorSpec([None], tf.bool)
      for name, part in self._named_state(agent.initial_state(1)).items():
        self.inputs[name] = tf.TensorSpec([None, *part.shape[1:]], tf.float32)

  @property
  def agent(self) -> agents.Agent:
    """The agent, which is no part of the SavedModel."""
    return self._agent()

  def initial_state(self, batch_size: tf.Tensor) -> dict[str, tf.Tensor]:
    """Returns the state before the first step of `batch_size` environments.

    The state has the inputs `last_action` and those of the memory, where `step`
    has these inputs. If `step` has none, `batch_size` is returned, because a
    signature must return a tensor.
    """
    state = self._named_state(self.agent.initial_state(batch_size))
    if 'last_action' in self.inputs:
      shape, dtype = self._action_spec.array
      state['last_action'] = tf.zeros(
          [batch_size, *shape], tf.as_dtype(dtype))
    return state or {'batch_size': tf.identity(batch_size)}

  def step(self, **inputs: tf.Tensor) -> dict[str, tf.Tensor]:
    """Chooses actions as in training; has the outputs of `step_greedy`."""
    outputs = self.step_greedy(**inputs)
    seeds = tf.random.uniform([3, 2], maxval=tf.int32.max, dtype=tf.int32)
    return {**outputs, **self._actions(self.agent.explore(
        outputs['policy'], seeds, masks.of(self._observation(inputs))))}

  def step_greedy(self, **inputs: tf.Tensor) -> dict[str, tf.Tensor]:
    """Chooses the best known actions.

    Returns:
      `action` `[B, ...]`, in the units of the environment;
      `normalised_action`, which is the next `last_action`: integers from 0 on,
      or floats within [-1, 1]; `policy`, float32 `[B, P]`, the parameters of
      the policy, which are logits for discrete actions (-1e20 where
      `observation_action_mask` is False); `baseline`, float32 `[B]`, for agents
      with a baseline (`[B, L]` with `--normalise_returns` of `L` levels, in
      the order of their names); the next state of a memory, named as
      the inputs.
    """
    observation = self._observation(inputs)
    if 'observation_instruction' in inputs:
      observation['instruction'] = instructions.hash_words_in_graph(
          inputs['observation_instruction'])
    batch_size = tf.shape(tf.nest.flatten(observation)[0])[0]
    shape, dtype = self._action_spec.array
    add_time = lambda tensor: tensor[tf.newaxis]
    outputs, state = self.agent.unroll(
        add_time(inputs.get('last_action', tf.zeros(
            [batch_size, *shape], tf.as_dtype(dtype)))),
        structs.StepOutput(
            add_time(inputs.get('reward', tf.zeros([batch_size]))),
            structs.NO_INFO,
            add_time(inputs.get('done', tf.zeros([batch_size], tf.bool))),
            tf.nest.map_structure(add_time, observation)),
        tuple(inputs[name] for name in self.agent.state_names))
    action = self.agent.head.distribution(outputs.policy[0]).mode()
    result = {**self._actions(action), 'policy': outputs.policy[0]}
    if not isinstance(outputs.baseline, tuple):
      result['baseline'] = outputs.baseline[0]
    return {**result, **self._named_state(state)}

  def _named_state(self, state: structs.State) -> dict[str, tf.Tensor]:
    return dict(zip(self.agent.state_names, state, strict=True))

  def _observation(self, inputs: Mapping[str, tf.Tensor]) -> structs.Nest:
    """Returns the observation of the agent."""
    inputs = {name: _multi_hot(value, self._counted[name])
              if name in self._counted else value
              for name, value in inputs.items()}
    return {part: inputs[name] for part, name in self.names_of_parts.items()
            } or inputs['observation']

  def _actions(self, action: tf.Tensor) -> dict[str, tf.Tensor]:
    """Returns both forms of actions `[B, ...]` of the agent."""
    if self._action_spec.size:  # A Gaussian without squashing has no bounds.
      action = tf.clip_by_value(action, -1.0, 1.0)
    return {'action': _in_space(action, self._units.action_space),
            'normalised_action': action}

  def signatures(self) -> dict[str, tf.types.experimental.ConcreteFunction]:
    """Returns the three functions, by name, for `tf.saved_model.save`."""
    inputs = {name: tf.TensorSpec(spec.shape, spec.dtype, name)
              for name, spec in self.inputs.items()}
    trace = lambda method, **specs: tf.function(
        method, autograph=False).get_concrete_function(**specs)
    return {
        'initial_state': trace(self.initial_state, batch_size=tf.TensorSpec(
            [], tf.int32, 'batch_size')),
        'step': trace(self.step, **inputs),
        _GREEDY: trace(self.step_greedy, **inputs)}


def _in_space(actions: tf.Tensor, space: gymnasium.Space | None) -> tf.Tensor:
  """Does the same as `environments.spaces.to_space`, in float32 and int32."""
  if space is None:
    return tf.identity(actions)
  actions = tf.reshape(actions, [-1, *(space.shape or ())])
  if isinstance(space, gymnasium.spaces.MultiBinary):
    return actions
  if not isinstance(space, gymnasium.spaces.Box):
    return actions + np.asarray(space.start, np.int32)
  low, high = space.low.astype(np.float32), space.high.astype(np.float32)
  # Rounded to float32, a bound may lie outside.
  low = np.where(low < space.low, np.nextafter(low, high), low)
  high = np.where(high > space.high, np.nextafter(high, low), high)
  share = (actions + 1) / 2
  return tf.clip_by_value((1 - share) * low + share * high, low, high)


def _multi_hot(numbers: tf.Tensor, space: gymnasium.Space) -> tf.Tensor:
  """Does the same as `gymnasium.spaces.flatten`, to float32 `[B, N]`."""
  is_binary = isinstance(space, gymnasium.spaces.MultiBinary)
  sizes = np.ravel(
      np.full(space.shape, 2) if is_binary else
      space.n if isinstance(space, gymnasium.spaces.Discrete) else space.nvec)
  start = 0 if is_binary else np.asarray(space.start, np.int32)
  numbers = tf.reshape(numbers - start, [-1, len(sizes)])
  # TensorFlow Lite leaves assertions out.
  text = f'An observation is not in its space, {spaces.in_a_line(space)}.'
  with tf.control_dependencies([
      tf.debugging.assert_non_negative(numbers, text),
      tf.debugging.assert_less(numbers, sizes.astype(np.int32), text)]):
    numbers = tf.identity(numbers)
  if is_binary:
    return tf.cast(numbers, tf.float32)
  return tf.concat([tf.one_hot(numbers[:, i], int(size))
                    for i, size in enumerate(sizes)], -1)


def _input_names(parts: Iterable[object]) -> dict[object, str]:
  """Returns a name of an input for each part; equal names get a number."""
  plain = lambda part: re.sub(r'\W', '_', f'observation_{part}', flags=re.A)
  names: dict[object, str] = {}
  # Names that stay as they are come first.
  for part in sorted(parts, key=lambda part: (
      plain(part) != f'observation_{part}', str(part))):
    free = (plain(part) + (f'_{number}' if number > 1 else '')
            for number in itertools.count(1))
    # SavedModels do not distinguish capitals.
    taken = {name.lower() for name in names.values()}
    names[part] = next(name for name in free if name.lower() not in taken)
  return names


def run(config: config_lib.Config) -> int:
  """Calls `export`; returns the exit code of the program."""
  export(config)
  return 0


@layers.state_of_caller_kept()
def export(config: config_lib.Config) -> str:
  """Writes the latest checkpoint of `logdir` to its directory `export`.

  Returns the new directory, with a SavedModel, `agent.json` (settings,
  observations and actions) and perhaps `agent.tflite`.

  Raises:
    ConfigError: `logdir` holds no checkpoint, the network cannot be converted
      as `export_format` asks for, or the files cannot be written.
  """
  changes = flag_texts.changes_said(
      loading.trained_config(config.logdir), config)
  if changes:
    raise errors.ConfigError(
        'An export has the settings of the training; leave all other settings '
        'out. ' + changes)
  # Code of a user may change the directory.
  logdir = os.path.abspath(config.logdir)
  loaded = loading.load(logdir)
  module = ExportedAgent(loaded.agent, loaded.spec,
                         bool(loaded.config.use_last_action_reward))
  parent = os.path.join(logdir, logdirs.EXPORTS)
  try:
    with logdirs.unfinished(parent) as unfinished:
      new = os.path.join(unfinished, 'agent')
      _save(module, new)
      with open(os.path.join(new, 'agent.json'), 'w', encoding='utf-8') as f:
        json.dump(_description(loaded, module), f, indent=1)
      tflite = ''
      if config.export_format != 'saved_model':
        tflite = _add_tflite(module, new, config.export_format == 'tflite')
      path = logdirs.rename_to_free_name(
          new, os.path.join(parent, str(loaded.num_env_frames)))
  except (OSError, tf.errors.OpError) as e:
    raise errors.ConfigError(
        f'{parent} cannot be written: {errors.reason(e)}.') from e
  print(f'Wrote {path}: {loaded.config.algorithm} agent for '
        f'{loaded.config.level_name}, {loaded.num_env_frames:,} frames, as a '
        f'SavedModel{tflite}\nInputs: '
        + ', '.join(f'{name} {spec.dtype.name} {spec.shape}'
                    for name, spec in module.inputs.items()), flush=True)
  return path


def _save(module: ExportedAgent, directory: str) -> None:
  """Saves a module; ConfigError for a table that TensorFlow cannot save."""
  signatures = module.signatures()
  try:
    with layers.root_logger_kept():
      tf.saved_model.save(module, directory, signatures=signatures)
  except AssertionError as e:
    raise errors.ConfigError(
        'TensorFlow cannot save a table of the network. Make tables attributes '
        'of Keras layers, or items of lists or dictionaries there.') from e


def _description(loaded: loading.LoadedAgent,
                 module: ExportedAgent) -> dict[str, object]:
  return {'num_env_frames': loaded.num_env_frames,
          'inputs': {name: part for part, name in module.names_of_parts.items()
                     } or {'observation': None},
          'spec': loaded.spec.to_json(),
          'settings': dataclasses.asdict(loaded.config)}


def _add_tflite(module: ExportedAgent, directory: str, is_wanted: bool) -> str:
  """Adds `agent.tflite`; returns a text about the file for the user.

  Raises ConfigError if the conversion failed and the file `is_wanted`.
  """
  # One environment: the shapes must be known.
  inputs = {name: tf.TensorSpec([1, *spec.shape[1:]], spec.dtype, name)
            for name, spec in module.inputs.items()}
  # With variables, the converter leaves the weights out.
  weights = [(variable, tf.constant(variable.numpy()))
             for variable in module.agent.variables]

  @tf.function(autograph=False)
  def step_greedy(**inputs: tf.Tensor) -> dict[str, tf.Tensor]:
    with tf.keras.StatelessScope(state_mapping=weights):
      return module.step_greedy(**inputs)

  try:
    if any(spec.dtype == tf.string for spec in inputs.values()):
      raise ValueError('it hashes words, which TensorFlow Lite cannot do')
    if module.agent.compute_dtype == 'bfloat16':
      raise ValueError(
          'it computes in bfloat16, which TensorFlow Lite cannot do')
    with tempfile.TemporaryDirectory(dir=directory) as saved, \
        layers.root_logger_kept():
      tf.saved_model.save(tf.Module(), saved, signatures={
          _GREEDY: step_greedy.get_concrete_function(**inputs)})
      data = tf.lite.TFLiteConverter.from_saved_model(
          saved, signature_keys=[_GREEDY]).convert()
  except (OSError, MemoryError, tf.errors.ResourceExhaustedError):
    raise  # These errors have nothing to do with the network.
  except Exception as e:
    reason = next((line for line in str(e).splitlines() if line.strip()),
                  type(e).__name__)
    if is_wanted:
      raise errors.ConfigError(
          'TensorFlow Lite does not take this network: '
          f'{reason.rstrip(".")}. Use --export_format=saved_model.') from e
    return f'. TensorFlow Lite does not take this network: {reason}.'
  with open(os.path.join(directory, 'agent.tflite'), 'wb') as f:
    f.write(data)
  return f' and agent.tflite, {len(data):,} bytes.'
