"""The command line: one thin file per command, put together in `main`."""
