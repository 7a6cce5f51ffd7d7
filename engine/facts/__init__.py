"""Joins through a fact relation that changes (contract, section 5)."""
