"""Machines and their constants, each with its unit, kind and source; ``hardware.roofline`` turns work into time."""

from hardware.machine import Constant, Machine, load, names

__all__ = ["Constant", "Machine", "load", "names"]
