#!/usr/bin/env bash
# Installs what building and testing need and this machine lacks, with apt, as
# root or through sudo. With nothing missing it only looks, which takes no time.
set -euo pipefail

go_min=1.26

# need CHECK PACKAGE…: CHECK is a command that succeeds when the packages are here.
missing=()
need() {
  local check=$1
  shift
  bash -c "$check" >/dev/null 2>&1 || missing+=("$@")
}

need "command -v git" git
need "command -v make" make
need "command -v gcc" gcc
need "test -e /usr/include/stdio.h" libc6-dev
need "test -s /etc/ssl/certs/ca-certificates.crt" ca-certificates
need "command -v npm" npm

if ((${#missing[@]})); then
  as_root=()
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      echo "deps: missing ${missing[*]}; neither root nor sudo here: install them, then run again" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  if ! command -v apt-get >/dev/null; then
    echo "deps: missing ${missing[*]}; no apt-get here: install them by other means" >&2
    exit 1
  fi
  echo "deps: installing ${missing[*]}"
  apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120)
  "${apt[@]}" update
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null
fi

if ! command -v go >/dev/null; then
  echo "deps: no go on the PATH; Go $go_min or newer is needed: https://go.dev/doc/install" >&2
  exit 1
fi
have=$(go env GOVERSION)
have=${have#go}
if [[ $(printf '%s\n' "$go_min" "$have" | sort -V | head -n 1) != "$go_min" ]]; then
  echo "deps: go $have is too old; Go $go_min or newer is needed: https://go.dev/doc/install" >&2
  exit 1
fi
