"""`python -m mergeplan`: the command line."""

from mergeplan.bot.main import main

if __name__ == "__main__":
    main()
