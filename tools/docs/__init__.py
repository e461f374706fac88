"""Retrieval over CUDA documentation that lies on this machine, at the versions that are installed.

`sources` finds the files, `headers` and `pages` cut them into chunks, `words` turns text and queries into
words, `store` keeps them in LanceDB, `index` builds and searches.  All of that runs in a process of its own
(`worker`), so that nobody else imports LanceDB; `client` is the other end.
"""
