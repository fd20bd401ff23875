#!/bin/bash
# A run on the nodes of a slurm job: one learns, the others act.
#
#   sbatch --nodes=5 deploy/slurm.sh --recipe=atari_paper \
#       --level_name=ALE/Breakout-v5 \
#       --logdir=$HOME/runs/breakout --num_actors=960 --num_actor_workers=60
#
# Start it in the project's directory. --logdir must be on a shared file system.
# When the time of the job is over, the run writes a checkpoint, and the job goes
# back into the queue; it then goes on from there. For a GPU of the learner, give
# sbatch --gres=gpu:1.
#SBATCH --job-name=scalable_agent
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@120

# The node of this script learns. There, srun would pass signals on to all of
# ray's processes, and no checkpoint could be written.
learner=$SLURMD_NODENAME
address="$learner:6379"
# Whoever reaches the ports of ray can run programs as you. Other users of the
# nodes do not know this token.
RAY_AUTH_TOKEN=${RAY_AUTH_TOKEN:-$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')}
export RAY_AUTH_TOKEN

num_actors=$((SLURM_JOB_NUM_NODES - 1))
if [ $num_actors = 0 ]; then
  echo 'One node learns and the others act: use sbatch --nodes=2, or more.' >&2
  exit 2
fi
srun --nodes=$num_actors --ntasks=$num_actors --exclude="$learner" bash -c '
  exec python experiment.py --job_name=actor --task=$((SLURM_PROCID + 1)) \
      --ray_address="$1"' bash "$address" &
actors=$!
python experiment.py "$@" --job_name=learner --task=0 \
    --ray_address="$address" &
run=$!

is_over=
trap 'is_over=1; kill -TERM $run' TERM
wait $run
code=$?
if [ "$is_over" ]; then  # The signal has only ended the wait.
  wait $run
  code=$?
elif [ $code != 0 ]; then  # Actors would wait for another learner.
  kill $actors
fi

# 75: the cluster did not give what is needed; later, it may. Not for ever: a job
# that has begun 20 times, for whatever reason, ends then.
if [ "$is_over" ] || {
    [ $code = 75 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt 20 ]; }; then
  scontrol requeue "$SLURM_JOB_ID"
fi
trap - TERM
wait
exit $code
