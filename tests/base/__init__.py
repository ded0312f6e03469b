"""Tests of app/base."""
