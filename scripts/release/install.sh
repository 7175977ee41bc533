#!/bin/sh
# Installs Relay Service for the current user, or replaces the installed version. It needs curl or wget, and tar. It never asks for other rights.
#
#     curl -fsSL DOWNLOAD_URL/latest/download/install.sh | sh
#     curl -fsSL DOWNLOAD_URL/latest/download/install.sh | sh -s -- --version VERSION
#
# RELAY_INSTALL_DIR   the folder for the executable, instead of ~/.local/bin
# RELAY_DOWNLOAD_URL  the address of a mirror, which has latest/download/<file> and download/v<version>/<file>
#
# Everything is in functions, and the last line calls the first one, so half a download of this script runs nothing.
set -eu

main() {
  read_options "$@"
  system=$(find_system)
  archive="relay-$system.tar.gz"
  [ -n "${RELAY_INSTALL_DIR:-${HOME:-}}" ] || refuse "HOME is not set. Set RELAY_INSTALL_DIR to the folder for relay."
  folder=${RELAY_INSTALL_DIR:-$HOME/.local/bin}
  mkdir -p -- "$folder" || refuse "The folder $folder cannot be created. Set RELAY_INSTALL_DIR to a folder of yours."
  # The lines for the PATH need a path that is the same in every folder.
  folder=$(CDPATH='' cd -- "$folder" && pwd) || refuse "The folder $folder cannot be opened. Set RELAY_INSTALL_DIR to a folder of yours."
  [ ! -d "$folder/relay" ] || refuse "$folder/relay is a folder. Move it away, or set RELAY_INSTALL_DIR to another folder."
  # The work folder is next to the executable, so that the last step is a rename, which happens completely or not at all.
  work=$(mktemp -d "$folder/.relay-install.XXXXXX") || refuse "$folder cannot be written. Set RELAY_INSTALL_DIR to a folder of yours."
  trap 'rm -rf "$work"' EXIT
  trap 'exit 130' HUP INT TERM

  say "Downloading $archive from $source"
  download checksums.txt
  download "$archive"
  check_sum "$archive"
  tar -xzf "$work/$archive" -C "$work" relay || refuse "$archive could not be unpacked; see above. It needs tar, gzip, and free space in $folder. Nothing was changed."
  chmod 755 "$work/relay"
  installed=$("$work/relay" --version) || refuse "The executable for $system does not start here; see above.$(tell_missing) Nothing was changed."
  [ -z "$version" ] || [ "$version" = "$installed" ] || refuse "$source has version $installed, not $version. Nothing was changed."
  mv -f "$work/relay" "$folder/relay" || refuse "$folder/relay could not be replaced. Nothing was changed."
  say "Installed Relay $installed as $folder/relay"
  tell_path
}

read_options() {
  version=
  while [ $# -gt 0 ]; do
    case $1 in
      --version=*) version=${1#--version=} ;;
      --version)
        [ $# -gt 1 ] || refuse "--version needs a version, for example --version VERSION."
        version=$2
        shift
        ;;
      *) refuse "The option $1 is unknown. Use --version <version>, or nothing for the newest version." ;;
    esac
    shift
  done
  version=${version#v}
  case $version in
    *[!0-9A-Za-z.-]*) refuse "\"$version\" is no version. Use a version such as VERSION." ;;
  esac
  base=${RELAY_DOWNLOAD_URL:-DOWNLOAD_URL}
  [ -n "$base" ] || refuse "This script names no address to download from. Set RELAY_DOWNLOAD_URL to the address of the releases."
  base=${base%/}
  if [ -n "$version" ]; then source="$base/download/v$version"; else source="$base/latest/download"; fi
}

# Prints the name of the executable for this machine. On Linux it is the one whose C library is here: the file that starts the executable.
find_system() {
  kernel=$(uname -s)
  machine=$(uname -m)
  case $machine in
    x86_64 | amd64) cpu=x64 ;;
    aarch64 | arm64) cpu=arm64 ;;
    *) cpu=$machine ;;
  esac
  known=
  while read -r row_kernel row_cpu loader name; do
    [ "$row_kernel $row_cpu" = "$kernel $cpu" ] || continue
    known=yes
    if [ "$loader" = - ] || [ -e "$loader" ]; then
      echo "$name"
      return
    fi
  done <<'END'
SYSTEMS
END
  case $kernel in
    MINGW* | MSYS* | CYGWIN* | Windows*) refuse "This script is not for Windows. Use Scoop or npm there." ;;
  esac
  [ -z "$known" ] || refuse "This system has no C library that a released executable needs. Relay runs with the GNU C library or musl."
  refuse "There is no executable for $kernel $machine. Build it from the sources."
}

# Downloads a file of the release into the work folder.
download() {
  if command -v curl >/dev/null 2>&1; then
    case $source in
      https://*) curl --proto "=https" -fsSL --retry 2 -o "$work/$1" "$source/$1" || no_download "$1" ;;
      *) curl -fsSL --retry 2 -o "$work/$1" "$source/$1" || no_download "$1" ;;
    esac
  elif command -v wget >/dev/null 2>&1; then
    wget -q -O "$work/$1" "$source/$1" || no_download "$1"
  else
    refuse "Neither curl nor wget is on the PATH. Install one of them."
  fi
}

no_download() {
  refuse "$source/$1 could not be downloaded. Check the version and the connection. Nothing was changed."
}

# Compares an archive with its line in checksums.txt.
check_sum() {
  expected=$(sed -n "s/^\([0-9a-f]\{64\}\)  $1\$/\1/p" "$work/checksums.txt")
  [ -n "$expected" ] || refuse "checksums.txt has no line for $1. Nothing was changed."
  if command -v sha256sum >/dev/null 2>&1; then
    found=$(sha256sum "$work/$1")
  elif command -v shasum >/dev/null 2>&1; then
    found=$(shasum -a 256 "$work/$1")
  elif command -v openssl >/dev/null 2>&1; then
    found=$(openssl dgst -sha256 -r "$work/$1")
  else
    refuse "The download cannot be checked: sha256sum, shasum and openssl are missing. Install one of them."
  fi
  [ "${found%% *}" = "$expected" ] || refuse "$1 is damaged or was changed: its SHA-256 is not the one of checksums.txt. Nothing was changed; try again."
}

# Alpine does not install the library of C++ by default.
tell_missing() {
  case $system in
    *-musl) printf ' On Alpine, run apk add libstdc++, and then this script again.' ;;
  esac
}

tell_path() {
  case ":$PATH:" in
    *":$folder:"*) ;;
    *)
      say "$folder is not in your PATH. Add this line to the profile of your shell:"
      say "  export PATH=\"$folder:\$PATH\""
      return
      ;;
  esac
  first=$(command -v relay || true)
  [ "$first" = "$folder/relay" ] || say "The command relay still starts $first, which comes first in your PATH."
}

say() {
  printf '%s\n' "$1"
}

refuse() {
  printf 'install: %s\n' "$1" >&2
  exit 1
}

main "$@"
