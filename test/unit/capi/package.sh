# package.sh - The package for Debian, and the tar, hold what an installed tree holds
#
# Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# package.sh BUILD; exit status 77 where packages cannot be made
set -eu
for tool in cpack dpkg-shlibdeps dpkg-deb; do
  command -v $tool >/dev/null || { echo "skipped: there is no $tool"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$1"
cpack -B "$work" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
dpkg-deb --contents "$work"/*.deb >"$work/contents"
for file in bin/partita-run lib/libpartita.so.1 include/partita.h cmake/Partita/PartitaConfig.cmake \
  man/man1/partita-run.1 bash-completion/completions/partita-run; do
  grep -q "$file" "$work/contents" || { echo "the package has no $file"; cat "$work/contents"; exit 1; }
done
dpkg-deb --field "$work"/*.deb Depends | grep -q libdnnl || { echo "the package does not depend on oneDNN"; exit 1; }
if dpkg-deb --field "$work"/*.deb Depends | grep -qi 'llvm\|mlir'; then
  echo "the package depends on LLVM, of which its programs have what they need"; exit 1
fi

# The tar, unpacked anywhere.
mkdir "$work/tar"
tar xzf "$work"/*.tar.gz -C "$work/tar" --strip-components=1
for file in bin/partita-run lib/libpartita.so.1 include/partita.h share/zsh/site-functions/_partita; do
  [ -e "$work/tar/$file" ] || { echo "the tar has no $file"; exit 1; }
done
"$work/tar/bin/partita-run" --version | grep -q "artifact format" || { echo "the tar's partita-run does not start"; exit 1; }
