#!/bin/bash
#SBATCH --job-name=forecurve-ray
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --time=24:00:00
#SBATCH --signal=B:TERM@180
#SBATCH --dependency=singleton
#
# A Ray cluster in a Slurm allocation, for a service on the machine that it is submitted from: docs/guides/slurm.md.
# 180 s before its time is over, runs write checkpoints; they go on in the next allocation.
set -euo pipefail

: "${RAY_AUTH_TOKEN:?is needed: whoever reaches the cluster without one runs commands there}"
: "${SERVICE_HOST:=$SLURM_SUBMIT_HOST}" # where `forecurve up` runs
: "${SERVICE_PORT:=8400}"
: "${JOBS_PORT:=8265}" # of Ray's Jobs API, here and there
export RAY_AUTH_TOKEN RAY_AUTH_MODE=token RAY_API_SERVER_ADDRESS="http://127.0.0.1:$JOBS_PORT"
export RAY_JOB_STOP_WAIT_TIME_S=150 # less than the time from the signal to the end

address=$(hostname -I | cut -d ' ' -f 1) # of this machine, by which the others reach it

# This script runs on the first machine of the allocation. Both ends of the tunnel are their own 127.0.0.1. While it is
# broken runs go on, and their reports wait.
tunnel() {
  trap 'kill "$ssh"; exit' TERM # an ssh that is left would keep the port from the next allocation's
  while true; do
    ssh -N -o BatchMode=yes -o StrictHostKeyChecking=accept-new -o ExitOnForwardFailure=yes -o ServerAliveInterval=15 \
      -R "127.0.0.1:$JOBS_PORT:127.0.0.1:$JOBS_PORT" -L "127.0.0.1:$SERVICE_PORT:127.0.0.1:$SERVICE_PORT" \
      "$SERVICE_HOST" &
    ssh=$!
    wait "$ssh" || true
    sleep 10
  done
}
tunnel &

python deploy/ray_head.py --node-ip-address "$address" --port 6379 --dashboard-host 127.0.0.1 --dashboard-port "$JOBS_PORT" \
  --temp-dir "/tmp/ray-$SLURM_JOB_ID" --disable-usage-stats &
ray=$!
told=
trap 'told=yes; kill -TERM "$ray" || true' TERM

if [ "$SLURM_NNODES" -gt 1 ]; then
  srun --nodes=$((SLURM_NNODES - 1)) --ntasks=$((SLURM_NNODES - 1)) --exclude="$SLURMD_NODENAME" \
    sh -c "until ray start --address $address:6379 --block; do sleep 5; done" &
fi

while true; do
  wait "$ray" && rc=0 || rc=$?
  kill -0 "$ray" 2> /dev/null || break # a signal ends a wait
done
kill $(jobs -p) 2> /dev/null || true
[ -n "$told" ] || exit "$rc" # a head that ended by itself has failed
