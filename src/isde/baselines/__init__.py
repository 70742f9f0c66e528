"""The other density estimators of the paper, with ISDE's contract."""
