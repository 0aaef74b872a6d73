"""Commands of their own, one a file; ``outputs.cli`` hands each the group and the arguments that all questions take."""
