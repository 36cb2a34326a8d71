"""The rewrites, one file each: a function from plan to plan that gives the same object where nothing applies.

Each opens with why the answer stays the same, and where it would not.
"""
