# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the bounded queue."""

import threading

from absl.testing import absltest
from scalable_agent.experience import queues


def _in_thread(fn):
  """Starts `fn`; returns the thread and a list that gets what it raises."""
  raised = []

  def target():
    try:
      fn()
    except BaseException as e:
      raised.append(e)

  thread = threading.Thread(target=target, daemon=True)
  thread.start()
  return thread, raised


class BoundedQueueTest(absltest.TestCase):

  def test_first_in_first_out(self):
    queue = queues.BoundedQueue(3)
    for item in (1, 2, 3):
      queue.put(item)
    self.assertEqual([queue.get() for _ in range(3)], [1, 2, 3])

  def test_put_waits_while_full(self):
    queue = queues.BoundedQueue(1)
    queue.put(1)
    thread, raised = _in_thread(lambda: queue.put(2))
    thread.join(timeout=0.01)
    self.assertTrue(thread.is_alive())
    self.assertEqual(queue.get(), 1)
    thread.join()
    self.assertEqual((queue.get(), raised), (2, []))

  def test_get_waits_while_empty(self):
    queue = queues.BoundedQueue(1)
    with self.assertRaises(queues.QueueTimeout):
      queue.get(timeout_s=0.01)
    items = []
    thread, raised = _in_thread(lambda: items.append(queue.get()))
    queue.put(1)
    thread.join()
    self.assertEqual((items, raised), ([1], []))

  def test_close_wakes_whoever_waits(self):
    full, empty = queues.BoundedQueue(1), queues.BoundedQueue(1)
    full.put(1)
    waits = [_in_thread(lambda: full.put(2)), _in_thread(empty.get)]
    full.close()
    empty.close()
    for thread, raised in waits:
      thread.join()
      self.assertIsInstance(raised[0], queues.QueueClosed)
    with self.assertRaises(queues.QueueClosed):
      full.get()
    with self.assertRaises(queues.QueueClosed):
      empty.put(1)

  def test_fail_hands_the_error_over(self):
    queue = queues.BoundedQueue(1)
    thread, raised = _in_thread(queue.get)
    error = RuntimeError('environment 3')
    queue.fail(error)
    thread.join()
    self.assertIs(raised[0], error)
    with self.assertRaisesRegex(RuntimeError, 'environment 3'):
      queue.put(1)

  def test_first_error_stays_and_close_is_not_an_error(self):
    queue = queues.BoundedQueue(1)
    queue.fail(RuntimeError('first'))
    queue.fail(RuntimeError('second'))
    with self.assertRaisesRegex(RuntimeError, 'first'):
      queue.get()
    closed = queues.BoundedQueue(1)
    closed.close()
    closed.fail(RuntimeError('late'))
    with self.assertRaises(queues.QueueClosed):
      closed.get()

  def test_a_thread_ends_with_its_error_or_with_the_queue(self):
    queue = queues.BoundedQueue(1)
    with queue.ending_thread():
      raise queues.QueueClosed()
    queue.put(1)  # The end of one thread is not the end of all threads.
    with queue.ending_thread():
      raise RuntimeError('environment 3')
    with self.assertRaisesRegex(RuntimeError, 'environment 3'):
      queue.get()

  def test_many_threads_lose_and_repeat_nothing(self):
    queue = queues.BoundedQueue(2)
    taken = []
    threads = []
    for i in range(4):
      threads.append(_in_thread(
          lambda i=i: [queue.put((i, j)) for j in range(100)])[0])
      threads.append(_in_thread(
          lambda: [taken.append(queue.get()) for _ in range(100)])[0])
    for thread in threads:
      thread.join()
    self.assertCountEqual(taken, [(i, j) for i in range(4) for j in range(100)])

  def test_capacity_must_be_positive(self):
    with self.assertRaisesRegex(ValueError, 'at least 1'):
      queues.BoundedQueue(0)


if __name__ == '__main__':
  absltest.main()
