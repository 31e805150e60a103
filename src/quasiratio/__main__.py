"""`python -m quasiratio`: the same as the `quasiratio` command."""

from quasiratio.cli.main import app

__all__ = ["app"]

if __name__ == "__main__":
    app()
