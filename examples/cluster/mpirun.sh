#!/usr/bin/env bash
# Runs an artifact in a process for each slot of a host file, with Open MPI:
#
#   mpirun.sh HOSTS ARTIFACT [partita-run's options]
#
# PARTITA_NETWORK names the network between the machines, as 10.0.0.0/16 or eth0, where they have several.
# PARTITA_MPIRUN has further options of mpirun.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 1; }
hosts=$1 artifact=$2; shift 2
[ -r "$hosts" ] || { echo "mpirun.sh: cannot read the host file '$hosts'" >&2; exit 1; }
[ -r "$artifact" ] || { echo "mpirun.sh: cannot read the artifact '$artifact'" >&2; exit 1; }

# Processes of a machine share its cores out by themselves, so mpirun binds none. Threads that wait leave their core to others.
options=(--hostfile "$hosts" --map-by slot --bind-to none -x PATH -x OMP_WAIT_POLICY=passive)
if [ -n "${PARTITA_NETWORK:-}" ]; then
  # Of Open MPI: for its messages, and for starting and watching processes. Of NCCL, which wants names of interfaces.
  options+=(--mca btl_tcp_if_include "$PARTITA_NETWORK" --mca oob_tcp_if_include "$PARTITA_NETWORK")
  case $PARTITA_NETWORK in */*) ;; *) options+=(-x NCCL_SOCKET_IFNAME="$PARTITA_NETWORK") ;; esac
fi
read -ra more <<<"${PARTITA_MPIRUN:-}"
exec mpirun "${options[@]}" "${more[@]}" partita-run "$artifact" "$@"
