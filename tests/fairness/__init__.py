"""Tests of app/fairness."""
