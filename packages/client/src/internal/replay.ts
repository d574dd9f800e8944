/**
 * Making a call again whose answer was lost, where that does no harm.
 */
import type * as Method from "@skein/protocol/Method"
import * as Effect from "effect/Effect"
import type { ClientError } from "../ClientError.ts"
import type { Keeper } from "./keeper.ts"
import type { Line } from "./line.ts"
import type { RequestOptions } from "./requestOptions.ts"

/** What decides whether a call is made again. */
export interface Replay {
  readonly keeper: Keeper
  /** Whether this call may be made twice without harm. */
  readonly repeatable: boolean
}

/** Makes a call on the line that is open, and again on the next one where that is allowed. */
export const replayed = <A>(
  { keeper }: Replay,
  _method: Pick<Method.AnyRequest, "name">,
  _options: RequestOptions,
  attempt: (line: Line) => Effect.Effect<A, ClientError>
): Effect.Effect<A, ClientError> =>
  keeper.current === undefined ? Effect.flatMap(keeper.line, attempt) : attempt(keeper.current)
