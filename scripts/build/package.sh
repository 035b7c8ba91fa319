#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Build packages of the checkout: Debian's from debian/ and, with --rpm, RPM packages from
# packaging/. Other options check or test Debian's packages.

. "$(dirname -- "$0")/../lib.sh"
. "$HT_TOP/scripts/build/debian.sh"

usage() {
    cat <<EOT
usage: ./run package [-o DIR] [--in SUITE] [--check] [--rpm]
                     [--test [SUITE]]
       ./run package --full

Builds the Debian packages of this checkout with dpkg-buildpackage. QEMU and
its source are not needed.
  -o DIR          write the packages to DIR instead of the cache
  --in SUITE      build (and check) in a clean chroot of Debian SUITE, such as
                  trixie, and not on this system; needs root
  --check         build twice and compare the packages byte for byte, then
                  run lintian
  --rpm           run rpmlint on packaging/hypertrace.spec, and build RPM
                  packages, too
  --test [SUITE]  run debian/tests with autopkgtest in a clean chroot of
                  SUITE, else that of --in, else bookworm; then install,
                  upgrade and remove the packages there; needs root and some
                  minutes
  --full          all of this: --in SUITE --check --test for Debian 12 and 13,
                  --rpm, and './run stock --check' with the programs that start
                  virtual machines; needs root and more than an hour
EOT
}

out=
check=
rpm=
in=
suite=
while [ $# -gt 0 ]; do
    case $1 in
    -o) out=${2:?-o needs a folder}; shift 2 ;;
    --in) in=${2:?--in needs a suite}; shift 2 ;;
    --check) check=yes; shift ;;
    --rpm) rpm=yes; shift ;;
    --test)
        shift
        case ${1--} in
        -*) suite=default ;;
        *) suite=$1; shift ;;
        esac
        ;;
    --full)
        for suite in bookworm trixie; do
            "$HT_TOP/run" package --in "$suite" --check --test
        done
        "$HT_TOP/run" package --rpm
        exec "$HT_TOP/run" stock --check -- -k 'libvirt or callers or pages or ci'
        ;;
    -h|--help) usage; exit 0 ;;
    *) die "./run package: unknown argument '$1'; see --help" ;;
    esac
done
[ "$suite" != default ] || suite=${in:-bookworm}

have apt-get && have dpkg-query ||
    die "./run package builds Debian packages: run it on Debian 12 or newer"
# dpkg-dev must be installed before debian/control can be read.
"$HT_TOP/scripts/build/prerequisites.sh"
"$HT_TOP/scripts/build/prerequisites.sh" --for package
ht_paths ""
ht_tree_init
tree_lock
work=$HT_TREE/package
out=${out:-$HT_TREE/packages}
mkdir -p "$out" || die "cannot create $out"
out=$(CDPATH='' cd -- "$out" && pwd -P)
version=$(cd "$HT_TOP" && dpkg-parsechangelog -S Version)
date=$(cd "$HT_TOP" && dpkg-parsechangelog -S Timestamp)

# copy_sources DIR: copy the files that git tracks or would add to DIR. The copies get
# modes and dates that do not depend on the modes and dates in the checkout.
copy_sources() {
    mkdir -p "$1"
    cd "$HT_TOP"
    git ls-files -z --cached --others --exclude-standard |
        while_present | tar -c --null -T - | tar -x -C "$1"
    chmod -R u=rwX,go=rX "$1"
    find "$1" -exec touch -h -d "@$date" {} +
}

# Drop names of files that are deleted in the checkout but not in git's index.
# shellcheck disable=SC2016 # the inner shell expands them
while_present() {
    xargs -0 sh -c 'for file; do
        [ ! -e "$file" ] && [ ! -L "$file" ] || printf "%s\0" "$file"
    done' sh
}

# at DIR COMMAND...: run COMMAND in DIR. If a chroot is used, DIR is a path on this
# system that begins with the chroot's path, and COMMAND runs inside the chroot.
at() {
    if [ -n "$in" ]; then
        dir=${1#"$chroot"}
        shift
        in_chroot "$dir" "$@"
    else
        env -C "$@"
    fi
}

# build_packages DIR: copy the sources into the new folder DIR and build the packages
# there; dpkg-buildpackage writes them to DIR
build_packages() {
    rm -rf "$1"
    mkdir "$1"
    cp -a "$sources" "$1/"
    # The caller's options of make and of the compiler must not change the packages.
    logged package "building the packages in $1" at "$1/hypertrace-$version" \
        env -u MAKEFLAGS -u CFLAGS -u LDFLAGS DEB_BUILD_OPTIONS="parallel=$(nproc)" \
        dpkg-buildpackage --no-sign -sa
}

# build_rpms DIR: build RPM packages in DIR, and copy them to $out. On Debian, rpmbuild
# finds neither the packages nor the macros that the spec file names: so --nodeps skips
# the check for packages, and --define sets the macros.
build_rpms() {
    have rpmbuild && have rpmlint || die "rpm and rpmlint are not installed"
    rm -rf "$1"
    mkdir -p "$1/SOURCES"
    tar -C "$work" -cJf "$1/SOURCES/hypertrace-$version.tar.xz" \
        "hypertrace-$version"
    spec=$sources/packaging/hypertrace.spec
    # Check the spec file but not the built packages, because the rules for
    # packages differ between distributions.
    step "rpmlint"
    rpmlint --strict --config "$sources/packaging/rpmlint.toml" "$spec" >&2 ||
        die "rpmlint reports errors or warnings"
    logged rpm "building the RPM packages" \
        env -u MAKEFLAGS rpmbuild -bb --nodeps --define "_topdir $1" \
        --define "_unitdir /usr/lib/systemd/system" \
        --define "_udevrulesdir /usr/lib/udev/rules.d" \
        --define "_sysusersdir /usr/lib/sysusers.d" \
        --define "python3_sitelib /usr/lib/python3/site-packages" "$spec"
    cp "$1"/RPMS/*/*.rpm "$out/"
}

have git && git -C "$HT_TOP" rev-parse --git-dir >/dev/null 2>&1 ||
    die "./run package needs git and a git checkout;" \
        "in an unpacked source package run dpkg-buildpackage"
CCACHE_DIR=${CCACHE_DIR:-$HT_CACHE/ccache}
export CCACHE_DIR
# Build from a copy of the checkout, because the checkout may change during the
# build.
if [ -n "$in" ]; then
    . "$HT_TOP/scripts/build/chroot.sh"
    make_chroot "$in"
    work=$chroot/package
fi
sources=$work/hypertrace-$version
rm -rf "$work"
copy_sources "$sources"
if [ -n "$in" ]; then
    logged build-dep "installing what the build needs in the chroot" \
        at "$sources" sh -c 'export DEBIAN_FRONTEND=noninteractive
            apt-get -q update &&
                apt-get -q -y --no-install-recommends build-dep . &&
                apt-get -q -y --no-install-recommends install lintian'
fi
build_packages "$work/first"
find "$out" -maxdepth 1 -type f \
    '(' -name '*hypertrace*_*' -o -name '*hypertrace*.rpm' ')' -delete
find "$work/first" -maxdepth 1 -type f -exec cp {} "$out/" \;

if [ -n "$check" ]; then
    # For the second build use another path, and no object file of the first
    # build.
    CCACHE_DISABLE=1 build_packages "$work/second-build"
    step "comparing the two builds"
    for file in "$work/first"/*.deb "$work/first"/*.dsc \
                "$work/first"/*.tar.*; do
        cmp "$file" "$work/second-build/${file##*/}" ||
            die "two builds differ; see 'diffoscope' for where"
        note "equal: ${file##*/}"
    done
    step "lintian"
    [ -n "$in" ] || have lintian || die "lintian is not installed"
    at "$work/first" sh -c 'lintian --fail-on error,warning \
        --tag-display-limit 0 --allow-root ./*.changes' ||
        die "lintian reports errors or warnings"
fi
[ -z "$rpm" ] || build_rpms "$work/rpm"
rm -rf "$work"

if [ -n "$suite" ]; then
    tree_unlock
    "$HT_TOP/scripts/check/package-tests.sh" "$suite" "$out"
fi
step "the packages are in $out"
