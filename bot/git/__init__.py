"""Git: mirrors of repositories, and the files of a commit, read without trusting them."""
