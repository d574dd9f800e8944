/**
 * Deadlines for scripts that start processes and wait for them: a check that does not end fails, and reports its state.
 */

/** The failure of a check that did not end in time. Its message contains the state at the deadline. */
export class DeadlineError extends Error {
  override readonly name = "DeadlineError"
}

/** A deadline, and the report about a check that misses it. */
export interface Deadline {
  /** Milliseconds until the check fails. */
  readonly milliseconds: number
  /**
   * Describes the state of the check at the deadline, for the message of the error. It has one minute; after that the
   * message reports that the description did not end.
   */
  readonly describe?: (() => string | Promise<string>) | undefined
}

/** Milliseconds that the description of a state may take. */
const maxDescribeMillis = 60_000

const isLate = Symbol("late")

/** Waits for a promise, at most for some milliseconds. The timer keeps the process alive. */
const race = async <A>(promise: Promise<A>, milliseconds: number): Promise<A | typeof isLate> => {
  const late = Promise.withResolvers<typeof isLate>()
  const timer = setTimeout(() => late.resolve(isLate), milliseconds)
  try {
    return await Promise.race([promise, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

const stateOf = async (describe: NonNullable<Deadline["describe"]>): Promise<string> => {
  try {
    const state = await race(Promise.resolve(describe()), maxDescribeMillis)
    return state === isLate ? `the description of its state did not end within ${maxDescribeMillis} ms` : state
  } catch (error) {
    return `its state is unknown: ${error instanceof Error ? error.stack : String(error)}`
  }
}

/**
 * Runs a check, and fails with {@link DeadlineError} if it has not ended at the deadline. The check cannot be stopped
 * from here: the caller kills the processes that it waits for.
 *
 * @example
 * await withDeadline("the server stops", { milliseconds: 60_000, describe: () => server.stderr }, () => server.stop())
 */
export const withDeadline = async <A>(
  what: string,
  { describe, milliseconds }: Deadline,
  run: () => Promise<A>
): Promise<A> => {
  const running = run()
  // After the deadline nothing waits for it.
  running.catch(() => {})
  const result = await race(running, milliseconds)
  if (result !== isLate) return result
  const state = describe === undefined ? "" : `\n${await stateOf(describe)}`
  throw new DeadlineError(`${what} has not ended within ${milliseconds} ms${state}`)
}
