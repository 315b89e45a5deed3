#!/usr/bin/env bash
# Makes sure that a Docker engine answers. Does nothing where one does.
#
# As root on Debian or Ubuntu it installs the distribution's engine and starts it: through systemd where that runs the machine, else as a
# detached daemon without bridge and firewall rules (learners have no network, so none is needed, and a container may not be allowed to
# make one). SUITE_ENGINE_ROOT chooses where that daemon keeps images and its log (default /var/lib/continual-suite).
set -euo pipefail
. "$(dirname "$0")/lib.sh"

socket=/var/run/docker.sock
engine_root=${SUITE_ENGINE_ROOT:-/var/lib/continual-suite}

install_engine() {
  local missing=()
  command -v dockerd >/dev/null || missing+=(docker.io)
  command -v iptables >/dev/null || missing+=(iptables)
  [ ${#missing[@]} -eq 0 ] && return
  say "installing ${missing[*]}"
  apt_install "${missing[@]}"
}

start_detached() {
  mkdir -p "$engine_root"
  # a daemon that was killed leaves its pid file, which stops the next one if the number is in use again
  local pid_file=/var/run/docker.pid
  if [ -f "$pid_file" ] && ! grep -qs dockerd "/proc/$(cat "$pid_file")/cmdline"; then rm -f "$pid_file"; fi
  (
    # nothing of the caller may be held open: make would wait for its job server's pipe
    for descriptor in /proc/self/fd/*; do
      descriptor=${descriptor##*/}
      [ "$descriptor" -le 2 ] || eval "exec $descriptor>&-" 2>/dev/null || true
    done
    exec setsid dockerd --data-root "$engine_root/engine" -H "unix://$socket" \
      --bridge=none --iptables=false --ip-forward=false --ip-masq=false \
      </dev/null >>"$engine_root/dockerd.log" 2>&1
  ) &
}

wait_for_engine() {
  for _ in $(seq 60); do
    engine_answers && return
    sleep 0.5
  done
  [ ! -f "$engine_root/dockerd.log" ] || tail -n 15 "$engine_root/dockerd.log" >&2
  stop "the Docker engine was started but does not answer on $socket" \
    "look at the lines above and at $engine_root/dockerd.log (or: journalctl -u docker)"
}

if engine_answers; then exit 0; fi

[ -z "${DOCKER_HOST:-}" ] ||
  stop "no Docker engine answers at DOCKER_HOST=$DOCKER_HOST" "start that engine, or unset DOCKER_HOST to use one on this machine"
can_apt ||
  stop "no Docker engine answers, and one can be installed from here only as root on Debian or Ubuntu" \
    "install it: https://docs.docker.com/engine/install/" \
    "start it and let your user reach it: sudo systemctl start docker && sudo usermod -aG docker \$USER"

install_engine
if [ -d /run/systemd/system ] && systemctl start docker; then
  say "starting the Docker engine (systemd)"
else
  say "starting a Docker engine (data and log in $engine_root)"
  start_detached
fi
wait_for_engine
say "Docker engine $(docker version --format '{{.Server.Version}}') answers"
