"""Imports files into tables: a file is stored, read in the sandbox, mapped to columns, and written in chunks.

    received   the request stores the file in pieces (`storage`) and the options (`options`)
    reading    `parsing` runs `parser` in the sandbox, which guesses encoding, delimiter and types, and stores the
               rows in compressed pieces of 1,000; `mapping` then matches the header row with columns
    writing    `writing` writes one piece after another through the bulk endpoints' code, with the caller's rights;
               `cells` and `references` turn the texts of cells into values
    done | failed | cancelled
    undoing    `undo` goes through the pieces backwards → undone

One function, `steps.process`, takes an import from step to step, in the request, in the worker or in a command. Each
step ends with a commit, and the next one can run in any process:

    on_error=continue   a step writes one piece. Records, progress, errors and undo data are committed together, so
                        after a killed worker the next one continues, and nothing is written twice.
    on_error=stop       one step writes all pieces in one transaction. If a line has an error, or the process is killed,
                        nothing stays, and the step starts from the beginning.
    dry_run             the same steps, but each transaction is rolled back.

Only the holder of the lease (`queue`) may commit a step: the last statement of its transaction renews or ends the
lease, and fails if another process has taken it or the import was cancelled. A long transaction renews it through
another connection, which also makes its progress visible.

The caller's account, roles and rules are read again for each piece. What a line cannot do is what a request of that
person could not do, with the same message.
"""
