#!/usr/bin/env bash
# Makes sure that a chromium is there for the site's browser tests. Does nothing where one is.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

if command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; then exit 0; fi
can_apt || stop "no chromium found, and it can be installed from here only as root on Debian or Ubuntu" "install chromium"
say "installing chromium"
apt_install chromium
