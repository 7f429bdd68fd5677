#!/usr/bin/env bash
# Prints the hash of the device code: what a GPU has to check again when it changes. That is every
# file of the rooms that run on a device, and every CUDA source wherever it lies.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C
{
  find reprise/{base,device,kernel,ops,cuda,replay,tap,grad,nn,sdm,train,trace} -type f
  find reprise workloads scenarios bench apps examples -type f \( -name '*.cu' -o -name '*.cuh' \)
} | sort -u | xargs -d '\n' sha256sum | sha256sum | cut -d ' ' -f 1
