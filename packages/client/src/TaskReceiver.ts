/**
 * Input requests that a server sends as tasks (2025-11-25, tasks). The server sends `sampling/createMessage` or
 * `elicitation/create` with a `task`, receives the id of the task at once, and fetches the result later. No request has
 * to stay open while a user thinks.
 *
 * A client supports this for each service that its host provides (`Sampling`, `Elicitation`), and declares it: `tasks:
 * { list, cancel, requests: { sampling: { createMessage }, elicitation: { create } } }`. The handlers do not change. A
 * handler runs until it returns an answer, the server cancels the task, its time is up, or the connection ends. The
 * client's option `taskReceiver` sets the bounds or turns tasks off.
 *
 * - A task belongs to its connection: the next connection does not have it. Its id has 190 random bits.
 * - While a task runs, the timeouts of the client's own calls are paused, as for any input request of the server.
 * - The server is notified when a task ends (`notifications/tasks/status`).
 *
 * Other revisions have no such tasks: before 2025-11-25 there are no tasks, and since 2026-07-28 a server requests
 * input in its results.
 */
import type * as Duration from "effect/Duration"

/** The bounds of tasks. They apply to each connection separately. */
export interface Options {
  /**
   * How many tasks may run at the same time: 100 by default. Input requests beyond that are refused (`-32603`), and the
   * host does not receive them.
   */
  readonly maxLive?: number | undefined
  /**
   * How long a task is stored after its creation, at most: 24 hours by default. It also applies if the server requests a
   * longer time or none. After that time the task is deleted, and its handler is interrupted if it still runs.
   */
  readonly maxTtl?: Duration.Input | undefined
  /** How long a server should wait between two status requests: 1 second by default. */
  readonly pollInterval?: Duration.Input | undefined
}
