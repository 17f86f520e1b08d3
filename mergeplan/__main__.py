"""`python -m mergeplan`: the command line."""

from bot.main import main

if __name__ == "__main__":
    main()
