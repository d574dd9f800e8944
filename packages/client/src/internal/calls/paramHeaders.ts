/**
 * Calling a tool when what is known of it may be out of date: the parameters that are mirrored into headers, the schema of what it
 * answers.
 */
import { serverErrorOf } from "../errors.ts"
import type { CallToolResult } from "@skein/protocol/CallTool"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { ClientError, Timeout } from "../../ClientError.ts"
import type { CallTime } from "./deadline.ts"
import type { Definitions } from "./toolCatalog.ts"
import type { Line } from "../connection/connection.ts"

/** What lists all tools, past what is kept of them. */
export interface Lister {
  readonly listAnew: Effect.Effect<unknown, ClientError>
}

/** Lists the tools anew, in a scope, so that nobody who waits for it loses it by the end of another. */
export class Relist {
  readonly #lister: Lister
  readonly #scope: Scope.Scope
  #running: Fiber.Fiber<void> | undefined = undefined
  #count = 0

  constructor(lister: Lister, scope: Scope.Scope) {
    this.#lister = lister
    this.#scope = scope
  }

  /** How often that was done. */
  get count(): number {
    return this.#count
  }

  /** Does it once for all who ask meanwhile. It does not fail: a call that was made wrongly then is answered so again. */
  get run(): Effect.Effect<void> {
    return Effect.suspend(() =>
      Effect.asVoid(this.#running === undefined ? Effect.flatMap(this.#start, Fiber.await) : Fiber.await(this.#running))
    )
  }

  get #start(): Effect.Effect<Fiber.Fiber<void>> {
    const work = Effect.matchEffect(this.#lister.listAnew, {
      onFailure: ({ message }) => Effect.logWarning(`The tools could not be listed anew: ${message}`),
      onSuccess: () => Effect.void
    })
    return Effect.map(Effect.forkIn(work, this.#scope), (fiber) => {
      this.#running = fiber
      fiber.addObserver(() => {
        this.#running = undefined
        this.#count++
      })
      return fiber
    })
  }
}

const isMismatch = (error: ClientError): boolean => serverErrorOf(error)?.reason === "HeaderMismatch"

const late = (name: string): ClientError => {
  const message = `The tool ${JSON.stringify(name)} was not called: the tools were not listed anew in time`
  return new ClientError({ reason: new Timeout({ message }), method: "tools/call", undelivered: true })
}

/** Lists anew, as long as a call may wait for that. */
const within = ({ maxTimeout, timeout }: CallTime, { run }: Relist): Effect.Effect<unknown> =>
  Effect.timeoutOption(run, Math.max(0, Math.min(timeout, maxTimeout)))

/**
 * Makes a call, and once more when the server misses headers: "the client SHOULD call `tools/list` to check for changes to the tool's
 * `inputSchema`, then retry the original request with the appropriate headers" (2026-07-28, streamable HTTP, client behavior). Where
 * the list has changed since the headers were read, it is read again first: they MUST be sent. Either happens once at most, and
 * within the time of the call: `left` is what it has left of it.
 */
export const mirrored = <A>(
  definitions: Definitions,
  relist: Relist,
  name: string,
  left: () => CallTime,
  attempt: (time: CallTime | undefined) => Effect.Effect<A, ClientError>
): Effect.Effect<A, ClientError> =>
  Effect.suspend(() => {
    const again = (error: ClientError) =>
      Effect.suspend(() => {
        const time = left()
        return Math.min(time.timeout, time.maxTimeout) > 0 ? attempt(time) : Effect.fail(error)
      })
    if (definitions.outdated(name)) return Effect.andThen(within(left(), relist), again(late(name)))
    const { count } = relist
    return Effect.catchIf(
      attempt(undefined),
      isMismatch,
      // Another call may have had the list read since this one was sent.
      (error) => relist.count === count ? Effect.andThen(within(left(), relist), again(error)) : again(error)
    )
  })

/**
 * Checks what a tool answers; once more by a list that was read anew where it does not fit what the tool has promised the last time,
 * which may be long ago, and within the given time. Gives nothing where there is nothing to check it by.
 */
export const checked = (
  definitions: Definitions,
  desk: { readonly relist: Relist },
  line: Line,
  name: string,
  result: CallToolResult,
  left: () => CallTime
): Effect.Effect<CallToolResult, ClientError> | undefined => {
  const check = definitions.check(line, name, result)
  if (check === undefined) return undefined
  const again = Effect.suspend(() => definitions.check(line, name, result) ?? Effect.succeed(result))
  return Effect.catchIf(check, () => definitions.doubt(name), () => Effect.andThen(within(left(), desk.relist), again))
}
