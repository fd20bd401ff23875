# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Settings of a ray cluster."""

import dataclasses

from scalable_agent.settings.declare import AT_LEAST_MINUS_ONE
from scalable_agent.settings.declare import COUNT
from scalable_agent.settings.declare import FINITE
from scalable_agent.settings.declare import Needs
from scalable_agent.settings.declare import NOT_NEGATIVE
from scalable_agent.settings.declare import POSITIVE
from scalable_agent.settings.declare import Section
from scalable_agent.settings.declare import setting

_RAY = Needs('ray_address')


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusterSettings(Section):
  """Actors and learners on a ray cluster of several machines."""
  ray_address: str = setting(
      '',
      'Address of the ray cluster whose machines act. local: a cluster of this '
      'machine only, for this run. auto: the cluster that this machine, or '
      'this ray job, is part of. HOST:PORT: the cluster at this address. If '
      'empty, threads of this program act, and ray is not needed.')
  num_actor_workers: int = setting(
      0,
      'Number of actor workers: processes that act on the cluster of '
      '--ray_address. The environments are divided among the workers, and each '
      'worker has --num_actor_groups groups. 0: as many as the CPUs of the '
      'cluster have room for at the start.', NOT_NEGATIVE, COUNT, needs=_RAY)
  inference: str = setting(
      'local',
      'Place where policies choose actions. local: in the actor workers. '
      'central: in the process of the learner, on the accelerator, in one '
      'batch for all environments; actor workers then only step environments, '
      'without TensorFlow. central_on_cpu: as central, but allowed without an '
      'accelerator, which is slower.',
      choices=('local', 'central', 'central_on_cpu'), needs=_RAY)
  num_learners: int = setting(
      1,
      'Number of processes that learn. Each learner has an equal share of '
      '--batch_size, of the environments and of the replay. Together the '
      'learners make the same updates as one learner of the whole batch.',
      POSITIVE, needs=_RAY)
  collectives: str = setting(
      'tensorflow',
      'Way in which several learners sum their gradients. tensorflow: by NCCL '
      "between GPUs, a ring between CPUs. ray: through ray's store; slower, "
      'for networks where no other port may be open.',
      choices=('tensorflow', 'ray'), needs=_RAY)
  num_cpus_per_learner: int = setting(
      2,
      'CPUs that ray reserves for each learner. Without a GPU, a learner uses '
      'all cores of its machine.', POSITIVE, needs=_RAY)
  num_gpus_per_learner: int = setting(
      -1,
      'GPUs per learner. -1: one, if the cluster has any.', AT_LEAST_MINUS_ONE,
      needs=_RAY)
  max_learner_restarts: int = setting(
      10,
      'Number of times that a lost learner is restarted without a newer '
      'checkpoint in between.', NOT_NEGATIVE, needs=_RAY)
  num_cpus_per_actor_worker: int = setting(
      2,
      'CPUs per actor worker (see --num_actor_workers).', POSITIVE, needs=_RAY)
  min_actor_workers: int = setting(
      1,
      'Start training when this many actor workers are ready; the remaining '
      'workers join later.', POSITIVE, needs=_RAY)
  pack: str = setting(
      'auto',
      'Part of the frames that actor workers send in unrolls. none: all '
      'frames. newest: where a stack of frames only continues, its newest '
      'frame. zlib: as newest, and everything is compressed, for slow '
      'networks. auto: newest from other machines, none on the machine of the '
      'learner.', choices=('auto', 'none', 'newest', 'zlib'), needs=_RAY)
  actor_timeout_s: float = setting(
      600.,
      'With --ray_address: end the run, with a checkpoint, after this many '
      'seconds without any actor worker (at the start: without a new one while '
      'fewer than --min_actor_workers run). A worker has half of this time to '
      'open its environments.', POSITIVE, needs=_RAY)
  hang_timeout_s: float = setting(
      600.,
      'Replace an actor worker that has sent no unroll for this many seconds; '
      'restart the learners if no worker has responded for that long. With '
      'several learners, evaluations must be shorter.', POSITIVE, FINITE,
      needs=_RAY)
