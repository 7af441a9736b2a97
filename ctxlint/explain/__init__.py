"""What autograd is promised by each Function of a file, as people and editors want to see it: the contract."""
