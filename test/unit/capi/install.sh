# install.sh - Partita is installed, and a program outside embeds it
#
# Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# install.sh CMAKE BUILD EXAMPLE ARTIFACT
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" --install "$2" --prefix "$work/prefix" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$work/prefix/bin/partita-run" --version
if [ -e "$2/bin/partita-compile" ]; then
  "$work/prefix/bin/partita-compile" --version
fi
for option in $("$work/prefix/bin/partita-run" --help | grep -oE -- '^ +(-.,)?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
  grep -qF -- "$(printf '%s' "$option" | sed 's/-/\\-/g')" "$work/prefix/share/man/man1/partita-run.1" || { echo "no $option in the man page"; exit 1; }
done
test -e "$work/prefix/share/bash-completion/completions/partita-run"
"$1" -S "$3" -B "$work/embed" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$1" --build "$work/embed" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
if grep -i warning "$work/log"; then exit 1; fi
"$work/embed/run-samples" "$4" 5 | tee "$work/output"
grep -q "5 samples computed" "$work/output"
if "$work/embed/run-samples" "$work/none.partita" 2>"$work/error"; then exit 1; fi
grep -q "none.partita" "$work/error"
