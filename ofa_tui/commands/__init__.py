"""What the command line does, one file per command."""
