"""One resident kernel that trains, serves and plays Doom, watched from a terminal."""

__version__ = "0.1.0"
