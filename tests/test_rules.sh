#!/bin/sh
# tests/rules.txt, the table of rules: complete, with functions and tests that exist.
# runs: once
cd "$(dirname "$0")/.." || exit 1
exec "${PYTHON:-/usr/bin/python3}" tests/judge/rules.py
