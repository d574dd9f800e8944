/**
 * Loggers without `effect/Logger`, which brings files, streams and queues along: a third of what a small server would load.
 */
import type { Logger, Options } from "effect/Logger"
import { pipeArguments } from "effect/Pipeable"

class LoggerImpl {
  readonly "~effect/Logger" = "~effect/Logger"
  readonly log: (entry: Options<unknown>) => void

  constructor(log: (entry: Options<unknown>) => void) {
    this.log = log
  }

  pipe(): unknown {
    return pipeArguments(this, arguments)
  }
}

/** What `Logger.make` makes. */
export const make = (log: (entry: Options<unknown>) => void): Logger<unknown, void> =>
  new LoggerImpl(log) as LoggerImpl & Pick<Logger<unknown, void>, "pipe">
