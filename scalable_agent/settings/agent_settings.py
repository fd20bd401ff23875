# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Settings of the network."""

import dataclasses

from scalable_agent.settings.declare import By
from scalable_agent.settings.declare import Check
from scalable_agent.settings.declare import COUNT
from scalable_agent.settings.declare import FUNCTION_RULE
from scalable_agent.settings.declare import IS_FUNCTION
from scalable_agent.settings.declare import Needs
from scalable_agent.settings.declare import NETWORKS
from scalable_agent.settings.declare import OFF_POLICY
from scalable_agent.settings.declare import POSITIVE
from scalable_agent.settings.declare import Section
from scalable_agent.settings.declare import setting
from scalable_agent.settings.declare import SIZES
from scalable_agent.settings.declare import VTRACE
from scalable_agent.settings.declare import WITH_CRITICS


def _one_of(*known: str) -> Check[str]:
  return Check(lambda x: x in known or bool(x) and IS_FUNCTION.is_valid(x),
               f'must be one of {", ".join(known)}, or {FUNCTION_RULE}')


_HAS_PARTS = Check[str](lambda x: all(name.strip() for name in x.split(',')),
                        'must be none, auto, or names of parts')

# The compilation of a policy step takes as long as so many steps save: 0.15 s,
# and 60 us each. TensorFlow never frees the memory of a compiled program.
MIN_CALLS_FOR_XLA = 2500


@dataclasses.dataclass(frozen=True, kw_only=True)
class AgentSettings(Section):
  """The network, its inputs, and its computation."""
  agent: str = setting(
      'auto',
      'Neural network. deep: the ResNet of the IMPALA paper. shallow: the '
      "small network of the IMPALA paper. nature: DQN's network of 2015, three "
      'convolutions. mlp: dense layers, for vectors and tiny images. auto: mlp '
      'if no observation is a frame (three axes); for frames, deep with '
      'impala, and nature with all other algorithms (deep if a side has less '
      'than 36 pixels). module:function: your function, which makes a network; '
      'see docs/new_network.md.', _one_of('auto', *NETWORKS), automatic=True)
  hidden_sizes: str = setting(
      By(impala='64,64', appo='64,64', others='256,256'),
      'Units of the dense layers of mlp, of critics of continuous actions, of '
      'networks for frames with further observations, and of '
      '--separate_baseline.', SIZES)
  layer_norm: bool = setting(
      False,
      'Normalise the first layer of --hidden_sizes, followed by tanh, and use '
      'ELU instead of ReLU in the further layers, as in the networks of acme. '
      'With frames and continuous actions, only critics have such layers.',
      algorithms=OFF_POLICY)
  use_lstm: bool | None = setting(
      By(impala=True, others=False),
      'The agent has a memory, an LSTM or another --core. Off-policy '
      'algorithms then learn from sequences of steps; see --sequence_length. '
      'Critics see the memory of the policy, and the memory learns from the '
      'loss of the critics.')
  core: str = setting(
      'lstm',
      'Recurrent core of an agent with --use_lstm. lstm: the LSTM of the '
      'IMPALA paper. gru: a GRU. module:function: your function, which makes '
      'a Keras cell; see docs/new_network.md.', _one_of('lstm', 'gru'),
      needs=Needs('use_lstm'))
  lstm_units: int | None = setting(
      By({'ddqn with LSTM': 256, 'off-policy with LSTM': 128, 'others': 256}),
      'Units of the LSTM, or of another --core.', POSITIVE, COUNT,
      needs=Needs('use_lstm'))
  use_last_action_reward: bool | None = setting(
      By({'impala': True, 'off-policy with LSTM': True, 'others': False}),
      'The agent sees its last action and its last (clipped) reward. All but '
      'impala and appo need --use_lstm for this.')
  use_instruction: bool = setting(
      True,
      'The agent sees the instruction, in levels with instructions. All but '
      'impala and appo need --use_lstm for this.')
  normalise_observations: str | None = setting(
      By(appo='auto', others='none'),
      'Parts of observations that the agent sees normalised, each number (of '
      'frames each pixel) by its running mean and standard deviation, clipped '
      'to [-5, 5]. none: no part. auto: all floats and uint8, but no one-hot '
      'codes and no other integers; with --agent=module:function no uint8, '
      'which the function expects as bytes. Or names of parts of a dictionary, '
      'separated by commas.', _HAS_PARTS,
      algorithms=(*VTRACE, *WITH_CRITICS))
  scale_from_state: bool | None = setting(
      By(impala=True, appo=False, mpo=True),
      'The standard deviation of the Gaussian policy depends on the '
      'observation. If off, each number of an action has a learned standard '
      'deviation for all observations.', algorithms=(*VTRACE, 'mpo'),
      actions='continuous')
  separate_baseline: bool = setting(
      False,
      'Policy and baseline have dense layers (--hidden_sizes) of their own. '
      'They share only layers for frames and instructions, or those of '
      '--agent=module:function. If off, policy and baseline share all layers '
      'but the last.',
      algorithms=VTRACE, unless='use_lstm')
  normalise_returns: bool | None = setting(
      By(appo=True, others=False),
      'The baseline learns returns that are normalised by their running mean '
      'and standard deviation, and advantages are divided by this deviation '
      '(PopArt). So the size of rewards does not matter. Each of several '
      'levels has a mean and a deviation.', algorithms=VTRACE)
  compute_dtype: str = setting(
      'float32',
      'Data type in which the networks compute. bfloat16 took 0.7 of the time '
      'for an update of the deep network on an H100. On a CPU with '
      'AVX512_BF16, the deep network trained 1.7 times as fast, the shallow '
      'network 1.1 times; on others, bfloat16 may be slower. Weights, the '
      'state of the LSTM, the GRU, V-trace and losses are always float32.',
      choices=('float32', 'bfloat16'))
  xla: str = setting(
      'auto',
      'Functions that XLA compiles. none: no function. policy: the policy '
      'steps. all: the policy steps and the updates. auto: for an mlp on a '
      'CPU, all with ddqn, and with appo if --updates_per_call is above 1; '
      'policy with other algorithms or --addon, if each environment makes '
      f'{MIN_CALLS_FOR_XLA:,} agent steps or more, or with --deterministic; '
      'otherwise none. '
      'XLA never compiles policy steps that groups of environments share '
      '(--dynamic_batching). On a CPU, XLA also compiles the normalising of '
      'large batches of frames, whatever this setting is.',
      choices=('auto', 'none', 'policy', 'all'), automatic=True)
