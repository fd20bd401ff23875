#!/bin/bash
# A run on the nodes of a slurm job: one node learns, all other nodes act. A
# single node (--nodes=1) learns and acts, without ray and without
# --num_actor_workers.
#
#   sbatch --nodes=5 deploy/slurm.sh --recipe=atari_paper \
#       --level_name=ALE/Breakout-v5 \
#       --logdir=$HOME/runs/breakout --num_actors=960 --num_actor_workers=60
#
# Start it in the project's directory. --logdir must be on a shared file system.
# When the time of the job is over, the run writes a checkpoint, and the job
# returns to the queue. Later, the job resumes from the checkpoint. For a GPU of
# the learner, give sbatch --gres=gpu:1.
#SBATCH --job-name=scalable_agent
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@120

# The node of this script learns, without srun: srun would pass signals on to
# all of ray's processes, so that no checkpoint could be written.
learner=$SLURMD_NODENAME
address="$learner:6379"
# Anyone who reaches ray's ports can run programs as you. This token keeps other
# users of the nodes out.
RAY_AUTH_TOKEN=${RAY_AUTH_TOKEN:-$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')}
export RAY_AUTH_TOKEN

num_actors=$((SLURM_JOB_NUM_NODES - 1))
actors=
if [ $num_actors = 0 ]; then
  python experiment.py "$@" &
else
  srun --nodes=$num_actors --ntasks=$num_actors --exclude="$learner" bash -c '
    exec python experiment.py --job_name=actor --task=$((SLURM_PROCID + 1)) \
        --ray_address="$1"' bash "$address" &
  actors=$!
  python experiment.py "$@" --job_name=learner --task=0 \
      --ray_address="$address" &
fi
run=$!

is_over=
trap 'is_over=1; kill -TERM $run' TERM
wait $run
code=$?
if [ "$is_over" ]; then  # The signal ended the wait, not the run.
  wait $run
  code=$?
elif [ $code != 0 ] && [ "$actors" ]; then  # Actors would wait for another learner.
  kill $actors
fi

# 75: the cluster lacked resources, and may have them later. A job that has
# begun 20 times, for whatever reason, ends.
if [ "$is_over" ] || {
    [ $code = 75 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt 20 ]; }; then
  scontrol requeue "$SLURM_JOB_ID"
fi
trap - TERM
wait
exit $code
