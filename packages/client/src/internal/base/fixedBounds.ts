/**
 * The bounds of a client that are not options: no deployment has a reason to change them. Those of HTTP are in
 * `http/settings.ts`.
 */
import * as Context from "effect/Context"

/** The fixed bounds of a client. Times in milliseconds. */
export const fixedBounds = {
  /** How many pages of a list are requested. A longer list fails with `LimitExceeded`. */
  maxPages: 1_000,
  /**
   * How large the collected pages of a list may be, in UTF-16 units of JSON. The first eight pages are not measured. A
   * larger list fails with `LimitExceeded`.
   */
  maxListingChars: 64 * 1024 * 1024,
  /**
   * How long a server counts as one of a session-based revision after the negotiation. After that time the next connection
   * probes it again.
   */
  maxProfileAge: 24 * 3_600_000,
  /** How long each of several servers may take to return a list, including its opening in a pool. */
  listTimeout: 30_000,
  /**
   * How large all remembered `outputSchema`s may be together, in UTF-16 units of JSON. Results of tools beyond that are
   * not validated, which is logged.
   */
  maxOutputSchemaChars: 16 * 1024 * 1024,
  /**
   * How many input requests one task may make in total, including those that it withdraws. A task that makes more fails
   * with `LimitExceeded`.
   */
  maxTaskInputRequests: 1_000,
  /**
   * How many tasks are subscribed to at the same time, in the stateless revision, all with one `subscriptions/listen`.
   * Other tasks are polled at the normal interval.
   */
  maxSubscriptions: 100,
  /** How long an interrupted call waits until the server has received the cancellation of its task. */
  cancelTimeout: 5_000,
  /** The shortest poll interval of a task. A shorter suggestion of the server is raised to it. */
  minPollInterval: 100,
  /** The longest poll interval of a task. A longer suggestion of the server is reduced to it. */
  maxPollInterval: 5 * 60_000,
  /**
   * How many input requests that the server sends as tasks may run at the same time (2025-11-25). Further ones are
   * refused (`-32603`), and the host does not receive them.
   */
  maxRunningTasks: 100,
  /**
   * How many input requests are stored as tasks, running or ended (2025-11-25). A new one replaces the oldest one that
   * was cancelled or whose result was fetched. If there is no such task, the input request is refused.
   */
  maxRetained: 1_000,
  /**
   * How long such a task is stored after its creation, at most. It also applies if the server requests a longer time or
   * none. After that time the task is deleted, and its handler is interrupted if it still runs.
   */
  maxTtl: 24 * 3_600_000,
  /** How long a server should wait between two requests for the status of such a task. */
  suggestedPollInterval: 1_000,
  /**
   * How long an operation of a shared store of responses may take. A store that fails or takes longer is not used for ten
   * times as long, and the server is asked instead.
   */
  storeTimeout: 1_000,
  /** How many tasks one page of `tasks/list` has (2025-11-25). */
  pageSize: 100,
  /** How much of the stderr of a server is captured, in characters. Older text is dropped. */
  maxStderrChars: 8 * 1024,
  /**
   * How much is buffered while a server does not read its stdin, in characters. Beyond that the next message ends the
   * connection as `Lost`.
   */
  maxUnsentChars: 64 * 1024 * 1024
}

/** The fixed bounds, with these or other values. */
export type FixedBounds = Readonly<typeof fixedBounds>

/** The fixed bounds in use. Tests replace them. */
export const FixedBounds: Context.Reference<FixedBounds> = /* @__PURE__ */ Context.Reference<FixedBounds>(
  "@skein/client/internal/FixedBounds",
  { defaultValue: () => fixedBounds }
)
