# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Measures how actor workers on a ray cluster scale, and models the cluster.

  python benchmarks/cluster.py --workers=1,2,4,8,16 [--height=84]
  python benchmarks/cluster.py --simulate

The first command runs `remote_actors.RemoteActors` with workers whose
environments sleep for 20 ms per step, and copies arriving unrolls into batches,
as a learner does. So the command measures the way of the unrolls, and nothing
else. `--height=1` has tiny observations. `--ray_address=auto` takes the running
cluster; `benchmarks/two_hosts.sh` makes a cluster of two hosts with a slow
link. Writes one line of JSON per point to --out.

The second command prints the rates of a model for the measured points (without
--out: benchmarks/cluster.jsonl), and, if the model agrees with all points
within 15 %, its rates for larger clusters.
"""

import argparse
import collections
import heapq
import json
import os
import pathlib
import sys
import time
from typing import NamedTuple

_ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_ROOT), str(_ROOT / 'benchmarks')]
import sleeping_worker

_STEPS = sleeping_worker.UNROLL_LENGTH * sleeping_worker.NUM_ENVIRONMENTS
_WARM_UP_S, _MEASURE_S = 6., 15.
_WITHIN = 0.15
# Most points of docs/measurements_machines.md.
_POINTS = _ROOT / 'benchmarks' / 'cluster.jsonl'


class Model(NamedTuple):
  """The parameters of a modelled cluster.

  Attributes:
    num_workers: the number of actor workers.
    make_s: seconds in which a worker makes an unroll.
    unroll_bytes: bytes of an unroll on the network.
    link_bytes_per_s: the link of the learner's machine.
    call_s: seconds from an arrived unroll to the next call at its worker.
    consumer_s: seconds in which the learner's process copies an unroll.
    learn_s: seconds in which the learner learns from an unroll.
    num_waiting: the number of unrolls that can wait for the learner.
  """
  num_workers: int
  make_s: float
  unroll_bytes: float
  link_bytes_per_s: float = float('inf')
  call_s: float = 0.002
  consumer_s: float = 0.002
  learn_s: float = 0.
  num_waiting: int = 3


class Point(NamedTuple):
  """Unrolls per second, and the busy share of each part."""
  unrolls_per_s: float
  busy: dict[str, float]


def simulate(model: Model, num_unrolls: int = 20_000) -> Point:
  """Lets unrolls pass link, consumer and learner, one after the other.

  A worker has two buffers: one unroll is made while one waits for its call.
  """
  link_free_s = consumer_free_s = learner_free_s = 0.
  learn_begins_s = collections.deque([0.] * model.num_waiting)
  made_s = [model.make_s * (1 + k / model.num_workers)
            for k in range(model.num_workers)]
  heap = [(s, k) for k, s in enumerate(made_s)]
  heapq.heapify(heap)
  asked_s = [0.] * model.num_workers  # When the call before was made.
  send_s = model.unroll_bytes / model.link_bytes_per_s
  begin_s = 0.
  for index in range(num_unrolls):
    ready_s, worker = heapq.heappop(heap)
    link_free_s = max(ready_s, link_free_s) + send_s
    consumer_free_s = max(link_free_s, consumer_free_s) + model.consumer_s
    # Waits until the learner has taken an earlier unroll.
    consumer_free_s = max(consumer_free_s, learn_begins_s.popleft())
    learn_begins_s.append(max(consumer_free_s, learner_free_s))
    learner_free_s = learn_begins_s[-1] + model.learn_s
    # The next one was begun when this one was made, if a buffer was free.
    made_s[worker] = max(made_s[worker], asked_s[worker]) + model.make_s
    asked_s[worker] = consumer_free_s + model.call_s
    heapq.heappush(heap, (max(made_s[worker], asked_s[worker]), worker))
    if index == num_unrolls // 4:
      begin_s = consumer_free_s
  rate = (num_unrolls - num_unrolls // 4 - 1) / (consumer_free_s - begin_s)
  return Point(rate, {
      'workers': rate * model.make_s / model.num_workers,
      'link': rate * send_s, 'consumer': rate * model.consumer_s,
      'learner': rate * model.learn_s})


def measure(num_workers: int, height: int, pack: str, address: str) -> dict:
  """Returns the rate of `num_workers` sleeping workers."""
  # These modules import TensorFlow.
  import numpy as np
  import ray
  from scalable_agent.distributed import remote_actors
  from scalable_agent.experience import queues
  from scalable_agent.experience import structs
  from scalable_agent.experience import unrolls
  from scalable_agent.settings import config as config_lib
  if not ray.is_initialized():
    options = {'num_cpus': 64} if address == 'local' else {}
    ray.init(address=address, log_to_driver=False, include_dashboard=False
             if address == 'local' else None, **options)
  remote_actors.ActorWorker = sleeping_worker.SleepingWorker
  config = config_lib.Config(
      level_name='catch', num_actors=num_workers * 32, ray_address='auto',
      num_actor_workers=num_workers, min_actor_workers=num_workers,
      num_cpus_per_actor_worker=1, height=height, pack=pack)
  actors = remote_actors.RemoteActors(config, part=0)
  inbox = queues.BoundedQueue[unrolls.Delivery](1)
  batch = sleeping_worker.make_unroll(actors.spec.observation.shape)
  arrived = unrolls.batches(inbox, batch)
  actors.start(lambda: structs.Weights(0, [np.zeros(10)]), inbox)
  end_s = time.monotonic() + _WARM_UP_S
  while time.monotonic() < end_s:
    next(arrived)
  before, begin_s = actors.counts(), time.monotonic()
  cpu_s, count = time.process_time(), 0
  while time.monotonic() < begin_s + _MEASURE_S:
    next(arrived)
    count += 1
  seconds = time.monotonic() - begin_s
  cpu_s = time.process_time() - cpu_s
  megabytes = (actors.counts()['bytes'] - before['bytes']) / 1e6
  inbox.close()
  actors.stop(10)
  actors.close()
  ideal = num_workers * sleeping_worker.NUM_ENVIRONMENTS / (
      sleeping_worker.STEP_S)
  return {
      'workers': num_workers, 'height': height, 'pack': pack,
      'link_mb_per_s': float(os.environ.get('LINK_MB_PER_S', 'inf')),
      'steps_per_s': count * _STEPS / seconds,
      'share_of_ideal': count * _STEPS / seconds / ideal,
      'mb_per_s': megabytes / seconds,
      'mb_per_unroll': megabytes / count,
      'consumer_cpu_ms': 1e3 * cpu_s / count}


def _model_of(point: dict) -> Model:
  return Model(
      point['workers'],
      sleeping_worker.UNROLL_LENGTH * sleeping_worker.STEP_S,
      1e6 * point['mb_per_unroll'], 1e6 * point['link_mb_per_s'],
      consumer_s=1e-3 * point['consumer_cpu_ms'])


def _compare(points: list[dict]) -> bool:
  """Prints measured and modelled points; returns whether these agree."""
  print('| workers | MB per unroll | link MB/s | measured steps/s | model | '
        'error |\n|---:|---:|---:|---:|---:|---:|')
  agrees = True
  for p in points:
    steps = _STEPS * simulate(_model_of(p)).unrolls_per_s
    error = steps / p['steps_per_s'] - 1
    agrees = agrees and abs(error) <= _WITHIN
    print(f'| {p["workers"]} | {p["mb_per_unroll"]:.2f} | '
          f'{p["link_mb_per_s"]:g} | {p["steps_per_s"]:,.0f} | {steps:,.0f} | '
          f'{100 * error:+.0f} % |')
  return agrees


# From docs/measurements_machines.md: agent steps per second of a worker of two
# cores with 96 environments of Pong (deep: computed from 778 policy steps and
# 3,122 steps of environments), and bytes of an unroll on the network.
_STEPS_PER_WORKER = {'shallow': 2_110, 'deep': 620}
_PACKED_MB = {'none': 19.0, 'newest': 5.45, 'zlib': 0.11}
# As if one thread took, unpacked and copied unrolls; there are two.
_CONSUMER_S = {'none': 0.008, 'newest': 0.013, 'zlib': 0.021}


def _extrapolate():
  """Prints the machines that a rate needs, and the fullest part."""
  print('\n| learned frames/s | network | frames sent | learners, 10 Gb/s each '
        '| workers of 2 cores | model frames/s | fullest beside the learner |\n'
        '|---:|---|---|---:|---:|---:|---|')
  for frames in (25_000, 250_000, 1_000_000):
    for network, worker_steps in _STEPS_PER_WORKER.items():
      for pack, megabytes in _PACKED_MB.items():
        num_learners, modelled = 0, 0.
        while modelled < 0.95 * frames:
          num_learners += 1
          workers = -(-frames // (4 * worker_steps * num_learners))
          point = simulate(Model(
              workers, _STEPS / worker_steps, 1e6 * megabytes, 10e9 / 8,
              consumer_s=_CONSUMER_S[pack],
              learn_s=4 * _STEPS * num_learners / frames))
          modelled = 4 * _STEPS * point.unrolls_per_s * num_learners
        busy = {k: v for k, v in point.busy.items() if k != 'learner'}
        fullest = max(busy, key=lambda part: busy[part])
        print(f'| {frames:,} | {network} | {pack} | {num_learners} | '
              f'{workers * num_learners} | {modelled:,.0f} | {fullest} '
              f'{100 * busy[fullest]:.0f} % |')


def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--workers', default='1,2,4,8,16')
  parser.add_argument('--height', type=int, default=84)
  parser.add_argument('--pack', default='none',
                      choices=('none', 'newest', 'zlib'))
  parser.add_argument('--ray_address', default='local')
  parser.add_argument('--out', help='file of measured points')
  parser.add_argument('--simulate', action='store_true')
  args = parser.parse_args()
  out = pathlib.Path(args.out or (
      _POINTS if args.simulate else '/tmp/scalable_agent/cluster.jsonl'))
  if args.simulate:
    points = [json.loads(line) for line in out.read_text().splitlines()]
    if _compare(points):
      _extrapolate()
    else:
      print(f'The model is wrong by more than {_WITHIN:.0%}: no forecast.')
    return
  out.parent.mkdir(parents=True, exist_ok=True)
  for count in args.workers.split(','):
    point = measure(int(count), args.height, args.pack, args.ray_address)
    print(json.dumps(point), flush=True)
    with out.open('a') as f:
      f.write(json.dumps(point) + '\n')


if __name__ == '__main__':
  main()
