/**
 * Questions that a server asks as tasks (2025-11-25, tasks): it sends `sampling/createMessage` or `elicitation/create` with a `task`, is
 * answered at once with the task's id, and comes back for the answer. So no request has to stay open while a user thinks.
 *
 * A client does so for whatever its host provides (`Sampling`, `Elicitation`), and declares it:
 * `tasks: { list, cancel, requests: { sampling: { createMessage }, elicitation: { create } } }`. The same handlers answer, and know
 * nothing of it: one runs until it has an answer, the server cancels the task, its time is up, or the connection ends. Turn it off, or
 * bound it, with the client's option `taskReceiver`.
 *
 * - A task belongs to its connection, and to nobody else: the next one does not know it. Its id has 192 random bits.
 * - While one is at work, the timeouts of the client's own calls stand still, as they do for any question of the server's.
 * - The server is told when a task ends (`notifications/tasks/status`).
 *
 * The other revisions have nothing of it: older ones have no tasks, and since 2026-07-28 a server asks within its results.
 */
import type * as Duration from "effect/Duration"

/** How tasks are bounded. Each connection has bounds of its own. */
export interface Options {
  /**
   * How many tasks may be at work at the same time: 100 by default. A question that comes as one more is refused (`-32603`), and
   * the host is not asked.
   */
  readonly maxLive?: number | undefined
  /**
   * How many tasks are kept, at work or over: 1,000 by default. For one more the oldest goes that was cancelled, or whose result was
   * fetched; where there is none, the question is refused (`-32603`).
   */
  readonly maxRetained?: number | undefined
  /**
   * How long a task is kept from its creation at most: 24 hours by default. A server that asks for more gets this, and so does one
   * that does not say. After its `ttl` a task is gone, and a handler that is still at work is interrupted.
   */
  readonly maxTtl?: Duration.Input | undefined
  /** How long a server should wait between two looks at a task: 1 second by default. */
  readonly pollInterval?: Duration.Input | undefined
  /** How many tasks one page of `tasks/list` holds: 100 by default. The rest comes with `nextCursor`. */
  readonly pageSize?: number | undefined
}
