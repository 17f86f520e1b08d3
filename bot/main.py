"""The whole command line: the planner's verbs and the bot's."""

from mergeplan.planner.cli.main import VERBS, run_and_exit

BOT_VERBS = {
    "serve": ("mergeplan.bot.cli:serve", "Run the bot: webhooks in, comments and checks out."),
    "action": ("mergeplan.bot.cli:action", "Run the bot once, as a GitHub Action."),
    "app_manifest": ("mergeplan.bot.cli:app_manifest", "Register the GitHub App in a browser."),
    "replay": ("mergeplan.bot.cli:replay", "Say what the bot would do with a stored webhook, or send it again."),
    "sandbox": ("mergeplan.bot.cli:sandbox", "Run a GitHub on this machine, to try the bot out."),
    "schema": ("mergeplan.bot.schema:schema", VERBS["schema"][1]),  # with the keys of `cicd_bot`
    "lint": ("mergeplan.bot.lint:lint", VERBS["lint"][1]),  # with the bot's reading of `cicd_bot`
    "doctor": ("mergeplan.bot.doctor:doctor", "Check Java, Spark, the catalog, the state, isolation and GitHub."),
    "demo": ("mergeplan.bot.cli:demo", "Take a pull request from plan to prod on this machine."),
}


def main() -> None:
    run_and_exit({**VERBS, **BOT_VERBS})


if __name__ == "__main__":
    main()
