"""The contract of each Function of a file with autograd, for people and editors."""
