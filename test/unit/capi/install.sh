# install.sh - Partita is installed: programs, man pages, completion
#
# Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# install.sh CMAKE BUILD PREFIX
set -eu
prefix=$3
rm -rf "$prefix"
mkdir -p "$prefix"
"$1" --install "$2" --prefix "$prefix" >"$prefix/log" 2>&1 || { cat "$prefix/log"; exit 1; }
"$prefix/bin/partita-run" --version
if [ -e "$2/bin/partita-compile" ]; then
  "$prefix/bin/partita-compile" --version
fi
# A build with sanitizers makes no man pages.
if [ -e "$2/man/partita-run.1" ]; then
  for option in $("$prefix/bin/partita-run" --help | grep -oE -- '^ +(-.,)?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
    grep -qF -- "$(printf '%s' "$option" | sed 's/-/\\-/g')" "$prefix/share/man/man1/partita-run.1" || { echo "no $option in the man page"; exit 1; }
  done
fi
test -e "$prefix/share/bash-completion/completions/partita-run"
