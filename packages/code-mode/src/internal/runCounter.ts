/**
 * Counts the programs that run, and refuses further ones: of the server, and of one client, so that a client cannot take
 * the places of the others.
 */
import * as Effect from "effect/Effect"
import { LimitExceeded, ProgramError } from "../ProgramError.ts"

export class RunCounter {
  readonly #maxRuns: number
  readonly #maxRunsPerClient: number
  #all = 0
  readonly #byClient = new Map<string, number>()

  constructor(maxRuns: number, maxRunsPerClient: number) {
    this.#maxRuns = maxRuns
    this.#maxRunsPerClient = maxRunsPerClient
  }

  /** Runs a program of a client, or refuses it. Clients that cannot be distinguished have the key `""`. */
  run<A, E, R>(client: string, program: Effect.Effect<A, E, R>): Effect.Effect<A, E | ProgramError, R> {
    return Effect.acquireUseRelease(
      Effect.suspend(() => {
        if (this.#all >= this.#maxRuns) return refuse("maxRuns", `${this.#maxRuns} programs`)
        if (client !== "" && this.#of(client) >= this.#maxRunsPerClient) {
          return refuse("maxRunsPerClient", `${this.#maxRunsPerClient} programs of one client`)
        }
        this.#add(client, 1)
        return Effect.void
      }),
      () => program,
      () => Effect.sync(() => this.#add(client, -1))
    )
  }

  #of(client: string): number {
    return this.#byClient.get(client) ?? 0
  }

  #add(client: string, more: number): void {
    this.#all += more
    const count = this.#of(client) + more
    if (count === 0) this.#byClient.delete(client)
    else this.#byClient.set(client, count)
  }
}

const refuse = (limit: LimitExceeded["limit"], most: string): Effect.Effect<never, ProgramError> => {
  const message = `At most ${most} run at the same time (${limit}). Try again later`
  return Effect.fail(new ProgramError(new LimitExceeded({ message, limit })))
}
