#!/usr/bin/env bash
# Makes .venv: the suite (editable) with all extras, every version from constraints.txt. Does nothing while its inputs are unchanged.
# PYTHON chooses the interpreter (3.11 or later).
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root"

venv=$root/.venv
hook=containers/base/libraries
stamp=$venv/set-up.sha256

find_python() {
  local candidate
  for candidate in ${PYTHON:-python3.11 python3.12 python3.13 python3}; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      "$candidate" -c 'import sys; print(sys.executable)'
      return
    fi
  done
  stop "no Python 3.11 or later found" "install one (Debian: apt-get install python3 python3-venv), or name it: make PYTHON=/path/to/python3"
}

make_venv() {
  # Debian keeps what a venv needs in a package of its own
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    can_apt || stop "$python cannot make a virtual environment" "install its venv package (Debian: apt-get install python3-venv)"
    apt_install python3-venv
  fi
  say "making .venv with $("$python" --version)"
  "$python" -m venv "$venv"
}

install() { "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --constraint constraints.txt "$@"; }

pinned() { grep -i "^$1==" constraints.txt; }

inputs_hash() { { "$venv/bin/python" --version && cat pyproject.toml constraints.txt tools/setup_python.sh tools/lib.sh "$hook"/cpu_torchvision.*; } | sha256sum; }

# a moved checkout or a removed interpreter leaves a venv that does not start, or starts for another folder
if ! "$venv/bin/python" -c "import sys, os; sys.exit(not os.path.samefile(sys.prefix, '$venv'))" 2>/dev/null; then
  python=$(find_python)
  rm -rf "$venv"
  make_venv
fi
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(inputs_hash)" ]; then exit 0; fi
rm -f "$stamp"

# torch first and alone: the build that is installed now, for CPU or CUDA, is the one that stays
say "installing torch"
install "$(pinned torch)"
install --no-deps "$(pinned torchvision)"
say "installing the suite and its tools"
install --editable '.[learners,data,dev]'
cp "$hook"/cpu_torchvision.* "$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
"$venv/bin/python" -m pip check --quiet || stop "the installed packages contradict each other" "remove .venv and run this again"
inputs_hash >"$stamp"
say "Python is set up in .venv"
