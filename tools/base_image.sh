#!/usr/bin/env bash
# Makes sure that the base image of all learner images, python:3.11-slim-bookworm, is there. Does nothing where it is.
#
# It is pulled where a registry answers. Elsewhere a stand-in is made from Debian's packages (the same distribution and Python version, the
# interpreter from Debian instead of a build of its own) and imported under the same tag; its file tree is cached as a tar file.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

tag=python:3.11-slim-bookworm
if docker image inspect "$tag" >/dev/null 2>&1; then exit 0; fi

say "pulling $tag"
if timeout "${SUITE_PULL_SECONDS:-60}" docker pull --quiet "$tag" 2>/dev/null; then exit 0; fi

tarball=$(cache_folder)/base/python-3.11-slim-bookworm.tar.gz

bootstrap() {
  can_apt || stop "no registry answers, and a stand-in for $tag can be made only as root on Debian or Ubuntu" \
    "load the image from a machine that has it: docker save $tag | ssh THIS-MACHINE docker load"
  command -v debootstrap >/dev/null || apt_install debootstrap
  say "no registry answers: making a stand-in for $tag from Debian's packages (about 75 s)"
  local tree log
  tree=$(mktemp -d)
  log=$(mktemp)
  # shellcheck disable=SC2064  # the values of now are meant
  trap "rm -rf '$tree' '$log'" EXIT
  # python3-venv: Debian's interpreter refuses to be installed into (PEP 668), the images use a venv
  debootstrap --variant=minbase --include=python3,python3-venv,python3-pip,ca-certificates bookworm "$tree" >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    stop "debootstrap failed" "look at the lines above; the package source may be out of reach"
  }
  rm -rf "$tree"/var/cache/apt/* "$tree"/var/lib/apt/lists/* "$tree"/var/log/* "$tree"/usr/share/doc/* "$tree"/usr/share/man/* "$tree"/usr/share/locale/*
  mkdir -p "$(dirname "$tarball")"
  tar -C "$tree" --numeric-owner --sort=name -c . | gzip -1 >"$tarball.part"
  mv "$tarball.part" "$tarball"
}

[ -s "$tarball" ] || bootstrap
# the tag is what users would pull; the label tells the two apart
docker import --change 'LABEL continual-suite.stand-in=debootstrap' --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
  --change 'CMD ["python3"]' "$tarball" "$tag" >/dev/null
say "$tag is a stand-in made from Debian's packages"
