"""`python -m mergeplan`: the command line."""

import os
import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    try:
        current_folder = os.getcwd()
    except FileNotFoundError:  # it was removed
        current_folder = ""
    if sys.path[0] == current_folder:
        del sys.path[0]  # a project's `json.py` must not become a module of this process

from mergeplan.bot.main import main

if __name__ == "__main__":
    main()
