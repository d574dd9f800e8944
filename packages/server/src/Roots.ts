/**
 * Roots: the directories and files that the client works in. The specification deprecates them since 2026-07-28
 * (SEP-2577), but they still work. New servers should take directories as arguments of their tools.
 *
 * @example
 * const where = Tool.layer(Tool.make("where"), () =>
 *   Effect.map(Roots.list(), (roots) => roots.map(({ uri }) => uri).join("\n")))
 */
import type * as Wire from "@skein/protocol/Roots"
import type { CallOptions, McpRequest } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type { InputError } from "./InputError.ts"
import { listRoots } from "./internal/input/inputRequests.ts"
import { requestInput } from "./internal/input/requestInput.ts"

/**
 * Options of the input request: `timeout`, and `key` and `acceptUnsolicited` of the stateless revision. See
 * `Elicitation.Options`.
 */
export type Options = CallOptions

/**
 * A directory or file, as a `file://` URI. It is guidance, not access control: check every path that you read or
 * write.
 */
export type Root = Wire.Root

/**
 * Requests the roots of the client (`roots/list`), in all revisions. `Elicitation` describes what an input request
 * means for a handler. Fails with `InputError`: `MissingCapability` if the client has not declared `roots`, `Timeout`,
 * `LimitExceeded`, `Closed`, `ProtocolError`, `InvalidResponse`.
 *
 * @example
 * const folders = (yield* Roots.list()).map(({ uri }) => uri)
 */
export const list = (options?: Options): Effect.Effect<ReadonlyArray<Root>, InputError, McpRequest> =>
  Effect.map(
    requestInput(listRoots(), options),
    ({ roots }) => roots
  )
