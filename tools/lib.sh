# Sourced by the set-up scripts: where the checkout is, how to talk, how to install Debian packages.
# shellcheck shell=bash

# shellcheck disable=SC2034  # for the scripts that source this
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '== %s\n' "$*"; }

# stop WHAT-IS-WRONG WHAT-TO-DO...: one line each, then a failing exit.
stop() {
  printf 'error: %s\n' "$1" >&2
  shift
  [ $# -eq 0 ] || printf '  %s\n' "$@" >&2
  exit 1
}

# Whether packages can be installed here: root on a Debian relative.
can_apt() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null &&
    grep -Eqs '^ID(_LIKE)?=.*(debian|ubuntu)' /etc/os-release
}

# apt_install PACKAGE...: quiet unless it fails; the package lists are fetched only when they turn out to be missing or stale.
apt_install() {
  local log
  log=$(mktemp)
  export DEBIAN_FRONTEND=noninteractive
  if apt-get install -y --no-install-recommends "$@" >"$log" 2>&1 ||
    { apt-get update >"$log" 2>&1 && apt-get install -y --no-install-recommends "$@" >>"$log" 2>&1; }; then
    rm -f "$log"
  else
    tail -n 20 "$log" >&2
    rm -f "$log"
    stop "apt-get could not install: $*" "look at the lines above; the package source may be out of reach"
  fi
}

# Whether a Docker engine answers where the environment (DOCKER_HOST, contexts) says it is.
engine_answers() {
  command -v docker >/dev/null && timeout 20 docker version --format '{{.Server.Version}}' >/dev/null 2>&1
}

# The folder for what is costly to make again and belongs to no checkout.
cache_folder() {
  printf '%s/continual-suite' "${XDG_CACHE_HOME:-${HOME:-/root}/.cache}"
}
