"""The whole command line: the planner's verbs and the bot's."""

from __future__ import annotations

from planner.cli.main import VERBS, collect_seldom, run

BOT_VERBS = {
    "serve": ("bot.cli:serve", "Run the bot: webhooks in, comments and checks out."),
    "action": ("bot.cli:action", "Run the bot once, as a GitHub Action."),
    "app-manifest": ("bot.cli:app_manifest", "Register the GitHub App in a browser."),
    "replay": ("bot.cli:replay", "Say what the bot would do with a stored webhook, or send it again."),
    "sandbox": ("bot.cli:sandbox", "Run a GitHub on this machine, to try the bot out."),
    "schema": ("bot.schema:schema", VERBS["schema"][1]),  # with the keys of `cicd_bot`
    "doctor": ("bot.doctor:doctor", "Check Java, Spark, the catalog, the state, isolation and GitHub."),
    "demo": ("bot.cli:demo", "Take a pull request from plan to prod on this machine."),
}


def main() -> None:
    """`mergeplan`."""
    collect_seldom()
    raise SystemExit(run({**VERBS, **BOT_VERBS}))


if __name__ == "__main__":
    main()
