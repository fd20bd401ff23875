# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The paper's two networks, without heads, for the peers that use PyTorch."""

import torch
from torch import nn
from torch.nn import functional

NUM_FEATURES = 256


def torso(settings):
  """Returns a module from float `[N, 4, 84, 84]` in [0, 1] to `[N, 256]`.

  Args:
    settings: dictionary with `network`, shallow or deep, and `channels_last`,
      the memory format of convolutions.
  """
  if settings['network'] == 'shallow':
    layers = [nn.Conv2d(4, 16, 8, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 2)]
    num_outputs = 9 * 9 * 32
  else:
    layers = [_Section(4, 16), _Section(16, 32), _Section(32, 32)]
    num_outputs = 11 * 11 * 32
  if settings['channels_last']:
    layers.insert(0, _ChannelsLast())
  return nn.Sequential(
      *layers, nn.ReLU(), nn.Flatten(), nn.Linear(num_outputs, NUM_FEATURES),
      nn.ReLU())


class _ChannelsLast(nn.Module):
  """Converts only the frames: peers cannot initialize such kernels."""

  def forward(self, x):
    return x.contiguous(memory_format=torch.channels_last)


class _Section(nn.Module):
  """Convolution, pooling to half the size, two residual blocks."""

  def __init__(self, num_inputs, channels):
    super().__init__()
    self.conv = nn.Conv2d(num_inputs, channels, 3, padding=1)
    self.blocks = nn.ModuleList([
        nn.Conv2d(channels, channels, 3, padding=1) for _ in range(4)])

  def forward(self, x):
    x = functional.max_pool2d(self.conv(x), 3, 2, padding=1)
    for first, second in zip(self.blocks[::2], self.blocks[1::2]):
      x = x + second(functional.relu(first(functional.relu(x))))
    return x
