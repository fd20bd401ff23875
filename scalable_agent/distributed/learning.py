# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Training in the process of a learner, with TensorFlow."""

from collections.abc import Callable, Sequence
import functools
import threading

import ray
from scalable_agent.distributed import central_actors
from scalable_agent.distributed import cluster
from scalable_agent.distributed import crew
from scalable_agent.distributed import ray_collectives
from scalable_agent.distributed import remote_actors
from scalable_agent.learning import collectives
from scalable_agent.runs import reports as reports_lib
from scalable_agent.runs import training
from scalable_agent.settings import config as config_lib
import tensorflow as tf


def run(config: config_lib.Config, rank: int, addresses: Sequence[str],
        adder: ray.actor.ActorHandle | None, stop: threading.Event,
        say: Callable[[str], None], reports: reports_lib.Reports) -> int:
  """Trains as one of several learners; returns the exit code.

  Args:
    config: the settings of the whole run.
    addresses: `HOST:PORT` of each learner.
    adder: ray's handle of the `adder.Adder` of `--collectives=ray`.
    stop: ends the training when set.
    say: takes lines of text for the user.
    reports: see `training.run`.

  Raises:
    cluster.SumError: a sum over the learners failed.
  """
  actors = (remote_actors.RemoteActors if config.inference == 'local'
            else central_actors.CentralActors)
  make_acting = functools.partial(
      actors, rank=rank, num_learners=len(addresses), stop=stop, say=say)
  if not config.num_gpus_per_learner:  # ray does not hide the GPUs then.
    tf.config.set_visible_devices([], 'GPU')
  try:
    sums = _make_collectives(config, rank, addresses, adder)
    try:
      return training.run(
          config, make_acting, stop, collectives=sums, reports=reports,
          say=print if rank == 0 else lambda line: say(
              f'Learner {rank}: {line}'))
    except crew.Stopped:
      # Other learners may have actors, and wait for this learner.
      sums.total([1])
      print(reports_lib.STOPPED)
      return 0
  except collectives.SUM_ERRORS as e:
    if len(addresses) > 1 and collectives.IN_SUM_ERRORS in str(e):
      raise cluster.SumError(str(e)) from None
    raise


def _longest_sum_s(config: config_lib.Config, num_learners: int) -> float:
  """Returns the longest time that a learner waits for another in ray's sum.

  The other learner may wait for its first actors one by one, and then for their
  first unrolls. If all learners are silent, the driver ends the wait earlier.
  """
  num_wanted = -(-config.min_actor_workers // num_learners)
  # Of the largest worker: both divisions are rounded up.
  num_environments = -((-config.num_actors // num_learners) // (
      config.num_actor_workers // num_learners))
  return config.hang_timeout_s + min(
      num_wanted * config.actor_timeout_s
      + cluster.maps_s(config, num_environments), cluster.LONGEST_WAIT_S)


def _make_collectives(
    config: config_lib.Config, rank: int, addresses: Sequence[str],
    adder: ray.actor.ActorHandle | None) -> collectives.Collectives:
  if len(addresses) == 1:
    return collectives.Alone()
  if config.collectives == 'ray':
    return ray_collectives.RayCollectives(
        adder, len(addresses), rank, _longest_sum_s(config, len(addresses)))
  try:
    return collectives.TensorFlowCollectives(addresses, rank)
  except collectives.SUM_ERRORS as e:  # Another program took the port, say.
    raise cluster.SumError(f'the connection has failed: {e}') from None
