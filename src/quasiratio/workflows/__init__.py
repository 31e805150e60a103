"""What a command does with files, callable from Python."""
