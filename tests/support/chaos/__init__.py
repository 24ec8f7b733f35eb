"""The second harness: real processes, real signals, a real store.

The simulation (`tests/support/simulation`) chooses every step, in one process, in its own time. This harness chooses
nothing but the world and the monkey's moves. What it finds needs no hook and no model of a store.

    python tests/support/chaos/run.py --minutes 10 --store disk --first 1 [--seeds 5,8] [--results build/chaos]
        [--vandal] [--toxic]

A seed draws a world (`draw`): table type, index, lock, one writer or several, few retained commits, a short lease. The
processes of a world are

* two streams (`writer`): `ArrowSink` with numbered batches over keys of their own, and over keys that both share;
* a guest (`guest`): writes without a number, each made once, whatever it is told;
* one or two operators (`upkeep`): clean, archive, compact, check, savepoints;
* readers (`read`): each snapshot is compared with the model;
* a watcher (`verify`): each commit is verified as it comes;
* with ``--vandal`` a process that damages files and restores them (`vandal`).

With ``--toxic`` the disk (`bad_disk`) or the network (`bad_network`) is late, refuses, and loses or reorders answers.

The monkey (`monkey`) sends SIGKILL and starts the process again, or SIGSTOP for longer than a lease and than what is
retained. A seed fixes the world and the moves. It does not fix the timing: a world that failed may pass the next time.

The model (`model`) follows from journals. A writer appends an *intent* before a batch and an *acknowledgement* after
it, each forced to the disk. What was acknowledged before a snapshot was taken is in it. What has no intent after the
snapshot was read is not. A writer has one batch in doubt at most, and each batch changes keys of its own. So the rows
tell how many batches of each writer a snapshot shows, and every row follows from that: a shared key has the row with
the greatest ordering value, which is unique. Shared keys exist from the start and are never deleted. Two writers that
insert one new key double it, which is a documented limit.

The history of the world (`explain`) is judged apart from the model, by a checker that knows neither (`history`): what
each writer was told of each write, and what each reader saw. Only this tells whether a write of the guest that was
refused is visible, and whether two readers saw commits in different orders.

At the end every process is stopped. Each writer writes one batch more, both at once. The rows equal the model, and they
do so again after a last clean and a last archival. `check` finds no error. A writer that could run and had no batch
acknowledged for `STARVED_S` seconds is a finding. A finding is kept with its world, journals, errors and the timeline.
"""
