"""What earlier runs found out, so that this one need not."""
