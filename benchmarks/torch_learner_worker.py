# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The updates of benchmarks/learner.py in PyTorch, on the CPU.

Reads pickled requests `(what, ...)` from stdin, writes pickled answers to
stdout. The worker imports neither TensorFlow nor scalable_agent.

The weights come in the order of `agent.trainable_variables`, and are used in
that order. Convolutions are channels_last. Only the optimizer differs from a
learner of scalable_agent: PyTorch's RMSProp has its epsilon outside of the root
and decays the rows of all words.
"""

import os
import pickle
import sys

import speed
import torch
from torch.nn import functional as F
from torch.utils import flop_counter

_DISCOUNT, _BASELINE_COST, _ENTROPY_COST = 0.99, 0.5, 0.01
_EMPTY_WORD = 263  # Padding is embedded as this word.


def _shallow(weights, x):
  x = F.relu(F.conv2d(x, next(weights), next(weights), stride=4))
  return F.relu(F.conv2d(x, next(weights), next(weights), stride=2))


def _deep(weights, x):
  conv = lambda x: F.conv2d(x, next(weights), next(weights), padding=1)
  for _ in range(3):
    x = conv(x)
    # TensorFlow's padding, SAME.
    x = F.max_pool2d(x, 3, 2, padding=x.shape[-1] % 2, ceil_mode=True)
    for _ in range(2):
      x = x + conv(F.relu(conv(F.relu(x))))
  return F.relu(x)


def _lstm(inputs, kernel, bias, done=None):
  """Returns `h` `[T, B, units]`; it starts at 0, and again where `done`."""
  units = len(bias) // 4
  input_kernel, recurrent_kernel = kernel.split([inputs.shape[-1], units])
  gate_inputs = inputs @ input_kernel + bias
  c = h = torch.zeros([inputs.shape[1], units])
  outputs = []
  for t, gate_input in enumerate(gate_inputs):
    if done is not None:
      go_on = (~done[t]).float()[:, None]
      c, h = c * go_on, h * go_on
    i, candidate, f, o = (gate_input + h @ recurrent_kernel).chunk(4, -1)
    c = torch.sigmoid(f + 1) * c + torch.sigmoid(i) * torch.tanh(candidate)
    h = torch.sigmoid(o) * torch.tanh(c)
    outputs.append(h)
  return torch.stack(outputs)


def _instructions(words, embeddings, kernel, bias):
  """Returns `[N, 64]`, the LSTM's output at the last of words `[N, W]`."""
  rows = torch.where(words >= 0, words, _EMPTY_WORD)
  outputs = _lstm(F.embedding(rows, embeddings).transpose(0, 1), kernel, bias)
  last = (words >= 0).sum(-1) - 1
  return outputs[last, torch.arange(len(last))]


def _outputs(network, weights, batch):
  """Returns policy logits `[T + 1, B, A]` and baseline `[T + 1, B]`."""
  weights = iter(weights)
  steps = batch['done'].shape
  frames = batch['frames'].flatten(0, 1)
  x = frames.to(torch.float32, memory_format=torch.channels_last) / 255
  x = (_shallow if network == 'shallow' else _deep)(weights, x)
  # Flat in TensorFlow's order, which is also the order in memory.
  x = x.permute(0, 2, 3, 1).flatten(1)
  x = F.relu(x @ next(weights) + next(weights))
  if network == 'deep-lstm':
    num_actions = batch['logits'].shape[-1]
    x = torch.cat([
        x, batch['reward'].flatten().clamp(-1, 1)[:, None],
        F.one_hot(batch['action'].flatten(), num_actions).float(),
        _instructions(batch['words'].flatten(0, 1), *_take(weights, 3))], -1)
    x = _lstm(x.unflatten(0, steps), *_take(weights, 2), batch['done'])
    x = x.flatten(0, 1)
  logits = x @ next(weights) + next(weights)
  baseline = x @ next(weights) + next(weights)
  return logits.unflatten(0, steps), baseline[:, 0].unflatten(0, steps)


def _take(iterator, count):
  return [next(iterator) for _ in range(count)]


@torch.no_grad()
def _vtrace(log_rhos, discounts, rewards, values, bootstrap_value):
  rhos = log_rhos.exp().clamp(max=1)
  values_t_plus_1 = torch.cat([values[1:], bootstrap_value[None]])
  deltas = rhos * (rewards + discounts * values_t_plus_1 - values)
  factors = discounts * rhos
  errors, error = [], torch.zeros_like(bootstrap_value)
  for t in reversed(range(len(deltas))):
    error = deltas[t] + factors[t] * error
    errors.append(error)
  vs = torch.stack(errors[::-1]) + values
  vs_t_plus_1 = torch.cat([vs[1:], bootstrap_value[None]])
  return vs, rhos * (rewards + discounts * vs_t_plus_1 - values)


def _loss(network, weights, batch):
  logits, baseline = _outputs(network, weights, batch)
  actions = batch['action'][1:, :, None]
  log_policy = F.log_softmax(logits[:-1], -1)
  log_prob = log_policy.gather(-1, actions)[..., 0]
  behaviour = F.log_softmax(batch['logits'][1:], -1).gather(-1, actions)[..., 0]
  vs, advantages = _vtrace(
      log_prob - behaviour, (~batch['done'][1:]).float() * _DISCOUNT,
      batch['reward'][1:].clamp(-1, 1), baseline[:-1], baseline[-1])
  return (-(log_prob * advantages).sum()
          + _BASELINE_COST * 0.5 * (vs - baseline[:-1]).square().sum()
          + _ENTROPY_COST * (log_policy.exp() * log_policy).sum())


def _to_parameter(array):
  tensor = torch.from_numpy(array.copy())
  if tensor.ndim == 4:  # Height, width, inputs, outputs.
    tensor = tensor.permute(3, 2, 0, 1).contiguous(
        memory_format=torch.channels_last)
  return tensor.requires_grad_()


class _Learner:
  """One variant: `torch`, `torch:N` or `compile`, `compile:N`."""

  def __init__(self, variant, network, weights, batch):
    kind, _, micro_batch_size = variant.partition(':')
    self._loss = torch.compile(_loss) if kind == 'compile' else _loss
    self._network = network
    self._weights = [_to_parameter(w) for w in weights]
    self._batch = batch
    self._micro_batch_size = int(micro_batch_size or batch['done'].shape[1])
    self._optimizer = torch.optim.RMSprop(
        self._weights, lr=1e-5, alpha=0.99, eps=0.1, foreach=True)

  def step(self):
    """Makes one update; returns the loss and the gradient's norm."""
    self._optimizer.zero_grad()
    total_loss = 0.0
    for start in range(0, self._batch['done'].shape[1], self._micro_batch_size):
      part = {k: v[:, start:start + self._micro_batch_size]
              for k, v in self._batch.items()}
      loss = self._loss(self._network, self._weights, part)
      loss.backward()
      total_loss += loss.item()
    norm = torch.nn.utils.clip_grad_norm_(self._weights, 40.0)
    self._optimizer.step()
    return total_loss, norm.item()


def main():
  # Other output must not get between the answers.
  answers = os.fdopen(os.dup(1), 'wb')
  os.dup2(2, 1)
  torch.set_num_threads(len(os.sched_getaffinity(0)))
  network = weights = batch = None
  learners = {}
  while True:
    try:
      what, *request = pickle.load(sys.stdin.buffer)
    except EOFError:
      return
    if what == 'versions':
      answer = {'torch': str(torch.__version__)}
    elif what == 'load':
      network, weights, batch = request
      batch = {k: torch.from_numpy(v.copy()) for k, v in batch.items()}
      learners, answer = {}, None
    elif what == 'first':
      variant, = request
      learners[variant] = _Learner(variant, network, weights, batch)
      answer = learners[variant].step()
    elif what == 'updates_per_s':
      variant, seconds = request
      answer = speed.per_s(learners[variant].step, seconds)
    elif what == 'flops':
      with flop_counter.FlopCounterMode(display=False) as counter:
        _Learner('torch', network, weights, batch).step()
      answer = counter.get_total_flops()
    pickle.dump(answer, answers)
    answers.flush()


if __name__ == '__main__':
  main()
