# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Settings of the learner: batches, optimizer and gradients."""

import dataclasses

from scalable_agent.settings.declare import BELOW_ONE
from scalable_agent.settings.declare import By
from scalable_agent.settings.declare import COUNT
from scalable_agent.settings.declare import FRACTION
from scalable_agent.settings.declare import IS_FUNCTION
from scalable_agent.settings.declare import Needs
from scalable_agent.settings.declare import NOT_NEGATIVE
from scalable_agent.settings.declare import OFF_POLICY
from scalable_agent.settings.declare import POSITIVE
from scalable_agent.settings.declare import Section
from scalable_agent.settings.declare import setting
from scalable_agent.settings.declare import VTRACE

_RMSPROP = Needs('optimizer', ('rmsprop', 'torch_rmsprop'))
_ADAM = Needs('optimizer', ('adam',))


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearnerSettings(Section):
  """The learner: batches, optimizer and gradients."""
  batch_size: int = setting(
      By({'impala': 2, 'off-policy with LSTM': 32, 'ddqn on Atari': 32,
          'ddqn': 64, 'others': 256}),
      'Size of a batch. impala and appo: unrolls per update, each of one '
      'environment; appo: by default about a quarter of --unrolls_per_collect. '
      'All other algorithms: transitions per update, or with --use_lstm '
      'sequences.',
      POSITIVE, COUNT, divided='exactly')
  learning_rate: float = setting(
      By(impala=0.00048, appo=0.00025, ddqn=0.0001, others=0.0003),
      'Learning rate at frame 0; see --learning_rate_schedule. ddpg, td3, sac, '
      'mpo: rate of the policy, and of the critics unless '
      '--critic_learning_rate is set.', NOT_NEGATIVE)
  learning_rate_schedule: str = setting(
      By(impala='linear', appo='linear', others='constant'),
      'Schedule of the learning rate. linear: decreases to 0 at '
      '--total_environment_frames. constant: stays the same. kl (appo only): '
      'rises by half or falls by a third after a collection, so that the KL '
      'between the policies stays near --learning_rate_kl; a resumed run '
      'continues with the rate of its checkpoint, also with a new '
      '--learning_rate.',
      choices=('linear', 'constant', 'kl'))
  learning_rate_kl: float = setting(
      .008,
      'With --learning_rate_schedule=kl: after a collection, the learning rate '
      'falls if the mean KL is above twice this number, and rises if the mean '
      'KL is below half of this number.', POSITIVE, algorithms=('appo',),
      needs=Needs('learning_rate_schedule', ('kl',)))
  optimizer: str = setting(
      By(impala='rmsprop', others='adam'),
      'Optimizer. rmsprop: RMSProp of TensorFlow 1. torch_rmsprop: RMSProp of '
      'PyTorch, whose second moment starts at 0 instead of 1. adam: Adam of '
      'the paper and of PyTorch.', choices=('rmsprop', 'torch_rmsprop', 'adam'))
  decay: float = setting(
      .99,
      'Optimizers rmsprop and torch_rmsprop: decay of the second moment.',
      FRACTION, needs=_RMSPROP)
  momentum: float = setting(
      0.,
      'Optimizers rmsprop and torch_rmsprop: momentum.', NOT_NEGATIVE,
      needs=_RMSPROP)
  epsilon: float = setting(
      By({'impala with rmsprop': .1, 'appo': 1e-5, 'others': 1e-8}),
      'Epsilon of the optimizer. rmsprop adds epsilon inside the square root. '
      'adam and torch_rmsprop add epsilon outside, and need a smaller value, '
      'such as 0.00001.', POSITIVE)
  adam_beta1: float = setting(
      .9, 'Optimizer adam: decay of the first moment.', BELOW_ONE, needs=_ADAM)
  adam_beta2: float = setting(
      .999,
      'Optimizer adam: decay of the second moment.', BELOW_ONE, needs=_ADAM)
  clip_gradient_value: float = setting(
      0.,
      'Largest absolute value of each element of the gradient of a network. 0 '
      'for no clipping.', NOT_NEGATIVE)
  clip_gradient_norm: float = setting(
      By({'appo': .5, 'ddqn with LSTM': 40., 'off-policy with LSTM': 10.,
          'others': 0.}),
      'Largest norm of the gradient of a network (of all critics together). '
      'Larger gradients are scaled down. 0 for no clipping.', NOT_NEGATIVE)
  addon: str = setting(
      '',
      'module:function: your function, whose result is added to the loss of '
      'the policy and to the log. The arguments are the agent and the data of '
      'the loss; the result is a scalar. See docs/new_algorithm.md.',
      IS_FUNCTION)
  micro_batch_size: int = setting(
      0,
      'Unrolls of a batch that are processed at once. Smaller values need less '
      'memory; the update is always the update of the whole batch. 0 for an '
      'automatic choice: on a CPU, the deep network processes as many unrolls '
      'as have at most 42 observations in total, but at least two unrolls. '
      'With an LSTM, and with --xla=all in shallow and nature, the numbers are '
      '84 and four. In all other cases, and with --normalise_advantages, '
      '--addon or several --updates_per_call, the whole batch is processed at '
      'once.', NOT_NEGATIVE,
      algorithms=VTRACE, automatic=True, unless='addon')
  updates_per_call: int = setting(
      0,
      'Updates that the learner makes in a row before new weights are '
      'published. 0 for an automatic choice: the updates that are due when '
      'every environment has made one unroll (with the network mlp: after 8 '
      'agent steps or more), but at most 8 (32 for ddqn with the network mlp); '
      '1 with priorities or --use_lstm. For appo with the '
      'network mlp, without --use_lstm, --overlap and --ray_address, up to 32 '
      'updates of one collection; otherwise 1.', NOT_NEGATIVE, COUNT,
      algorithms=(*OFF_POLICY, 'appo'), automatic=True)
