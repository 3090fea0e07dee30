#!/bin/sh
# A Chromium for the tests of the pages, best its headless shell: the same engine without a window, for half the CPU
# time. Where there is a browser already, the shell is no more than tried for: nobody is asked for a password, and an
# apt that fails ends nothing.
set -u
command -v chromium-headless-shell >/dev/null && exit 0
found=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
[ "$(id -u)" = 0 ] && sudo= || sudo=sudo
[ -n "$found" ] && [ -n "$sudo" ] && exit 0

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() { $sudo timeout 60 apt-get update -q && $sudo apt-get install -qy --no-install-recommends "$1" fonts-dejavu-core; }

echo "Installing Chromium's headless shell"
apt chromium-headless-shell >"$log" 2>&1 && exit 0
[ -n "$found" ] && echo "There is none: the tests use $found" && exit 0
echo "There is none: installing Chromium"
apt chromium >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
