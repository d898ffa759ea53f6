"""Imports files into tables: a file is stored, read in the sandbox, mapped to columns, and written in pieces.

    received   `jobs` stores the file in pieces, and the options (`options`)
    reading    `reading` runs `parser` in the sandbox, which guesses encoding, delimiter and types, and stores the
               rows in compressed pieces of 1,000; then it matches the header row with columns
    writing    `writing` writes one piece after another through the bulk endpoints' code, with the caller's rights;
               `cells` and `references` turn cells into values
    done | failed | cancelled
    undoing    `writing` goes through the pieces backwards → undone

One function, `steps.process`, takes an import from step to step, in the request, in the worker or in a command. Each
step ends with a commit, and the next one can run in any process:

    on_error=continue   a step writes one piece. Records, progress, errors and undo data are committed together, so
                        after a killed worker the next one continues, and nothing is written twice.
    on_error=stop       one step writes all pieces in one transaction. If a line has an error, or the process is killed,
                        nothing stays, and the step starts from the beginning.
    dry_run             the same steps, but each transaction is rolled back.

While a process runs the steps of an import, it holds an advisory lock. PostgreSQL ends the lock together with the
transaction if the process is killed, so no lease has to expire. Before a step, its next attempt is scheduled; the last
statement of the step replaces that, or fails if the import was cancelled.

The caller's account, roles and rules are read again for each piece. What a line cannot do is what a request of that
person could not do, with the same message.
"""
