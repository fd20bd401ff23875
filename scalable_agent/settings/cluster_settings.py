# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Settings of a ray cluster."""

import dataclasses

from scalable_agent.settings.declare import Check
from scalable_agent.settings.declare import COUNT
from scalable_agent.settings.declare import FINITE
from scalable_agent.settings.declare import Needs
from scalable_agent.settings.declare import NOT_NEGATIVE
from scalable_agent.settings.declare import POSITIVE
from scalable_agent.settings.declare import Section
from scalable_agent.settings.declare import setting

_RAY = Needs('ray_address')
# The learner's address with --task alone: DeepMind's program has the same.
THIS_HOST = 'localhost:8000'


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusterSettings(Section):
  """Actors and learners on a ray cluster of several machines."""
  ray_address: str = setting(
      '',
      'Address of the ray cluster whose machines act. local: a cluster of this '
      'machine only, for this run. auto: the cluster that this machine, or '
      'this ray job, is part of. HOST:PORT: the cluster at this address. If '
      'empty, threads of this program act, and ray is not needed. With --task: '
      f'{THIS_HOST} by default.')
  num_actor_workers: int = setting(
      0,
      'Number of actor workers: processes that act on the cluster of '
      '--ray_address. The environments are divided among the workers, and each '
      'worker has --num_actor_groups groups. 0: as many workers as all CPUs '
      'of the cluster allow at the start; with --task, one worker for '
      'each of the --num_actors environments.', NOT_NEGATIVE, COUNT,
      needs=_RAY)
  inference: str = setting(
      'local',
      'Place where policies choose actions. local: in the actor workers. '
      'central: in the process of the learner, on the accelerator, in one '
      'batch for all environments; actor workers only step environments, '
      'without TensorFlow. central_on_cpu: like central, but allowed '
      'without an accelerator, which is slower.',
      choices=('local', 'central', 'central_on_cpu'), needs=_RAY)
  num_learners: int = setting(
      1,
      'Number of processes that learn. Each learner has an equal share of '
      '--batch_size, of the environments and of the replay. Together the '
      'learners make the same updates as one learner of the whole batch. Each '
      'learner has a GPU of its own if the cluster has GPUs, see '
      '--num_gpus_per_learner. Needs --ray_address, for one machine '
      '--ray_address=local.',
      POSITIVE, needs=_RAY)
  collectives: str = setting(
      'tensorflow',
      'Library that sums the gradients of several learners. tensorflow: a '
      "ring of all learners. ray: ray's object store; slower, for networks "
      'where no other port may be open.',
      choices=('tensorflow', 'ray'), needs=_RAY)
  num_cpus_per_learner: int = setting(
      2,
      'CPUs that ray reserves for each learner. Without a GPU, a learner uses '
      'all cores of its machine.', POSITIVE, needs=_RAY)
  num_gpus_per_learner: int = setting(
      -1,
      'GPUs per learner. -1: one GPU, if the cluster has GPUs.',
      Check[int](lambda x: -1 <= x <= 1, 'must be -1, 0 or 1: a learner '
                 'computes on one GPU (more GPUs: --num_learners)'),
      needs=_RAY)
  max_learner_restarts: int = setting(
      10,
      'Number of times that lost learners are restarted without a newer '
      'checkpoint in between.', NOT_NEGATIVE, needs=_RAY)
  num_cpus_per_actor_worker: int = setting(
      2,
      'CPUs per actor worker (see --num_actor_workers).', POSITIVE, needs=_RAY)
  min_actor_workers: int = setting(
      1,
      'Start training when this many actor workers are ready (rounded up to a '
      'multiple of --num_learners); the remaining workers join later.',
      POSITIVE, needs=_RAY)
  pack: str = setting(
      'auto',
      'Compression of the unrolls that actor workers send. none: no '
      'compression. newest: only the newest frame of each stack of frames that '
      'continues the stack before. zlib: newest, and all data are compressed, '
      'for slow networks. auto: newest from other machines, none on the '
      'machine of the learner.', choices=('auto', 'none', 'newest', 'zlib'),
      needs=_RAY)
  actor_timeout_s: float = setting(
      600.,
      'With --ray_address: end the run, with a checkpoint, after this many '
      'seconds without any actor worker, or at the start without a further '
      'worker while fewer than --min_actor_workers run. A worker has half of '
      'this time to open its environments.', POSITIVE, needs=_RAY)
  hang_timeout_s: float = setting(
      600.,
      'With --ray_address: replace an actor worker that has sent no unroll for '
      'this many seconds (60 s x environments / CPUs more before the first '
      'unroll of DeepMind Lab); restart the learners if no learner has '
      'responded for this many seconds. With several learners, evaluations '
      'must be shorter.',
      POSITIVE, FINITE, needs=_RAY)
