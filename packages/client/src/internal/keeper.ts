/**
 * Keeps one line to the server open, for as long as its scope.
 */
import type { SessionEnd } from "@skein/runtime/Session"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { ClientError } from "../ClientError.ts"
import type { Line } from "./line.ts"

/** See the module's text. */
export interface Keeper {
  /** The line that is open or, between two, the one that was; what it says about the server stays true until the next. */
  readonly last: Line
  /** The line, if it is open now. */
  readonly current: Line | undefined
  /** The line: waits for it while it is opened anew, fails once it was given up or closed. */
  readonly line: Effect.Effect<Line, ClientError>
  /** Waits for the end of it all. */
  readonly ended: Effect.Effect<SessionEnd>
}

/** Opens the first line. What `opened` gives runs for each line, in a scope that closes with it. */
export const make = (
  open: Effect.Effect<Line, ClientError, Scope.Scope>,
  opened: (line: Line) => Effect.Effect<void, never, Scope.Scope>
): Effect.Effect<Keeper, ClientError, Scope.Scope> =>
  Effect.gen(function*() {
    const line = yield* open
    yield* opened(line)
    return { last: line, current: line, line: Effect.succeed(line), ended: line.peer.ended }
  })
