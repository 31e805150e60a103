"""Generators of samples whose true ratio is known."""
